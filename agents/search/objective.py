"""What a hand that is over is worth to a side: points, or the chance to win the match."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from agents.equity import Equity


def find_margins(tables: np.ndarray, sides: int | np.ndarray, num_sides: int) -> np.ndarray:
    """Score change of a side, or of one for each table, less the mean of the others'; float64 (N,).

    Args:
        tables: array of `TABLE`, (N,), whose hand is over, all with so many sides.
        sides: the side, or whole numbers (N,).
        num_sides: of every table.
    """
    deltas = tables["deltas"][:, :num_sides].astype(np.float64)
    return (num_sides * deltas[np.arange(len(tables)), sides] - deltas.sum(axis=1)) / (num_sides - 1)


def value_hands(tables: np.ndarray, sides: int | np.ndarray, num_sides: int, equity: "Equity | None") -> np.ndarray:
    """The same without an equity; with one, the side's chance to win the match from there on, 1 or 0 if it is over."""
    if equity is None:
        return find_margins(tables, sides, num_sides)
    return equity.estimate_after(tables)[np.arange(len(tables)), sides].astype(np.float64)
