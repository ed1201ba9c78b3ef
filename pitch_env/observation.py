"""What a seat sees: its view as the small integers and as the features of `pitch_env.layout`."""

import numpy as np

from pitch_env.cards import JACK, NUM_ACTIONS, NUM_CARDS, NUM_RANKS, NUM_SUITS
from pitch_env.engine import find_unseen, find_winners, hand_of, legal_actions, seat_after
from pitch_env.frame import keep_suits, order_suits, reorder_card, reorder_cards
from pitch_env.kernels import ONE, U64, bit, count, highest, kernel, lowest, part
from pitch_env.layout import (
    COMPACT,
    COMPACT_SIZE,
    IN_HAND,
    MAX_NEED,
    MAX_TRICK_POINTS,
    MIN_NEED,
    MOST_ACTIVE,
    PLAYED,
    TOP,
    WINS,
    layout,
    list_features,
)
from pitch_env.rules import MAX_HAND_SIZE, MAX_PLAYERS
from pitch_env.scoring import count_trick_points, suit_cards
from pitch_env.table import AUCTION, NOBODY

_AT = {name: place.start for name, place in COMPACT.items()}
(_NUM_PLAYERS, _TEAMS, _MADE, _HOLDER, _BY_CARD, _SUITS, _RANKS, _CARDS) = range(_AT["num_players"], _AT["trick"])
(_TRICK, _PLACE, _WAITS, _DEALER, _PITCHER, _BID, _TRUMP, _LEADER, _WINNING, _LED) = range(
    _AT["trick"], _AT["best_card"]
)
(_BEST, _WORTH, _HELD, _UNSEEN) = (_AT[name] for name in ("best_card", "trick_worth", "held", "unseen"))
(_HIGHER, _LOWER, _JACK_UNSEEN, _HIGH, _LOW, _JACK) = range(_AT["higher_trumps"], _AT["bids"])
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
def find_tops(hand, unseen):
    """Mask of the cards of a hand that no unseen card of their suit beats."""
    below = U64(0)
    for suit in range(NUM_SUITS):
        hidden = unseen & suit_cards(suit)
        if hidden:
            below |= suit_cards(suit) & (bit(highest(hidden)) - ONE)
    return hand & ~below


@part
def encode_compact(t, seat, order, out, words, i):
    """Write the compact observation of a seat, in a frame of suits, as row i of an array.

    The array comes as uint8 (N, COMPACT_SIZE) and again as uint64 (N, COMPACT_SIZE // 8); it is not handed over as a
    row, for Numba counts references to every slice.
    """
    hand, unseen = hand_of(t, seat), find_unseen(t, seat)
    own, hidden = reorder_cards(hand, order), reorder_cards(unseen, order)
    top, wins, best = find_tops(own, hidden), U64(0), np.int64(NOBODY)
    if t.num_plays % t.num_players:
        best = reorder_card(t.best, order)
        wins = find_winners(own, best, order[t.trump])
    for word in range(_HAND_WORDS):
        shift = U64(8 * word)
        state = BYTE_OF_BITS[(own >> shift) & U64(255)] * U64(IN_HAND)
        state += BYTE_OF_BITS[(top >> shift) & U64(255)] * U64(TOP)
        words[i, word] = state + BYTE_OF_BITS[(wins >> shift) & U64(255)] * U64(WINS)
    for word in range(_HAND_WORDS, COMPACT_SIZE // 8):
        words[i, word] = U64(0)
    for suit in range(NUM_SUITS):
        out[i, _HELD + suit] = count(own & suit_cards(suit))
        out[i, _UNSEEN + suit] = count(hidden & suit_cards(suit))
    _encode_rules(t, out, i)
    _encode_auction(t, seat, out, i)
    if t.phase != AUCTION:
        _encode_tricks(t, seat, order, best, out, i)
        if t.num_plays > 0:
            _encode_captures(t, seat, out, i)
            _encode_unseen(t, seat, unseen, out, i)


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
def _encode_tricks(t, seat, order, best, out, i):
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
        out[i, _BEST] = 1 + best
        cards = U64(0)
        for index in range(num_plays - place, num_plays):
            cards |= bit(t.plays[index])
        out[i, _WORTH] = min(count_trick_points(cards), MAX_TRICK_POINTS)
    if num_plays == 0:
        return
    out[i, _TRUMP] = 1 + order[t.trump]
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


@part
def _encode_unseen(t, seat, unseen, out, i):
    trumps, jack = suit_cards(t.trump), bit(t.trump * NUM_RANKS + JACK)
    hidden, seen = trumps & unseen, trumps & (t.played | t.dealt[seat])
    higher = count(hidden & ~(bit(highest(seen)) - ONE))
    lower = count(hidden & (bit(lowest(seen)) - ONE))
    out[i, _HIGHER] = higher
    out[i, _LOWER] = lower
    out[i, _JACK_UNSEEN] = (hidden & jack) != 0


@part
def list_hidden(t, seat, order, start, out):
    """Write the features "relative seat k holds this card" of the other hands, from `start` up; returns how many."""
    num = 0
    for relative in range(1, t.num_players):
        hand = hand_of(t, seat_after(t, seat, relative))
        while hand:
            card = lowest(hand)
            hand &= hand - ONE
            out[num] = start + (relative - 1) * NUM_CARDS + reorder_card(card, order)
            num += 1
    return num


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
