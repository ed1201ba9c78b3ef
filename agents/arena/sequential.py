"""Looking at a measurement while it runs without being fooled by it: a group-sequential rule (Lan and DeMets 1983).

Looks are planned beforehand, each after twice as many deals as the one before. Together they may be wrong in 5 % of
measurements of equal agents; how much of that is spent up to each look follows the spending function
0.05 ln(1 + (e - 1) t), t being the share of the deals played (Pocock's kind). The interval of a look is as much wider
as that takes, so all intervals of one measurement hold together with 95 % (repeated intervals, Jennison and Turnbull
1989), also the one at which it stops. Means of deals are taken to be normal, which 100 deals make good.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

ALPHA = 0.05
MOST_LOOKS = 5
FEWEST_DEALS = 100  # at the first look

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(128)
_WIDEST = 10.0  # standard errors, which no bound reaches
_erfc = np.vectorize(math.erfc)


def plan_looks(num_deals: int) -> list[int]:
    """Numbers of deals at which to look: the last is all of them, the others half of the next."""
    looks = [num_deals]
    while len(looks) < MOST_LOOKS and looks[0] // 2 >= FEWEST_DEALS:
        looks.insert(0, looks[0] // 2)
    return looks


def spend(share: float) -> float:
    """Chance of a false alarm that may be spent until a share of the deals is played."""
    return ALPHA * math.log(1 + (math.e - 1) * share)


def find_bounds(shares: Sequence[float], spent: Sequence[float] | None = None) -> list[float]:
    """How many standard errors the mean must be off 0 at each look.

    Args:
        shares: of the deals played at each look, rising to 1.
        spent: chance of a false alarm up to each look; None for `spend`.
    """
    spent = [spend(share) for share in shares] if spent is None else spent
    # the sum of the deals so far as Brownian motion at time `share`: its density where no bound was crossed before
    bounds = [NormalDist().inv_cdf(1 - spent[0] / 2)]
    places, density = np.zeros(1), np.ones(1)
    before = 0.0
    for index, share in enumerate(shares):
        spread = math.sqrt(share - before)
        if index:
            bounds.append(_solve_bound(places, density, spread, math.sqrt(share), spent[index] - spent[index - 1]))
        edge = bounds[index] * math.sqrt(share)
        nodes = edge * _NODES
        steps = np.exp(-0.5 * np.square((nodes[:, None] - places) / spread)) / (spread * math.sqrt(2 * math.pi))
        places, density, before = nodes, edge * _WEIGHTS * (steps @ density), share
    return bounds


def _solve_bound(places: np.ndarray, density: np.ndarray, spread: float, scale: float, chance: float) -> float:
    """The bound that is crossed with a chance, by halving; `density` holds the weights of the places."""
    low, high = 0.0, _WIDEST
    for _ in range(50):
        middle = (low + high) / 2
        edge = middle * scale
        above = _erfc((edge - places) / (spread * math.sqrt(2))) + _erfc((edge + places) / (spread * math.sqrt(2)))
        if 0.5 * float(density @ above) > chance:
            low = middle
        else:
            high = middle
    return (low + high) / 2
