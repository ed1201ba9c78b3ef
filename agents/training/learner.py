"""The learner: plays hands with the current policy, estimates advantages, takes gradient steps.

Work is cut into a fixed number of shards, whose gradients are added in their order; threads only decide how many shards
run at a time, so they never change a result.
"""

import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

from agents.network import new_critic, new_policy
from agents.training.config import Config
from agents.training.losses import estimate_advantages, policy_loss, value_loss
from agents.training.rollout import (
    BID,
    NUM_KINDS,
    Batch,
    Shard,
    count_critic_features,
    join_batches,
    summarise_hands,
)
from pitch_env.cards import NUM_ACTIONS
from pitch_env.observation import layout

_MOST_BAD_UPDATES = 3
_VALUE_ROWS = 4096  # rows the critic judges at a time


class TrainingError(RuntimeError):
    """Training cannot go on; the last checkpoint is whole."""


def has_fast_bfloat16() -> bool:
    """Whether this processor multiplies matrices in bfloat16 itself."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


class Learner:
    """Trains a policy and a critic by self-play with PPO.

    Attributes:
        policy, critic: the networks being trained.
        average: running average of the policy's weights, the one to use.
        num_steps: decisions played so far, forced ones counted.
        num_updates: rounds of playing and learning so far.
    """

    def __init__(self, config: Config) -> None:
        torch.set_num_threads(1)
        self.config = config
        self.device = torch.device(config.device)
        roots = np.random.SeedSequence(config.seed).spawn(config.shards + 2)
        rules = config.rules
        weights_seed, self.order = roots[-2].generate_state(1)[0], np.random.Generator(np.random.PCG64(roots[-1]))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(weights_seed))
            self.policy = new_policy(layout(rules.num_players).size, tuple(config.hidden)).to(self.device)
            num_features = count_critic_features(rules) if config.privileged_critic else layout(rules.num_players).size
            self.critic = new_critic(num_features, tuple(config.critic_hidden)).to(self.device)
            self.average = new_policy(layout(rules.num_players).size, tuple(config.hidden)).to(self.device)
        self.average.load_state_dict(self.policy.state_dict())
        sizes = [
            config.hands * (part + 1) // config.shards - config.hands * part // config.shards
            for part in range(config.shards)
        ]
        self.shards = [Shard(rules, size, root, config.reward_scale) for size, root in zip(sizes, roots, strict=False)]
        self._parameters = [*self.policy.parameters(), *self.critic.parameters()]
        self.optimizer = torch.optim.Adam(self._parameters, lr=config.learning_rate, eps=1e-5, fused=True)
        self.is_half = config.precision == "bfloat16" or (
            config.precision == "auto" and (self.device.type == "cuda" or has_fast_bfloat16())
        )
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.num_threads = min(config.shards, config.threads or cores)
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
        played = self._map(lambda shard: shard.play(self.compute_logits), self.shards)
        batch = join_batches([part for part, _ in played])
        play_time = time.perf_counter() - clock
        num_steps = sum(steps for _, steps in played)
        clock = time.perf_counter()
        facts = self._learn(batch)
        facts["time/update_share"] = (time.perf_counter() - clock) / (time.perf_counter() - clock + play_time)
        self.num_steps += num_steps
        self.num_updates += 1
        facts.update(summarise_hands(np.concatenate([shard.tables for shard in self.shards])))
        facts["charts/open_share"] = len(batch) / num_steps
        return facts

    def _judge(self, batch: Batch) -> np.ndarray:
        lengths = batch.full_lengths if self.config.privileged_critic else batch.lengths

        def judge(start: int) -> np.ndarray:
            part = slice(start, start + _VALUE_ROWS)
            with torch.inference_mode():
                return self.critic(batch.features[part], lengths[part], self.is_half)[:, 0].cpu().numpy()

        return np.concatenate(self._map(judge, range(0, len(batch), _VALUE_ROWS)))

    def _learn(self, batch: Batch) -> dict[str, float]:
        config = self.config
        values = self._judge(batch)
        advantages, returns = estimate_advantages(batch.streams, values, batch.rewards, config.gae_lambda)
        facts = {"losses/explained_variance": float(1 - np.var(returns - values) / max(np.var(returns), 1e-8))}
        for kind in range(NUM_KINDS):
            is_kind = batch.kinds == kind
            if is_kind.any():
                advantages[is_kind] /= advantages[is_kind].std() + 1e-8
        entropy = self.schedule(config.entropy, config.final_entropy)
        weights = np.where(batch.kinds == BID, config.bid_entropy_factor * entropy, entropy).astype(np.float32)
        rate = self.schedule(config.learning_rate, config.final_learning_rate)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        totals: dict[str, list[float]] = {}
        for _ in range(config.epochs):
            order = self.order.permutation(len(batch))
            kl = []
            for start in range(0, len(batch), config.minibatch):
                rows = order[start : start + config.minibatch]
                terms = self._step(batch, rows, advantages, returns, weights)
                kl.append(terms["losses/approx_kl"])
                for name, value in terms.items():
                    totals.setdefault(name, []).append(value)
            if float(np.mean(kl)) > config.target_kl:
                break
        facts.update({name: float(np.mean(terms)) for name, terms in totals.items()})
        facts["charts/learning_rate"] = rate
        facts["charts/entropy_weight"] = entropy
        return facts

    def _step(
        self, batch: Batch, rows: np.ndarray, advantages: np.ndarray, returns: np.ndarray, weights: np.ndarray
    ) -> dict[str, float]:
        parts = [part for part in np.array_split(rows, self.config.shards) if len(part)]

        def differentiate(part: np.ndarray) -> tuple[list[torch.Tensor], dict[str, float]]:
            return self._differentiate(batch, part, len(part) / len(rows), advantages, returns, weights)

        results = self._map(differentiate, parts)
        for index, parameter in enumerate(self._parameters):
            gradient = results[0][0][index]
            for gradients, _ in results[1:]:
                gradient += gradients[index]
            parameter.grad = gradient
        terms = {name: sum(part[name] for _, part in results) for name in results[0][1]}
        norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.config.max_grad_norm, foreach=True)
        other = torch.nn.utils.clip_grad_norm_(self.critic.parameters(), self.config.max_grad_norm, foreach=True)
        if not math.isfinite(norm + other):
            self._num_bad += 1
            if self._num_bad >= _MOST_BAD_UPDATES:
                raise TrainingError(
                    f"gradients were not finite in {self._num_bad} steps on end: lower learning_rate "
                    f"(now {self.config.learning_rate:g}) and resume from the last checkpoint"
                )
            return terms
        self._num_bad = 0
        self.optimizer.step()
        decay = min(self.config.average, (1 + self._num_averaged()) / (10 + self._num_averaged()))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.parameters()), list(self.policy.parameters()), 1 - decay)
        terms["losses/grad_norm"] = float(norm)
        return terms

    def _num_averaged(self) -> float:
        state = self.optimizer.state[self._parameters[0]]
        return float(state["step"])

    def _differentiate(
        self,
        batch: Batch,
        rows: np.ndarray,
        share: float,
        advantages: np.ndarray,
        returns: np.ndarray,
        weights: np.ndarray,
    ) -> tuple[list[torch.Tensor], dict[str, float]]:
        """Gradients of a part of a minibatch, scaled by its share of it."""

        def tensor(array: np.ndarray) -> torch.Tensor:
            return torch.from_numpy(array).to(self.device)

        features, lengths = batch.features[rows], batch.lengths[rows]
        bits = np.unpackbits(batch.masks[rows].view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
        mask = tensor(bits[:, :NUM_ACTIONS]).bool()
        terms = policy_loss(
            self.policy(features, lengths, self.is_half),
            mask,
            tensor(batch.actions[rows]),
            tensor(batch.log_probs[rows]),
            tensor(advantages[rows]),
            tensor(weights[rows]),
            self.config.clip,
        )
        critic_lengths = batch.full_lengths[rows] if self.config.privileged_critic else lengths
        value_term = value_loss(self.critic(features, critic_lengths, self.is_half)[:, 0], tensor(returns[rows]))
        gradients = torch.autograd.grad((terms.loss + value_term) * share, self._parameters)
        facts: dict[str, Any] = {
            "losses/policy_loss": terms.loss,
            "losses/value_loss": value_term,
            "losses/entropy": terms.entropy,
            "losses/approx_kl": terms.approx_kl,
            "losses/clipfrac": terms.clip_fraction,
        }
        return list(gradients), {name: float(value.detach()) * share for name, value in facts.items()}
