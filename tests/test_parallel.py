"""Several processes on one machine, started as a user starts them: by torchrun."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from safetensors.torch import load_file

from agents.training.checkpoint import list_checkpoints

TINY = {
    "total_steps": 8000,
    "hands": 64,
    "minibatch": 128,
    "shards": 4,
    "hidden": [16, 16],
    "critic_hidden": [16, 16],
    "eval_every": 0,
    "final_deals": 20,
    "final_matches": 10,
    "checkpoint_every": 3000,
    "opponents": ["passive", "trickster", "baby"],
    "objective": "match",
    "match_from": 0.2,
    "pool_share": 0.5,
    "pool_bots": ["trickster"],
    "snapshot_every": 3000,
    "precision": "float32",
}


def run(config: Path, folder: Path, num_processes: int, *more: str) -> subprocess.CompletedProcess:
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(num_processes)]
    command = [sys.executable, *(launch if num_processes > 1 else []), "train.py", "--config", str(config)]
    return subprocess.run(
        [*command, "--run-dir", str(folder), *more], capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.slow
def test_two_processes_end_as_one(tmp_path):
    """The same total batch: the same decisions, and weights that differ by rounding alone."""
    config = tmp_path / "tiny.yaml"
    config.write_text(yaml.safe_dump(TINY))
    for num_processes in (1, 2):
        done = run(config, tmp_path / str(num_processes), num_processes)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("points a hand ahead") >= 1  # only the first process talks
    one, two = (load_file(tmp_path / name / "policy.safetensors") for name in ("1", "2"))
    for name in one:
        assert one[name].allclose(two[name], atol=1e-4), name
    results = [json.loads((tmp_path / name / "evaluation.json").read_text()) for name in ("1", "2")]
    assert [result["opponent"] for result in results[1]] == TINY["opponents"]
    # a run of two processes can be gone on with by one
    done = run(config, tmp_path / "2", 1, "--resume")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_processes_go_on_from_a_checkpoint_that_all_of_them_have(tmp_path):
    """Each process is given its own copy of a run, and that of the second one lacks the latest checkpoint."""
    config = tmp_path / "tiny.yaml"
    config.write_text(yaml.safe_dump(TINY))
    assert run(config, tmp_path / "one", 1).returncode == 0
    for rank in ("0", "1"):
        shutil.copytree(tmp_path / "one", tmp_path / "copy" / rank)
    latest, before, *_ = list_checkpoints(tmp_path / "copy" / "1" / "checkpoints")
    latest.unlink()
    train = f"exec {sys.executable} train.py --resume --config {config} --run-dir {tmp_path}/copy/$RANK"
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python"]
    done = subprocess.run([*launch, "bash", "-c", train], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    said = "".join(done.stdout.split())  # without the breaks of lines
    assert f"thereisnocheckpointfile{latest}" in said
    assert f"resumedat{int(before.stem.removeprefix('step-')):,}decisions" in said
    one, two = (load_file(tmp_path / name / "policy.safetensors") for name in ("one", "copy/0"))
    for name in one:
        assert one[name].allclose(two[name], atol=1e-4), name


@pytest.mark.slow
def test_shards_that_cannot_be_shared_out_are_refused(tmp_path):
    config = tmp_path / "tiny.yaml"
    config.write_text(yaml.safe_dump({**TINY, "shards": 3}))
    done = run(config, tmp_path / "run", 2)
    assert done.returncode != 0
    assert "shards must be a multiple of the 2 processes, not 3" in done.stderr
