"""Peers, if they are installed: each function returns what can be timed, or None and a remark on how to install."""

import contextlib
import importlib
import io
import os
import random
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import torch

from benchmarks.report import Report
from benchmarks.timing import Run, repeat

INSTALL = 'pip install -e ".[bench]"'
BUILD = "python -m benchmarks.build_pufferlib FOLDER"
_TUTORIAL_STEPS = 2048  # of one round of MaskablePPO at its defaults


def _find(module: str, name: str, install: str, report: Report) -> ModuleType | None:
    try:
        return importlib.import_module(module)
    except Exception as error:  # a peer may fail at its import in any way
        report.add_note(f"{name} was left out ({type(error).__name__}: {error}). To have it: {install}")
        return None


def find_euchre(report: Report) -> Run | None:
    """OpenSpiel's euchre, one state from Python: at each decision its mask and its information state as an array."""
    pyspiel = _find("pyspiel", "OpenSpiel", INSTALL, report)
    if pyspiel is None:
        return None
    game = pyspiel.load_game("euchre")
    rng = random.Random(1)

    def draw_chance(state: Any) -> int:
        outcomes, chances = zip(*state.chance_outcomes(), strict=True)
        return rng.choices(outcomes, chances)[0]

    def play_game() -> int:
        state, num_steps = game.new_initial_state(), 0
        while not state.is_terminal():
            if state.is_chance_node():
                state.apply_action(draw_chance(state))
                continue
            mask = np.asarray(state.legal_actions_mask(), np.int8)
            np.asarray(state.information_state_tensor(), np.float32)
            legal = np.flatnonzero(mask).tolist()
            state.apply_action(legal[int(rng.random() * len(legal))])
            num_steps += 1
        return num_steps

    return repeat(play_game)


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    """Work in an empty folder, quietly: PufferLib's import leaves a link where it is and older Gym's prints."""
    place = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        os.chdir(folder)
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                yield
        finally:
            os.chdir(place)


def find_tripletriad(num_tables: int, report: Report) -> Run | None:
    """PufferLib's card game in C, stepped as its own speed test does: with actions made before."""
    with _elsewhere():
        module = _find("pufferlib.ocean.tripletriad.tripletriad", "PufferLib", BUILD, report)
    if module is None:
        return None
    env = module.TripleTriad(num_envs=num_tables)
    env.reset(seed=1)
    actions = np.random.default_rng(1).integers(0, env.single_action_space.n, (256, num_tables)).astype(np.int32)
    shares = []
    for turn in range(256):
        before = env.observations.copy()
        env.step(actions[turn])
        shares.append((env.observations != before).any(1).mean())
    report.add_note(
        "PufferLib's tripletriad has no masks: "
        f"only {np.mean(shares):.0%} of its random actions change anything, the others are quick to refuse."
    )
    turns = 0

    def work() -> int:
        nonlocal turns
        for _ in range(8):
            env.step(actions[turns % 256])
            turns += 1
        return 8 * num_tables

    return repeat(work)


def find_connect_four(report: Report) -> tuple[Callable, Callable] | None:
    """Makers of PettingZoo's connect four, wrapped and raw."""
    module = _find("pettingzoo.classic.connect_four_v3", "PettingZoo's connect_four", "pip install pygame-ce", report)
    return None if module is None else (module.env, module.raw_env)


def new_tutorial_env(make: Callable, gymnasium: Any) -> Any:
    """An AEC environment as MaskablePPO takes it in PettingZoo's tutorial: one learner moves for whoever is to act."""

    class BothSeats(gymnasium.Env):
        def __init__(self) -> None:
            self.env = make()
            self.env.reset()
            agent = self.env.possible_agents[0]
            self.observation_space = self.env.observation_space(agent)["observation"]
            self.action_space = self.env.action_space(agent)

        def reset(self, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
            self.env.reset(seed, options)
            return self._look(), {}

        def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
            mover = self.env.agent_selection
            self.env.step(action)
            is_terminated, is_truncated = self.env.terminations[mover], self.env.truncations[mover]
            return self._look(), self.env._cumulative_rewards[mover], is_terminated, is_truncated, {}

        def _look(self) -> np.ndarray:
            return self.env.observe(self.env.agent_selection)["observation"]

        def action_masks(self) -> np.ndarray:
            return self.env.observe(self.env.agent_selection)["action_mask"]

    return BothSeats()


def find_maskable_ppo(most_threads: int, report: Report) -> tuple[str, Run | None]:
    """sb3-contrib's MaskablePPO on connect four at its defaults, as in PettingZoo's tutorial; learning included.

    Its networks are so small that a second thread may slow them down, so it gets the number that a trial finds best.
    Returns what to call it, too.
    """
    contrib = _find("sb3_contrib", "sb3-contrib", INSTALL, report)
    connect_four = find_connect_four(report)
    if contrib is None or connect_four is None:
        return "", None
    gymnasium = importlib.import_module("gymnasium")
    model = contrib.MaskablePPO(
        "MlpPolicy", new_tutorial_env(connect_four[0], gymnasium), verbose=0, seed=1, device="cpu"
    )

    def learn(seconds: float, num_threads: int) -> tuple[float, float]:
        torch.set_num_threads(num_threads)
        try:
            start, first = time.perf_counter(), model.num_timesteps
            while model.num_timesteps == first or time.perf_counter() < start + seconds:
                model.learn(_TUTORIAL_STEPS, reset_num_timesteps=False)
            return model.num_timesteps - first, time.perf_counter() - start
        finally:
            torch.set_num_threads(1)

    learn(0, 1)
    spent = {num_threads: learn(0, num_threads)[1] for num_threads in range(1, most_threads + 1)}
    best = min(spent, key=lambda num_threads: spent[num_threads])
    name = f"MaskablePPO on connect_four, PettingZoo's tutorial, {best} thread{'s' if best > 1 else ''}"
    return name, lambda seconds: learn(seconds, best)
