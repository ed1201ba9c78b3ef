"""Saved measurements: one that is killed and goes on ends like one never stopped, and no file is taken for another."""

import base64
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from agents.arena import play_duplicate, play_league
from agents.arena.__main__ import main
from agents.arena.chunks import SavedChunks, describe_code, identify_agent, play_chunks
from agents.arena.ladder import LADDER, climb
from agents.random_bots import RandomAgent
from agents.rule_bots import AlphonsoAgent, BabyAgent, TricksterAgent
from pitch_env import Rules

KEY = {"seed": 1, "rules": {"target": 7, "teams": False}}
COMMAND = ["match", "random", "alphonso", "--deals", "60", "--matches", "30", "--seed", "4", "--json"]


class Stopping(RandomAgent):
    """Plays like its class until it has been asked a number of times; then it is as if Ctrl-C were pressed."""

    def __init__(self, num_asks):
        super().__init__()
        self.num_asks = num_asks

    def act(self, views, seeds):
        self.num_asks -= 1
        if self.num_asks < 0:
            raise KeyboardInterrupt
        return super().act(views, seeds)


def measure(agent, saved=None, **how):
    return play_duplicate(agent, AlphonsoAgent(), Rules(num_players=3), 60, 30, 6, saved=saved, **how)


@pytest.mark.parametrize("until_clear", [False, True])
def test_a_stopped_measurement_goes_on_whatever_the_chunks(tmp_path, until_clear):
    path = tmp_path / "saved.jsonl"
    whole = measure(RandomAgent(), until_clear=until_clear)
    num_stops = 0
    for chunk_tables in (3, 1000, 7, 50):
        with pytest.raises(KeyboardInterrupt):
            measure(Stopping(30), SavedChunks(path, KEY), chunk_tables=chunk_tables, until_clear=until_clear)
        num_stops += 1
    assert path.read_bytes().count(b"\n") > num_stops
    assert measure(RandomAgent(), SavedChunks(path, KEY), num_threads=2, until_clear=until_clear) == whole
    # all is known now: nobody is asked any more
    assert measure(Stopping(0), SavedChunks(path, KEY), until_clear=until_clear) == whole


def test_leagues_and_ladders_go_on_too(tmp_path):
    def league(agent, saved=None):
        return play_league([agent, BabyAgent()], None, 20, 6, 3, names=["one", "two"], saved=saved).to_dict()

    with pytest.raises(KeyboardInterrupt):
        league(Stopping(60), SavedChunks(tmp_path / "league", KEY))
    assert (tmp_path / "league").read_bytes().count(b"\n") > 2
    assert league(RandomAgent(), SavedChunks(tmp_path / "league", KEY)) == league(RandomAgent())

    def ladder(agent, saved=None):
        return climb(agent, None, 20, 6, 3, name="one", rungs=LADDER[:3], saved=saved)

    with pytest.raises(KeyboardInterrupt):
        ladder(Stopping(400), SavedChunks(tmp_path / "ladder", KEY))
    assert ladder(RandomAgent(), SavedChunks(tmp_path / "ladder", KEY)) == ladder(RandomAgent())
    assert ladder(Stopping(0), SavedChunks(tmp_path / "ladder", KEY)) == ladder(RandomAgent())


def play_squares(low, high):
    numbers = np.arange(low, high)
    return numbers * numbers, np.array([float(high - low)])


@pytest.mark.parametrize("num_threads", [1, 3])
def test_chunks_come_in_order_and_grow(tmp_path, num_threads):
    saved = SavedChunks(tmp_path / "saved", KEY)
    told = []
    parts = play_chunks(
        play_squares, "deals", 0, 100, 100, 50, num_threads, lambda *call: told.append(call), saved.under("some")
    )
    assert np.concatenate([part[0] for part in parts]).tolist() == [number**2 for number in range(100)]
    sizes = [len(part[0]) for part in parts]
    assert sizes[0] == 4
    assert max(sizes) > 8
    assert told[-1] == ("deals", 100, 100)
    again = SavedChunks(tmp_path / "saved", KEY).under("some").list_done("deals", 0, 100)
    assert [(low, high) for low, high, _ in again] == list(
        zip(np.cumsum([0, *sizes[:-1]]).tolist(), np.cumsum(sizes).tolist(), strict=True)
    )
    for (_, _, ours), theirs in zip(again, parts, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert one.dtype == other.dtype
            assert one.tolist() == other.tolist()
    assert SavedChunks(tmp_path / "saved", KEY).list_done("deals", 0, 100) == []


@pytest.mark.parametrize("num_bytes", [1, 2, 30])
def test_a_torn_last_line_is_dropped(tmp_path, num_bytes):
    path = tmp_path / "saved"
    saved = SavedChunks(path, KEY)
    saved.add("deals", 0, 2, play_squares(0, 2))
    whole = path.read_bytes()
    saved.add("deals", 2, 5, play_squares(2, 5))
    path.write_bytes(path.read_bytes()[:-num_bytes])
    again = SavedChunks(path, KEY)
    assert path.read_bytes() == whole
    assert [chunk[:2] for chunk in again.list_done("deals", 0, 5)] == [(0, 2)]
    path.write_bytes(whole[:20])  # the key itself was torn
    assert SavedChunks(path, KEY).list_done("deals", 0, 5) == []


def test_a_file_that_holds_nothing_yet_is_taken_for_another_measurement(tmp_path):
    path = tmp_path / "saved"
    SavedChunks(path, {**KEY, "deals": 1})  # came to nothing
    saved = SavedChunks(path, KEY)
    saved.add("deals", 0, 2, play_squares(0, 2))
    with pytest.raises(ValueError, match="holds another measurement"):
        SavedChunks(path, {**KEY, "deals": 1})
    assert [chunk[:2] for chunk in SavedChunks(path, KEY).list_done("deals", 0, 2)] == [(0, 2)]


def test_what_two_processes_kept_counts_once(tmp_path):
    one, other = (SavedChunks(tmp_path / "saved", KEY) for _ in range(2))
    one.add("deals", 0, 4, play_squares(0, 4))
    other.add("deals", 0, 3, play_squares(0, 3))
    one.add("deals", 4, 6, play_squares(4, 6))
    chunks = SavedChunks(tmp_path / "saved", KEY).list_done("deals", 0, 9)
    assert [chunk[:2] for chunk in chunks] == [(0, 4), (4, 6)]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"my notes", "is no saved measurement"),
        (b"my notes\n", "is no saved measurement"),
        (b'{"format": "pitch-measurement", "version": 2, "key": {}}\n', "of format 1"),
        (b"[]\n", "is no saved measurement"),
    ],
)
def test_another_file_is_refused_and_left_alone(tmp_path, content, reason):
    (tmp_path / "notes").write_bytes(content)
    with pytest.raises(ValueError, match=reason):
        SavedChunks(tmp_path / "notes", KEY)
    assert (tmp_path / "notes").read_bytes() == content


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"[]",
        b'["deals", 0, 1, [["|O", [1], "AAAA"]]]',
        b'["deals", 0, 1, [["<i8", [2], "%s"]]]' % base64.b64encode(bytes(8)),
        b'["deals", 0, 1, [["<i8", [1], "!"]]]',
    ],
)
def test_a_damaged_line_is_named(tmp_path, line):
    SavedChunks(tmp_path / "saved", KEY).add("deals", 0, 2, play_squares(0, 2))
    with open(tmp_path / "saved", "ab") as file:
        file.write(line + b"\n")
    with pytest.raises(ValueError, match=r"saved, line 3 is damaged"):
        SavedChunks(tmp_path / "saved", KEY)


def test_another_measurement_is_refused_by_name(tmp_path):
    SavedChunks(tmp_path / "saved", KEY).add("deals", 0, 2, play_squares(0, 2))
    other = {"seed": 2, "rules": {"target": 11, "teams": False}}
    with pytest.raises(ValueError, match="seed 1 instead of 2, rules target 7 instead of 11; give another file"):
        SavedChunks(tmp_path / "saved", other)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (["--seed", "5"], "seed 4 instead of 5"),
        (["--deals", "61"], "deals 60 instead of 61"),
        (["--players", "3"], "rules num_players 4 instead of 3"),
        (["--until-clear"], "until_clear False instead of True"),
    ],
)
def test_the_command_refuses_the_file_of_another_one(tmp_path, changes, reason, capsys):
    command = [*COMMAND, "--save", str(tmp_path / "saved")]
    assert main(command) == 0
    first = capsys.readouterr().out
    assert main([*command, "--threads", "2"]) == 0
    assert capsys.readouterr().out == first
    assert main([*command, *changes]) == 2
    captured = capsys.readouterr()
    assert reason in captured.err
    assert captured.out == ""


def test_a_policy_is_known_by_its_file(tmp_path):
    (tmp_path / "policy.safetensors").write_bytes(b"weights")
    known = identify_agent(str(tmp_path))
    assert known == identify_agent(str(tmp_path / "policy.safetensors"))
    assert identify_agent(f"search:{tmp_path}?worlds=9") == f"search:{known}?worlds=9"
    for name in ("baby", "pimc?worlds=10", "pimc?worlds=100", "ismcts?simulations=9"):
        assert identify_agent(name) == name
    (tmp_path / "equity.safetensors").write_bytes(b"what scores are worth")
    assert identify_agent(str(tmp_path)) == known
    assert identify_agent(f"search:{tmp_path}") != f"search:{known}"
    (tmp_path / "policy.safetensors").write_bytes(b"other weights")
    assert identify_agent(str(tmp_path)) != known


def test_code_is_known_by_its_sources_and_the_policies_beside_them(tmp_path, monkeypatch):
    folder = tmp_path / "agents" / "trained"
    folder.mkdir(parents=True)
    monkeypatch.setattr("agents.__file__", str(tmp_path / "agents" / "__init__.py"))
    digests = []
    for name in ("a.py", "notes.txt", "policy.safetensors", "a.py"):
        with open(folder / name, "a") as file:
            file.write("more")
        digests.append(describe_code()["sources"])
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_an_interrupt_ends_with_the_way_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("agents.load", lambda *_: Stopping(40))
    path = tmp_path / "saved"
    assert main([*COMMAND, "--save", str(path)]) == 130
    assert capsys.readouterr().err == (
        f"interrupted; what was played is in {path}, and the same command goes on from there\n"
    )
    assert main(COMMAND) == 130
    assert capsys.readouterr().err == "interrupted; with --save FILE the same command would go on from here\n"


@pytest.mark.parametrize("command", [["exploit", "baby", "--save", "response"], ["scenarios", "baby"]])
def test_an_interrupt_promises_nothing_that_no_command_does(command, monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("agents.load", stop)
    assert main(command) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT] if os.name == "posix" else [signal.SIGTERM])
def test_a_killed_process_is_gone_on_from(tmp_path, stop):
    path = tmp_path / "saved"
    command = ["match", "trickster", "alphonso", "--deals", "3000000", "--matches", "0", "--json", "--save", str(path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "agents.arena", *command],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored where tests run in the background
    )
    with process:
        while process.poll() is None and not (path.exists() and path.read_bytes().count(b"\n") > 5):
            time.sleep(0.02)
        process.send_signal(stop)
        errors = process.stderr.read()
    assert process.returncode == (130 if stop == signal.SIGINT else -stop)
    if stop == signal.SIGINT:
        assert errors.splitlines()[-1].endswith("the same command goes on from there")
    key = json.loads(path.read_bytes().splitlines()[0])["key"]
    saved = SavedChunks(path, key)
    done = saved.list_done("deals", 0, 3_000_000)
    assert done[0][1] >= 4
    num_deals = done[-1][1] + 100  # a few more than were played: the first deals do not depend on how many follow
    how = Rules(), num_deals, 0, 0
    assert play_duplicate(TricksterAgent(), AlphonsoAgent(), *how, saved=saved) == play_duplicate(
        TricksterAgent(), AlphonsoAgent(), *how
    )
