"""Agents that choose by chance: the yardsticks every other agent should beat."""

import numpy as np

from agents.base import Agent
from pitch_env.cards import PASS
from pitch_env.engine import legal_actions
from pitch_env.kernels import GOLDEN, U64, bit, count, kernel, nth, part, scramble


@part
def mix_seed(seed):
    """Scramble a seed (SplitMix64's finalizer), so that neighbouring seeds give unrelated choices."""
    return scramble(seed + GOLDEN)


@part
def choose_by_seed(mask, seed):
    """A uniform choice among the set bits of a mask (bias under 2**-26)."""
    return nth(mask, np.int64(((mix_seed(seed) >> U64(32)) * U64(count(mask))) >> U64(32)))


@kernel
def _act_uniformly(views, seeds, passes):
    actions = np.empty(views.shape[0], np.int64)
    for i in range(views.shape[0]):
        legal = legal_actions(views[i])
        if passes and legal & bit(PASS):
            actions[i] = PASS
        else:
            actions[i] = choose_by_seed(legal, seeds[i])
    return actions


class RandomAgent(Agent):
    """Any legal action, each as likely as the others. It nearly always overbids."""

    name = "random"

    def act(self, views: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        return _act_uniformly(views, seeds, False)


class PassiveRandomAgent(Agent):
    """Passes wherever it may and plays random cards, so the scores stay sane."""

    name = "passive"

    def act(self, views: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        return _act_uniformly(views, seeds, True)
