"""Duplicate measuring: the same deals again with the challenger at every place, so that the luck of the cards cancels.

Every 95 % interval is Student's t over deals (points) or over matches (wins): the replays of one deal are not
independent, so each deal counts once, with the mean over its placements.
"""

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.arena.chunks import Report, SavedChunks, play_chunks
from agents.arena.estimates import Z, compare_variances, count_deals_needed, estimate_mean, estimate_share
from agents.arena.play import play_hands, play_matches
from agents.arena.sequential import find_bounds, plan_looks
from agents.base import Agent
from pitch_env.cards import MAX_BID
from pitch_env.engine import new_tables
from pitch_env.rules import Rules
from pitch_env.table import NOBODY

if TYPE_CHECKING:
    from agents.critic import Critic

CHUNK_TABLES = 20_000  # tables played at a time, 248 bytes each
_DOMAIN = 0xA7E7A  # sets the seeds of measuring apart from those of training
_DEALS, _MATCHES = range(2)  # the two measurements of a seed
_FRESH = 4  # a seed's deals that are valued and not played; the numbers between are the league's


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
        variate: with a critic, the fields of `agents.arena.variate.Variate`: the margin with the luck of the deal taken
            out, and the variance that saves.
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
    variate: dict[str, float | None] | None = None

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


def derive_streams(seed: int, kind: int, num_tables: int) -> tuple[np.ndarray, int]:
    """Streams of the tables, uint64 (num_tables,), and of the agents, for a seed's deals (kind 0) or matches (1).

    They are set apart from all streams that come of a plain seed, as in training; stream i does not depend on how many.
    """
    states = np.random.SeedSequence([seed, _DOMAIN], spawn_key=(kind,)).generate_state(num_tables + 1, np.uint64)
    return states[1:], int(states[0])


def seat_challenger(rules: Rules) -> np.ndarray:
    """Line-ups, int64 (placements, players), one for each side: 0 at the challenger's seats, 1 at the others."""
    return (np.array(rules.sides) != np.arange(rules.num_sides)[:, None]).astype(np.int64)


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
        """Each hand's margin times `sides - 1`, int16 (high - low, places), and counts, int64 (10,).

        The counts are the challenger's contracts by bid: those made, then all.
        """
        num_sides = self.rules.num_sides
        tables, lineups, ids = self._seat(streams, low, high)
        play_hands(tables, self.agents, lineups, stream, ids)
        places = np.arange(len(tables)) % num_sides
        deltas = tables["deltas"][:, :num_sides].astype(np.int64)
        own = deltas[np.arange(len(tables)), places]
        ahead = (num_sides * own - deltas.sum(axis=1)).astype(np.int16)
        is_pitcher = tables["pitcher"] % num_sides == places
        is_made = is_pitcher & (own >= tables["bid"])
        contracts = [np.bincount(tables["bid"][chosen], minlength=MAX_BID + 1) for chosen in (is_made, is_pitcher)]
        return ahead.reshape(-1, num_sides), np.concatenate(contracts)

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
        self,
        kind: int,
        first: int,
        last: int,
        total: int,
        chunk_tables: int,
        num_threads: int,
        report: Report | None,
        saved: SavedChunks | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Those of one kind from first to last of all: the values in order, and the sum of the counts."""
        play, word = ((self.play_deals, "deals"), (self.play_matches, "matches"))[kind]
        streams, stream = derive_streams(self.seed, kind, last)
        size = chunk_tables // len(self.lineups)
        parts = play_chunks(partial(play, streams, stream), word, first, last, total, size, num_threads, report, saved)
        values, counts = zip(*parts, strict=True)
        return np.concatenate(values), np.sum(counts, axis=0)

    def measure_points(self, num_deals: int, until_clear: bool, critic: "Critic | None", *how: Any) -> dict[str, Any]:
        """The fields of `Result` that come of deals."""
        num_sides = self.rules.num_sides
        looks = plan_looks(num_deals) if until_clear else [num_deals]
        wider = [bound / Z for bound in find_bounds([look / num_deals for look in looks])] if until_clear else [1.0]
        ahead, counts = np.zeros((0, num_sides), np.int16), np.zeros(10, np.int64)
        margins = np.zeros(0)
        margin = half = 0.0
        factor = 1.0
        number = 0
        for look, factor in zip(looks, wider, strict=True):
            number += 1
            values, more = self.run(_DEALS, len(ahead), look, num_deals, *how)
            ahead, counts = np.concatenate([ahead, values]), counts + more
            margins = ahead.sum(axis=1) / (num_sides * (num_sides - 1))
            margin, half = estimate_mean(margins)
            half *= factor
            if abs(margin) > half:
                break
        made, won = counts[:5].tolist(), counts[5:].tolist()
        return {
            "margin": margin,
            "low": margin - half,
            "high": margin + half,
            "deals": len(margins),
            "deals_needed": count_deals_needed(margins, factor),
            "contracts": tuple(count / (len(margins) * num_sides) for count in won[1:]),
            "made_rate": sum(made) / sum(won) if sum(won) else None,
            "variance_ratio": compare_variances(ahead / (num_sides - 1)),
            "look": number if until_clear else None,
            "planned_deals": num_deals,
            "variate": None if critic is None else self.take_out_luck(ahead / (num_sides - 1), critic),
        }

    def take_out_luck(self, hands: np.ndarray, critic: "Critic") -> dict[str, float | None]:
        """The fields of a `Variate` by the margins of hands, (deals, places)."""
        from agents.arena.variate import count_fresh, describe_deals, measure_variate

        def deal(kind: int, number: int) -> np.ndarray:
            return new_tables(self.rules, derive_streams(self.seed, kind, number)[0], number)

        tables = deal(_DEALS, len(hands))
        turns = (tables["dealer"][:, None].astype(np.int64) + 1 + np.arange(hands.shape[1])) % hands.shape[1]
        known, fresh = (describe_deals(critic, one) for one in (tables, deal(_FRESH, count_fresh(len(hands)))))
        return dataclasses.asdict(measure_variate(np.take_along_axis(hands, turns, axis=1), known, fresh))


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


def _check_critic(critic: "Critic", rules: Rules, num_deals: int, until_clear: bool) -> None:
    from agents.arena.variate import count_fewest_deals
    from agents.policy import check_rules

    check_rules(critic.rules, rules, critic.name)
    fewest = count_fewest_deals(rules.num_players)
    if 0 < num_deals < fewest:
        raise ValueError(f"with a critic num_deals takes a whole number from {fewest} up, or 0, not {num_deals}")
    if until_clear:
        raise ValueError("a critic and until_clear do not go together: the looks are planned for plain margins")


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
    saved: SavedChunks | None = None,
    critic: "Critic | None" = None,
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
        saved: keeps the chunks that are finished and knows those that are (see `agents.arena.chunks`).
        critic: values the deals, so that the luck of the cards can be taken out (see `agents.arena.variate`).

    Raises:
        ValueError: for a nonsense value, or if an agent chooses an illegal action.
    """
    check_counts(num_deals, num_matches, seed, chunk_tables, num_threads)
    rules = rules or Rules()
    names = names or (challenger.name, opponent.name)
    if critic is not None:
        _check_critic(critic, rules, num_deals, until_clear)
    duplicate = _Duplicate((challenger, opponent), rules, int(seed))
    found: dict[str, Any] = {
        item.name: None for item in dataclasses.fields(Result) if item.name not in ("rules", "seed")
    }
    how = chunk_tables, num_threads, report, saved
    if num_deals:
        found.update(duplicate.measure_points(int(num_deals), until_clear, critic, *how))
    if num_matches:
        shares, (num_hands, num_cut) = duplicate.run(_MATCHES, 0, num_matches, num_matches, *how)
        share, low, high = estimate_share(shares)
        num_played = num_matches * rules.num_sides
        found.update(match_share=share, match_low=low, match_high=high)
        found.update(hands_per_match=int(num_hands) / num_played, truncated=int(num_cut) / num_played)
    found.update(challenger=names[0], opponent=names[1], equal_share=1 / rules.num_sides)
    found.update(deals=found["deals"] or 0, matches=int(num_matches))
    return Result(rules=rules, seed=int(seed), **found)
