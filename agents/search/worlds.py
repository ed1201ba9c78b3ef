"""Deals that a view leaves possible, each as likely as any other.

What a view proves: the looker's own cards, every card played, how many cards each seat still holds, and the suits that
public play shows a seat to be out of (`voids`). Who holds Low is settled after the hand only, so it proves nothing
during it. Bids and plays that are merely unlikely do not count here.

Dealing one seat after another from the cards it may hold is not uniform when voids differ: a seat dealt late finds the
cards that only it may hold still there. So such a deal is a proposal: with the voids served first, its probability is
the inverse of the product of the choices each seat had, and it is kept with a probability in proportion to that product
(rejection sampling; it is always kept where each seat's voids are among those of the seats served before it).
"""

import numpy as np

from pitch_env.cards import NUM_SUITS
from pitch_env.engine import draw_random, find_unseen
from pitch_env.kernels import U64, bit, count, kernel, nth, part
from pitch_env.rules import MAX_PLAYERS
from pitch_env.scoring import suit_cards
from pitch_env.table import NOBODY, TABLE

_SET_APART = U64(0x5851F42D4C957F2D)  # of all streams that come of a plain seed, such as a table's own


@part
def draw_word(t):
    """64 bits from the table's own stream."""
    high = U64(draw_random(t, np.int64(1) << 32))
    return (high << U64(32)) | U64(draw_random(t, np.int64(1) << 32))


@part
def find_allowed(t, seat, unseen):
    """Mask of the unseen cards that a seat may hold."""
    allowed = unseen
    for suit in range(NUM_SUITS):
        if t.voids[seat] >> suit & 1:
            allowed &= ~suit_cards(suit)
    return allowed


@part
def sort_seats(t, unseen, seats, counts):
    """Write the seats with hidden cards, those that may hold least first, and how many they hide; their number."""
    num_seats = 0
    for seat in range(t.num_players):
        hidden = t.hand_size - count(t.dealt[seat])
        if seat == t.viewer or hidden == 0:
            continue
        place = num_seats
        while place > 0 and count(find_allowed(t, seats[place - 1], unseen)) > count(find_allowed(t, seat, unseen)):
            seats[place], counts[place] = seats[place - 1], counts[place - 1]
            place -= 1
        seats[place], counts[place] = seat, hidden
        num_seats += 1
    return num_seats


@part
def bound_choices(t, unseen, seats, counts, num_seats, most):
    """Write the most cards each seat may find to choose from, those before it taking as many others as they can."""
    for place in range(num_seats):
        allowed = find_allowed(t, seats[place], unseen)
        taken = 0
        for before in range(place):
            others = find_allowed(t, seats[before], unseen) & ~allowed
            taken += max(0, counts[before] - count(others))
        most[place] = count(allowed) - taken


@part
def propose_deal(t, unseen, seats, counts, num_seats, most, hands):
    """Deal the seats one after another into hands; whether the deal is kept, for all deals to be as likely."""
    chance = 1.0
    for place in range(num_seats):
        seat = seats[place]
        allowed = find_allowed(t, seat, unseen)
        size = count(allowed)
        if size < counts[place]:
            return False
        hands[seat] = U64(0)
        for drawn in range(counts[place]):
            chance *= (size - drawn) / (most[place] - drawn)
            card = bit(nth(allowed, draw_random(t, size - drawn)))
            allowed &= ~card
            unseen &= ~card
            hands[seat] |= card
    return chance >= 1.0 or draw_word(t) >> U64(11) < U64(chance * (1 << 53))


@kernel
def _sample(views, num_worlds, seeds, worlds):
    seats, counts = np.empty(MAX_PLAYERS, np.int64), np.empty(MAX_PLAYERS, np.int64)
    most = np.empty(MAX_PLAYERS, np.int64)
    hands = np.empty(MAX_PLAYERS, np.uint64)
    for i in range(views.shape[0]):
        unseen = find_unseen(views[i], views[i].viewer)
        num_seats = sort_seats(views[i], unseen, seats, counts)
        bound_choices(views[i], unseen, seats, counts, num_seats, most)
        stream = seeds[i] ^ _SET_APART
        for number in range(i * num_worlds, (i + 1) * num_worlds):
            t = worlds[number]
            t.rng = stream
            while not propose_deal(t, unseen, seats, counts, num_seats, most, hands):
                pass
            for place in range(num_seats):
                t.dealt[seats[place]] |= hands[seats[place]]
            stream = t.rng
            t.rng = draw_word(t)
            t.viewer = NOBODY


def sample_worlds(views: np.ndarray, num_worlds: int, seeds: int | np.integer | np.ndarray) -> np.ndarray:
    """Tables with the hidden cards of views dealt anew: uniform and independent among the deals that a view allows.

    A world gives its view back, field by field; undealt cards stay out, and it has a random stream of its own.

    Args:
        views: array of `TABLE`, (N,), each the view of a seat.
        num_worlds: how many of each view.
        seeds: uint64 (N,), the randomness of each view's worlds, or one number for all. The first worlds do not depend
            on how many follow.

    Returns:
        Array of `TABLE`, (N * num_worlds,): those of the first view, then those of the next.

    Raises:
        ValueError: for a table that is not a view, or a number of worlds below 0.
    """
    if views.dtype != TABLE or views.ndim != 1 or (views["viewer"] == NOBODY).any():
        raise ValueError("views takes an array of TABLE, (N,), each the view of a seat")
    if num_worlds < 0:
        raise ValueError(f"num_worlds takes a whole number from 0 up, not {num_worlds!r}")
    seeds = np.broadcast_to(np.asarray(seeds, np.uint64), views.shape)
    worlds = np.repeat(views, num_worlds)
    _sample(views, num_worlds, np.ascontiguousarray(seeds), worlds)
    return worlds
