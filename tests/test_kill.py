"""A run that is killed again and again, resumed each time, ends as one that was never stopped."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from safetensors import safe_open

from agents.training.checkpoint import list_checkpoints
from pitch_env.table import TABLE

NUM_KILLS = int(os.environ.get("PITCH_KILLS", "4"))  # 20 and more for a thorough look
CONFIG = {
    "total_steps": 30_000,
    "hands": 32,
    "minibatch": 128,
    "hidden": [16, 16],
    "critic_hidden": [16, 16],
    "eval_every": 7000,
    "eval_deals": 10,
    "final_deals": 10,
    "final_matches": 4,
    "checkpoint_every": 2500,
    "opponents": ["passive"],
    "objective": "match",
    "match_from": 0.1,
    "pool_share": 0.25,
    "pool_bots": ["random"],
    "snapshot_every": 6000,
    "max_snapshots": 3,
}
# One attempt, in a process of its own: a forked one could inherit a lock that nobody holds any more. It is killed after
# some seconds of its run, or just before its n-th change of a file; one that hangs says where and fails.
ATTEMPT = """
import faulthandler, json, os, signal, sys, threading, time
faulthandler.dump_traceback_later(240, exit=True)
import train, agents.training.run

folder, order = sys.argv[1], json.loads(sys.argv[2])

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def die_at(number):
    seen = 0
    def watch(event, arguments):
        nonlocal seen
        is_write = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
        if is_write or event in ("os.rename", "os.remove"):
            seen += str(arguments[0]).startswith(folder)
            if seen == number:
                die()
    sys.addaudithook(watch)

if order["changes"]:
    die_at(order["changes"])
if order["seconds"]:
    timer = threading.Timer(order["seconds"], die)
    timer.daemon = True
    timer.start()
start = time.monotonic()
status = train.main(order["arguments"])
print(time.monotonic() - start)
sys.exit(status)
"""


def read_end(folder: Path) -> tuple[dict, dict]:
    """The last checkpoint: its arrays, and its counters."""
    with safe_open(str(list_checkpoints(folder / "checkpoints")[0]), framework="pt") as file:
        head = json.loads(file.metadata()["pitch"])
        arrays = {name: file.get_tensor(name).numpy() for name in file.keys()}  # noqa: SIM118  (not a dict)
    # the bytes between the fields of a table mean nothing
    tables = {
        name: {field: array.view(TABLE)[field].tolist() for field in TABLE.names}
        for name, array in arrays.items()
        if name.endswith(".tables")
    }
    del head["digest"]
    del head["notes"]["seconds"]
    for evaluation in head["notes"]["evaluations"]:
        del evaluation["seconds"]
    return {name: array.tobytes() for name, array in arrays.items()} | tables, head


def read_scalars(folder: Path) -> dict[str, dict[int, float]]:
    """The curves, without those of the clock."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    found = {}
    for name in events.Tags()["scalars"]:
        if name.startswith("time/") or name in ("charts/SPS", "charts/training_seconds"):
            continue
        points = events.Scalars(name)
        found[name] = {point.step: point.value for point in points}
        # nothing is logged twice, but for an evaluation at the end that was cut off after it had been logged
        assert name.startswith("eval/") or len(found[name]) == len(points), name
    return found


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_run_killed_again_and_again_ends_as_one_never_stopped(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(CONFIG))
    straight = tmp_path / "straight"

    def run(folder: Path, seconds: float = 0, changes: int = 0) -> float | None:
        """How many seconds it took to its end, or None if it was killed."""
        arguments = ["--config", str(path), "--run-dir", str(folder), "--resume"]
        order = {"arguments": arguments, "seconds": seconds, "changes": changes}
        command = [sys.executable, "-c", ATTEMPT, str(tmp_path), json.dumps(order)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode == -signal.SIGKILL and (seconds or changes):
            return None
        assert done.returncode == 0, done.stderr
        return float(done.stdout.splitlines()[-1])

    length = run(straight)
    rng = np.random.default_rng(1)
    killed = [tmp_path / "killed-0"]  # another one when a run came to its end
    num_kills = num_tries = 0
    while num_kills < NUM_KILLS:
        num_tries += 1
        if num_tries % 2:
            is_killed = run(killed[-1], changes=int(rng.integers(1, 40))) is None
        else:
            is_killed = run(killed[-1], seconds=rng.uniform(0.1, 0.6) * length) is None
        num_kills += is_killed
        if not is_killed:
            killed.append(tmp_path / f"killed-{num_tries}")
    run(killed[-1])
    for folder in killed:
        assert read_end(folder) == read_end(straight)
        assert read_scalars(folder) == read_scalars(straight)
        for name in ("evaluation.json", "pool.csv"):
            assert (folder / name).read_bytes() == (straight / name).read_bytes()
        assert not list(folder.rglob("*.part"))
