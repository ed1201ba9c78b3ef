"""Self-play: tables play one hand each, every open decision by the current policy, and keep what the learner needs.

Forced moves (one legal action) are played at once and not learned from. A shard owns its tables and all randomness of
its decisions, so what it plays does not depend on threads.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from agents.encoding import choose_action, encode_row
from pitch_env.cards import NUM_SUITS
from pitch_env.engine import apply_action, legal_actions, new_tables, start_hand, start_match
from pitch_env.kernels import U64, count, kernel, lowest, part
from pitch_env.observation import (
    COMPACT_SIZE,
    MOST_ACTIVE,
    layout,
    list_hidden,
    num_hidden_features,
    reorder_actions,
    restore_action,
)
from pitch_env.rules import Rules
from pitch_env.table import AUCTION, HAND_OVER, MATCH_OVER, NOBODY, seed_streams

BID, FIRST_LEAD, PLAY_ON = range(3)  # kinds of decision, whose advantages have scales of their own
NUM_KINDS = 3


@part
def next_seed(streams, i):
    """The next 64 random bits of stream i (SplitMix64)."""
    streams[i] += U64(0x9E3779B97F4A7C15)
    z = streams[i]
    z = (z ^ (z >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U64(27))) * U64(0x94D049BB133111EB)
    return z ^ (z >> U64(31))


@kernel
def _gather(tables, form, hidden_start, base, features, lengths, full_lengths, masks, orders, places, streams, kinds):
    """Advance every table to its next open decision and encode it; returns the rows written and the moves forced."""
    order = np.empty(NUM_SUITS, np.int64)
    words = np.empty((1, COMPACT_SIZE // 8), np.uint64)
    compact = words.view(np.uint8)
    active = np.empty(MOST_ACTIVE, np.int32)
    row, num_forced = base, 0
    for i in range(tables.shape[0]):
        t = tables[i]
        legal = legal_actions(t)
        while legal and count(legal) == 1:
            apply_action(t, lowest(legal))
            num_forced += 1
            legal = legal_actions(t)
        if not legal:
            continue
        seat = t.seat
        num = encode_row(t, seat, order, compact, words, form, active)
        for index in range(num):
            features[row, index] = active[index]
        lengths[row] = num
        num_hidden = list_hidden(t, seat, order, hidden_start, active)
        for index in range(num_hidden):
            features[row, num + index] = active[index]
        full_lengths[row] = num + num_hidden
        masks[row] = reorder_actions(legal, order)
        for suit in range(NUM_SUITS):
            orders[row, suit] = order[suit]
        places[row] = i
        streams[row] = i * t.num_players + seat
        kinds[row] = BID if t.phase == AUCTION else FIRST_LEAD if t.num_plays == 0 else PLAY_ON
        row += 1
    return row - base, num_forced


@kernel
def _act(tables, agent_streams, base, logits, masks, orders, places, actions, log_probs):
    for index in range(logits.shape[0]):
        row = base + index
        seed = next_seed(agent_streams, places[row])
        action, log_prob = choose_action(logits[index], masks[row], seed, False)
        actions[row] = action
        log_probs[row] = log_prob
        apply_action(tables[places[row]], restore_action(action, orders[row]))


@kernel
def _deal_next(tables):
    for i in range(tables.shape[0]):
        if tables[i].phase == HAND_OVER:
            start_hand(tables[i])
        elif tables[i].phase == MATCH_OVER:
            start_match(tables[i])


@kernel
def _reward(tables, scale, rewards):
    """Each seat's score change less the mean of the other sides', times the scale."""
    for i in range(tables.shape[0]):
        t = tables[i]
        total = 0
        for side in range(t.num_sides):
            total += t.deltas[side]
        for seat in range(t.num_players):
            own = t.deltas[seat % t.num_sides]
            rewards[i * t.num_players + seat] = scale * (own - (total - own) / (t.num_sides - 1))


@dataclass
class Batch:
    """Open decisions of one hand at each table, in the order they were made.

    Attributes:
        features: int16 (N, most); the first `lengths` are what the seat knows, the first `full_lengths` all hands.
        lengths, full_lengths: uint8 (N,).
        masks: uint64 (N,) legal actions as bits, in each seat's frame.
        actions: int64 (N,) taken, in the frame.
        log_probs: float32 (N,) of them.
        streams: int64 (N,) which seat's hand a decision belongs to.
        kinds: uint8 (N,) BID, FIRST_LEAD or PLAY_ON.
        rewards: float32 (number of streams,).
    """

    features: np.ndarray
    lengths: np.ndarray
    full_lengths: np.ndarray
    masks: np.ndarray
    actions: np.ndarray
    log_probs: np.ndarray
    streams: np.ndarray
    kinds: np.ndarray
    rewards: np.ndarray

    def __len__(self) -> int:
        return len(self.masks)


class Shard:
    """Tables that play against themselves.

    Args:
        rules: what is played.
        num_tables: how many tables, each of which plays one hand per `play`.
        seed: fixes the deals and the draws of the policy.
        reward_scale: what a point is worth to the learner.
    """

    def __init__(self, rules: Rules, num_tables: int, seed: np.random.SeedSequence, reward_scale: float) -> None:
        deals, draws = seed.generate_state(2)
        self.rules = rules
        self.reward_scale = reward_scale
        self.tables = new_tables(rules, int(deals), num_tables)
        self.agent_streams = seed_streams(int(draws), num_tables)
        form = layout(rules.num_players)
        self._form, self._hidden_start = form.form, form.size
        most = form.max_active + (rules.num_players - 1) * rules.hand_size
        capacity = num_tables * rules.num_players * (rules.hand_size + 1)
        self._features = np.zeros((capacity, most), np.int16)
        self._lengths = np.zeros(capacity, np.uint8)
        self._full_lengths = np.zeros(capacity, np.uint8)
        self._masks = np.zeros(capacity, np.uint64)
        self._orders = np.zeros((capacity, NUM_SUITS), np.int64)
        self._places = np.zeros(capacity, np.int64)
        self._streams = np.zeros(capacity, np.int64)
        self._kinds = np.zeros(capacity, np.uint8)
        self._actions = np.zeros(capacity, np.int64)
        self._log_probs = np.zeros(capacity, np.float32)

    def play(self, compute_logits: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> tuple[Batch, int]:
        """Deal and play one hand at every table.

        Args:
            compute_logits: from features, int16 (M, most), and lengths, uint8 (M,), to logits, float32 (M, 57).

        Returns:
            The open decisions (valid until the next call), and the number of all decisions, forced ones too.
        """
        _deal_next(self.tables)
        row = num_decisions = 0
        while True:
            num_rows, num_forced = _gather(
                self.tables,
                self._form,
                self._hidden_start,
                row,
                self._features,
                self._lengths,
                self._full_lengths,
                self._masks,
                self._orders,
                self._places,
                self._streams,
                self._kinds,
            )
            num_decisions += num_rows + num_forced
            if num_rows == 0:
                break
            logits = compute_logits(self._features[row : row + num_rows], self._lengths[row : row + num_rows])
            _act(
                self.tables,
                self.agent_streams,
                row,
                logits,
                self._masks,
                self._orders,
                self._places,
                self._actions,
                self._log_probs,
            )
            row += num_rows
        rewards = np.empty(len(self.tables) * self.rules.num_players, np.float32)
        _reward(self.tables, self.reward_scale, rewards)
        batch = Batch(
            self._features[:row],
            self._lengths[:row],
            self._full_lengths[:row],
            self._masks[:row],
            self._actions[:row],
            self._log_probs[:row],
            self._streams[:row],
            self._kinds[:row],
            rewards,
        )
        return batch, num_decisions


def count_critic_features(rules: Rules) -> int:
    """Features a critic reads: the layout's, then the hidden hands'."""
    return layout(rules.num_players).size + num_hidden_features(rules.num_players)


def join_batches(batches: list[Batch]) -> Batch:
    """One batch of several shards', its streams numbered on."""
    starts = np.cumsum([0] + [len(batch.rewards) for batch in batches])
    streams = np.concatenate([batch.streams + start for batch, start in zip(batches, starts, strict=False)])
    joined = {
        name: np.concatenate([getattr(batch, name) for batch in batches])
        for name in Batch.__dataclass_fields__
        if name != "streams"
    }
    return Batch(streams=streams, **joined)


def summarise_hands(tables: np.ndarray) -> dict[str, float]:
    """Facts about the hands just settled at some tables, for the log: TensorBoard names to numbers."""
    bids = tables["bid"]
    sides = tables["pitcher"] % tables["num_sides"]
    pitched = np.take_along_axis(tables["deltas"], sides[:, None].astype(np.int64), 1)[:, 0]
    is_made = pitched >= bids
    facts = {
        "game/made_rate": float(is_made.mean()),
        "game/pitcher_points": float(pitched.mean()),
        "game/steal_rate": float(
            ((tables["pitcher"] == tables["dealer"]) & (np.sum(tables["bids"] == bids[:, None], 1) > 1)).mean()
        ),
    }
    for bid in range(1, 5):
        is_bid = bids == bid
        facts[f"game/contract_{bid}"] = float(is_bid.mean())
        if is_bid.any():
            facts[f"game/made_rate_{bid}"] = float(is_made[is_bid].mean())
    is_over = tables["phase"] == MATCH_OVER
    if is_over.any():
        facts["game/hands_per_match"] = float(tables["num_hands"][is_over].mean())
        facts["game/truncated_share"] = float((tables["winner"][is_over] == NOBODY).mean())
    return facts
