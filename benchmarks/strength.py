"""The table of what a run's policy achieved: ``python -m benchmarks.strength RUN_FOLDER [--write README.md]``.

It shows what the run measured at its end (``evaluation.json``); `python -m agents.arena match` measures it again.
"""

import argparse
import json
import re
from pathlib import Path

from agents.arena import Result
from agents.policy import read_policy
from benchmarks.report import write_between_marks


def tabulate(folder: Path) -> str:
    """The evaluation of a run folder as a Markdown table with what it took."""
    results = [Result.from_dict(values) for values in json.loads((folder / "evaluation.json").read_text("utf-8"))]
    spec, _ = read_policy(folder / "policy.safetensors")
    command = " ".join(json.loads((folder / "metadata.json").read_text("utf-8"))["command"])
    command = re.sub(r" --(run-dir|threads) \S+", "", command)
    first = results[0]
    lines = ["| Opponent | Points a hand ahead (95 %) | Share of matches won (95 %) |", "| --- | --- | --- |"]
    for result in results:
        share = f"{result.match_share:.1%} ({result.match_low:.1%} to {result.match_high:.1%})"
        lines.append(
            f"| `{result.opponent}` | {result.margin:+.3f} ({result.low:+.3f} to {result.high:+.3f}) | {share} |"
        )
    notes = spec.notes
    way = "its likeliest action" if spec.is_greedy else "an action drawn"
    lines += [
        "",
        f"One {'team' if first.rules.teams else 'seat'} among copies of each opponent, all places over the same "
        f"{first.deals:,} deals and {first.matches:,} matches, seed {first.seed}; an equal share is "
        f"{first.equal_share:.0%}. {notes['steps']:,} decisions of self-play, seed {notes['seed']}, "
        f"playing {way}: `{command}`.",
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, show the table, and write it if asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strength", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="run folder with an evaluation.json")
    parser.add_argument("--write", metavar="FILE", help="put the table between the marks in a Markdown file")
    given = parser.parse_args(arguments)
    text = tabulate(given.folder)
    print(text)
    if given.write:
        write_between_marks(given.write, text, "strength")


if __name__ == "__main__":
    main()
