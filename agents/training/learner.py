"""The learner: plays hands with the current policy, estimates advantages, takes gradient steps.

Work is cut into a fixed number of shards. Each plays its own tables and gives its own part of every gradient step;
parts are added in the order of the shards. Threads and processes only decide where a shard is worked on: threads never
change a result, processes change it by rounding alone.
"""

import copy
import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch

from agents.network import new_critic
from agents.policy import PolicySpec
from agents.training.config import Config
from agents.training.equity import POINT_WORTH, EquityLearner, GainSizes, SettledHands, new_equity_learner
from agents.training.losses import (
    PolicyTerms,
    action_value_loss,
    compiled_policy_loss,
    estimate_advantages,
    policy_loss,
    value_loss,
)
from agents.training.parallel import Ranks
from agents.training.pool import Pool
from agents.training.report import describe_decisions, describe_hands
from agents.training.rollout import (
    BID,
    NUM_KINDS,
    Batch,
    NetworkPlayer,
    Shard,
    summarise_hands,
)
from pitch_env.cards import NUM_ACTIONS

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
    explained_variance: float
    values: np.ndarray


class Learner:
    """Trains a policy and a critic by playing against itself and, if asked, a pool of opponents.

    Attributes:
        spec: what the policy is, to save it or to play it.
        policy, critic: the networks being trained.
        average: running average of the policy's weights, the one to use.
        magnet: what mirror descent draws the policy to; None for other algorithms.
        equity: what scores are worth in a match; None when hands are played for points.
        pool: the opponents.
        shards: the tables of this process.
        generator: samples of the equity.
        num_steps: decisions played so far, forced ones counted.
        num_updates: rounds of playing and learning so far.
    """

    def __init__(self, config: Config, ranks: Ranks | None = None, pool: Pool | None = None) -> None:
        torch.set_num_threads(1)
        self.ranks = ranks or Ranks(torch.device(config.device))
        self.config = config
        self.device = torch.device(config.device)
        rules = config.rules
        *roots, weights_root, order_root = np.random.SeedSequence(config.seed).spawn(config.shards + 2)
        self.generator = np.random.Generator(np.random.PCG64(order_root))
        num_seats, critic_hidden = rules.num_players, tuple(config.critic_hidden)
        self.spec = PolicySpec(rules, tuple(config.hidden), num_seats, shape=config.shape)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(weights_root.generate_state(1)[0]))
            self.policy = self.spec.new_network().to(self.device)
            critic = new_critic(num_seats, critic_hidden, config.privileged_critic, config.shape)
            self.critic = critic.to(self.device)
            self.equity = new_equity_learner(rules, 1 + len(config.pool_bots)) if config.objective == "match" else None
        self.gain_sizes = GainSizes(rules)
        self.average = copy.deepcopy(self.policy).requires_grad_(False)
        self.magnet = copy.deepcopy(self.average) if config.algorithm == "mmd" else None
        bounds = [config.hands * part // config.shards for part in range(config.shards + 1)]
        self.shards = [
            Shard(rules, bounds[number + 1] - bounds[number], roots[number]) for number in self.ranks.own(config.shards)
        ]
        self.pool = pool or Pool(
            rules,
            config.pool_bots,
            config.pool_share,
            config.max_snapshots,
            config.bot_share,
            config.objective == "match",
        )
        self._parameters = [*self.policy.parameters(), *self.critic.parameters()]
        self.optimizer = torch.optim.Adam(self._parameters, lr=config.learning_rate, eps=1e-5, fused=True)
        self.is_half = config.precision == "bfloat16" or (
            config.precision == "auto" and (self.device.type == "cuda" or has_fast_bfloat16())
        )
        self.num_threads = min(config.shards, config.threads or count_cores())
        self._workers = ThreadPoolExecutor(self.num_threads, initializer=torch.set_num_threads, initargs=(1,))
        self.num_steps = 0
        self.num_updates = 0
        self._num_bad = 0
        self._waits: list[float] = []  # seconds of each call for logits in this update

    def close(self) -> None:
        """End the threads."""
        self._workers.shutdown()

    def _map(self, work: Callable, *arguments: Sequence) -> list:
        return list(self._workers.map(work, *arguments))

    def progress(self) -> float:
        """Share of the run that is done, 0 to 1."""
        return min(self.num_steps / self.config.total_steps, 1.0)

    def schedule(self, first: float, last: float) -> float:
        """A value that holds for the first part of the run and then falls in a straight line."""
        hold = self.config.hold
        return first + (last - first) * max(0.0, self.progress() - hold) / (1 - hold)

    def compute_logits(self, features: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Logits of the current policy, float32 (N, 57)."""
        clock = time.perf_counter()
        with torch.inference_mode():
            logits = self.policy(features, lengths, self.is_half).cpu().numpy()
        self._waits.append(time.perf_counter() - clock)
        return logits

    def update(self) -> dict[str, float]:
        """Play one hand at every table and learn from it.

        Returns:
            Facts for the log, TensorBoard names to numbers.

        Raises:
            TrainingError: if gradients stay infinite or not a number.
        """
        clock = time.perf_counter()
        batches, num_steps, facts = self._play()
        play_time = time.perf_counter() - clock
        clock = time.perf_counter()
        facts.update(self._learn(batches))
        learn_time = time.perf_counter() - clock
        facts["time/update_share"] = learn_time / (learn_time + play_time)
        waiting = min(sum(self._waits) / min(self.num_threads, len(self.shards)), play_time)
        facts["time/inference_share"] = waiting / (learn_time + play_time)
        self._waits.clear()
        self.num_steps += num_steps
        self.num_updates += 1
        if self.magnet is not None and self.num_updates % self.config.magnet_every == 0:
            self.magnet.load_state_dict(self.average.state_dict())
        every = self.config.snapshot_every
        if self.config.pool_share > 0 and self.num_steps // every > (self.num_steps - num_steps) // every:
            self.pool.add_snapshot(self.average, self.num_steps, self.shards)
        return facts

    def _play(self) -> tuple[list[Batch], int, dict[str, float]]:
        greed = self.config.greed if self.config.algorithm == "dmc" else None
        players = [NetworkPlayer(self.compute_logits, greed), *self.pool.players()]
        for shard in self.shards:
            shard.deal(self.config.drawn_scores)
            self.pool.seat(shard)
        starts = [(shard.tables["scores"].copy(), shard.tables["dealer"].copy()) for shard in self.shards]
        played = self._map(lambda shard: shard.play(players), self.shards)
        batches = [batch for batch, _ in played]
        num_steps, num_open = self.ranks.add_up(np.array([sum(num for _, num in played), sum(map(len, batches))]))
        tables = np.concatenate([shard.tables for shard in self.shards])
        facts = {**summarise_hands(tables), **describe_hands(tables)}
        facts["charts/open_share"] = float(num_open / num_steps)
        facts.update(self.pool.score(self.shards, self.ranks))
        if self.equity is not None:
            facts.update(self._price(self.equity, batches, starts))
        for batch in batches:
            batch.rewards *= self.config.reward_scale
        return batches, int(num_steps), facts

    def _price(
        self, learner: EquityLearner, batches: list[Batch], starts: list[tuple[np.ndarray, np.ndarray]]
    ) -> dict[str, float]:
        """Blend what hands did to the chances to win the match into the rewards, and learn those chances."""
        config, num_sides = self.config, self.config.rules.num_sides
        share = min(max(self.progress() - config.match_from, 0) / 0.2, 1.0)  # over a fifth of the run
        hands = []
        for shard, batch, (scores, dealers) in zip(self.shards, batches, starts, strict=True):
            before, tables, kinds = scores[:, :num_sides], shard.tables, self.pool.list_kinds(shard)
            after = learner.equity.estimate_after(tables, kinds)
            gains = after - learner.equity.estimate(before, dealers, kinds)
            gains += POINT_WORTH * batch.rewards.reshape(len(tables), -1)[:, :num_sides]
            deltas = tables["deltas"][:, :num_sides]
            hands.append(SettledHands(before, dealers, kinds, tables["pitcher"], deltas, after, gains))
        joined = SettledHands.join(hands, self.ranks.gather)
        self.gain_sizes.learn(joined.scores, joined.gains)
        for batch, own in zip(batches, hands, strict=True):
            priced = config.match_scale * own.gains / self.gain_sizes.find(own.scores)
            batch.rewards *= 1 - share
            batch.rewards += share * priced[:, config.rules.sides].reshape(-1)
        return {"losses/equity": learner.learn(joined, self.generator), "charts/match_share": share}

    def _judge(self, compute: Callable[..., torch.Tensor], batch: Batch, lengths: np.ndarray) -> np.ndarray:
        """Outputs of a network, float32 (N, outputs), for all decisions of a batch."""
        with torch.inference_mode():
            parts = [slice(start, start + _ROWS_AT_ONCE) for start in range(0, len(batch), _ROWS_AT_ONCE)]
            return np.concatenate(
                [compute(batch.features[part], lengths[part], self.is_half).cpu().numpy() for part in parts]
            )

    def _critic_lengths(self, batch: Batch) -> np.ndarray:
        return batch.full_lengths if self.config.privileged_critic else batch.lengths

    def _prepare(self, batch: Batch) -> Lesson:
        config = self.config
        values = self._judge(self.critic, batch, self._critic_lengths(batch))[:, 0]
        gae_lambda = 1.0 if config.algorithm == "dmc" else config.gae_lambda
        advantages, returns = estimate_advantages(batch.streams, values, batch.rewards, gae_lambda)
        entropy = self.schedule(config.entropy, config.final_entropy)
        weights = np.where(batch.kinds == BID, config.bid_entropy_factor * entropy, entropy).astype(np.float32)
        logits = None if self.magnet is None else self._judge(self.magnet, batch, batch.lengths)
        explained = float(1 - np.var(returns - values) / max(np.var(returns), 1e-8))
        return Lesson(advantages, returns, weights, logits, explained, values)

    def _scale_advantages(self, batches: list[Batch], lessons: list[Lesson]) -> None:
        """Divide advantages by their standard deviation over all shards, for each kind of decision."""
        sums = np.zeros((NUM_KINDS, 3))
        for batch, lesson in zip(batches, lessons, strict=True):
            for kind in range(NUM_KINDS):
                own = lesson.advantages[batch.kinds == kind].astype(np.float64)
                sums[kind] += len(own), own.sum(), np.square(own).sum()
        num, total, squares = self.ranks.add_up(sums).T
        num = np.maximum(num, 1)
        spread = np.sqrt(np.maximum(squares / num - np.square(total / num), 0)) + 1e-8
        for batch, lesson in zip(batches, lessons, strict=True):
            lesson.advantages /= spread[batch.kinds].astype(np.float32)

    def _learn(self, batches: list[Batch]) -> dict[str, float]:
        config = self.config
        lessons = self._map(self._prepare, batches)
        self._scale_advantages(batches, lessons)
        rate = self.schedule(config.learning_rate, config.final_learning_rate)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        facts = {
            "charts/learning_rate": rate,
            "charts/entropy_weight": self.schedule(config.entropy, config.final_entropy),
            "losses/explained_variance": float(np.mean([lesson.explained_variance for lesson in lessons])),
            **describe_decisions(batches, [lesson.values for lesson in lessons], config.reward_scale),
        }
        rows_each = max(config.minibatch // config.shards, 1)
        num_parts = self.ranks.find_max(max(-(-len(batch) // rows_each) for batch in batches))
        num_parts = max(1, min(num_parts, -self.ranks.find_max(-min(map(len, batches)))))  # no part is empty
        steps: list[dict[str, float]] = []
        for _ in range(config.epochs):
            orders = [
                np.array_split(shard.generator.permutation(len(batch)), num_parts)
                for shard, batch in zip(self.shards, batches, strict=True)
            ]
            for rows in zip(*orders, strict=True):
                steps.append(self._step(batches, list(rows), lessons))
            kl = self.ranks.add_up(np.array([np.mean([terms["losses/approx_kl"] for terms in steps[-num_parts:]])]))
            if kl[0] / self.ranks.num_ranks > config.target_kl:
                break
        facts.update({name: float(np.mean([terms[name] for terms in steps])) for name in steps[0]})
        return facts

    def _step(self, batches: list[Batch], rows: list[np.ndarray], lessons: list[Lesson]) -> dict[str, float]:
        """One gradient step, on some rows of each shard, worked on side by side."""
        results = self._map(self._differentiate, batches, rows, lessons)
        gradients = results[0][0]
        for others, _ in results[1:]:
            torch._foreach_add_(gradients, others)
        torch._foreach_div_(gradients, self.config.shards)
        for parameter, gradient in zip(self._parameters, self.ranks.add_up_gradients(gradients), strict=True):
            parameter.grad = gradient
        terms = {name: float(np.mean([part[name] for _, part in results])) for name in results[0][1]}
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

    def _find_policy_terms(self, logits: torch.Tensor, batch: Batch, rows: np.ndarray, lesson: Lesson) -> PolicyTerms:
        config, masks = self.config, batch.masks[rows]
        kept = (batch.actions, batch.log_probs, lesson.advantages, lesson.entropy_weights)
        actions, log_probs, advantages, weights = (part[rows] for part in kept)
        magnet = None if lesson.magnet_logits is None else lesson.magnet_logits[rows]
        if self.device.type == "cpu":
            return compiled_policy_loss(
                logits,
                masks,
                actions,
                log_probs,
                advantages,
                weights,
                config.clip,
                magnet,
                config.magnet_weight,
            )

        def tensor(array: np.ndarray) -> torch.Tensor:
            return torch.from_numpy(array).to(self.device)

        bits = np.unpackbits(masks.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
        return policy_loss(
            logits,
            tensor(bits[:, :NUM_ACTIONS]).bool(),
            tensor(actions),
            tensor(log_probs),
            tensor(advantages),
            tensor(weights),
            config.clip,
            None if magnet is None else tensor(magnet),
            config.magnet_weight,
        )

    def _differentiate(
        self, batch: Batch, rows: np.ndarray, lesson: Lesson
    ) -> tuple[list[torch.Tensor], dict[str, float]]:
        """Gradients of the mean loss over some rows of a shard."""

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
            terms = self._find_policy_terms(logits, batch, rows, lesson)
            loss = terms.loss
            facts["losses/policy_loss"] = loss
            facts["losses/entropy"] = terms.entropy
            facts["losses/approx_kl"] = terms.approx_kl
            facts["losses/clipfrac"] = terms.clip_fraction
            if lesson.magnet_logits is not None:
                facts["losses/magnet_kl"] = terms.magnet_kl
        # rows of play alone have no gradient for a trunk of the auction: it is zero
        gradients = torch.autograd.grad(loss + critic_term, self._parameters, materialize_grads=True)
        return list(gradients), {name: float(value.detach()) for name, value in facts.items()}
