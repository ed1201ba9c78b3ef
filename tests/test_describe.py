"""Observations read back into small integers, views and words."""

import numpy as np
import pytest
from helpers import VARIANTS, deal_worked, name_rules, play_states

from pitch_env import Rules, pitch_v0
from pitch_env.cards import parse_action
from pitch_env.describe import decode, describe, find_num_seats, view_from_compact
from pitch_env.engine import apply
from pitch_env.layout import layout
from pitch_env.observation import observe, observe_compact, to_vectors
from pitch_env.table import NOBODY, read_rules


@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_vectors_go_back_to_compact_and_to_a_view(rules):
    num_players = rules.num_players
    for table in play_states(rules, seed=7):
        for seat in range(num_players):
            compact = observe_compact(table, [seat])[0][0]
            for num_seats in (num_players, 7):
                assert (decode(to_vectors(compact[None], num_seats)[0]) == compact).all()
            assert (decode(observe(table, seat, num_players)[0]) == compact).all()
            view = view_from_compact(compact)
            assert (observe_compact(view, [0])[0][0] == compact).all()
            assert_same_hand(view[0], table[0], seat, num_players)


def assert_same_hand(view, t, seat, num_players):
    """The view says of seats counted from the viewer what the table says of seats."""
    turned = [(seat + turn) % num_players for turn in range(num_players)]
    for name in ("bids", "captured", "voids"):
        assert (view[name][:num_players] == t[name][turned]).all(), name
    assert view["dealt"][0] == t["dealt"][seat]
    for name in ("bid", "trump", "num_plays", "played"):
        assert view[name] == t[name], name
    assert (view["plays"][: view["num_plays"]] == t["plays"][: t["num_plays"]]).all()
    for name in ("dealer", "pitcher", "seat"):
        assert (view[name] == NOBODY) == (t[name] == NOBODY)
        assert view[name] == NOBODY or turned[view[name]] == t[name]
    rules, real = read_rules(view).to_dict(), read_rules(t).to_dict()
    assert {**rules, "target": 0, "max_hands": 0} == {**real, "target": 0, "max_hands": 0}


@pytest.mark.parametrize("num_seats", range(2, 8))
def test_the_size_tells_the_number_of_seats(num_seats):
    assert find_num_seats(layout(num_seats).size) == num_seats


@pytest.mark.parametrize("vector", [[], [1.0] * 100, np.zeros((2, 1294))], ids=["empty", "short", "two"])
def test_what_is_no_observation(vector):
    with pytest.raises(ValueError, match=r"an observation has 1158 for 2, .* players, not .* numbers"):
        decode(vector)


def show(text, seat, rules=None, name="lone trump", **scores):
    table = deal_worked(name, rules, **scores)
    for word in text.split():
        apply(table, parse_action(word))
    return describe(observe(table, seat, 4)[0])


def test_a_fresh_hand_in_words():
    assert show("2", 1, side_2=5).splitlines() == [
        "4 players; dealer: the player 2 to your left",
        "hand: KC JC 8C 5C AD 7H",
        "you: has not bid, needs 7, trick points 0",
        "the player 1 to your left: has not bid, needs 2, trick points 0",
        "the player 2 to your left: has not bid, needs 7, trick points 0",
        "the player 3 to your left: bid 2, needs 7, trick points 0",
        "to act: you",
    ]


def test_a_hand_in_play_in_words():
    lines = show("2 pass 3 pass QH KH 5S 7H 3D 7D", 1, Rules(teams=True)).splitlines()
    assert lines == [
        "4 players in two teams; dealer: the player 2 to your left",
        "hand: KC JC 8C 5C AD",
        "you: passed, needs 7, trick points 5",
        "the player 1 to your left: bid 3, needs 7, trick points 0",
        "the player 2 to your left: passed, needs 7, trick points 5",
        "the player 3 to your left: bid 2, needs 7, trick points 0, has no ♥",
        "trump ♥ (H), contract 3 of the player 1 to your left",
        "trick 1, led by the player 1 to your left: QH KH 5S 7H; the player 2 to your left won",
        "trick 2, led by the player 2 to your left: 3D 7D; the player 3 to your left is winning",
        "highest trump captured so far: the player 2 to your left",
        "lowest trump captured so far: the player 2 to your left",
        "to act: you",
    ]


def test_the_jack_and_the_end_of_a_hand_in_words():
    for table in play_states(Rules(), seed=3, num_hands=8):
        if table["points"][0, 2] >= 0:
            break
    text = describe(observe(table, int(table["points"][0, 2]), 4)[0])
    assert "jack of trumps: you" in text
    assert text.endswith("the hand is over")
    assert "hand: \n" in text


def test_more_points_than_are_told_apart():
    assert "you: has not bid, needs 51 or more," in show("", 2, Rules(target=60))
    assert "you: has not bid, needs 50," in show("", 2, Rules(target=60), side_2=10)


def test_every_form_of_an_observation_is_described():
    env = pitch_v0.env()
    env.reset(seed=3)
    env.step(4)
    env.step(env.observe(env.agent_selection)["action_mask"].argmax())
    observation = env.observe("player_2")
    compact = observe_compact(env.unwrapped.table, [2])[0][0]
    text = describe(observation)
    assert describe(observation["observation"]) == describe(observation["observation"].tolist()) == text
    assert describe(compact) == text
    assert "trump" in text


def test_every_state_can_be_described():
    for rules in VARIANTS:
        for table in play_states(rules, seed=8):
            for seat in range(rules.num_players):
                text = describe(observe(table, seat, rules.num_players)[0])
                assert text.startswith(f"{rules.num_players} players")
                assert ("the hand is over" in text) == (table["seat"][0] == NOBODY)
