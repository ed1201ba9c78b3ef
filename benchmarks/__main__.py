"""``python -m benchmarks [names] [--seconds S] [--json FILE] [--write README.md]``."""

import argparse
import importlib

import torch

from benchmarks.report import Report, write_between_marks
from benchmarks.timing import Options

NAMES = ("engine", "aec", "training", "training_profile", "agents_speed", "search", "imports")


def run(names: list[str], options: Options, report: Report) -> None:
    """Run benchmarks by name, each of which adds its rows."""
    torch.set_num_threads(1)
    for name in names:
        report.console.print(name, style="bold")
        importlib.import_module(f"benchmarks.{name}").run(options, report)


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, run, show, and write what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure speed beside peers.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of {', '.join(NAMES)}; all if left out")
    parser.add_argument("--seconds", type=float, default=1.0, help="that each side runs in a round (default 1)")
    parser.add_argument("--rounds", type=int, default=5, help="how often the sides take turns (default 5)")
    parser.add_argument("--no-peers", action="store_true", help="measure this project alone")
    parser.add_argument("--json", metavar="FILE", help="write all figures as JSON")
    parser.add_argument("--write", metavar="FILE", help="put the table between the marks in a Markdown file")
    given = parser.parse_args(arguments)
    for name in given.names:
        if name not in NAMES:
            parser.error(f"there is no benchmark {name!r}: give any of {', '.join(NAMES)}")
    if given.seconds <= 0 or given.rounds < 1:
        parser.error("--seconds takes a number above 0, and --rounds a whole number from 1 up")
    report = Report()
    run(given.names or list(NAMES), Options(given.seconds, given.rounds, not given.no_peers), report)
    report.print_table()
    if given.json:
        report.write_json(given.json)
    if given.write:
        write_between_marks(given.write, report.to_markdown())


if __name__ == "__main__":
    main()
