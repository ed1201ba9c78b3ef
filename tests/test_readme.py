"""The README keeps its word: its code runs, its quick commands work, and what is generated in it is up to date."""

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from agents.policy import PolicySpec, write_policy
from pitch_env import Rules

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
SNIPPETS = [text for language, text in BLOCKS if language == "python"]
COMMANDS = [line.split("#")[0].strip() for language, text in BLOCKS if language == "bash" for line in text.splitlines()]
RUN_TARGETS = {target for command in COMMANDS for target in re.findall(r"^make ([a-z-]+)", command)}


def name_snippet(text):
    return text.strip().splitlines()[-1][:40]


@pytest.fixture
def run_folder(tmp_path, monkeypatch):
    """A folder to stand in, in which a training run left its policy (here an untrained one)."""
    spec = PolicySpec(Rules(), (16, 16), Rules().num_players)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        weights = spec.new_network().state_dict()
    folder = tmp_path / "runs" / "quick-seed0"
    folder.mkdir(parents=True)
    write_policy(folder / "policy.safetensors", spec, weights)
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.mark.parametrize("text", SNIPPETS, ids=name_snippet)
@pytest.mark.usefixtures("run_folder")
def test_snippet_runs(text):
    exec(compile(text, "README.md", "exec"), {"__name__": "readme"})


def test_snippet_with_a_trained_bot_shows_the_end_of_a_match(run_folder, capsys):
    assert run_folder.is_dir()
    (text,) = [text for text in SNIPPETS if 'agents.load("trained")' in text]
    exec(compile(text, "README.md", "exec"), {"__name__": "readme"})
    assert "wins the match" in capsys.readouterr().out


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("python -m ")])
def test_command_works(command, tmp_path):
    words = [sys.executable, *shlex.split(command)[1:]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_flags_of_train_are_known():
    from train import build_parser

    lines = [shlex.split(command)[2:] for command in COMMANDS if command.startswith("python train.py")]
    assert lines
    for line in lines:
        build_parser().parse_args(line)
        assert (ROOT / line[line.index("--config") + 1]).is_file()


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert {"train", "test"} <= RUN_TARGETS
    for target in RUN_TARGETS:
        assert re.search(rf"^{target}:.*## ", makefile, re.MULTILINE), f"make {target} is not in the Makefile"


@pytest.mark.parametrize(
    "document",
    ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/rules.md", "docs/design.md", "docs/training.md"],
)
def test_links_lead_somewhere(document):
    path = ROOT / document
    for link in re.findall(r"\]\((?!https?://)([^)#]+)\)", path.read_text("utf-8")):
        assert (path.parent / link).exists(), f"{document} links to {link}"


def test_tests_named_in_the_documents_exist():
    named = re.findall(r"`(tests/\w+\.py)::(\w+)`", (ROOT / "docs" / "training.md").read_text("utf-8"))
    assert len(named) > 20
    for path, name in named:
        assert f"def {name}(" in (ROOT / path).read_text("utf-8"), f"{path}::{name}"


def test_every_rule_is_in_the_rules():
    text = (ROOT / "docs" / "rules.md").read_text("utf-8")
    assert re.findall(r"^- \*\*(R\d+)\*\*", text, re.MULTILINE) == [f"R{number}" for number in range(1, 20)]


def test_generated_parts_are_up_to_date():
    generate = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    for name in generate["FILES"]:
        text = (ROOT / name).read_text("utf-8")
        parts = {part for _, part, _ in generate["PART"].findall(text)}
        assert text == generate["bring_up_to_date"](text), f"{name} is out of date: run make docs"
        assert parts, f"{name} has no generated part"


def test_bring_up_to_date_leaves_other_parts():
    bring_up_to_date = runpy.run_path(str(ROOT / "docs" / "generate.py"))["bring_up_to_date"]
    text = "<!-- begin: bots -->\nold\n<!-- end -->\n<!-- begin: speed -->\nkept\n<!-- end -->\n"
    fresh = bring_up_to_date(text)
    assert "old" not in fresh
    assert "`random`" in fresh
    assert fresh.endswith("<!-- begin: speed -->\nkept\n<!-- end -->\n")
