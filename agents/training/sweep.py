"""Search for settings: ``python -m agents.training.sweep --config configs/quick.yaml --trials 40 --study sweep.log``.

Each trial trains for a short while with sampled settings; those behind the median at the same time are stopped. The
study file holds every trial, and the same command goes on with it. Needs ``pip install optuna``.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import yaml

import agents
from agents.arena import play_duplicate
from agents.policy import PolicyAgent
from agents.training.config import Config
from agents.training.learner import Learner, TrainingError

_HANDS = 8  # of a match, about
NUM_LOOKS = 4  # evaluations of a trial, at each of which it may be stopped


def sample_settings(trial: Any) -> dict[str, Any]:
    """Settings of a trial; everything else stays as the configuration has it."""
    learning_rate = trial.suggest_float("learning_rate", 3e-4, 6e-3, log=True)
    entropy = trial.suggest_float("entropy", 0.01, 0.3, log=True)
    return {
        "learning_rate": learning_rate,
        "final_learning_rate": learning_rate * trial.suggest_float("learning_rate_left", 0.01, 0.3, log=True),
        "entropy": entropy,
        "final_entropy": entropy * trial.suggest_float("entropy_left", 0.02, 0.3, log=True),
        "bid_entropy_factor": trial.suggest_float("bid_entropy_factor", 1, 4, log=True),
        "hands": trial.suggest_categorical("hands", [1024, 2048, 4096, 8192]),
        "minibatch": trial.suggest_categorical("minibatch", [1024, 2048, 4096, 8192]),
        "epochs": trial.suggest_int("epochs", 1, 3),
        "gae_lambda": trial.suggest_categorical("gae_lambda", [0.9, 0.95, 1.0]),
        "clip": trial.suggest_float("clip", 0.1, 0.3),
    }


def measure_margin(config: Config, learner: Learner) -> float:
    """Points a hand ahead of the opponents, the mean over them; for `objective: match`, the share of matches won above
    an equal one."""
    policy, is_match = PolicyAgent(learner.spec, learner.average), config.objective == "match"
    numbers = (0, max(2, config.eval_deals // _HANDS)) if is_match else (config.eval_deals, 0)
    results = [
        play_duplicate(policy, agents.load(name, config.rules), config.rules, *numbers, config.seed)
        for name in config.opponents
    ]
    margins = [(one.match_share or 0.0) - one.equal_share if is_match else one.margin or 0.0 for one in results]
    return float(np.mean(margins))


def run_trial(trial: Any, base: Config, sample: Callable[[Any], dict[str, Any]] = sample_settings) -> float:
    """Train with sampled settings and return the margin at the end; ends early if the trial is to be pruned."""
    import optuna

    settings = sample(trial)
    trial.set_user_attr("settings", settings)
    config = replace(base, **settings)
    learner = Learner(config)
    margin = -np.inf
    try:
        for look in range(1, NUM_LOOKS + 1):
            while learner.num_steps < config.total_steps * look / NUM_LOOKS:
                learner.update()
            margin = measure_margin(config, learner)
            trial.report(margin, look)
            if look < NUM_LOOKS and trial.should_prune():
                raise optuna.TrialPruned
    except TrainingError as error:
        raise optuna.TrialPruned(str(error)) from None
    finally:
        learner.close()
    return margin


def open_study(path: str, seed: int) -> Any:
    """The study in a file, made if there is none."""
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    study = optuna.create_study(
        storage=JournalStorage(JournalFileBackend(path)),
        study_name="sweep",
        direction="maximize",
        load_if_exists=True,
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4),
    )
    # sampled anew after each stop, and yet the same for the same command
    study.sampler = optuna.samplers.TPESampler(seed=seed + len(study.trials))
    return study


def run_sweep(
    base: Config, path: str, num_trials: int, sample: Callable[[Any], dict[str, Any]] = sample_settings
) -> Any:
    """Run trials until a study holds `num_trials` that ended or were pruned; returns the study.

    Raises:
        ValueError: if the study was made with another configuration.
    """
    import optuna

    study = open_study(path, base.seed)
    known = {**Config().to_dict(), **study.user_attrs.get("config", base.to_dict())}  # older ones lack newer fields
    differences = [key for key, value in base.to_dict().items() if known[key] != value]
    if differences:
        raise ValueError(f"{path} holds a study with another {', '.join(differences)}: give another --study")
    study.set_user_attr("config", base.to_dict())
    ended = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
    num_left = num_trials - len(study.get_trials(states=ended))
    if num_left > 0:
        study.optimize(lambda trial: run_trial(trial, base, sample), n_trials=num_left)
    return study


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m agents.training.sweep",
        description="Search for settings of training by short runs, judged by their margin over the opponents: "
        "in points, or for `objective: match` in matches won.",
    )
    parser.add_argument("--config", required=True, help="YAML file with everything that is not searched")
    parser.add_argument("--trials", type=int, default=30, help="trials in all, earlier ones counted (default 30)")
    parser.add_argument("--steps", type=int, default=4_000_000, help="decisions of a trial (default 4000000)")
    parser.add_argument("--study", default="sweep.log", help="file of the study, gone on with if there is one")
    options = parser.parse_args(arguments)
    try:
        base = Config.read(options.config, {"total_steps": options.steps})
        study = run_sweep(base, options.study, options.trials)
    except ModuleNotFoundError as error:
        print(f"sweep: {error}: pip install optuna", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"stopped; the same command goes on with {options.study}", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        print(f"sweep: {error}", file=sys.stderr)
        return 2
    if not study.best_trials:
        print("no trial has ended yet")
        return 1
    best = study.best_trial
    unit = "of the matches above an equal share" if base.objective == "match" else "points a hand ahead"
    print(f"best of {len(study.trials)} trials: {best.value:+.3f} {unit} (number {best.number})")
    print(yaml.safe_dump(best.user_attrs["settings"], sort_keys=False), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
