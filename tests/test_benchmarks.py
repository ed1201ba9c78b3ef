"""Every benchmark runs and gives its rows; no figure is judged."""

import json
import math

import numpy as np
import pytest
import torch

import agents
from agents.arena.ladder import LADDER
from agents.search.worlds import sample_worlds
from agents.training.config import Config
from benchmarks import beliefs, imports, ladder, trained, training_profile
from benchmarks.__main__ import NAMES, main, run
from benchmarks.report import END, Report, Row, show, write_between_marks
from benchmarks.timing import Options, Timing, repeat, time_in_turn
from pitch_env import Rules
from pitch_env.view import view_tables

TINY = Options(seconds=1e-3, rounds=2, has_peers=False, tables=(8, 16), hands=32, matches=8)

BEGIN = "<!-- begin: speed -->"


@pytest.fixture(autouse=True)
def _same_number_of_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", NAMES)
def test_runs_without_peers(name):
    report = Report()
    run([name], TINY, report)
    assert report.rows
    for row in report.rows:
        assert math.isfinite(row.ours)
        assert row.ours > 0 or row.unit in ("share", "points/hand"), row.what
        assert all(isinstance(cell, str) for cell in row.cells())
    report.print_table()
    assert json.loads(json.dumps(report.to_dict()))["rows"]


def test_shares_add_up():
    shares = training_profile.measure_shares("float32", TINY)
    assert sum(shares.values()) == pytest.approx(1)


def test_the_truth_surprises_nobody_who_knows_it(capsys):
    rules = Rules(num_players=2)
    tables = beliefs.draw_positions(agents.load("random"), rules, 30, 1)
    assert len(set(tables["num_plays"].tolist())) > 5
    views, seeds = view_tables(tables, tables["seat"]), np.arange(len(tables), dtype=np.uint64)
    knows = beliefs.measure_surprise(np.repeat(tables, 8).reshape(-1, 8), tables, views)
    guesses = beliefs.measure_surprise(sample_worlds(views, 8, seeds).reshape(-1, 8), tables, views)
    has_hidden = ~np.isnan(guesses)
    assert knows[has_hidden] == pytest.approx(math.log(9 / 8.5))
    assert guesses[has_hidden].mean() > 1
    beliefs.main(["--players", "2", "--positions", "12", "--worlds", "4"])
    assert "| auction | " in capsys.readouterr().out


def test_sides_take_turns():
    turns = []
    runs = {name: repeat(lambda name=name: turns.append(name) or 1) for name in "ab"}
    timings = time_in_turn({**runs, "missing": None}, Options(seconds=0, rounds=3))
    assert turns == list("ab" * 4)  # a warm-up, then the rounds
    assert list(timings) == ["a", "b"]
    assert len(timings["a"].rates) == 3


def test_ratio_is_taken_round_by_round():
    ours, peer = Timing((2.0, 4.0, 9.0), None), Timing((1.0, 4.0, 3.0), None)
    assert ours.rate == 4
    assert ours.over(peer) == (2, 1, 3)


def test_cells():
    row = Row("x", 9e6, peer="y", peer_figure=3e6, ratio=(3, 2.5, 12), goal=8e6, ratio_goal=5)
    assert row.cells() == (
        "x",
        "1",
        "9 M decisions/s",
        "y: 3 M decisions/s",
        "3.00x (2.50x to 12x)",
        "≥ 8 M decisions/s ✓, ≥ 5.00x ✗",
    )
    assert Row("x", 1.25, unit="s", goal=1.5).cells()[-1] == "≤ 1.5 s ✓"
    assert show(0.123, "share") == "12.3 %"


def test_table_goes_between_the_marks(tmp_path):
    path = tmp_path / "README.md"
    path.write_text(f"{END}\na\n{BEGIN}\nold\n{END}\nb\n{END}\n", encoding="utf-8")
    write_between_marks(path, "new")
    write_between_marks(path, "newer")
    assert path.read_text(encoding="utf-8") == f"{END}\na\n{BEGIN}\nnewer\n{END}\nb\n{END}\n"
    path.write_text(f"{END}\n{BEGIN}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="needs one line"):
        write_between_marks(path, "new")


def test_command_line(tmp_path, capsys):
    (tmp_path / "README.md").write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    files = ["--json", str(tmp_path / "speed.json"), "--write", str(tmp_path / "README.md")]
    main(["imports", "--seconds", "0.001", "--rounds", "1", "--no-peers", *files])
    assert "pitch_env" in capsys.readouterr().out
    assert len(json.loads((tmp_path / "speed.json").read_text())["rows"]) == 2
    assert "| Process that imports pitch_env |" in (tmp_path / "README.md").read_text(encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["engines"])
    assert "there is no benchmark 'engines'" in capsys.readouterr().err


def test_strength_of_what_comes_with_the_package_is_tabulated(tmp_path, monkeypatch, capsys):
    """By a bot in the place of the trained policy, whose strength this is not about."""
    path = tmp_path / "README.md"
    path.write_text(f"<!-- begin: trained -->\n{END}\n<!-- begin: ladder -->\n{END}\n", encoding="utf-8")
    monkeypatch.setattr("agents.TRAINED", "rules")
    monkeypatch.setattr(trained, "KINDS", {"three players": Rules(num_players=3), "two teams": Rules(teams=True)})
    monkeypatch.setattr(ladder, "LADDER", LADDER[2:4])
    flags = ["--deals", "4", "--matches", "2", "--threads", "1", "--write", str(path)]
    trained.main(flags)
    ladder.main([*flags, "--against", "baby", "alphonso"])
    lines = path.read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith(("| three players | ", "| two teams | ")) for line in lines) == 4
    assert lines.count("| Table | Equal share | " + " | ".join(f"`{name}`" for name in Config().opponents) + " |") == 1
    assert any(line.startswith("| three players | 33.3% | ") for line in lines)
    assert sum(line.startswith("| `alphonso` | ") for line in lines) == 2
    assert any(
        "`python -m benchmarks.ladder --deals 4 --matches 2 --seed 1 --against baby alphonso`" in line for line in lines
    )
    assert "baby" in capsys.readouterr().out


def test_strength_that_runs_measured_is_tabulated_alike(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("agents.TRAINED", "rules")
    monkeypatch.setattr(trained, "KINDS", {"3 players": Rules(num_players=3)})
    results = trained.measure(Rules(num_players=3), 4, 2, 1, 1)
    folder = tmp_path / "players3"
    folder.mkdir()
    (folder / "evaluation.json").write_text(json.dumps([one.to_dict() for one in results]), encoding="utf-8")
    trained.main(["--deals", "4", "--matches", "2", "--threads", "1"])
    measured = capsys.readouterr().out
    trained.main(["--runs", str(tmp_path)])
    assert capsys.readouterr().out == measured


def test_runs_that_make_no_table_are_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("agents.TRAINED", "rules")
    kinds = {f"{players} players": Rules(num_players=players) for players in (3, 5)}
    monkeypatch.setattr(trained, "KINDS", kinds)
    for num_deals, rules in enumerate(kinds.values(), 4):
        with pytest.raises(SystemExit):
            trained.main(["--runs", str(tmp_path)])
        assert "must have ended" in capsys.readouterr().err
        results = trained.measure(rules, num_deals, 2, 1, 1)
        folder = tmp_path / f"players{rules.num_players}"
        folder.mkdir()
        (folder / "evaluation.json").write_text(json.dumps([one.to_dict() for one in results]), encoding="utf-8")
    with pytest.raises(SystemExit):
        trained.main(["--runs", str(tmp_path)])
    assert "different deals" in capsys.readouterr().err


def test_heavy_imports_are_told():
    assert imports.find_heavy_imports() == []
