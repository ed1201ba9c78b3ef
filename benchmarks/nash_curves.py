"""Exact NashConv against minutes of training on two tiny games: ``python -m benchmarks.nash_curves``.

The trainer of the real game learns two-player Pitch on eight cards, with two cards each and with three, from scores of
0 by either dealer. Measured is what the averaged policy, drawing its actions, would lose to best responses (see
`agents.arena.exact`). Clock, schedules and going on after a stop are those of `benchmarks.curves`.
"""

import argparse
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.arena.courses import Tree
from agents.arena.exact import TINY, ask, measure
from agents.policy import PolicyAgent
from agents.training.config import Config
from benchmarks.curves import (
    ROOT,
    TITLES,
    Clock,
    Record,
    Setup,
    add_flags,
    collect,
    describe_runs,
    draw_lines,
    find_ends,
    plan_steps,
    read_record,
    read_setup,
    run_all,
    show,
    show_mean,
    train_ours,
    write_svg,
)
from benchmarks.report import write_table

NAME = "nash-curves"  # of the files, and of the marks in a document
ALGORITHMS = ("ppo", "mmd")
GAMES = {"two cards": TINY, "three cards": dataclasses.replace(TINY, hand_size=3)}
COLUMNS = ("algorithm", "seed", "game", "infosets", "minutes", "points", "threads", "clock", "machine", "total_steps")
COLUMNS += ("seconds", "wall_seconds", "cpu_seconds", "decisions", "nash_conv", "uniform_nash_conv")


class _Games:
    """The trees, each made when it is first asked for, one at a time."""

    def __init__(self) -> None:
        self._name, self._tree, self._uniform = "", None, 0.0

    def find(self, name: str) -> tuple[Tree, float]:
        """A game's tree, and the NashConv of uniform play in it."""
        if self._tree is None or name != self._name:
            self._name, self._tree = name, Tree(GAMES[name], [0])  # a network plays alike at both seats
            self._uniform = measure(self._tree, self._tree.uniform()).nash_conv
        return self._tree, self._uniform


def _run(
    game: str, algorithm: str, seed: int, setup: Setup, games: _Games, overrides: Mapping[str, Any]
) -> list[dict[str, Any]]:
    tree, uniform = games.find(game)
    settings = {"seed": seed, "algorithm": algorithm, "shards": setup.threads, "threads": setup.threads, **overrides}
    settings["rules"] = dataclasses.replace(GAMES[game], max_hands=1).to_dict()
    config = Config.read(ROOT / "configs" / "tiny.yaml", settings)
    config = dataclasses.replace(config, total_steps=plan_steps(config, setup))
    clock, rows = Clock(setup), []
    for learner in train_ours(config, setup, clock):
        policy, _ = ask(PolicyAgent(learner.spec, learner.average, is_greedy=False), tree)
        found = measure(tree, policy).nash_conv
        rows.append(
            {
                "algorithm": algorithm,
                "seed": seed,
                "game": game,
                "infosets": tree.num_infosets,
                "total_steps": config.total_steps,
                "decisions": learner.num_steps,
                "nash_conv": f"{found:.5f}",
                "uniform_nash_conv": f"{uniform:.5f}",
                **clock.to_row(),
            }
        )
        print(
            f"{game} {algorithm} seed {seed}: {clock.seconds / 60:.2f} minutes, {learner.num_steps:,} decisions: "
            f"NashConv {found:.4f}",
            flush=True,
        )
    return rows


def _draw(record: Record, path: Path) -> None:
    from matplotlib.figure import Figure

    games = [game for game in GAMES if record.find(game=game)]
    figure = Figure(figsize=(4.4 * len(games), 4), layout="constrained")
    for axes, game in zip(figure.subplots(1, len(games), squeeze=False)[0], games, strict=True):
        draw_lines(axes, collect(record, "nash_conv", game=game))
        infosets = int(record.find(game=game)[0]["infosets"])
        axes.set_title(f"{game} each: {infosets:,} information sets")
        axes.set_yscale("log")
        axes.set_ylabel("NashConv, points a hand")
        axes.legend()
    write_svg(figure, path)


def tabulate(record: Record) -> str:
    """The ends of all runs as a Markdown table, below the picture."""
    head = ["Game", "Uniform play", "Algorithm", "Minutes", "Decisions played", "NashConv"]
    table = []
    for game in GAMES:
        for name in ALGORITHMS:
            ends = find_ends(record, game=game, algorithm=name)
            if not ends:
                continue
            uniform = f"{float(ends[0]['uniform_nash_conv']):.3f}"
            minutes = sum(float(row["seconds"]) for row in ends) / len(ends) / 60
            decisions = sum(int(row["decisions"]) for row in ends) / len(ends)
            found = show_mean([float(row["nash_conv"]) for row in ends], "{:.3f}")
            table.append([f"{game} each", uniform, TITLES[name], f"{minutes:.2f}", f"{decisions:,.0f}", found])
    note = "NashConv, in points a hand, of the averaged policy at the end."
    picture = f"![NashConv against minutes]({NAME}.svg)"
    return "\n".join(
        [picture, "", write_table(head, table), "", f"{note} {describe_runs(record, 'benchmarks.nash_curves')}"]
    )


def main(arguments: list[str] | None = None, overrides: Mapping[str, Any] | None = None) -> None:
    """Read the command line, do what is not done yet, draw, and show the table.

    Args:
        arguments: of the command line.
        overrides: values of `Config` to use in place of those here.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nash_curves", description=__doc__.split("\n")[0])
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS), help="default: both")
    parser.add_argument("--games", nargs="+", choices=list(GAMES), default=list(GAMES), help="default: both")
    add_flags(parser, 1.0)
    given = parser.parse_args(arguments)
    setup = read_setup(parser, given)
    record, games = read_record(parser, given.folder / f"{NAME}.csv", COLUMNS, setup), _Games()
    keys = [
        {"game": game, "algorithm": name, "seed": seed}
        for game in given.games
        for seed in given.seeds
        for name in given.algorithms
    ]
    run_all(record, keys, lambda **key: _run(**key, setup=setup, games=games, overrides=overrides or {}))
    _draw(record, given.folder / f"{NAME}.svg")
    show(tabulate(record), given.write, NAME)


if __name__ == "__main__":
    main()
