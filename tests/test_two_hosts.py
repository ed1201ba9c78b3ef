"""Training on two hosts, network namespaces of this machine: the same result, whatever is killed on the way."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from safetensors.torch import load_file

from agents.policy import read_policy
from agents.training.checkpoint import list_checkpoints

SCRIPT = ["bash", "tests/two_hosts.sh"]
TORCHRUN = [
    *("--nnodes", "2", "--nproc-per-node", "1", "--max-restarts", "3"),
    *("--rdzv-backend", "c10d", "--rdzv-endpoint", "one:29500"),
]
ENVIRONMENT = {**os.environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "OMP_NUM_THREADS": "1"}
CONFIG = {
    "total_steps": 16_000,
    "hands": 32,
    "minibatch": 128,
    "shards": 2,
    "hidden": [16, 16],
    "critic_hidden": [16, 16],
    "eval_every": 0,
    "final_deals": 10,
    "final_matches": 4,
    "checkpoint_every": 2000,
    "opponents": ["passive"],
    "objective": "match",
    "match_from": 0.2,
    "pool_share": 0.25,
    "pool_bots": ["random"],
    "snapshot_every": 6000,
    "precision": "float32",
}


def start(folder: Path, launch: list[str]) -> subprocess.Popen:
    """Begin a run; what it says goes to a file beside its folder."""
    config = folder.with_suffix(".yaml")
    config.write_text(yaml.safe_dump(CONFIG))
    command = [*launch, "train.py", "--config", str(config), "--run-dir", str(folder), "--resume"]
    with open(folder.with_suffix(".txt"), "w") as said:
        return subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, env=ENVIRONMENT)


def start_on_two_hosts(folder: Path) -> subprocess.Popen:
    return start(folder, [*SCRIPT, sys.executable, "-m", "torch.distributed.run", *TORCHRUN])


def read_said(folder: Path) -> str:
    return folder.with_suffix(".txt").read_text()


def find_worker(folder: Path, rank: int) -> int:
    """Process id of a worker of a run."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has just ended
            words, settings = ((process / name).read_bytes().split(b"\0") for name in ("cmdline", "environ"))
            if str(folder).encode() in words and f"RANK={rank}".encode() in settings:
                return int(process.name)
    raise AssertionError(f"there is no worker {rank}: {read_said(folder)}")


def count_starts(folder: Path) -> int:
    """How often the workers of a run were started and got as far as reading their checkpoint."""
    path = folder / "metadata.json"
    return 1 + len(json.loads(path.read_text()).get("resumed", [])) if path.exists() else 0


def read_counters(folder: Path) -> dict:
    notes = read_policy(folder / "policy.safetensors")[0].notes
    return {"steps": notes["steps"], "checkpoints": [path.name for path in list_checkpoints(folder / "checkpoints")]}


@pytest.fixture(scope="module")
def straight(tmp_path_factory) -> Path:
    """A run on two hosts that nothing disturbs."""
    tried = subprocess.run([*SCRIPT, "true"], capture_output=True, text=True, timeout=60, check=False)
    if tried.returncode:
        pytest.skip(f"this machine does not let us make network namespaces: {tried.stderr.strip()}")
    folder = tmp_path_factory.mktemp("hosts") / "straight"
    with start_on_two_hosts(folder) as process:
        try:
            assert process.wait(timeout=200) == 0, read_said(folder)
        finally:
            process.kill()
    return folder


@pytest.mark.slow
def test_two_hosts_end_as_one_process(straight, tmp_path):
    """The same decisions, and weights that differ by rounding alone."""
    folder = tmp_path / "one"
    assert start(folder, [sys.executable]).wait(timeout=200) == 0, read_said(folder)
    assert read_counters(straight) == read_counters(folder)
    two, one = (load_file(path / "policy.safetensors") for path in (straight, folder))
    for name in one:
        assert two[name].allclose(one[name], atol=1e-4), name


@pytest.mark.slow
def test_killed_workers_are_restarted_and_the_run_ends_as_one_never_killed(straight, tmp_path):
    """A worker of each host in turn, the one that writes among them: the same weights to the last bit."""
    folder = tmp_path / "killed"
    with start_on_two_hosts(folder) as process:

        def wait_until(is_reached: Callable[[], bool]) -> None:
            deadline = time.monotonic() + 200
            while not is_reached():
                assert process.poll() is None, read_said(folder)
                assert time.monotonic() < deadline, read_said(folder)
                time.sleep(0.02)

        def find_latest() -> list[Path]:
            return list_checkpoints(folder / "checkpoints")[:1]

        try:
            for num_kills, rank in enumerate((1, 0)):
                wait_until(lambda: count_starts(folder) > num_kills)  # noqa: B023  (called at once)
                before = find_latest()
                wait_until(lambda: find_latest() != before)  # noqa: B023
                os.kill(find_worker(folder, rank), signal.SIGKILL)
            assert process.wait(timeout=200) == 0, read_said(folder)
        finally:
            process.kill()
    assert read_said(folder).count("resumed at") >= 2
    assert read_counters(folder) == read_counters(straight)
    killed, never = (load_file(path / "policy.safetensors") for path in (folder, straight))
    assert all(killed[name].equal(never[name]) for name in never)
    assert (folder / "evaluation.json").read_bytes() == (straight / "evaluation.json").read_bytes()
    assert not list(folder.rglob("*.part"))
