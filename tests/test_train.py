"""The command line of training, as its user meets it."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml

import agents
import train
from agents.training.checkpoint import list_checkpoints
from agents.training.run import list_pool_history
from pitch_env import Rules

TINY = {
    "total_steps": 4000,
    "hands": 32,
    "minibatch": 128,
    "hidden": [16, 16],
    "critic_hidden": [16, 16],
    "eval_every": 2000,
    "eval_deals": 20,
    "final_deals": 20,
    "final_matches": 10,
    "checkpoint_every": 1500,
    "opponents": ["passive", "trickster"],
}


@pytest.fixture
def config_path(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(TINY))
    return path


def run_train(*arguments) -> int:
    return train.main([str(argument) for argument in arguments])


def read_scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {name: [(event.step, event.value) for event in events.Scalars(name)] for name in events.Tags()["scalars"]}


def test_run_leaves_all_that_is_promised(tmp_path, config_path, capsys):
    folder = tmp_path / "run"
    assert run_train("--config", config_path, "--run-dir", folder, "--seed", 5, "--rules.num-players", 3) == 0
    shown = capsys.readouterr().out
    assert "trickster" in shown
    assert "95 % intervals over 20 deals and 10 matches" in " ".join(shown.split())
    config = yaml.safe_load((folder / "config.yaml").read_text())
    assert (config["seed"], config["rules"]["num_players"], config["hands"]) == (5, 3, 32)
    metadata = json.loads((folder / "metadata.json").read_text())
    assert {"command", "seed", "revision", "versions"} <= metadata.keys()
    results = json.loads((folder / "evaluation.json").read_text())
    assert [result["opponent"] for result in results] == TINY["opponents"]
    assert list_checkpoints(folder / "checkpoints")
    assert agents.load(folder, Rules(num_players=3)).spec.rules == Rules(num_players=3)
    scalars = read_scalars(folder)
    for name in (
        "charts/SPS",
        "charts/learning_rate",
        "losses/policy_loss",
        "losses/value_loss",
        "losses/entropy",
        "losses/approx_kl",
        "losses/clipfrac",
        "losses/explained_variance",
        "eval/trickster/margin",
        "eval/trickster/low",
        "game/made_rate",
        "game/contract_2",
        "game/set_rate_2",
        "bids_by_place/dealer_2",
        "bids_by_score/between_pass",
        "entropy/bid",
        "critic/calibration_error",
        "time/inference_share",
    ):
        assert scalars[name], name


def test_a_run_that_ended_ends_again_as_it_did(tmp_path, config_path):
    """As after a kill at the very end: the last evaluation is made again, and counts once."""
    folder, flags = tmp_path / "run", ("--pool-bots", "[passive]", "--pool-share", 0.5)
    ends = []
    for resume in ([], ["--resume"]):
        assert run_train("--config", config_path, "--run-dir", folder, *flags, *resume) == 0
        ends.append([(folder / name).read_bytes() for name in ("evaluation.json", "policy.safetensors", "pool.csv")])
    assert ends[0] == ends[1]
    steps = [line.split(",")[0] for line in ends[0][2].decode().splitlines()]
    assert steps[0] == "steps"
    assert len(set(steps)) == len(steps) > 2


def test_the_history_of_a_pool_can_be_read_as_a_table():
    pools = {"baby": [0.5, 0.02]}, {"baby": [0.25, 0.01], "step 2,000,000": [-0.125, 0.03]}
    text = list_pool_history(
        [{"steps": 10 * number, "pool": pool} for number, pool in enumerate(pools, 1)], "points a hand"
    )
    assert list(csv.reader(io.StringIO(text))) == [
        ["steps", "member", "margin", "half_width", "unit"],
        ["10", "baby", "0.5000", "0.0200", "points a hand"],
        ["20", "baby", "0.2500", "0.0100", "points a hand"],
        ["20", "step 2,000,000", "-0.1250", "0.0300", "points a hand"],
    ]


def test_folder_with_a_run_is_not_overwritten(tmp_path, config_path, capsys):
    folder = tmp_path / "run"
    run_train("--config", config_path, "--run-dir", folder)
    policy = (folder / "policy.safetensors").read_bytes()
    assert run_train("--config", config_path, "--run-dir", folder) == 2
    assert "add --resume" in capsys.readouterr().err
    assert (folder / "policy.safetensors").read_bytes() == policy


def test_resume_with_another_configuration_is_refused(tmp_path, config_path, capsys):
    folder = tmp_path / "run"
    run_train("--config", config_path, "--run-dir", folder)
    assert run_train("--config", config_path, "--run-dir", folder, "--resume", "--clip", 0.3) == 2
    assert "another clip" in capsys.readouterr().out
    assert yaml.safe_load((folder / "config.yaml").read_text())["clip"] == 0.2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "nowhere.yaml"], "there is no configuration file nowhere.yaml"),
        (["--config", "CONFIG", "--total-steps", "none"], "total_steps takes a whole number"),
        (["--config", "CONFIG", "--rules.num-players", "8"], "Rules.num_players takes a whole number from 2 to 7"),
        (["--config", "CONFIG", "--run-dir", "CONFIG"], "cannot write to"),
        (["--config", "CONFIG", "--opponents", "[nobody]"], "there is no agent 'nobody'"),
        pytest.param(
            ["--config", "CONFIG", "--device", "cuda"],
            "device takes 'cpu' here: PyTorch finds no GPU",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU"),
        ),
    ],
)
def test_mistakes_get_one_sentence(config_path, capsys, arguments, message):
    assert run_train(*[config_path if argument == "CONFIG" else argument for argument in arguments]) == 2
    assert message in capsys.readouterr().err


def test_help_teaches_every_flag(capsys):
    with pytest.raises(SystemExit) as caught:
        run_train("--help")
    assert caught.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "--total-steps INT decisions to play in all" in shown
    assert "--rules.low-point" in shown


@pytest.mark.slow
def test_interrupted_run_saves_and_ends_as_one_never_stopped(tmp_path, config_path):
    """Ctrl-C in mid-run, then --resume: the same weights as a run without a stop."""
    steps = ["--total-steps", "60000", "--eval-every", "0"]
    command = [sys.executable, "train.py", "--config", str(config_path), *steps]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [*command, "--run-dir", str(tmp_path / "stopped")], stdout=subprocess.PIPE, text=True, env=environment
    )
    deadline = time.monotonic() + 120
    while not list((tmp_path / "stopped" / "checkpoints").glob("step-*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    shown, _ = process.communicate(timeout=120)
    assert process.returncode == 130, shown
    assert "go on with: python train.py --resume" in shown
    assert agents.load(tmp_path / "stopped")
    resumed = subprocess.run(
        [sys.executable, "train.py", "--resume", "--run-dir", str(tmp_path / "stopped")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "resumed at" in resumed.stdout
    subprocess.run([*command, "--run-dir", str(tmp_path / "straight")], check=True, capture_output=True)
    from safetensors.torch import load_file

    one, other = (load_file(tmp_path / name / "policy.safetensors") for name in ("stopped", "straight"))
    assert all(one[key].equal(other[key]) for key in other)
    assert not any(name.endswith(".part") for name in os.listdir(tmp_path / "stopped"))
