"""Agents: whole matches a second among copies of one, and what a single decision of a policy takes."""

import statistics
import time

import numpy as np

import agents
from agents.arena import play_matches
from agents.base import Agent
from benchmarks.report import Report, Row
from benchmarks.timing import Options, Run, repeat, time_in_turn
from pitch_env import Rules, pitch_v0
from pitch_env.engine import new_tables

_BOTS = ("random", "baby", "alphonso", "trickster")
_POLICY = "trained policy 2x256"


def time_matches(agent: Agent, num_matches: int) -> Run:
    """Matches of four copies to 7 points."""
    rules = Rules()
    lineups = np.zeros((num_matches, rules.num_players), np.int64)
    seeds = iter(range(1_000_000))

    def work() -> int:
        seed = next(seeds)
        play_matches(new_tables(rules, seed, num_matches), [agent], lineups, seed)
        return num_matches

    return repeat(work)


def time_decisions(agent: Agent, seconds: float) -> list[float]:
    """Seconds of single decisions in an environment, forced ones left out."""
    env = pitch_v0.raw_env()
    env.reset(seed=1)
    agent(env)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not times:
        if env.terminations[env.agent_selection] or env.truncations[env.agent_selection]:
            env.reset()
        is_open = env.observe(env.agent_selection)["action_mask"].sum() > 1
        start = time.perf_counter()
        action = agent(env)
        if is_open:
            times.append(time.perf_counter() - start)
        env.step(action)
    return times


def run(options: Options, report: Report) -> None:
    """Matches a second on one core, then single decisions."""
    players = {name: agents.load(name) for name in _BOTS} | {_POLICY: agents.load(agents.TRAINED)}
    timings = time_in_turn(
        {name: time_matches(agent, options.matches) for name, agent in players.items()},
        options,
    )
    for name, timing in timings.items():
        report.add(f"Matches to 7 of four players, {name}", timing, unit="matches/s", goal=2000)
    for name in ("trickster", _POLICY):
        times = [1000 * spent for spent in time_decisions(players[name], options.seconds * options.rounds)]
        report.add_row(Row(f"Single decision, {name}, median", statistics.median(times), unit="ms"))
        report.add_row(Row(f"Single decision, {name}, 99 of 100 within", float(np.quantile(times, 0.99)), unit="ms"))
