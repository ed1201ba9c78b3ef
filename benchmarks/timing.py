"""Timing in turn: every side of a comparison runs once a round, A B A B, so that all meet the same machine.

A rate is the median over rounds, and a ratio the median of the ratios round by round, with the smallest and largest.
"""

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Run = Callable[[float], tuple[float, float]]  # from the seconds to fill, to the work done and the seconds it took

_STAT = Path("/proc/stat")
_WARM_UP = 0.2  # seconds


@dataclass(frozen=True)
class Options:
    """How much to measure.

    Attributes:
        seconds: that each side runs in each round, at least.
        rounds: how often the sides take turns.
        has_peers: whether to look for peers.
        tables: batch sizes of the batched engine; the last is the one that its goals are for.
        hands: hands of one update in training.
        matches: matches that the bots play at a time.
    """

    seconds: float = 1.0
    rounds: int = 5
    has_peers: bool = True
    tables: tuple[int, ...] = (1024, 8192)
    hands: int = 4096
    matches: int = 500


@dataclass(frozen=True)
class Timing:
    """Rates of one side, per second, one for each round, and the cores that other processes used meanwhile."""

    rates: tuple[float, ...]
    others: float | None

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)

    def over(self, other: "Timing") -> tuple[float, float, float]:
        """How many times the other's rate: median, smallest and largest of the rounds."""
        ratios = [own / its for own, its in zip(self.rates, other.rates, strict=True)]
        return statistics.median(ratios), min(ratios), max(ratios)


class _Neighbours:
    """Processor time that other processes use; where the system does not tell, None."""

    def __init__(self) -> None:
        self._start = self._read()

    @staticmethod
    def _read() -> tuple[float, float] | None:
        if not _STAT.is_file():
            return None
        values = [int(value) for value in _STAT.read_text().split("\n", 1)[0].split()[1:]]
        busy = sum(values[:3]) + sum(values[5:8])  # user, nice, system, interrupts, stolen
        own = os.times()
        return busy / os.sysconf("SC_CLK_TCK"), own.user + own.system + own.children_user + own.children_system

    def seconds(self) -> float | None:
        now = self._read()
        if now is None or self._start is None:
            return None
        return max(0.0, (now[0] - self._start[0]) - (now[1] - self._start[1]))


def repeat(work: Callable[[], float]) -> Run:
    """A run that calls `work`, which returns how much it did, until the time is filled."""

    def run(seconds: float) -> tuple[float, float]:
        start, done = time.perf_counter(), 0.0
        while True:
            done += work()
            spent = time.perf_counter() - start
            if spent >= seconds:
                return done, spent

    return run


def time_in_turn(runs: Mapping[str, Run | None], options: Options) -> dict[str, Timing]:
    """Time several sides in turn, after a short warm-up of each; sides that are None are left out."""
    sides = {name: run for name, run in runs.items() if run is not None}
    for run in sides.values():
        run(min(options.seconds, _WARM_UP))
    rates: dict[str, list[float]] = {name: [] for name in sides}
    others: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(options.rounds):
        for name, run in sides.items():
            neighbours, start = _Neighbours(), time.perf_counter()
            done, spent = run(options.seconds)
            rates[name].append(done / spent)
            used = neighbours.seconds()
            if used is not None:
                others[name].append(used / (time.perf_counter() - start))
    return {name: Timing(tuple(rates[name]), statistics.mean(others[name]) if others[name] else None) for name in sides}
