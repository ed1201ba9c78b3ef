"""Options of `reset`: a given dealer, deal and scores, what they refuse, and that they last for one match."""

import copy
import pickle

import numpy as np
import pytest
from helpers import WORKED

from pitch_env import Rules, pitch_v0

DEAL = WORKED["lone trump"]["deal"]


def make(rules=None, **settings):
    env = pitch_v0.raw_env(rules, **settings)
    env.reset(seed=6)
    return env


def deal_of(env):
    return env.record()["hands"][-1]["deal"]


@pytest.mark.parametrize("dealer", [0, 1, 2, 3, np.int64(2)], ids=repr)
def test_dealer(dealer):
    env = make()
    drawn = deal_of(env)
    env.reset(seed=6, options={"dealer": dealer})
    assert env.record()["hands"][0]["dealer"] == dealer
    assert env.agent_selection == f"player_{(dealer + 1) % 4}"
    assert deal_of(env) == drawn  # the deal of the seed stays


def test_deal_in_any_order_and_spelling():
    env = make()
    env.reset(options={"deal": DEAL})
    dealt = env.table["dealt"].copy()
    env.reset(options={"deal": [[card.lower() for card in reversed(hand)] for hand in DEAL]})
    assert (env.table["dealt"] == dealt).all()
    env.reset(options={"deal": tuple(map(tuple, DEAL))})
    assert deal_of(env) == DEAL


def test_a_given_deal_leaves_the_dealer_to_chance():
    env = make()
    assert len({env.reset(options={"deal": DEAL}) or int(env.table["dealer"][0]) for _ in range(40)}) == 4


def test_scores_are_per_side():
    env = make()
    env.reset(options={"scores": [1, -2, 3, 0]})
    assert env.table["scores"][0, :4].tolist() == [1, -2, 3, 0]
    env.reset(options={"scores": np.array([4, 3, 2, 1])})
    assert env.table["scores"][0, :4].tolist() == [4, 3, 2, 1]
    teams = make(Rules(teams=True))
    teams.reset(options={"scores": (5, 6)})
    assert teams.record()["start_scores"] == [5, 6]


def test_options_last_for_one_match():
    env, other = make(), make()
    env.reset(seed=4, options={"dealer": 2, "deal": DEAL, "scores": [6, 6, 6, 6]})
    other.reset(seed=4)
    env.reset()
    other.reset()
    assert env.record() == other.record()
    assert env.record()["hands"][0]["deal"] != DEAL


def test_options_are_for_the_first_hand():
    env = make(Rules(target=100))
    env.reset(options={"dealer": 2, "deal": DEAL})
    while len(env.record()["hands"]) == 1:
        env.step(int(np.flatnonzero(env.last()[0]["action_mask"])[0]))
    hand = env.record()["hands"][1]
    assert (hand["dealer"], hand["deal"] == DEAL) == (3, False)


def test_options_are_not_changed():
    options = {"dealer": 2, "deal": copy.deepcopy(DEAL), "scores": [1, 2, 3, 4], "other": 5}
    before = copy.deepcopy(options)
    env = make()
    env.reset(options=options)
    for _ in range(60):
        env.step(int(np.flatnonzero(env.last()[0]["action_mask"])[0]))
    env.record()["start_scores"].append(9)
    assert options == before
    options["deal"][0][0] = "2S"
    options["scores"][0] = 50
    assert env.record()["start_scores"] == [1, 2, 3, 4]
    assert env.record()["hands"][0]["deal"] == DEAL


def test_no_options_and_foreign_ones():
    for options in (None, {}, {"options": 1}, {"render": "x", 3: 4}, {"dealer": None, "deal": None, "scores": None}):
        env = make()
        env.reset(seed=2, options=options)
        other = make()
        other.reset(seed=2)
        assert env.record() == other.record()


def test_constructor_options_survive_resets():
    rules = Rules(num_players=3, hand_size=2, target=11)
    env = make(rules, render_mode="ansi", reward="match")
    for options in (None, {"dealer": 1}, {"scores": [1, 1, 1]}):
        env.reset(seed=1, options=options)
        assert (env.rules, env.reward, env.render_mode) == (rules, "match", "ansi")
        assert env.record()["rules"] == rules.to_dict()
        assert isinstance(env.render(), str)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"dealer": 4}, "option dealer takes a seat from 0 to 3, not 4"),
        ({"dealer": -1}, "option dealer takes a seat from 0 to 3, not -1"),
        ({"dealer": 1.0}, r"option dealer takes a seat from 0 to 3, not 1\.0"),
        ({"dealer": "1"}, "option dealer takes a seat"),
        ({"dealer": "player_1"}, "option dealer takes a seat"),
        ({"dealer": True}, "option dealer takes a seat"),
        ({"deal": DEAL[:3]}, "option deal takes 4 hands of 6 cards"),
        ({"deal": [*DEAL, ["2S"]]}, "option deal takes 4 hands of 6 cards"),
        ({"deal": [*DEAL[:3], DEAL[3][:5]]}, "option deal takes 4 hands of 6 cards"),
        ({"deal": []}, "option deal takes 4 hands of 6 cards"),
        ({"deal": 7}, "option deal takes 4 hands of 6 cards"),
        ({"deal": [1, 2, 3, 4]}, "option deal takes 4 hands of 6 cards"),
        ({"deal": [DEAL[0], DEAL[0], DEAL[2], DEAL[3]]}, "option deal holds a card twice"),
        ({"deal": [["6C"] * 6, *DEAL[1:]]}, "option deal holds a card twice"),
        ({"deal": [["1C", *DEAL[0][1:]], *DEAL[1:]]}, "'1C' is no card"),
        ({"deal": [[5, *DEAL[0][1:]], *DEAL[1:]]}, "5 is no card"),
        ({"scores": [0, 0, 0]}, "option scores takes 4 whole numbers within 10000"),
        ({"scores": [0, 0, 0, 0.5]}, "option scores takes 4 whole numbers"),
        ({"scores": [0, 0, 0, "1"]}, "option scores takes 4 whole numbers"),
        ({"scores": [0, 0, 0, True]}, "option scores takes 4 whole numbers"),
        ({"scores": [0, 0, 0, 10_001]}, "option scores takes 4 whole numbers"),
        ({"scores": 3}, "option scores takes 4 whole numbers"),
        ({"scores": "0000"}, "option scores takes 4 whole numbers"),
        ({"deals": DEAL}, "reset has no option 'deals': 'deal' is meant"),
        ({"Dealer": 3}, "reset has no option 'Dealer': 'dealer' is meant"),
        ({"score": [0] * 4}, "reset has no option 'score': 'scores' is meant"),
        ([("dealer", 1)], "options takes a dict"),
        ("dealer", "options takes a dict"),
    ],
    ids=str,
)
def test_an_option_that_is_refused_loses_nothing(options, text):
    env = make()
    env.step(4)
    before = pickle.dumps(env)
    for seed in (None, 3):
        with pytest.raises(ValueError, match=text):
            env.reset(seed=seed, options=options)
        assert pickle.dumps(env) == before


def test_cards_must_be_in_a_short_deck():
    env = make(Rules(num_players=2, num_suits=2, num_ranks=3, hand_size=1))
    env.reset(options={"deal": [["AC"], ["QD"]]})
    for card in ("JC", "AH"):
        with pytest.raises(ValueError, match="option deal holds a card that is not in the deck"):
            env.reset(options={"deal": [["AC"], [card]]})


def test_a_slip_in_the_first_reset_can_be_mended():
    env = pitch_v0.env()
    with pytest.raises(ValueError, match="option dealer"):
        env.reset(seed=1, options={"dealer": 9})
    env.reset(seed=1, options={"dealer": 0})
    assert env.agent_selection == "player_1"


def test_a_score_past_the_target_does_not_end_a_match_before_its_hand():
    env = make(Rules(num_players=2, hand_size=1))
    env.reset(options={"dealer": 0, "deal": [["2C"], ["3D"]], "scores": [0, 9]})
    assert not any(env.terminations.values())
    for action in (0, 2, 5, 5 + 13 + 1):
        env.step(action)
    assert env.rewards == {"player_0": 2, "player_1": 0}  # the lone trump is High and Low
    assert not any(env.terminations.values())  # nobody wins on another's hand


def test_view_of_an_agent():
    env = make()
    assert env.view()["viewer"][0] == env.table["seat"][0]
    view = env.view("player_2")
    assert view["viewer"][0] == 2
    assert view["dealt"][0, 2] == env.table["dealt"][0, 2]
    assert not view["dealt"][0, [0, 1, 3]].any()
