"""Many tables at once: the batched interface for learning and measuring.

All arrays are allocated once and rewritten in place by every step; copy what must outlive it.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from pitch_env.cards import NUM_ACTIONS, NUM_SUITS
from pitch_env.engine import (
    apply_action,
    choose_at_random,
    explain_illegal,
    legal_actions,
    start_hand,
    start_match,
    start_matches,
)
from pitch_env.frame import keep_suits, order_suits
from pitch_env.kernels import ONE, U64, kernel
from pitch_env.layout import COMPACT_SIZE
from pitch_env.observation import encode_compact, expand_mask
from pitch_env.rules import MAX_PLAYERS, Rules
from pitch_env.table import HAND_OVER, MATCH_OVER, NOBODY, TABLE, seed_streams, write_rules


@kernel
def _find_illegal(actions, legal):
    for i in range(actions.shape[0]):
        action = actions[i]
        if legal[i] == 0:
            continue  # this table waits for the next hand
        if action < 0 or action >= NUM_ACTIONS or not (legal[i] >> U64(action)) & ONE:
            return i
    return -1


@kernel
def _advance(
    low,
    high,
    is_acting,
    is_dealing,
    is_canonical,
    actions,
    tables,
    has_settled,
    is_match_over,
    winners,
    deltas,
    seats,
    legal,
    mask_words,
    observations,
    observation_words,
    orders,
):
    # one body for all: Numba counts references to every array that is handed on, which costs as much as a step
    order = np.empty(NUM_SUITS, np.int64)
    keep_suits(order)
    for i in range(low, high):
        t = tables[i]
        if is_acting:
            has_settled[i] = False
            is_match_over[i] = False
            winners[i] = NOBODY
            if t.seat != NOBODY:
                apply_action(t, actions[i])
                if t.seat == NOBODY:
                    has_settled[i] = True
                    is_match_over[i] = t.phase == MATCH_OVER
                    winners[i] = t.winner
                    for seat in range(t.num_players):
                        deltas[i, seat] = t.deltas[seat % t.num_sides]
        if is_dealing and t.seat == NOBODY:
            if t.phase == HAND_OVER:
                start_hand(t)
            else:
                start_match(t)
        mask = legal_actions(t)
        seats[i] = t.seat
        legal[i] = mask
        expand_mask(mask, mask_words, i)
        if t.seat != NOBODY:
            if is_canonical:
                order_suits(t, t.seat, order)
                for suit in range(NUM_SUITS):
                    orders[i, suit] = order[suit]
            encode_compact(t, t.seat, order, observations, observation_words, i)


@kernel
def _sample(low, high, tables, legal, actions):
    for i in range(low, high):
        actions[i] = choose_at_random(tables[i], legal[i]) if legal[i] else 0


class VectorEnv:
    """N tables that are stepped together.

    When a hand ends, the next one is dealt in the same step, and after a match a new match begins; with `is_lockstep` a
    table instead waits, with an all-zero mask, until `deal` starts the next hand at every waiting table. Results do not
    depend on `num_threads`, and table i plays as ``pitch_v0`` plays with the same random stream.

    Attributes:
        tables: `TABLE` (N,).
        seats: int8 (N,) seat to act, -1 at a waiting table.
        observations: uint8 (N, COMPACT_SIZE) compact observation of the seat to act.
        masks: int8 (N, 57) its legal actions.
        legal: uint64 (N,) the same as bits.
        orders: int64 (N, 4) place of each suit in the observation; differs from 0 1 2 3 with `is_canonical`.
        has_settled: bool (N,) a hand was settled in the last step; then `deltas`, int8 (N, 7), has each seat's score
            change, else it is left over from before.
        is_match_over: bool (N,) the match ended in the last step; `winners`, int8 (N,), has the side that won or -1.

    Args:
        num_tables: N.
        rules: one for all tables, or one for each.
        seed: fixes everything; None draws it from the operating system.
        num_threads: threads that share the tables.
        is_canonical: observe suits in each seat's canonical order (actions and masks stay in real suits).
        is_lockstep: wait for `deal` after each hand.
    """

    def __init__(
        self,
        num_tables: int,
        rules: Rules | Sequence[Rules] | None = None,
        seed: int | None = None,
        num_threads: int = 1,
        is_canonical: bool = False,
        is_lockstep: bool = False,
    ) -> None:
        for name, number in (("num_tables", num_tables), ("num_threads", num_threads)):
            if not isinstance(number, int) or number < 1:
                raise ValueError(f"{name} takes a whole number from 1 up, not {number!r}")
        choices = list(rules) if isinstance(rules, Sequence) else [Rules() if rules is None else rules]
        for choice in choices:
            if not isinstance(choice, Rules):
                raise ValueError(f"rules takes pitch_env.Rules, one or several, not {choice!r}")
        if len(choices) not in (1, num_tables):
            raise ValueError(f"rules takes one Rules, or one for each of the {num_tables} tables, not {len(choices)}")
        self.num_tables, self.num_threads = num_tables, num_threads
        self.is_canonical, self.is_lockstep = is_canonical, is_lockstep
        self.tables = np.zeros(num_tables, TABLE)
        for index, choice in enumerate(choices):
            write_rules(self.tables if len(choices) == 1 else self.tables[index : index + 1], choice)
        self.seats = np.zeros(num_tables, np.int8)
        self.legal = np.zeros(num_tables, np.uint64)
        mask_words = np.zeros((num_tables, 8), np.uint64)
        self.masks = mask_words.view(np.int8)[:, :NUM_ACTIONS]
        self.observations = np.zeros((num_tables, COMPACT_SIZE), np.uint8)
        self.orders = np.tile(np.arange(NUM_SUITS), (num_tables, 1))
        self.has_settled = np.zeros(num_tables, np.bool_)
        self.is_match_over = np.zeros(num_tables, np.bool_)
        self.winners = np.full(num_tables, NOBODY, np.int8)
        self.deltas = np.zeros((num_tables, MAX_PLAYERS), np.int8)
        self._pool = ThreadPoolExecutor(num_threads - 1) if num_threads > 1 else None
        self._no_actions = np.zeros(num_tables, np.int64)
        self._arrays = (
            self.tables,
            self.has_settled,
            self.is_match_over,
            self.winners,
            self.deltas,
            self.seats,
            self.legal,
            mask_words,
            self.observations,
            self.observations.view(np.uint64),
            self.orders,
        )
        self.reset(seed)

    def reset(self, seed: int | None = None) -> None:
        """Start a new match at every table; without a seed it is drawn from the operating system."""
        self.tables["rng"] = seed_streams(seed, self.num_tables)
        start_matches(self.tables)
        self._advance(self._no_actions, is_acting=False, is_dealing=False)

    def deal(self) -> None:
        """Start the next hand, or the next match, at every table that waits for it."""
        self._advance(self._no_actions, is_acting=False, is_dealing=True)

    def step(self, actions: np.ndarray) -> None:
        """Take an action at every table that does not wait.

        Args:
            actions: whole numbers (N,); those of waiting tables are not looked at.

        Raises:
            ValueError: if one is not legal; no table is changed then.
        """
        actions = np.asarray(actions)
        if actions.shape != (self.num_tables,) or actions.dtype.kind not in "iu":
            raise ValueError(f"actions takes {self.num_tables} whole numbers, not {actions.dtype} {actions.shape}")
        given, actions = actions, np.ascontiguousarray(actions, np.int64)  # kernels are compiled for one type
        wrong = _find_illegal(actions, self.legal)
        if wrong >= 0:
            reason = explain_illegal(self.tables[wrong : wrong + 1], given[wrong])
            raise ValueError(f"table {wrong}: {reason}")
        self._advance(actions, is_acting=True, is_dealing=not self.is_lockstep)

    def _advance(self, actions: np.ndarray, is_acting: bool, is_dealing: bool) -> None:
        self._share(_advance, is_acting, is_dealing, self.is_canonical, actions, *self._arrays)

    def sample(self) -> np.ndarray:
        """Uniform legal actions, int64 (N,), drawn from the tables' own streams (which moves them on)."""
        actions = np.empty(self.num_tables, np.int64)
        self._share(_sample, self.tables, self.legal, actions)
        return actions

    def _share(self, run: Callable, *arguments: object) -> None:
        if self._pool is None:
            run(0, self.num_tables, *arguments)
            return
        bounds = [self.num_tables * share // self.num_threads for share in range(self.num_threads + 1)]
        *others, own = pairwise(bounds)
        jobs = [self._pool.submit(run, low, high, *arguments) for low, high in others]
        run(*own, *arguments)  # this thread takes a share too
        for job in jobs:
            job.result()
