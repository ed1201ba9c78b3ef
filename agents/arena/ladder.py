"""The ladder: one agent against a fixed row of opponents, from chance to search, in about a minute."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents import TRAINED, has_trained, load
from agents.arena.chunks import Report, SavedChunks
from agents.arena.match import CHUNK_TABLES, Result, play_duplicate
from agents.base import Agent
from pitch_env.rules import Rules


@dataclass(frozen=True)
class Rung:
    """An opponent.

    Attributes:
        name: of the agent.
        deal_share: share of the deals asked for that are played, as it is slow.
        match_share: the same of matches.
        chunk_tables: tables played at a time, fewer for a slow one so that progress shows and threads share alike.
    """

    name: str
    deal_share: float = 1.0
    match_share: float = 1.0
    chunk_tables: int = CHUNK_TABLES

    def fits(self, rules: Rules) -> bool:
        """Whether it plays these rules: trained policies play those they were trained for."""
        return not self.name.endswith(TRAINED) or has_trained(rules)


LADDER = (
    Rung("random"),
    Rung("passive"),
    Rung("baby"),
    Rung("alphonso"),
    Rung("trickster"),
    Rung("trickster+0.5"),
    Rung("trickster+1"),
    Rung("pimc-10", 0.075, 0.1, chunk_tables=16),
    Rung("pimc-100", 0.01, 0.02, chunk_tables=16),
    Rung(TRAINED),
    Rung(f"search:{TRAINED}", 0.02, 0.02, chunk_tables=16),
)


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

    Policies trained for other rules are left out. Slow rungs get their share of the deals and matches, at least two.
    `report` is called as ("percent", done, 100).
    """
    results = []
    made = [(rung, load(rung.name, rules)) for rung in rungs if rung.fits(rules or Rules())]
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
    """A climb of the whole ladder, JSON-ready: `agent`, `rungs` (each as `Result.to_dict`), those `left_out`, and
    `standing`."""
    met = {one.opponent for one in results}
    return {
        "agent": results[0].challenger,
        "left_out": [rung.name for rung in LADDER if rung.name not in met],
        "rungs": [one.to_dict() for one in results],
        "standing": find_standing(results),
    }
