"""Trickster: a careful bidder that adds up what a hand is worth, and the best card player of the rule-based bots.

Its rules were written for play without a partner. With one, they say only that a dealer leaves the partner's bid alone;
that the last seat leaves a trick to the partner and feeds it is added here. "The 2" is the lowest rank of the deck.
"""

import math

import numpy as np

from agents.base import Agent
from agents.rule_bots.reading import (
    ACE,
    JACK,
    KING,
    QUEEN,
    TEN,
    cards_above,
    find_hand,
    find_led_suit,
    find_place,
    find_top,
    find_trick_cards,
    find_winners,
    holds,
    is_boss,
    is_stuck,
    raise_or_pass,
    rank_cards,
)
from pitch_env.cards import CARD_ACTION, MAX_BID, NUM_RANKS, NUM_SUITS, PASS, TRICK_POINTS
from pitch_env.engine import legal_cards
from pitch_env.kernels import ONE, U64, bit, count, highest, kernel, lowest, part
from pitch_env.scoring import count_trick_points, suit_cards
from pitch_env.table import AUCTION, NOT_YET

_POINT = 60  # values are whole numbers of sixtieths, so that tenths and sixths add up exactly
_WORTH_TAKING = 4  # trick points that make a trick worth a trump
_POINT_CARD = 100  # what a card that stands for a point is worth among cards to spend
_LOW_LEADS = 3  # a trump among this many lowest ranks (2, 3, 4) is protected, for it may be Low


@part
def find_low_rank(t):
    """The lowest rank of the deck: the 2 of a full one."""
    return NUM_RANKS - np.int64(t.num_ranks)


@part
def value_suit(t, hand, suit):
    """What the hand is worth with a suit as trump, in sixtieths of a point.

    Without a draw the points to catch with high cards round down to none, so honours count for themselves alone.
    """
    length = count(hand & suit_cards(suit))
    low = find_low_rank(t)
    has_ace, has_king = holds(hand, suit, ACE), holds(hand, suit, KING)
    has_jack, has_low = holds(hand, suit, JACK), holds(hand, suit, low)
    if has_ace and has_king and holds(hand, suit, QUEEN) and has_jack and has_low:
        return 4 * _POINT
    value = (1 + length) * (_POINT // 10)
    if has_ace:
        value += _POINT
    elif has_king:
        value += _POINT // 2
    if has_jack and length >= 2:
        value += _POINT if length >= 4 else _POINT // 2
    if t.low_to_holder:
        if has_low:
            value += _POINT
        elif low < ACE and holds(hand, suit, low + 1):
            value += _POINT // 2
    tops = count(hand & (rank_cards(ACE) | rank_cards(KING)))
    return value + min(_POINT, (length + tops) * _POINT // 6)


@part
def choose_trump(t, hand):
    """The suit that makes the hand worth most, the first of equals, and that worth."""
    best, best_value = 0, -1
    for suit in range(NUM_SUITS):
        if hand & suit_cards(suit):
            value = value_suit(t, hand, suit)
            if value > best_value:
                best, best_value = suit, value
    return best, best_value


@part
def choose_bid(t, courage, steals):
    """Straight to the whole points of the hand; the dealer bids only as much as it takes, and 2 when stuck."""
    _, value = choose_trump(t, find_hand(t))
    points = min((value + courage) // _POINT, MAX_BID)
    if t.seat != t.dealer:
        return raise_or_pass(t, points)
    if is_stuck(t):
        return raise_or_pass(t, 0)
    is_partners = t.pitcher % t.num_sides == t.seat % t.num_sides
    if is_partners or t.bid == MAX_BID:
        return np.int64(PASS)
    if steals and points >= t.bid:
        return np.int64(t.bid)
    return raise_or_pass(t, t.bid + 1 if points > t.bid else 0)


@part
def find_point_cards(t, trump):
    """Mask of the ace, the jack and, where its taker scores Low, the 2 of trump."""
    ranks = rank_cards(ACE) | rank_cards(JACK)
    if not t.low_to_holder:
        ranks |= rank_cards(find_low_rank(t))
    return ranks & suit_cards(trump)


@part
def price_card(t, card, trump):
    """What a card is worth to keep: twice its trick points, and much more if it stands for a point of its own."""
    price = 2 * TRICK_POINTS[card % NUM_RANKS]
    if find_point_cards(t, trump) & bit(card):
        price += _POINT_CARD
    return price


@part
def find_cheapest(t, cards, trump):
    """The cheapest of some cards: plain before trump, then by price, then by rank."""
    best, best_cost = np.int64(-1), np.int64(1 << 30)
    while cards:
        card = lowest(cards)
        cards &= cards - ONE
        cost = price_card(t, card, trump) * NUM_RANKS + card % NUM_RANKS
        if card // NUM_RANKS == trump:
            cost += 1 << 16
        if cost < best_cost:
            best, best_cost = card, cost
    return best


@part
def protect_low(t, card, cards, trump):
    """A card to play in place of a trump that may be Low: the equal one next to it, or of a low one any equal above."""
    known = (find_hand(t) | t.played) & suit_cards(trump)
    if t.low_to_holder or card // NUM_RANKS != trump or card != lowest(known):
        return card
    above = cards & cards_above(card)
    is_low = card % NUM_RANKS - find_low_rank(t) < _LOW_LEADS
    price = price_card(t, card, trump)
    while above:
        other = lowest(above)
        above &= above - ONE
        if (is_low or other == card + 1) and price_card(t, other, trump) == price:
            return other
    return card


@part
def give_card(t, cards, trump):
    """The cheapest of some cards, but a trump that may be Low is kept back."""
    return protect_low(t, find_cheapest(t, cards, trump), cards, trump)


@part
def find_boss_to_cash(t, hand):
    """The top card of the shortest suit in which it is unbeatable, the first of equals; -1 if there is none."""
    best, shortest = np.int64(-1), 99
    for suit in range(NUM_SUITS):
        length = count(hand & suit_cards(suit))
        if 0 < length < shortest:
            top = find_top(hand, suit)
            if is_boss(t, top):
                best, shortest = top, length
    return best


@part
def lead_card(t, hand):
    """Cash what is unbeatable, the pitcher a trump before all; else the cheapest card.

    The first lead sets trump (R10), so there the choice is among the cards of the suit that was bid on.
    """
    if t.trump == NOT_YET:
        trump, _ = choose_trump(t, hand)
        top = find_top(hand, trump)
        return top if is_boss(t, top) else give_card(t, hand & suit_cards(trump), trump)
    trump = np.int64(t.trump)
    if t.seat == t.pitcher and hand & suit_cards(trump):
        top = find_top(hand, trump)
        if is_boss(t, top):
            return top
    boss = find_boss_to_cash(t, hand)
    return boss if boss >= 0 else give_card(t, hand, trump)


@part
def is_worth_taking(t, place):
    """Whether the trick holds a point card or enough trick points to spend a trump on."""
    trick = find_trick_cards(t, place)
    return trick & find_point_cards(t, t.trump) != U64(0) or count_trick_points(trick) >= _WORTH_TAKING


@part
def follow_early(t, legal, place):
    """Not last: the top card of the suit if it wins; a ruff of what is worth it; else the cheapest card."""
    suit = find_led_suit(t, place)
    is_ruffed = suit != t.trump and t.best // NUM_RANKS == t.trump
    following = legal & suit_cards(suit)
    winners = find_winners(t, legal)
    if following and not is_ruffed:
        top = highest(following)
        if winners & bit(top):
            return top
    ruffs = winners & suit_cards(t.trump)
    if suit != t.trump and ruffs and is_worth_taking(t, place):
        if is_ruffed:
            return highest(ruffs)
        spare = ruffs & ~find_point_cards(t, t.trump)
        if spare:
            return lowest(spare)
    return give_card(t, legal, np.int64(t.trump))


@part
def find_richest(cards):
    """The card with the most trick points, the lowest of equals."""
    best, most = np.int64(-1), -1
    while cards:
        card = lowest(cards)
        cards &= cards - ONE
        points = TRICK_POINTS[card % NUM_RANKS]
        if points > most:
            best, most = card, points
    return best


@part
def find_point_to_bring_home(t, cards):
    """Of the point cards among some, the one worth most that is not sure to win later as well; -1 if there is none."""
    points = cards & find_point_cards(t, t.trump)
    while points:
        card = highest(points)
        if not is_boss(t, card):
            return card
        points &= ~bit(card)
    return np.int64(-1)


@part
def feed_partner(t, legal):
    """Last, and the partner wins the trick: a point to bring home, else a ten, else the cheapest card."""
    point = find_point_to_bring_home(t, legal)
    if point >= 0:
        return point
    tens = legal & rank_cards(TEN)
    return lowest(tens) if tens else give_card(t, legal, np.int64(t.trump))


@part
def is_partners_trick(t):
    """Whether the looker's side wins the trick so far."""
    trick = np.int64(t.num_plays) // np.int64(t.num_players)
    return t.winners[trick] % t.num_sides == t.seat % t.num_sides


@part
def follow_last(t, legal, place):
    """Last: bring home a point, else win with the richest follower, else ruff what is worth it, else give up."""
    if is_partners_trick(t):
        return feed_partner(t, legal)
    winners = find_winners(t, legal)
    trump = np.int64(t.trump)
    point = find_point_to_bring_home(t, winners)
    if point >= 0:
        return point
    following = winners & suit_cards(find_led_suit(t, place))
    if following:
        return find_richest(following)
    if winners and is_worth_taking(t, place):
        return find_cheapest(t, winners, trump)
    return give_card(t, legal, trump)


@part
def choose_card(t):
    """A card to lead or to follow with."""
    legal = legal_cards(t)
    place = find_place(t)
    if place == 0:
        return lead_card(t, legal)
    if place < t.num_players - 1:
        return follow_early(t, legal, place)
    return follow_last(t, legal, place)


@kernel
def _act(views, courage, steals):
    actions = np.empty(views.shape[0], np.int64)
    for i in range(views.shape[0]):
        if views[i].phase == AUCTION:
            actions[i] = choose_bid(views[i], courage, steals)
        else:
            actions[i] = CARD_ACTION + choose_card(views[i])
    return actions


class TricksterAgent(Agent):
    """A careful bidder and the best card player of the rule-based bots.

    Args:
        courage: points added to the value of a hand before it bids; 0.5 to 1 plays best.
        steals: whether as dealer it takes over the highest bid that its hand is worth (R7).
    """

    name = "trickster"

    def __init__(self, courage: float = 0.0, steals: bool = True) -> None:
        super().__init__()
        if not math.isfinite(courage):
            raise ValueError(f"courage takes a number of points, such as 0.5, not {courage!r}")
        self.courage, self.steals = float(courage), bool(steals)

    def act(self, views: np.ndarray, seeds: np.ndarray) -> np.ndarray:  # noqa: ARG002  (nothing is drawn)
        return _act(views, round(self.courage * _POINT), self.steals)
