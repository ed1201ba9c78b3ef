"""Time as the budget of a search: rounds of worlds, planned by how long the last one took."""

import math
from collections.abc import Iterator
from time import perf_counter

_MOST_ROUND = 1 << 12
_FAST = 0.0006  # seconds that a decision of cost 1 stands for
_SPARE = 0.9  # of the time left that a round is planned to take


def check_seconds(seconds: float | None) -> None:
    """Refuse what is no time for a decision.

    Raises:
        ValueError: unless it is a number above 0, or None.
    """
    if seconds is not None and not 0 < seconds < math.inf:
        raise ValueError(f"seconds takes a number above 0, or None, not {seconds!r}")


def cost_of(seconds: float) -> float:
    """What a decision of so many seconds costs, see `Agent`."""
    return max(1.0, seconds / _FAST)


def plan_rounds(first: int, end: float) -> Iterator[int]:
    """Sizes of rounds for as long as the next one is likely to be done in time; each is worked on before the next is
    asked for.

    Each round is as large as all before it, so that actions are compared a few times only: by many looks at growing
    samples the best one would be dropped too often.

    Args:
        first: size of the first round, which is always played, and the least of the others.
        end: when time is up, by `perf_counter`.
    """
    size, num_done = first, 0
    while size >= first:
        start = perf_counter()
        yield size
        now = perf_counter()
        num_done += size
        size = int(min(num_done, _MOST_ROUND, _SPARE * (end - now) * size / max(now - start, 1e-9)))
