"""Ratings: known strengths are found again with honest errors, and the games behind margins are solved."""

import builtins
from itertools import combinations

import numpy as np
import pytest

from agents.arena.ratings import ELO, analyse_game, average_nash, fit_strengths, rate_openskill, split_cycles

STRENGTHS = np.array([0.8, 0.3, 0.0, -0.4, -0.7])
CIRCLE = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]], float)


def draw_games(rng, strengths, num_deals, num_sides, copies=1):
    """Random tables and winners by Luce's chances, (deals, copies, sides): all games of one deal are the same."""
    agents = np.array([rng.permutation(len(strengths))[:num_sides] for _ in range(num_deals)])
    chances = np.exp(strengths[agents])
    chances /= chances.sum(axis=1, keepdims=True)
    winners = (rng.random((num_deals, 1)) > chances.cumsum(axis=1)).sum(axis=1)
    wins = (np.arange(num_sides) == winners[:, None]).astype(float)
    return np.repeat(agents[:, None], copies, 1), np.repeat(wins[:, None], copies, 1)


@pytest.mark.parametrize("num_sides", [2, 3, 4])
def test_known_strengths_are_found_with_honest_errors(num_sides):
    rng = np.random.default_rng(num_sides)
    misses = []
    for _ in range(60):
        found = fit_strengths(*draw_games(rng, STRENGTHS, 400, num_sides), 5)
        assert found.values.mean() == pytest.approx(0)
        assert found.errors == pytest.approx(np.sqrt(np.diag(found.covariance)), rel=0.25)
        misses.append((found.values - STRENGTHS) / found.errors)
    assert np.abs(np.mean(misses)) < 0.25
    assert 0.85 < np.std(misses) < 1.15
    assert 0.91 < np.mean(np.abs(misses) < 1.96) <= 0.99


def test_elo_is_that_of_the_textbook():
    agents = np.tile([0, 1], (400, 1, 1))
    wins = np.where(np.arange(400)[:, None, None] < 304, [[1.0, 0.0]], [[0.0, 1.0]])
    found = fit_strengths(agents, wins, 2, prior_games=1e-6)
    assert ELO * (found.values[0] - found.values[1]) == pytest.approx(400 * np.log10(304 / 96))
    between = found.covariance[0, 0] + found.covariance[1, 1] - 2 * found.covariance[0, 1]
    assert between == pytest.approx(1 / (400 * 0.76 * 0.24))


def test_games_of_one_deal_are_taken_together():
    agents, wins = draw_games(np.random.default_rng(1), STRENGTHS, 500, 4)
    once, often = (fit_strengths(agents.repeat(n, 1), wins.repeat(n, 1), 5, 1e-6) for n in (1, 9))
    assert often.values == pytest.approx(once.values, abs=1e-4)
    assert often.errors == pytest.approx(once.errors, rel=1e-3)
    assert often.covariance == pytest.approx(once.covariance / 9, rel=1e-3)


def test_one_that_never_wins_gets_a_low_strength_with_a_large_error():
    agents, wins = draw_games(np.random.default_rng(2), np.array([0.0, 0.0, -50.0]), 300, 2)
    found = fit_strengths(agents, wins, 3)
    assert np.isfinite(found.values).all()
    assert found.values[2] < -3
    assert found.errors[2] > 0.5 > found.errors[0]


def test_an_agent_may_sit_at_a_table_twice_and_shared_wins_count():
    agents = np.array([[[0, 0, 1, 1]]] * 50)
    wins = np.array([[[0.5, 0.5, 0, 0]], [[0, 0, 0.5, 0.5]]] * 25)
    found = fit_strengths(agents, wins, 2)
    assert found.values == pytest.approx([0, 0], abs=1e-9)
    assert rate_openskill(agents, wins, 2)[:, 0] == pytest.approx([25, 25], abs=1)


def test_openskill_sees_the_order_and_its_sigma_shrinks():
    agents, wins = draw_games(np.random.default_rng(3), STRENGTHS, 600, 4)
    found = rate_openskill(agents, wins, 5)
    assert found.shape == (5, 2)
    assert found[:, 0].argsort()[::-1].tolist() == [0, 1, 2, 3, 4]
    assert (found[:, 1] < 25 / 3 / 2).all()
    assert (rate_openskill(agents, wins, 5) == found).all()


def test_openskill_may_be_missing(monkeypatch):
    real = builtins.__import__

    def refuse(name, *rest, **more):
        if name.startswith("openskill"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert rate_openskill(np.array([[0, 1]]), np.array([[1, 0]]), 2) is None


def test_nash_of_games_that_are_known():
    assert average_nash(CIRCLE) == pytest.approx(np.full(3, 1 / 3))
    copies = CIRCLE[np.ix_([0, 0, 1, 2], [0, 0, 1, 2])]
    assert average_nash(copies) == pytest.approx([1 / 6, 1 / 6, 1 / 3, 1 / 3])
    ladder = np.subtract.outer([0.3, 0.2, -0.5], [0.3, 0.2, -0.5])
    assert average_nash(ladder) == pytest.approx([1, 0, 0])
    assert average_nash(np.zeros((4, 4))) == pytest.approx(np.full(4, 0.25))
    tied = np.array([[0, 0, 1], [0, 0, 1], [-1, -1, 0]], float)
    assert average_nash(tied) == pytest.approx([0.5, 0.5, 0])  # the most even of many
    lopsided = np.array([[0, -1, 3], [1, 0, -2], [-3, 2, 0]], float)
    assert average_nash(lopsided) == pytest.approx(np.array([2, 3, 1]) / 6)
    assert average_nash(1e-6 * lopsided) == pytest.approx(np.array([2, 3, 1]) / 6)


def test_nobody_beats_the_nash_mix():
    rng = np.random.default_rng(4)
    for number in range(60):
        size = rng.integers(2, 11)
        margins = rng.normal(size=(size, size)) + 2 * (number % 3) * np.arange(size)[:, None]
        if number % 2:
            margins = np.sign(margins.round())
        margins = margins - margins.T
        mix = average_nash(margins)
        assert mix.min() >= 0
        assert mix.sum() == pytest.approx(1)
        assert (margins @ mix).max() <= 1e-8 * np.abs(margins).max()


def test_cycles_are_what_ratings_leave_over():
    ladder = np.subtract.outer(STRENGTHS, STRENGTHS)
    ratings, rest = split_cycles(ladder)
    assert ratings == pytest.approx(STRENGTHS - STRENGTHS.mean())
    assert rest == pytest.approx(np.zeros((5, 5)))
    ratings, rest = split_cycles(CIRCLE)
    assert ratings == pytest.approx(np.zeros(3))
    assert rest == pytest.approx(CIRCLE)
    mixed = CIRCLE + np.subtract.outer([1, 0, -1], [1, 0, -1])
    assert split_cycles(np.stack([mixed, CIRCLE]))[1] == pytest.approx(np.stack([CIRCLE, CIRCLE]))


def test_games_measured_with_noise():
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(400, 3, 3))
    found = analyse_game(0.5 * CIRCLE + noise)
    assert found.cyclic_share > 0.9
    assert (found.nash_low < 1 / 3).all()
    assert (found.nash_high > 1 / 3).all()
    assert (found.nash_high - found.nash_low < 0.7).all()
    assert (found.skill <= 1e-9).all()
    ladder = np.subtract.outer(STRENGTHS, STRENGTHS)
    shares = [analyse_game(0.2 * ladder + rng.normal(size=(50, 5, 5)), num_resamples=2) for _ in range(40)]
    assert np.mean([one.cyclic_share for one in shares]) > 0.1  # chance looks like cycles
    assert np.mean([one.cyclic_corrected for one in shares]) < 0.1
    assert found.nash.tolist() == analyse_game(0.5 * CIRCLE + noise).nash.tolist()


def test_a_pool_of_equals_has_no_cycles():
    found = analyse_game(np.zeros((10, 3, 3)))
    assert found.cyclic_share == found.cyclic_corrected == 0
    assert found.nash == pytest.approx(np.full(3, 1 / 3))


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match=r"agents and wins take \(deals, games, sides\)"):
        fit_strengths(np.zeros((3, 2), int), np.zeros((3, 2)), 2)
    with pytest.raises(ValueError, match="prior_games takes a number above 0"):
        fit_strengths(np.zeros((3, 1, 2), int), np.zeros((3, 1, 2)), 2, 0)


def test_the_same_in_every_deal_leaves_no_error_below_zero():
    pairs = np.array(list(combinations(range(5), 2)))
    for num_deals in range(2, 40):
        agents = np.broadcast_to(pairs, (num_deals, *pairs.shape))
        wins = np.broadcast_to([1.0, 0.0], agents.shape)  # the earlier always beats the later
        errors = fit_strengths(agents, wins, 5).errors
        assert np.isfinite(errors).all()
        assert errors == pytest.approx(errors[::-1])
