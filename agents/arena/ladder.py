"""The ladder: one agent against a fixed row of opponents, from chance to search, in about a minute."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agents import TRAINED, load
from agents.arena.chunks import Report, SavedChunks
from agents.arena.match import CHUNK_TABLES, Result, play_duplicate
from agents.base import Agent
from pitch_env.rules import Rules


@dataclass(frozen=True)
class Rung:
    """An opponent.

    Attributes:
        name: what it is called.
        make: makes it, for some rules.
        deal_share: share of the deals asked for that are played, as it is slow.
        match_share: the same of matches.
        chunk_tables: tables played at a time, fewer for a slow one so that progress shows and threads share alike.
    """

    name: str
    make: Callable[[Rules | None], Agent]
    deal_share: float = 1.0
    match_share: float = 1.0
    chunk_tables: int = CHUNK_TABLES


def _search(num_worlds: int, deal_share: float, match_share: float) -> Rung:
    def make(_: Rules | None) -> Agent:
        from agents.search.pimc import PimcAgent

        return PimcAgent(num_worlds=num_worlds, num_bid_worlds=num_worlds)

    return Rung(f"pimc-{num_worlds}", make, deal_share, match_share, chunk_tables=16)


def _named(name: str) -> Rung:
    return Rung(name, lambda rules: load(name, rules))


LADDER = (
    _named("random"),
    _named("passive"),
    _named("baby"),
    _named("alphonso"),
    _named("trickster"),
    _named("trickster+0.5"),
    _named("trickster+1"),
    _search(10, 0.075, 0.1),
    _search(100, 0.01, 0.02),
    _named(TRAINED),
    Rung(f"search:{TRAINED}", lambda rules: load(f"search:{TRAINED}", rules), 0.02, 0.02, chunk_tables=16),
)


def _make(rung: Rung, rules: Rules | None) -> Agent | None:
    try:
        return rung.make(rules)
    except ValueError:  # a policy, and there is none for these rules
        return None


def climb(
    agent: Agent,
    rules: Rules | None = None,
    num_deals: int = 4000,
    num_matches: int = 400,
    seed: int = 0,
    *,
    name: str | None = None,
    num_threads: int = 1,
    rungs: Sequence[Rung] = LADDER,
    report: Report | None = None,
    saved: SavedChunks | None = None,
) -> list[Result]:
    """Measure an agent among copies of each rung; arguments and errors as `play_duplicate`.

    A policy trained for other rules is left out. Slow rungs get their share of the deals and matches, at least two.
    `report` is called as ("percent", done, 100).
    """
    results = []
    made = [(rung, opponent) for rung in rungs if (opponent := _make(rung, rules)) is not None]
    for index, (rung, opponent) in enumerate(made):
        deals, matches = (
            max(2, round(number * share)) if number > 1 else number
            for number, share in ((num_deals, rung.deal_share), (num_matches, rung.match_share))
        )

        def tell(word: str, done: int, total: int, before: int = index, both: bool = bool(deals and matches)) -> None:
            part = done / total
            if both:
                part = part / 2 if word == "deals" else (1 + part) / 2
            if report is not None:
                report("percent", int(100 * (before + part) / len(made)), 100)

        results.append(
            play_duplicate(
                agent,
                opponent,
                rules,
                deals,
                matches,
                seed,
                names=(name or agent.name, rung.name),
                chunk_tables=rung.chunk_tables,
                num_threads=num_threads,
                report=tell,
                saved=saved and saved.under(rung.name),
            )
        )
    return results


def compare(result: Result) -> tuple[str | None, str | None]:
    """Whether the intervals of points and of wins lie "above" or "below" an equal's, or are "level" with it."""

    def place(low: float | None, high: float | None, equal: float) -> str | None:
        if low is None or high is None:
            return None
        return "above" if low > equal else "below" if high < equal else "level"

    return place(result.low, result.high, 0.0), place(result.match_low, result.match_high, result.equal_share)


def find_standing(results: Sequence[Result]) -> dict[str, dict[str, list[str]] | None]:
    """The rungs that an agent is above, level with and below, by `points` and by `wins`; None if not measured."""
    standing: dict[str, dict[str, list[str]] | None] = {}
    for word, places in zip(("points", "wins"), zip(*map(compare, results), strict=True), strict=True):
        found: dict[str, list[str]] = {"above": [], "level": [], "below": []}
        for one, place in zip(results, places, strict=True):
            if place is not None:
                found[place].append(one.opponent)
        standing[word] = found if any(found.values()) else None
    return standing


def to_dict(results: Sequence[Result]) -> dict[str, Any]:
    """A climb, JSON-ready: `agent`, `rungs` (each as `Result.to_dict`) and `standing`."""
    return {
        "agent": results[0].challenger,
        "rungs": [one.to_dict() for one in results],
        "standing": find_standing(results),
    }
