"""Search on top of a trained policy: one careful step away from what it would do, towards what works out better.

For the view at hand it samples deals, weighs them by how the policy would have bid and played so far, lets the policy
play each candidate action out in every deal, and takes one regularised step from the policy by the values found: the
prior's log-probability plus the values in units of their standard error. That is one step of mirror descent from the
blueprint at the decision to take, as in update-equivalent search (Sokota et al. 2024); searching on with nothing but
averages (PIMC) would throw away what the policy knows wherever the values are noisy.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.base import Agent
from agents.encoding import encode_views
from agents.policy import PolicyAgent
from agents.search.belief import draw_hands, judge_hands, sample_likely_worlds, temper
from agents.search.playout import apply_each, derive_streams, play_out, restore_all, run_network
from pitch_env.cards import NUM_ACTIONS
from pitch_env.kernels import ONE

_VIEWS = 32  # searched at a time
_ROUNDS = (0.25, 1.0)  # shares of the worlds after which clearly worse actions are dropped
_CLEARLY = 2.0  # standard errors
_LEAST_ERROR = 1e-3  # of a value, in points
_MOST_LATE = 4  # times as many worlds when little is left to play


@dataclass
class Candidates:
    """Actions worth a thought at some views, all in one row, those of a view side by side.

    Attributes:
        views: int64 (P,), the view of each.
        actions: int64 (P,).
        log_priors: float64 (P,), log of the policy's probability.
        values: float64 (P, worlds), NaN where it was not tried.
        is_open: bool (P,), False once it is clearly worse than another one.
    """

    views: np.ndarray
    actions: np.ndarray
    log_priors: np.ndarray
    values: np.ndarray
    is_open: np.ndarray


def score_actions(log_priors: np.ndarray, values: np.ndarray, strength: float) -> np.ndarray:
    """Log of the step's policy, but for a constant and for its temperature: log prior + strength * value / error.

    Values are differences to those of the likeliest action, world by world; their error is the root mean square of
    the actions' standard errors.

    Args:
        log_priors: (A,).
        values: (A, worlds).
        strength: how far values move the policy.
    """
    ahead = values - values[np.argmax(log_priors)]
    errors = ahead.var(axis=1, ddof=1) / ahead.shape[1]
    error = np.sqrt(errors.sum() / max(1, len(errors) - 1))
    return log_priors + strength * ahead.mean(axis=1) / max(error, _LEAST_ERROR)


class PolicySearchAgent(Agent):
    """Searches one step on from what a policy would do, for the points of this hand, whatever the score of the match.

    It counts on others who play the policy too.

    Args:
        policy: what it starts from, and what it takes the others to play.
        num_worlds: deals that actions are tried in; late in a hand, when that is cheap, up to four times as many.
        num_candidates: hands of each other seat that are judged by what it did.
        strength: how far values move the policy; at 0 it stays as it is.
        seed: of the decisions that are asked for one at a time, by calling the agent.
        least_effective: effective sample size of a seat's hands below which their weights are tempered.
        noise: the chance that an action of another seat was a uniform one.
        least_prior: actions less likely than this are not tried.
        most_solved: cards held, all hands together, from which down the rest is solved with all cards seen. It cost
            strength where it was measured, for solved endings know what the players do not.
        is_greedy: play out by likeliest actions instead of drawn ones; None: as the policy acts.

    Raises:
        ValueError: for a nonsense value.
    """

    def __init__(
        self,
        policy: PolicyAgent,
        num_worlds: int = 128,
        num_candidates: int = 256,
        strength: float = 1.0,
        seed: int | None = None,
        *,
        least_effective: float = 32,
        noise: float = 0.03,
        least_prior: float = 0.01,
        most_solved: int = 0,
        is_greedy: bool | None = None,
    ) -> None:
        super().__init__(seed)
        for name, number, least in (
            ("num_worlds", num_worlds, 2),
            ("num_candidates", num_candidates, 1),
            ("most_solved", most_solved, 0),
        ):
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise ValueError(f"{name} takes a whole number from {least} up, not {number!r}")
        shares: tuple[tuple[str, Any], ...] = (("noise", noise), ("least_prior", least_prior))
        for name, share in shares:
            if not 0 <= share < 1:
                raise ValueError(f"{name} takes a share from 0 to below 1, not {share!r}")
        for name, amount in (("strength", strength), ("least_effective", least_effective)):
            if not amount >= 0:
                raise ValueError(f"{name} takes a number from 0 up, not {amount!r}")
        self.policy, self.name = policy, f"search:{policy.name}"
        self.num_worlds, self.num_candidates, self.strength = num_worlds, num_candidates, strength
        self.least_effective, self.noise, self.least_prior = least_effective, noise, least_prior
        self.most_solved = most_solved
        self.is_greedy = policy.is_greedy if is_greedy is None else is_greedy

    def act(self, views: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        self.policy.check_views(views)
        seeds = np.ascontiguousarray(seeds, np.uint64)
        actions, log_priors = self._find_priors(views)
        chosen = actions[np.arange(len(views)), np.argmax(log_priors, axis=1)]
        is_tried = log_priors >= np.log(max(self.least_prior, np.finfo(float).tiny))
        is_tried[np.arange(len(views)), np.argmax(log_priors, axis=1)] = True
        numbers = np.where(is_tried.sum(axis=1) > 1, self._count_worlds(views), 0)
        for num_worlds in np.unique(numbers[numbers > 0]):
            places = np.flatnonzero(numbers == num_worlds)
            for low in range(0, len(places), _VIEWS):
                some = places[low : low + _VIEWS]
                rows, columns = np.nonzero(is_tried[some])
                candidates = Candidates(
                    rows,
                    actions[some[rows], columns],
                    log_priors[some[rows], columns],
                    np.full((len(rows), num_worlds), np.nan),
                    np.ones(len(rows), bool),
                )
                chosen[some] = self._search(views[some], seeds[some], candidates)
        return chosen

    def _find_priors(self, views: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Actions, int64 (N, 57), and the log-probability of each, minus infinity where it is not legal."""
        encoded = encode_views(views, self.policy.spec.num_seats)
        logits = run_network(self.policy.network, encoded.features, encoded.lengths).astype(np.float64)
        is_legal = (encoded.masks[:, None] >> np.arange(NUM_ACTIONS, dtype=np.uint64)) & ONE != 0
        logits = np.where(is_legal, logits, -np.inf)
        logits -= logits.max(axis=1, keepdims=True)
        actions = np.empty(logits.shape, np.int64)
        restore_all(encoded.orders, actions)
        return actions, logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))

    def _count_worlds(self, views: np.ndarray) -> np.ndarray:
        """How many worlds for each view: more when fewer tricks are left."""
        tricks = views["num_plays"] // views["num_players"]
        left = np.maximum(1, views["hand_size"].astype(np.int64) - tricks)
        return self.num_worlds * np.clip(views["hand_size"] // left, 1, _MOST_LATE)

    def sample(self, views: np.ndarray, seeds: np.ndarray, num_worlds: int) -> np.ndarray:
        """Worlds of views, (N,), by what the policy makes of the others' actions: array of `TABLE`, (N, num_worlds)."""
        views = np.ascontiguousarray(views)
        hands = draw_hands(views, self.num_candidates, derive_streams(~seeds, 1)[:, 0])
        found = judge_hands(views, hands, self.policy.network, self.policy.spec.num_seats, self.noise)
        floor = min(self.least_effective, self.num_candidates / 4)
        weights = temper(np.ascontiguousarray(found.transpose(0, 2, 1)), floor)
        return sample_likely_worlds(views, num_worlds, seeds, hands, weights)

    def _search(self, views: np.ndarray, seeds: np.ndarray, candidates: Candidates) -> np.ndarray:
        """The action to take at each of some views, (N,), which have two candidates or more."""
        num_worlds = candidates.values.shape[1]
        worlds = self.sample(views, seeds, num_worlds)
        streams = derive_streams(seeds, num_worlds)
        chosen = np.empty(len(views), np.int64)
        low = 0
        for share in _ROUNDS:
            high = max(2, round(share * num_worlds))
            self._try_out(worlds[:, low:high], streams[:, low:high], candidates, slice(low, high))
            for number in range(len(views)):
                pairs = np.flatnonzero((candidates.views == number) & candidates.is_open)
                if len(pairs):
                    chosen[number] = self._compare(candidates, pairs, high)
            low = high
            if not candidates.is_open.any():
                break
        return chosen

    def _try_out(self, worlds: np.ndarray, streams: np.ndarray, candidates: Candidates, part: slice) -> None:
        """Play the open candidates out in some worlds, (N, M), each with its stream."""
        pairs = np.flatnonzero(candidates.is_open)
        numbers = candidates.views[pairs]
        tables = worlds[numbers].reshape(-1)
        if not len(tables):
            return
        sides = np.repeat(worlds["seat"][numbers, 0] % worlds["num_sides"][numbers, 0], worlds.shape[1])
        apply_each(tables, np.repeat(candidates.actions[pairs], worlds.shape[1]))
        found = play_out(
            tables,
            sides,
            np.ascontiguousarray(streams[numbers]).reshape(-1),
            self.policy.network,
            self.policy.spec.num_seats,
            is_greedy=self.is_greedy,
            most_solved=self.most_solved,
        )
        candidates.values[pairs, part] = found.reshape(len(pairs), -1)

    def _compare(self, candidates: Candidates, pairs: np.ndarray, num_done: int) -> int:
        """The best of a view's open candidates so far; closes what is clearly worse, and the best when it is alone."""
        values = candidates.values[pairs, :num_done]
        best = int(np.argmax(score_actions(candidates.log_priors[pairs], values, self.strength)))
        behind = values[best] - values
        errors = np.sqrt(behind.var(axis=1, ddof=1) / num_done)
        is_open = behind.mean(axis=1) <= _CLEARLY * np.maximum(errors, _LEAST_ERROR)
        candidates.is_open[pairs] = is_open & (is_open.sum() > 1)
        return int(candidates.actions[pairs[best]])
