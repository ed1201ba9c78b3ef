"""A run that is killed again and again, resumed each time, ends as one that was never stopped."""

import json
import os
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
# Imports once, then forks for each attempt: a line of JSON in, one out. An attempt is killed after some seconds, or
# just before its n-th change of a file.
SERVER = """
import json, os, signal, sys, time
import train, agents.training.run
from agents.training.config import Config
from agents.training.learner import Learner

learner = Learner(Config(hands=4, shards=1, hidden=[4], critic_hidden=[4]))
learner._play()  # loads the kernels
learner.close()
folder = sys.argv[1]

def die_at(number):
    seen = 0
    def watch(event, arguments):
        nonlocal seen
        is_write = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
        if is_write or event in ("os.rename", "os.remove"):
            seen += str(arguments[0]).startswith(folder)
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(watch)

for line in sys.stdin:
    order = json.loads(line)
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        os.dup2(2, 1)
        if order["changes"]:
            die_at(order["changes"])
        os._exit(train.main(order["arguments"]))
    if order["seconds"]:
        time.sleep(order["seconds"])
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([status, time.monotonic() - start]), flush=True)
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
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_run_killed_again_and_again_ends_as_one_never_stopped(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(CONFIG))
    straight = tmp_path / "straight"
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if NUM_KILLS < 10 else None,
        text=True,
    )

    def run(folder: Path, seconds: float = 0, changes: int = 0) -> tuple[int, float]:
        arguments = ["--config", str(path), "--run-dir", str(folder), "--resume"]
        order = {"arguments": arguments, "seconds": seconds, "changes": changes}
        server.stdin.write(json.dumps(order) + "\n")
        server.stdin.flush()
        return tuple(json.loads(server.stdout.readline()))

    with server:
        status, length = run(straight)
        assert status == 0
        rng = np.random.default_rng(1)
        killed = [tmp_path / "killed-0"]  # another one when a run came to its end
        num_kills = num_tries = 0
        while num_kills < NUM_KILLS:
            num_tries += 1
            if num_tries % 2:
                status, _ = run(killed[-1], changes=int(rng.integers(1, 40)))
            else:
                status, _ = run(killed[-1], seconds=rng.uniform(0.1, 0.6) * length)
            assert status in (0, -9)
            num_kills += status == -9
            if status == 0:
                killed.append(tmp_path / f"killed-{num_tries}")
        assert run(killed[-1])[0] == 0
        server.stdin.close()
    for folder in killed:
        assert read_end(folder) == read_end(straight)
        assert read_scalars(folder) == read_scalars(straight)
        for name in ("evaluation.json", "pool.csv"):
            assert (folder / name).read_bytes() == (straight / name).read_bytes()
        assert not list(folder.rglob("*.part"))
