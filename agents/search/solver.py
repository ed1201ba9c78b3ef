"""The value of best play of a hand with all cards seen, exactly.

Two readings of best play. *Two-sided*: the pitcher's side against all others together, a zero-sum game (with teams, the
game itself). *Max^n*: each side for itself, for its score change less the mean of the others'. A position is anything
in play, the first lead, which sets trump, and the middle of a trick among it.

>>> from agents.search.solver import solve
>>> solution = solve(table)  # doctest: +SKIP
>>> solution.card, solution.value, solution.values
"""

import threading
from dataclasses import dataclass

import numpy as np

from agents.search.position import (
    MOST_POINTS,
    NO_CARD,
    NUM_SLOTS,
    PLAIN,
    SEARCH,
    drop_equals,
    enter_hand,
    enter_trump,
)
from agents.search.tree import find_value, find_values, read_payoff
from pitch_env.cards import NUM_CARDS, NUM_RANKS, TRICK_POINTS
from pitch_env.engine import beats, legal_cards
from pitch_env.kernels import ONE, U64, bit, count, kernel, lowest, part
from pitch_env.rules import MAX_PLAYERS
from pitch_env.table import NOBODY, NOT_YET, PHASES, PLAY, TABLE

OBJECTIVES = ("margin", "score", "points")
_MARGIN, _SCORE, _POINTS = range(3)
_SMALL = 8  # cards held, to the power of two that the table then needs: 256 slots
_SAME = 1e-9  # means of whole numbers that differ less are equal

_spaces = threading.local()


@dataclass(frozen=True)
class Solution:
    """Best play from a position.

    Attributes:
        card: the best card of the seat to act; of equals the cheapest.
        value: what it is worth, to the pitcher's side by the objective; in max^n a tuple of the margins of all sides.
        values: the same for each legal card.
    """

    card: int
    value: float | tuple[float, ...]
    values: dict[int, float] | dict[int, tuple[float, ...]]


@part
def write_payoffs(s, objective):
    """What the pitcher's side plays for: an integer for each split of the points."""
    for own in range(MOST_POINTS + 1):
        for others in range(MOST_POINTS + 1):
            score = own if own >= s.bid else -s.bid
            if objective == _MARGIN:
                s.payoffs[own, others] = (s.num_sides - 1) * score - others
            elif objective == _SCORE:
                s.payoffs[own, others] = score
            else:
                s.payoffs[own, others] = own


@part
def fit_table(s, live):
    """Use as much of the transposition table as a search of these cards may fill."""
    size = count(live) - s.num_players
    s.last_slot = U64(min(NUM_SLOTS, 1 << max(_SMALL, size))) - ONE


@part
def solve_root(s, t, is_max_n, words):
    """Write the payoff, or in max^n the word of payoffs, of each legal card of a table in play into words."""
    enter_hand(s, t)
    seat, num_players = np.int64(t.seat), s.num_players
    place = np.int64(t.num_plays) % num_players
    live, pile = U64(0), U64(0)
    for other in range(num_players):
        live |= s.hands[other]
    fit_table(s, live)
    led, best, winner = 0, NO_CARD, seat
    if place > 0:
        for index in range(t.num_plays - place, t.num_plays):
            pile |= bit(t.plays[index])
        led = np.int64(t.plays[t.num_plays - place]) // NUM_RANKS
        best = np.int64(t.best)
        winner = np.int64(t.winners[t.num_plays // num_players])
    trump, last = np.int64(t.trump), np.int64(0)
    if trump != NOT_YET:
        enter_trump(s, t, trump)
    legal = legal_cards(t)
    after = seat + 1 if seat + 1 < num_players else 0
    left, kept, plain = legal, U64(0), U64(0)
    while left:
        card = lowest(left)
        suit, played = card // NUM_RANKS, bit(card)
        left &= ~played
        if t.trump == NOT_YET and suit != trump:
            trump = suit
            enter_trump(s, t, trump)
            kept = U64(0)
        if kept == U64(0):
            plain = PLAIN & ~s.low
            kept = drop_equals(legal, live | bit(best) if place > 0 else live, plain)
        if not kept & played:
            words[card] = words[last]  # it equals the legal card below it
            last = card
            continue
        last = card
        wins = place == 0 or beats(s, card, best)
        next_led = suit if place == 0 else led
        next_best, next_winner = (card, seat) if wins else (best, winner)
        s.hands[seat] ^= played
        pile |= played
        live ^= played
        if is_max_n:
            word = find_values(s, after, place + 1, next_led, next_best, next_winner, pile, live, plain)
            words[card] = np.int64(word)
        else:
            words[card] = find_value(s, after, place + 1, next_led, next_best, next_winner, pile, live, plain)
        s.hands[seat] ^= played
        pile ^= played
        live ^= played


@kernel
def _solve(spaces, tables, objective, values):
    s = spaces[0]
    words = np.empty(NUM_CARDS, np.int64)
    for i in range(tables.shape[0]):
        t = tables[i]
        s.bid, s.num_sides = t.bid, t.num_sides
        write_payoffs(s, objective)
        solve_root(s, t, False, words)
        scale = s.num_sides - 1 if objective == _MARGIN else 1
        legal = legal_cards(t)
        while legal:
            card = lowest(legal)
            legal &= legal - ONE
            values[i, card] = words[card] / scale


@kernel
def _solve_max_n(spaces, tables, values):
    s = spaces[0]
    words = np.empty(NUM_CARDS, np.int64)
    for i in range(tables.shape[0]):
        t = tables[i]
        solve_root(s, t, True, words)
        legal = legal_cards(t)
        while legal:
            card = lowest(legal)
            legal &= legal - ONE
            for side in range(s.num_sides):
                values[i, card, side] = read_payoff(s, U64(words[card]), side) / (s.num_sides - 1)


def _get_space() -> np.ndarray:
    """The calling thread's own room to search in; the table in it is kept from solve to solve."""
    if not hasattr(_spaces, "space"):
        _spaces.space = np.zeros(1, SEARCH)
    return _spaces.space


def _check_tables(tables: np.ndarray) -> None:
    if tables.dtype != TABLE or tables.ndim != 1:
        raise ValueError(f"tables takes an array of TABLE, (N,), not {tables.dtype} {tables.shape}")
    for wrong in tables["phase"][tables["phase"] != PLAY][:1]:
        raise ValueError(f"a hand is solved in the phase 'play', not {PHASES[wrong]!r}")
    if (tables["viewer"] != NOBODY).any():
        raise ValueError("a view does not hold all cards: solve the tables of sample_worlds(view, ...)")


def solve_many(tables: np.ndarray, objective: str = "margin") -> np.ndarray:
    """Value of each legal card for the pitcher's side, which plays against all others together.

    Args:
        tables: array of `TABLE`, (N,), each with the cards being played; rules may differ from table to table.
        objective: what the pitcher's side wants most of, and the others least: "margin" its score change less the mean
            of the other sides' (R18), "score" its score change, "points" the points it wins, whatever the contract.

    Returns:
        float64 (N, 52); NaN where a card is not legal.

    Raises:
        ValueError: for a table that is not in play or a view, or an unknown objective.
    """
    _check_tables(tables)
    if objective not in OBJECTIVES:
        raise ValueError(f"objective takes one of {', '.join(OBJECTIVES)}, not {objective!r}")
    values = np.full((len(tables), NUM_CARDS), np.nan)
    _solve(_get_space(), tables, OBJECTIVES.index(objective), values)
    return values


def solve_max_n_many(tables: np.ndarray) -> np.ndarray:
    """Margins of all sides for each legal card, when each side plays for its own margin.

    Margin is a side's score change less the mean of the others'. Of cards that are equal for the side to act, that is
    played which leaves the pitcher's side least, then the next side clockwise, and so on. A full deal of four single
    players takes seconds, less two tricks a millisecond.

    Returns:
        float64 (N, 52, MAX_PLAYERS); NaN where a card is not legal or there is no such side.

    Raises:
        ValueError: for a table that is not in play or a view.
    """
    _check_tables(tables)
    values = np.full((len(tables), NUM_CARDS, MAX_PLAYERS), np.nan)
    _solve_max_n(_get_space(), tables, values)
    return values


def count_nodes() -> int:
    """Positions that this thread's searches have met so far."""
    return int(_get_space()["num_nodes"][0])


def rank_cheapest(trump: int) -> list[int]:
    """All cards from the cheapest to part with: plain before trump, then by trick points, then by rank."""

    def price(card: int) -> tuple[bool, int, int, int]:
        suit, rank = divmod(card, NUM_RANKS)
        return suit == trump, TRICK_POINTS[rank], rank, suit

    return sorted(range(NUM_CARDS), key=price)


def choose_card(values: np.ndarray, trump: int) -> int:
    """The card of the highest value, (52,), NaN where it is not legal; of equals the cheapest."""
    best = np.nanmax(values)
    return next(card for card in rank_cheapest(trump) if values[card] >= best - _SAME)


def solve(table: np.ndarray, objective: str = "margin") -> Solution:
    """Best play of a table, (1,), the pitcher's side against all others together; see `solve_many`."""
    values = solve_many(table, objective)[0]
    t = table[0]
    is_pitching = t["seat"] % t["num_sides"] == t["pitcher"] % t["num_sides"]
    card = choose_card(values if is_pitching else -values, int(t["trump"]))
    found = {int(other): float(values[other]) for other in np.flatnonzero(~np.isnan(values))}
    return Solution(card, found[card], found)


def solve_max_n(table: np.ndarray) -> Solution:
    """Best play of a table, (1,), each side for itself; see `solve_max_n_many`."""
    values = solve_max_n_many(table)[0]
    t = table[0]
    num_sides, seat = int(t["num_sides"]), int(t["seat"])
    clockwise = (int(t["pitcher"]) + np.arange(num_sides)) % num_sides
    cheapest = rank_cheapest(int(t["trump"]))
    found = {int(other): tuple(values[other, :num_sides].tolist()) for other in np.flatnonzero(~np.isnan(values[:, 0]))}
    best = min(found, key=lambda card: (-found[card][seat % num_sides], *values[card, clockwise], cheapest.index(card)))
    return Solution(best, found[best], found)
