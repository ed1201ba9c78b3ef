"""Critics as files: whole, refused where they do not fit, and read as training reads them."""

import json

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from agents.critic import CRITIC_FILE, Critic, read_critic, write_critic
from agents.network import new_critic
from agents.training.rollout import BID, Shard
from pitch_env import Rules
from pitch_env.engine import new_tables
from pitch_env.kernels import lowest


def new_network(rules, is_privileged=True):
    torch.manual_seed(0)
    return new_critic(rules.num_players, (8, 8), is_privileged).eval()


def write(folder, rules=None, is_privileged=True):
    rules = rules or Rules()
    network = new_network(rules, is_privileged)
    write_critic(folder / CRITIC_FILE, rules, (8, 8), is_privileged, network.state_dict())
    return network


class Passing:
    """Passes wherever it can and plays its lowest action else."""

    def choose(self, shard, rows):
        shard.actions[rows] = [lowest(mask) for mask in shard.masks[rows]]


@pytest.mark.parametrize("is_privileged", [True, False])
@pytest.mark.parametrize(
    "rules", [Rules(), Rules(num_players=7), Rules(num_players=2), Rules(teams=True), Rules(num_players=3, hand_size=4)]
)
def test_deals_are_valued_as_training_values_the_bids_after_passes(tmp_path, rules, is_privileged):
    network = write(tmp_path, rules, is_privileged)
    shard = Shard(rules, 30, np.random.SeedSequence(1))
    tables = shard.tables.copy()
    batch, _ = shard.play([Passing()])
    bids = np.flatnonzero(batch.kinds == BID)
    bids = bids[np.argsort(batch.streams[bids] // rules.num_players, kind="stable")]
    lengths = batch.full_lengths if is_privileged else batch.lengths
    with torch.inference_mode():
        expected = network(batch.features[bids], lengths[bids]).numpy().reshape(30, rules.num_players)
    before = tables.copy()
    values = read_critic(tmp_path, rules).value_deals(tables)
    assert values == pytest.approx(expected, abs=1e-6)
    assert values.std() > 1e-3
    assert (tables == before).all()


def test_many_deals_are_valued_like_few():
    critic = Critic(Rules(), new_network(Rules()))
    tables = new_tables(Rules(), 1, 1500)
    values = critic.value_deals(tables)
    assert values.shape == (1500, 4)
    assert critic.value_deals(tables[1000:1040]) == pytest.approx(values[1000:1040], abs=1e-6)
    assert critic.value_deals(tables[:0]).shape == (0, 4)


def test_other_rules_are_refused_in_words(tmp_path):
    write(tmp_path)
    with pytest.raises(ValueError, match="trained for other rules: target 7 against 11"):
        read_critic(tmp_path, Rules(target=11))
    assert read_critic(tmp_path, Rules(max_hands=9)).rules == Rules()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": "pitch-policy"}, "its head does not say 'pitch-critic'"),
        ({"format_version": 2}, "has critic format 2; this version reads 1"),
        ({"layout_version": 0}, "it reads observation layout 0"),
        ({"hidden": [8, 9]}, "size mismatch"),
        ({"hidden": []}, "hidden is a list of layer sizes"),
        ({"rules": None}, "critic.safetensors cannot be used"),
    ],
)
def test_what_is_no_critic_of_this_version_is_refused(tmp_path, change, reason):
    write(tmp_path)
    path = tmp_path / CRITIC_FILE
    with safe_open(str(path), "pt") as file:
        head = json.loads(file.metadata()["pitch"])
    save_file(load_file(path), path, {"pitch": json.dumps({**head, **change})})
    with pytest.raises(ValueError, match=reason):
        read_critic(path)


def test_no_file_and_no_weights(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no critic file"):
        read_critic(tmp_path)
    (tmp_path / CRITIC_FILE).write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="is torn or no critic file"):
        read_critic(tmp_path)
