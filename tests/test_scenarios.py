"""Scenarios: a well-formed file, answers that open cards bear out, and what the shipped bots make of them."""

import json

import numpy as np
import pytest
import torch
import yaml

from agents import has_trained, load
from agents.arena.__main__ import main
from agents.arena.scenarios import FILE, ask, find_chances, read_scenario, read_scenarios
from agents.policy import PolicyAgent, PolicySpec, write_policy
from agents.rule_bots import TricksterAgent
from agents.search.objective import find_margins
from agents.search.pimc import play_on
from agents.search.solver import solve_many, solve_max_n_many
from agents.search.worlds import sample_worlds
from pitch_env import Rules
from pitch_env.cards import CARD_ACTION, NUM_ACTIONS, action_name
from pitch_env.engine import apply, legal_mask
from pitch_env.table import AUCTION, NOBODY, PLAY
from pitch_env.view import view_from_dict, view_to_dict

SCENARIOS = read_scenarios()
WORLDS = 64
TOLERANCE = 0.1  # points a hand that sampling and the reading of best play may be off

MOST_MAX_N = 16  # cards held up to which every player may be taken to play for itself
MOST_SOLVED = 25


def legal_actions(view):
    return [action for action in range(NUM_ACTIONS) if legal_mask(view) >> action & 1]


def play_out(worlds, action):
    """The tables after an action when a rule-based bot goes on from there."""
    tables = worlds.copy()
    for index in range(len(tables)):
        apply(tables[index : index + 1], action)
    play_on(tables, TricksterAgent(courage=0.5), (AUCTION, PLAY))
    return tables


def value_actions(view):
    """Mean margin of each legal action over sampled worlds: cards by best play, bids by games of a rule-based bot."""
    seat, num_players, num_sides = (int(view[name][0]) for name in ("seat", "num_players", "num_sides"))
    side, actions = seat % num_sides, legal_actions(view)
    worlds = sample_worlds(view, WORLDS, 1)
    held = num_players * int(view["hand_size"][0]) - int(view["num_plays"][0])
    if view["phase"][0] == AUCTION or held > MOST_SOLVED:
        return {action: float(find_margins(play_out(worlds, action), side, num_sides).mean()) for action in actions}
    if num_sides > 2 and held <= MOST_MAX_N:
        values = solve_max_n_many(worlds)[:, :, side]
    else:
        values = solve_many(worlds) * (1 if int(view["pitcher"][0]) % num_sides == side else -1)
    return {action: float(values[:, action - CARD_ACTION].mean()) for action in actions}


def test_there_are_many_and_they_differ():
    assert len(SCENARIOS) >= 40
    assert {scenario.rules.num_players for scenario in SCENARIOS} == set(range(2, 8))
    assert any(scenario.rules.teams for scenario in SCENARIOS)
    assert any(scenario.rules.low_point == "holder" for scenario in SCENARIOS)
    assert any(scenario.view["scores"].any() for scenario in SCENARIOS)
    assert sum(scenario.view["phase"][0] == AUCTION for scenario in SCENARIOS) >= 15
    assert sum(scenario.view["phase"][0] == PLAY for scenario in SCENARIOS) >= 25
    assert sum(scenario.is_judgement for scenario in SCENARIOS) <= len(SCENARIOS) // 4


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_position_can_be_reached_and_is_open(scenario):
    view = scenario.view
    assert (view_from_dict(view_to_dict(view)) == view).all()  # replayed by the rules, card by card
    assert view["seat"][0] == view["viewer"][0]
    assert len(sample_worlds(view, 2, 0)) == 2  # the hidden cards can be dealt
    assert scenario.best < set(legal_actions(view))
    assert scenario.why.endswith(".")


@pytest.mark.parametrize(
    "scenario", [item for item in SCENARIOS if not item.is_judgement], ids=lambda scenario: scenario.name
)
def test_the_best_action_is_best_with_open_cards(scenario):
    means = value_actions(scenario.view)
    text = ", ".join(f"{action_name(action)} {mean:+.2f}" for action, mean in means.items())
    most = max(means.values())
    assert max(means[action] for action in scenario.best) >= most - TOLERANCE, text
    assert all(means[action] < most for action in scenario.bad), text


@pytest.mark.parametrize("scenario", [item for item in SCENARIOS if item.is_judgement], ids=lambda item: item.name)
def test_where_the_score_decides_the_best_bid_wins_most_matches(scenario):
    """These are not about points: a match won in this hand counts 1, a lost one 0, an open one an equal share."""
    view = scenario.view
    assert view["phase"][0] == AUCTION
    assert view["scores"].any()
    side, num_sides = int(view["seat"][0] % view["num_sides"][0]), int(view["num_sides"][0])
    worlds = sample_worlds(view, WORLDS, 1)
    means = {}
    for action in legal_actions(view):
        winners = play_out(worlds, action)["winner"]
        means[action] = float(np.where(winners == NOBODY, 1 / num_sides, winners == side).mean())
    text = ", ".join(f"{action_name(action)} {mean:.2f}" for action, mean in means.items())
    assert max(means[action] for action in scenario.best) == max(means.values()), text
    assert all(means[action] < max(means.values()) for action in scenario.bad), text


GOOD = {
    "name": "a name",
    "theme": "two",
    "why": "It is so.",
    "dealer": 3,
    "bids": [2, "pass", "pass", "pass"],
    "tricks": ["KS 5S 3S 8S", "9C QC 4C 7C", "9H 3H 5H"],
    "hand": "AS 6H 8D 2D",
    "best": ["6H"],
}


def test_a_scenario_is_read():
    scenario = read_scenario({**GOOD, "scores": [1, 2, 3, 4], "bad": ["AS"], "rules": {"target": 11}})
    view = view_to_dict(scenario.view)
    assert (view["seat"], view["pitcher"], view["bid"], view["trump"]) == (0, 0, 2, "S")
    assert [trick["leader"] for trick in view["tricks"]] == [0, 0, 1]
    assert sorted(view["hand"]) == sorted(["AS", "6H", "8D", "2D"])
    assert view["scores"] == [1, 2, 3, 4]
    assert scenario.rules == Rules(target=11)
    assert not scenario.is_judgement


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"beste": ["6H"]}, "a name: there is no key 'beste'; known are name"),
        ({"why": None, "dealer": 9}, "a name: dealer takes a number from 0 to 3"),
        ({"best": ["8D"]}, "a name: play 8D is not legal"),
        ({"best": []}, "best takes some"),
        ({"best": ["6H", "AS"]}, "best takes some, but not all"),
        ({"bad": ["6H"]}, "none that is bad"),
        ({"best": ["bid 7"]}, "a name: 'bid 7' is no action"),
        ({"hand": "AS 6H 8D"}, "a name: dealt takes 6 different cards"),
        ({"hand": "AS 6H 8D QC"}, "a name: another seat plays QC"),
        ({"bids": [2, 2, "pass", "pass"]}, "a name: action 2"),
        ({"rules": {"players": 4}}, "a name: Rules has no field 'players'"),
        ({"scores": [0, 0]}, "a name: scores takes 4 numbers"),
        ({"judgement": "yes"}, "a name: judgement takes true or false"),
    ],
)
def test_a_wrong_scenario_is_refused_by_name(change, reason):
    with pytest.raises(ValueError, match=reason):
        read_scenario({**GOOD, **change})


def test_missing_keys_and_doubles_are_refused(tmp_path):
    for key in ("theme", "why", "dealer", "bids", "hand", "best"):
        with pytest.raises(ValueError, match=f"a name: the key '{key}' is missing"):
            read_scenario({name: value for name, value in GOOD.items() if name != key})
    for text, reason in (
        (yaml.safe_dump([GOOD, GOOD]), "two scenarios are called 'a name'"),
        ("a: 1", "scenarios are a list"),
        ("- [", "is no YAML"),
        ("- 3", "3: a scenario is a mapping"),
    ):
        path = tmp_path / "scenarios.yaml"
        path.write_text(text)
        with pytest.raises(ValueError, match=reason):
            read_scenarios(path)


@pytest.mark.parametrize(("name", "least"), [("baby", 36), ("alphonso", 39), ("trickster", 51), ("rules", 52)])
def test_what_the_bots_pass(name, least):
    """Measured counts, from below: a change of a bot may raise them."""
    outcome = ask(load(name), SCENARIOS)
    assert outcome.passed >= least, [answer.scenario for answer in outcome.answers if not answer.passed]


def test_chance_passes_few():
    assert ask(load("random"), SCENARIOS).passed < len(SCENARIOS) // 2


def new_policy(rules, is_greedy):
    torch.manual_seed(0)
    spec = PolicySpec(rules, (16, 16), rules.num_players, is_greedy=is_greedy)
    network = spec.new_network()
    torch.nn.init.normal_(network.head.weight, 0, 1)
    return PolicyAgent(spec, network, name="untrained")


def test_a_policy_is_judged_by_its_likeliest_action_under_its_own_rules():
    outcomes = [ask(new_policy(Rules(max_hands=9), is_greedy), SCENARIOS) for is_greedy in (True, False)]
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].skipped == sum(scenario.rules != Rules() for scenario in SCENARIOS) > 0
    agent = new_policy(Rules(), is_greedy=True)
    draws = new_policy(Rules(), is_greedy=False)
    for scenario in [item for item in SCENARIOS if item.rules == Rules()][::5]:
        chances = find_chances(agent, scenario.view)
        assert chances.sum() == pytest.approx(1)
        assert agent.act(scenario.view, np.zeros(1, np.uint64))[0] == chances.argmax()
        seeds = np.random.default_rng(0).integers(0, 2**64, 2000, dtype=np.uint64)
        drawn = np.bincount(draws.act(np.repeat(scenario.view, 2000), seeds), minlength=NUM_ACTIONS) / 2000
        assert np.abs(drawn - chances).max() < 0.05


def test_command_line(capsys, tmp_path):
    assert main(["scenarios", "baby", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["asked"] == len(SCENARIOS) == len(found["answers"])
    assert found["passed"] == sum(answer["passed"] for answer in found["answers"])
    assert sum(theme["asked"] for theme in found["themes"].values()) == len(SCENARIOS)
    assert found["judged_by"] == "the most frequent of 8 answers"
    assert main(["scenarios", "baby"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"baby in {len(SCENARIOS)} scenarios"
    assert f"all: {found['passed']} of {len(SCENARIOS)}" in lines
    failed = [line for line in lines if line.startswith(("failed: ", "blundered: "))]
    assert len(failed) == len(SCENARIOS) - found["passed"]
    path = tmp_path / "five.safetensors"
    agent = new_policy(Rules(num_players=5), True)
    write_policy(path, agent.spec, agent.network.state_dict())
    assert main(["scenarios", str(path), "--file", str(FILE)]) == 0
    assert "under other rules than its own left out" in capsys.readouterr().out
    assert main(["scenarios", "trained", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    own = [scenario for scenario in SCENARIOS if has_trained(scenario.rules)]
    assert [answer["scenario"] for answer in found["answers"]] == [scenario.name for scenario in own]
    assert len({scenario.rules for scenario in own}) > 4
    assert (found["skipped"], found["judged_by"]) == (len(SCENARIOS) - len(own), "its likeliest action")
    assert main(["scenarios", "baby", "--file", str(tmp_path / "none.yaml")]) == 2
    assert "none.yaml" in capsys.readouterr().err
