import dataclasses

import pytest

from agents.training.config import Config, add_flags, read_flags
from pitch_env import Rules


def test_yaml_round_trip(tmp_path):
    config = Config(rules=Rules(num_players=3), seed=7, hidden=[32, 16], learning_rate=0.002)
    config.write(tmp_path / "config.yaml")
    assert Config.read(tmp_path / "config.yaml") == config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("total_step: 5", "total_step'; 'total_steps' is meant"),
        ("rules: {players: 3}", "Rules has no field 'players'"),
        ("rules: {num_players: 9}", "Rules.num_players"),
        ("total_steps: many", "total_steps takes a whole number from 1"),
        ("epochs: true", "epochs takes a whole number"),
        ("clip: -1", "clip takes a number from 0"),
        ("hidden: [0]", "hidden takes a list of values from 1"),
        ("hidden: []", "hidden takes a list"),
        ("device: tpu", "device takes 'cpu' or 'cuda'"),
        ("precision: half", "precision takes"),
        ("trunks: two", "trunks takes 'shared' or 'separate'"),
        ("attention_size: 40", "attention_size takes a multiple of 16"),
        ("hands: 1", "hands must be at least shards"),
        ("pool_bots: [baby, baby]", "pool_bots takes each agent once"),
        ("- a list", "a configuration is a mapping"),
        ("a: [", "is no YAML"),
        ("rules: 5", "rules takes fields of Rules, not 5"),
        ("clip: 1e-x", "clip takes a number from 0, not '1e-x'"),
        ("base: bad.yaml", "without a base, and bad.yaml has one"),
    ],
)
def test_bad_files_are_refused_by_name(tmp_path, text, message):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"bad\.yaml") as caught:
        Config.read(path)
    assert message in str(caught.value)


def test_a_base_counts_where_a_file_is_silent(tmp_path):
    (tmp_path / "base.yaml").write_text("seed: 3\nhands: 100\nrules: {target: 11}\n")
    (tmp_path / "own.yaml").write_text("base: base.yaml\nhands: 50\n")
    assert Config.read(tmp_path / "own.yaml", {"clip": 0.1}) == Config(
        seed=3, hands=50, clip=0.1, rules=Rules(target=11)
    )


def test_rules_are_joined_field_by_field(tmp_path):
    (tmp_path / "base.yaml").write_text("rules: {target: 11, num_players: 3}\n")
    (tmp_path / "own.yaml").write_text("base: base.yaml\nrules: {target: 5}\nlearning_rate: 1e-3\n")
    config = Config.read(tmp_path / "own.yaml", {"rules.max_hands": 9})
    assert config.rules == Rules(num_players=3, target=5, max_hands=9)
    assert config.learning_rate == 1e-3  # YAML takes it for a text
    (tmp_path / "own.yaml").write_text("rules:\n")
    assert Config.read(tmp_path / "own.yaml") == Config()
    assert Config.read(tmp_path / "own.yaml", {"rules.target": 11}).rules == Rules(target=11)


def test_a_flag_that_is_no_yaml_is_refused(capsys):
    import argparse

    parser = argparse.ArgumentParser()
    add_flags(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--hidden", "[256"])
    assert "'[256' is no YAML value" in capsys.readouterr().err


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.yaml"):
        Config.read(tmp_path / "none.yaml")


def test_every_field_has_help_and_a_flag(tmp_path):
    import argparse

    parser = argparse.ArgumentParser()
    add_flags(parser)
    text = parser.format_help()
    for item in dataclasses.fields(Config):
        assert item.metadata["help"]
        assert item.name == "rules" or f"--{item.name.replace('_', '-')} " in text
    path = tmp_path / "base.yaml"
    path.write_text("seed: 1\nrules: {target: 11}\n")
    flags = parser.parse_args(
        ["--seed", "5", "--rules.num-players", "3", "--hidden", "[8, 8]", "--learning-rate", "0.1"]
    )
    config = Config.read(path, read_flags(flags))
    assert (config.seed, config.hidden, config.learning_rate) == (5, [8, 8], 0.1)
    assert config.rules == Rules(num_players=3, target=11)


def test_shipped_configurations_are_valid():
    from pathlib import Path

    paths = sorted(Path("configs").glob("*.yaml"))
    assert paths
    for path in paths:
        Config.read(path)
