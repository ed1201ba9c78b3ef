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
        """The margin of each deal, float64 (high - low,), and the challenger's contracts, int64 (2, 5): made, all."""
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
        return margins, np.array(contracts)

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
        self, kind: int, total: int, chunk_tables: int, num_threads: int, report: Report | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """All of one kind: the values in order, (total,), and the sum of the counts."""
        play, word = ((self.play_deals, "deals"), (self.play_matches, "matches"))[kind]
        streams, stream = derive_streams(self.seed, kind, total)
        size = max(1, min(chunk_tables // len(self.lineups), -(-total // num_threads)))
        values, counts, done = [], [], 0

        def play_chunk(low: int) -> tuple[np.ndarray, np.ndarray]:
            return play(streams, stream, low, min(low + size, total))

        pool = ThreadPoolExecutor(num_threads)
        try:
            starts = range(0, total, size)
            for value, count in pool.map(play_chunk, starts) if num_threads > 1 else map(play_chunk, starts):
                values.append(value)
                counts.append(count)
                done += len(value)
                if report is not None:
                    report(word, done, total)
        finally:
            pool.shutdown(cancel_futures=True)
        return np.concatenate(values), np.sum(counts, axis=0)


def _check_count(name: str, number: int, low: int, may_be_zero: bool = False) -> None:
    is_whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if not is_whole or not (number >= low or (may_be_zero and number == 0)):
        zero = ", or 0 to leave them out" if may_be_zero else ""
        raise ValueError(f"{name} takes a whole number from {low} up{zero}, not {number!r}")


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

    Raises:
        ValueError: for a nonsense value, or if an agent chooses an illegal action.
    """
    _check_count("num_deals", num_deals, 2, may_be_zero=True)
    _check_count("num_matches", num_matches, 2, may_be_zero=True)
    _check_count("seed", seed, 0)
    _check_count("chunk_tables", chunk_tables, 1)
    _check_count("num_threads", num_threads, 1)
    rules = rules or Rules()
    names = names or (challenger.name, opponent.name)
    duplicate = _Duplicate((challenger, opponent), rules, int(seed))
    found: dict[str, Any] = {
        item.name: None for item in dataclasses.fields(Result) if item.name not in ("rules", "seed")
    }
    if num_deals:
        margins, contracts = duplicate.run(_DEALS, num_deals, chunk_tables, num_threads, report)
        margin, half = estimate_mean(margins)
        made, won = contracts.tolist()
        found.update(margin=margin, low=margin - half, high=margin + half, deals_needed=count_deals_needed(margins))
        found["contracts"] = tuple(number / (num_deals * rules.num_sides) for number in won[1:])
        found["made_rate"] = sum(made) / sum(won) if sum(won) else None
    if num_matches:
        shares, (num_hands, num_cut) = duplicate.run(_MATCHES, num_matches, chunk_tables, num_threads, report)
        share, low, high = estimate_share(shares)
        num_played = num_matches * rules.num_sides
        found.update(match_share=share, match_low=low, match_high=high)
        found.update(hands_per_match=int(num_hands) / num_played, truncated=int(num_cut) / num_played)
    found.update(challenger=names[0], opponent=names[1], equal_share=1 / rules.num_sides)
    found.update(deals=int(num_deals), matches=int(num_matches))
    return Result(rules=rules, seed=int(seed), **found)
