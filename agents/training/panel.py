"""What a person sees of a run: a live panel on a terminal, plain lines elsewhere, and the table at the end."""

import time
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from agents.arena import Result

_LINE_EVERY = 10.0  # seconds between plain lines
_LOSSES = {"policy": "policy_loss", "value": "value_loss", "entropy": "entropy", "KL": "approx_kl"}
_SHOWN_MEMBERS = 6  # of the opponent pool


class _Live(Progress):
    """A progress bar with lines of text below it."""

    lines: tuple[str, ...] = ()

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        for line in self.lines:
            yield Text(line, no_wrap=True, overflow="ellipsis")


def describe_time(facts: dict[str, float]) -> str:
    """Where the time of an update goes."""
    update, inference = facts.get("time/update_share", 0.0), facts.get("time/inference_share", 0.0)
    return f"engine {max(1 - update - inference, 0):.0%}, inference {inference:.0%}, update {update:.0%}"


def describe_losses(facts: dict[str, float]) -> str:
    """The losses of an update."""
    parts = [f"{word} {facts[f'losses/{name}']:.4f}" for word, name in _LOSSES.items() if f"losses/{name}" in facts]
    return ", ".join(parts)


def describe_margins(results: list[Result]) -> str:
    """Points a hand ahead of each opponent, with half the width of the 95 % interval."""
    return ", ".join(
        f"{result.opponent} {result.margin:+.2f} ± {result.margin - result.low:.2f}"
        for result in results
        if result.margin is not None and result.low is not None
    )


class Panel:
    """Progress of a run.

    Args:
        total_steps: decisions in the whole run.
        console: where to write.
    """

    def __init__(self, total_steps: int, console: Console) -> None:
        self.console = console
        self._total = total_steps
        self._margins = self._pool = ""
        self._started = time.perf_counter()
        self._first_step: int | None = None
        self._line_at = 0.0
        self._progress: _Live | None = None
        if self.console.is_terminal:
            self._progress = _Live(
                TextColumn("training"),
                BarColumn(),
                TextColumn("{task.completed:,.0f} of {task.total:,.0f} decisions, {task.fields[speed]}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=self.console,
                speed_estimate_period=120,
            )
            self._task = self._progress.add_task("training", total=total_steps, speed="")

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
        """Show how far the run is, how fast, and how it does."""
        speed = f"{facts['charts/SPS']:,.0f}/s"
        if self._progress is not None:
            self._progress.lines = self._write_lines(facts)
            self._progress.update(self._task, completed=num_steps, speed=speed)
            return
        now = time.perf_counter()
        if self._first_step is None:
            self._first_step, self._started = num_steps, now
        if now - self._line_at < _LINE_EVERY and num_steps < self._total:
            return
        self._line_at = now
        done = num_steps - self._first_step
        left = (self._total - num_steps) * (now - self._started) / done if done else 0
        margins = f" ahead of {self._margins}" if self._margins else ""
        self.print(
            f"{num_steps:>12,} of {self._total:,} decisions, {speed}, entropy {facts['losses/entropy']:.2f}, "
            f"made {facts['game/made_rate']:.0%}, about {max(left, 0):.0f} s left{margins}"
        )

    def _write_lines(self, facts: dict[str, float]) -> tuple[str, ...]:
        lines = {
            "time": describe_time(facts),
            "losses": describe_losses(facts),
            "ahead of": self._margins,
            "pool": self._pool,
        }
        return tuple(f"{name:<10}{text}" for name, text in lines.items() if text)

    def show_margins(self, results: list[Result], members: dict[str, list[float]], unit: str) -> None:
        """Keep the latest margins in view: points a hand above each opponent, and above the hardest of the pool in its
        own unit."""
        self._margins = describe_margins(results)
        hardest = sorted(members.items(), key=lambda item: item[1][0])[:_SHOWN_MEMBERS]
        shown = ", ".join(f"{name} {margin:+.2f} ± {half:.2f}" for name, (margin, half) in hardest)
        self._pool = f"{unit}: {shown}" if shown else ""
        if self._progress is None:
            self.print(f"points a hand ahead of {self._margins}")
            if self._pool:
                self.print(f"and of the pool's hardest, lately, {self._pool}")


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
