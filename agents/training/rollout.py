"""Rollouts: tables play one hand each, at some or all seats by the current policy, and keep what the learner needs.

Forced moves (one legal action) are played at once and not learned from. A shard owns its tables and all randomness of
its decisions, so what it plays does not depend on threads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from agents.base import Agent
from agents.encoding import choose_action, encode_row
from pitch_env.cards import NUM_SUITS
from pitch_env.engine import apply_action, legal_actions, new_tables, start_hand, start_match
from pitch_env.frame import reorder_action, reorder_actions, restore_action
from pitch_env.kernels import GOLDEN, U64, count, kernel, lowest, nth, part, scramble
from pitch_env.layout import COMPACT_SIZE, MOST_ACTIVE, layout
from pitch_env.observation import list_hidden
from pitch_env.rules import Rules
from pitch_env.table import AUCTION, HAND_OVER, MATCH_OVER, NOBODY, seed_streams
from pitch_env.view import view_tables

BID, FIRST_LEAD, PLAY_ON = range(3)  # kinds of decision, whose advantages have scales of their own
NUM_KINDS = 3
# scores drawn for a start; above the target, where only a bid can win, by as many points as a hand has
LOWEST_DRAWN, MOST_DRAWN_ABOVE = -4, 4


@part
def next_seed(streams, i):
    """The next 64 random bits of stream i (SplitMix64)."""
    streams[i] += GOLDEN
    return scramble(streams[i])


@kernel
def _gather(
    tables,
    form,
    hidden_start,
    seat_players,
    base,
    features,
    lengths,
    full_lengths,
    masks,
    orders,
    places,
    streams,
    kinds,
    players,
):
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
        players[row] = seat_players[i, seat]
        kinds[row] = BID if t.phase == AUCTION else FIRST_LEAD if t.num_plays == 0 else PLAY_ON
        row += 1
    return row - base, num_forced


@kernel
def _choose(rows, logits, greed, agent_streams, masks, places, actions, log_probs):
    """Choose framed actions at some rows; with `greed` from 0 up the likeliest action with that probability."""
    for index in range(rows.shape[0]):
        row = rows[index]
        seed = next_seed(agent_streams, places[row])
        if greed >= 0:
            draw = np.float64(next_seed(agent_streams, places[row]) >> U64(11)) / 9007199254740992.0
            if draw < greed:
                actions[row], log_probs[row] = choose_action(logits[index], masks[row], seed, True)
            else:
                actions[row] = nth(masks[row], np.int64(seed >> U64(33)) % count(masks[row]))
                log_probs[row] = -np.log(np.float64(count(masks[row])))
        else:
            actions[row], log_probs[row] = choose_action(logits[index], masks[row], seed, False)


@kernel
def _draw_seeds(rows, agent_streams, places, seeds):
    for index in range(rows.shape[0]):
        seeds[index] = next_seed(agent_streams, places[rows[index]])


@kernel
def _frame(rows, real_actions, orders, actions):
    for index in range(rows.shape[0]):
        actions[rows[index]] = reorder_action(real_actions[index], orders[rows[index]])


@kernel
def _apply(base, num_rows, tables, orders, places, actions):
    for row in range(base, base + num_rows):
        apply_action(tables[places[row]], restore_action(actions[row], orders[row]))


@kernel
def _deal_next(tables):
    for i in range(tables.shape[0]):
        if tables[i].phase == HAND_OVER:
            start_hand(tables[i])
        elif tables[i].phase == MATCH_OVER:
            start_match(tables[i])


def reward_points(tables: np.ndarray) -> np.ndarray:
    """What the hands just settled were worth: each seat's score change less the mean of the other sides', (N, seats).

    The tables, (N,), share their rules.
    """
    num_players, num_sides = int(tables["num_players"][0]), int(tables["num_sides"][0])
    deltas = tables["deltas"][:, :num_sides].astype(np.float32)
    others = (deltas.sum(1, keepdims=True) - deltas) / (num_sides - 1)
    return (deltas - others)[:, np.arange(num_players) % num_sides]


class Player(Protocol):
    """Whoever decides at some seats of a rollout."""

    def choose(self, shard: "Shard", rows: np.ndarray) -> None:
        """Write framed actions, and log-probabilities if it is learned from, at some rows of the shard's store."""


@dataclass
class Batch:
    """The learner's open decisions of one hand at each table, in the order they were made.

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
    """Tables that play hand after hand.

    Args:
        rules: what is played.
        num_tables: how many tables, each of which plays one hand per `play`.
        seed: fixes the deals and the draws of all who play.

    Attributes:
        tables: `TABLE` (num_tables,).
        generator: order of minibatches and seats of the opponents.
        agent_streams: uint64 (num_tables,) randomness of the decisions at each table.
        seat_players: int16 (num_tables, seats) who plays where: 0 is the learner.
        features, lengths, masks, orders, places, actions, log_probs: the store of decisions, see `Batch`; `places` is
            the table of each.
    """

    def __init__(self, rules: Rules, num_tables: int, seed: np.random.SeedSequence) -> None:
        deals, draws = seed.generate_state(2)
        self.generator = np.random.Generator(np.random.PCG64(seed))
        self.rules = rules
        self.tables = new_tables(rules, int(deals), num_tables)
        self.agent_streams = seed_streams(int(draws), num_tables)
        self.seat_players = np.zeros((num_tables, rules.num_players), np.int16)
        form = layout(rules.num_players)
        self._form, self._hidden_start = form.form, form.size
        most = form.max_active + (rules.num_players - 1) * rules.hand_size
        capacity = num_tables * rules.num_players * (rules.hand_size + 1)
        self.features = np.zeros((capacity, most), np.int16)
        self.lengths = np.zeros(capacity, np.uint8)
        self.full_lengths = np.zeros(capacity, np.uint8)
        self.masks = np.zeros(capacity, np.uint64)
        self.orders = np.zeros((capacity, NUM_SUITS), np.int64)
        self.places = np.zeros(capacity, np.int64)
        self._streams = np.zeros(capacity, np.int64)
        self._kinds = np.zeros(capacity, np.uint8)
        self._players = np.zeros(capacity, np.int16)
        self.actions = np.zeros(capacity, np.int64)
        self.log_probs = np.zeros(capacity, np.float32)

    def deal(self, drawn_share: float = 0.0) -> None:
        """Start the next hand, or the next match, at every table whose hand is over.

        Args:
            drawn_share: share of the new matches that begin at scores drawn at random, so that scores which are rare in
                play are learned too.
        """
        _deal_next(self.tables)
        if drawn_share:
            starts = np.flatnonzero(self.tables["num_hands"] == 0)
            places = starts[self.generator.random(len(starts)) < drawn_share]
            scores = self.generator.integers(
                LOWEST_DRAWN,
                self.rules.target + MOST_DRAWN_ABOVE + 1,
                size=(len(places), self.rules.num_sides),
                dtype=np.int16,
            )
            self.tables["scores"][places, : self.rules.num_sides] = scores

    def play(self, players: Sequence[Player]) -> tuple[Batch, int]:
        """Play the hand dealt at every table to its end.

        Args:
            players: who plays for each number in `seat_players`; the first is learned from.

        Returns:
            The learner's open decisions, with rewards in points (valid until the next call), and the number of all
            decisions, forced ones too.
        """
        is_mixed = bool(self.seat_players.any())
        row = num_decisions = 0
        while True:
            num_rows, num_forced = _gather(
                self.tables,
                self._form,
                self._hidden_start,
                self.seat_players,
                row,
                self.features,
                self.lengths,
                self.full_lengths,
                self.masks,
                self.orders,
                self.places,
                self._streams,
                self._kinds,
                self._players,
            )
            num_decisions += num_rows + num_forced
            if num_rows == 0:
                break
            rows = np.arange(row, row + num_rows)
            turns = self._players[rows]
            for number in np.unique(turns) if is_mixed else (0,):
                players[number].choose(self, rows[turns == number] if is_mixed else rows)
            _apply(row, num_rows, self.tables, self.orders, self.places, self.actions)
            row += num_rows
        kept = np.flatnonzero(self._players[:row] == 0) if is_mixed else slice(row)
        batch = Batch(
            self.features[kept],
            self.lengths[kept],
            self.full_lengths[kept],
            self.masks[kept],
            self.actions[kept],
            self.log_probs[kept],
            self._streams[kept],
            self._kinds[kept],
            reward_points(self.tables).reshape(-1),
        )
        return batch, num_decisions


class NetworkPlayer:
    """Draws actions by a network's logits.

    Args:
        compute_logits: from features, int16 (M, most), and lengths, uint8 (M,), to logits, float32 (M, 57).
        greed: None draws by the softmax; else the likeliest action with this probability and any other time a uniform
            one.
    """

    def __init__(
        self, compute_logits: Callable[[np.ndarray, np.ndarray], np.ndarray], greed: float | None = None
    ) -> None:
        self._compute_logits = compute_logits
        self._greed = -1.0 if greed is None else float(greed)

    def choose(self, shard: Shard, rows: np.ndarray) -> None:
        logits = self._compute_logits(shard.features[rows], shard.lengths[rows])
        _choose(
            rows,
            logits,
            self._greed,
            shard.agent_streams,
            shard.masks,
            shard.places,
            shard.actions,
            shard.log_probs,
        )


class AgentPlayer:
    """Lets an agent choose from views, like anywhere else."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def choose(self, shard: Shard, rows: np.ndarray) -> None:
        tables = shard.tables.take(shard.places[rows])
        seeds = np.empty(len(rows), np.uint64)
        _draw_seeds(rows, shard.agent_streams, shard.places, seeds)
        actions = self.agent.act(view_tables(tables, tables["seat"]), seeds)
        _frame(rows, actions, shard.orders, shard.actions)


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
