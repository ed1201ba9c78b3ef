"""Training end to end: playing and learning, with two layers of 256 units in policy and in critic.

Every decision played counts, forced ones too; those learned from are reported beside. Evaluation and files are left
out, and the early stop of an update is switched off, so that all epochs are done.
"""

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import numpy as np
import torch

from agents.training.config import Config
from agents.training.learner import Learner
from benchmarks.peers import find_maskable_ppo
from benchmarks.report import Report, Row
from benchmarks.timing import Options, Run, Timing, repeat, time_in_turn

PRECISIONS = ("float32", "bfloat16")
_GOALS = {"float32": 60e3, "bfloat16": 100e3}  # decisions/s on two threads
_MOST_ROUNDS = 3  # an update takes seconds


def new_learner(precision: str, num_threads: int, num_hands: int) -> Learner:
    """A learner at the default settings, but without the early stop."""
    config = Config(
        hidden=[256, 256],
        critic_hidden=[256, 256],
        precision=precision,
        threads=num_threads,
        hands=num_hands,
        target_kl=1e9,
        total_steps=10**12,
    )
    return Learner(config)


def time_updates(learner: Learner) -> Run:
    """Decisions played and learned from, whole updates."""

    def work() -> int:
        before = learner.num_steps
        learner.update()
        return learner.num_steps - before

    return repeat(work)


class Passes:
    """Every pass of the networks in one update, recorded once and done again with nothing else around it.

    Batches, precision and number of threads are the update's own; what is left out is the game, encoding, losses,
    minibatches, the optimizer, and waiting for each other between gradient steps.

    Attributes:
        num_steps: decisions of the update.
        num_learned: those of them that are learned from.
    """

    def __init__(self, learner: Learner) -> None:
        self._inferences: list[tuple[torch.nn.Module, tuple]] = []
        self._trainings: list[tuple[torch.nn.Module, tuple]] = []
        before = learner.num_steps
        with (
            mock.patch.object(learner.policy, "forward", self._record(learner.policy)),
            mock.patch.object(learner.critic, "forward", self._record(learner.critic)),
        ):
            learner.update()
        self.num_steps = learner.num_steps - before
        self.num_learned = sum(
            len(arguments[0]) for network, arguments in self._inferences if network is learner.critic
        )
        self._pool = ThreadPoolExecutor(learner.num_threads, initializer=torch.set_num_threads, initargs=(1,))

    def _record(self, network: torch.nn.Module) -> Callable:
        forward = network.forward

        def recorded(*arguments: Any) -> torch.Tensor:
            kept = tuple(part.copy() if isinstance(part, np.ndarray) else part for part in arguments)
            passes = self._inferences if torch.is_inference_mode_enabled() else self._trainings
            passes.append((network, kept))
            return forward(*arguments)

        return recorded

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    @staticmethod
    def _infer(inference: tuple[torch.nn.Module, tuple]) -> None:
        network, arguments = inference
        with torch.inference_mode():
            network(*arguments)

    @staticmethod
    def _differentiate(training: tuple[torch.nn.Module, tuple]) -> None:
        network, arguments = training
        output = network(*arguments)
        torch.autograd.grad(output, list(network.parameters()), torch.ones_like(output))

    def do(self) -> int:
        """All passes of the update; returns its decisions."""
        list(self._pool.map(self._infer, self._inferences))
        list(self._pool.map(self._differentiate, self._trainings))
        return self.num_steps


def _report_precision(
    name: str, num_threads: int, passes: Passes, timings: dict[str, Timing], peer: str, report: Report
) -> None:
    whole, bound, other = timings[name], timings[f"{name} passes"], timings.get("peer")
    open_share = passes.num_learned / passes.num_steps
    learned = dataclasses.replace(whole, rates=tuple(rate * open_share for rate in whole.rates))
    what = f"Training 2x256 in {name}"
    goal = _GOALS[name] if num_threads == 2 else None
    report.add(f"{what}, decisions played", whole, peer, other, threads=num_threads, goal=goal, ratio_goal=50.0)
    report.add(f"{what}, decisions learned from (not forced)", learned, peer, other, threads=num_threads)
    report.add_row(
        Row(
            f"{what}, share of what its networks' passes alone allow",
            whole.over(bound)[0],
            unit="share",
            threads=num_threads,
            peer=f"passes alone: {bound.rate / 1000:.3g} k decisions/s",
            others=bound.others,
        )
    )


def run(options: Options, report: Report) -> None:
    """Both precisions on one and two threads, the networks' own passes, and MaskablePPO."""
    options = dataclasses.replace(options, rounds=min(options.rounds, _MOST_ROUNDS))
    for num_threads in (1, 2):
        learners = {name: new_learner(name, num_threads, options.hands) for name in PRECISIONS}
        passes = {name: Passes(learner) for name, learner in learners.items()}
        peer, peer_run = find_maskable_ppo(num_threads, report) if options.has_peers else ("", None)
        runs: dict[str, Run | None] = {}
        for name in PRECISIONS:
            runs[name] = time_updates(learners[name])
            runs[f"{name} passes"] = repeat(passes[name].do)
        timings = time_in_turn({**runs, "peer": peer_run}, options)
        for name in PRECISIONS:
            _report_precision(name, num_threads, passes[name], timings, peer, report)
            passes[name].close()
            learners[name].close()
