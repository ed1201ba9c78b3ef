"""What an observation consists of: the small integers of the compact one, and the features that a network reads.

One layout is the source of everything. `FIELDS` lists the small integers; value 0 always means "nothing to say", so a
one-hot block of a field has one feature for each value from 1 up. The float vector of the environments is the multi-hot
form of the same features. All seats are relative to the viewer (0 is the viewer, 1 the next to the left ...).
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from pitch_env.cards import MAX_BID, NUM_CARDS, NUM_RANKS, NUM_SUITS
from pitch_env.kernels import part
from pitch_env.rules import MAX_HAND_SIZE, MAX_PLAYERS

LAYOUT_VERSION = 2

# States of a card in the compact observation; a played one is PLAYED + MAX_PLAYERS * trick + relative seat. To one in
# hand is added whether no unseen card of its suit beats it, and whether it would win the trick in progress so far.
UNSEEN, IN_HAND, PLAYED = 0, 1, 2
TOP, WINS = 64, 128
MIN_NEED, MAX_NEED = -12, 51  # points to the target that are told apart
MAX_TRICK_POINTS = 41  # a side with more than 40 of the 80 has won Game


@dataclass(frozen=True)
class Field:
    """One named row of small integers in the compact observation."""

    name: str
    num_values: int  # values run from 0 to this
    text: str
    is_per_seat: bool = False
    is_per_suit: bool = False
    is_bit_set: bool = False  # the value is a set of num_values bits instead of one of num_values values

    @property
    def length(self) -> int:
        return MAX_PLAYERS if self.is_per_seat else NUM_SUITS if self.is_per_suit else 1

    def list_names(self, num_seats: int) -> list[str]:
        """Names of its blocks in the layout for some seats, a number behind where there are several."""
        num = num_seats if self.is_per_seat else self.length
        return [f"{self.name}_{index}" for index in range(num)] if self.length > 1 else [self.name]


FIELDS = (
    Field("num_players", MAX_PLAYERS - 1, "players at the table, less one"),
    Field("teams", 1, "two teams of two"),
    Field("win_needs_made_bid", 1, "a set pitcher cannot win"),
    Field("low_to_holder", 1, "Low goes to the first holder"),
    Field("pitch_by_card", 1, "a card may be played in the auction"),
    Field("missing_suits", NUM_SUITS - 1, "suits left out of the deck"),
    Field("missing_ranks", NUM_RANKS - 1, "ranks left out of the deck"),
    Field("missing_cards", MAX_HAND_SIZE - 1, "cards fewer than six dealt to each"),
    Field(
        "trick",
        MAX_HAND_SIZE + 1,
        "0 in the auction, then the trick in progress from 1; one more than there are: hand over",
    ),
    Field("place", MAX_PLAYERS - 1, "cards already in the trick in progress"),
    Field("waits_for", MAX_PLAYERS - 1, "seat to act when it is not the viewer"),
    Field("dealer", MAX_PLAYERS, "seat of the dealer, plus 1"),
    Field("pitcher", MAX_PLAYERS, "seat of the highest bidder so far, plus 1"),
    Field("bid", MAX_BID, "highest bid so far; after the auction the contract"),
    Field("trump", NUM_SUITS, "trump suit, plus 1"),
    Field("leader", MAX_PLAYERS, "seat that led the trick in progress, plus 1"),
    Field("winning", MAX_PLAYERS, "seat that so far wins the trick in progress, plus 1"),
    Field("led_suit", NUM_SUITS, "suit led in the trick in progress, plus 1"),
    Field("best_card", NUM_CARDS, "card that so far wins the trick in progress, plus 1"),
    Field("trick_worth", MAX_TRICK_POINTS, "trick points in the trick in progress, at most 41"),
    Field("held", MAX_HAND_SIZE, "cards of each suit in hand", is_per_suit=True),
    Field("unseen", NUM_RANKS, "cards of each suit that the viewer has not seen", is_per_suit=True),
    Field("higher_trumps", NUM_RANKS, "unseen trumps above the highest that the viewer has seen"),
    Field("lower_trumps", NUM_RANKS, "unseen trumps below the lowest that the viewer has seen"),
    Field("jack_unseen", 1, "the viewer has not seen the jack of trumps"),
    Field("high_taker", MAX_PLAYERS, "seat that captured the highest trump captured so far, plus 1"),
    Field("low_taker", MAX_PLAYERS, "seat that captured (or, by switch, held) the lowest of them, plus 1"),
    Field("jack_taker", MAX_PLAYERS, "seat that captured the jack of trumps, plus 1"),
    Field("bids", MAX_BID + 1, "bid of each seat: 0 not yet, 1 pass, 2-5 a bid of 1-4", is_per_seat=True),
    Field(
        "needs",
        MAX_NEED - MIN_NEED + 1,
        "target less the score of each seat's side, plus 13, within 1 to 64",
        is_per_seat=True,
    ),
    Field("trick_points", MAX_TRICK_POINTS, "trick points captured by each seat's side, at most 41", is_per_seat=True),
    Field("voids", NUM_SUITS, "suits that play proved each seat to lack", is_per_seat=True, is_bit_set=True),
)


def _place_fields() -> tuple[dict[str, slice], int]:
    places, start = {"cards": slice(0, NUM_CARDS)}, NUM_CARDS
    for field in FIELDS:
        places[field.name] = slice(start, start + field.length)
        start += field.length
    return places, -(-start // 8) * 8


COMPACT, COMPACT_SIZE = _place_fields()
"""Slices of the compact observation by name, and its length in bytes (padded to whole 8-byte words)."""

_TRICK, _VOIDS = COMPACT["trick"].start, COMPACT["voids"].start

MOST_ACTIVE = COMPACT_SIZE + 2 * NUM_CARDS + NUM_SUITS * MAX_PLAYERS  # no observation has more features than this

# Where `Layout.form` keeps the first feature of each block; -1 for a block that a layout has not.
_EARLIER, _ON_TABLE, _IN_TRICK = 0, MAX_PLAYERS, 2 * MAX_PLAYERS
_TOP = _IN_TRICK + MAX_HAND_SIZE
_WINS, _STARTS = _TOP + 1, _TOP + 2


class Layout:
    """Features of observations at tables of up to `num_seats` players.

    Attributes:
        size: number of features, the length of the float vector.
        max_active: most features that can be active at once.
        blocks: slice of each named block in the float vector.
        form: the first feature of each block as the kernels look it up, int32.
    """

    def __init__(self, num_seats: int) -> None:
        if not 2 <= num_seats <= MAX_PLAYERS:
            raise ValueError(f"num_seats takes a number from 2 to {MAX_PLAYERS}, not {num_seats!r}")
        self.num_seats = num_seats
        self.blocks: dict[str, slice] = {}
        self.size = 0
        # cards: a plane of 52 for the hand and for two sorts of its cards, for each seat's cards of earlier tricks, for
        # those of the trick in progress (the viewer's own stand with the earlier ones), and for the trick of each card
        form = np.full(_STARTS + COMPACT_SIZE, -1, np.int32)
        self._add("hand", NUM_CARDS)
        form[_TOP] = self._add("top", NUM_CARDS)
        form[_WINS] = self._add("wins", NUM_CARDS)
        for seat in range(num_seats):
            form[_EARLIER + seat] = self._add(f"earlier_{seat}", NUM_CARDS)
        form[_ON_TABLE] = form[_EARLIER]
        for seat in range(1, num_seats):
            form[_ON_TABLE + seat] = self._add(f"on_table_{seat}", NUM_CARDS)
        for trick in range(MAX_HAND_SIZE):
            form[_IN_TRICK + trick] = self._add(f"in_trick_{trick + 1}", NUM_CARDS)
        for field in FIELDS:
            for index, name in enumerate(field.list_names(num_seats)):
                form[_STARTS + COMPACT[field.name].start + index] = self._add(name, field.num_values)
        per_seat = sum(field.num_values if field.is_bit_set else 1 for field in FIELDS if field.is_per_seat)
        cards = (2 * num_seats + 1) * MAX_HAND_SIZE  # two for one that was played, three at most for one in hand
        self.max_active = cards + sum(field.length for field in FIELDS if not field.is_per_seat) + num_seats * per_seat
        self.form = form

    def _add(self, name: str, num_features: int) -> int:
        start = self.size
        self.blocks[name] = slice(start, start + num_features)
        self.size += num_features
        return start


layout = cache(Layout)


def num_hidden_features(num_seats: int) -> int:
    """Features that `list_hidden` tells apart: every card at every other seat."""
    return (num_seats - 1) * NUM_CARDS


@part
def list_features(compact, form, out):
    """Write the active features of a compact observation into `out`; returns how many there are."""
    num = 0
    current = compact[_TRICK]
    for card in range(NUM_CARDS):
        state = compact[card]
        if state == UNSEEN:
            continue
        if state & (TOP - 1) == IN_HAND:
            out[num] = card
            num += 1
            if state & TOP:
                out[num] = form[_TOP] + card
                num += 1
            if state & WINS:
                out[num] = form[_WINS] + card
                num += 1
            continue
        trick = (state - PLAYED) // MAX_PLAYERS
        seat = state - PLAYED - trick * MAX_PLAYERS
        out[num] = form[(_ON_TABLE if trick + 1 == current else _EARLIER) + seat] + card
        out[num + 1] = form[_IN_TRICK + trick] + card
        num += 2
    for index in range(NUM_CARDS, _VOIDS):
        value = compact[index]
        start = form[_STARTS + index]
        if value != 0 and start >= 0:
            out[num] = start + value - 1
            num += 1
    for index in range(_VOIDS, _VOIDS + MAX_PLAYERS):
        value = compact[index]
        if value != 0 and form[_STARTS + index] >= 0:
            for suit in range(NUM_SUITS):
                if (value >> suit) & 1:
                    out[num] = form[_STARTS + index] + suit
                    num += 1
    return num
