"""The referee is what other code is measured by, so it is measured by hand here."""

import json
import random
from pathlib import Path
from types import SimpleNamespace

import pytest
from referee import FIRST_CARD, RANKS, SUITS, Referee, deck_of

WORKED = json.loads((Path(__file__).parent / "data" / "worked_hands.json").read_text())
BY_NAME = {hand["name"]: hand for hand in WORKED}
C, D, H, S = range(4)
SEATING = {"num_players": 4, "teams": False, "num_suits": 4, "num_ranks": 13, "hand_size": 6}
SCORING = {"target": 7, "win_needs_made_bid": False, "low_point": "taker", "max_hands": 100}


def make_rules(**changes):
    return SimpleNamespace(**{**SEATING, **SCORING, "pitch_by_card": False, **changes})


def ids(text):
    return [SUITS.index(t[1]) * 13 + RANKS.index(t[0]) for t in text.split()]


def play(text):
    return FIRST_CARD + ids(text)[0]


def plays(text):
    return {FIRST_CARD + card for card in ids(text)}


def table(*hands, dealer=0, **changes):
    """A short game, hands given as text: all a rule needs to show itself."""
    hands = [ids(hand) for hand in hands]
    rules = make_rules(num_players=len(hands), hand_size=len(hands[0]), **changes)
    referee = Referee(rules, dealer=dealer)
    referee.start_hand(hands)
    return referee


def do(referee, text):
    for word in text.split():
        referee.act(int(word) if word.isdigit() else play(word))
    return referee


def start_worked(name, scores=None, **changes):
    hand = BY_NAME[name]
    referee = Referee(make_rules(**changes), dealer=hand["dealer"], scores=scores)
    referee.start_hand([ids(" ".join(cards)) for cards in hand["deal"]])
    return referee


def play_worked(name, bid=2, tricks=6, scores=None, **changes):
    """The worked hands leave the bids open: seat 0 bids first, the others pass."""
    referee = do(start_worked(name, scores, **changes), "4" if bid == 4 else f"{bid} 0 0 0")
    for trick in BY_NAME[name]["tricks"][:tricks]:
        assert referee.seat == trick["leader"]
        do(referee, " ".join(trick["cards"]))
    return referee


def play_random(referee, rng):
    deck = sorted(deck_of(referee.rules))
    seats, size = referee.rules.num_players, referee.rules.hand_size
    while not referee.is_match_over:
        rng.shuffle(deck)
        referee.start_hand([deck[i * size : (i + 1) * size] for i in range(seats)])
        while not referee.is_hand_over:
            legal = referee.legal()
            assert legal
            referee.act(rng.choice(sorted(legal)))
            for hand, voids in zip(referee.hands, referee.voids, strict=True):
                assert not {card // 13 for card in hand} & voids
        yield referee
    assert referee.seat is None
    assert referee.legal() == set()


@pytest.mark.parametrize("name", BY_NAME)
def test_worked_hands(name):
    referee = play_worked(name)
    won = [list(referee.points.values()).count(side) for side in range(4)]
    assert won == BY_NAME[name]["points_per_seat"]
    assert referee.trick_points() == BY_NAME[name]["trick_points_per_seat"]
    assert referee.pitcher == BY_NAME[name]["pitcher"]
    assert [t["leader"] for t in referee.tricks] == [t["leader"] for t in BY_NAME[name]["tricks"]]
    assert referee.is_hand_over
    assert referee.seat is None
    assert not referee.is_match_over


# Auction


@pytest.mark.parametrize(
    ("before", "legal"),
    [
        ("", {0, 1, 2, 3, 4}),
        ("0", {0, 1, 2, 3, 4}),
        ("1", {0, 2, 3, 4}),
        ("2", {0, 3, 4}),
        ("3", {0, 4}),
        ("1 2", {0, 3, 4}),
        ("3 0", {0, 4}),
        ("0 0 0", {2, 3, 4}),  # R6
        ("0 1 0", {0, 1, 2, 3, 4}),  # R7 from here on
        ("2 0 0", {0, 2, 3, 4}),
        ("1 2 3", {0, 3, 4}),
    ],
)
def test_auction_masks(before, legal):
    referee = do(start_worked("game tie"), before)
    assert referee.legal() == legal
    for action in set(range(57)) - legal:
        with pytest.raises(ValueError, match=r"R[0-9]"):
            referee.act(action)


@pytest.mark.parametrize(
    ("bids", "pitcher", "bid"),
    [
        ("1 0 0 0", 0, 1),
        ("1 2 3 0", 2, 3),
        ("2 0 0 2", 3, 2),  # R7: the thief pitches
        ("3 0 0 3", 3, 3),
        ("0 0 0 2", 3, 2),
        ("1 0 0 2", 3, 2),
        ("0 4", 1, 4),  # R8
        ("1 2 3 4", 3, 4),
    ],
)
def test_pitcher(bids, pitcher, bid):
    referee = do(start_worked("game tie"), bids)
    assert (referee.pitcher, referee.bid, referee.seat) == (pitcher, bid, pitcher)
    assert referee.legal() == {FIRST_CARD + card for card in referee.hands[pitcher]}
    assert referee.trump is None
    assert referee.bids == list(enumerate(map(int, bids.split())))


@pytest.mark.parametrize(
    ("before", "action", "rule"),
    [
        ("0 0", "1", "R6"),
        ("2", "2", "R5"),
        ("", "2C", "R9"),
        ("4", "4", "R10"),
        ("4", "AC", "R2"),
        ("4 2C", "3D", "R11"),
    ],
)
def test_refusals_name_the_rule(before, action, rule):
    referee = do(table("AC AD", "2C 2D", "3C 3D"), before)
    with pytest.raises(ValueError, match=rule):
        do(referee, action)


def test_pitch_by_card():
    referee = start_worked("lone trump", pitch_by_card=True)
    assert referee.legal() == {0, 1, 2, 3, 4} | plays("6C 3C 7D 5D 4D 5S")
    do(referee, "3")
    assert referee.legal() == {0, 4} | plays("KC JC 8C 5C AD 7H")
    do(referee, "AD")
    assert referee.bids == [(0, 3), (1, 4)]
    assert (referee.pitcher, referee.bid, referee.trump, referee.seat) == (1, 4, D, 2)
    assert referee.tricks == [{"leader": 1, "cards": ids("AD"), "winner": None}]
    stuck = do(start_worked("lone trump", pitch_by_card=True), "0 0 0")
    assert stuck.legal() == {2, 3, 4} | plays("AC 9C 7C 3D KH 4H")


# Play


def test_follow_suit_or_trump():
    referee = do(play_worked("capture against hold", tricks=1), "8S")
    assert referee.legal() == plays("9S 7S 8C 3C")  # and not TH


def test_trump_led_must_be_followed_and_a_void_frees_every_card():
    referee = do(start_worked("lone trump"), "2 0 0 0 6C")
    assert referee.legal() == plays("KC JC 8C 5C")
    referee = do(start_worked("lone trump"), "2 0 0 0 5S")
    assert referee.legal() == plays("KC JC 8C 5C AD 7H")


@pytest.mark.parametrize(("last", "winner"), [("3D", 0), ("AS", 0), ("2C", 2)])
def test_last_trick_winner(last, winner):
    referee = do(table("AC KD", "KC 2D", f"3C {last}"), "0 0 2 AC KC 3C")
    assert do(referee, f"KD 2D {last}").tricks[-1]["winner"] == winner


def test_voids():
    assert play_worked("lone trump").voids == [{C, H}, {H, S}, {C, D, S}, {C, S}]


def test_ruff_proves_no_void():
    after_ruffs = play_worked("capture against hold", tricks=3)
    assert after_ruffs.voids == [set(), set(), set(), set()]
    assert play_worked("capture against hold").voids == [{D}, {C, D, S}, {S}, {D}]


# Points and scores


def test_lone_trump_scores_two():
    referee = play_worked("lone trump")
    assert referee.points == {"high": 0, "low": 0, "jack": None, "game": 3}
    assert referee.deltas == [2, 0, 0, 1]


def test_lone_jack_scores_three():
    referee = play_worked("lone jack", bid=3)
    assert referee.points == {"high": 0, "low": 0, "jack": 0, "game": 1}
    assert referee.deltas == [3, 1, 0, 0]


def test_game_tie_awards_nothing():
    assert play_worked("game tie").points == {"high": 0, "low": 0, "jack": None, "game": None}
    referee = do(table("2C", "3C"), "0 2 2C 3C")  # a tie at zero
    assert referee.trick_points() == [0, 0]
    assert referee.points["game"] is None


def test_set_pitcher_loses_the_bid_and_scores_nothing_else():
    assert play_worked("capture against hold", bid=3).deltas == [-3, 0, 2, 2]
    referee = play_worked("game tie", bid=4, scores=[1, 0, 5, 0])
    assert referee.deltas == [-4, 0, 0, 0]
    assert referee.scores == [-3, 0, 5, 0]


def test_low_to_holder():
    taker = play_worked("capture against hold")
    holder = play_worked("capture against hold", low_point="holder")
    assert taker.points == {"high": 2, "low": 3, "jack": 3, "game": 2}
    assert holder.points == {"high": 2, "low": 0, "jack": 3, "game": 2}


def test_teams_count_together():
    referee = play_worked("game tie", bid=3, teams=True, scores=[4, 6])
    assert referee.trick_points() == [40, 0]
    assert referee.points == {"high": 0, "low": 0, "jack": None, "game": 0}
    assert referee.scores == [7, 6]
    assert referee.winner == 0
    holder = play_worked("capture against hold", teams=True, low_point="holder")
    assert holder.points == {"high": 0, "low": 0, "jack": 1, "game": 0}


# Match


def test_set_pitcher_who_still_holds_the_target():
    literal = play_worked("capture against hold", scores=[9, 0, 0, 0])
    assert literal.scores[0] == 7
    assert literal.winner == 0
    assert literal.is_match_over
    strict = play_worked("capture against hold", scores=[9, 0, 0, 0], win_needs_made_bid=True)
    assert strict.scores[0] == 7
    assert strict.winner is None
    assert not strict.is_match_over


def test_nobody_wins_on_anothers_hand():
    referee = play_worked("capture against hold", scores=[0, 0, 6, 6])
    assert referee.scores == [-2, 0, 8, 8]
    assert referee.winner is None
    richer_loser = play_worked("game tie", scores=[5, 20, 0, 0], win_needs_made_bid=True)
    assert richer_loser.scores == [7, 20, 0, 0]
    assert richer_loser.winner == 0


def test_next_hand_moves_the_deal_and_clears_the_table():
    referee = play_worked("game tie")
    referee.start_hand(referee.deal)
    assert (referee.dealer, referee.seat) == (0, 1)
    assert (referee.bids, referee.tricks, referee.points) == ([], [], None)
    assert (referee.pitcher, referee.bid, referee.trump) == (None, 0, None)
    assert referee.scores == [2, 0, 0, 0] == referee.deltas


def test_truncation():
    referee = play_worked("game tie", max_hands=1)
    assert referee.is_truncated
    assert referee.is_match_over
    assert referee.winner is None
    with pytest.raises(ValueError, match="R19"):
        referee.start_hand(referee.deal)
    won = play_worked("game tie", max_hands=1, scores=[5, 0, 0, 0])
    assert won.winner == 0
    assert won.is_match_over
    assert not won.is_truncated


def test_known_holds_nothing_hidden():
    one = table("AC 2C", "KC 2D", "QC 2S")
    other = table("2C AC", "KC 2S", "QC 2D")
    assert one.known(0) == other.known(0)
    assert one.known(1) != other.known(1)
    do(one, "0")
    do(other, "1")
    assert len({one.known(0), other.known(0)}) == 2


@pytest.mark.parametrize(
    "changes",
    [
        *({"num_players": n} for n in range(2, 8)),
        {"teams": True, "pitch_by_card": True},
        {"low_point": "holder", "win_needs_made_bid": True},
        {"num_players": 3, "num_suits": 2, "num_ranks": 4, "hand_size": 2, "max_hands": 5},
    ],
    ids=str,
)
def test_random_matches(changes):
    for seed in range(5):
        referee = Referee(make_rules(**{"max_hands": 20, **changes}), dealer=seed % 2)
        before = [0] * len(referee.scores)
        for hand in play_random(referee, random.Random(seed)):
            assert set().union(*hand.captured) == {c for cards in hand.deal for c in cards}
            assert hand.scores == [b + d for b, d in zip(before, hand.deltas, strict=True)]
            assert hand.winner in (None, hand.side_of(hand.pitcher))
            before = list(hand.scores)
