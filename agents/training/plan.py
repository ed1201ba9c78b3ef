"""The plan of a run: what it would do, how much memory and how many minutes it would take. Nothing is written."""

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

import agents
from agents.arena import play_duplicate
from agents.critic import CRITIC_FILE
from agents.equity import EQUITY_FILE, EquityTable
from agents.policy import PolicyAgent
from agents.training.config import Config
from agents.training.learner import Learner
from agents.training.parallel import Ranks
from agents.training.rollout import Shard
from agents.training.run import POLICY_FILE, POOL_FILE
from pitch_env.render import describe_rules
from pitch_env.rules import Rules

_TRIAL_HANDS = 1024  # of a measured update, at most
_LEAST_UPDATES, _MOST_UPDATES = 2, 8
_ENOUGH_SECONDS = 3.0
_TRIAL_DEALS, _TRIAL_MATCHES = 20, 4
_MEBI = 2**20


def _count_bytes(shard: Shard) -> dict[str, int]:
    """Bytes of a shard's tables and of its store of decisions."""
    tables = shard.tables.nbytes + shard.agent_streams.nbytes + shard.seat_players.nbytes
    arrays = [value for value in vars(shard).values() if hasattr(value, "nbytes")]
    return {"tables": tables, "store": sum(array.nbytes for array in arrays) - tables}


def _time_evaluations(config: Config, learner: Learner) -> float:
    """Seconds of all evaluations of a run, from a few deals and matches against each opponent."""
    policy = PolicyAgent(learner.spec, learner.average)
    num_looks = config.total_steps // config.eval_every if config.eval_every else 0
    num_deals = num_looks * config.eval_deals + config.final_deals
    seconds = 0.0
    for name in config.opponents:
        opponent = agents.load(name, config.rules)
        play_duplicate(policy, opponent, config.rules, 2, 2, config.seed)  # compiles
        for deals, matches, wanted in ((_TRIAL_DEALS, 0, num_deals), (0, _TRIAL_MATCHES, config.final_matches)):
            clock = time.perf_counter()
            play_duplicate(policy, opponent, config.rules, deals, matches, config.seed)
            seconds += (time.perf_counter() - clock) * wanted / (deals + matches)
    return seconds


def _describe_networks(learner: Learner) -> dict[str, str]:
    equity = None if learner.equity is None else learner.equity.equity
    parts: dict[str, torch.nn.Module | None] = {
        "policy": learner.policy,
        "critic": learner.critic,
        "match equity": equity,
    }
    rows = {}
    for name, network in parts.items():
        if network is not None:
            num_features = next(iter(network.state_dict().values())).shape[0]
            count = sum(tensor.numel() for tensor in network.state_dict().values())
            is_table = isinstance(network, EquityTable)
            rows[name] = f"{count:,} {'chances' if is_table else f'parameters, from {num_features:,} features'}"
    return rows


@dataclass
class _Trial:
    """What some updates took: all numbers are of one hand, but the first."""

    num_updates: int
    seconds: float
    num_decisions: float
    num_open: float


def _play_trial(learner: Learner) -> _Trial:
    learner.update()  # compiles
    clock, before, num_updates, num_open = time.perf_counter(), learner.num_steps, 0, 0.0
    is_short = True
    while num_updates < _LEAST_UPDATES or (is_short and num_updates < _MOST_UPDATES):
        start = learner.num_steps
        facts = learner.update()
        num_updates += 1
        num_open += facts["charts/open_share"] * (learner.num_steps - start)
        is_short = bool(learner.ranks.find_max(int(time.perf_counter() - clock < _ENOUGH_SECONDS)))
    seconds, hands = time.perf_counter() - clock, num_updates * learner.config.hands
    return _Trial(num_updates, seconds / hands, (learner.num_steps - before) / hands, num_open / hands)


def _describe_memory(config: Config, learner: Learner) -> str:
    sizes = [_count_bytes(shard) for shard in learner.shards]
    factor = learner.ranks.num_ranks * config.hands / learner.config.hands / _MEBI
    tables, store = (factor * sum(size[part] for size in sizes) for part in ("tables", "store"))
    networks = [learner.policy, learner.critic, learner.average, learner.magnet]
    weights = sum(4 * p.numel() for network in networks if network is not None for p in network.parameters())
    weights += 8 * sum(p.numel() for network in (learner.policy, learner.critic) for p in network.parameters())  # Adam
    return (
        f"{tables:.1f} MiB of tables, {store:.1f} MiB of decisions, {weights / _MEBI:.1f} MiB of weights and their "
        "moments"
    )


def make_plan(config: Config, folder: Path, ranks: Ranks | None = None) -> dict[str, str]:
    """What a run would do: names to sentences. It plays some small updates to measure this machine."""
    hands = max(min(config.hands, _TRIAL_HANDS), config.shards)
    learner = Learner(replace(config, hands=hands), ranks)
    try:
        trial = _play_trial(learner)
        evaluating = _time_evaluations(config, learner) / 60
        memory, networks = _describe_memory(config, learner), _describe_networks(learner)
        num_ranks, num_threads = learner.ranks.num_ranks, learner.num_threads
    finally:
        learner.close()
    per_update = trial.num_decisions * config.hands
    num_updates = math.ceil(config.total_steps / per_update)
    rows_each = max(config.minibatch // config.shards, 1)
    # the fullest shard decides, which has a little more than its share
    steps_each = max(round(trial.num_open * config.hands / config.shards / rows_each + 0.5), 1)
    speed = trial.num_decisions / trial.seconds
    processes = "1 process" if num_ranks == 1 else f"{num_ranks} processes"
    return {
        "rules": _describe_rules(config.rules),
        "learning": f"{config.algorithm} for {config.objective}, seed {config.seed}, on {config.device}, "
        f"{config.shards} shards, {processes} with {num_threads} threads",
        **networks,
        "memory": memory,
        "length": f"{config.total_steps:,} decisions: about {num_updates:,} updates of {per_update:,.0f} and "
        f"{num_updates * config.epochs * steps_each:,} gradient steps of {rows_each * config.shards:,}",
        "speed": f"about {speed:,.0f} decisions/s, from {trial.num_updates} updates of {hands:,} hands",
        "time": f"about {config.total_steps / speed / 60:.1f} minutes of training and {evaluating:.1f} of evaluation",
        "folder": f"{folder}: {', '.join(_list_files(config))}",
    }


def _list_files(config: Config) -> list[str]:
    files = ["config.yaml", "metadata.json", "TensorBoard events", "checkpoints/", POLICY_FILE, CRITIC_FILE]
    files += [EQUITY_FILE] if config.objective == "match" else []
    files += [POOL_FILE] if config.pool_bots or config.pool_share else []
    return [*files, "evaluation.json"]


def _describe_rules(rules: Rules) -> str:
    sides = "in two teams" if rules.teams else "each for themselves"
    usual = Rules()
    switches = describe_rules(replace(rules, num_players=usual.num_players, teams=False, target=usual.target))
    return f"{rules.num_players} players, {sides}, to {rules.target}" + (f"; {switches}" if switches else "")


def show_plan(plan: dict[str, str], console: Console) -> None:
    """Print a plan as a table."""
    table = Table(show_header=False, title="The plan (nothing has been written)")
    for name, text in plan.items():
        table.add_row(name, text)
    console.print(table)
