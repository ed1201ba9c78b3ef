"""Names of cards and actions."""

import pytest

from pitch_env import cards
from pitch_env.cards import NUM_ACTIONS, action_name, card_name, cards_of, mask_of, parse_action, parse_card


def test_numbers_are_suit_times_13_plus_rank():
    assert [card_name(card) for card in (0, 12, 13, 25, 26, 39, 51)] == ["2C", "AC", "2D", "AD", "2H", "2S", "AS"]
    assert (cards.NUM_CARDS, cards.NUM_ACTIONS, cards.CARD_ACTION) == (52, 57, 5)


def test_every_card_is_read_back():
    names = [card_name(card) for card in range(52)]
    assert len(set(names)) == 52
    for form in (str, str.lower, " {} ".format):
        assert [parse_card(form(name)) for name in names] == list(range(52))


def test_trick_points_r16():
    worth = {name: cards.TRICK_POINTS[parse_card(name) % 13] for name in ("TS", "AS", "KS", "QS", "JS", "9S", "2S")}
    assert worth == {"TS": 10, "AS": 4, "KS": 3, "QS": 2, "JS": 1, "9S": 0, "2S": 0}
    assert sum(cards.TRICK_POINTS) * 4 == 80


@pytest.mark.parametrize("text", ["", "T", "10D", "DT", "TX", "1C", "TD ?", "♣A", 51, None, ["TD"]], ids=str)
def test_what_is_no_card(text):
    with pytest.raises(ValueError, match="is no card: write a rank"):
        parse_card(text)


def test_every_action_is_read_back():
    names = [action_name(action) for action in range(NUM_ACTIONS)]
    assert names[:5] == ["pass", "bid 1", "bid 2", "bid 3", "bid 4"]
    assert names[5] == "play 2C"
    assert [parse_action(name) for name in names] == list(range(NUM_ACTIONS))
    assert [parse_action(name.upper()) for name in names] == list(range(NUM_ACTIONS))
    assert [parse_action(name.split()[-1]) for name in names] == list(range(NUM_ACTIONS))


@pytest.mark.parametrize("text", ["", "bid", "bid 5", "5", "-1", "play", "play 1", "fold", "bid TD", "passs", 4, None])
def test_what_is_no_action(text):
    with pytest.raises(ValueError, match="is no action: write 'pass', a bid from 1 to 4, or a card"):
        parse_action(text)


def test_masks():
    some = [51, 0, 12, 26]
    assert mask_of(some) == 1 | 1 << 12 | 1 << 26 | 1 << 51
    assert cards_of(mask_of(some)) == [12, 0, 26, 51]  # by suit, from high to low
    assert mask_of([]) == 0
    assert cards_of(0) == []
    assert sorted(cards_of(mask_of(range(52)))) == list(range(52))
