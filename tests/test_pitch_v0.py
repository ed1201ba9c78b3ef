"""The PettingZoo environment: PettingZoo's own tests over every variant, seeds, options, refusals, copies."""

import copy
import pickle
import random
import time
import warnings

import gymnasium
import numpy as np
import pettingzoo
import pytest
from helpers import VARIANTS, WORKED, name_rules

from pitch_env import Rules, pitch_v0
from pitch_env.layout import layout

with warnings.catch_warnings():  # importing PettingZoo's tests imports an environment of its own in a way it deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import api_test, performance_benchmark, render_test, seed_test

ALWAYS = (  # what api_test says of every environment with dict observations
    "ignore:Observation is not a NumPy array",
    "ignore:Observation space for each agent probably should be gymnasium.spaces.box",
)
AT_THE_END = "ignore:Action mask numpy array is all zeros"  # and of every one with a mask when its agents are dead
WRAPS = [pitch_v0.env, pitch_v0.raw_env]
SHORT = Rules(num_players=3, hand_size=2, max_hands=4)


def play(env, num_steps=10_000, choices=0):
    """Step with random legal actions; returns everything seen, the last rewards too, until all agents are gone."""
    rng = random.Random(choices)
    seen = []
    for name in env.agent_iter(num_steps):
        observation, reward, terminated, truncated, info = env.last()
        seen.append((name, observation["observation"].tobytes(), reward, terminated, truncated, info))
        is_over = terminated or truncated
        env.step(None if is_over else rng.choice(np.flatnonzero(observation["action_mask"]).tolist()))
    return seen


def run(env, seed=None, options=None, **settings):
    env.reset(seed=seed, options=options)
    return play(env, **settings)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
@pytest.mark.filterwarnings(*ALWAYS)
def test_api(rules, wrap):
    api_test(wrap(Rules.from_dict({**rules.to_dict(), "target": 1000, "max_hands": 5000})), num_cycles=60)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("reward", ["points", "match"])
@pytest.mark.filterwarnings(*ALWAYS, AT_THE_END)
def test_api_to_the_end_of_a_match(wrap, reward):
    for rules in VARIANTS:
        api_test(wrap(Rules.from_dict({**rules.to_dict(), "max_hands": 3, "target": 1}), reward=reward))


@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_seed(rules):
    for wrap in WRAPS:
        seed_test(lambda wrap=wrap: wrap(rules), num_cycles=30)


def test_render(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pytest.importorskip("pygame")
    monkeypatch.setattr("pitch_env.render.Window._wait", lambda _: None)
    for rules in (Rules(), Rules(num_players=7)):
        render_test(lambda render_mode, rules=rules: pitch_v0.env(rules, render_mode))


def test_performance_benchmark(monkeypatch, capsys):
    clock = iter(range(0, 10**6, 2))
    monkeypatch.setattr(time, "time", lambda: next(clock))
    for rules in VARIANTS:
        performance_benchmark(pitch_v0.env(rules))
    assert "Finished performance benchmark" in capsys.readouterr().out


@pytest.mark.slow
def test_performance_benchmark_for_real(capsys):
    performance_benchmark(pitch_v0.env())
    assert float(capsys.readouterr().out.split("\n")[1].split()[0]) > 200  # turns a second


def test_registry():
    env = pettingzoo.make("aec", "pitch/pitch-v0", rules=Rules(num_players=3), reward="match")
    assert env.unwrapped.rules == Rules(num_players=3)
    assert env.unwrapped.reward == "match"
    assert str(env.unwrapped) == "pitch_v0"
    env.reset(seed=1)
    other = pitch_v0.env(Rules(num_players=3))
    other.reset(seed=1)
    assert (env.last()[0]["observation"] == other.last()[0]["observation"]).all()


@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_spaces_hold_every_observation(rules):
    env = pitch_v0.env(rules)
    env.reset(seed=3)
    for name in env.agent_iter(150):
        for agent in env.agents:
            observation = env.observe(agent)
            assert env.observation_space(agent).contains(observation)
            assert (agent == name and not env.terminations[name]) or not observation["action_mask"].any()
        if env.terminations[name] or env.truncations[name]:
            break
        env.step(np.flatnonzero(env.observe(name)["action_mask"])[-1])


def test_spaces():
    env = pitch_v0.env(Rules(num_players=5))
    assert env.possible_agents == [f"player_{seat}" for seat in range(5)]
    assert env.max_num_agents == 5
    for name in env.possible_agents:
        assert env.observation_space(name) is env.observation_space(name)
        assert env.action_space(name) is env.action_space(name)
        assert env.action_space(name) == gymnasium.spaces.Discrete(57)
        space = env.observation_space(name)
        assert space["observation"] == gymnasium.spaces.Box(0, 1, (layout(5).size,), np.float32)
        assert space["action_mask"] == gymnasium.spaces.Box(0, 1, (57,), np.int8)
    assert env.metadata["name"] == "pitch_v0"
    assert env.metadata["is_parallelizable"] is False


def test_seeds_fix_everything_that_follows():
    for wrap in WRAPS:
        runs = []
        for seed in (0, 0, 1, None, None):
            env = wrap(SHORT)
            runs.append([run(env, seed), run(env), run(env)])  # later matches too
        assert runs[0] == runs[1]
        assert len({str(run) for run in runs[1:]}) == 4  # 0 is a seed like any other, and no seed is none of them
        assert len({str(match) for match in runs[0]}) == 3
        assert [run(env, 0), run(env)] == runs[0][:2]  # whatever was played before


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True], ids=str)
def test_seeds_that_are_none_lose_nothing(seed):
    env = pitch_v0.raw_env()
    env.reset(seed=3)
    env.step(2)
    before = pickle.dumps(env)
    with pytest.raises(ValueError, match="seed takes a whole number"):
        env.reset(seed=seed)
    assert pickle.dumps(env) == before


def test_global_random_state_is_neither_read_nor_touched():
    runs = []
    for seed in (1, 2):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        states = random.getstate(), np.random.get_state()  # noqa: NPY002
        runs.append(run(pitch_v0.env(SHORT), 5))
        assert random.getstate() == states[0]
        assert all(np.all(now == then) for now, then in zip(np.random.get_state(), states[1], strict=True))  # noqa: NPY002
    assert runs[0] == runs[1]
    random.seed(1)
    first = run(pitch_v0.env(SHORT))
    random.seed(1)
    assert run(pitch_v0.env(SHORT)) != first


@pytest.mark.parametrize(
    "copy_env", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["deep", "pickle"]
)
@pytest.mark.parametrize("wrap", WRAPS)
def test_copies_play_on_alike_and_apart(wrap, copy_env):
    env = wrap(Rules(num_players=3, max_hands=3), reward="match")
    env.reset(seed=2, options={"scores": [1, 2, 3]})
    play(env, num_steps=30)
    other = copy_env(env)
    assert other.unwrapped.record() == env.unwrapped.record()
    before = env.unwrapped.record()
    seen = play(other, choices=1)
    assert env.unwrapped.record() == before
    assert play(env, choices=1) == seen
    assert run(env) == run(other)  # the next match too
    assert env.unwrapped.record() == other.unwrapped.record()


def test_copies_before_the_first_reset():
    env = pickle.loads(pickle.dumps(copy.deepcopy(pitch_v0.env(SHORT))))
    assert run(env, 4) == run(pitch_v0.env(SHORT), 4)


@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_rewards_of_points_add_up_to_the_score(rules):
    env = pitch_v0.env(Rules.from_dict({**rules.to_dict(), "max_hands": 5}))
    for seed in range(4):
        totals = dict.fromkeys(env.possible_agents, 0)
        last = {}
        for name, _, reward, terminated, truncated, _ in run(env, seed, choices=seed):
            totals[name] += reward
            last[name] = (terminated, truncated)
        record = env.unwrapped.record()
        scores = record["hands"][-1]["scores"]
        assert [totals[name] for name in env.possible_agents] == [
            scores[rules.side(seat)] for seat in range(rules.num_players)
        ]
        is_won = record["winner"] is not None
        assert set(last.values()) == {(is_won, not is_won)}
        assert is_won or len(record["hands"]) == 5


@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_rewards_of_a_match(rules):
    env = pitch_v0.env(Rules.from_dict({**rules.to_dict(), "target": 2, "max_hands": 8}), reward="match")
    winners = set()
    for seed in range(12):
        totals = dict.fromkeys(env.possible_agents, 0)
        for name, _, reward, *_ in run(env, seed, choices=seed):
            totals[name] += reward
        winner = env.unwrapped.record()["winner"]
        winners.add(winner)
        loss = -1 / (rules.num_sides - 1)
        for seat, name in enumerate(env.possible_agents):
            assert totals[name] == (0 if winner is None else 1 if rules.side(seat) == winner else loss)
    assert len(winners) > 1


def test_a_hand_pays_once():
    env = pitch_v0.raw_env(Rules(num_players=2, hand_size=1, target=50))
    env.reset(seed=1)
    for hand in range(5):
        for action in (4, None, None):
            mask = env.last()[0]["action_mask"]
            assert not any(env.rewards.values()) or action == 4
            env.step(4 if action else int(mask.argmax()))
        record = env.record()["hands"]
        before = record[hand - 1]["scores"] if hand else [0, 0]
        assert list(env.rewards.values()) == [
            now - then for now, then in zip(record[hand]["scores"], before, strict=True)
        ]


def test_max_hands_is_a_truncation():
    env = pitch_v0.env(Rules(target=100, max_hands=2))
    seen = run(env, 1)
    assert [entry[3:5] for entry in seen[-4:]] == [(False, True)] * 4
    assert not any(entry[3] or entry[4] for entry in seen[:-4])
    assert len(env.unwrapped.record()["hands"]) == 2
    assert env.agents == []


@pytest.mark.parametrize("name", WORKED)
def test_worked_hands_by_options(name):
    hand = WORKED[name]
    env = pitch_v0.env()
    env.reset(seed=1, options={"dealer": hand["dealer"], "deal": hand["deal"], "scores": [3, 0, -2, 0]})
    assert env.agent_selection == "player_0"
    cards = [card for trick in hand["tricks"] for card in trick["cards"]]
    for action in [2, 0, 0, 0, *(5 + "CDHS".index(card[1]) * 13 + "23456789TJQKA".index(card[0]) for card in cards)]:
        env.step(action)
    won = [-2 if seat == 0 and points < 2 else points for seat, points in enumerate(hand["points_per_seat"])]
    assert list(env.rewards.values()) == won
    record = env.unwrapped.record()
    assert record["start_scores"] == [3, 0, -2, 0]
    assert record["hands"][0]["deal"] == hand["deal"]
    assert record["hands"][0]["scores"] == [won[0] + 3, won[1], won[2] - 2, won[3]]
