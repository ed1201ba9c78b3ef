"""Bit tricks, kept kernels that never outlive their source, and a word while the first compilation runs."""

import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numba import njit

from pitch_env import engine, kernels
from pitch_env.kernels import _CompileNotice, _source_stamp, is_interrupt

ROOT = Path(__file__).parents[1]


@njit
def look_at(mask, index):
    return kernels.count(mask), kernels.lowest(mask), kernels.highest(mask), kernels.nth(mask, index)


@njit
def bit(index):
    return kernels.bit(index)


def test_bits():
    rng = np.random.default_rng(1)
    masks = rng.integers(0, 2**64, 200, np.uint64) & rng.integers(0, 2**64, 200, np.uint64)
    for mask in [*masks.tolist(), 1, 2**63, 2**64 - 1, 2**51]:
        places = [place for place in range(64) if mask >> place & 1]
        for index in {0, len(places) - 1, len(places) // 2}:
            expected = (len(places), places[0], places[-1], places[index])
            assert look_at(np.uint64(mask), index) == expected


def test_bits_of_nothing():
    assert look_at(np.uint64(0), 0) == (0, 64, -1, 64)


def test_one_bit():
    assert [bit(index) for index in range(64)] == [1 << index for index in range(64)]


def test_the_stamp_changes_with_any_file_that_has_kernels(tmp_path):
    plain, part = tmp_path / "plain.py", tmp_path / "part.py"
    plain.write_text("x = 1\n")
    nothing = _source_stamp.__wrapped__(tmp_path)
    plain.write_text("x = 2\n")
    assert _source_stamp.__wrapped__(tmp_path) == nothing
    part.write_text("@part\ndef f(): return 1\n")
    one = _source_stamp.__wrapped__(tmp_path)
    part.write_text("@part\ndef f(): return 2\n")
    assert len({nothing, one, _source_stamp.__wrapped__(tmp_path)}) == 3


def test_every_kernel_of_the_game_has_the_stamp():
    stamp = _source_stamp(ROOT / "pitch_env")
    assert engine._apply_one._cache._cache_file._source_stamp == stamp
    assert engine.start_matches._cache._cache_file._source_stamp == stamp


def test_a_kept_kernel_is_not_used_when_another_file_changed(tmp_path):
    """What Numba alone gets wrong: the kernel's own file is untouched, the part that it calls is not."""
    (tmp_path / "calls.py").write_text(
        textwrap.dedent("""
            from part_of_it import number
            from pitch_env.kernels import kernel

            @kernel
            def call():
                return number()

            print(call(), sum(call.stats.cache_hits.values()))
        """)
    )
    source = "from pitch_env.kernels import part\n\n@part\ndef number():\n    return {}\n"
    answers = []
    for number in (1, 1, 2):
        (tmp_path / "part_of_it.py").write_text(source.format(number))
        command = [sys.executable, "-B", "calls.py"]
        environment = {"PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PATH": ""}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        answers.append(done.stdout.split())
    assert answers == [["1", "0"], ["1", "1"], ["2", "0"]]


def compile_event(module):
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__module__=module))})


@pytest.fixture
def notice(monkeypatch):
    monkeypatch.setattr(kernels, "_NOTICE_AFTER", 0.02)
    return _CompileNotice()


def test_a_long_compilation_is_announced_once(notice, capfd):
    ours = compile_event("pitch_env.engine")
    for _ in range(2):
        notice.on_start(ours)
        notice.on_start(ours)  # compiling one kernel compiles its parts
        time.sleep(0.2)
        notice.on_end(ours)
        notice.on_end(ours)
    captured = capfd.readouterr()
    assert captured.err.count("compiling the game for this machine") == 1
    assert captured.out == ""


def test_a_short_compilation_is_not_announced(notice, capfd):
    ours = compile_event("agents.random_bots")
    notice.on_start(ours)
    notice.on_end(ours)
    time.sleep(0.1)
    assert capfd.readouterr().err == ""


def test_compilations_of_others_are_not_announced(notice, capfd):
    notice.on_start(compile_event("somebody.else"))
    notice.on_start(SimpleNamespace(data=None))
    time.sleep(0.1)
    notice.on_end(compile_event("somebody.else"))
    notice.on_end(SimpleNamespace(data=None))
    assert capfd.readouterr().err == ""


def test_an_interrupt_is_known_behind_the_error_that_a_kernel_makes_of_it():
    hidden = SystemError("returned a result with an exception set")
    hidden.__cause__ = KeyboardInterrupt()
    assert is_interrupt(hidden)
    assert is_interrupt(KeyboardInterrupt())
    assert not is_interrupt(SystemError())
