"""Margin against minutes of training, for several algorithms and seeds: ``python -m benchmarks.curves``.

Runs follow one another, each for the same minutes on the same number of threads. The clock runs while a run plays and
learns, not while it is measured. The schedules of our algorithms are shares of ``total_steps``, which is therefore set
before a run, by the speed of the same configuration over some seconds just before; the CSV file tells it, and with it
train.py makes the same run again. MaskablePPO has no schedule by default and stops by the clock. All are measured on
the same deals.

A run that is done is in the file and is not done again, so the same command goes on after a stop.
"""

import argparse
import csv
import dataclasses
import importlib.util
import io
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import agents
from agents.arena import play_duplicate
from agents.arena.estimates import estimate_mean
from agents.base import Agent
from agents.files import write_atomically
from agents.policy import PolicyAgent
from agents.training.config import Config
from agents.training.learner import Learner
from benchmarks.report import describe_machine, write_between_marks, write_table

ROOT = Path(__file__).resolve().parent.parent
CLOCKS = ("wall", "cpu")
FILES = {"ppo": "quick.yaml", "mmd": "mmd.yaml", "dmc": "dmc.yaml", "separate": "quick.yaml"}
CHANGES: dict[str, dict[str, Any]] = {"separate": {"trunks": "separate"}}  # to the file
PEER = "maskable_ppo"
TITLES = {
    "ppo": "PPO",
    "mmd": "MMD",
    "dmc": "Deep Monte Carlo",
    "separate": "PPO with separate trunks",
    PEER: "MaskablePPO of sb3-contrib",
}
NAME = "curves"  # of the files, and of the marks in a document
BOT = "trickster+0.5"  # the opponent that is drawn
COLUMNS = ("algorithm", "seed", "minutes", "points", "threads", "clock", "machine", "total_steps")
COLUMNS += ("seconds", "wall_seconds", "cpu_seconds", "decisions", "opponent", "deals", "margin", "low", "high")

_DEALS_SEED = 7  # of the deals that all are measured on
_TRIAL_SECONDS = 8.0  # of the clock, to learn how fast a configuration is
_COLOURS = ("#1b6ca8", "#d1495b", "#2e933c", "#e9a03b", "#7d5ba6")


@dataclass(frozen=True)
class Setup:
    """What all runs of a file share.

    Attributes:
        minutes: of training, by the clock.
        points: how often a run is measured, the end included.
        threads: that a run has.
        clock: ``wall``, or ``cpu``: processor seconds of the process over the threads, for a machine that is not quiet.
    """

    minutes: float = 3.0
    points: int = 12
    threads: int = 1
    clock: str = "wall"

    def __post_init__(self) -> None:
        if not self.minutes > 0:
            raise ValueError(f"minutes takes a number above 0, not {self.minutes!r}")
        if self.points < 1 or self.threads < 1:
            raise ValueError(f"points and threads take whole numbers from 1 up, not {self.points} and {self.threads}")
        if self.clock not in CLOCKS:
            raise ValueError(f"clock takes {' or '.join(CLOCKS)}, not {self.clock!r}")

    @property
    def seconds(self) -> float:
        return 60 * self.minutes


class Clock:
    """Seconds of training; it runs inside ``with``.

    Attributes:
        wall: seconds that passed.
        cpu: processor seconds of all threads of this process.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self.wall = self.cpu = 0.0

    def __enter__(self) -> None:
        self._start = time.perf_counter(), time.process_time()

    def __exit__(self, *_: Any) -> None:
        self.wall += time.perf_counter() - self._start[0]
        self.cpu += time.process_time() - self._start[1]

    @property
    def seconds(self) -> float:
        """By the clock of the setup."""
        return self.wall if self._setup.clock == "wall" else self.cpu / self._setup.threads

    def to_row(self) -> dict[str, Any]:
        """Columns of a file."""
        return {
            "seconds": round(self.seconds, 2),
            "wall_seconds": round(self.wall, 2),
            "cpu_seconds": round(self.cpu, 2),
        }


def plan_steps(config: Config, setup: Setup) -> int:
    """Decisions that a run makes in the minutes, judged by some seconds of it; compiles what has to be."""
    learner, clock = Learner(config), Clock(setup)
    try:
        learner.update()
        before = learner.num_steps
        while clock.seconds < min(_TRIAL_SECONDS, setup.seconds / 4) or learner.num_steps == before:
            with clock:
                learner.update()
        return max(1, round((learner.num_steps - before) / clock.seconds * setup.seconds))
    finally:
        learner.close()


def train_ours(config: Config, setup: Setup, clock: Clock) -> Iterator[Learner]:
    """Train, and give the learner at equal shares of the run, the end last."""
    learner = Learner(config)
    try:
        for point in range(1, setup.points + 1):
            while learner.num_steps < config.total_steps * point / setup.points:
                with clock:
                    learner.update()
            yield learner
    finally:
        learner.close()


def _train_peer(config: Config, setup: Setup, clock: Clock) -> Iterator[tuple[int, Agent]]:
    from benchmarks import self_play

    before = torch.get_num_threads()
    torch.set_num_threads(setup.threads)
    try:
        next(self_play.train(config.rules, config.seed))  # compiles
        rollouts = self_play.train(config.rules, config.seed)
        for point in range(1, setup.points + 1):
            while clock.seconds < setup.seconds * point / setup.points:
                with clock:
                    num_decisions, agent = next(rollouts)
            yield num_decisions, agent
    finally:
        torch.set_num_threads(before)


class Record:
    """The rows of finished runs, in a CSV file.

    Raises:
        ValueError: if the file has other columns, or runs of another setup.
    """

    def __init__(self, path: Path, columns: Sequence[str], setup: Setup) -> None:
        self.path, self.columns = path, columns
        self._setup = {name: str(value) for name, value in dataclasses.asdict(setup).items()}
        self.rows: list[dict[str, str]] = []
        if path.is_file():
            with open(path, encoding="utf-8", newline="") as file:
                reader = csv.DictReader(file)
                self.rows = list(reader)
                if list(reader.fieldnames or []) != list(columns):
                    raise ValueError(f"{path} takes the columns {', '.join(columns)}; move it away to begin anew")
        for row in self.rows:
            for name, value in self._setup.items():
                if row[name] != value:
                    raise ValueError(
                        f"{path} has runs with {name} {row[name]}, not {value}: give the same, or move it away"
                    )

    def find(self, **key: Any) -> list[dict[str, str]]:
        """Rows with these values."""
        return [row for row in self.rows if all(row[name] == str(value) for name, value in key.items())]

    def add_run(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write the rows of a whole run; a stop leaves all of them or none."""
        machine = describe_machine()
        common = {**self._setup, "machine": f"{machine['processor']}, {machine['cores']} cores"}
        self.rows += [{name: str({**common, **row}[name]) for name in self.columns} for row in rows]
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, text.getvalue().encode())


def collect(record: Record, value: str, **key: Any) -> dict[str, np.ndarray]:
    """Minutes and values of each algorithm, float64 (seeds, points, 2), of the rows with the values of `key`."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in record.find(**key):
        run = found.setdefault(row["algorithm"], {}).setdefault(row["seed"], [])
        run.append((float(row["seconds"]) / 60, float(row[value])))
    return {name: np.array(list(runs.values())) for name, runs in found.items()}


def draw_lines(axes: Any, lines: Mapping[str, np.ndarray]) -> None:
    """A line for each algorithm, the mean over seeds, in a band from the smallest to the largest."""
    for name in sorted(lines, key=list(TITLES).index):
        colour = _COLOURS[list(TITLES).index(name)]
        minutes, values = lines[name][..., 0].mean(0), lines[name][..., 1]
        axes.fill_between(minutes, values.min(0), values.max(0), color=colour, alpha=0.2, linewidth=0)
        axes.plot(minutes, values.mean(0), color=colour, label=TITLES[name], marker=".")
    axes.set_xlabel("minutes of training")
    axes.grid(alpha=0.3)
    axes.set_xlim(left=0)


def write_svg(figure: Any, path: Path) -> None:
    """Write a figure so that equal figures are equal files."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": path.stem}):
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def _draw(record: Record, path: Path, bot: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.axhline(0, color="black", linewidth=0.8)
    draw_lines(axes, collect(record, "margin", opponent=bot))
    axes.set_ylabel(f"points a hand ahead of {bot}")
    axes.legend()
    write_svg(figure, path)


def show_mean(values: Sequence[float], form: str) -> str:
    """The mean over seeds and, if there are several, its 95 % interval (Student's t over seeds)."""
    if len(values) < 2:
        return form.format(values[0])
    mean, half = estimate_mean(np.array(values))
    return f"{form.format(mean)} ({form.format(mean - half)} to {form.format(mean + half)})"


def find_ends(record: Record, **key: Any) -> list[dict[str, str]]:
    """The last row of each seed, of the rows with these values."""
    return list({row["seed"]: row for row in record.find(**key)}.values())


def describe_runs(record: Record, module: str) -> str:
    """How all runs were made, with the command that makes them again."""
    first = record.rows[0]
    seeds = sorted({int(row["seed"]) for row in record.rows})
    machines = "; ".join(sorted({row["machine"] for row in record.rows}))
    clock = "by the clock" if first["clock"] == "wall" else "in processor time a thread"
    setup = " ".join(f"--{name} {first[name]}" for name in ("minutes", "points", "threads", "clock"))
    for column, flag in (("algorithm", "algorithms"), ("game", "games")):
        if column in first:
            chosen = dict.fromkeys(row[column] for row in record.rows)
            setup += f" --{flag} {' '.join(map(shlex.quote, chosen))}"
    return (
        f"Mean over seeds {', '.join(map(str, seeds))} with its 95 % interval over seeds. One run after another, "
        f"with {float(first['minutes']):g} min of training each, {clock}, on {first['threads']} "
        f"thread{'s' if first['threads'] != '1' else ''} ({machines}): "
        f"`python -m {module} {setup} --seeds {' '.join(map(str, seeds))}`."
    )


def tabulate(record: Record) -> str:
    """The ends of all runs as a Markdown table, below the picture."""
    opponents = list(dict.fromkeys(row["opponent"] for row in record.rows))
    head = ["Algorithm", "Minutes", "Decisions played", *(f"`{name}`" for name in opponents)]
    table = []
    for name, title in TITLES.items():
        ends = [find_ends(record, algorithm=name, opponent=opponent) for opponent in opponents]
        if not ends[0]:
            continue
        minutes = np.mean([float(row["seconds"]) for row in ends[0]]) / 60
        decisions = np.mean([int(row["decisions"]) for row in ends[0]])
        cells = [show_mean([float(row["margin"]) for row in rows], "{:+.3f}") for rows in ends]
        table.append([title, f"{minutes:.2f}", f"{decisions:,.0f}", *cells])
    deals = int(record.rows[-1]["deals"])
    note = f"Points a hand ahead at the end, in one seat among copies of each bot, over the same {deals:,} deals."
    picture = f"![Margin against minutes]({NAME}.svg)"
    return "\n".join(
        [picture, "", write_table(head, table), "", f"{note} {describe_runs(record, 'benchmarks.curves')}"]
    )


def _measure(agent: Agent, opponents: Mapping[str, Agent], config: Config, num_deals: int) -> Iterator[dict[str, Any]]:
    for name, opponent in opponents.items():
        found = play_duplicate(agent, opponent, config.rules, num_deals, 0, _DEALS_SEED)
        margins = {part: f"{getattr(found, part):.4f}" for part in ("margin", "low", "high")}
        yield {"opponent": name, "deals": found.deals, **margins}


def read_record(parser: argparse.ArgumentParser, path: Path, columns: Sequence[str], setup: Setup) -> Record:
    """The record of a file; ends with a sentence if it cannot be gone on with."""
    try:
        return Record(path, columns, setup)
    except ValueError as error:
        parser.error(str(error))


def _run(
    name: str, seed: int, setup: Setup, given: argparse.Namespace, overrides: Mapping[str, Any]
) -> list[dict[str, Any]]:
    file = ROOT / "configs" / FILES.get(name, FILES["ppo"])
    config = Config.read(file, {"seed": seed, "threads": setup.threads, **CHANGES.get(name, {}), **overrides})
    opponents = {bot: agents.load(bot, config.rules) for bot in given.opponents}
    clock, rows = Clock(setup), []
    total: int | str = ""  # the peer has none
    stages: Iterator[tuple[int, Agent]]
    if name == PEER:
        stages = _train_peer(config, setup, clock)
    else:
        total = plan_steps(config, setup)
        config = dataclasses.replace(config, total_steps=total)
        stages = (
            (learner.num_steps, PolicyAgent(learner.spec, learner.average))
            for learner in train_ours(config, setup, clock)
        )
    for point, (num_decisions, agent) in enumerate(stages, 1):
        about = {"algorithm": name, "seed": seed, "total_steps": total, "decisions": num_decisions, **clock.to_row()}
        num_deals = given.final_deals if point == setup.points else given.deals
        rows += [{**about, **found} for found in _measure(agent, opponents, config, num_deals)]
        shown = ", ".join(f"{row['opponent']} {float(row['margin']):+.3f}" for row in rows[-len(opponents) :])
        print(f"{name} seed {seed}: {clock.seconds / 60:.2f} minutes, {num_decisions:,} decisions: {shown}", flush=True)
    return rows


def add_flags(parser: argparse.ArgumentParser, minutes: float) -> None:
    """Flags of every kind of curve."""
    parser.add_argument(
        "--minutes", type=float, default=minutes, help=f"of training for each run (default {minutes:g})"
    )
    parser.add_argument("--points", type=int, default=12, help="how often a run is measured (default 12)")
    parser.add_argument("--threads", type=int, default=1, help="that each run has (default 1)")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: processor seconds over the threads")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="one run each (default 0 1 2)")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "docs", help="where the CSV and SVG files are (default docs)"
    )
    parser.add_argument("--write", metavar="FILE", help="put the table between the marks in a Markdown file")


def read_setup(parser: argparse.ArgumentParser, given: argparse.Namespace) -> Setup:
    """The setup of the command line; ends with a sentence if it is nonsense, or if no figure can be drawn."""
    try:
        import matplotlib.figure  # noqa: F401  (better now than after an hour)

        return Setup(given.minutes, given.points, given.threads, given.clock)
    except ImportError:
        parser.error('drawing needs matplotlib: pip install -e ".[notebook]"')
    except ValueError as error:
        parser.error(str(error))


def run_all(record: Record, keys: Iterable[Mapping[str, Any]], run: Callable[..., list[dict[str, Any]]]) -> None:
    """Do the runs that the file does not have, each by its key."""
    for key in keys:
        if record.find(**key):
            print(f"{', '.join(map(str, key.values()))}: done before", flush=True)
        else:
            record.add_run(run(**key))


def main(arguments: list[str] | None = None, overrides: Mapping[str, Any] | None = None) -> None:
    """Read the command line, do what is not done yet, draw, and show the table.

    Args:
        arguments: of the command line.
        overrides: values of `Config` to use in place of those in the files.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.curves", description=__doc__.split("\n")[0])
    parser.add_argument("--algorithms", nargs="+", choices=list(TITLES), default=list(TITLES), help="default: all")
    parser.add_argument("--opponents", nargs="+", default=Config().opponents, help="bots to measure against")
    parser.add_argument("--deals", type=int, default=1000, help="against each, on the way (default 1000)")
    parser.add_argument("--final-deals", type=int, default=10_000, help="against each, at the end (default 10000)")
    add_flags(parser, 3.0)
    given = parser.parse_args(arguments)
    setup = read_setup(parser, given)
    if PEER in given.algorithms and importlib.util.find_spec("sb3_contrib") is None:
        parser.error(f'{PEER} needs sb3-contrib: pip install -e ".[bench]", or leave it out of --algorithms')
    if setup.threads > Config().shards:
        parser.error(f"--threads takes at most the shards of the configurations, {Config().shards}")
    record = read_record(parser, given.folder / f"{NAME}.csv", COLUMNS, setup)
    keys = [{"algorithm": name, "seed": seed} for seed in given.seeds for name in given.algorithms]
    run_all(record, keys, lambda algorithm, seed: _run(algorithm, seed, setup, given, overrides or {}))
    bots = [row["opponent"] for row in record.rows]
    _draw(record, given.folder / f"{NAME}.svg", BOT if BOT in bots else bots[0])
    show(tabulate(record), given.write, NAME)


def show(text: str, document: str | None, name: str) -> None:
    """Print a table and, if asked, write it between the marks of a document."""
    print(text)
    if document:
        write_between_marks(document, text, name)


if __name__ == "__main__":
    main()
