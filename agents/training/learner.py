"""The learner: plays hands with the current policy, estimates advantages, takes gradient steps.

Work is cut into a fixed number of shards, whose gradients are added in their order; threads only decide how many shards
run at a time, so they never change a result.
"""

import copy
import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from agents.network import new_critic, new_policy
from agents.training.config import Config
from agents.training.equity import Equity
from agents.training.losses import action_value_loss, estimate_advantages, policy_loss, value_loss
from agents.training.pool import Pool
from agents.training.rollout import (
    BID,
    NUM_KINDS,
    Batch,
    NetworkPlayer,
    Shard,
    count_critic_features,
    join_batches,
    reward_points,
    summarise_hands,
)
from pitch_env.cards import NUM_ACTIONS
from pitch_env.observation import layout

_MOST_BAD_STEPS = 3
_ROWS_AT_ONCE = 4096  # rows judged at a time


class TrainingError(RuntimeError):
    """Training cannot go on; the last checkpoint is whole."""


def has_fast_bfloat16() -> bool:
    """Whether this processor multiplies matrices in bfloat16 itself."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def count_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class Lesson:
    """What a batch is learned from, one entry for each decision: float32 (N,), but for the magnet's (N, 57)."""

    advantages: np.ndarray
    returns: np.ndarray
    entropy_weights: np.ndarray
    magnet_logits: np.ndarray | None


class Learner:
    """Trains a policy and a critic by playing against itself and, if asked, a pool of opponents.

    Attributes:
        policy, critic: the networks being trained.
        average: running average of the policy's weights, the one to use.
        magnet: what mirror descent draws the policy to; None for other algorithms.
        equity: what scores are worth in a match; None when hands are played for points.
        pool: the opponents.
        generator: order of minibatches, seats of the pool, samples of the equity.
        num_steps: decisions played so far, forced ones counted.
        num_updates: rounds of playing and learning so far.
    """

    def __init__(self, config: Config) -> None:
        torch.set_num_threads(1)
        self.config = config
        self.device = torch.device(config.device)
        rules = config.rules
        *roots, weights_root, order_root = np.random.SeedSequence(config.seed).spawn(config.shards + 2)
        self.generator = np.random.Generator(np.random.PCG64(order_root))
        num_features = layout(rules.num_players).size
        num_critic_features = count_critic_features(rules) if config.privileged_critic else num_features
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(weights_root.generate_state(1)[0]))
            self.policy = new_policy(num_features, tuple(config.hidden)).to(self.device)
            self.critic = new_critic(num_critic_features, tuple(config.critic_hidden)).to(self.device)
            self.equity = Equity(rules) if config.objective == "match" else None
        self.average = copy.deepcopy(self.policy).requires_grad_(False)
        self.magnet = copy.deepcopy(self.average) if config.algorithm == "mmd" else None
        bounds = [config.hands * part // config.shards for part in range(config.shards + 1)]
        self.shards = [
            Shard(rules, high - low, root) for (low, high), root in zip(pairwise(bounds), roots, strict=True)
        ]
        self.pool = Pool(rules, config.pool_bots, config.pool_share, config.max_snapshots)
        self._parameters = [*self.policy.parameters(), *self.critic.parameters()]
        self.optimizer = torch.optim.Adam(self._parameters, lr=config.learning_rate, eps=1e-5, fused=True)
        self.is_half = config.precision == "bfloat16" or (
            config.precision == "auto" and (self.device.type == "cuda" or has_fast_bfloat16())
        )
        self.num_threads = min(config.shards, config.threads or count_cores())
        self._pool = ThreadPoolExecutor(self.num_threads, initializer=torch.set_num_threads, initargs=(1,))
        self.num_steps = 0
        self.num_updates = 0
        self._num_bad = 0

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def _map(self, work: Callable, *arguments: Sequence) -> list:
        return list(self._pool.map(work, *arguments))

    def progress(self) -> float:
        """Share of the run that is done, 0 to 1."""
        return min(self.num_steps / self.config.total_steps, 1.0)

    def schedule(self, first: float, last: float) -> float:
        """A value that holds for the first part of the run and then falls in a straight line."""
        hold = self.config.hold
        return first + (last - first) * max(0.0, self.progress() - hold) / (1 - hold)

    def compute_logits(self, features: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Logits of the current policy, float32 (N, 57)."""
        with torch.inference_mode():
            return self.policy(features, lengths, self.is_half).cpu().numpy()

    def update(self) -> dict[str, float]:
        """Play one hand at every table and learn from it.

        Returns:
            Facts for the log, TensorBoard names to numbers.

        Raises:
            TrainingError: if gradients stay infinite or not a number.
        """
        clock = time.perf_counter()
        batch, num_steps, facts = self._play()
        play_time = time.perf_counter() - clock
        clock = time.perf_counter()
        facts.update(self._learn(batch))
        facts["time/update_share"] = (time.perf_counter() - clock) / (time.perf_counter() - clock + play_time)
        facts["charts/open_share"] = len(batch) / num_steps
        self.num_steps += num_steps
        self.num_updates += 1
        if self.magnet is not None and self.num_updates % self.config.magnet_every == 0:
            self.magnet.load_state_dict(self.average.state_dict())
        every = self.config.snapshot_every
        if self.config.pool_share > 0 and self.num_steps // every > (self.num_steps - num_steps) // every:
            self.pool.add_snapshot(self.average, self.num_steps)
        return facts

    def _play(self) -> tuple[Batch, int, dict[str, float]]:
        greed = self.config.greed if self.config.algorithm == "dmc" else None
        players = [NetworkPlayer(self.compute_logits, greed), *self.pool.players()]
        for shard in self.shards:
            shard.deal()
            self.pool.seat(shard, self.generator)
        starts = [(shard.tables["scores"].copy(), shard.tables["dealer"].copy()) for shard in self.shards]
        played = self._map(lambda shard: shard.play(players), self.shards)
        tables = np.concatenate([shard.tables for shard in self.shards])
        facts = summarise_hands(tables)
        points = [reward_points(shard.tables) for shard in self.shards]
        facts.update(self.pool.score(self.shards, points))
        batch = join_batches([part for part, _ in played])
        if self.equity is not None:
            scores, dealers = (np.concatenate(parts) for parts in zip(*starts, strict=True))
            facts.update(self._price(batch, tables, scores, dealers))
        batch.rewards *= self.config.reward_scale
        return batch, sum(steps for _, steps in played), facts

    def _price(self, batch: Batch, tables: np.ndarray, scores: np.ndarray, dealers: np.ndarray) -> dict[str, float]:
        """Blend what hands did to the chances to win the match into the rewards, and learn those chances."""
        config, rules = self.config, self.config.rules
        assert self.equity is not None
        scores = scores[:, : rules.num_sides]
        after = self.equity.estimate_after(tables)
        gains = after - self.equity.estimate(scores, dealers)
        seats = np.arange(rules.num_players) % rules.num_sides
        share = min(max(self.progress() - config.match_from, 0) / 0.2, 1.0)  # over a fifth of the run
        batch.rewards *= 1 - share
        batch.rewards += share * config.match_scale * gains[:, seats].reshape(-1)
        loss = self.equity.learn(scores, dealers, after, self.generator)
        return {"losses/equity": loss, "charts/match_share": share}

    def _judge(
        self, compute: Callable[[np.ndarray, np.ndarray], torch.Tensor], batch: Batch, lengths: np.ndarray
    ) -> np.ndarray:
        """Outputs of a network, float32 (N, outputs), for all decisions of a batch."""

        def judge(start: int) -> np.ndarray:
            part = slice(start, start + _ROWS_AT_ONCE)
            with torch.inference_mode():
                return compute(batch.features[part], lengths[part]).cpu().numpy()

        return np.concatenate(self._map(judge, range(0, len(batch), _ROWS_AT_ONCE)))

    def _critic_lengths(self, batch: Batch) -> np.ndarray:
        return batch.full_lengths if self.config.privileged_critic else batch.lengths

    def _prepare(self, batch: Batch) -> tuple[Lesson, dict[str, float]]:
        config = self.config
        values = self._judge(lambda f, n: self.critic(f, n, self.is_half), batch, self._critic_lengths(batch))[:, 0]
        gae_lambda = 1.0 if config.algorithm == "dmc" else config.gae_lambda
        advantages, returns = estimate_advantages(batch.streams, values, batch.rewards, gae_lambda)
        facts = {"losses/explained_variance": float(1 - np.var(returns - values) / max(np.var(returns), 1e-8))}
        for kind in range(NUM_KINDS):
            is_kind = batch.kinds == kind
            if is_kind.any():
                advantages[is_kind] /= advantages[is_kind].std() + 1e-8
        entropy = self.schedule(config.entropy, config.final_entropy)
        facts["charts/entropy_weight"] = entropy
        weights = np.where(batch.kinds == BID, config.bid_entropy_factor * entropy, entropy).astype(np.float32)
        magnet = self.magnet
        logits = None
        if magnet is not None:
            logits = self._judge(lambda f, n: magnet(f, n, self.is_half), batch, batch.lengths)
        return Lesson(advantages, returns, weights, logits), facts

    def _learn(self, batch: Batch) -> dict[str, float]:
        config = self.config
        lesson, facts = self._prepare(batch)
        rate = self.schedule(config.learning_rate, config.final_learning_rate)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        facts["charts/learning_rate"] = rate
        steps: list[dict[str, float]] = []
        for _ in range(config.epochs):
            order = self.generator.permutation(len(batch))
            first = len(steps)
            for start in range(0, len(batch), config.minibatch):
                steps.append(self._step(batch, order[start : start + config.minibatch], lesson))
            if np.mean([terms["losses/approx_kl"] for terms in steps[first:]]) > config.target_kl:
                break
        facts.update({name: float(np.mean([terms[name] for terms in steps])) for name in steps[0]})
        return facts

    def _step(self, batch: Batch, rows: np.ndarray, lesson: Lesson) -> dict[str, float]:
        """One gradient step on some rows, its parts computed side by side."""
        parts = [part for part in np.array_split(rows, self.config.shards) if len(part)]
        results = self._map(lambda part: self._differentiate(batch, part, len(part) / len(rows), lesson), parts)
        for index, parameter in enumerate(self._parameters):
            gradient = results[0][0][index]
            for gradients, _ in results[1:]:
                gradient += gradients[index]
            parameter.grad = gradient
        terms = {name: sum(part[name] for _, part in results) for name in results[0][1]}
        norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.config.max_grad_norm, foreach=True)
        critic_norm = torch.nn.utils.clip_grad_norm_(self.critic.parameters(), self.config.max_grad_norm, foreach=True)
        terms["losses/grad_norm"] = float(norm)
        if not math.isfinite(norm + critic_norm):
            self._num_bad += 1
            if self._num_bad >= _MOST_BAD_STEPS:
                raise TrainingError(
                    f"gradients were not finite in {self._num_bad} steps on end: lower learning_rate "
                    f"(now {self.config.learning_rate:g}) and resume from the last checkpoint"
                )
            return terms
        self._num_bad = 0
        self.optimizer.step()
        num_taken = float(self.optimizer.state[self._parameters[0]]["step"])
        decay = min(self.config.average, (1 + num_taken) / (10 + num_taken))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.parameters()), list(self.policy.parameters()), 1 - decay)
        return terms

    def _differentiate(
        self, batch: Batch, rows: np.ndarray, share: float, lesson: Lesson
    ) -> tuple[list[torch.Tensor], dict[str, float]]:
        """Gradients of a part of a minibatch, scaled by its share of it."""

        def tensor(array: np.ndarray) -> torch.Tensor:
            return torch.from_numpy(array[rows]).to(self.device)

        features, lengths = batch.features[rows], batch.lengths[rows]
        logits = self.policy(features, lengths, self.is_half)
        critic_term = value_loss(
            self.critic(features, self._critic_lengths(batch)[rows], self.is_half)[:, 0], tensor(lesson.returns)
        )
        facts = {"losses/value_loss": critic_term}
        if self.config.algorithm == "dmc":
            loss = action_value_loss(logits, tensor(batch.actions), tensor(lesson.returns))
            facts.update(
                {"losses/policy_loss": loss, "losses/approx_kl": torch.zeros(()), "losses/entropy": torch.zeros(())}
            )
        else:
            bits = np.unpackbits(batch.masks[rows].view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
            terms = policy_loss(
                logits,
                torch.from_numpy(bits[:, :NUM_ACTIONS]).to(self.device).bool(),
                tensor(batch.actions),
                tensor(batch.log_probs),
                tensor(lesson.advantages),
                tensor(lesson.entropy_weights),
                self.config.clip,
                None if lesson.magnet_logits is None else tensor(lesson.magnet_logits),
                self.config.magnet_weight,
            )
            loss = terms.loss
            facts["losses/policy_loss"] = loss
            facts["losses/entropy"] = terms.entropy
            facts["losses/approx_kl"] = terms.approx_kl
            facts["losses/clipfrac"] = terms.clip_fraction
            if lesson.magnet_logits is not None:
                facts["losses/magnet_kl"] = terms.magnet_kl
        gradients = torch.autograd.grad((loss + critic_term) * share, self._parameters)
        return list(gradients), {name: float(value.detach()) * share for name, value in facts.items()}
