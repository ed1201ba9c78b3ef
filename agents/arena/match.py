"""Duplicate measuring: the same deals again with the challenger at every place, so that the luck of the cards cancels.

Every 95 % interval is Student's t over deals (points) or over matches (wins): the replays of one deal are not
independent, so each deal counts once, with the mean over its placements.
"""

import dataclasses
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from agents.arena.play import play_hands, play_matches
from agents.arena.sequential import find_bounds, plan_looks
from agents.base import Agent
from pitch_env.cards import MAX_BID
from pitch_env.engine import new_tables
from pitch_env.rules import Rules
from pitch_env.table import NOBODY

CHUNK_TABLES = 20_000  # tables played at a time, 248 bytes each
_DOMAIN = 0xA7E7A  # sets the seeds of measuring apart from those of training
_DEALS, _MATCHES = range(2)  # the two measurements of a seed
_Z = NormalDist().inv_cdf(0.975)
_FEW_T = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622)  # 97.5 % quantiles of 1-9 degrees
_NO_MARGIN = 1e-12  # what is left of a mean of 0 by rounding
_MANY = 10_000  # deals from which Student's t asks for 3 more than the normal distribution

Report = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Result:
    """What one challenger achieved against copies of one opponent; what was not measured is None.

    Attributes:
        challenger: its name.
        opponent: the name of the agent at all other places.
        rules: what was played.
        seed: fixes the deals and all randomness of the agents.
        deals: different deals; each was played once for every placement of the challenger's side.
        margin: points a hand that the challenger's side scores above the mean of the other sides, from a score of 0.
        low: lower end of its 95 % interval.
        high: upper end of its 95 % interval.
        deals_needed: deals after which the interval would leave out 0 if margin and spread stay; None at a margin of 0.
        contracts: shares of the hands in which the challenger's side pitched with a contract of 1, 2, 3 and 4.
        made_rate: share of those contracts that it made.
        matches: different sequences of deals; each was played once for every placement.
        match_share: share of the matches that the challenger's side won; one that was cut off is shared equally.
        match_low: lower end of its 95 % interval.
        match_high: upper end of its 95 % interval.
        equal_share: the match share of an equal.
        hands_per_match: mean length.
        truncated: share of the matches that were cut off at `Rules.max_hands`.
        variance_ratio: how many times the variance of `margin` would be if as many hands were played plainly, each with
            a deal of its own and the challenger at any place; below 1 where hands of a deal repeat each other more than
            they cancel, as between unlike agents; None if the duplicate margins do not vary at all.
        look: the look at which the deals ended (see `agents.arena.sequential`); None if there were no looks.
        planned_deals: the most deals that would have been played.
    """

    challenger: str
    opponent: str
    rules: Rules
    seed: int
    deals: int
    margin: float | None
    low: float | None
    high: float | None
    deals_needed: int | None
    contracts: tuple[float, ...] | None
    made_rate: float | None
    matches: int
    match_share: float | None
    match_low: float | None
    match_high: float | None
    equal_share: float
    hands_per_match: float | None
    truncated: float | None
    variance_ratio: float | None = None
    look: int | None = None
    planned_deals: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields as a JSON-ready dict."""
        values = dataclasses.asdict(self)
        values["contracts"] = None if self.contracts is None else list(self.contracts)
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Result":
        """The result that `to_dict` made a dict of."""
        contracts = None if values["contracts"] is None else tuple(values["contracts"])
        return cls(**{**values, "rules": Rules.from_dict(values["rules"]), "contracts": contracts})


def find_t_quantile(degrees: int) -> float:
    """The 97.5 % quantile of Student's t, to four digits (a table to 9 degrees, then Fisher's expansion)."""
    if degrees <= len(_FEW_T):
        return _FEW_T[degrees - 1]
    terms = (
        (_Z**3 + _Z) / 4,
        (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / 96,
        (3 * _Z**7 + 19 * _Z**5 + 17 * _Z**3 - 15 * _Z) / 384,
        (79 * _Z**9 + 776 * _Z**7 + 1482 * _Z**5 - 1920 * _Z**3 - 945 * _Z) / 92160,
    )
    return _Z + sum(term / degrees ** (order + 1) for order, term in enumerate(terms))


def estimate_mean(values: np.ndarray) -> tuple[float, float]:
    """Mean of independent values, (n,) with n >= 2, and half the width of its 95 % interval."""
    spread = float(values.std(ddof=1))
    return float(values.mean()), find_t_quantile(len(values) - 1) * spread / math.sqrt(len(values))


def estimate_share(shares: np.ndarray) -> tuple[float, float, float]:
    """Mean of independent shares, (n,) with n >= 2, and its 95 % interval, within 0 to 1.

    Where every share is 0, or 1, and so none shows a spread, the interval is that of n of n equal trials.
    """
    mean, half = estimate_mean(shares)
    if mean in (0.0, 1.0):
        certain = 0.025 ** (1 / len(shares))
        return (0.0, 0.0, 1 - certain) if mean == 0 else (1.0, certain, 1.0)
    return mean, max(0.0, mean - half), min(1.0, mean + half)


def count_deals_needed(margins: np.ndarray) -> int | None:
    """How many deals make the half-width smaller than the margin, judged by the margins of some, (n,) with n >= 2."""
    margin, spread = abs(float(margins.mean())), float(margins.std(ddof=1))
    if margin < _NO_MARGIN:
        return None
    needed = max(2, int((_Z * spread / margin) ** 2))  # by the normal distribution, just below
    if needed > _MANY:
        return needed + 3
    while find_t_quantile(needed - 1) * spread / math.sqrt(needed) >= margin:
        needed += 1
    return needed


def derive_streams(seed: int, kind: int, num_tables: int) -> tuple[np.ndarray, int]:
    """Streams of the tables, uint64 (num_tables,), and of the agents, for a seed's deals (kind 0) or matches (1).

    They are set apart from all streams that come of a plain seed, as in training; stream i does not depend on how many.
    """
    states = np.random.SeedSequence([seed, _DOMAIN], spawn_key=(kind,)).generate_state(num_tables + 1, np.uint64)
    return states[1:], int(states[0])


def seat_challenger(rules: Rules) -> np.ndarray:
    """Line-ups, int64 (placements, players), one for each side: 0 at the challenger's seats, 1 at the others."""
    sides = np.arange(rules.num_players) % rules.num_sides
    return (sides != np.arange(rules.num_sides)[:, None]).astype(np.int64)


class _Duplicate:
    """Plays one agent at every place among copies of another, a chunk of deals or matches at a time."""

    def __init__(self, agents: tuple[Agent, Agent], rules: Rules, seed: int) -> None:
        self.agents, self.rules, self.seed = agents, rules, seed
        self.lineups = seat_challenger(rules)

    def _seat(self, streams: np.ndarray, low: int, high: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tables with their line-ups and ids of the deals from low to high: those of one deal lie side by side."""
        num_placements = len(self.lineups)
        tables = np.repeat(new_tables(self.rules, streams[low:high], high - low), num_placements)
        ids = np.repeat(np.arange(low, high, dtype=np.uint64), num_placements)  # shared, so that equals play equally
        return tables, np.tile(self.lineups, (high - low, 1)), ids

    def play_deals(self, streams: np.ndarray, stream: int, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        """The margin of each deal, float64 (high - low,), and counts, int64 (12,).

        The counts are the challenger's contracts by bid, those made, then all, and last, in whole numbers, two sums
        over hands: of `sides - 1` times the margin, and of its square.
        """
        num_sides = self.rules.num_sides
        tables, lineups, ids = self._seat(streams, low, high)
        play_hands(tables, self.agents, lineups, stream, ids)
        places = np.arange(len(tables)) % num_sides
        deltas = tables["deltas"][:, :num_sides].astype(np.int64)
        own = deltas[np.arange(len(tables)), places]
        ahead = num_sides * own - deltas.sum(axis=1)  # (sides - 1) times the margin, in whole numbers
        margins = ahead.reshape(-1, num_sides).sum(axis=1) / (num_sides * (num_sides - 1))
        is_pitcher = tables["pitcher"] % num_sides == places
        is_made = is_pitcher & (own >= tables["bid"])
        contracts = [np.bincount(tables["bid"][chosen], minlength=MAX_BID + 1) for chosen in (is_made, is_pitcher)]
        return margins, np.concatenate([*contracts, [ahead.sum(), np.square(ahead).sum()]])

    def play_matches(self, streams: np.ndarray, stream: int, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        """The challenger's share of each match, float64 (high - low,), and [hands, matches cut off] of all, int64."""
        num_sides = self.rules.num_sides
        tables, lineups, ids = self._seat(streams, low, high)
        play_matches(tables, self.agents, lineups, stream, ids)
        is_cut = tables["winner"] == NOBODY
        wins = np.where(is_cut, 1, num_sides * (tables["winner"] == np.arange(len(tables)) % num_sides))
        shares = wins.reshape(-1, num_sides).sum(axis=1) / num_sides**2
        return shares, np.array([tables["num_hands"].sum(dtype=np.int64), is_cut.sum()])

    def run(
        self, kind: int, first: int, last: int, total: int, chunk_tables: int, num_threads: int, report: Report | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Those of one kind from first to last of all: the values in order, and the sum of the counts."""
        play, word = ((self.play_deals, "deals"), (self.play_matches, "matches"))[kind]
        streams, stream = derive_streams(self.seed, kind, last)
        size = max(1, min(chunk_tables // len(self.lineups), -(-(last - first) // num_threads)))
        values, counts, done = [], [], first

        def play_chunk(low: int) -> tuple[np.ndarray, np.ndarray]:
            return play(streams, stream, low, min(low + size, last))

        pool = ThreadPoolExecutor(num_threads)
        try:
            starts = range(first, last, size)
            for value, count in pool.map(play_chunk, starts) if num_threads > 1 else map(play_chunk, starts):
                values.append(value)
                counts.append(count)
                done += len(value)
                if report is not None:
                    report(word, done, total)
        finally:
            pool.shutdown(cancel_futures=True)
        return np.concatenate(values), np.sum(counts, axis=0)

    def measure_points(self, num_deals: int, until_clear: bool, *how: Any) -> dict[str, Any]:
        """The fields of `Result` that come of deals."""
        num_sides = self.rules.num_sides
        looks = plan_looks(num_deals) if until_clear else [num_deals]
        wider = [bound / _Z for bound in find_bounds([look / num_deals for look in looks])] if until_clear else [1.0]
        margins, counts = np.zeros(0), np.zeros(12, np.int64)
        margin = half = 0.0
        number = 0
        for look, factor in zip(looks, wider, strict=True):
            number += 1
            values, more = self.run(_DEALS, len(margins), look, num_deals, *how)
            margins, counts = np.concatenate([margins, values]), counts + more
            margin, half = estimate_mean(margins)
            half *= factor
            if abs(margin) > half:
                break
        made, won = counts[:5].tolist(), counts[5:10].tolist()
        return {
            "margin": margin,
            "low": margin - half,
            "high": margin + half,
            "deals": len(margins),
            "deals_needed": count_deals_needed(margins),
            "contracts": tuple(count / (len(margins) * num_sides) for count in won[1:]),
            "made_rate": sum(made) / sum(won) if sum(won) else None,
            "variance_ratio": compare_variances(margins, num_sides, *counts[10:].tolist()),
            "look": number if until_clear else None,
            "planned_deals": num_deals,
        }


def compare_variances(margins: np.ndarray, num_sides: int, total: int, squares: int) -> float | None:
    """How many times the variance of a mean of single hands is that of duplicate deals, with as many hands in all.

    Args:
        margins: of the deals, (n,) with n >= 2.
        num_sides: hands a deal was played.
        total: sum over those hands of `num_sides - 1` times the margin.
        squares: sum of their squares.
    """
    num_hands = len(margins) * num_sides
    plain = (squares / num_hands - (total / num_hands) ** 2) / (num_sides - 1) ** 2
    duplicate = num_sides * float(margins.var(ddof=1))
    return plain / duplicate if duplicate > _NO_MARGIN else None


def _check_count(name: str, number: int, low: int, may_be_zero: bool = False) -> None:
    is_whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if not is_whole or not (number >= low or (may_be_zero and number == 0)):
        zero = ", or 0 to leave them out" if may_be_zero else ""
        raise ValueError(f"{name} takes a whole number from {low} up{zero}, not {number!r}")


def check_counts(num_deals: int, num_matches: int, seed: int, chunk_tables: int, num_threads: int) -> None:
    """Refuse a nonsense value of what every measurement takes.

    Raises:
        ValueError: names it and says what it takes.
    """
    _check_count("num_deals", num_deals, 2, may_be_zero=True)
    _check_count("num_matches", num_matches, 2, may_be_zero=True)
    _check_count("seed", seed, 0)
    _check_count("chunk_tables", chunk_tables, 1)
    _check_count("num_threads", num_threads, 1)


def play_duplicate(
    challenger: Agent,
    opponent: Agent,
    rules: Rules | None = None,
    num_deals: int = 2000,
    num_matches: int = 500,
    seed: int = 0,
    *,
    names: tuple[str, str] | None = None,
    chunk_tables: int = CHUNK_TABLES,
    num_threads: int = 1,
    report: Report | None = None,
    until_clear: bool = False,
) -> Result:
    """Measure a challenger among copies of an opponent, on the same deals at every place (with teams: as either team).

    Equal agents get a margin of exactly 0 and exactly an equal share. The numbers depend on neither `chunk_tables` nor
    `num_threads`, and those of the first deals not on how many follow.

    Args:
        challenger: sits at one seat, or at both of its team.
        opponent: sits at all others.
        rules: four players to 7 if None.
        num_deals: different deals, at least 2; 0 leaves out the points.
        num_matches: different matches, at least 2; 0 leaves out the wins.
        seed: fixes everything.
        names: what to call the two, by default their own names.
        chunk_tables: tables played at a time.
        num_threads: threads that share the chunks; more than one needs agents that may be called from several at once.
        report: called as (word, done, total) after each chunk, the word "deals" or "matches".
        until_clear: look several times and play no more deals once the margin's interval leaves out 0; the interval is
            wider by what looking so often takes (see `agents.arena.sequential`).

    Raises:
        ValueError: for a nonsense value, or if an agent chooses an illegal action.
    """
    check_counts(num_deals, num_matches, seed, chunk_tables, num_threads)
    rules = rules or Rules()
    names = names or (challenger.name, opponent.name)
    duplicate = _Duplicate((challenger, opponent), rules, int(seed))
    found: dict[str, Any] = {
        item.name: None for item in dataclasses.fields(Result) if item.name not in ("rules", "seed")
    }
    how = chunk_tables, num_threads, report
    if num_deals:
        found.update(duplicate.measure_points(int(num_deals), until_clear, *how))
    if num_matches:
        shares, (num_hands, num_cut) = duplicate.run(_MATCHES, 0, num_matches, num_matches, *how)
        share, low, high = estimate_share(shares)
        num_played = num_matches * rules.num_sides
        found.update(match_share=share, match_low=low, match_high=high)
        found.update(hands_per_match=int(num_hands) / num_played, truncated=int(num_cut) / num_played)
    found.update(challenger=names[0], opponent=names[1], equal_share=1 / rules.num_sides)
    found.update(deals=found["deals"] or 0, matches=int(num_matches))
    return Result(rules=rules, seed=int(seed), **found)
