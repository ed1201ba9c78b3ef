"""What a run does when the disk is full, the folder cannot be written, or numbers are no longer finite."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
import yaml
from safetensors.torch import load_file
from tensorboard.summary.writer.record_writer import RecordWriter
from test_train import TINY, run_train

from agents.training import learner as learner_module
from agents.training.checkpoint import list_checkpoints

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def config_path(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump({**TINY, "opponents": ["passive"]}))
    return path


def fail_from(number: int, real, error: Exception):
    """A function that works, and from its n-th call raises."""
    calls = 0

    def call(*arguments):
        nonlocal calls
        calls += 1
        if calls >= number:
            raise error
        return real(*arguments)

    return call


def read_saved(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*.safetensors")}


def assert_ends_as_one_never_stopped(folder: Path, config_path: Path, straight: Path) -> None:
    assert run_train("--config", config_path, "--run-dir", folder, "--resume") == 0
    assert run_train("--config", config_path, "--run-dir", straight) == 0
    one, other = (load_file(path / "policy.safetensors") for path in (folder, straight))
    assert all(one[name].equal(other[name]) for name in other)


# writes in their order: configuration, description, checkpoint, policy, critic, checkpoint, ...
@pytest.mark.parametrize("number", [1, 3, 6, 7])
def test_full_disk_loses_nothing(tmp_path, config_path, capsys, monkeypatch, number):
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail_from(number, os.fsync, FULL))
        assert run_train("--config", config_path, "--run-dir", folder) == 2
    told = capsys.readouterr().err
    assert told.startswith("train.py: cannot ")
    assert "No space left on device" in told
    assert "Traceback" not in told
    assert not list(folder.rglob("*.part"))
    assert len(list_checkpoints(folder / "checkpoints")) == {1: 0, 3: 0, 6: 1, 7: 2}[number]
    if number == 6:
        assert "what was saved before is whole: make room, then go on with --resume" in told
        assert_ends_as_one_never_stopped(folder, config_path, tmp_path / "straight")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_full_disk_under_the_curves_is_told(tmp_path, config_path, capsys, monkeypatch):
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(RecordWriter, "write", fail_from(9, RecordWriter.write, FULL))
        assert run_train("--config", config_path, "--run-dir", folder) == 2
    assert "cannot save to" in capsys.readouterr().err
    assert run_train("--config", config_path, "--run-dir", folder, "--resume") == 0


def test_a_folder_that_cannot_be_made_is_named(tmp_path, config_path, capsys, monkeypatch):
    monkeypatch.setattr(os, "mkdir", fail_from(1, os.mkdir, PermissionError(errno.EACCES, "Permission denied")))
    assert run_train("--config", config_path, "--run-dir", tmp_path / "run") == 2
    assert f"cannot write to {tmp_path / 'run'}" in capsys.readouterr().err


def test_losses_that_are_no_numbers_stop_the_run_and_touch_nothing_saved(tmp_path, config_path, capsys, monkeypatch):
    folder = tmp_path / "run"
    real, calls = learner_module.estimate_advantages, 0

    def estimate(*arguments):
        nonlocal calls
        calls += 1
        advantages, returns = real(*arguments)
        if calls > 5:
            returns = np.full_like(returns, np.nan)
        elif calls == 5:
            kept.update(read_saved(folder))
        return advantages, returns

    kept: dict[str, bytes] = {}
    with monkeypatch.context() as patch:
        patch.setattr(learner_module, "estimate_advantages", estimate)
        assert run_train("--config", config_path, "--run-dir", folder, "--threads", 1) == 2
    told = capsys.readouterr().err
    assert "gradients were not finite in 3 steps on end: lower learning_rate" in told
    assert kept
    assert read_saved(folder) == kept
    assert_ends_as_one_never_stopped(folder, config_path, tmp_path / "straight")
