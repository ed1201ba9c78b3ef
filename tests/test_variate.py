"""The control variate: no bias, honest intervals, and the variance it saves where that is known."""

import json

import numpy as np
import pytest
import torch

from agents.arena import play_duplicate
from agents.arena.__main__ import main
from agents.arena.variate import correct, count_fewest_deals, count_fresh, describe_deals, measure_variate
from agents.critic import CRITIC_FILE, Critic, write_critic
from agents.network import new_critic
from agents.rule_bots import AlphonsoAgent, BabyAgent
from pitch_env import Rules
from pitch_env.engine import new_tables

MARGIN = 0.3
WEIGHTS = np.array([[2.0, 1.0], [0.0, -1.0], [1.0, 0.0]])  # of three features at two places


def draw(rng, num_deals, noise=1.0, num_fresh=4000):
    """Hands whose luck is linear in features that are skewed, some of it the same at both places."""
    known, fresh = (rng.exponential(size=(number, 3)) for number in (num_deals, num_fresh))
    hands = MARGIN + (known - 1) @ WEIGHTS + noise * rng.normal(size=(num_deals, 2))
    return hands, known, fresh


def test_what_is_taken_off_a_deal_does_not_depend_on_its_margin():
    hands, known, fresh = draw(np.random.default_rng(0), 60)
    before, _ = correct(hands, known, fresh.mean(axis=0))
    for deal in (0, 17, 59):
        other = hands.copy()
        other[deal] += 5
        after, _ = correct(other, known, fresh.mean(axis=0))
        assert after[deal] == pytest.approx(before[deal] + 5)
        assert np.abs(after - before).max(axis=1).sum() > 5.01  # the weights of other deals did change


def test_intervals_hold_the_margin_in_95_of_100():
    rng = np.random.default_rng(1)
    found = [measure_variate(*draw(rng, 100, num_fresh=400)) for _ in range(1500)]  # so few that their error counts
    assert np.mean([one.low < MARGIN < one.high for one in found]) == pytest.approx(0.95, abs=0.015)
    margins = np.array([one.margin for one in found])
    assert margins.mean() == pytest.approx(MARGIN, abs=4 * margins.std() / 1500**0.5)


def test_the_variance_saved_is_what_the_luck_made():
    found = measure_variate(*draw(np.random.default_rng(2), 20_000, num_fresh=500_000))
    # plain hands vary by 1, and by 5 or 2 of luck; with the variate a 25th of the mean weights' 2.75 is left of that
    plain, left = 1 + (5 + 2) / 2, 2.75 / 25
    assert found.plain_ratio == pytest.approx(plain / (1 + left), rel=0.03)
    assert found.ratio == pytest.approx(plain / (2 * (1 / 2 + left)), rel=0.03)
    none = measure_variate(*draw(np.random.default_rng(2), 20_000, noise=100.0, num_fresh=500_000))
    assert none.plain_ratio == pytest.approx(1, abs=0.01)


def new_fitting_critic(rules):
    torch.manual_seed(0)
    return Critic(rules, new_critic(rules.num_players, (8, 8), True).eval())


@pytest.mark.parametrize("rules", [Rules(), Rules(teams=True), Rules(num_players=2)], ids=str)
def test_an_agent_among_copies_of_itself_stays_exactly_equal(rules):
    result = play_duplicate(BabyAgent(), BabyAgent(), rules, 200, 0, critic=new_fitting_critic(rules))
    assert result.variate["margin"] == pytest.approx(0, abs=1e-12)
    assert result.variate["ratio"] is None
    assert result.variate["plain_ratio"] > 0


def test_plain_numbers_stay_and_luck_is_that_of_the_deals_played():
    rules, critic = Rules(num_players=3), new_fitting_critic(Rules(num_players=3))
    plain = play_duplicate(BabyAgent(), AlphonsoAgent(), rules, 300, 4, 5).to_dict()
    result = play_duplicate(BabyAgent(), AlphonsoAgent(), rules, 300, 4, 5, critic=critic, chunk_tables=50).to_dict()
    variate = result.pop("variate")
    del plain["variate"]
    assert result == plain
    assert result["low"] < variate["margin"] < result["high"]
    again = play_duplicate(BabyAgent(), AlphonsoAgent(), rules, 300, 4, 5, critic=critic).to_dict()
    assert again["variate"] == variate


def test_features_are_values_and_their_products():
    critic = new_fitting_critic(Rules())
    tables = new_tables(Rules(), 3, 5)
    values = critic.value_deals(tables)
    features = describe_deals(critic, tables)
    assert features.shape == (5, 14)
    assert (features[:, :4] == values).all()
    assert {round(float(number), 9) for number in features[0, 4:]} == {
        round(float(one * other), 9) for one in values[0] for other in values[0]
    }
    assert count_fewest_deals(4) == 140
    assert count_fresh(100) == 50_000
    assert count_fresh(10_000) == 250_000


@pytest.fixture
def critic_path(tmp_path):
    network = new_fitting_critic(Rules()).network
    write_critic(tmp_path / CRITIC_FILE, Rules(), (8, 8), True, network.state_dict())
    return str(tmp_path)


def test_the_command_line_shows_it(critic_path, capsys):
    command = ["match", "baby", "alphonso", "--deals", "150", "--matches", "0", "--critic", critic_path]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("luck taken out: ") for line in lines)
    assert any(line.startswith("with the critic: plain hands have a variance ") for line in lines)
    assert main([*command, "--json"]) == 0
    values = json.loads(capsys.readouterr().out)["variate"]
    assert values["low"] < values["margin"] < values["high"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (["--deals", "139"], "with a critic num_deals takes a whole number from 140 up, or 0, not 139"),
        (["--until-clear"], "do not go together"),
        (["--target", "9"], "trained for other rules"),
    ],
)
def test_what_does_not_fit_is_refused(critic_path, changes, reason, capsys):
    assert main(["match", "baby", "alphonso", "--deals", "200", "--critic", critic_path, *changes]) == 2
    assert reason in capsys.readouterr().err
