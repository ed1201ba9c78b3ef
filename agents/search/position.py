"""A position of a hand with all cards seen: the record that the searches walk on, and what can be told of it.

A position is one record `s` with its transposition table inside, so that a recursion hands on nothing but a pointer.
"""

import numpy as np

from pitch_env.cards import JACK, NUM_RANKS, NUM_SUITS, TRICK_POINTS
from pitch_env.engine import beats, find_winners
from pitch_env.kernels import ONE, U64, bit, count, highest, lowest, part
from pitch_env.rules import MAX_PLAYERS
from pitch_env.scoring import count_trick_points, suit_cards
from pitch_env.table import MAX_PLAYS, NOBODY

MOST_POINTS = 4  # of a hand
INFINITE = 100  # more than any payoff, either way
NO_CARD = -1

NUM_SLOTS = 1 << 17  # of the transposition table
SLOT_WORDS = 4  # of a slot: two of key, generation, and value with the best card
BIAS = 128  # added to payoffs kept in bytes
_OUT = 127  # trick points behind of a side that can no longer share in Game
BYTE = U64(255)

SEARCH = np.dtype(
    [
        ("hands", "u8", (MAX_PLAYERS,)),  # per seat: mask of the cards held
        ("sides", "i8", (MAX_PLAYERS,)),  # per seat
        ("points", "i8", (MAX_PLAYERS,)),  # per side: those of High, Low and Jack that it has for certain
        ("pips", "i8", (MAX_PLAYERS,)),  # per side: trick points captured
        ("payoffs", "i8", (MOST_POINTS + 1, MOST_POINTS + 1)),  # by the points of the pitcher's side and of the rest
        ("killers", "i8", (MAX_PLAYS + 1,)),  # per number of cards held: the card that cut off last
        ("trumps", "u8"),  # mask of the thirteen trumps
        ("low", "u8"),  # mask of the trump that scores Low for its taker; empty if its holder scores
        ("jack", "u8"),  # mask of the jack of trumps if it is in play
        ("trump", "i8"),
        ("pitching", "i8"),  # the pitcher's side
        ("bid", "i8"),
        ("num_players", "i8"),
        ("num_sides", "i8"),
        ("num_nodes", "i8"),  # met so far, for measuring
        ("generation", "u8"),  # what the table keeps under another one is of another solve
        ("last_slot", "u8"),  # how much of the table is used: a small search stays in the cache
        ("table", "u8", (SLOT_WORDS * NUM_SLOTS,)),
    ],
    align=True,
)

_TWOS = U64(sum(1 << (NUM_RANKS * suit) for suit in range(NUM_SUITS)))
_ACES = _TWOS << U64(NUM_RANKS - 1)
ALL = U64((1 << (NUM_RANKS * NUM_SUITS)) - 1)
_TENS = _TWOS << U64(TRICK_POINTS.index(10))
PLAIN = U64(sum(int(_TWOS) << rank for rank, points in enumerate(TRICK_POINTS) if not points))


@part
def enter_hand(s, t):
    """Read a table in play, all but what depends on the trump."""
    s.num_players, s.num_sides = t.num_players, t.num_sides
    s.bid = t.bid
    s.pitching = t.pitcher % t.num_sides
    s.generation += ONE
    for side in range(s.num_sides):
        s.pips[side] = 0
    for seat in range(s.num_players):
        s.hands[seat] = t.dealt[seat] & ~t.played
        s.sides[seat] = seat % s.num_sides
        s.pips[s.sides[seat]] += count_trick_points(t.captured[seat])
    for number in range(MAX_PLAYS + 1):
        s.killers[number] = NO_CARD


@part
def enter_trump(s, t, trump):
    """Fix the trump: who has points for certain, and which cards have points to capture."""
    s.trump = trump
    s.trumps = suit_cards(trump)
    dealt = U64(0)
    for seat in range(s.num_players):
        dealt |= t.dealt[seat]
    high, low = bit(highest(dealt & s.trumps)), bit(lowest(dealt & s.trumps))
    s.jack = bit(trump * NUM_RANKS + JACK) & dealt
    s.low = U64(0) if t.low_to_holder else low
    for side in range(s.num_sides):
        s.points[side] = 0
    for seat in range(s.num_players):
        side = s.sides[seat]
        if t.dealt[seat] & high:  # it wins its trick, whoever leads
            s.points[side] += 1
        if t.low_to_holder and t.dealt[seat] & low:
            s.points[side] += 1
        s.points[side] += count_points(s, t.captured[seat])


@part
def count_points(s, cards):
    """Points of Low and Jack among captured cards; a lone jack is both (R17)."""
    return count(cards & s.low) + count(cards & s.jack)


@part
def find_moves(s, seat, place, led):
    """Cards a seat may play (R10, R11), `place` cards lying in the trick, of which the first is of suit `led`."""
    hand = s.hands[seat]
    if place > 0:
        following = suit_cards(led)
        if hand & following:
            return hand & (following | s.trumps)
    return hand


@part
def drop_equals(moves, live, plain):
    """Moves without those next above another one, no card in play between the two; of plain cards only.

    Adding each card's upper neighbour to the gaps carries through the gap to the next card in play.
    """
    gaps = ~(live | _ACES)  # at an ace the carry stops
    above = ((moves & plain) << ONE) & ~_TWOS
    above = ((gaps + (above & gaps)) & ~gaps) | (above & ~gaps)
    return moves & ~(above & moves & plain)


@part
def is_safe(s, card, foes):
    """Whether a trump, as a mask, is captured by the side that holds it, the other sides holding the cards `foes`."""
    return foes & s.trumps & ~(card | (card - ONE)) == U64(0)


@part
def find_key(s, leader, live, rest):
    """Two words that tell positions of a hand between tricks apart by all that matters to the rest of it."""
    most = s.pips[0]
    for side in range(1, s.num_sides):
        most = max(most, s.pips[side])
    second = U64(0)
    for side in range(s.num_sides):
        behind = most - s.pips[side]
        second = (second << U64(7)) | U64(_OUT if behind > rest else behind)
        second = (second << U64(2)) | U64(s.points[side])
    first = live | (U64(leader) << U64(52)) | (U64(s.trump) << U64(55))
    return first, second


@part
def find_slot(s, first, second):
    """Where in the table a key belongs."""
    mixed = first * U64(0x9E3779B97F4A7C15) ^ second * U64(0xC2B2AE3D27D4EB4F)
    return U64(SLOT_WORDS) * (((mixed ^ (mixed >> U64(29))) * U64(0xBF58476D1CE4E5B9) >> U64(40)) & s.last_slot)


@part
def play_last_trick(s, leader):
    """Winner of the trick when each seat holds one card."""
    winner, best = leader, lowest(s.hands[leader])
    seat = leader
    for _ in range(s.num_players - 1):
        seat = seat + 1 if seat + 1 < s.num_players else 0
        card = lowest(s.hands[seat])
        if beats(s, card, best):
            winner, best = seat, card
    return winner


@part
def find_game(s):
    """The side with strictly the most trick points, or NOBODY (R16)."""
    most, owner = 0, NOBODY
    for side in range(s.num_sides):
        if s.pips[side] > most:
            most, owner = s.pips[side], side
        elif s.pips[side] == most:
            owner = NOBODY
    return owner


@part
def end_hand(s, leader):
    """Play the last trick, each seat holding one card, and award Game: the side and what to take back after."""
    pile = U64(0)
    for seat in range(s.num_players):
        pile |= s.hands[seat]
    side = s.sides[play_last_trick(s, leader)]
    pips, points = count_trick_points(pile), count_points(s, pile)
    s.pips[side] += pips
    s.points[side] += points
    game = find_game(s)
    if game != NOBODY:
        s.points[game] += 1
    return side, pips, points, game


@part
def take_back(s, side, pips, points, game):
    """Undo what a trick, or the end of the hand, gave."""
    s.pips[side] -= pips
    s.points[side] -= points
    if game != NOBODY:
        s.points[game] -= 1


@part
def find_early(s, moves, live, best, is_friend):
    """Moves to try first: leads that nothing beats in their suit; what wins the trick; tens for a friend's trick."""
    if best == NO_CARD:
        early = U64(0)
        for suit in range(NUM_SUITS):
            cards = live & suit_cards(suit)
            if cards:
                early |= moves & bit(highest(cards))
        return early
    if is_friend:
        return moves & _TENS
    return find_winners(moves, best, s.trump)
