"""What the rule-based bots read off a view: the hand, the trick in progress, who wins it, and the auction.

A view's record is `t`; the seat that looks is the seat to act. Sets of cards are masks.
"""

import numpy as np

from pitch_env.cards import NUM_RANKS, NUM_SUITS, PASS, RANKS
from pitch_env.engine import hand_of
from pitch_env.kernels import ONE, U64, bit, highest, lowest, part
from pitch_env.scoring import suit_cards

TEN, JACK, QUEEN, KING, ACE = (RANKS.index(rank) for rank in "TJQKA")

STUCK_BID = 2  # the least a dealer bids when everyone passed (R6), and the least that any of these bots bids

_ONE_RANK = U64(sum(1 << (NUM_RANKS * suit) for suit in range(NUM_SUITS)))


@part
def rank_cards(rank):
    """Mask of the cards of a rank."""
    return _ONE_RANK << U64(rank)


@part
def holds(cards, suit, rank):
    """Whether a card is among some cards."""
    return cards & bit(suit * NUM_RANKS + rank) != U64(0)


@part
def cards_above(card):
    """Mask of the higher cards of the same suit."""
    return suit_cards(card // NUM_RANKS) & ~((bit(card) << ONE) - ONE)


@part
def find_lowest(cards):
    """The card of the lowest rank, of the first suit that has it; -1 if there is none."""
    for rank in range(NUM_RANKS):
        same = cards & rank_cards(rank)
        if same:
            return lowest(same)
    return np.int64(-1)


@part
def find_highest(cards):
    """The card of the highest rank, of the first suit that has it; -1 if there is none."""
    for rank in range(NUM_RANKS - 1, -1, -1):
        same = cards & rank_cards(rank)
        if same:
            return lowest(same)
    return np.int64(-1)


@part
def find_place(t):
    """How many have played to the trick in progress."""
    return np.int64(t.num_plays) % np.int64(t.num_players)


@part
def find_led_suit(t, place):
    """The suit led to the trick in progress, to which `place` cards were played."""
    return np.int64(t.plays[t.num_plays - place]) // NUM_RANKS


@part
def find_trick_cards(t, place):
    """Mask of the cards of the trick in progress."""
    cards = U64(0)
    for index in range(t.num_plays - place, t.num_plays):
        cards |= bit(t.plays[index])
    return cards


@part
def find_winners(t, cards):
    """Which of some cards would win the trick so far (R12)."""
    best = np.int64(t.best)
    winners = cards & cards_above(best)
    if best // NUM_RANKS != t.trump:
        winners |= cards & suit_cards(t.trump)
    return winners


@part
def is_boss(t, card):
    """Whether every higher card of the suit is played; the looker's own hand and the undealt cards do not count."""
    return cards_above(card) & ~t.played == U64(0)


@part
def is_stuck(t):
    """Whether the seat is the dealer whom everyone passed to, who must bid (R6)."""
    return t.seat == t.dealer and t.bid == 0


@part
def raise_or_pass(t, bid):
    """A bid if it tops the highest so far, otherwise a pass, or the least legal bid of a stuck dealer."""
    if bid > t.bid and bid >= STUCK_BID:
        return np.int64(bid)
    return np.int64(STUCK_BID if is_stuck(t) else PASS)


@part
def find_hand(t):
    """Mask of the cards that the looker still holds."""
    return hand_of(t, t.seat)


@part
def find_top(cards, suit):
    """The highest card of a suit among some cards, which have one."""
    return highest(cards & suit_cards(suit))
