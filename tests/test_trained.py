"""The policies that come with the package."""

import numpy as np
import pytest

import agents
from agents.arena import play_duplicate
from agents.arena.scenarios import ask, read_scenarios
from agents.equity import EQUITY_FILE, read_equity
from pitch_env import Rules

TABLES = [*(Rules(num_players=players) for players in range(2, 8)), Rules(teams=True)]


def describe(rules: Rules) -> str:
    return "teams" if rules.teams else str(rules.num_players)


@pytest.mark.parametrize("rules", TABLES, ids=describe)
def test_each_wins_more_than_its_share(rules):
    policy = agents.load("trained", rules)
    assert policy.name == "trained"
    for name in ("rules", "alphonso"):
        result = play_duplicate(policy, agents.load(name), rules, num_deals=0, num_matches=80, seed=3)
        assert result.match_low > result.equal_share, name


@pytest.mark.parametrize("rules", TABLES, ids=describe)
def test_each_comes_with_the_equity_of_its_table(rules):
    equity = read_equity(agents.find_trained(rules) / EQUITY_FILE, rules)
    scores = np.zeros((3, rules.num_sides), np.int64)
    scores[1, 0], scores[2, 0] = 3, 6
    for dealer in range(rules.num_players):
        chances = equity.estimate(scores, np.full(3, dealer))
        assert chances.sum(1) == pytest.approx(np.ones(3), abs=1e-5)
        assert chances[0, 0] < chances[1, 0] < chances[2, 0]
        assert chances[0] == pytest.approx(np.full(rules.num_sides, 1 / rules.num_sides), abs=0.1)


def load_for(rules: Rules) -> agents.Agent | None:
    return agents.load("trained", rules) if agents.has_trained(rules) else None


def test_it_finds_what_a_decent_player_finds():
    """One position is known to be beyond it: a bidder above the target must be stopped with any hand."""
    outcome = ask(load_for, read_scenarios(), "trained")
    failed = {answer.scenario for answer in outcome.answers if not answer.passed}
    assert failed <= {"deny nine points with any hand"}
    assert (len(outcome.answers), outcome.agent) == (45, "trained")


def test_other_tables_are_refused_by_name():
    with pytest.raises(ValueError, match="target 7 against 11"):
        agents.load("trained", Rules(target=11))
