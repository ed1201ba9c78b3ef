"""The luck of the deal taken out of margins: a control variate from a critic that sees all cards.

The critic values the hands of a deal before anyone plays. How those values are spread over deals is known to a far
smaller error than any margin, from many fresh deals that are valued and not played. A margin less b times (the values
of its deal - their mean) has the expectation of the margin, for any b that does not come from the deal itself; b is
fitted by least squares on other deals (cross-fitting), so no bias enters. This is the term for chance of AIVAT (Burch,
Schmid, Moravcik, Morrill and Bowling, AAAI 2018), with fitted weights. AIVAT's terms for decisions are 0 for agents
that always decide alike, as bots and greedy policies do, and are left out for others.
"""

import math
from dataclasses import dataclass

import numpy as np

from agents.arena.estimates import NO_MARGIN, find_t_quantile
from agents.critic import Critic

NUM_FRESH = 25  # fresh deals for each that is played: what is left of the deals' luck is a 25th of what was taken out
_FEWEST_FRESH = 50_000
_FOLDS = 5
_DEALS_PER_FEATURE = 10


@dataclass(frozen=True)
class Variate:
    """Margins with the luck of the deal taken out.

    Attributes:
        margin, low, high: the mean, and its 95 % interval, the error of the fresh deals included.
        plain_ratio: how many times the variance of plain hands is that of plain hands with the variate.
        ratio: how many times it is that of duplicate deals with the variate, with as many hands. Either ratio is None
            if what it divides by is 0.
    """

    margin: float
    low: float
    high: float
    plain_ratio: float | None
    ratio: float | None


def count_fresh(num_deals: int) -> int:
    """Fresh deals to value when so many are played."""
    return max(NUM_FRESH * num_deals, _FEWEST_FRESH)


def count_fewest_deals(num_players: int) -> int:
    """Deals below which the weights cannot be fitted."""
    return _DEALS_PER_FEATURE * (num_players + num_players * (num_players + 1) // 2)


def describe_deals(critic: Critic, tables: np.ndarray) -> np.ndarray:
    """What the variate knows of deals, (N,): values of the seats by turn to bid, and their products, (N, features)."""
    values = critic.value_deals(tables)
    return np.concatenate([values, *(values[:, i:] * values[:, i : i + 1] for i in range(values.shape[1]))], axis=1)


def correct(hands: np.ndarray, known: np.ndarray, fresh: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Take out of margins what their deals explain.

    Args:
        hands: margins, float64 (deals, places), the places in the order of bidding.
        known: what is known of these deals, float64 (deals, features).
        fresh: the mean of that over fresh deals, (features,).

    Returns:
        The margins corrected, of the same shape, and the mean weights, (features, places).
    """
    luck = known - fresh
    folds = np.arange(len(hands)) % _FOLDS
    corrected, weights = np.empty_like(hands), []
    for fold in range(_FOLDS):
        is_own = folds == fold
        others = np.column_stack([np.ones((~is_own).sum()), luck[~is_own]])
        weights.append(np.linalg.lstsq(others, hands[~is_own], rcond=None)[0][1:])
        corrected[is_own] = hands[is_own] - luck[is_own] @ weights[-1]
    return corrected, np.mean(weights, axis=0)


def measure_variate(hands: np.ndarray, known: np.ndarray, fresh: np.ndarray) -> Variate:
    """Margins with the luck taken out; arguments as of `correct`, but `fresh` is (fresh deals, features)."""
    num_deals, num_places = hands.shape
    corrected, weights = correct(hands, known, fresh.mean(axis=0))
    mean_weights = weights.mean(axis=1)
    left = float(mean_weights @ np.cov(fresh, rowvar=False) @ mean_weights) * num_deals / len(fresh)
    spread = float(corrected.mean(axis=1).var(ddof=1)) + left
    margin = float(corrected.mean())
    half = find_t_quantile(num_deals - 1) * math.sqrt(spread / num_deals)
    plain, *with_variate = (float(hands.var()), float(corrected.var()) + left, num_places * spread)
    ratios = (plain / variance if variance > NO_MARGIN else None for variance in with_variate)
    return Variate(margin, margin - half, margin + half, *ratios)
