"""Alphonso: a bold bidder with short tables of what to lead, beat and give.

Its rules were made for two players, where the card led is the card to beat. With more, what they say of the card led is
taken here to be about the card that wins the trick so far. Ranks are meant literally, also in a short deck.
"""

import numpy as np

from agents.base import Agent
from agents.rule_bots.reading import (
    ACE,
    JACK,
    KING,
    QUEEN,
    TEN,
    find_hand,
    find_highest,
    find_led_suit,
    find_lowest,
    find_place,
    find_top,
    find_winners,
    holds,
    is_stuck,
    raise_or_pass,
    rank_cards,
)
from pitch_env.cards import CARD_ACTION, NUM_RANKS, NUM_SUITS, PASS, RANKS
from pitch_env.engine import legal_cards
from pitch_env.kernels import U64, bit, count, highest, kernel, lowest, part
from pitch_env.scoring import suit_cards
from pitch_env.table import AUCTION, NOT_YET

_LEAD_ORDER = tuple(RANKS.index(rank) for rank in "AKQ98765TJ432")
_GIVE_ORDER = tuple(RANKS.index(rank) for rank in "987654QKA3T2J")
_RANK_3 = RANKS.index("3")
_LOW_LEAD = RANKS.index("4")  # a lone trump up to here is not led


@part
def sum_ranks(cards):
    """Sum of the ranks of some cards, a 2 counting 2 and an ace 14."""
    total = 0
    for rank in range(NUM_RANKS):
        total += (rank + 2) * count(cards & rank_cards(rank))
    return total


@part
def choose_trump(hand):
    """The suit with the largest sum of ranks, the first of equals."""
    best, best_sum = 0, 0
    for suit in range(NUM_SUITS):
        total = sum_ranks(hand & suit_cards(suit))
        if total > best_sum:
            best, best_sum = suit, total
    return best


@part
def count_ranks(hand, suit, low, high):
    """How many cards of a suit lie between two ranks, both counted."""
    total = 0
    for rank in range(low, high + 1):
        total += 1 if holds(hand, suit, rank) else 0
    return total


@part
def plan_hand(hand, suit):
    """What to bid with a suit as trump (0 is a pass), and whether its second best card is led; first match wins."""
    length = count(hand & suit_cards(suit))
    has_ace, has_king = holds(hand, suit, ACE), holds(hand, suit, KING)
    has_jack = holds(hand, suit, JACK)
    has_top = has_ace or has_king or holds(hand, suit, QUEEN)
    outside = hand & ~suit_cards(suit) & (rank_cards(ACE) | rank_cards(KING))
    if (has_ace or has_king) and has_jack and length >= 3:
        return 4, False
    if has_top and (length >= 3 or count_ranks(hand, suit, TEN, ACE) >= 2):
        return 3, False
    if has_ace and length == 2 and outside:
        return 3, False
    if has_jack and (length == 3 or count_ranks(hand, suit, TEN - 3, TEN) > 0):
        return 3, True
    if has_top or has_jack or length >= 3:
        return 2, False
    if count_ranks(hand, suit, TEN - 2, TEN) >= 2:
        return 2, True
    return PASS, False


@part
def choose_bid(t):
    """Straight to what the hand is worth; never 1 and never a steal. A dealer who must bid bids 2 with any hand."""
    hand = find_hand(t)
    bid, _ = plan_hand(hand, choose_trump(hand))
    return raise_or_pass(t, 0 if is_stuck(t) else bid)


@part
def open_play(t):
    """The first lead: the top trump, or the second best where the bid says so."""
    hand = find_hand(t)
    suit = choose_trump(hand)
    _, leads_second = plan_hand(hand, suit)
    top = find_top(hand, suit)
    rest = hand & suit_cards(suit) & ~bit(top)
    return highest(rest) if leads_second and rest else top


@part
def find_first(cards, suit, order):
    """The first card of a suit in an order of ranks among some cards, which have one."""
    for rank in order:
        if holds(cards, suit, rank):
            return np.int64(suit * NUM_RANKS + rank)
    return np.int64(-1)


@part
def lead_card(t, hand):
    """A trump in the order of leading, unless it is a lone low one; else the top plain card, a ten last."""
    trumps = hand & suit_cards(t.trump)
    plain = hand & ~trumps
    is_lone_low = count(trumps) == 1 and lowest(trumps) % NUM_RANKS <= _LOW_LEAD
    if trumps and not (is_lone_low and plain):
        return find_first(trumps, t.trump, _LEAD_ORDER)
    no_tens = plain & ~rank_cards(TEN)
    return find_highest(no_tens if no_tens else plain)


@part
def give_card(t, legal):
    """A card to lose: the lowest plain one that is no ten, then a ten, then the least valuable trump."""
    plain = legal & ~suit_cards(t.trump)
    no_tens = plain & ~rank_cards(TEN)
    if no_tens:
        return find_lowest(no_tens)
    if plain:
        return find_lowest(plain)
    return find_first(legal, t.trump, _GIVE_ORDER)


@part
def follow_trump(t, legal, winners):
    """Beat K, J, 10, 3 and 2 with the cheapest higher trump; anything else takes the least valuable card."""
    rank = t.best % NUM_RANKS
    is_prize = rank in (KING, JACK, TEN) or rank <= _RANK_3
    return lowest(winners) if is_prize and winners else give_card(t, legal)


@part
def follow_plain(t, legal, winners, suit):
    """Take with the ten of the suit led; else by the rank to beat: cheaply, with a trump, or not at all."""
    following = winners & suit_cards(suit)
    if holds(following, suit, TEN):
        return np.int64(suit * NUM_RANKS + TEN)
    rank = t.best % NUM_RANKS
    if rank >= TEN and following:
        return lowest(following)
    is_worth_ruffing = rank in (TEN, KING, ACE)
    return lowest(winners) if is_worth_ruffing and winners else give_card(t, legal)


@part
def choose_card(t):
    """A card to lead or to follow with. A trick that was ruffed is followed like a lead of the winning trump."""
    if t.trump == NOT_YET:
        return open_play(t)
    legal = legal_cards(t)
    place = find_place(t)
    if place == 0:
        return lead_card(t, legal)
    winners = find_winners(t, legal)
    if winners == U64(0):
        return give_card(t, legal)
    if t.best // NUM_RANKS == t.trump:
        return follow_trump(t, legal, winners)
    return follow_plain(t, legal, winners, find_led_suit(t, place))


@kernel
def _act(views):
    actions = np.empty(views.shape[0], np.int64)
    for i in range(views.shape[0]):
        if views[i].phase == AUCTION:
            actions[i] = choose_bid(views[i])
        else:
            actions[i] = CARD_ACTION + choose_card(views[i])
    return actions


class AlphonsoAgent(Agent):
    """A bold bidder: 3 on most hands, and it takes what is rich."""

    name = "alphonso"

    def act(self, views: np.ndarray, seeds: np.ndarray) -> np.ndarray:  # noqa: ARG002  (nothing is drawn)
        return _act(views)
