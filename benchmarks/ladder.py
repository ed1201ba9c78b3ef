"""Where the rungs of the ladder stand among each other: ``python -m benchmarks.ladder [--write README.md]``.

Every rung plays one seat among copies of each rung that decides fast. `python -m agents.arena ladder AGENT` measures an
agent of yours in the same way, against all of them.
"""

import argparse
import os

import agents
from agents.arena import Result
from agents.arena.ladder import LADDER, climb
from agents.arena.pools import use_one_thread
from benchmarks.report import write_between_marks, write_table
from pitch_env import Rules

_FAST = tuple(rung for rung in LADDER if "pimc" not in rung and "search" not in rung)


def tabulate(found: dict[str, list[Result]]) -> str:
    """Two Markdown tables, of points and of matches: a row for each rung, a column for each opponent."""
    names = [result.opponent for result in next(iter(found.values()))]
    points, matches = [], []
    for rung, results in found.items():
        points.append([f"`{rung}`", *(f"{one.margin:+.2f} ± {one.margin - one.low:.2f}" for one in results)])
        matches.append(
            [f"`{rung}`", *(f"{one.match_share:.0%} ({one.match_low:.0%} to {one.match_high:.0%})" for one in results)]
        )
    head = ["Rung", *(f"`{name}`" for name in names)]
    titled = (("Points a hand ahead", points), ("Matches won; an equal share is 25%", matches))
    return "\n\n".join(f"{title}:\n\n{write_table(head, rows)}" for title, rows in titled)


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, measure, show the tables, and write them if asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ladder", description=__doc__.split("\n")[0])
    parser.add_argument("--deals", type=int, default=4000, help="duplicate deals of a fast rung (default %(default)s)")
    parser.add_argument("--matches", type=int, default=1000, help="duplicate matches of one (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="fixes deals and agents (default %(default)s)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads that share the tables")
    parser.add_argument("--write", metavar="FILE", help="put the tables between the marks in a Markdown file")
    parser.add_argument("--against", nargs="+", metavar="RUNG", choices=_FAST, default=_FAST, help="default: all fast")
    given = parser.parse_args(arguments)
    use_one_thread()
    made = {rung: agents.load(rung) for rung in LADDER}
    found = {}
    for rung, agent in made.items():
        found[rung] = climb(
            agent,
            Rules(),
            given.deals,
            given.matches,
            given.seed,
            name=rung,
            num_threads=given.threads,
            rungs=given.against,
        )
        print(rung, *(f"{one.opponent} {one.margin:+.2f}" for one in found[rung]), flush=True)
    slow = ", ".join(
        f"{results[0].deals:,} and {results[0].matches:,} for `{name}`"
        for name, results in found.items()
        if made[name].cost > 1
    )
    text = tabulate(found) + (
        f"\n\n95 % intervals over {given.deals:,} deals and {given.matches:,} matches, all places, seed {given.seed} "
        f"({slow}): `python -m benchmarks.ladder --deals {given.deals} --matches {given.matches} --seed {given.seed} "
        f"--against {' '.join(given.against)}`."
    )
    print(text)
    if given.write:
        write_between_marks(given.write, text, "ladder")


if __name__ == "__main__":
    main()
