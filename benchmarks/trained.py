"""How strong the policies are that come with the package: ``python -m benchmarks.trained [--write README.md]``.

Every policy plays one seat (or team) among copies of each bot, all places over the same deals and matches.
"""

import argparse
import json
import os
from pathlib import Path

import agents
from agents.arena import Result, play_duplicate
from agents.arena.pools import load_all
from agents.training.config import Config
from benchmarks.report import write_between_marks, write_table
from pitch_env import Rules

KINDS = {
    **{f"{players} players": Rules(num_players=players) for players in range(2, 8)},
    "two teams": Rules(teams=True),
}


def measure(rules: Rules, num_deals: int, num_matches: int, seed: int, num_threads: int) -> list[Result]:
    """Results of the trained policy against each bot it is evaluated against while training."""
    names = Config().opponents
    policy, *bots = load_all([agents.TRAINED, *names], rules)
    return [
        play_duplicate(
            policy, bot, rules, num_deals, num_matches, seed, names=(agents.TRAINED, name), num_threads=num_threads
        )
        for name, bot in zip(names, bots, strict=True)
    ]


def read_results(folder: Path, rules: Rules) -> list[Result]:
    """What the run of a kind of table, in a folder of runs named as their configurations, measured at its end.

    Raises:
        ValueError: if the run has not ended, or is not there.
    """
    file = folder / agents.find_trained(rules).name / "evaluation.json"
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{file}: {error.strerror}; a run of each kind of table must have ended") from None
    return [Result.from_dict(values) for values in json.loads(text)]


def tabulate(found: dict[str, list[Result]]) -> str:
    """Two Markdown tables, of matches and of points."""
    first = next(iter(found.values()))
    bots = [f"`{result.opponent}`" for result in first]
    matches, points = [], []
    for kind, results in found.items():
        shares = [f"{result.match_share:.1%} ({result.match_low:.1%} to {result.match_high:.1%})" for result in results]
        matches.append([kind, f"{results[0].equal_share:.1%}", *shares])
        points.append([kind, *(f"{result.margin:+.3f} ± {result.margin - result.low:.3f}" for result in results)])
    return (
        f"Matches won:\n\n{write_table(['Table', 'Equal share', *bots], matches)}\n\n"
        f"Points a hand ahead:\n\n{write_table(['Table', *bots], points)}"
    )


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, measure, show the tables, and write them if asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trained", description=__doc__.split("\n")[0])
    parser.add_argument("--deals", type=int, default=5000, help="duplicate deals (default %(default)s)")
    parser.add_argument("--matches", type=int, default=2000, help="duplicate matches (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="fixes deals and agents (default %(default)s)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads that share the tables")
    parser.add_argument(
        "--runs", type=Path, metavar="FOLDER", help="show what runs/players2 and so on measured, and measure nothing"
    )
    parser.add_argument("--write", metavar="FILE", help="put the tables between the marks in a Markdown file")
    given = parser.parse_args(arguments)
    found = {}
    for kind, rules in KINDS.items():
        if given.runs:
            try:
                found[kind] = read_results(given.runs, rules)
            except ValueError as error:
                parser.error(str(error))
        else:
            found[kind] = measure(rules, given.deals, given.matches, given.seed, given.threads)
        print(kind, *(f"{result.opponent} {result.match_share:.1%}" for result in found[kind]), flush=True)
    setups = {(one.deals, one.matches, one.seed) for results in found.values() for one in results}
    if len(setups) > 1:
        parser.error(f"{given.runs} has runs measured over different deals, matches or seeds: {sorted(setups)}")
    ((deals, matches, seed),) = setups
    text = tabulate(found) + (
        f"\n\n95 % intervals over {deals:,} deals and {matches:,} matches, all places, seed {seed}: "
        f"`python -m benchmarks.trained --deals {deals} --matches {matches} --seed {seed}`."
    )
    print(text)
    if given.write:
        write_between_marks(given.write, text, "trained")


if __name__ == "__main__":
    main()
