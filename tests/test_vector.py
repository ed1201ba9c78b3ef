"""Many tables at once: threads, one table against the environment, waiting and dealing, refusals."""

import numpy as np
import pytest
from helpers import VARIANTS, name_rules

from pitch_env import Rules, pitch_v0
from pitch_env.engine import explain_illegal
from pitch_env.observation import observe_compact
from pitch_env.table import HAND_OVER, MATCH_OVER, TABLE, seed_streams
from pitch_env.vector import VectorEnv

RESULTS = ("tables", "seats", "observations", "masks", "legal", "orders", "has_settled", "is_match_over", "winners")
MIXED = (VARIANTS * 3)[:31]


def assert_same(env, other):
    for name in (*RESULTS, "deltas"):
        assert (getattr(env, name) == getattr(other, name)).all(), name


@pytest.mark.parametrize("num_threads", [2, 3])
@pytest.mark.parametrize("is_lockstep", [False, True])
def test_threads_change_nothing(num_threads, is_lockstep):
    options = {"rules": MIXED, "seed": 3, "is_canonical": True, "is_lockstep": is_lockstep}
    env = VectorEnv(len(MIXED), **options)
    threaded = VectorEnv(len(MIXED), num_threads=num_threads, **options)
    assert_same(env, threaded)
    for step in range(300):
        actions = env.sample()
        assert (threaded.sample() == actions).all()
        env.step(actions)
        threaded.step(actions)
        if is_lockstep and step % 50 == 49:
            env.deal()
            threaded.deal()
        assert_same(env, threaded)


def test_more_threads_than_tables():
    env = VectorEnv(2, seed=1, num_threads=5)
    env.step(env.sample())
    assert (env.seats >= 0).all()


@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_a_table_plays_as_the_environment_does(rules):
    env = VectorEnv(3, rules, seed=9)
    singles = [pitch_v0.raw_env(rules) for _ in range(3)]
    for single, stream in zip(singles, seed_streams(9, 3), strict=True):
        single.reset()
        single.table["rng"] = stream
        single.reset()
    rng = np.random.default_rng(4)
    for _ in range(200):
        for i, single in enumerate(singles):
            observation = single.last()[0]
            assert single.agent_selection == f"player_{env.seats[i]}"
            assert (observation["action_mask"] == env.masks[i]).all()
            assert (observe_compact(single.table, env.seats[i : i + 1])[0] == env.observations[i]).all()
            assert single.table[0] == env.tables[i]
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in env.masks])
        env.step(actions)
        for i, single in enumerate(singles):
            single.step(int(actions[i]))
            has_ended = any(single.terminations.values()) or any(single.truncations.values())
            assert env.is_match_over[i] == has_ended
            if env.has_settled[i]:
                assert env.deltas[i, : rules.num_players].tolist() == list(single.rewards.values())
            if has_ended:
                single.reset()


def test_the_first_table_has_the_seed_of_the_environment():
    env, single = VectorEnv(5, seed=21), pitch_v0.raw_env()
    single.reset(seed=21)
    assert single.table[0] == env.tables[0]
    assert VectorEnv(2, seed=21).tables[1] == env.tables[1]


@pytest.mark.parametrize("is_canonical", [False, True])
def test_observations_are_those_of_the_seat_to_act(is_canonical):
    env = VectorEnv(len(MIXED), MIXED, seed=3, is_canonical=is_canonical)
    for _ in range(200):
        compact, orders = observe_compact(env.tables, env.seats, is_canonical)
        assert (env.observations == compact).all()
        assert (env.orders == orders).all()
        assert is_canonical or (env.orders == np.arange(4)).all()
        env.step(env.sample())


def test_next_hand_and_next_match_come_by_themselves():
    env = VectorEnv(50, Rules(num_players=2, hand_size=1, max_hands=4), seed=2)
    matches = 0
    for _ in range(200):
        dealers, hands = env.tables["dealer"].copy(), env.tables["num_hands"].copy()
        env.step(env.sample())
        assert (env.seats >= 0).all()
        assert env.masks.any(axis=1).all()
        goes_on = env.has_settled & ~env.is_match_over
        assert (env.tables["dealer"][goes_on] == 1 - dealers[goes_on]).all()  # R3
        assert (env.tables["num_hands"][goes_on] == hands[goes_on] + 1).all()
        begins = env.is_match_over
        assert (env.has_settled | ~begins).all()
        assert not env.tables["scores"][begins].any()
        assert not env.tables["num_hands"][begins].any()
        assert (env.winners[~begins] == -1).all()
        matches += begins.sum()
    assert matches > 200


def test_lockstep_waits_for_deal():
    env = VectorEnv(len(MIXED), MIXED, seed=6, is_lockstep=True)
    for _ in range(30):
        is_over = np.zeros(len(MIXED), bool)
        for _ in range(7 * 7):
            before = env.tables.copy()
            waiting = env.seats == -1
            actions = env.sample()
            assert (actions[waiting] == 0).all()
            actions[waiting] = 99  # not looked at
            env.step(actions)
            assert (env.tables[waiting] == before[waiting]).all()
            assert not env.has_settled[waiting].any()
            is_over |= env.is_match_over
        assert (env.seats == -1).all()
        assert not env.masks.any()
        assert not env.legal.any()
        assert ((env.tables["phase"] == MATCH_OVER) == is_over).all()
        assert ((env.tables["phase"] == HAND_OVER) == ~is_over).all()
        env.deal()
        assert (env.seats >= 0).all()
        assert not env.has_settled.any() or not env.tables["scores"][is_over].any()


def test_deal_leaves_running_hands_alone():
    env = VectorEnv(4, seed=6, is_lockstep=True)
    before = env.tables.copy()
    env.deal()
    assert (env.tables == before).all()


def test_a_seed_fixes_everything():
    runs = []
    for seed in (0, 0, 1, None, None):
        env = VectorEnv(8, seed=seed)
        for _ in range(60):
            env.step(env.sample())
        runs.append(env.tables.copy())
    assert (runs[0] == runs[1]).all()
    assert not (runs[0] == runs[2]).any()
    assert not (runs[3] == runs[4]).any()
    env.reset(seed=0)
    for _ in range(60):
        env.step(env.sample())
    assert (env.tables == runs[0]).all()


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u4", "i8", "u8"])
def test_whole_numbers_of_any_width(dtype):
    env, other = VectorEnv(9, seed=4), VectorEnv(9, seed=4)
    for _ in range(60):
        actions = env.sample()
        env.step(actions)
        other.sample()
        other.step(actions.astype(dtype))
        assert_same(env, other)


@pytest.mark.parametrize("wrong", [60, 56, -1, 4 + 2**32, 5])
def test_an_illegal_action_names_its_table_and_changes_nothing(wrong):
    env = VectorEnv(6, seed=4, num_threads=2)
    before = {name: getattr(env, name).copy() for name in RESULTS}
    actions = env.sample()
    before["tables"]["rng"] = env.tables["rng"]
    actions[3] = wrong
    reason = explain_illegal(env.tables[3:4], wrong)
    with pytest.raises(ValueError, match=r"^table 3: ") as caught:
        env.step(actions)
    assert str(caught.value) == f"table 3: {reason}"
    for name in RESULTS:
        assert (getattr(env, name) == before[name]).all(), name


@pytest.mark.parametrize("actions", [[0, 0], [0.0] * 6, [[0]] * 6, 0, ["0"] * 6, [None] * 6, [True] * 6], ids=str)
def test_actions_of_another_form_are_refused(actions):
    env = VectorEnv(6, seed=4)
    before = env.tables.copy()
    with pytest.raises(ValueError, match="actions takes 6 whole numbers"):
        env.step(actions)
    assert (env.tables == before).all()


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"num_tables": 0}, "num_tables"),
        ({"num_tables": 2.0}, "num_tables"),
        ({"num_tables": "2"}, "num_tables"),
        ({"num_threads": 0}, "num_threads"),
        ({"num_threads": None}, "num_threads"),
        ({"rules": [Rules()] * 2}, "rules takes one Rules, or one for each of the 3 tables, not 2"),
        ({"rules": []}, "rules takes one Rules"),
        ({"rules": "four players"}, "rules takes pitch_env.Rules"),
        ({"rules": 4}, "rules takes pitch_env.Rules, one or several, not 4"),
        ({"rules": {"num_players": 3}}, "rules takes"),
        ({"seed": -1}, "seed takes"),
        ({"seed": 1.5}, "seed takes"),
    ],
    ids=str,
)
def test_bad_arguments(values, text):
    with pytest.raises(ValueError, match=text):
        VectorEnv(**{"num_tables": 3, **values})


def test_one_array_holds_everything():
    env = VectorEnv(3, [Rules(), Rules(teams=True), Rules(num_players=7)])
    assert env.tables.dtype == TABLE
    arrays = [getattr(env, name) for name in RESULTS]
    env.step(env.sample())
    assert all(getattr(env, name) is array for name, array in zip(RESULTS, arrays, strict=True))
