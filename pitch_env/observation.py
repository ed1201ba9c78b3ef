"""What a network sees: a seat's view as small integers, as active features, and as a float vector.

One layout is the source of everything. `FIELDS` lists the small integers of the compact observation; value 0 always
means "nothing to say", so a one-hot block of a field has one feature for each value from 1 up. The float vector of the
environments is the multi-hot form of the same features. All seats are relative to the viewer (0 is the viewer, 1 the
next to the left ...).
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from pitch_env.cards import JACK, MAX_BID, NUM_ACTIONS, NUM_CARDS, NUM_RANKS, NUM_SUITS
from pitch_env.engine import hand_of, legal_actions, seat_after
from pitch_env.frame import keep_suits, order_suits, reorder_cards
from pitch_env.kernels import ONE, U64, bit, highest, kernel, lowest, part
from pitch_env.rules import MAX_HAND_SIZE, MAX_PLAYERS
from pitch_env.scoring import count_trick_points, suit_cards
from pitch_env.table import AUCTION, NOBODY

LAYOUT_VERSION = 1

# States of a card in the compact observation; a played one is PLAYED + MAX_PLAYERS * trick + relative seat.
UNSEEN, IN_HAND, PLAYED = 0, 1, 2
MIN_NEED, MAX_NEED = -12, 51  # points to the target that are told apart
MAX_TRICK_POINTS = 41  # a side with more than 40 of the 80 has won Game


@dataclass(frozen=True)
class Field:
    """One named row of small integers in the compact observation."""

    name: str
    num_values: int  # values run from 0 to this
    text: str
    is_per_seat: bool = False
    is_bit_set: bool = False  # the value is a set of num_values bits instead of one of num_values values

    @property
    def length(self) -> int:
        return MAX_PLAYERS if self.is_per_seat else 1


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

_AT = {name: place.start for name, place in COMPACT.items()}
(_NUM_PLAYERS, _TEAMS, _MADE, _HOLDER, _BY_CARD, _SUITS, _RANKS, _CARDS) = range(_AT["num_players"], _AT["trick"])
(_TRICK, _PLACE, _WAITS, _DEALER, _PITCHER, _BID, _TRUMP, _LEADER, _WINNING, _LED) = range(
    _AT["trick"], _AT["high_taker"]
)
(_HIGH, _LOW, _JACK) = range(_AT["high_taker"], _AT["bids"])
_BIDS, _NEEDS, _POINTS, _VOIDS = (_AT[name] for name in ("bids", "needs", "trick_points", "voids"))

_HAND_WORDS = -(-NUM_CARDS // 8)
BYTE_OF_BITS = np.array([sum(1 << (8 * bit) for bit in range(8) if bits >> bit & 1) for bits in range(256)], np.uint64)
"""Eight bits spread over eight bytes: a mask is written as bytes of 0 and 1 with one store for eight."""


@part
def turns_to(num_players, viewer, seat):
    """How many seats to the left of the viewer a seat is."""
    turns = np.int64(seat) - viewer
    return turns + num_players if turns < 0 else turns


@part
def encode_compact(t, seat, order, out, words, i):
    """Write the compact observation of a seat, in a frame of suits, as row i of an array.

    The array comes as uint8 (N, COMPACT_SIZE) and again as uint64 (N, COMPACT_SIZE // 8); it is not handed over as a
    row, for Numba counts references to every slice.
    """
    hand = reorder_cards(hand_of(t, seat), order)
    for word in range(_HAND_WORDS):
        words[i, word] = BYTE_OF_BITS[(hand >> U64(8 * word)) & U64(255)]  # IN_HAND or UNSEEN
    for word in range(_HAND_WORDS, COMPACT_SIZE // 8):
        words[i, word] = U64(0)
    _encode_rules(t, out, i)
    _encode_auction(t, seat, out, i)
    if t.phase != AUCTION:
        _encode_tricks(t, seat, order, out, i)


@part
def _encode_rules(t, out, i):
    out[i, _NUM_PLAYERS] = t.num_players - 1
    out[i, _TEAMS] = t.num_sides != t.num_players
    out[i, _MADE] = t.win_needs_made_bid
    out[i, _HOLDER] = t.low_to_holder
    out[i, _BY_CARD] = t.pitch_by_card
    out[i, _SUITS] = NUM_SUITS - t.num_suits
    out[i, _RANKS] = NUM_RANKS - t.num_ranks
    out[i, _CARDS] = MAX_HAND_SIZE - t.hand_size


# The writers below read what they need of the table first: to the compiler any byte written may change the table.


@part
def _encode_auction(t, seat, out, i):
    num_players, is_team, target = np.int64(t.num_players), t.num_sides != t.num_players, np.int64(t.target)
    to_act, dealer, pitcher, bid = t.seat, t.dealer, t.pitcher, t.bid
    if to_act != NOBODY:
        out[i, _WAITS] = turns_to(num_players, seat, to_act)
    out[i, _DEALER] = 1 + turns_to(num_players, seat, dealer)
    if pitcher != NOBODY:
        out[i, _PITCHER] = 1 + turns_to(num_players, seat, pitcher)
    out[i, _BID] = bid
    other = np.int64(seat)
    for turns in range(num_players):
        need = target - t.scores[other & 1 if is_team else other]
        out[i, _BIDS + turns] = 1 + t.bids[other]
        out[i, _NEEDS + turns] = min(max(need, MIN_NEED), MAX_NEED) - MIN_NEED + 1
        other = 0 if other + 1 == num_players else other + 1


@part
def _encode_tricks(t, seat, order, out, i):
    num_players, num_plays = np.int64(t.num_players), np.int64(t.num_plays)
    trick = start = 0
    while start < num_plays:
        turns = turns_to(num_players, seat, t.leaders[trick])
        for index in range(start, min(start + num_players, num_plays)):
            card = np.int64(t.plays[index])
            suit = card // NUM_RANKS
            out[i, card + (order[suit] - suit) * NUM_RANKS] = PLAYED + MAX_PLAYERS * trick + turns
            turns = 0 if turns + 1 == num_players else turns + 1
        start += num_players
        trick += 1
    place = 0
    if start > num_plays:
        trick -= 1
        place = num_plays - start + num_players
    out[i, _TRICK] = trick + 1
    if place > 0:
        out[i, _PLACE] = place
        out[i, _LEADER] = 1 + turns_to(num_players, seat, t.leaders[trick])
        out[i, _WINNING] = 1 + turns_to(num_players, seat, t.winners[trick])
        out[i, _LED] = 1 + order[t.plays[num_plays - place] // NUM_RANKS]
    if num_plays == 0:
        return
    out[i, _TRUMP] = 1 + order[t.trump]
    _encode_captures(t, seat, out, i)
    places = (order[0], order[1], order[2], order[3])
    other = np.int64(seat)
    for turns in range(num_players):
        voids = np.int64(t.voids[other])
        moved = 0
        for suit in range(NUM_SUITS):
            moved |= ((voids >> suit) & 1) << places[suit]
        out[i, _VOIDS + turns] = moved
        other = 0 if other + 1 == num_players else other + 1


@part
def _encode_captures(t, seat, out, i):
    num_players, is_team, low_to_holder = np.int64(t.num_players), t.num_sides != t.num_players, t.low_to_holder
    taken = U64(0)
    for other in range(num_players):
        taken |= t.captured[other]
    trumps = taken & suit_cards(t.trump)
    high = trumps & bit(highest(trumps) & 63)
    low = trumps & (~trumps + ONE)
    jack = trumps & bit(t.trump * NUM_RANKS + JACK)
    high_taker = low_taker = jack_taker = 0
    other = np.int64(seat)
    for turns in range(num_players):
        cards = t.captured[other]
        low_cards = t.dealt[other] if low_to_holder else cards
        high_taker += (turns + 1) * ((cards & high) != 0)
        low_taker += (turns + 1) * ((low_cards & low) != 0)
        jack_taker += (turns + 1) * ((cards & jack) != 0)
        if is_team:
            cards |= t.captured[other ^ 2]
        out[i, _POINTS + turns] = min(count_trick_points(cards), MAX_TRICK_POINTS)
        other = 0 if other + 1 == num_players else other + 1
    out[i, _HIGH] = high_taker
    out[i, _LOW] = low_taker
    out[i, _JACK] = jack_taker


MOST_ACTIVE = COMPACT_SIZE + NUM_CARDS + NUM_SUITS * MAX_PLAYERS  # no observation has more features than this

# Where `Layout.form` keeps the first feature of each block; -1 for a block that a layout has not.
_EARLIER, _ON_TABLE, _IN_TRICK, _STARTS = 0, MAX_PLAYERS, 2 * MAX_PLAYERS, 2 * MAX_PLAYERS + MAX_HAND_SIZE


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
        # cards: a plane of 52 for the hand, for each seat's cards of earlier tricks, for those of the trick in
        # progress (the viewer's own stand with the earlier ones), and for the trick in which a card fell
        form = np.full(_STARTS + COMPACT_SIZE, -1, np.int32)
        self._add("hand", NUM_CARDS)
        for seat in range(num_seats):
            form[_EARLIER + seat] = self._add(f"earlier_{seat}", NUM_CARDS)
        form[_ON_TABLE] = form[_EARLIER]
        for seat in range(1, num_seats):
            form[_ON_TABLE + seat] = self._add(f"on_table_{seat}", NUM_CARDS)
        for trick in range(MAX_HAND_SIZE):
            form[_IN_TRICK + trick] = self._add(f"in_trick_{trick + 1}", NUM_CARDS)
        for field in FIELDS:
            for index in range(num_seats if field.is_per_seat else 1):
                name = f"{field.name}_{index}" if field.is_per_seat else field.name
                form[_STARTS + COMPACT[field.name].start + index] = self._add(name, field.num_values)
        per_seat = sum(field.num_values if field.is_bit_set else 1 for field in FIELDS if field.is_per_seat)
        played = 2 * (num_seats * MAX_HAND_SIZE - 1) + 1
        self.max_active = played + sum(not field.is_per_seat for field in FIELDS) + num_seats * per_seat
        self.form = form

    def _add(self, name: str, num_features: int) -> int:
        start = self.size
        self.blocks[name] = slice(start, start + num_features)
        self.size += num_features
        return start


layout = cache(Layout)


@part
def list_features(compact, form, out):
    """Write the active features of a compact observation into `out`; returns how many there are."""
    num = 0
    current = compact[_TRICK]
    for card in range(NUM_CARDS):
        state = compact[card]
        if state == UNSEEN:
            continue
        if state == IN_HAND:
            out[num] = card
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


@part
def list_hidden(t, seat, order, start, out):
    """Write the features "relative seat k holds this card" of the other hands, from `start` up; returns how many."""
    num = 0
    for relative in range(1, t.num_players):
        hand = hand_of(t, seat_after(t, seat, relative))
        while hand:
            card = lowest(hand)
            hand &= hand - ONE
            out[num] = start + (relative - 1) * NUM_CARDS + order[card // NUM_RANKS] * NUM_RANKS + card % NUM_RANKS
            num += 1
    return num


def num_hidden_features(num_seats: int) -> int:
    """Features that `list_hidden` tells apart: every card at every other seat."""
    return (num_seats - 1) * NUM_CARDS


# What Python calls.


@part
def expand_mask(legal, words, i):
    """Write a mask over actions as 64 bytes of 0 and 1, row i of uint64 words (N, 8)."""
    for index in range(8):
        words[i, index] = BYTE_OF_BITS[(legal >> U64(8 * index)) & U64(255)]


@kernel
def _observe(tables, seats, is_canonical, compact, orders):
    words = compact.view(np.uint64)
    order = np.empty(NUM_SUITS, np.int64)
    for i in range(tables.shape[0]):
        if is_canonical:
            order_suits(tables[i], seats[i], order)
        else:
            keep_suits(order)
        encode_compact(tables[i], seats[i], order, compact, words, i)
        for suit in range(NUM_SUITS):
            orders[i, suit] = order[suit]


@kernel
def _activate(compact, form, vectors):
    active = np.empty(MOST_ACTIVE, np.int32)
    for i in range(compact.shape[0]):
        for index in range(list_features(compact[i], form, active)):
            vectors[i, active[index]] = 1


@kernel
def _observe_one(tables, seat, form, vector, mask):
    t = tables[0]
    order = np.empty(NUM_SUITS, np.int64)
    words = np.empty((1, COMPACT_SIZE // 8), np.uint64)
    compact = words.view(np.uint8)
    active = np.empty(MOST_ACTIVE, np.int32)
    keep_suits(order)
    encode_compact(t, seat, order, compact, words, 0)
    vector[:] = 0
    for index in range(list_features(compact[0], form, active)):
        vector[active[index]] = 1
    legal = legal_actions(t) if t.seat == seat else U64(0)
    for action in range(NUM_ACTIONS):
        mask[action] = (legal >> U64(action)) & ONE


def observe_compact(tables: np.ndarray, seats: np.ndarray, is_canonical: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Compact observations of one seat at each of the tables or views, (N,).

    Args:
        tables: (N,) of `TABLE`.
        seats: (N,) seat that looks at each.
        is_canonical: whether suits are put in the seat's canonical order (see `order_suits`).

    Returns:
        uint8 (N, COMPACT_SIZE), and the place of each suit, int64 (N, 4).
    """
    compact = np.empty((len(tables), COMPACT_SIZE), np.uint8)
    orders = np.empty((len(tables), NUM_SUITS), np.int64)
    _observe(tables, np.ascontiguousarray(seats, np.int64), is_canonical, compact, orders)
    return compact, orders


def to_vectors(compact: np.ndarray, num_seats: int) -> np.ndarray:
    """Multi-hot float32 vectors, (N, layout size), of compact observations, (N, COMPACT_SIZE)."""
    vectors = np.zeros((len(compact), layout(num_seats).size), np.float32)
    _activate(compact, layout(num_seats).form, vectors)
    return vectors


def observe(table: np.ndarray, seat: int, num_seats: int) -> tuple[np.ndarray, np.ndarray]:
    """Observation and action mask of a seat at a table or view, (1,), in the layout for `num_seats`.

    Returns:
        float32 (layout size,) of 0 and 1, and int8 (57,) that is all zero when the seat is not to act.
    """
    form = layout(num_seats)
    vector = np.empty(form.size, np.float32)
    mask = np.empty(NUM_ACTIONS, np.int8)
    _observe_one(table, seat, form.form, vector, mask)
    return vector, mask
