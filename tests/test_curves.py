"""Curves of margin and of NashConv in short forms, going on after a stop, and self-play as MaskablePPO sees it."""

import csv
import time

import numpy as np
import pytest
import torch

from benchmarks import curves, nash_curves
from benchmarks.curves import Clock, Record, Setup, find_ends, show_mean
from pitch_env import Rules, pitch_v0
from pitch_env.view import view_table

SHORT = {"hands": 16, "minibatch": 64, "hidden": [8], "critic_hidden": [8], "precision": "float32"}
FLAGS = ["--minutes", "0.001", "--points", "2", "--opponents", "baby", "--deals", "4", "--final-deals", "6"]


@pytest.fixture(autouse=True)
def _same_number_of_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def folder(tmp_path):
    pytest.importorskip("matplotlib")
    marks = [f"<!-- begin: {name} -->\n<!-- end -->\n" for name in (curves.NAME, nash_curves.NAME)]
    (tmp_path / "text.md").write_text("".join(marks), encoding="utf-8")
    return tmp_path


def draw_margins(folder, *more):
    curves.main([*FLAGS, "--folder", str(folder), "--write", str(folder / "text.md"), *more], SHORT)
    with open(folder / "curves.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_margins(folder, capsys):
    rows = draw_margins(folder, "--algorithms", "ppo", "dmc", "--seeds", "0", "1")
    assert list(rows[0]) == list(curves.COLUMNS)
    assert [(row["algorithm"], row["seed"], row["deals"]) for row in rows] == [
        (name, seed, deals) for seed in "01" for name in ("ppo", "dmc") for deals in "46"
    ]
    for row in rows:
        assert float(row["low"]) <= float(row["margin"]) <= float(row["high"])
    for row in rows[1::2]:
        assert int(row["decisions"]) >= int(row["total_steps"]) > 0
        assert row["seconds"] == row["wall_seconds"]
    shown = (folder / "text.md").read_text("utf-8")
    assert "\n| PPO | 0.0" in shown
    assert "\n| Deep Monte Carlo | 0.0" in shown
    assert "over the same 6 deals" in shown
    assert "--minutes 0.001 --points 2 --threads 1 --clock wall --algorithms ppo dmc --seeds 0 1`" in shown
    picture = (folder / "curves.svg").read_text("utf-8")
    assert "<svg" in picture
    assert "<dc:date>" not in picture

    capsys.readouterr()
    assert draw_margins(folder, "--algorithms", "ppo", "dmc", "--seeds", "0", "1") == rows
    assert capsys.readouterr().out.count("done before") == 4
    assert (folder / "curves.svg").read_text("utf-8") == picture


def test_a_stopped_script_goes_on_and_keeps_whole_runs(folder, monkeypatch):
    measure, num_calls = curves.play_duplicate, 0

    def stop(*arguments):
        nonlocal num_calls
        num_calls += 1
        if num_calls == 4:  # the last of the second run
            raise KeyboardInterrupt
        return measure(*arguments)

    monkeypatch.setattr(curves, "play_duplicate", stop)
    with pytest.raises(KeyboardInterrupt):
        draw_margins(folder, "--algorithms", "mmd", "--seeds", "3", "4")
    kept = (folder / "curves.csv").read_text("utf-8")
    assert kept.count("\nmmd,3,") == 2
    assert "mmd,4," not in kept
    rows = draw_margins(folder, "--algorithms", "mmd", "--seeds", "3", "4")
    assert [row["seed"] for row in rows] == ["3", "3", "4", "4"]
    assert (folder / "curves.csv").read_text("utf-8").startswith(kept)


def test_runs_of_another_setup_are_not_mixed_in(folder, capsys):
    Record(folder / "curves.csv", curves.COLUMNS, Setup(minutes=2.0)).add_run(
        [dict.fromkeys(curves.COLUMNS[:2] + curves.COLUMNS[7:], 1)]
    )
    with pytest.raises(SystemExit):
        draw_margins(folder, "--algorithms", "ppo")
    assert "has runs with minutes 2.0, not 0.001" in capsys.readouterr().err
    with pytest.raises(ValueError, match="takes the columns"):
        Record(folder / "curves.csv", nash_curves.COLUMNS, Setup())


@pytest.mark.parametrize("flags", [["--minutes", "0"], ["--points", "0"], ["--threads", "99"], ["--opponents"]])
def test_nonsense_is_refused(folder, flags, capsys):
    with pytest.raises(SystemExit):
        draw_margins(folder, "--algorithms", "ppo", *flags)
    assert flags[0].strip("-") in capsys.readouterr().err


def test_the_clock_runs_inside_only_and_by_its_kind():
    wall, cpu = Clock(Setup()), Clock(Setup(threads=2, clock="cpu"))
    with wall, cpu:
        time.sleep(0.05)
    before = wall.wall, wall.cpu
    sum(range(10**6))
    assert (wall.wall, wall.cpu) == before
    assert wall.seconds == wall.wall >= 0.05
    assert cpu.seconds == cpu.cpu / 2 < 0.02
    with wall:
        time.sleep(0.01)
    assert wall.seconds >= before[0] + 0.01


def test_means_over_seeds_by_hand():
    assert show_mean([0.25], "{:+.3f}") == "+0.250"
    assert show_mean([0.1, 0.2, 0.3], "{:+.3f}") == "+0.200 (-0.048 to +0.448)"  # 4.3027 * 0.1 / sqrt(3)


def test_nash_conv(folder):
    flags = ["--games", "two cards", "--minutes", "0.001", "--points", "2", "--seeds", "0", "1", "--clock", "cpu"]
    nash_curves.main([*flags, "--folder", str(folder), "--write", str(folder / "text.md")], SHORT)
    record = Record(folder / "nash-curves.csv", nash_curves.COLUMNS, Setup(0.001, 2, 1, "cpu"))
    assert len(record.rows) == 2 * 2 * 2
    assert {row["infosets"] for row in record.rows} == {"27852"}
    assert {row["uniform_nash_conv"] for row in record.rows} == {"3.76889"}
    assert all(0 < float(row["nash_conv"]) < 8 for row in record.rows)
    ends = find_ends(record, algorithm="mmd", game="two cards")
    assert [row["seed"] for row in ends] == ["0", "1"]
    assert ends[0] is record.find(algorithm="mmd", seed=0)[-1]
    assert "\n| two cards each | 3.769 | MMD | 0.0" in (folder / "text.md").read_text("utf-8")
    assert "<svg" in (folder / "nash-curves.svg").read_text("utf-8")


class RandomModel:
    """Draws legal actions, as a model of SB3 is asked for them."""

    def __init__(self):
        self.stream = np.random.default_rng(0)

    def predict(self, vectors, action_masks):
        assert vectors.shape[0] == action_masks.shape[0]
        return np.array([self.stream.choice(np.flatnonzero(mask)) for mask in action_masks]), None


def test_the_learning_seat_of_each_table_is_paid_each_hand_once():
    pytest.importorskip("sb3_contrib")
    from benchmarks.self_play import SelfPlayTables

    env = SelfPlayTables(4, Rules(target=1000, max_hands=5000))
    env.model = RandomModel()
    env.seed(5)
    env.reset()
    assert [table.agent_selection for table in env.tables] == [f"player_{seat}" for seat in range(4)]
    paid, settled = np.zeros(4), np.zeros(4, int)
    for _ in range(150):
        vectors, rewards, dones, _ = env.step(env.model.predict(vectors=env.action_masks(), action_masks=env._masks)[0])
        assert not rewards[~dones].any()
        paid += rewards
        settled += dones
    scores = np.array([table.table["scores"][0, :4] for table in env.tables]).astype(float)
    own = scores.diagonal()
    assert settled.tolist() == [int(table.table["num_hands"][0]) for table in env.tables]
    assert settled.min() > 15
    assert paid == pytest.approx(own - (scores.sum(1) - own) / 3, abs=1e-3)
    seen = [table.observe(table.agent_selection)["observation"] for table in env.tables]
    assert np.array_equal(vectors, seen)
    assert env.num_decisions > 4 * 150


@pytest.fixture
def small_rollouts(monkeypatch):
    pytest.importorskip("sb3_contrib")
    from benchmarks import self_play

    monkeypatch.setattr(self_play, "_NUM_TABLES", 8)
    monkeypatch.setattr(self_play, "_ROLLOUT", 64)
    with torch.random.fork_rng():
        yield self_play


@pytest.mark.usefixtures("small_rollouts")
def test_maskable_ppo(folder):
    rows = draw_margins(folder, "--algorithms", "maskable_ppo", "--seeds", "0")
    assert [row["total_steps"] for row in rows] == ["", ""]
    assert int(rows[1]["decisions"]) >= int(rows[0]["decisions"]) > 64
    assert float(rows[1]["seconds"]) >= 0.06
    assert "| MaskablePPO of sb3-contrib |" in (folder / "text.md").read_text("utf-8")


def test_a_model_is_measured_by_what_it_learned_from(small_rollouts):
    """The agent's answers are the model's own, from the observations and masks of the environment."""
    _, agent = next(small_rollouts.train(Rules(), 0))
    env = pitch_v0.raw_env()
    env.reset(seed=3)
    views, wanted = [], []
    for _ in range(20):
        seen = env.observe(env.agent_selection)
        views.append(view_table(env.table, int(env.table["seat"][0])))
        action, _ = agent.model.predict(seen["observation"], action_masks=seen["action_mask"], deterministic=True)
        wanted.append(int(action))
        env.step(int(action))
    assert agent.act(np.concatenate(views), np.zeros(20, np.uint64)).tolist() == wanted
