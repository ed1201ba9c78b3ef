"""Hands played to their end by a policy at every seat, all cards of the tables being known: what a position is worth.

Many tables go on together, so that the network is asked for thousands of decisions at once. Which action a seat draws
in a trick depends on the table's stream, the seat and the trick alone: tables that share a stream meet the same luck
wherever they have come to the same decision (common random numbers). The last tricks may be solved exactly instead
(max^n, each side for itself with all cards seen).
"""

import numpy as np
import torch

from agents.encoding import choose_action, encode_row
from agents.network import Trunk
from agents.random_bots import mix_seed
from agents.search.position import NO_CARD, SEARCH, enter_hand, enter_trump
from agents.search.solver import fit_table
from agents.search.tree import find_values, read_payoff
from pitch_env.cards import NUM_ACTIONS, NUM_SUITS
from pitch_env.engine import apply_action, legal_actions
from pitch_env.frame import reorder_actions, restore_action
from pitch_env.kernels import ONE, U64, kernel, lowest, part
from pitch_env.observation import COMPACT_SIZE, MOST_ACTIVE, layout
from pitch_env.rules import MAX_HAND_SIZE
from pitch_env.table import NOBODY, PLAY

_TABLES = 1 << 13  # played at a time
_SLICE = 1 << 11  # rows that the network reads at a time: what fits the cache
_AUCTION = MAX_HAND_SIZE  # stands for a trick in the randomness of bids


def run_network(network: Trunk, features: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Logits, float32 (N, 57), of encoded observations."""
    logits = np.empty((len(features), NUM_ACTIONS), np.float32)
    with torch.inference_mode():
        for low in range(0, len(features), _SLICE):
            part_of = slice(low, low + _SLICE)
            logits[part_of] = network(features[part_of], lengths[part_of]).numpy()
    return logits


@part
def find_margin(t, side):
    """A side's score change less the mean of the others' at a table whose hand is over."""
    total = 0
    for other in range(t.num_sides):
        total += t.deltas[other]
    return (t.num_sides * t.deltas[side] - total) / (t.num_sides - 1)


@part
def solve_margin(s, t, side):
    """The same when each side plays the rest of a table in play for itself, all cards seen, from the next lead on."""
    enter_hand(s, t)
    enter_trump(s, t, np.int64(t.trump))
    live = U64(0)
    for seat in range(s.num_players):
        live |= s.hands[seat]
    fit_table(s, live)
    word = find_values(s, t.seat, 0, 0, NO_CARD, t.seat, U64(0), live, U64(0))
    return read_payoff(s, word, side) / (s.num_sides - 1)


@part
def is_solvable(t, most_cards):
    """Whether a trick is about to be led, not the first, and no more than some cards are held."""
    held = np.int64(t.num_players) * t.hand_size - t.num_plays
    return t.phase == PLAY and t.num_plays > 0 and held <= most_cards and held % t.num_players == 0


@kernel
def _advance(tables, sides, running, ending, most_solved, form, features, lengths, masks, orders, values):
    # forced moves up to an open decision, which is encoded, to a rest to be solved, or to the value; the tables that go
    # on come first in `running`, those to be solved in `ending`; how many of both
    order = np.empty(NUM_SUITS, np.int64)
    words = np.empty((1, COMPACT_SIZE // 8), np.uint64)
    compact = words.view(np.uint8)
    active = np.empty(MOST_ACTIVE, np.int32)
    row = num_ending = 0
    for i in running:
        t = tables[i]
        legal = U64(0)
        while True:
            if t.seat == NOBODY:
                values[i] = find_margin(t, sides[i])
                break
            if is_solvable(t, most_solved):
                ending[num_ending] = i
                num_ending += 1
                break
            legal = legal_actions(t)
            if legal & (legal - ONE):
                num = encode_row(t, t.seat, order, compact, words, form, active)
                for index in range(num):
                    features[row, index] = active[index]
                lengths[row] = num
                masks[row] = reorder_actions(legal, order)
                for suit in range(NUM_SUITS):
                    orders[row, suit] = order[suit]
                running[row] = i
                row += 1
                break
            apply_action(t, lowest(legal))
    return row, num_ending


@kernel
def _solve_rest(spaces, tables, sides, ending, values):
    for i in ending:
        values[i] = solve_margin(spaces[0], tables[i], sides[i])


@part
def draw_seed(stream, t):
    """The randomness of the seat to act in this trick or auction."""
    trick = np.int64(t.num_plays) // np.int64(t.num_players) if t.phase == PLAY else _AUCTION
    return mix_seed(stream + U64(np.int64(t.seat) * 8 + trick))


@kernel
def _act(tables, running, streams, logits, masks, orders, is_greedy):
    for row in range(running.shape[0]):
        i = running[row]
        t = tables[i]
        action, _ = choose_action(logits[row], masks[row], draw_seed(streams[i], t), is_greedy)
        apply_action(t, restore_action(action, orders[row]))


@kernel
def apply_each(tables, actions):
    """Apply one legal action at each table, (N,), in place."""
    for i in range(tables.shape[0]):
        apply_action(tables[i], actions[i])


@kernel
def restore_all(orders, actions):
    """Write the real action of each framed one, (N, 57), in frames, (N, 4)."""
    for i in range(actions.shape[0]):
        for action in range(NUM_ACTIONS):
            actions[i, action] = restore_action(action, orders[i])


@kernel
def _derive(seeds, streams):
    for i in range(streams.shape[0]):
        for number in range(streams.shape[1]):
            streams[i, number] = mix_seed(mix_seed(seeds[i]) + U64(number))


def derive_streams(seeds: np.ndarray, num_each: int) -> np.ndarray:
    """Streams, uint64 (N, num_each), of seeds, uint64 (N,); the first ones do not depend on how many follow."""
    streams = np.empty((len(seeds), num_each), np.uint64)
    _derive(seeds, streams)
    return streams


def play_out(
    tables: np.ndarray,
    sides: np.ndarray,
    streams: np.ndarray,
    network: Trunk,
    num_seats: int,
    *,
    is_greedy: bool = False,
    most_solved: int = 0,
) -> np.ndarray:
    """Play tables, in place, to the end of the hand, the policy acting at every seat.

    Args:
        tables: array of `TABLE`, (N,), with all cards.
        sides: whole numbers, (N,), for which side each is valued.
        streams: uint64 (N,), the luck of each.
        network: the policy's.
        num_seats: of its observation layout.
        is_greedy: take likeliest actions instead of drawing them.
        most_solved: cards held, all hands together, from which down the rest is solved instead of played.

    Returns:
        float64 (N,), the side's score change less the mean of the others'.
    """
    form, values = layout(num_seats), np.empty(len(tables))
    size = min(len(tables), _TABLES)
    features = np.empty((size, form.max_active), np.int16)
    lengths, masks = np.empty(size, np.uint8), np.empty(size, np.uint64)
    orders = np.empty((size, NUM_SUITS), np.int64)
    ending, spaces = np.empty(size, np.int64), np.zeros(1, SEARCH)
    sides = np.ascontiguousarray(sides, np.int64)
    for low in range(0, len(tables), _TABLES):
        part_of = slice(low, low + _TABLES)
        some, own, luck, value = tables[part_of], sides[part_of], streams[part_of], values[part_of]
        running = np.arange(len(some))
        while True:
            num, num_ending = _advance(
                some, own, running, ending, most_solved, form.form, features, lengths, masks, orders, value
            )
            if num_ending:  # apart, for the solver takes long to compile
                _solve_rest(spaces, some, own, ending[:num_ending], value)
            if not num:
                break
            running = running[:num]
            _act(some, running, luck, run_network(network, features[:num], lengths[:num]), masks, orders, is_greedy)
    return values
