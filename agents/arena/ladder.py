"""The ladder: one agent against a fixed row of opponents, from chance to search, in about a minute."""

from collections.abc import Sequence
from typing import Any

from agents import TRAINED, has_trained, load
from agents.arena.chunks import Report, SavedChunks
from agents.arena.match import CHUNK_TABLES, Result, play_duplicate
from agents.base import Agent
from agents.options import split_name
from pitch_env.rules import Rules

LADDER = (
    "random",
    "passive",
    "baby",
    "alphonso",
    "trickster",
    "trickster+0.5",
    "trickster+1",
    "pimc?worlds=10",
    "pimc?worlds=100",
    TRAINED,
    f"search:{TRAINED}",
)
_LEAST = 10  # deals and matches that the dearest agents play, if as many are asked for
_CHUNK_OF_DEAR = 16  # tables of a dear agent at a time, so that progress shows and threads share alike


def fits(name: str, rules: Rules) -> bool:
    """Whether a rung plays these rules: trained policies play those they were trained for."""
    return split_name(name).base != TRAINED or has_trained(rules)


def count_afforded(number: int, *played_by: Agent) -> int:
    """How many of a number of deals or matches are played when the dearest of some agents is in them."""
    return max(min(number, _LEAST), round(number / max(agent.cost for agent in played_by)))


def climb(
    agent: Agent,
    rules: Rules | None = None,
    num_deals: int = 4000,
    num_matches: int = 400,
    seed: int = 0,
    *,
    name: str | None = None,
    num_threads: int = 1,
    rungs: Sequence[str] = LADDER,
    report: Report | None = None,
    saved: SavedChunks | None = None,
) -> list[Result]:
    """Measure an agent among copies of each rung; arguments and errors as `play_duplicate`.

    Policies trained for other rules are left out. As many deals and matches are played as asked for where both decide
    fast, and fewer by what a decision of the dearer one costs, at least ten.
    `report` is called as ("percent", done, 100).
    """
    results = []
    made = [(rung, load(rung, rules)) for rung in rungs if fits(rung, rules or Rules())]
    for index, (rung, opponent) in enumerate(made):
        deals, matches = (count_afforded(number, agent, opponent) for number in (num_deals, num_matches))

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
                names=(name or agent.name, rung),
                chunk_tables=_CHUNK_OF_DEAR if max(agent.cost, opponent.cost) > 1 else CHUNK_TABLES,
                num_threads=num_threads,
                report=tell,
                saved=saved and saved.under(rung),
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
        "left_out": [rung for rung in LADDER if rung not in met],
        "rungs": [one.to_dict() for one in results],
        "standing": find_standing(results),
    }
