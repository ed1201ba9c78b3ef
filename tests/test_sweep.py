import pytest
import yaml
from test_train import TINY

from agents import load
from agents.arena import play_duplicate
from agents.policy import PolicyAgent
from agents.training import sweep
from agents.training.config import Config
from agents.training.learner import Learner

optuna = pytest.importorskip("optuna")
BASE = {**TINY, "opponents": ["passive"], "eval_deals": 10}


def sample_little(trial):
    return {"learning_rate": trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True)}


def test_a_study_goes_on_where_it_stopped_and_refuses_another_configuration(tmp_path):
    path = str(tmp_path / "study.log")
    assert len(sweep.run_sweep(Config(**BASE), path, 1, sample_little).trials) == 1
    study = sweep.run_sweep(Config(**BASE), path, 3, sample_little)
    assert len(study.trials) == 3
    assert len({trial.params["learning_rate"] for trial in study.trials}) == 3
    assert study.best_trial.user_attrs["settings"] == study.best_trial.params
    assert len(study.trials[0].intermediate_values) == sweep.NUM_LOOKS
    assert len(sweep.run_sweep(Config(**BASE), path, 3, sample_little).trials) == 3
    with pytest.raises(ValueError, match="another clip"):
        sweep.run_sweep(Config(**BASE, clip=0.3), path, 4, sample_little)


def test_a_study_made_before_a_setting_was_there_goes_on(tmp_path):
    path = str(tmp_path / "study.log")
    study = sweep.run_sweep(Config(**BASE), path, 1, sample_little)
    study.set_user_attr("config", {key: value for key, value in Config(**BASE).to_dict().items() if key != "clip"})
    assert len(sweep.run_sweep(Config(**BASE), path, 2, sample_little).trials) == 2


def test_who_trains_for_matches_is_judged_by_matches():
    config = Config(**{**BASE, "objective": "match", "opponents": ["passive", "baby"], "eval_deals": 48})
    learner = Learner(config)
    policy = PolicyAgent(learner.spec, learner.average)
    results = [
        play_duplicate(policy, load(name, config.rules), config.rules, 0, 6, config.seed) for name in config.opponents
    ]
    expected = sum(one.match_share - one.equal_share for one in results) / 2
    assert sweep.measure_margin(config, learner) == pytest.approx(expected)
    learner.close()


def test_all_sampled_settings_are_taken():
    study = optuna.create_study()
    for _ in range(20):
        Config(**{**TINY, **sweep.sample_settings(study.ask())})


def test_a_trial_that_is_behind_ends_early():
    class Behind(optuna.trial.FixedTrial):
        def should_prune(self):
            return True

    with pytest.raises(optuna.TrialPruned):
        sweep.run_trial(Behind({"learning_rate": 1e-3}), Config(**BASE), sample_little)


def test_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sweep.run_sweep, "__defaults__", (sample_little,))
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(BASE))
    arguments = ["--config", str(path), "--trials", "1", "--steps", "2000", "--study", str(tmp_path / "study.log")]
    assert sweep.main(arguments) == 0
    shown = capsys.readouterr().out
    assert "best of 1 trials" in shown
    assert "learning_rate: " in shown
    assert sweep.main([*arguments[:1], "nowhere.yaml"]) == 2
    assert "there is no configuration file nowhere.yaml" in capsys.readouterr().err
