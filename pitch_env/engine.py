"""The rules in motion: deal, legal actions, apply. Every interface plays through these kernels.

Kernels take one table as a record `t` (an element of an array of `TABLE`) and change it in place.
"""

from operator import index
from typing import Any

import numpy as np

from pitch_env.cards import CARD_ACTION, MAX_BID, NUM_ACTIONS, NUM_CARDS, NUM_RANKS, action_name
from pitch_env.kernels import GOLDEN, ONE, U64, bit, count, kernel, lowest, nth, part, scramble
from pitch_env.rules import Rules
from pitch_env.scoring import SUIT_MASK, settle, suit_cards
from pitch_env.table import (
    AUCTION,
    HAND_OVER,
    NOBODY,
    NOT_YET,
    PHASES,
    PLAY,
    TABLE,
    seed_streams,
    write_rules,
)

_PACKET = 3  # cards dealt at a time (R2)
_STUCK_BID = 2  # the least a dealer may bid when everyone passed (R6)


@part
def seat_after(t, seat, turns):
    """The seat some turns (at most one round) to the left."""
    seat = np.int64(seat) + turns
    return seat - t.num_players if seat >= t.num_players else seat


@part
def draw_random(t, below):
    """A whole number from 0 to below - 1 from the table's own stream (SplitMix64; bias under 2**-26)."""
    t.rng += GOLDEN
    return np.int64(((scramble(t.rng) >> U64(32)) * U64(below)) >> U64(32))


@part
def open_auction(t):
    """Clear the last hand and give the first bid to the dealer's left (R4)."""
    t.played = U64(0)
    for seat in range(t.num_players):
        t.captured[seat] = U64(0)
        t.bids[seat] = NOT_YET
        t.voids[seat] = 0
    for trick in range(t.hand_size):
        t.leaders[trick] = NOBODY
        t.winners[trick] = NOBODY
    for point in range(4):
        t.points[point] = NOBODY
    t.num_plays = 0
    t.bid = 0
    t.trump = NOT_YET
    t.pitcher = NOBODY
    t.phase = AUCTION
    t.seat = seat_after(t, t.dealer, 1)


@part
def deck_of(t):
    """Mask of the cards that are dealt from (R2)."""
    ranks = SUIT_MASK & ~((ONE << U64(NUM_RANKS - t.num_ranks)) - ONE)
    deck = U64(0)
    for suit in range(t.num_suits):
        deck |= ranks << U64(NUM_RANKS * suit)
    return deck


@part
def find_unseen(t, seat):
    """Mask of the cards of the deck that a seat has not seen."""
    return deck_of(t) & ~(t.played | t.dealt[seat])


@part
def deal_cards(t):
    """Deal from a shuffled deck in packets of three from the dealer's left (R2)."""
    deck, cards = np.empty(NUM_CARDS, np.uint8), deck_of(t)
    num_cards = count(cards)
    for place in range(num_cards):
        deck[place] = lowest(cards)
        cards &= cards - ONE
    num_players, hand_size = t.num_players, t.hand_size
    for seat in range(num_players):
        t.dealt[seat] = U64(0)
    top = 0
    for packet in range(0, hand_size, _PACKET):
        for turn in range(1, num_players + 1):
            seat = seat_after(t, t.dealer, turn)
            for _ in range(min(_PACKET, hand_size - packet)):
                pick = top + draw_random(t, num_cards - top)
                card = deck[pick]
                deck[pick] = deck[top]
                top += 1
                t.dealt[seat] |= bit(card)


@part
def start_match(t):
    """Clear the scores, draw the first dealer (R3) and deal the first hand."""
    for side in range(t.num_sides):
        t.scores[side] = 0
        t.deltas[side] = 0
    t.num_hands = 0
    t.winner = NOBODY
    t.viewer = NOBODY
    t.dealer = draw_random(t, t.num_players)
    deal_cards(t)
    open_auction(t)


@part
def start_hand(t):
    """Pass the deal to the left (R3) and deal the next hand."""
    t.dealer = seat_after(t, t.dealer, 1)
    deal_cards(t)
    open_auction(t)


@part
def hand_of(t, seat):
    """Mask of the cards a seat still holds."""
    return t.dealt[seat] & ~t.played


@part
def legal_bids(t):
    """Legal actions of the seat to bid (R4-R9), as a mask over actions."""
    everything = (ONE << U64(MAX_BID + 1)) - ONE
    if t.seat != t.dealer:
        bids = ONE | (everything & ~(bit(t.bid + 1) - ONE))  # pass, or more than every bid before (R5)
    elif t.bid == 0:
        bids = everything & ~(bit(_STUCK_BID) - ONE)  # R6
    else:
        bids = ONE | (everything & ~(bit(t.bid) - ONE))  # the dealer may steal (R7)
    if t.pitch_by_card and bids & bit(MAX_BID):
        bids |= hand_of(t, t.seat) << U64(CARD_ACTION)  # R9
    return bids


@part
def legal_cards(t):
    """Cards the seat to play may play (R10, R11), as a mask over cards."""
    hand = hand_of(t, t.seat)
    place = np.uint32(t.num_plays) % np.uint32(t.num_players)
    if place == 0:
        return hand
    led = t.plays[t.num_plays - place] // NUM_RANKS
    if hand & suit_cards(led) == U64(0):
        return hand
    return hand & (suit_cards(led) | suit_cards(t.trump))


@part
def legal_actions(t):
    """Legal actions of the seat to act as a mask: bit `action`, empty when no one is to act."""
    if t.phase == AUCTION:
        return legal_bids(t)
    if t.phase == PLAY:
        return legal_cards(t) << U64(CARD_ACTION)
    return U64(0)


@part
def bid_once(t, bid):
    """Enter a bid or a pass of the seat to act and move the auction on (R4-R10)."""
    seat = t.seat
    t.bids[seat] = bid
    if bid > 0:
        t.bid = bid
        t.pitcher = seat
    if bid == MAX_BID or seat == t.dealer:  # R8
        t.phase = PLAY
        t.seat = t.pitcher
    else:
        t.seat = seat_after(t, seat, 1)


@part
def beats(t, card, best):
    """Whether a card beats the best of the trick so far (R12)."""
    suit, best_suit = card // NUM_RANKS, best // NUM_RANKS
    if suit == best_suit:
        return card > best
    return suit == t.trump


@part
def find_winners(cards, best, trump):
    """Mask of the cards that beat the best of the trick so far (R12)."""
    suit = best // NUM_RANKS
    better = suit_cards(suit) & ~(bit(best) | (bit(best) - ONE))
    return cards & (better if suit == trump else better | suit_cards(trump))


@part
def play_once(t, card):
    """Play a card of the seat to act; the last card of a hand settles it (R10-R12)."""
    seat, num_players = t.seat, t.num_players
    trick = np.uint32(t.num_plays) // np.uint32(num_players)
    place = t.num_plays - trick * num_players
    suit = card // NUM_RANKS
    if t.num_plays == 0:
        t.trump = suit
    if place == 0:
        t.leaders[trick] = seat
        t.winners[trick] = seat
        t.best = card
    else:
        led = t.plays[t.num_plays - place] // NUM_RANKS
        if suit != led and suit != t.trump:
            t.voids[seat] |= 1 << led  # a ruff proves nothing: it is always legal (R11)
        if beats(t, card, t.best):
            t.winners[trick] = seat
            t.best = card
    t.plays[t.num_plays] = card
    t.played |= bit(card)
    t.num_plays += 1
    if place < num_players - 1:
        t.seat = seat_after(t, seat, 1)
        return
    winner = t.winners[trick]
    for played in range(t.num_plays - num_players, t.num_plays):
        t.captured[winner] |= bit(t.plays[played])
    if t.num_plays == num_players * t.hand_size:
        settle(t)
    else:
        t.seat = winner


@part
def apply_action(t, action):
    """Apply a legal action of the seat to act."""
    if action < CARD_ACTION:
        bid_once(t, action)
    else:
        if t.phase == AUCTION:
            bid_once(t, MAX_BID)  # R9
        play_once(t, action - CARD_ACTION)


@part
def choose_at_random(t, mask):
    """A uniform choice among the set bits of a mask, from the table's own stream."""
    return nth(mask, draw_random(t, count(mask)))


# What Python calls: one table is an array of shape (1,).


@kernel
def start_matches(tables):
    """Start a new match at each table, going on with its random stream."""
    for i in range(tables.shape[0]):
        start_match(tables[i])


@kernel
def _start_hands(tables):
    for i in range(tables.shape[0]):
        start_hand(tables[i])


@kernel
def _open_auctions(tables):
    for i in range(tables.shape[0]):
        open_auction(tables[i])


@kernel
def _apply_one(tables, action):
    t = tables[0]
    if action < 0 or action >= NUM_ACTIONS or not (legal_actions(t) >> U64(action)) & ONE:
        return -2
    apply_action(t, action)
    return np.int64(t.seat)


@kernel
def _legal_one(tables):
    return legal_actions(tables[0])


def new_tables(rules: Rules, seeds: int | np.ndarray | None = None, num_tables: int = 1) -> np.ndarray:
    """Tables with a first hand dealt.

    Args:
        rules: what is played at every table.
        seeds: a seed, or the random stream of each table as `seed_streams` makes them, uint64 (num_tables,).
        num_tables: how many.

    Returns:
        Array of `TABLE`, (num_tables,).
    """
    tables = np.zeros(num_tables, TABLE)
    write_rules(tables, rules)
    tables["rng"] = seeds if isinstance(seeds, np.ndarray) else seed_streams(seeds, num_tables)
    start_matches(tables)
    return tables


def next_hand(table: np.ndarray) -> None:
    """Deal the next hand at a table, (1,), whose hand is over.

    Raises:
        ValueError: if a hand or the match still runs or is over.
    """
    if table["phase"][0] != HAND_OVER:
        raise ValueError(f"the next hand is dealt when a hand is over, not in phase {PHASES[table['phase'][0]]!r}")
    _start_hands(table)


def set_hand(table: np.ndarray, dealt: list[int], dealer: int | None = None) -> None:
    """Open the auction of a given deal at a table, (1,): masks of the cards of each seat."""
    if dealer is not None:
        table["dealer"] = dealer
    table["dealt"][0, : len(dealt)] = dealt
    _open_auctions(table)


def legal_mask(table: np.ndarray) -> int:
    """Legal actions of the seat to act at a table, (1,), as a bit mask over actions."""
    return int(_legal_one(table))


def try_action(table: np.ndarray, action: Any) -> int | None:
    """Apply an action of the seat to act at a table, (1,), if it is legal.

    Returns:
        The seat to act next, NOBODY when the hand is over; None if the action is not legal, the table unchanged.
    """
    try:
        seat = _apply_one(table, index(action))
    except (TypeError, OverflowError):
        return None
    return None if seat < NOBODY else seat


def apply(table: np.ndarray, action: int) -> int:
    """Apply an action of the seat to act at a table, (1,).

    Returns:
        The seat to act next, NOBODY when the hand is over.

    Raises:
        ValueError: if the action is not legal; the table is unchanged.
    """
    seat = try_action(table, action)
    if seat is None:
        raise ValueError(explain_illegal(table, action))
    return seat


def explain_illegal(table: np.ndarray, action: int) -> str:
    """Why an action is not legal at a table, (1,), by which rule, and what is legal."""
    t = table[0]
    phase = PHASES[t["phase"]]
    mask = legal_mask(table)
    if not mask:
        return f"no one is to act: the table is in phase {phase!r}"
    legal = ", ".join(f"{number} ({action_name(number)})" for number in range(NUM_ACTIONS) if mask >> number & 1)
    try:
        action = index(action)
        is_action = 0 <= action < NUM_ACTIONS
    except TypeError:
        is_action = False
    if not is_action:
        return f"{action!r} is no action: actions are 0 to {NUM_ACTIONS - 1}; legal for seat {t['seat']}: {legal}"
    reason = _find_broken_rule(t, action)
    return (
        f"action {action} ({action_name(action)}) is not legal for seat {t['seat']} in the {phase}: "
        f"{reason}; legal: {legal}"
    )


def _find_broken_rule(t: np.void, action: int) -> str:
    hand = int(t["dealt"][t["seat"]] & ~t["played"])
    if t["phase"] == PLAY:
        if action < CARD_ACTION:
            return "the auction is over (R4)"
        if not hand >> (action - CARD_ACTION) & 1:
            return "the seat does not hold that card"
        return "a seat that can follow the suit led must follow or trump (R11)"
    if action >= CARD_ACTION:
        if not t["pitch_by_card"]:
            return "cards are not played in the auction without the switch pitch_by_card (R9)"
        return "the seat does not hold that card (R9)"
    if t["seat"] != t["dealer"]:
        return "a bid must be higher than every bid before it (R5)"
    if t["bid"] == 0:
        return f"everyone else passed, so the dealer must bid at least {_STUCK_BID} (R6)"
    return "the dealer may steal the highest bid or go over it, not bid less (R7)"
