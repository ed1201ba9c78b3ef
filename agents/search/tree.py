"""Two exact searches of a hand with all cards seen: the pitcher's side against the rest, and each side for itself.

Positions are looked up and judged between tricks only. What is cut: hands whose points are all decided, cards equal to
a neighbour, and in the two-sided search what alpha-beta with a table of bounds cuts. Payoffs are whole numbers.
"""

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from agents.search.position import (
    ALL,
    BIAS,
    BYTE,
    INFINITE,
    NO_CARD,
    PLAIN,
    count_points,
    drop_equals,
    end_hand,
    find_early,
    find_game,
    find_key,
    find_moves,
    find_slot,
    is_safe,
    take_back,
)
from pitch_env.cards import NUM_RANKS
from pitch_env.engine import beats
from pitch_env.kernels import U64, bit, count, highest, lowest, part
from pitch_env.rules import MAX_PLAYERS
from pitch_env.scoring import count_trick_points
from pitch_env.table import NOBODY


def _make_self_call(result: types.Type) -> Any:
    """A call of the compiled function in which it stands: one with the arguments below and this type of result.

    Numba finds a function that calls itself by name only in the process that compiles it: a kept kernel would crash.
    """

    @intrinsic
    def call_self(typingctx, s, seat, place, led, best, winner, pile, live, plain, alpha, beta):  # noqa: ARG001
        def generate(context, builder, signature, args):
            function = builder.function
            shape = context.call_conv.get_function_type(signature.return_type, signature.args)
            if function.function_type != shape or "Literal" in function.name:
                raise TypeError(f"{function.name} does not have the arguments with which it calls itself")
            status, value = context.call_conv.call_function(
                builder, function, signature.return_type, signature.args, args
            )
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return value

        return result(s, *[types.int64] * 5, *[types.uint64] * 3, *[types.int64] * 2), generate

    return call_self


_search = _make_self_call(types.int64)
_search_all = _make_self_call(types.uint64)


# The two-sided search: the pitcher's side against all others together.


@part
def bound_payoff(s, live, rest):
    """Between what the payoff must lie, `rest` trick points being in the hands, and the cards that are plain here."""
    mine = U64(0)
    others, most, second = 0, -1, -1  # of the others: points, most trick points, the next most
    for seat in range(s.num_players):
        if s.sides[seat] == s.pitching:
            mine |= s.hands[seat]
    for side in range(s.num_sides):
        if side != s.pitching:
            others += s.points[side]
            if s.pips[side] > most:
                most, second = s.pips[side], most
            elif s.pips[side] > second:
                second = s.pips[side]
    own, pips = s.points[s.pitching], s.pips[s.pitching]
    low, high = pips > most + rest, pips + rest > most  # Game goes to the pitcher's side surely, possibly
    lost, losable = most > max(pips, second) + rest, most + rest > pips and (rest > 0 or most > second)
    plain = ALL if low or lost else PLAIN
    num_open = 0
    for card in (s.low, s.jack):
        if card & live:
            is_own = card & mine != U64(0)
            if is_safe(s, card, (live & ~mine) if is_own else mine):
                own += is_own
                others += not is_own
            else:
                num_open += 1
                plain &= ~card
    worst = s.payoffs[own + low, others + num_open + losable]
    best = s.payoffs[own + num_open + high, others + lost]
    return worst, best, plain


@part
def find_payoff(s):
    """The payoff of the points that the sides have."""
    own, others = s.points[s.pitching], 0
    for side in range(s.num_sides):
        others += s.points[side]
    return s.payoffs[own, others - own]


@part
def search(s, seat, place, led, best, winner, pile, live, plain, alpha, beta):
    """The payoff of best play on both sides if it lies between alpha and beta, else a bound of it on that side.

    Args:
        s: the position; hands and captured cards are changed and restored.
        seat: to act.
        place: cards in the trick so far.
        led: suit of the first of them.
        best: the card of them that wins so far; NO_CARD before the first.
        winner: the seat that played it.
        pile: mask of the cards in the trick.
        live: mask of all cards held.
        plain: mask of the cards that differ in rank alone.
        alpha: a payoff up to which it does not matter.
        beta: a payoff from which on it does not matter.
    """
    s.num_nodes += 1
    if place == s.num_players:
        side, pips, points = s.sides[winner], count_trick_points(pile), count_points(s, pile)
        s.pips[side] += pips
        s.points[side] += points
        value = _search(s, winner, 0, 0, NO_CARD, winner, U64(0), live, plain, alpha, beta)
        take_back(s, side, pips, points, NOBODY)
        return value
    moves = find_moves(s, seat, place, led)
    is_pitching = s.sides[seat] == s.pitching
    number = count(live)
    hint = s.killers[number]
    slot, first, second = U64(0), U64(0), U64(0)
    if place == 0:
        rest = count_trick_points(live)
        worst, top, plain = bound_payoff(s, live, rest)
        if worst == top or worst >= beta:
            return worst
        if top <= alpha:
            return top
        if number == s.num_players:
            side, pips, points, game = end_hand(s, seat)
            value = find_payoff(s)
            take_back(s, side, pips, points, game)
            return value
        first, second = find_key(s, seat, live, rest)
        slot = find_slot(s, first, second)
        if s.table[slot] == first and s.table[slot + 1] == second and s.table[slot + 2] == s.generation:
            entry = s.table[slot + 3]
            worst = max(worst, np.int64(entry & BYTE) - BIAS)
            top = min(top, np.int64((entry >> U64(8)) & BYTE) - BIAS)
            hint = np.int64(entry >> U64(16))
            if worst == top or worst >= beta:
                return worst
            if top <= alpha:
                return top
        alpha, beta = max(alpha, worst), min(beta, top)
        moves = drop_equals(moves, live, plain)
    else:
        moves = drop_equals(moves, live | bit(best), plain)
    early = find_early(s, moves, live, best, (s.sides[winner] == s.pitching) == is_pitching)
    low, high, chosen = alpha, beta, NO_CARD
    value = -INFINITE if is_pitching else INFINITE
    after = seat + 1 if seat + 1 < s.num_players else 0
    while moves:
        if hint >= 0 and moves & bit(hint):
            card = hint
        elif moves & early:
            card = highest(moves & early)
        else:
            card = lowest(moves)
        played = bit(card)
        moves &= ~played
        s.hands[seat] ^= played
        next_led = card // NUM_RANKS if place == 0 else led
        if best == NO_CARD or beats(s, card, best):
            got = _search(s, after, place + 1, next_led, card, seat, pile | played, live ^ played, plain, low, high)
        else:
            got = _search(s, after, place + 1, next_led, best, winner, pile | played, live ^ played, plain, low, high)
        s.hands[seat] ^= played
        if is_pitching and got > value:
            value, chosen = got, card
            low = max(low, value)
        elif not is_pitching and got < value:
            value, chosen = got, card
            high = min(high, value)
        if low >= high:
            s.killers[number] = card
            break
    if place == 0:
        worst = value if value > alpha else -INFINITE
        top = value if value < beta else INFINITE
        s.table[slot], s.table[slot + 1], s.table[slot + 2] = first, second, s.generation
        s.table[slot + 3] = U64(worst + BIAS) | (U64(top + BIAS) << U64(8)) | (U64(chosen) << U64(16))
    return value


# The many-sided search (max^n, Luckhardt and Irani 1986): each side for itself.
#
# A payoff of all sides is one word, a byte for each side, the pitcher's in the highest place and the others' clockwise
# after it. Of moves that are equal for the side to act, that with the lowest word is played: against the pitcher first.


@part
def find_shift(s, side):
    """Where the byte of a side lies in a word of payoffs."""
    return U64(8 * (MAX_PLAYERS - 1 - (side - s.pitching) % s.num_sides))


@part
def pack_payoffs(s):
    """The sides' payoffs for the points they have: each one's score change (R18) less those of all, by the sides."""
    total = 0
    for side in range(s.num_sides):
        total += s.points[side]
    own = s.points[s.pitching]
    scored = own if own >= s.bid else -s.bid
    total += scored - own
    word = U64(0)
    for side in range(s.num_sides):
        score = scored if side == s.pitching else s.points[side]
        word |= U64(s.num_sides * score - total + BIAS) << find_shift(s, side)
    return word


@part
def read_payoff(s, word, side):
    """A side's payoff in a word of payoffs."""
    return np.int64((word >> find_shift(s, side)) & BYTE) - BIAS


@part
def find_safe_owner(s, card):
    """The side that holds a trump, as a mask, and captures it for certain; NOBODY if that is open."""
    owner = NOBODY
    for seat in range(s.num_players):
        if s.hands[seat] & card:
            owner = s.sides[seat]
    for seat in range(s.num_players):
        if s.sides[seat] != owner and not is_safe(s, card, s.hands[seat]):
            return NOBODY
    return owner


@part
def is_game_decided(s, rest):
    """Whether `rest` trick points in the hands cannot change who has Game."""
    most, second = -1, -1
    for side in range(s.num_sides):
        if s.pips[side] > most:
            most, second = s.pips[side], most
        elif s.pips[side] > second:
            second = s.pips[side]
    return rest == 0 or most > second + rest


@part
def search_all(s, seat, place, led, best, winner, pile, live, plain, alpha, beta):  # noqa: ARG001
    """The word of payoffs when each side plays for itself; arguments as of `search`, the last two without a use."""
    s.num_nodes += 1
    if place == s.num_players:
        side, pips, points = s.sides[winner], count_trick_points(pile), count_points(s, pile)
        s.pips[side] += pips
        s.points[side] += points
        word = _search_all(s, winner, 0, 0, NO_CARD, winner, U64(0), live, plain, 0, 0)
        take_back(s, side, pips, points, NOBODY)
        return word
    moves = find_moves(s, seat, place, led)
    slot, first, second = U64(0), U64(0), U64(0)
    if place == 0:
        if count(live) == s.num_players:
            side, pips, points, game = end_hand(s, seat)
            word = pack_payoffs(s)
            take_back(s, side, pips, points, game)
            return word
        rest = count_trick_points(live)
        decided = is_game_decided(s, rest)
        low = find_safe_owner(s, s.low) if s.low & live else NOBODY
        jack = find_safe_owner(s, s.jack) if s.jack & live else NOBODY
        plain = ALL if decided else PLAIN
        if low == NOBODY:
            plain &= ~s.low
        if jack == NOBODY:
            plain &= ~s.jack
        if decided and (low != NOBODY or not s.low & live) and (jack != NOBODY or not s.jack & live):
            game = find_game(s)
            for side in (low, jack, game):
                if side != NOBODY:
                    s.points[side] += 1
            word = pack_payoffs(s)
            for side in (low, jack, game):
                if side != NOBODY:
                    s.points[side] -= 1
            return word
        first, second = find_key(s, seat, live, rest)
        slot = find_slot(s, first, second)
        if s.table[slot] == first and s.table[slot + 1] == second and s.table[slot + 2] == s.generation:
            return s.table[slot + 3]
        moves = drop_equals(moves, live, plain)
    else:
        moves = drop_equals(moves, live | bit(best), plain)
    shift = find_shift(s, s.sides[seat])
    word, most = U64(0), U64(0)
    after = seat + 1 if seat + 1 < s.num_players else 0
    while moves:
        card = lowest(moves)
        played = bit(card)
        moves &= ~played
        s.hands[seat] ^= played
        next_led = card // NUM_RANKS if place == 0 else led
        if best == NO_CARD or beats(s, card, best):
            got = _search_all(s, after, place + 1, next_led, card, seat, pile | played, live ^ played, plain, 0, 0)
        else:
            got = _search_all(s, after, place + 1, next_led, best, winner, pile | played, live ^ played, plain, 0, 0)
        s.hands[seat] ^= played
        own = (got >> shift) & BYTE
        if own > most or (own == most and got < word):
            word, most = got, own
    if place == 0:
        s.table[slot], s.table[slot + 1], s.table[slot + 2] = first, second, s.generation
        s.table[slot + 3] = word
    return word


# What the solver calls: the same with every argument of the type that the searches hand on.


@part
def find_value(s, seat, place, led, best, winner, pile, live, plain):
    """The payoff of best play, the pitcher's side against the rest."""
    low, high = np.int64(-INFINITE), np.int64(INFINITE)
    place, led, best = np.int64(place), np.int64(led), np.int64(best)
    return search(s, np.int64(seat), place, led, best, np.int64(winner), pile, live, plain, low, high)


@part
def find_values(s, seat, place, led, best, winner, pile, live, plain):
    """The word of payoffs of best play, each side for itself."""
    none = np.int64(0)
    place, led, best = np.int64(place), np.int64(led), np.int64(best)
    return search_all(s, np.int64(seat), place, led, best, np.int64(winner), pile, live, plain, none, none)
