"""Ratings of a pool with their errors, and what ratings hide: who beats whom in a circle.

A rating is for display and belongs next to the cross table. Sources: chances of winning a table by Luce (1959), which
with two sides is Bradley and Terry (1952); OpenSkill by Weng and Lin (2011); Nash averaging by Balduzzi and others
(2018); what is cyclic in pairwise margins by Jiang and others (2011).
"""

from dataclasses import dataclass

import numpy as np

ELO = 400 / np.log(10)  # Elo points in one unit of strength
_FEW = 10  # wins or losses below which an error is not believed if it is under that of the model
_MOST_STEPS = 500
_LEAST_PULL = 4.0**-15  # of the largest margin: where the averaging ends
_QUICK_PULL = 4.0**-8  # the same for resamples, good to 0.01 %


@dataclass(frozen=True)
class Strengths:
    """Strengths of agents; a side wins a table with chance exp(strength) over the sum of that over all sides.

    Attributes:
        values: float64 (agents,), with mean 0. Times `ELO` they are Elo points.
        errors: float64 (agents,), standard errors against the mean of the pool, with the games of one deal together;
            where an agent won or lost fewer than ten games, at least those of `covariance`.
        covariance: float64 (agents, agents), inverse of the Hessian, as if every game were independent.
    """

    values: np.ndarray
    errors: np.ndarray
    covariance: np.ndarray


def _sum_by_agent(agents: np.ndarray, values: np.ndarray, num_agents: int) -> np.ndarray:
    """What belongs to each agent in each game, (games, agents), of values by side, (games, sides)."""
    sums = np.zeros((len(agents), num_agents))
    np.add.at(sums, (np.arange(len(agents))[:, None], agents), values)
    return sums


def fit_strengths(agents: np.ndarray, wins: np.ndarray, num_agents: int, prior_games: float = 1.0) -> Strengths:
    """The likeliest strengths by who won.

    Args:
        agents: int64 (deals, games, sides), who each side was; the games of one deal need not be independent.
        wins: the same shape, each side's share of the win, 1 in sum.
        num_agents: how many there are.
        prior_games: games that each agent is taken to have drawn against strength 0, so that one that never wins gets
            a low strength with a large error instead of none.

    Raises:
        ValueError: if the shapes differ or the prior is not positive.
    """
    if agents.ndim != 3 or agents.shape != wins.shape:
        raise ValueError(f"agents and wins take (deals, games, sides), not {agents.shape} and {wins.shape}")
    if not prior_games > 0:
        raise ValueError(f"prior_games takes a number above 0, not {prior_games!r}")
    num_deals, _, num_sides = agents.shape
    rows = agents.reshape(-1, num_sides)
    won = _sum_by_agent(rows, wins.reshape(-1, num_sides), num_agents)
    played = np.bincount(rows.ravel(), minlength=num_agents)
    values = np.zeros(num_agents)
    for _ in range(_MOST_STEPS):
        chances = np.exp(values[rows])
        chances /= chances.sum(axis=1, keepdims=True)
        expected = _sum_by_agent(rows, chances, num_agents)
        drawn = 1 / (1 + np.exp(-values))
        hessian = np.diag(expected.sum(axis=0) + prior_games * drawn * (1 - drawn)) - expected.T @ expected
        step = np.linalg.solve(hessian, (won - expected).sum(axis=0) + prior_games * (0.5 - drawn))
        step /= max(1.0, float(np.abs(step).max()))  # Newton's, but no further than 1
        values = values + step
        if np.abs(step).max() < 1e-10:
            break
    centre = np.eye(num_agents) - 1 / num_agents
    inverse = centre @ np.linalg.inv(hessian)
    covariance = inverse @ centre
    errors = np.sqrt(np.diag(covariance))
    if num_deals > 1:
        slopes = (won - expected).reshape(num_deals, -1, num_agents).sum(axis=1)
        pulls = slopes @ inverse.T  # squared one by one: a product of matrices can round below 0
        of_deals = np.sqrt((pulls**2).sum(axis=0) * num_deals / (num_deals - 1))
        total = won.sum(axis=0)
        is_few = np.minimum(total, played - total) < _FEW
        errors = np.where(is_few, np.maximum(errors, of_deals), of_deals)
    return Strengths(values - values.mean(), errors, covariance)


def rate_openskill(agents: np.ndarray, scores: np.ndarray, num_agents: int) -> np.ndarray | None:
    """OpenSkill's Plackett-Luce ratings, float64 (agents, 2): mu and sigma; None if the package is not installed.

    The agents do not change, so their uncertainty does not grow (tau 0). Games are taken one after another and as
    independent, so sigma follows the package's own rule and not the deals, and the order of the games tells a little.

    Args:
        agents: int64 (..., sides), who each side was in each game.
        scores: the same shape, higher is better, equal is equal.
        num_agents: how many there are.
    """
    try:
        from openskill.models import PlackettLuce
    except ImportError:
        return None
    model = PlackettLuce(tau=0.0)
    ratings = [model.rating() for _ in range(num_agents)]
    num_sides = agents.shape[-1]
    games = zip(agents.reshape(-1, num_sides).tolist(), (-scores).reshape(-1, num_sides).tolist(), strict=True)
    for row, ranks in games:
        rated = model.rate([[ratings[agent]] for agent in row], ranks=ranks)
        for agent in set(row):
            own = [rated[side][0] for side in range(num_sides) if row[side] == agent]
            mu, sigma = (sum(getattr(one, name) for one in own) / len(own) for name in ("mu", "sigma"))
            ratings[agent] = model.rating(mu=mu, sigma=sigma)
    return np.array([(rating.mu, rating.sigma) for rating in ratings])


def average_nash(margins: np.ndarray, least_pull: float = _LEAST_PULL) -> np.ndarray:
    """The Nash equilibrium of the highest entropy in the game "choose an agent", float64 (agents,), 1 in sum.

    It is the limit of the equilibria in which everyone is drawn to the even mix, as that pull goes to 0; each of
    those solves mix = softmax(margins @ mix / pull), by Newton's method from the one before.

    Args:
        margins: float64 (agents, agents), antisymmetric: what the row's agent gains against the column's.
        least_pull: where to end, as a share of the largest margin.
    """
    scale = float(np.abs(margins).max(initial=0))
    num_agents = len(margins)
    weights = np.zeros(num_agents)
    if scale == 0:
        return np.full(num_agents, 1 / num_agents)
    game = margins / scale

    def mix(weights: np.ndarray) -> np.ndarray:
        chances = np.exp(weights - weights.max())
        return chances / chances.sum()

    pull = 1.0
    while pull >= least_pull:
        for _ in range(100):
            chances = mix(weights)
            miss = weights - game @ chances / pull
            size = float(np.abs(miss).max())
            if size < 1e-9 + 1e-12 / pull:
                break
            turn = game @ (np.diag(chances) - np.outer(chances, chances)) / pull
            step = np.linalg.solve(np.eye(num_agents) - turn, -miss)
            length = 1.0
            while length > 1e-6:
                new = weights + length * step
                if np.linalg.norm(new - game @ mix(new) / pull) < (1 - length / 4) * np.linalg.norm(miss):
                    break
                length /= 2
            weights = weights + length * step
        pull /= 4
    return mix(weights)


def split_cycles(margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Antisymmetric margins, (..., agents, agents), as differences of ratings, (..., agents), and the cyclic rest.

    The ratings are the least-squares ones; with every pair played they are the means of the rows.
    """
    ratings = margins.mean(axis=-1)
    return ratings, margins - (ratings[..., :, None] - ratings[..., None, :])


@dataclass(frozen=True)
class Game:
    """Pairwise margins seen as a game.

    Attributes:
        nash: float64 (agents,), the mix of agents that none beats (see `average_nash`).
        nash_low: lower ends of its 95 % intervals, by resampling the deals.
        nash_high: upper ends.
        skill: float64 (agents,), what each gains against that mix: 0 for those in it, below 0 for the others.
        ratings: float64 (agents,), the least-squares ratings.
        cyclic_share: share of the sum of squared margins that no ratings explain.
        cyclic_corrected: the same, both sums less what chance adds to them on average; within 0 to 1.
    """

    nash: np.ndarray
    nash_low: np.ndarray
    nash_high: np.ndarray
    skill: np.ndarray
    ratings: np.ndarray
    cyclic_share: float
    cyclic_corrected: float


def analyse_game(samples: np.ndarray, num_resamples: int = 200) -> Game:
    """The game behind margins that were measured deal by deal.

    With more than two sides "row against column" is half of what the row gains among columns less what the column
    gains among rows.

    Args:
        samples: float64 (deals, agents, agents), at least 2 deals: the margin of the row among columns.
        num_resamples: how often the deals are drawn again for the intervals.
    """
    num_deals, num_agents, _ = samples.shape
    samples = (samples - samples.swapaxes(1, 2)) / 2
    margins = samples.mean(axis=0)
    nash = average_nash(margins)
    ratings, rest = split_cycles(margins)
    chance = [float(part.var(axis=0, ddof=1).sum()) / num_deals for part in (split_cycles(samples)[1], samples)]
    rest_size, whole_size = float(np.square(rest).sum()), float(np.square(margins).sum())
    real_rest, real_whole = rest_size - chance[0], whole_size - chance[1]
    draws = np.random.default_rng(0).multinomial(num_deals, np.full(num_deals, 1 / num_deals), num_resamples)
    again = (draws / num_deals) @ samples.reshape(num_deals, -1)
    mixes = np.array([average_nash(one, _QUICK_PULL) for one in again.reshape(num_resamples, num_agents, num_agents)])
    low, high = np.quantile(mixes, (0.025, 0.975), axis=0)
    return Game(
        nash=nash,
        nash_low=low,
        nash_high=high,
        skill=margins @ nash,
        ratings=ratings,
        cyclic_share=rest_size / whole_size if whole_size > 0 else 0.0,
        cyclic_corrected=min(1.0, max(0.0, real_rest) / real_whole) if real_whole > 0 else 0.0,
    )
