"""What was measured, as a table on the terminal, as JSON, and as a table in a Markdown file."""

import dataclasses
import json
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.timing import Timing

END = "<!-- end -->"
_COLUMNS = ("What", "Threads", "Ours", "Peer", "Ratio", "Goal")
_QUIET = 0.15  # cores that others may use in a quiet row
_PACKAGES = ("numpy", "numba", "torch", "pettingzoo", "open-spiel", "sb3-contrib")


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        what: what was measured.
        ours: the figure.
        unit: of it: a rate such as "decisions/s", or "s", "ms", "share", "times".
        threads: that ours ran on.
        peer: what it is compared with.
        peer_figure: the peer's figure in the same unit.
        ratio: ours over the peer's: median, smallest and largest of the rounds.
        goal: for the figure: at least, or for seconds at most.
        ratio_goal: for the ratio: at least.
        others: cores that other processes used while ours ran, if known.
    """

    what: str
    ours: float
    unit: str = "decisions/s"
    threads: int = 1
    peer: str = ""
    peer_figure: float | None = None
    ratio: tuple[float, float, float] | None = None
    goal: float | None = None
    ratio_goal: float | None = None
    others: float | None = None

    def cells(self) -> tuple[str, ...]:
        """The line as text, one for each column."""
        peer = f"{self.peer}: {show(self.peer_figure, self.unit)}" if self.peer_figure is not None else self.peer
        ratio = "" if self.ratio is None else "{} ({} to {})".format(*(show(part, "times") for part in self.ratio))
        goals = []
        if self.goal is not None:
            is_time = self.unit in ("s", "ms")
            is_met = self.ours <= self.goal if is_time else self.ours >= self.goal
            goals.append(f"{'≤' if is_time else '≥'} {show(self.goal, self.unit)} {'✓' if is_met else '✗'}")
        if self.ratio_goal is not None:
            mark = "" if self.ratio is None else " ✓" if self.ratio[0] >= self.ratio_goal else " ✗"
            goals.append(f"≥ {show(self.ratio_goal, 'times')}{mark}")
        return self.what, str(self.threads), show(self.ours, self.unit), peer, ratio, ", ".join(goals)


def show(value: float, unit: str) -> str:
    """A figure for people."""
    if unit == "share":
        return f"{100 * value:.1f} %"
    if unit == "times":
        return f"{value:,.2f}x" if value < 10 else f"{value:,.0f}x"
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if unit not in ("s", "ms") and value >= size:
            return f"{value / size:.3g}{letter} {unit}" if value < 1e9 else f"{value / size:,.0f}{letter} {unit}"
    return f"{value:.3g} {unit}"


@dataclass
class Report:
    """Rows and remarks of a run, printed as they come."""

    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    console: Console = field(default_factory=Console)
    machine: dict[str, Any] = field(default_factory=lambda: describe_machine())

    def add(
        self,
        what: str,
        timing: Timing,
        peer: str = "",
        other: Timing | None = None,
        **more: Any,
    ) -> None:
        """Add a row for a timing, compared with another's if there is one; `more` are fields of `Row`."""
        if other is None:
            self.add_row(Row(what, timing.rate, others=timing.others, **more))
        else:
            busy = [side.others for side in (timing, other) if side.others is not None]
            others = max(busy) if busy else None
            compared: dict[str, Any] = {"peer": peer, "peer_figure": other.rate, "ratio": timing.over(other)}
            self.add_row(Row(what, timing.rate, others=others, **compared, **more))

    def add_row(self, row: Row) -> None:
        """Add a row."""
        self.rows.append(row)
        self.console.print(f"  {row.what}: {show(row.ours, row.unit)}", style="dim", markup=False, highlight=False)

    def add_note(self, note: str) -> None:
        """Add a remark, once."""
        if note not in self.notes:
            self.notes.append(note)
            self.console.print(f"  {note}", style="yellow", markup=False, highlight=False)

    def remarks(self) -> Iterator[str]:
        """The lines below the table."""
        machine = self.machine
        load = "not known" if machine["load"] is None else " ".join(f"{part:.2f}" for part in machine["load"])
        yield (
            f"{machine['processor']}, {machine['cores']} cores to run on; {machine['system']}; "
            + ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
            + f"; {machine['date']}."
        )
        known = [row.others for row in self.rows if row.others is not None]
        busy = sum(used > _QUIET for used in known)
        quiet = (
            f"in {busy} of {len(known)} rows others used more than {_QUIET} cores, at most {max(known):.2f}"
            if busy
            else "other processes were quiet throughout"
            if known
            else "what others used is not known"
        )
        yield f"Load average before the start (1, 5, 15 minutes): {load}; {quiet}."
        yield (
            "Sides of a comparison ran in turn on the threads stated; figures are medians over the rounds, "
            "ratios those of each round (smallest to largest)."
        )
        yield from self.notes

    def print_table(self) -> None:
        """Show everything on the terminal."""
        table = Table(*_COLUMNS, title="Speed")
        for row in self.rows:
            table.add_row(*row.cells())
        self.console.print(table)
        for remark in self.remarks():
            self.console.print(remark, markup=False, highlight=False)

    def to_dict(self) -> dict[str, Any]:
        """Everything as a JSON-ready dict."""
        return {
            "machine": self.machine,
            "rows": [dataclasses.asdict(row) for row in self.rows],
            "notes": self.notes,
        }

    def write_json(self, path: str | Path) -> None:
        """Write everything as JSON."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")

    def to_markdown(self) -> str:
        """The table and the lines below it as Markdown."""
        table = write_table(_COLUMNS, [row.cells() for row in self.rows])
        return "\n".join([table, "", *(f"- {remark}" for remark in self.remarks())])


def write_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows])


def write_between_marks(path: str | Path, text: str, name: str = "speed") -> None:
    """Put text between the two marks of a Markdown file that a name stands in.

    Raises:
        ValueError: if the file has not exactly one mark to begin at, or none to end at after it.
    """
    whole = Path(path).read_text(encoding="utf-8")
    begin = f"<!-- begin: {name} -->"
    before, *rest = whole.split(begin)
    if len(rest) != 1 or END not in rest[0]:
        raise ValueError(f"{path} needs one line {begin} and after it a line {END}")
    _, after = rest[0].split(END, 1)
    Path(path).write_text(f"{before}{begin}\n{text}\n{END}{after}", encoding="utf-8")


def describe_machine() -> dict[str, Any]:
    """What the figures depend on."""
    processor = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.is_file():
        names = [line for line in information.read_text().splitlines() if line.startswith("model name")]
        processor = names[0].split(":", 1)[1].strip() if names else processor
    versions = {"Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "processor": processor,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "system": platform.system(),
        "versions": versions,
        "load": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "date": date.today().isoformat(),
    }
