"""Hands played to their end by a policy at every seat, all cards of the tables being known.

Many tables go on together, so that the network is asked for thousands of decisions at once. Which action a seat draws
in a trick depends on the table's stream, the seat and the trick alone: tables that share a stream meet the same luck
wherever they have come to the same decision (common random numbers).
"""

import numpy as np

from agents.encoding import choose_action, encode_row
from agents.network import Network, run_network
from agents.random_bots import mix_seed
from pitch_env.cards import NUM_ACTIONS, NUM_SUITS
from pitch_env.engine import apply_action, legal_actions
from pitch_env.frame import reorder_actions, restore_action
from pitch_env.kernels import ONE, U64, kernel, lowest, part
from pitch_env.layout import COMPACT_SIZE, MOST_ACTIVE, layout
from pitch_env.rules import MAX_HAND_SIZE
from pitch_env.table import NOBODY, PLAY

_TABLES = 1 << 13  # played at a time
_AUCTION = MAX_HAND_SIZE  # stands for a trick in the randomness of bids


@kernel
def _advance(tables, running, form, features, lengths, masks, orders):
    # forced moves up to an open decision, which is encoded, or to the end of the hand; the tables that go on come first
    # in `running`; how many
    order = np.empty(NUM_SUITS, np.int64)
    words = np.empty((1, COMPACT_SIZE // 8), np.uint64)
    compact = words.view(np.uint8)
    active = np.empty(MOST_ACTIVE, np.int32)
    row = 0
    for i in running:
        t = tables[i]
        while t.seat != NOBODY:
            legal = legal_actions(t)
            if legal & (legal - ONE):
                num = encode_row(t, t.seat, order, compact, words, form, active)
                for index in range(num):
                    features[row, index] = active[index]
                lengths[row] = num
                masks[row] = reorder_actions(legal, order)
                for suit in range(NUM_SUITS):
                    orders[row, suit] = order[suit]
                running[row] = i
                row += 1
                break
            apply_action(t, lowest(legal))
    return row


@part
def draw_seed(stream, t):
    """The randomness of the seat to act in this trick or auction."""
    trick = np.int64(t.num_plays) // np.int64(t.num_players) if t.phase == PLAY else _AUCTION
    return mix_seed(stream + U64(np.int64(t.seat) * 8 + trick))


@kernel
def _act(tables, running, streams, logits, masks, orders, is_greedy):
    for row in range(running.shape[0]):
        i = running[row]
        t = tables[i]
        action, _ = choose_action(logits[row], masks[row], draw_seed(streams[i], t), is_greedy)
        apply_action(t, restore_action(action, orders[row]))


@kernel
def apply_each(tables, actions):
    """Apply one legal action at each table, (N,), in place."""
    for i in range(tables.shape[0]):
        apply_action(tables[i], actions[i])


@kernel
def restore_all(orders, actions):
    """Write the real action of each framed one, (N, 57), in frames, (N, 4)."""
    for i in range(actions.shape[0]):
        for action in range(NUM_ACTIONS):
            actions[i, action] = restore_action(action, orders[i])


@kernel
def _derive(seeds, streams):
    for i in range(streams.shape[0]):
        for number in range(streams.shape[1]):
            streams[i, number] = mix_seed(mix_seed(seeds[i]) + U64(number))


def derive_streams(seeds: np.ndarray, num_each: int) -> np.ndarray:
    """Streams, uint64 (N, num_each), of seeds, uint64 (N,); the first ones do not depend on how many follow."""
    streams = np.empty((len(seeds), num_each), np.uint64)
    _derive(seeds, streams)
    return streams


def play_out(
    tables: np.ndarray, streams: np.ndarray, network: Network, num_seats: int, *, is_greedy: bool = False
) -> None:
    """Play tables, in place, to the end of the hand, the policy acting at every seat.

    Args:
        tables: array of `TABLE`, (N,), with all cards.
        streams: uint64 (N,), the luck of each.
        network: the policy's.
        num_seats: of its observation layout.
        is_greedy: take likeliest actions instead of drawing them.
    """
    form, size = layout(num_seats), min(len(tables), _TABLES)
    features = np.empty((size, form.max_active), np.int16)
    lengths, masks = np.empty(size, np.uint8), np.empty(size, np.uint64)
    orders = np.empty((size, NUM_SUITS), np.int64)
    for low in range(0, len(tables), _TABLES):
        some, luck = tables[low : low + _TABLES], streams[low : low + _TABLES]
        running = np.arange(len(some))
        while num := _advance(some, running, form.form, features, lengths, masks, orders):
            running = running[:num]
            _act(some, running, luck, run_network(network, features[:num], lengths[:num]), masks, orders, is_greedy)
