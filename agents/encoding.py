"""Views as a network reads them: active features in the canonical order of suits, and framed legal actions."""

from dataclasses import dataclass

import numpy as np

from pitch_env.cards import NUM_ACTIONS, NUM_SUITS
from pitch_env.engine import legal_actions
from pitch_env.frame import order_suits, reorder_actions, restore_action
from pitch_env.kernels import ONE, U64, kernel, part
from pitch_env.layout import COMPACT_SIZE, MOST_ACTIVE, layout, list_features
from pitch_env.observation import encode_compact


@part
def encode_row(t, seat, order, compact, words, form, features):
    """Active features of a seat in its canonical frame; returns how many. `order` is left as the frame."""
    order_suits(t, seat, order)
    encode_compact(t, seat, order, compact, words, 0)
    return list_features(compact[0], form, features)


@kernel
def _encode(views, form, features, lengths, masks, orders):
    order = np.empty(NUM_SUITS, np.int64)
    words = np.empty((1, COMPACT_SIZE // 8), np.uint64)
    compact = words.view(np.uint8)
    active = np.empty(MOST_ACTIVE, np.int32)
    for i in range(views.shape[0]):
        t = views[i]
        num = encode_row(t, t.viewer, order, compact, words, form, active)
        lengths[i] = num
        for index in range(num):
            features[i, index] = active[index]
        for suit in range(NUM_SUITS):
            orders[i, suit] = order[suit]
        masks[i] = reorder_actions(legal_actions(t), order)


@kernel
def _restore(actions, orders):
    for i in range(actions.shape[0]):
        actions[i] = restore_action(actions[i], orders[i])


@kernel
def _choose(logits, masks, seeds, is_greedy, actions, log_probs):
    for i in range(logits.shape[0]):
        actions[i], log_probs[i] = choose_action(logits[i], masks[i], seeds[i], is_greedy)


@part
def choose_action(logits, mask, seed, is_greedy):
    """A legal action by the softmax of the logits, drawn with the bits of a uint64 seed, and its log-probability."""
    top = np.float32(-np.inf)
    best = 0
    for action in range(NUM_ACTIONS):
        if (mask >> U64(action)) & ONE and logits[action] > top:
            top = logits[action]
            best = action
    total = np.float64(0)
    for action in range(NUM_ACTIONS):
        if (mask >> U64(action)) & ONE:
            total += np.exp(np.float64(logits[action] - top))
    chosen = best
    if not is_greedy:
        draw = total * (np.float64(seed >> U64(11)) / 9007199254740992.0)
        for action in range(NUM_ACTIONS):
            if (mask >> U64(action)) & ONE:
                chosen = action
                draw -= np.exp(np.float64(logits[action] - top))
                if draw < 0:
                    break
    return chosen, np.float32(np.float64(logits[chosen] - top) - np.log(total))


@dataclass
class Encoded:
    """A batch of views as a network reads them.

    Attributes:
        features: int16 (N, max_active), of which the first `lengths` in each row count.
        lengths: uint8 (N,).
        masks: uint64 (N,) legal actions as bits, in the frame.
        orders: int64 (N, 4) place of each suit in the frame.
    """

    features: np.ndarray
    lengths: np.ndarray
    masks: np.ndarray
    orders: np.ndarray


def encode_views(views: np.ndarray, num_seats: int) -> Encoded:
    """Encode views, (N,), in the layout for `num_seats`."""
    form, num = layout(num_seats), len(views)
    encoded = Encoded(
        np.zeros((num, form.max_active), np.int16),
        np.zeros(num, np.uint8),
        np.zeros(num, np.uint64),
        np.zeros((num, NUM_SUITS), np.int64),
    )
    _encode(views, form.form, encoded.features, encoded.lengths, encoded.masks, encoded.orders)
    return encoded


def choose_actions(
    logits: np.ndarray, encoded: Encoded, seeds: np.ndarray, is_greedy: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Actions in real suits, int64 (N,), by framed logits, float32 (N, 57), and their log-probabilities, (N,)."""
    actions = np.empty(len(logits), np.int64)
    log_probs = np.empty(len(logits), np.float32)
    _choose(logits, encoded.masks, seeds, is_greedy, actions, log_probs)
    _restore(actions, encoded.orders)
    return actions, log_probs
