"""What other players are likely to hold, judged by a policy or a bot: deals weighed by how it would have acted.

A deal's weight is the product of the judge's probabilities of all that the others bid and played in this hand, each
seat looking at the cards which the deal gives it (inference by likelihood, as in Rebstock et al. 2019). What a seat
did depends on its own cards alone, so the product has a factor for each seat: hands are drawn and judged seat by seat,
and joined into deals by Gibbs sampling (Geman and Geman 1984), each seat in turn drawing one of its judged hands that
shares no card with the others'. That keeps far more different deals than weighing whole deals does. Two guards remain:
a little noise in every action, and an exponent below 1 on the weights of a seat's hands where their effective sample
size (Kong 1992) would fall below a floor.
"""

import numpy as np

from agents.base import Agent
from agents.encoding import encode_row
from agents.network import Network, run_network
from agents.search.worlds import find_allowed, sample_worlds
from pitch_env.cards import CARD_ACTION, MAX_BID, NUM_ACTIONS, NUM_RANKS, NUM_SUITS
from pitch_env.engine import bid_once, draw_random, find_unseen, legal_actions, open_auction, play_once
from pitch_env.frame import reorder_action, reorder_actions
from pitch_env.kernels import ONE, U64, bit, count, kernel, nth, part
from pitch_env.layout import COMPACT_SIZE, MOST_ACTIVE, layout
from pitch_env.rules import MAX_HAND_SIZE, MAX_PLAYERS
from pitch_env.scoring import suit_cards
from pitch_env.table import AUCTION, NOT_YET, TABLE
from pitch_env.view import view_tables

_MOST_DECISIONS = MAX_PLAYERS * (MAX_HAND_SIZE + 1)  # of a hand
_ROWS = 1 << 14  # decisions judged at a time
_BISECTIONS = 12
_SWEEPS = 3  # seats share few cards, so that a chain forgets its start at once


@part
def find_target(t, action, order, mask):
    """The framed actions, as a mask, that look like an action of a table: a lead in the auction shows as a bid of 4."""
    if t.pitch_by_card and action == MAX_BID:
        return mask & ~(bit(MAX_BID) - ONE)
    return bit(reorder_action(action, order))


@kernel
def _draw_hands(past, views, seeds, hands):
    for i in range(views.shape[0]):
        past[0] = views[i]
        t = past[0]
        t.rng = seeds[i]
        unseen = find_unseen(t, t.viewer)
        for number in range(hands.shape[1]):
            for seat in range(t.num_players):
                hands[i, number, seat] = t.dealt[seat]
                if seat == t.viewer:
                    continue
                allowed = find_allowed(t, seat, unseen)
                for _ in range(t.hand_size - count(t.dealt[seat])):
                    card = bit(nth(allowed, draw_random(t, count(allowed))))
                    allowed &= ~card
                    hands[i, number, seat] |= card


@kernel
def _replay(past, views, hands, first, form, features, lengths, masks, targets, owners):
    # the others' open decisions with the hands from number `first` on, while there is room: rows, next number
    order = np.empty(NUM_SUITS, np.int64)
    words = np.empty((1, COMPACT_SIZE // 8), np.uint64)
    compact = words.view(np.uint8)
    active = np.empty(MOST_ACTIVE, np.int32)
    row, number, num_each = 0, first, hands.shape[1]
    while number < views.shape[0] * num_each and row + _MOST_DECISIONS <= features.shape[0]:
        w = views[number // num_each]
        past[0] = w
        t = past[0]
        for seat in range(t.num_players):
            t.dealt[seat] = hands[number // num_each, number % num_each, seat]
        open_auction(t)
        while True:
            if t.phase == AUCTION:
                action = np.int64(w.bids[t.seat])
                if action == NOT_YET:
                    break
            else:
                if t.num_plays == w.num_plays:
                    break
                action = CARD_ACTION + np.int64(w.plays[t.num_plays])
            legal = legal_actions(t)
            if t.seat != w.viewer and legal & (legal - ONE):
                num = encode_row(t, t.seat, order, compact, words, form, active)
                for index in range(num):
                    features[row, index] = active[index]
                lengths[row] = num
                masks[row] = reorder_actions(legal, order)
                targets[row] = find_target(t, action, order, masks[row])
                owners[row] = number * MAX_PLAYERS + t.seat
                row += 1
            if action < CARD_ACTION:
                bid_once(t, action)
            else:
                play_once(t, action - CARD_ACTION)
        number += 1
    return row, number


@kernel
def _add_likelihoods(logits, masks, targets, owners, noise, log_likelihoods):
    for row in range(logits.shape[0]):
        top = np.float32(-np.inf)
        for action in range(NUM_ACTIONS):
            if (masks[row] >> U64(action)) & ONE:
                top = max(top, logits[row, action])
        total, hit = 0.0, 0.0
        for action in range(NUM_ACTIONS):
            if (masks[row] >> U64(action)) & ONE:
                mass = np.exp(np.float64(logits[row, action] - top))
                total += mass
                if (targets[row] >> U64(action)) & ONE:
                    hit += mass
        chance = (1 - noise) * hit / total + noise * count(targets[row]) / count(masks[row])
        log_likelihoods[owners[row]] += np.log(max(chance, 1e-30))


def draw_hands(views: np.ndarray, num_each: int, seeds: np.ndarray) -> np.ndarray:
    """Cards that each seat may have been dealt, uint64 (N, num_each, MAX_PLAYERS): uniform, seat by seat.

    The hands of two seats may share cards: see `sample_likely_worlds`.
    """
    hands = np.zeros((len(views), num_each, MAX_PLAYERS), np.uint64)
    _draw_hands(np.zeros(1, TABLE), views, seeds, hands)
    return hands


def judge_hands(views: np.ndarray, hands: np.ndarray, network: Network, num_seats: int, noise: float) -> np.ndarray:
    """Log-likelihood of what each other seat has bid and played in this hand, if it was dealt certain cards.

    Args:
        views: array of `TABLE`, (N,).
        hands: uint64 (N, K, MAX_PLAYERS), cards that each seat was perhaps dealt.
        network: the policy's.
        num_seats: of its observation layout.
        noise: the chance with which each action was a uniform one.

    Returns:
        float64 (N, K, MAX_PLAYERS), 0 for the seat that looks. Forced actions count nothing.
    """
    form = layout(num_seats)
    features = np.empty((_ROWS, form.max_active), np.int16)
    lengths, owners = np.empty(_ROWS, np.uint8), np.empty(_ROWS, np.int64)
    masks, targets = np.empty(_ROWS, np.uint64), np.empty(_ROWS, np.uint64)
    past, found = np.zeros(1, TABLE), np.zeros(hands.shape)
    number = 0
    while number < len(views) * hands.shape[1]:
        num, number = _replay(past, views, hands, number, form.form, features, lengths, masks, targets, owners)
        if num:
            logits = run_network(network, features[:num], lengths[:num])
            _add_likelihoods(logits, masks, targets, owners, noise, found.reshape(-1))
    return found


@kernel
def _open_each(tables):
    for i in range(tables.shape[0]):
        open_auction(tables[i])


@part
def find_alike(action, legal):
    """The legal actions, as a mask, that say the same of a hand: a bid, or a first lead of the suit."""
    if action >= CARD_ACTION:
        return legal & (suit_cards((action - CARD_ACTION) // NUM_RANKS) << U64(CARD_ACTION))
    if action == MAX_BID:
        return legal & ~(bit(MAX_BID) - ONE)  # a lead in the auction shows as a bid of 4
    return bit(action)


@kernel
def _judge_step(tables, chosen, action, noise, log_likelihoods):
    # what was done at each table, where a bot would have done what it has chosen; a bid is then made
    for i in range(tables.shape[0]):
        t = tables[i]
        legal = legal_actions(t)
        if t.seat != t.viewer and legal & (legal - ONE):
            alike = find_alike(action, legal)
            chance = noise * count(alike) / count(legal)
            if alike & bit(chosen[i]):
                chance += 1 - noise
            log_likelihoods[i, t.seat] += np.log(chance)
        if action < CARD_ACTION:
            bid_once(t, action)


def judge_hands_by_bot(view: np.ndarray, hands: np.ndarray, bot: Agent, noise: float) -> np.ndarray:
    """Log-likelihood of each other seat's bid and of the trump it has led first, if it acts as a bot does.

    What is played after that says less of a hand, and is done in another way by every bot.

    Args:
        view: array of `TABLE`, (1,).
        hands: uint64 (K, MAX_PLAYERS), cards that each seat was perhaps dealt.
        bot: one that draws nothing at random.
        noise: the chance, above 0, with which each action was a uniform one.

    Returns:
        float64 (K, MAX_PLAYERS), 0 for the seat that looks. Forced actions count nothing.
    """
    said, found = view[0], np.zeros(hands.shape)
    tables, seeds = np.repeat(view, len(hands)), np.zeros(len(hands), np.uint64)
    tables["dealt"] = hands
    _open_each(tables)
    while True:
        t = tables[0]
        is_lead = t["phase"] != AUCTION
        if (said["num_plays"] == 0) if is_lead else (said["bids"][t["seat"]] == NOT_YET):
            return found
        action = CARD_ACTION + int(said["plays"][0]) if is_lead else int(said["bids"][t["seat"]])
        chosen = np.full(len(tables), NOT_YET)
        if t["seat"] != said["viewer"]:
            chosen = bot.act(view_tables(tables, tables["seat"]), seeds)
        _judge_step(tables, chosen, action, noise, found)
        if is_lead:
            return found


def temper(log_weights: np.ndarray, floor: float) -> np.ndarray:
    """Weights, (..., K), that sum to 1 of log-weights raised to the highest power up to 1 that keeps the effective
    sample size from a floor up."""
    log_weights = log_weights - log_weights.max(axis=-1, keepdims=True)

    def weigh(powers: np.ndarray) -> np.ndarray:
        weights = np.exp(log_weights * powers)
        return weights / weights.sum(axis=-1, keepdims=True)

    low, high = np.zeros_like(log_weights[..., :1]), np.ones_like(log_weights[..., :1])
    low = np.where(count_effective(weigh(high)) >= floor, high, low)
    for _ in range(_BISECTIONS if (low < high).any() else 0):
        middle = (low + high) / 2
        is_enough = count_effective(weigh(middle)) >= floor
        low, high = np.where(is_enough, middle, low), np.where(is_enough, high, middle)
    return weigh(low)


def count_effective(weights: np.ndarray) -> np.ndarray:
    """Effective sample size, (..., 1), of weights that sum to 1, (..., K)."""
    return 1 / (weights * weights).sum(axis=-1, keepdims=True)


@kernel
def _exchange(worlds, hands, weights, viewers, num_sweeps):
    num_worlds, num_each = worlds.shape[1], hands.shape[1]
    fitting = np.empty(num_each)
    for i in range(worlds.shape[0]):
        for number in range(num_worlds):
            t = worlds[i, number]
            for turn in range(num_sweeps * t.num_players):
                seat = turn % t.num_players
                if seat == viewers[i] or count(t.dealt[seat] & ~t.played) == 0:
                    continue
                taken = U64(0)
                for other in range(t.num_players):
                    if other != seat:
                        taken |= t.dealt[other]
                total = 0.0
                for index in range(num_each):
                    if not hands[i, index, seat] & taken:
                        total += weights[i, seat, index]
                    fitting[index] = total
                if total > 0:
                    draw = total * (draw_random(t, np.int64(1) << 32) + 0.5) / (1 << 32)
                    t.dealt[seat] = hands[i, np.searchsorted(fitting, draw), seat]


def sample_likely_worlds(
    views: np.ndarray, num_worlds: int, seeds: np.ndarray, hands: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Tables with the hidden cards of views dealt by what each seat is likely to hold.

    Args:
        views: array of `TABLE`, (N,).
        num_worlds: how many of each view.
        seeds: uint64 (N,), the randomness of each view's worlds.
        hands: uint64 (N, K, MAX_PLAYERS), of `draw_hands`.
        weights: float64 (N, MAX_PLAYERS, K), how likely each is.

    Returns:
        Array of `TABLE`, (N, num_worlds).
    """
    worlds = sample_worlds(views, num_worlds, seeds).reshape(len(views), num_worlds)
    _exchange(worlds, hands, weights, views["viewer"].astype(np.int64), _SWEEPS)
    return worlds
