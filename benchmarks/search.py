"""Search: hands solved with all cards seen from each trick on, sampled deals, and what a decision of PIMC takes."""

import itertools
import statistics

import numpy as np

import agents
from agents.arena import play_duplicate
from agents.search.pimc import PimcAgent
from agents.search.solver import solve_many, solve_max_n_many
from agents.search.worlds import sample_worlds
from benchmarks.agents_speed import time_decisions
from benchmarks.report import Report, Row
from benchmarks.timing import Options, Run, repeat, time_in_turn
from pitch_env import Rules
from pitch_env.engine import apply, new_tables
from pitch_env.table import PLAY
from pitch_env.view import view_table, view_tables

_TABLES = ((Rules(), "each for itself"), (Rules(teams=True), "teams"))
_MAX_N_FROM = 2  # tricks played, when four sides for themselves are solved in a millisecond


def play_to(rules: Rules, num_tricks: int, num_tables: int) -> np.ndarray:
    """Tables some tricks into the play, as the rule-based bot bids and plays."""
    bot = agents.load("rules")
    tables = new_tables(rules, 1, num_tables)
    for table in np.split(tables, num_tables):
        while table["phase"][0] != PLAY or table["num_plays"][0] < num_tricks * rules.num_players:
            apply(table, int(bot.act(view_tables(table, table["seat"]), np.zeros(1, np.uint64))[0]))
    return tables


def time_solves(tables: np.ndarray, is_max_n: bool = False) -> Run:
    """Positions solved, one after another."""
    solver = solve_max_n_many if is_max_n else solve_many
    numbers = itertools.cycle(range(len(tables)))

    def work() -> int:
        number = next(numbers)
        solver(tables[number : number + 1])
        return 1

    return repeat(work)


def time_worlds(table: np.ndarray) -> Run:
    """Deals that fit a view."""
    view = view_table(table, int(table["seat"][0]))
    seeds = itertools.count()

    def work() -> int:
        return len(sample_worlds(view, 1000, next(seeds)))

    return repeat(work)


def run(options: Options, report: Report) -> None:
    """Positions a second, deals a second, milliseconds a decision, and points a hand against the rule-based bots."""
    runs = {}
    for rules, word in _TABLES:
        for num_tricks in range(rules.hand_size - 1):
            tables = play_to(rules, num_tricks, options.matches)
            where = f"four players, {word}, after {num_tricks} tricks"
            runs[f"Solved exactly, {where}"] = time_solves(tables)
            if num_tricks >= _MAX_N_FROM and not rules.teams:
                runs[f"Solved by max^n, {where}"] = time_solves(tables, is_max_n=True)
    for what, timing in time_in_turn(runs, options).items():
        report.add(what, timing, unit="hands/s")
    timing = time_in_turn({"worlds": time_worlds(play_to(Rules(), 2, 1))}, options)["worlds"]
    report.add("Deals sampled from a view, after 2 tricks", timing, unit="deals/s")
    searchers = {"PIMC": PimcAgent(), "search on the trained policy": agents.load("search:trained")}
    for name, agent in searchers.items():
        times = [1000 * spent for spent in time_decisions(agent, options.seconds * options.rounds)]
        report.add_row(Row(f"Single decision, {name}, mean", statistics.mean(times), unit="ms"))
        report.add_row(Row(f"Single decision, {name}, 99 of 100 within", float(np.quantile(times, 0.99)), unit="ms"))
    for rules, word in _TABLES:
        for name in ("rules", "alphonso", "baby"):
            result = play_duplicate(PimcAgent(), agents.load(name), rules, max(2, options.matches // 5), 0, seed=1)
            what = f"PIMC over {name}, {word}, {result.deals} deals, ± {result.high - result.margin:.2f}"
            report.add_row(Row(what, result.margin, unit="points/hand"))
