import pytest
import yaml
from test_train import TINY, run_train

from agents.network import new_policy
from agents.training.config import Config
from agents.training.learner import Learner
from agents.training.plan import _describe_networks, make_plan
from pitch_env import Rules
from pitch_env.layout import layout


def test_a_dry_run_says_what_would_happen_and_writes_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(TINY))
    assert run_train("--config", path, "--run-dir", tmp_path / "run", "--rules.num-players", 3, "--dry-run") == 0
    shown = " ".join(capsys.readouterr().out.split())
    for part in ("3 players, each for themselves, to 7", "/s, from", "minutes of training", "nothing has been written"):
        assert part in shown, part
    assert [found.name for found in tmp_path.iterdir()] == ["tiny.yaml"]


@pytest.mark.parametrize(("epochs", "trunks"), [(1, "shared"), (2, "shared"), (1, "separate")])
def test_counts_are_those_of_the_run(tmp_path, epochs, trunks):
    values = {"total_steps": 20_000, "epochs": epochs, "trunks": trunks, "target_kl": 1e9, "objective": "match"}
    config = Config(**{**TINY, **values})
    plan = make_plan(config, tmp_path)
    learner = Learner(config)
    while learner.num_steps < config.total_steps:
        learner.update()
    learner.close()
    num_updates, num_steps = (int(plan["length"].split(word)[0].split()[-1]) for word in (" updates", " gradient"))
    assert num_updates == pytest.approx(learner.num_updates, abs=1)
    taken = learner.optimizer.state[next(learner.policy.parameters())]["step"].item()
    assert num_steps == pytest.approx(taken, rel=0.15)
    policy = new_policy(4, (16, 16), config.shape)
    count = sum(parameter.numel() for parameter in policy.parameters())
    assert plan["policy"] == f"{count:,} parameters, from {layout(4).size:,} features"
    assert "match equity" in plan


def test_a_table_of_match_equity_has_chances():
    learner = Learner(Config(**TINY, rules=Rules(num_players=2), objective="match", pool_bots=["random"]))
    assert _describe_networks(learner)["match equity"] == f"{2 * 2 * 64 * 64:,} chances"
    learner.close()


@pytest.mark.parametrize("trunks", ["shared", "separate"])
def test_networks_under_attention_are_described(trunks):
    learner = Learner(Config(**TINY, encoder="attention", trunks=trunks))
    count = sum(parameter.numel() for parameter in new_policy(4, (16, 16), learner.config.shape).parameters())
    assert _describe_networks(learner)["policy"] == f"{count:,} parameters, from {layout(4).size:,} features"
    learner.close()
