"""Baby: counts honours and length to bid, then always plays its strongest card."""

import numpy as np

from agents.base import Agent
from agents.rule_bots.reading import (
    ACE,
    JACK,
    KING,
    QUEEN,
    STUCK_BID,
    find_hand,
    find_highest,
    find_led_suit,
    find_place,
    holds,
    raise_or_pass,
)
from pitch_env.cards import CARD_ACTION, NUM_SUITS
from pitch_env.engine import legal_cards
from pitch_env.kernels import U64, count, highest, kernel, part
from pitch_env.scoring import suit_cards
from pitch_env.table import AUCTION, NOT_YET


@part
def rate_suit(hand, suit):
    """What a suit is worth as trump, 1 to 4: by its top cards, the jack and the length."""
    length = count(hand & suit_cards(suit))
    has_jack = holds(hand, suit, JACK)
    has_top_two = holds(hand, suit, ACE) or holds(hand, suit, KING)
    has_top_three = has_top_two or holds(hand, suit, QUEEN)
    if has_jack and has_top_two and length >= 4:
        return 4
    if has_top_three and ((has_jack and length >= 3) or length >= 4):
        return 3
    if (has_top_two and length >= 2) or (has_top_three and length >= 3):
        return 2
    return 1


@part
def choose_trump(hand):
    """The suit that is worth most; among equals the longest, then the first (a choice: the facts name none)."""
    best, best_key = 0, -1
    for suit in range(NUM_SUITS):
        length = count(hand & suit_cards(suit))
        key = rate_suit(hand, suit) * 8 + length
        if length > 0 and key > best_key:
            best, best_key = suit, key
    return best


@part
def choose_bid(t):
    """One more than the highest bid so far, counted from 1, if the best suit is worth that; it never steals."""
    hand = find_hand(t)
    bid = max(np.int64(t.bid) + 1, STUCK_BID)
    return raise_or_pass(t, bid if rate_suit(hand, choose_trump(hand)) >= bid else 0)


@part
def choose_card(t):
    """The strongest legal card: the top trump, else the top card of the led suit, else the top card."""
    if t.trump == NOT_YET:
        hand = find_hand(t)
        return highest(hand & suit_cards(choose_trump(hand)))
    legal = legal_cards(t)
    strongest = legal & suit_cards(t.trump)
    if strongest == U64(0):
        place = find_place(t)
        if place > 0:
            strongest = legal & suit_cards(find_led_suit(t, place))
    return find_highest(strongest if strongest else legal)


@kernel
def _act(views):
    actions = np.empty(views.shape[0], np.int64)
    for i in range(views.shape[0]):
        if views[i].phase == AUCTION:
            actions[i] = choose_bid(views[i])
        else:
            actions[i] = CARD_ACTION + choose_card(views[i])
    return actions


class BabyAgent(Agent):
    """A beginner: raises by one while a suit bears it and always plays high."""

    name = "baby"

    def act(self, views: np.ndarray, seeds: np.ndarray) -> np.ndarray:  # noqa: ARG002  (nothing is drawn)
        return _act(views)
