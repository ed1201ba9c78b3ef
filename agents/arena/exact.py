"""Exact measuring on decks so small that one hand can be played in every way.

One hand from scores of 0, each dealer and each deal as likely as any other, pays each seat its side's score change less
the mean of the other sides'. `Tree` holds every course of the hand and every information set; on it are computed what
each seat expects when all play one policy, what it could get at best against the others' policy, and NashConv, the sum
over seats of what they would gain by that. With two players NashConv is 0 at an equilibrium and nowhere else.

>>> from agents.arena.courses import Tree
>>> from agents.arena.exact import TINY, measure
>>> tree = Tree(TINY)
>>> measure(tree, tree.uniform()).nash_conv
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.arena.courses import Tree
from agents.base import Agent
from pitch_env.frame import reorder_action
from pitch_env.kernels import kernel
from pitch_env.rules import Rules

TINY = Rules(num_players=2, num_suits=2, num_ranks=4, hand_size=2)
"""Two players, clubs and diamonds from jack to ace, two cards each: small enough to measure in a second."""

NUM_SAMPLES = 64  # times an agent is asked where its probabilities are not known
_BATCH = 16_384  # information sets shown to a network at a time


@kernel
def _improve(levels, parents, slots, seats, infosets, starts, seat, policy, own, values, regrets, total, weight):
    # one step of CFR+ for a seat: regrets from values times the others' reach, and the new policy
    gains = np.zeros(policy.shape[0])
    for i in range(parents.shape[0] - 1, levels[1] - 1, -1):
        parent = parents[i]
        if seats[parent] == seat:
            gains[slots[i]] += values[i]
            values[parent] += policy[slots[i]] * values[i]
        else:
            values[parent] += values[i]
    is_done = np.zeros(starts.shape[0] - 1, np.bool_)
    for i in range(parents.shape[0]):
        infoset = infosets[i]
        if seats[i] != seat or is_done[infoset]:
            continue
        is_done[infoset] = True
        low, high = starts[infoset], starts[infoset + 1]
        mean = 0.0
        for slot in range(low, high):
            mean += policy[slot] * gains[slot]
        positive = 0.0
        for slot in range(low, high):
            total[slot] += weight * own[i] * policy[slot]
            regrets[slot] = max(regrets[slot] + gains[slot] - mean, 0.0)
            positive += regrets[slot]
        for slot in range(low, high):
            policy[slot] = regrets[slot] / positive if positive > 0 else 1 / (high - low)


@kernel
def _own_reach(first, parents, slots, seats, policy, seat, own):
    for i in range(first, parents.shape[0]):
        parent = parents[i]
        own[i] = own[parent] * (policy[slots[i]] if seats[parent] == seat else 1.0)


@kernel
def _spread(logits, orders, chosen, starts, actions, policy):
    # framed logits to probabilities of the real actions of the chosen information sets
    for i in range(chosen.shape[0]):
        low, high = starts[chosen[i]], starts[chosen[i] + 1]
        top = -np.inf
        for slot in range(low, high):
            policy[slot] = logits[i, reorder_action(actions[slot], orders[i])]
            top = max(top, policy[slot])
        total = 0.0
        for slot in range(low, high):
            policy[slot] = np.exp(policy[slot] - top)
            total += policy[slot]
        for slot in range(low, high):
            policy[slot] /= total


@kernel
def _tally(choices, chosen, starts, actions, policy):
    for i in range(chosen.shape[0]):
        for slot in range(starts[chosen[i]], starts[chosen[i] + 1]):
            policy[slot] += actions[slot] == choices[i]


@dataclass(frozen=True)
class Measures:
    """What a policy achieves among copies of itself and against the best response; points a hand.

    Attributes:
        values: per seat, what it expects when all play the policy.
        best: per seat, what it expects when it alone plays its best response.
        nash_conv: sum over seats of the gain.
    """

    values: tuple[float, ...]
    best: tuple[float, ...]
    nash_conv: float

    def to_dict(self) -> dict[str, Any]:
        """The fields as a JSON-ready dict."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in dataclasses.asdict(self).items()
        }


def measure(tree: Tree, policy: np.ndarray) -> Measures:
    """Exact values, best responses and NashConv of a policy, float64 (slots,)."""
    values = tuple(float(value) for value in tree.reach(policy) @ tree.payoffs)
    best = tuple(tree.respond(policy, seat)[0] for seat in range(tree.rules.num_players))
    return Measures(values, best, sum(best) - sum(values))


def solve(tree: Tree, num_iterations: int) -> np.ndarray:
    """A policy near an equilibrium, by CFR+ (Tammelin 2014); only with two sides does it come as near as one likes."""
    policy = tree.uniform()
    regrets, total = np.zeros(len(policy)), np.zeros(len(policy))
    own = np.ones(tree.num_nodes)
    for iteration in range(1, num_iterations + 1):
        for seat in range(tree.rules.num_players):
            _own_reach(tree.num_deals, tree.parents, tree.slots, tree.seats, policy, seat, own)
            values = tree.payoffs[:, seat] * tree.reach(policy, seat)
            _improve(
                tree.levels,
                tree.parents,
                tree.slots,
                tree.seats,
                tree.infosets,
                tree.starts,
                seat,
                policy,
                own,
                values,
                regrets,
                total,
                float(iteration),
            )
    sums = np.add.reduceat(total, tree.starts[:-1])
    counts = np.diff(tree.starts)
    return np.where(np.repeat(sums, counts) > 0, total / np.repeat(np.maximum(sums, 1e-300), counts), tree.uniform())


def ask(agent: Agent, tree: Tree, num_samples: int = NUM_SAMPLES) -> tuple[np.ndarray, bool]:
    """The policy of an agent, float64 (slots,), and whether it is known exactly.

    It is for a network and for agents that draw nothing. Others are asked `num_samples` times at each information set,
    and NashConv comes out too high by the chance in that.

    Raises:
        ValueError: if it is to be asked less than once, or a policy was trained for another deck.
    """
    if num_samples < 1:
        raise ValueError(f"samples takes a whole number from 1 up, not {num_samples!r}")
    from agents.policy import PolicyAgent
    from agents.random_bots import RandomAgent

    policy = tree.uniform()
    chosen = np.flatnonzero(np.diff(tree.starts) > 1)
    if type(agent) is RandomAgent:
        return policy, True
    if isinstance(agent, PolicyAgent):
        if not agent.is_greedy:
            for start in range(0, len(chosen), _BATCH):
                _ask_network(agent, tree, chosen[start : start + _BATCH], policy)
            return policy, True
        num_samples = 1
    is_open = np.repeat(np.diff(tree.starts) > 1, np.diff(tree.starts))
    policy[is_open] = 0
    stream = np.random.default_rng(0)
    for _ in range(num_samples):
        seeds = stream.integers(0, 2**64, size=len(chosen), dtype=np.uint64)
        choices = np.asarray(agent.act(tree.views.take(chosen), seeds), np.int64)
        _tally(choices, chosen, tree.starts, tree.actions, policy)
    policy[is_open] /= num_samples
    return policy, bool(np.isin(policy, (0, 1)).all())


def _ask_network(agent: Any, tree: Tree, chosen: np.ndarray, policy: np.ndarray) -> None:
    import torch

    from agents.encoding import encode_views
    from agents.policy import check_rules

    check_rules(agent.spec.rules, tree.rules, agent.name)
    encoded = encode_views(tree.views.take(chosen), agent.spec.num_seats)
    with torch.inference_mode():
        logits = agent.network(encoded.features, encoded.lengths).numpy()
    _spread(logits, encoded.orders, chosen, tree.starts, tree.actions, policy)
