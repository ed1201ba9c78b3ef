"""The variant: every field is checked, and rules go through a dict unchanged."""

import dataclasses
import json

import numpy as np
import pytest
from helpers import VARIANTS, name_rules

from pitch_env import Rules
from pitch_env.table import deck_mask

NUMBERS = {
    "num_players": (2, 7),
    "target": (1, 1000),
    "max_hands": (1, 5000),
    "num_suits": (1, 4),
    "num_ranks": (1, 13),
    "hand_size": (1, 6),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ["low", "high", True, 3.0, "3", None, [3], np.int64(3), float("nan")], ids=str)
def test_numbers_name_their_field_and_range(name, value):
    low, high = NUMBERS[name]
    value = {"low": low - 1, "high": high + 1}.get(value, value) if isinstance(value, str) else value
    with pytest.raises(ValueError, match=rf"^Rules\.{name} takes a whole number from {low} to {high}, not "):
        Rules(**{name: value})


@pytest.mark.parametrize("name", ["teams", "win_needs_made_bid", "pitch_by_card"])
@pytest.mark.parametrize("value", [0, 1, None, "True", [], np.True_], ids=repr)
def test_switches_name_their_field(name, value):
    with pytest.raises(ValueError, match=rf"^Rules\.{name} takes True or False, not "):
        Rules(**{name: value})


@pytest.mark.parametrize("value", ["", "Taker", None, True, ["taker"]], ids=repr)
def test_low_point(value):
    with pytest.raises(ValueError, match=r"^Rules\.low_point takes 'taker' or 'holder', not "):
        Rules(low_point=value)


@pytest.mark.parametrize("players", [2, 3, 5, 6, 7])
def test_teams_need_four_players(players):
    with pytest.raises(ValueError, match=rf"Rules\.teams needs num_players=4, not {players}"):
        Rules(num_players=players, teams=True)


@pytest.mark.parametrize(
    "values",
    [{"num_suits": 1}, {"num_ranks": 5}, {"num_players": 7, "num_suits": 3}, {"num_suits": 2, "num_ranks": 11}],
)
def test_a_deal_must_fit_the_deck(values):
    with pytest.raises(ValueError, match=r"Rules\.hand_size=6 for . players deals .. cards from a deck of .*lower"):
        Rules(**values)


def test_the_default_is_four_players_to_seven():
    rules = Rules()
    assert (rules.num_players, rules.teams, rules.target, rules.low_point) == (4, False, 7, "taker")
    assert not (rules.win_needs_made_bid)
    assert not (rules.pitch_by_card)
    assert (rules.num_suits, rules.num_ranks, rules.hand_size) == (4, 13, 6)


def test_ends_of_every_range_are_taken():
    for name, (low, high) in NUMBERS.items():
        for value in (low, high):
            small = {"num_players": 2, "hand_size": 1} if name.startswith("num_") else {}
            assert getattr(Rules(**{**small, name: value}), name) == value


def test_rules_are_frozen_and_can_be_keys():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Rules().target = 11
    assert len({Rules(), Rules(target=7), Rules(target=8)}) == 2


def test_sides_r1():
    assert [Rules(teams=True).side(seat) for seat in range(4)] == [0, 1, 0, 1]
    assert [Rules(num_players=5).side(seat) for seat in range(5)] == [0, 1, 2, 3, 4]
    assert Rules(teams=True).sides == (0, 1, 0, 1)
    assert (Rules(teams=True).num_sides, Rules(num_players=5).num_sides) == (2, 5)


@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_through_json(rules):
    assert Rules.from_dict(json.loads(json.dumps(rules.to_dict()))) == rules


def test_from_dict_fills_in_and_refuses():
    assert Rules.from_dict({}) == Rules()
    with pytest.raises(ValueError, match="Rules has no field 'players'; it has num_players, teams"):
        Rules.from_dict({"players": 3})
    with pytest.raises(ValueError, match=r"Rules\.target"):
        Rules.from_dict({"target": "7"})


def test_differences_in_words():
    assert Rules().describe_difference(Rules()) == ""
    assert Rules(target=11).describe_difference(Rules(teams=True)) == "teams False against True, target 11 against 7"


def test_a_short_deck_keeps_the_first_suits_and_the_highest_ranks():
    assert deck_mask(Rules()) == 2**52 - 1
    short = deck_mask(Rules(num_players=2, num_suits=2, num_ranks=3, hand_size=1))
    assert short == 0b111 << 10 | 0b111 << 23
