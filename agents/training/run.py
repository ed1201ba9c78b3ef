"""One training run: its folder, its log, its evaluations, and going on after a stop."""

import contextlib
import csv
import importlib.metadata
import io
import json
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch.utils.tensorboard import SummaryWriter

import agents
from agents.arena import Result, play_duplicate
from agents.critic import CRITIC_FILE, write_critic
from agents.equity import EQUITY_FILE, write_equity
from agents.files import write_atomically
from agents.policy import PolicyAgent, PolicySpec, write_policy
from agents.training.checkpoint import list_checkpoints, resume_latest, write_checkpoint
from agents.training.config import Config
from agents.training.learner import Learner
from agents.training.panel import Panel, show_results
from agents.training.parallel import Ranks
from agents.training.report import describe_results, write_hands, write_hyperparameters, write_scalars

POLICY_FILE = "policy.safetensors"
POOL_FILE = "pool.csv"
_PACKAGES = ("numpy", "numba", "torch", "gymnasium", "pettingzoo", "safetensors")


class RunError(ValueError):
    """A run folder cannot be used as asked; the text says why."""


def _find_revision() -> str:
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()


def describe_run(config: Config) -> dict[str, Any]:
    """What is needed to repeat a run: command, seed, revision, versions."""
    return {
        "command": ["python", *sys.argv],
        "seed": config.seed,
        "revision": _find_revision(),
        "versions": {
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in _PACKAGES},
        },
        "processor": platform.processor() or platform.machine(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


@contextmanager
def _catch_interrupts() -> Iterator[list[int]]:
    """Collect interrupts instead of dying of them; a second one kills as usual."""
    caught: list[int] = []

    def catch(number: int, _: Any) -> None:
        caught.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    old = signal.signal(signal.SIGINT, catch), signal.signal(signal.SIGTERM, catch)
    try:
        yield caught
    finally:
        signal.signal(signal.SIGINT, old[0])
        signal.signal(signal.SIGTERM, old[1])


def _is_due(every: int, before: int, after: int) -> bool:
    """Whether a multiple was passed: the same decisions are due after a stop as without one."""
    return after // every > before // every


def _wait_for_new_second(folder: Path) -> None:
    """Wait until no event file begins in this second: they are read in the order of their names, which hold it."""
    while any(folder.glob(f"events.out.tfevents.{int(time.time()):010d}.*")):
        time.sleep(0.05)


def list_pool_history(evaluations: list[dict[str, Any]], unit: str) -> str:
    """Margins over every member of the pool over time as CSV: a fall is forgetting, or going in circles."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["steps", "member", "margin", "half_width", "unit"])
    for evaluation in evaluations:
        for name, (margin, half) in evaluation["pool"].items():
            writer.writerow([evaluation["steps"], name, f"{margin:.4f}", f"{half:.4f}", unit])
    return text.getvalue()


class Run:
    """A training run in a folder.

    Args:
        config: what to do.
        folder: where everything is written.
        is_resumed: go on with the run that is in the folder.

    Raises:
        RunError: if the folder holds a run and `is_resumed` is False, or holds another run.
    """

    def __init__(self, config: Config, folder: Path, is_resumed: bool = False) -> None:
        self.config, self.folder = config, folder
        self._checkpoints = folder / "checkpoints"
        self.ranks = Ranks(torch.device(config.device))
        self.is_first = self.ranks.rank == 0  # the process that writes and talks
        self.panel = Panel(config.total_steps, Console(quiet=not self.is_first))
        has_run = bool(list_checkpoints(self._checkpoints))
        if has_run and not is_resumed:
            raise RunError(f"{folder} holds a run already: add --resume to go on with it, or give another --run-dir")
        self._opponents = [agents.load(name, config.rules) for name in config.opponents]
        self.learner = Learner(config, self.ranks)
        notes = resume_latest(self._checkpoints, self.learner, self.panel.print) if is_resumed else None
        if self.is_first:
            self._write_description(is_resumed)
        self._seconds = notes["seconds"] if notes else 0.0
        self._evaluations: list[dict[str, Any]] = notes["evaluations"] if notes else []
        if notes:
            self.panel.print(f"resumed at {self.learner.num_steps:,} decisions")
        self.writer: SummaryWriter | None = None
        if self.is_first:
            with self._guard_writing():
                _wait_for_new_second(folder)
                # what was logged after the checkpoint is about to be logged again
                self.writer = SummaryWriter(str(folder), purge_step=self.learner.num_steps + 1)
                if not notes:
                    write_hyperparameters(self.writer, config)

    def _write_description(self, is_resumed: bool) -> None:
        about = describe_run(self.config)
        path = self.folder / "metadata.json"
        if is_resumed and path.is_file():
            first = json.loads(path.read_text(encoding="utf-8"))
            about = {**first, "resumed": [*first.get("resumed", []), about]}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for part in (*self.folder.glob("*.part"), *self._checkpoints.glob("*.part")):
                part.unlink()  # of a process that was killed while it wrote
            write_atomically(self.folder / "config.yaml", self.config.to_yaml().encode())
            write_atomically(path, json.dumps(about, indent=1).encode())
        except OSError as error:
            raise RunError(f"cannot write to {self.folder}: {error}") from None

    @contextmanager
    def _guard_writing(self) -> Iterator[None]:
        """Say what a write that failed means for the run."""
        try:
            yield
        except OSError as error:
            raise RunError(
                f"cannot save to {self.folder}: {error}; what was saved before is whole: make room, then go on with "
                f"--resume --run-dir {self.folder}"
            ) from None

    def train(self) -> bool:
        """Train to the end, or to an interrupt, and save; returns whether the end was reached."""
        config, learner = self.config, self.learner
        with _catch_interrupts() as interrupts, self.panel:
            while learner.num_steps < config.total_steps and not self.ranks.find_max(len(interrupts)):
                clock = time.perf_counter()
                before = learner.num_steps
                facts = learner.update()
                spent = time.perf_counter() - clock
                self._seconds += spent
                facts["charts/SPS"] = (learner.num_steps - before) / spent
                facts["charts/training_seconds"] = self._seconds
                self._log(facts)
                self.panel.advance(learner.num_steps, facts)
                if config.eval_every and _is_due(config.eval_every, before, learner.num_steps):
                    self.evaluate(config.eval_deals, 0)
                if _is_due(config.checkpoint_every, before, learner.num_steps):
                    self.save()
        self.save()
        return learner.num_steps >= config.total_steps

    def finish(self) -> list[Result]:
        """Measure the policy at length, print the table, and keep the results in ``evaluation.json``."""
        results = self.evaluate(self.config.final_deals, self.config.final_matches)
        self.save()
        if self.is_first:
            text = json.dumps([result.to_dict() for result in results], indent=1)
            with self._guard_writing():
                write_atomically(self.folder / "evaluation.json", text.encode())
            show_results(results, self.panel.console)
        self.ranks.find_max(0)  # nobody leaves before the first has written: after a kill all are needed again
        return results

    def close(self) -> None:
        """End threads and files."""
        if self.writer is not None:
            with contextlib.suppress(OSError):  # it has been reported by the write that failed
                self.writer.close()
        self.learner.close()
        self.ranks.close()

    def _log(self, facts: dict[str, float]) -> None:
        if self.writer is not None:
            with self._guard_writing():
                write_scalars(self.writer, facts, self.learner.num_steps)

    def policy_spec(self) -> PolicySpec:
        """What the saved policy says about itself."""
        notes = {"steps": self.learner.num_steps, "seconds": round(self._seconds, 1), "seed": self.config.seed}
        return replace(self.learner.spec, notes=notes)

    def evaluate(self, num_deals: int, num_matches: int) -> list[Result]:
        """Measure the averaged policy in one seat (or side) against copies of each opponent, and log it.

        Each opponent is met by one of the processes.
        """
        agent = PolicyAgent(self.policy_spec(), self.learner.average, name="policy")

        def measure(number: int) -> str:
            names = ("policy", self.config.opponents[number])
            opponent, seed = self._opponents[number], self.config.seed
            result = play_duplicate(agent, opponent, self.config.rules, num_deals, num_matches, seed, names=names)
            return json.dumps(result.to_dict())

        texts = self.ranks.share_out(list(range(len(self._opponents))), measure)
        results = [Result.from_dict(json.loads(text)) for text in texts]
        self._log(describe_results(results))
        if self.writer is not None:
            with self._guard_writing():
                write_hands(self.writer, self.learner.shards[0].tables, self.learner.num_steps)
        evaluation: dict[str, Any] = {
            "steps": self.learner.num_steps,
            "seconds": self._seconds,
            "margins": {result.opponent: result.margin for result in results},
            "pool": self.learner.pool.describe(),
        }
        before = [one for one in self._evaluations if one["steps"] < evaluation["steps"]]  # the last may be made again
        self._evaluations = [*before, evaluation]
        if self.is_first and self.learner.pool.members:
            with self._guard_writing():
                write_atomically(
                    self.folder / POOL_FILE, list_pool_history(self._evaluations, self.learner.pool.unit).encode()
                )
        self.panel.show_margins(results, evaluation["pool"], self.learner.pool.unit)
        return results

    def save(self) -> None:
        """Write the checkpoint and the policy."""
        notes = {"seconds": self._seconds, "evaluations": self._evaluations}
        with self._guard_writing():
            if self.writer is not None:
                self.writer.flush()  # first: what a checkpoint has behind it is not logged again
            write_checkpoint(self._checkpoints, self.learner, notes, self.config.keep_checkpoints)
            if self.is_first:
                write_policy(self.folder / POLICY_FILE, self.policy_spec(), self.learner.average.state_dict())
                hidden, is_privileged = tuple(self.config.critic_hidden), self.config.privileged_critic
                weights, shape = self.learner.critic.state_dict(), self.config.shape
                write_critic(self.folder / CRITIC_FILE, self.config.rules, hidden, is_privileged, weights, shape=shape)
                if self.learner.equity is not None:
                    write_equity(self.folder / EQUITY_FILE, self.learner.equity.equity)
