"""The batched engine: decisions a second with the compact observation and the mask of every seat to act written."""

import time

from benchmarks.peers import find_euchre, find_tripletriad
from benchmarks.report import Report
from benchmarks.timing import Options, Run, repeat, time_in_turn
from pitch_env.vector import VectorEnv


def time_steps(env: VectorEnv) -> Run:
    """Steps alone; the actions are sampled while the clock stands still."""

    def run(seconds: float) -> tuple[float, float]:
        spent, num_steps = 0.0, 0
        while spent < seconds:
            actions = env.sample()
            start = time.perf_counter()
            env.step(actions)
            spent += time.perf_counter() - start
            num_steps += env.num_tables
        return num_steps, spent

    return run


def time_random_play(env: VectorEnv) -> Run:
    """Steps with the random sampler."""

    def work() -> int:
        for _ in range(8):
            env.step(env.sample())
        return 8 * env.num_tables

    return repeat(work)


def run(options: Options, report: Report) -> None:
    """Rates at each batch size; peers; a second core."""
    for num_tables in options.tables:
        is_main = num_tables == options.tables[-1]
        env = VectorEnv(num_tables, seed=1)
        timings = time_in_turn(
            {
                "step": time_steps(env),
                "play": time_random_play(env),
                "canonical": time_steps(VectorEnv(num_tables, seed=1, is_canonical=True)),
                "tripletriad": find_tripletriad(num_tables, report) if options.has_peers else None,
                "euchre": find_euchre(report) if options.has_peers and is_main else None,
            },
            options,
        )
        batch = f"{num_tables:,} tables"
        step, play, triad = timings["step"], timings["play"], timings.get("tripletriad")
        report.add(
            f"Batched step, {batch}",
            step,
            f"PufferLib tripletriad in C, {num_tables:,} tables",
            triad,
            goal=8e6,
            ratio_goal=2.0,
        )
        report.add(
            f"Batched step and random sampler, {batch}",
            play,
            f"PufferLib tripletriad in C, {num_tables:,} tables, actions made before",
            triad,
            goal=8e6,
        )
        report.add(f"Batched step in canonical suits, {batch}", timings["canonical"])
        if is_main:
            report.add(
                f"Batched random play, {batch}",
                play,
                "OpenSpiel euchre from Python with mask and tensor",
                timings.get("euchre"),
                ratio_goal=300.0,
            )
    sizes = options.tables[-1], 4 * options.tables[-1]  # a second core needs enough work in each step to pay
    for num_tables in sizes:
        one, two = VectorEnv(num_tables, seed=1), VectorEnv(num_tables, seed=1, num_threads=2)
        timings = time_in_turn({"one": time_random_play(one), "two": time_random_play(two)}, options)
        report.add(
            f"Second core, batched random play, {num_tables:,} tables",
            timings["two"],
            "the same on one thread",
            timings["one"],
            threads=2,
            ratio_goal=1.7 if num_tables == sizes[-1] else None,
        )
