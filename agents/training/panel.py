"""What a person sees of a run: a live line on a terminal, plain lines elsewhere, and the table at the end."""

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from agents.arena import Result

_LINE_EVERY = 10.0  # seconds between plain lines


class Panel:
    """Progress of a run.

    Args:
        total_steps: decisions in the whole run.
        console: where to write.
    """

    def __init__(self, total_steps: int, console: Console) -> None:
        self.console = console
        self._total = total_steps
        self._margins = ""
        self._started = time.perf_counter()
        self._first_step: int | None = None
        self._line_at = 0.0
        self._progress: Progress | None = None
        if self.console.is_terminal:
            self._progress = Progress(
                TextColumn("training"),
                BarColumn(),
                TextColumn("{task.completed:,.0f} of {task.total:,.0f} decisions, {task.fields[speed]}"),
                TextColumn("{task.fields[margins]}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=self.console,
                speed_estimate_period=120,
            )
            self._task = self._progress.add_task("training", total=total_steps, speed="", margins="")

    def __enter__(self) -> "Panel":
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def print(self, text: str) -> None:
        """A line of its own."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def advance(self, num_steps: int, facts: dict[str, float]) -> None:
        """Show how far the run is and how fast."""
        speed = f"{facts['charts/SPS']:,.0f}/s"
        if self._progress is not None:
            self._progress.update(self._task, completed=num_steps, speed=speed, margins=self._margins)
            return
        now = time.perf_counter()
        if self._first_step is None:
            self._first_step, self._started = num_steps, now
        if now - self._line_at < _LINE_EVERY and num_steps < self._total:
            return
        self._line_at = now
        done = num_steps - self._first_step
        left = (self._total - num_steps) * (now - self._started) / done if done else 0
        self.print(
            f"{num_steps:>12,} of {self._total:,} decisions, {speed}, entropy {facts['losses/entropy']:.2f}, "
            f"made {facts['game/made_rate']:.0%}, about {max(left, 0):.0f} s left {self._margins}"
        )

    def show_margins(self, results: list[Result]) -> None:
        """Keep the latest margins in view: points a hand above each opponent."""
        parts = [f"{result.opponent} {result.margin:+.2f}" for result in results if result.margin is not None]
        self._margins = "ahead of " + ", ".join(parts)
        if self._progress is None:
            self.print("points a hand " + self._margins)


def show_results(results: list[Result], console: Console) -> None:
    """The table of what a policy achieved against each opponent."""
    first = results[0]
    places = "two sides" if first.rules.teams else f"{first.rules.num_players} seats"
    table = Table(
        title=f"One side against copies of each opponent, {places} exchanged over the same deals",
        caption=f"95 % intervals over {first.deals:,} deals and {first.matches:,} matches; equal share of matches "
        f"{first.equal_share:.0%}; seed {first.seed}",
    )
    table.add_column("opponent")
    table.add_column("points a hand ahead", justify="right")
    table.add_column("share of matches won", justify="right")
    for result in results:
        share = "not measured"
        if result.match_share is not None:
            share = f"{result.match_share:.1%} ({result.match_low:.1%} to {result.match_high:.1%})"
        table.add_row(result.opponent, f"{result.margin:+.3f} ({result.low:+.3f} to {result.high:+.3f})", share)
    console.print(table)
