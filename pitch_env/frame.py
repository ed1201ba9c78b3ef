"""The frame of suits: where each suit stands in a seat's canonical order, and cards and actions moved there and back.

Suits have no names for a network. ``order[suit]`` is the place of a suit; one frame serves the observation, the legal
mask and the action.
"""

import numpy as np

from pitch_env.cards import MAX_BID, NUM_RANKS, NUM_SUITS
from pitch_env.kernels import ONE, U64, count, part
from pitch_env.scoring import SUIT_MASK


@part
def keep_suits(order):
    """The frame in which every suit keeps its place."""
    for suit in range(NUM_SUITS):
        order[suit] = suit


@part
def order_suits(t, seat, order):
    """Canonical frame of a seat: ``order[suit]`` is the place of a suit.

    Trump comes first, then suits by the number and the ranks of the seat's own first cards; suits alike in that go by
    which was played first. It depends on nothing that the seat does not know, and relabelled suits give the relabelled
    frame (suits alike in everything are alike in every observation too).
    """
    keys = np.empty(NUM_SUITS, np.int64)
    own = t.dealt[seat]
    for suit in range(NUM_SUITS):
        cards = (own >> U64(suit * NUM_RANKS)) & SUIT_MASK
        keys[suit] = (count(cards) << 24) | (np.int64(cards) << 8)
    for index in range(t.num_plays - 1, -1, -1):
        suit = t.plays[index] // NUM_RANKS
        keys[suit] = (keys[suit] & ~0xFF) | (0xFF - index)
    if t.trump >= 0:
        keys[t.trump] |= 1 << 40
    for suit in range(NUM_SUITS):
        place = 0
        for other in range(NUM_SUITS):
            if keys[other] > keys[suit] or (keys[other] == keys[suit] and other < suit):
                place += 1
        order[suit] = place


@part
def reorder_cards(cards, order):
    """Mask of cards with each suit moved to its place in a frame."""
    moved = U64(0)
    for suit in range(NUM_SUITS):
        moved |= ((cards >> U64(suit * NUM_RANKS)) & SUIT_MASK) << U64(order[suit] * NUM_RANKS)
    return moved


@part
def reorder_card(card, order):
    """A card in a frame."""
    return order[card // NUM_RANKS] * NUM_RANKS + card % NUM_RANKS


@part
def reorder_action(action, order):
    """An action in a frame; bids stay."""
    return action if action <= MAX_BID else MAX_BID + 1 + reorder_card(action - MAX_BID - 1, order)


@part
def restore_action(action, order):
    """The action that `reorder_action` takes to the given one."""
    if action <= MAX_BID:
        return action
    card = action - MAX_BID - 1
    for suit in range(NUM_SUITS):
        if order[suit] == card // NUM_RANKS:
            return MAX_BID + 1 + suit * NUM_RANKS + card % NUM_RANKS
    return action


@part
def reorder_actions(legal, order):
    """Mask of legal actions in a frame."""
    bids = (ONE << U64(MAX_BID + 1)) - ONE
    return (legal & bids) | (reorder_cards(legal >> U64(MAX_BID + 1), order) << U64(MAX_BID + 1))
