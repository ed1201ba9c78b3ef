"""What a seat may know, as a table and as a dict that goes through JSON and back."""

import copy
import json
import random

import numpy as np
import pytest
from helpers import VARIANTS, actions_of, deal_worked, exchange_hidden, name_rules, play_some, play_states

from pitch_env import Rules
from pitch_env.cards import action_name, cards_of, parse_action
from pitch_env.engine import apply, legal_mask, new_tables
from pitch_env.observation import observe, observe_compact
from pitch_env.table import NOBODY
from pitch_env.view import view_from_dict, view_table, view_tables, view_to_dict


def seats_of(table):
    return range(int(table["num_players"][0]))


@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_nothing_hidden_is_in_a_view(rules):
    rng = random.Random(1)
    for table in play_states(rules, seed=2):
        for seat in seats_of(table):
            view = view_table(table, seat)
            t = view[0]
            assert (t["rng"], t["viewer"]) == (0, seat)
            for other in seats_of(table):
                seen = t["played"] if other != seat else t["dealt"][seat]
                assert t["dealt"][other] & ~seen == 0
            assert t["dealt"][seat] == table["dealt"][0, seat]
            assert (view_table(exchange_hidden(table, seat, rng), seat) == view).all()


@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_observations_of_a_view_are_those_of_the_table(rules):
    for table in play_states(rules, seed=3):
        for seat in seats_of(table):
            view = view_table(table, seat)
            for is_canonical in (False, True):
                of_table = observe_compact(table, [seat], is_canonical)
                of_view = observe_compact(view, [seat], is_canonical)
                assert (of_table[0] == of_view[0]).all()
                assert (of_table[1] == of_view[1]).all()
            vectors = zip(observe(table, seat, 7), observe(view, seat, 7), strict=True)
            assert all((mine == theirs).all() for mine, theirs in vectors)
            if table["seat"][0] == seat:
                assert legal_mask(view) == legal_mask(table)


def test_a_view_is_a_copy():
    table = new_tables(Rules(), 1)
    before = table.copy()
    view_table(table, 2)["dealt"][:] = 0
    assert (table == before).all()


def test_many_views_at_once():
    tables = np.concatenate([play_some(rules, 20, seed) for seed, rules in enumerate(VARIANTS)])
    seats = tables["seat"].astype(int)
    views = view_tables(tables, seats)
    for i, seat in enumerate(seats):
        assert views[i] == view_table(tables[i : i + 1], int(seat))[0]


@pytest.mark.parametrize("seat", [-1, 4, 7])
def test_no_such_seat(seat):
    with pytest.raises(ValueError, match="seat takes a number from 0 to 3"):
        view_table(new_tables(Rules(), 1), seat)


@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_dicts_go_there_and_back_at_every_decision(rules):
    for table in play_states(rules, seed=4, num_hands=3):
        if table["seat"][0] == NOBODY:
            continue
        for seat in seats_of(table):
            view = view_table(table, seat)
            values = json.loads(json.dumps(view_to_dict(view)))
            again = view_from_dict(values)
            assert view_to_dict(again) == values
            for is_canonical in (False, True):
                expected = observe_compact(view, [seat], is_canonical)[0]
                assert (observe_compact(again, [seat], is_canonical)[0] == expected).all()
            for name in set(view.dtype.names) - {"deltas", "best", "plays", "points"}:  # left over from hands before
                assert (again[name] == view[name]).all(), name


def test_a_dict_says_what_the_table_says():
    table = deal_worked("lone trump", side_2=4)
    for word in ["2", "pass", "pass", "2", "KH"]:
        apply(table, parse_action(word))
    values = view_to_dict(view_table(table, 0))
    assert values == {
        "rules": Rules().to_dict(),
        "seat": 0,
        "phase": "play",
        "dealer": 3,
        "to_act": 0,
        "dealt": ["6C", "3C", "7D", "5D", "4D", "5S"],
        "hand": ["6C", "3C", "7D", "5D", "4D", "5S"],
        "bids": [[0, 2], [1, 0], [2, 0], [3, 2]],
        "pitcher": 3,
        "bid": 2,
        "trump": "H",
        "tricks": [{"leader": 3, "cards": ["KH"], "winner": None}],
        "scores": [0, 0, 4, 0],
        "num_hands": 0,
        "winner": None,
        "legal": ["play 3C", "play 6C", "play 4D", "play 5D", "play 7D", "play 5S"],
    }
    other = view_to_dict(view_table(table, 1))
    assert (other["seat"], other["legal"], other["hand"][0]) == (1, [], "KC")
    assert view_to_dict(view_table(deal_worked("game tie"), 0))["legal"] == ["pass", "bid 1", "bid 2", "bid 3", "bid 4"]


def test_a_dict_of_a_hand_that_is_over():
    table = list(play_states(Rules(max_hands=1), num_hands=1))[-1]
    values = view_to_dict(view_table(table, 1))
    assert (values["phase"], values["to_act"], values["legal"], values["hand"]) == ("match over", None, [], [])
    assert len(values["tricks"]) == 6
    assert None not in [trick["winner"] for trick in values["tricks"]]
    with pytest.raises(ValueError, match="the hand of this view is over"):
        view_from_dict(values)


def sample_dict():
    table = deal_worked("lone trump")
    for word in ["2", "pass", "3", "pass", "QH", "KH", "5S", "7H", "3D", "7D"]:
        apply(table, parse_action(word))
    return view_to_dict(view_table(table, 1))


def test_the_sample_is_sound():
    values = sample_dict()
    assert values["tricks"][0] == {"leader": 2, "cards": ["QH", "KH", "5S", "7H"], "winner": 3}
    assert values["tricks"][1] == {"leader": 3, "cards": ["3D", "7D"], "winner": None}
    assert values["hand"] == ["KC", "JC", "8C", "5C", "AD"]
    assert view_to_dict(view_from_dict(values)) == values


@pytest.mark.parametrize("key", ["rules", "seat", "dealer", "dealt", "bids", "tricks", "scores"])
@pytest.mark.parametrize("value", ["missing", None, 3.5j, [[None]], {"x": 1}, "?"], ids=str)
def test_a_part_that_is_missing_or_of_another_form(key, value):
    values = sample_dict()
    if value == "missing":
        del values[key]
    else:
        values[key] = value
    with pytest.raises(ValueError, match=r".+"):
        view_from_dict(values)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda v: v["rules"].update(num_players=9), r"Rules\.num_players"),
        (lambda v: v["rules"].update(colour=9), "Rules has no field 'colour'"),
        (lambda v: v.update(seat=4), "seat takes a number from 0 to 3, not 4"),
        (lambda v: v.update(dealer=-1), "dealer takes a number from 0 to 3, not -1"),
        (lambda v: v["scores"].append(0), "scores takes 4 numbers within 32767"),
        (lambda v: v.update(scores=[10**9, 0, 0, 0]), "scores takes 4 numbers within"),
        (lambda v: v.update(num_hands=10**9), "num_hands"),
        (lambda v: v.update(num_hands=-1), "num_hands"),
        (lambda v: v.update(num_hands=None), "num_hands"),
        (lambda v: v["dealt"].pop(), "dealt takes 6 different cards"),
        (lambda v: v["dealt"].append(v["dealt"][0]), "dealt takes 6 different cards"),
        (lambda v: v["dealt"].__setitem__(0, v["dealt"][1]), "dealt takes 6 different cards"),
        (lambda v: v["dealt"].__setitem__(0, "ZZ"), "'ZZ' is no card"),
        (lambda v: v["rules"].update(num_suits=2, num_ranks=12, num_players=4), "not in the deck"),
        (lambda v: v["bids"].__setitem__(1, [2, 0]), "seat 2 bid pass out of turn"),
        (lambda v: v["bids"].__setitem__(1, [1, 2]), "R5"),
        (lambda v: v["bids"].__setitem__(1, [1, 9]), "a bid is a number from 0 to 4, not 9"),
        (lambda v: v["bids"].__setitem__(1, [1]), "unpack"),
        (lambda v: v["bids"].pop(), "before the auction was over"),
        (lambda v: v["bids"].append([2, 4]), "not legal for seat 2"),
        (lambda v: v["tricks"][0].update(leader=-2), "leader takes a number from 0 to 3, not -2"),
        (lambda v: v["tricks"][1].update(leader=2), "was played out of turn"),
        (lambda v: v["tricks"][0]["cards"].pop(), "each trick has 4 cards"),
        (lambda v: v["tricks"][1]["cards"].clear(), "each trick has 4 cards"),
        (lambda v: v["tricks"][1].update(cards=["3D", "7D", "AD", "9H", "2C"]), "each trick has 4 cards"),
        (lambda v: v["tricks"][0]["cards"].__setitem__(1, "QH"), "not hold"),
        (lambda v: v["tricks"][0]["cards"].__setitem__(1, "KC"), "another seat plays KC, which seat 1 holds"),
        (lambda v: v["tricks"][0]["cards"].__setitem__(3, "AD"), "R11"),
        (lambda v: v["tricks"][0]["cards"].__setitem__(3, "2S"), "not hold"),
        (lambda v: v["tricks"][1]["cards"].__setitem__(1, "4H"), ".+"),
        (lambda v: v["tricks"][0].pop("leader"), "leader"),
    ],
)
def test_what_breaks_a_rule_is_refused(change, text):
    values = sample_dict()
    change(values)
    with pytest.raises(ValueError, match=text):
        view_from_dict(values)


def test_the_given_dict_is_left_alone():
    values = sample_dict()
    before = copy.deepcopy(values)
    view_from_dict(values)
    assert values == before


def test_legal_actions_are_named():
    for table in play_states(Rules(pitch_by_card=True), seed=1):
        if table["seat"][0] != NOBODY:
            values = view_to_dict(view_table(table, int(table["seat"][0])))
            assert values["legal"] == [action_name(action) for action in actions_of(legal_mask(table))]
            assert sorted(values["hand"]) == sorted(
                name for name in values["dealt"] if parse_action(name) - 5 in cards_of(~table["played"][0])
            )
