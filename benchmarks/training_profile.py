"""Where the time of training goes, on one thread: engine, encoding, inference, update."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import torch

from agents.training import learner as learner_module
from agents.training.learner import Learner
from benchmarks.report import Report, Row
from benchmarks.timing import Options, repeat, time_in_turn
from benchmarks.training import PRECISIONS, new_learner
from pitch_env.engine import apply_action, choose_at_random, legal_actions, new_tables, start_hand, start_match
from pitch_env.kernels import kernel
from pitch_env.rules import Rules
from pitch_env.table import HAND_OVER


@kernel
def _play_hands(tables):
    num_steps = 0
    for i in range(tables.shape[0]):
        t = tables[i]
        if t.phase == HAND_OVER:
            start_hand(t)
        else:
            start_match(t)
        legal = legal_actions(t)
        while legal:
            apply_action(t, choose_at_random(t, legal))
            num_steps += 1
            legal = legal_actions(t)
    return num_steps


def _measure_engine(rules: Rules, num_tables: int, options: Options) -> float:
    """Seconds that dealing, legal actions and applying them take for a decision, at tables as training has them."""
    tables = new_tables(rules, 1, num_tables)
    _play_hands(tables)
    timing = time_in_turn({"engine": repeat(lambda: _play_hands(tables))}, options)["engine"]
    return 1 / timing.rate


class Stopwatch:
    """Adds up the time inside functions, by a name that may depend on whether gradients are computed."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)

    def wrap(self, function: Callable, name: str, name_without_gradients: str = "") -> Callable:
        def timed(*arguments: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                is_inference = torch.is_inference_mode_enabled() and name_without_gradients
                self.spent[name_without_gradients if is_inference else name] += time.perf_counter() - start

        return timed

    @contextmanager
    def attach(self, learner: Learner) -> Iterator[None]:
        """Time the parts of a learner's updates."""
        with (
            mock.patch.object(learner.policy, "forward", self.wrap(learner.policy.forward, "forward", "acting")),
            mock.patch.object(learner.critic, "forward", self.wrap(learner.critic.forward, "forward", "judging")),
            mock.patch.object(torch.autograd, "grad", self.wrap(torch.autograd.grad, "backward")),
            mock.patch.object(learner.optimizer, "step", self.wrap(learner.optimizer.step, "optimizer")),
            mock.patch.object(
                learner_module,
                "estimate_advantages",
                self.wrap(learner_module.estimate_advantages, "advantages"),
            ),
        ):
            plays = [mock.patch.object(shard, "play", self.wrap(shard.play, "play")) for shard in learner.shards]
            for play in plays:
                play.start()
            try:
                yield
            finally:
                for play in plays:
                    play.stop()


def measure_shares(precision: str, options: Options) -> dict[str, float]:
    """Shares of the time of updates, by what it goes to; they add up to 1."""
    learner = new_learner(precision, 1, options.hands)
    engine = _measure_engine(learner.config.rules, options.hands // learner.config.shards, options)
    learner.update()
    watch, before = Stopwatch(), learner.num_steps
    with watch.attach(learner):
        start, num_updates = time.perf_counter(), 0
        while num_updates == 0 or time.perf_counter() < start + options.seconds * options.rounds:
            learner.update()
            num_updates += 1
        whole = time.perf_counter() - start
    learner.close()
    spent = watch.spent
    played = engine * (learner.num_steps - before)
    parts = {
        "engine: dealing, legal actions, applying them": played,
        "encoding of observations and masks, drawing actions": spent["play"] - spent["acting"] - played,
        "inference: policy in play": spent["acting"],
        "inference: critic on what was played": spent["judging"],
        "update: networks forward": spent["forward"],
        "update: networks backward": spent["backward"],
        "update: Adam": spent["optimizer"],
        "update: advantages": spent["advantages"],
    }
    parts["update: losses, minibatches, clipping, averaging"] = whole - sum(parts.values())
    shares = {name: part / whole for name, part in parts.items()}
    assert np.isclose(sum(shares.values()), 1)
    return shares


def run(options: Options, report: Report) -> None:
    """The shares in both precisions."""
    for precision in PRECISIONS:
        for name, share in measure_shares(precision, options).items():
            report.add_row(Row(f"Training time in {precision}, {name}", share, unit="share"))
