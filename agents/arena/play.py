"""Batches of tables played to the end of the hand or of the match by agents that see nothing but views.

What happens at a table depends on the table, its line-up, the agents' stream and its id alone: not on which other
tables share the batch, on their order, or on the number of threads.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from agents.base import Agent
from pitch_env.cards import NUM_ACTIONS
from pitch_env.engine import apply_action, explain_illegal, legal_actions, start_hand
from pitch_env.kernels import GOLDEN, ONE, U64, kernel, lowest, part, scramble
from pitch_env.table import HAND_OVER, NOBODY, TABLE
from pitch_env.view import hide_from

_END = TABLE.fields["viewer"][1] + 1  # type: ignore[index]  # the bytes behind the last field mean nothing
_LAST_WORD = np.frombuffer((b"\xff" * _END).ljust(TABLE.itemsize, b"\0")[-8:], np.uint64)[0]


@part
def mix_decision(stream, table_id, number):
    """The randomness of one decision: of the agents' stream, the table's id and how many actions came before."""
    start = scramble(stream ^ scramble(table_id + GOLDEN))
    return scramble(start + GOLDEN * U64(number + 1))


@part
def run_on(t, is_match):
    """Deal the next hand of a match and take forced actions, up to a real choice or the end; how many were taken."""
    num_taken = 0
    while True:
        if t.seat == NOBODY:
            if not is_match or t.phase != HAND_OVER:
                return num_taken
            start_hand(t)
        legal = legal_actions(t)
        if legal & (legal - ONE):
            return num_taken
        apply_action(t, lowest(legal))
        num_taken += 1


@kernel
def _start(tables, numbers, is_match):
    for i in range(tables.shape[0]):
        numbers[i] = run_on(tables[i], is_match)


@kernel
def _sort_turns(tables, active, lineups, ids, numbers, stream, num_agents):
    # the active tables that still run, and the same sorted by the agent to act, with its seats and seeds
    bounds = np.zeros(num_agents + 1, np.int64)
    num_running = 0
    for i in active:
        seat = tables[i].seat
        if seat != NOBODY:
            active[num_running] = i
            num_running += 1
            bounds[lineups[i, seat] + 1] += 1
    for agent in range(num_agents):
        bounds[agent + 1] += bounds[agent]
    turns = np.empty(num_running, np.int64)
    seats = np.empty(num_running, np.int64)
    seeds = np.empty(num_running, np.uint64)
    places = bounds.copy()
    for i in active[:num_running]:
        seat = tables[i].seat
        place = places[lineups[i, seat]]
        places[lineups[i, seat]] += 1
        turns[place] = i
        seats[place] = seat
        seeds[place] = mix_decision(stream, ids[i], numbers[i])
    return active[:num_running], turns, seats, seeds, bounds


@part
def is_same(words, one, other):
    """Whether two rows are equal."""
    index, size = 0, words.shape[1]
    while index < size and words[one, index] == words[other, index]:
        index += 1
    return index == size


@kernel
def _look(tables, turns, seats, seeds, views, words, asked, places, slots):
    # views without repeats and their seeds: a deal is often alike at several tables; returns how many. `words` are the
    # views again, `places` says where each turn's stands, and `slots` is a hash table with room for twice the turns
    num = 0
    last = slots.shape[0] - 1
    for turn in range(turns.shape[0]):
        views[num] = tables[turns[turn]]
        view = views[num]
        hide_from(view, seats[turn])
        words[num, -1] &= _LAST_WORD
        slot = np.int64(scramble(seeds[turn] ^ (view.played * GOLDEN) ^ view.dealt[seats[turn]]) & U64(last))
        while slots[slot] >= 0 and not (asked[slots[slot]] == seeds[turn] and is_same(words, slots[slot], num)):
            slot = (slot + 1) & last
        if slots[slot] < 0:
            slots[slot] = num
            asked[num] = seeds[turn]
            num += 1
        places[turn] = slots[slot]
    return num


@kernel
def _apply(tables, turns, actions, numbers, is_match):
    # the place of the first illegal action, at which it stops, or -1
    for place in range(turns.shape[0]):
        i = turns[place]
        action = actions[place]
        t = tables[i]
        if action < 0 or action >= NUM_ACTIONS or not (legal_actions(t) >> U64(action)) & ONE:
            return place
        apply_action(t, action)
        numbers[i] += 1 + run_on(t, is_match)
    return -1


def _ask(agent: Agent, tables: np.ndarray, turns: np.ndarray, seats: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """The agent's actions for the seats that look; it is asked once where view and seed are the same."""
    num = len(turns)
    views, asked, places = np.empty(num, TABLE), np.empty(num, np.uint64), np.empty(num, np.int64)
    slots = np.full(2 << num.bit_length(), -1, np.int32)
    num = _look(tables, turns, seats, seeds, views, views.view(np.uint64).reshape(num, -1), asked, places, slots)
    views, seeds = views[:num], asked[:num]
    actions = np.asarray(agent.act(views, seeds))
    if actions.shape != seeds.shape or actions.dtype.kind not in "iu":
        raise ValueError(
            f"agent {agent.name!r} was to give {len(seeds)} whole numbers, not {actions.dtype} {actions.shape}"
        )
    return actions.astype(np.int64, copy=False)[places]


def _play(
    tables: np.ndarray,
    agents: Sequence[Agent],
    lineups: np.ndarray,
    stream: int,
    ids: np.ndarray | None,
    is_match: bool,
) -> None:
    num_tables = len(tables)
    lineups = np.ascontiguousarray(lineups, np.int64)
    if tables.dtype != TABLE or tables.ndim != 1:
        raise ValueError(f"tables takes an array of TABLE, (N,), not {tables.dtype} {tables.shape}")
    num_seats = int(tables["num_players"].max(initial=0))
    if lineups.ndim != 2 or len(lineups) != num_tables or lineups.shape[1] < num_seats:
        raise ValueError(f"lineups takes an agent for each seat, ({num_tables}, {num_seats}), not {lineups.shape}")
    if lineups.size and not 0 <= lineups.min() <= lineups.max() < len(agents):
        raise ValueError(f"lineups takes numbers from 0 to {len(agents) - 1}: one of the agents for each seat")
    ids = np.arange(num_tables, dtype=np.uint64) if ids is None else np.ascontiguousarray(ids, np.uint64)
    if ids.shape != (num_tables,):
        raise ValueError(f"ids takes {num_tables} whole numbers, one for each table, not {ids.shape}")
    numbers = np.zeros(num_tables, np.int64)
    _start(tables, numbers, is_match)
    active = np.arange(num_tables)
    while True:
        active, turns, seats, seeds, bounds = _sort_turns(
            tables, active, lineups, ids, numbers, U64(stream), len(agents)
        )
        if not len(active):
            return
        for agent, (low, high) in zip(agents, pairwise(bounds), strict=True):
            if low == high:
                continue
            turn = turns[low:high]
            actions = _ask(agent, tables, turn, seats[low:high], seeds[low:high])
            wrong = _apply(tables, turn, actions, numbers, is_match)
            if wrong >= 0:
                table = turn[wrong]
                reason = explain_illegal(tables[table : table + 1], int(actions[wrong]))
                raise ValueError(f"agent {agent.name!r} at table {ids[table]}: {reason}")


def play_hands(
    tables: np.ndarray, agents: Sequence[Agent], lineups: np.ndarray, stream: int, ids: np.ndarray | None = None
) -> None:
    """Play tables, in place, to the end of the hand in progress. Forced actions are taken without asking.

    Args:
        tables: array of `TABLE`, (N,); rules may differ from table to table.
        agents: who plays.
        lineups: whole numbers, (N, players), which of the agents sits at each seat.
        stream: the agents' randomness, a number below 2**64. Deals come from the tables' own streams only.
        ids: the tables' numbers, (N,), by default 0 to N - 1. Tables with one id meet the same randomness of the
            agents, so that equal agents play equal hands.

    Raises:
        ValueError: if an agent chooses an illegal action, naming agent, table id and action; or for a wrong shape.
    """
    _play(tables, agents, lineups, stream, ids, is_match=False)


def play_matches(
    tables: np.ndarray, agents: Sequence[Agent], lineups: np.ndarray, stream: int, ids: np.ndarray | None = None
) -> None:
    """Play tables, in place, to the end of the match; the k-th hand's cards do not depend on who plays.

    Arguments and errors are those of `play_hands`. At a match without a winner ``winner`` is NOBODY.
    """
    _play(tables, agents, lineups, stream, ids, is_match=True)
