"""Search on top of a trained policy: one careful step away from what it would do, towards what works out better.

For the view at hand it samples deals, weighs them by how the policy would have bid and played so far, lets the policy
play each candidate action out in every deal, and takes one regularised step from the policy by the values found: the
prior's log-probability plus the values in units of their standard error. That is one step of mirror descent from the
blueprint at the decision to take, as in update-equivalent search (Sokota et al. 2024); searching on with nothing but
averages (PIMC) would throw away what the policy knows wherever the values are noisy.

A hand played out is worth its points, or with an equity the chance to win the match from there on.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from agents.base import Agent
from agents.encoding import encode_views
from agents.equity import EQUITY_FILE, Equity, read_equity
from agents.network import run_network
from agents.options import choose_one, read_options
from agents.policy import PolicyAgent, check_rules
from agents.search.belief import draw_hands, judge_hands, sample_likely_worlds, temper
from agents.search.budget import check_seconds, cost_of, plan_rounds
from agents.search.objective import value_hands
from agents.search.playout import apply_each, derive_streams, play_out, restore_all
from pitch_env.cards import NUM_ACTIONS
from pitch_env.kernels import ONE

OBJECTIVES = ("points", "match")
NUM_WORLDS = 128
_WORLD_COST = 0.4  # of a decision, for each world
_VIEWS = 32  # searched at a time
_FIRST_SHARE = 0.25  # of the worlds, after which clearly worse actions are dropped
_FIRST_ROUND = 32  # worlds, when time is the budget
_CLEARLY = 2.0  # standard errors
_LEAST_ERROR = 1e-3  # of a value
_MOST_LATE = 4  # times as many worlds when little is left to play

Round = tuple[np.ndarray, np.ndarray]  # worlds of some views, array of `TABLE` (N, M), and each one's luck, uint64


@dataclass
class Candidates:
    """Actions worth a thought at some views, all in one row, those of a view side by side.

    Attributes:
        views: int64 (P,), the view of each.
        actions: int64 (P,).
        log_priors: float64 (P,), log of the policy's probability.
        values: float64 (P, worlds so far), NaN where it was not tried.
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
    """Searches one step on from what a policy would do. It counts on others who play the policy too.

    Args:
        policy: what it starts from, and what it takes the others to play.
        num_worlds: deals that actions are tried in; late in a hand, when that is cheap, up to four times as many.
        num_candidates: hands of each other seat that are judged by what it did.
        strength: how far values move the policy; at 0 it stays as it is.
        seed: of the decisions that are asked for one at a time, by calling the agent.
        equity: values hands by each side's chance to win the match; None: by points, whatever the score.
        seconds: time for each decision in place of `num_worlds`. Deals are then added in rounds until it is up, 32 at
            least, or until the choice is clear; their number, and so the decision, may differ from run to run.
        least_effective: effective sample size of a seat's hands below which their weights are tempered.
        noise: the chance that an action of another seat was a uniform one.
        least_prior: actions less likely than this are not tried.
        is_greedy: play out by likeliest actions instead of drawn ones; None: as the policy acts.

    Raises:
        ValueError: for a nonsense value, or an equity of other rules than the policy's.
    """

    def __init__(
        self,
        policy: PolicyAgent,
        num_worlds: int = NUM_WORLDS,
        num_candidates: int = 256,
        strength: float = 1.0,
        seed: int | None = None,
        *,
        equity: Equity | None = None,
        seconds: float | None = None,
        least_effective: float = 32,
        noise: float = 0.03,
        least_prior: float = 0.01,
        is_greedy: bool | None = None,
    ) -> None:
        super().__init__(seed)
        for name, number, least in (("num_worlds", num_worlds, 2), ("num_candidates", num_candidates, 1)):
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise ValueError(f"{name} takes a whole number from {least} up, not {number!r}")
        shares: tuple[tuple[str, Any], ...] = (("noise", noise), ("least_prior", least_prior))
        for name, share in shares:
            if not 0 <= share < 1:
                raise ValueError(f"{name} takes a share from 0 to below 1, not {share!r}")
        for name, amount in (("strength", strength), ("least_effective", least_effective)):
            if not amount >= 0:
                raise ValueError(f"{name} takes a number from 0 up, not {amount!r}")
        check_seconds(seconds)
        if equity is not None:
            check_rules(equity.rules, policy.spec.rules, "the equity")
        self.policy, self.name, self.rules = policy, f"search:{policy.name}", policy.rules
        self.num_worlds, self.num_candidates, self.strength = num_worlds, num_candidates, strength
        self.equity, self.seconds = equity, seconds
        self.least_effective, self.noise, self.least_prior = least_effective, noise, least_prior
        self.is_greedy = policy.is_greedy if is_greedy is None else is_greedy
        self.cost = cost_of(seconds) if seconds else max(1.0, _WORLD_COST * num_worlds)

    def act(self, views: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        if self.seconds is not None and len(views) > 1:  # the time is for one decision
            return np.concatenate([self.act(views[i : i + 1], seeds[i : i + 1]) for i in range(len(views))])
        start = perf_counter()
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
                    np.empty((len(rows), 0)),
                    np.ones(len(rows), bool),
                )
                if self.seconds is None:
                    rounds = self._draw_counted(views[some], seeds[some], num_worlds)
                else:
                    rounds = self._draw_timed(views[some], seeds[some], start + self.seconds)
                chosen[some] = self._search(candidates, rounds, len(some))
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
        return sample_likely_worlds(views, num_worlds, seeds, *self._weigh_hands(views, seeds))

    def _weigh_hands(self, views: np.ndarray, seeds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Hands that the other seats may hold, and their weights, as `sample_likely_worlds` takes them."""
        hands = draw_hands(views, self.num_candidates, derive_streams(~seeds, 1)[:, 0])
        found = judge_hands(views, hands, self.policy.network, self.policy.spec.num_seats, self.noise)
        floor = min(self.least_effective, self.num_candidates / 4)
        return hands, temper(np.ascontiguousarray(found.transpose(0, 2, 1)), floor)

    def _draw_counted(self, views: np.ndarray, seeds: np.ndarray, num_worlds: int) -> Iterator[Round]:
        """A number of worlds of each view, in two rounds."""
        worlds, streams = self.sample(views, seeds, num_worlds), derive_streams(seeds, num_worlds)
        first = max(2, round(_FIRST_SHARE * num_worlds))
        for part in (slice(first), slice(first, num_worlds)):
            if worlds[:, part].size:
                yield worlds[:, part], streams[:, part]

    def _draw_timed(self, views: np.ndarray, seeds: np.ndarray, end: float) -> Iterator[Round]:
        """Rounds of worlds of each view for as long as the next one is likely to be done in time."""
        weighed = self._weigh_hands(views, seeds)
        for number, size in enumerate(plan_rounds(_FIRST_ROUND, end), 1):
            luck = np.ascontiguousarray(derive_streams(seeds, number)[:, -1])
            if size >= self.num_candidates:
                weighed = self._weigh_hands(views, luck)
            yield sample_likely_worlds(views, size, luck, *weighed), derive_streams(luck, size)

    def _search(self, candidates: Candidates, rounds: Iterator[Round], num_views: int) -> np.ndarray:
        """The action to take at each of some views, which have two candidates or more, tried in rounds of worlds."""
        chosen = np.empty(num_views, np.int64)
        for worlds, streams in rounds:
            self._try_out(worlds, streams, candidates)
            for number in range(num_views):
                pairs = np.flatnonzero((candidates.views == number) & candidates.is_open)
                if len(pairs):
                    chosen[number] = self._compare(candidates, pairs)
            if not candidates.is_open.any():
                break
        return chosen

    def _try_out(self, worlds: np.ndarray, streams: np.ndarray, candidates: Candidates) -> None:
        """Play the open candidates out in some worlds, (N, M), each with its stream."""
        num_worlds, num_sides = worlds.shape[1], self.policy.spec.rules.num_sides
        pairs = np.flatnonzero(candidates.is_open)
        numbers = candidates.views[pairs]
        tables = worlds[numbers].reshape(-1)
        sides = np.repeat(worlds["seat"][numbers, 0].astype(np.int64) % num_sides, num_worlds)
        apply_each(tables, np.repeat(candidates.actions[pairs], num_worlds))
        play_out(
            tables,
            np.ascontiguousarray(streams[numbers]).reshape(-1),
            self.policy.network,
            self.policy.spec.num_seats,
            is_greedy=self.is_greedy,
        )
        values = np.full((len(candidates.views), num_worlds), np.nan)
        values[pairs] = value_hands(tables, sides, num_sides, self.equity).reshape(len(pairs), -1)
        candidates.values = np.concatenate([candidates.values, values], axis=1)

    def _compare(self, candidates: Candidates, pairs: np.ndarray) -> int:
        """The best of a view's open candidates so far; closes what is clearly worse, and the best when it is alone."""
        values = candidates.values[pairs]
        best = int(np.argmax(score_actions(candidates.log_priors[pairs], values, self.strength)))
        behind = values[best] - values
        errors = np.sqrt(behind.var(axis=1, ddof=1) / values.shape[1])
        is_open = behind.mean(axis=1) <= _CLEARLY * np.maximum(errors, _LEAST_ERROR)
        candidates.is_open[pairs] = is_open & (is_open.sum() > 1)
        return int(candidates.actions[pairs[best]])


def new_search(policy: PolicyAgent, folder: Path, options: str) -> PolicySearchAgent:
    """Search on a policy as a text asks for it, for matches where the policy's folder has an equity file.

    Args:
        policy: what it starts from.
        folder: where the policy lies.
        options: such as "worlds=64", "seconds=0.5" or "objective=points", with commas between them; empty for none.

    Raises:
        ValueError: for an option that is not known, or a value that it does not take.
        FileNotFoundError: if the match is asked for, and there is no equity.
    """
    given = read_options("search", options, {"worlds": int, "seconds": float, "objective": choose_one(*OBJECTIVES)})
    file = folder / EQUITY_FILE
    is_match = given.get("objective", "match" if file.is_file() else "points") == "match"
    agent = PolicySearchAgent(
        policy,
        given.get("worlds", NUM_WORLDS),
        seconds=given.get("seconds"),
        equity=read_equity(file, policy.spec.rules) if is_match else None,
    )
    agent.name += f"?{options}" if options else ""
    return agent
