"""Illegal actions, actions out of bounds and calls out of order: `raw_env` raises, `env` does what PettingZoo's do."""

import copy
import pickle
import random

import numpy as np
import pytest
from helpers import VARIANTS, name_rules
from pettingzoo.utils.env_logger import EnvLogger
from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper, OrderEnforcingWrapper, TerminateIllegalWrapper

from pitch_env import Rules, pitch_v0
from pitch_env.engine import explain_illegal

STATE = ("agents", "agent_selection", "rewards", "terminations", "truncations", "infos", "_cumulative_rewards")
BEFORE_RESET = (*STATE[:-1], "num_agents")


@pytest.fixture(autouse=True)
def quiet_logger():
    EnvLogger.suppress_output()
    yield
    EnvLogger.unsuppress_output()
    EnvLogger.flush()


def stack(rules, **options):
    """The wrappers that PettingZoo's classic environments have."""
    raw = pitch_v0.raw_env(rules, **options)
    return OrderEnforcingWrapper(AssertOutOfBoundsWrapper(TerminateIllegalWrapper(raw, illegal_reward=-1)))


def attempt(call):
    """What a call gives or raises, and what it logs."""
    EnvLogger.flush()
    try:
        result = call()
    except Exception as error:
        result = type(error), str(error)
    return result, list(EnvLogger.mqueue)


def read(env):
    if not env.agents:
        return {name: getattr(env, name) for name in STATE}
    observations = {name: {key: part.tobytes() for key, part in env.observe(name).items()} for name in env.agents}
    last = env.last()[1:]
    return {**{name: copy.deepcopy(getattr(env, name)) for name in STATE}, "observations": observations, "last": last}


def step_both(mine, theirs, action):
    assert attempt(lambda: mine.step(action)) == attempt(lambda: theirs.step(action))
    assert read(mine) == read(theirs)
    assert mine.unwrapped.record() == theirs.unwrapped.record()


@pytest.mark.parametrize("reward", ["points", "match"])
@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_env_does_what_the_three_wrappers_do(rules, reward):
    rng = random.Random(5)
    rules = Rules.from_dict({**rules.to_dict(), "max_hands": 2})
    mine, theirs = pitch_v0.env(rules, reward=reward), stack(rules, reward=reward)
    for episode in range(12):
        mine.reset(seed=episode)
        theirs.reset(seed=episode)
        assert read(mine) == read(theirs)
        slips = rng.choice([0, 0.02, 0.2])
        while mine.agents:
            name = mine.agent_selection
            legal = np.flatnonzero(mine.observe(name)["action_mask"]).tolist()
            if mine.terminations[name] or mine.truncations[name]:
                action = rng.choice([None, None, None, 3, 60]) if slips else None
            elif rng.random() < slips:
                action = rng.choice([*range(57), -1, 57, None, 2.0, "1"])
            else:
                action = rng.choice([rng.choice(legal), np.int64(rng.choice(legal))])
            step_both(mine, theirs, action)
        step_both(mine, theirs, 0)  # after the end


def test_an_illegal_action_ends_the_match_with_minus_one():
    env = pitch_v0.env()
    env.reset(seed=1)
    for action in (4, env.observe(env.agent_selection)["action_mask"].argmax()):
        name = env.agent_selection
        env.step(action)
    assert "Illegal move made" in EnvLogger.mqueue[-1]
    assert env.rewards == {**dict.fromkeys(env.agents, 0), name: -1}
    assert set(env.terminations.values()) == set(env.truncations.values()) == {True}
    paid = {}
    for agent in env.agent_iter():
        paid[agent] = env.last()[1]
        env.step(None)
    assert paid == {**dict.fromkeys(env.possible_agents, 0), name: -1}
    env.reset(seed=1)
    assert set(env.terminations.values()) == {False}


def test_before_reset_nothing_can_be_read_or_called():
    mine, theirs = pitch_v0.env(), stack(Rules())
    for env in (mine, theirs):
        for name in BEFORE_RESET:
            with pytest.raises(AttributeError, match=rf"^{name} cannot be accessed before reset$"):
                getattr(env, name)
    calls = [
        lambda env: env.step(0),
        lambda env: env.observe("player_0"),
        lambda env: env.render(),
        lambda env: env.agent_iter(),
        lambda env: env.last(),
        lambda env: env.state(),
    ]
    for call in calls:
        assert attempt(lambda call=call: call(mine)) == attempt(lambda call=call: call(theirs))


def test_after_reset_order_is_kept():
    for env in (pitch_v0.env(), stack(Rules())):
        env.reset(seed=1)
        with pytest.raises(AssertionError, match=r"need to call step\(\) or reset\(\)"):
            for _ in env.agent_iter():
                pass
        with pytest.raises(AttributeError):
            env.no_such_thing  # noqa: B018
        with pytest.raises(NotImplementedError):
            env.state()


def test_env_shows_the_same_of_itself():
    mine, theirs = pitch_v0.env(render_mode="ansi"), stack(Rules(), render_mode="ansi")
    assert str(mine.unwrapped) == str(theirs.unwrapped) == "pitch_v0"
    for name in ("metadata", "possible_agents", "max_num_agents", "render_mode"):
        assert getattr(mine, name) == getattr(theirs, name)
    mine.reset(seed=3)
    theirs.reset(seed=3)
    assert mine.render() == theirs.render()
    assert mine.num_agents == theirs.num_agents == 4


@pytest.mark.parametrize("action", [56, 0, 1, -1, 57, 4.0, None, "2", 2**70, [1]], ids=str)
def test_raw_env_refuses_and_changes_nothing(action):
    env = pitch_v0.raw_env()
    env.reset(seed=8)
    for _ in range(3):
        env.step(0)
    before = pickle.dumps(env)
    with pytest.raises(ValueError, match=r"is to act|2 \(bid 2\), 3 \(bid 3\), 4 \(bid 4\)$") as caught:
        env.step(action)
    assert action is None or str(caught.value) == explain_illegal(env.table, action)
    assert pickle.dumps(env) == before
    env.step(2)
    assert env.table["bid"][0] == 2


def test_raw_env_takes_only_none_when_the_match_is_over():
    env = pitch_v0.raw_env(Rules(num_players=2, hand_size=1, max_hands=1))
    env.reset(seed=1)
    for action in (4, None, None):
        env.step(4 if action else int(env.last()[0]["action_mask"].argmax()))
    with pytest.raises(ValueError, match="the only valid action is None"):
        env.step(0)
    env.step(None)
    env.step(None)
    assert env.agents == []


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"rules": 4}, r"rules takes a pitch_env\.Rules, not 4"),
        ({"rules": {"num_players": 3}}, r"rules takes a pitch_env\.Rules"),
        ({"rules": Rules}, r"rules takes a pitch_env\.Rules"),
        ({"reward": "score"}, "reward takes 'points' or 'match', not 'score'"),
        ({"reward": None}, "reward takes 'points' or 'match'"),
        ({"render_mode": "text"}, "render_mode takes 'human', 'ansi', 'rgb_array' or None, not 'text'"),
        ({"render_mode": ""}, "render_mode takes"),
    ],
    ids=str,
)
def test_bad_arguments(values, text):
    for wrap in (pitch_v0.env, pitch_v0.raw_env):
        with pytest.raises(ValueError, match=text):
            wrap(**values)
