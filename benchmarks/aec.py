"""One environment through PettingZoo's AEC interface, random legal play, beside PettingZoo's own connect four."""

import random
import time

import numpy as np
from pettingzoo import AECEnv

from benchmarks.peers import find_connect_four
from benchmarks.report import Report
from benchmarks.timing import Options, Run, time_in_turn
from pitch_env import pitch_v0


def time_aec(env: AECEnv) -> Run:
    """Random legal play; reading the observation, choosing from its mask and starting games anew are all counted."""
    rng = random.Random(1)
    env.reset(seed=1)

    def play_game() -> int:
        num_steps = 0
        env.reset()
        for _ in env.agent_iter():
            observation, _, is_terminated, is_truncated, _ = env.last()
            if is_terminated or is_truncated:
                env.step(None)
                continue
            legal = np.flatnonzero(observation["action_mask"]).tolist()
            env.step(legal[int(rng.random() * len(legal))])
            num_steps += 1
        return num_steps

    def run(seconds: float) -> tuple[float, float]:
        start, num_steps = time.perf_counter(), 0
        while time.perf_counter() < start + seconds:
            num_steps += play_game()
        return num_steps, time.perf_counter() - start

    return run


def run(options: Options, report: Report) -> None:
    """Wrapped beside wrapped, raw beside raw."""
    peers = find_connect_four(report) if options.has_peers else None
    for word, make, index in (("wrapped", pitch_v0.env, 0), ("raw", pitch_v0.raw_env, 1)):
        timings = time_in_turn(
            {"pitch": time_aec(make()), "connect four": time_aec(peers[index]()) if peers else None}, options
        )
        report.add(
            f"AEC environment, {word}",
            timings["pitch"],
            f"PettingZoo connect_four, {word}",
            timings.get("connect four"),
            ratio_goal=5.0,
        )
