"""Means of independent values with honest intervals, by Student's t."""

import math
from statistics import NormalDist

import numpy as np

Z = NormalDist().inv_cdf(0.975)
_FEW_T = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622)  # 97.5 % quantiles of 1-9 degrees
NO_MARGIN = 1e-12  # what is left of a mean of 0 by rounding
_MANY = 10_000  # deals from which Student's t asks for 3 more than the normal distribution


def find_t_quantile(degrees: int) -> float:
    """The 97.5 % quantile of Student's t, to four digits (a table to 9 degrees, then Fisher's expansion)."""
    if degrees <= len(_FEW_T):
        return _FEW_T[degrees - 1]
    terms = (
        (Z**3 + Z) / 4,
        (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96,
        (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384,
        (79 * Z**9 + 776 * Z**7 + 1482 * Z**5 - 1920 * Z**3 - 945 * Z) / 92160,
    )
    return Z + sum(term / degrees ** (order + 1) for order, term in enumerate(terms))


def estimate_mean(values: np.ndarray) -> tuple[float, float]:
    """Mean of independent values, (n,) with n >= 2, and half the width of its 95 % interval."""
    spread = float(values.std(ddof=1))
    return float(values.mean()), find_t_quantile(len(values) - 1) * spread / math.sqrt(len(values))


def estimate_share(shares: np.ndarray) -> tuple[float, float, float]:
    """Mean of independent shares, (n,) with n >= 2, and its 95 % interval, within 0 to 1.

    Where every share is 0, or 1, and so none shows a spread, the interval is that of n of n equal trials.
    """
    mean, half = estimate_mean(shares)
    if mean in (0.0, 1.0):
        certain = 0.025 ** (1 / len(shares))
        return (0.0, 0.0, 1 - certain) if mean == 0 else (1.0, certain, 1.0)
    return mean, max(0.0, mean - half), min(1.0, mean + half)


def count_deals_needed(margins: np.ndarray, wider: float = 1.0) -> int | None:
    """How many deals make the half-width smaller than the margin, judged by the margins of some, (n,) with n >= 2.

    Args:
        margins: of the deals played.
        wider: how many times as wide as usual the interval is.
    """
    margin, spread = abs(float(margins.mean())), wider * float(margins.std(ddof=1))
    if margin < NO_MARGIN:
        return None
    needed = max(2, int((Z * spread / margin) ** 2))  # by the normal distribution, just below
    if needed > _MANY:
        return needed + 3
    while find_t_quantile(needed - 1) * spread / math.sqrt(needed) >= margin:
        needed += 1
    return needed


def compare_variances(hands: np.ndarray) -> float | None:
    """How many times the variance of a mean of single hands is that of duplicate deals, with as many hands in all.

    Args:
        hands: margin of each hand, (n, hands a deal) with n >= 2.

    Returns:
        None if the means of the deals do not vary at all.
    """
    duplicate = hands.shape[1] * float(hands.mean(axis=1).var(ddof=1))
    return float(hands.var()) / duplicate if duplicate > NO_MARGIN else None
