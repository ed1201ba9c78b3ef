"""A measurement in chunks of deals, which threads share, and which a file can keep so that a stopped one goes on.

The file is JSON lines, data only: first the key, everything that decides the result, then one line for each chunk. A
line is only ever added at the end, so whatever ends the process leaves whole lines and at most a torn last one, which
is dropped. Since nothing depends on how deals are cut into chunks, the result is that of a measurement never stopped.
"""

import base64
import binascii
import copy
import hashlib
import importlib.metadata
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import agents
from agents.options import split_name
from pitch_env.layout import LAYOUT_VERSION
from pitch_env.rules import Rules

Part = tuple[np.ndarray, ...]
Report = Callable[[str, int, int], None]

FORMAT, VERSION = "pitch-measurement", 1
_FIRST = 4  # deals of the first chunks where chunks are kept; they grow and shrink to take about as long as this:
_SECONDS = 5.0
_ARRAYS = ("<f8", "<i8", "<i2")


def identify_agent(name: str, rules: Rules | None = None) -> str:
    """What tells an agent of `agents.load` from others: its name, or digests of the files that it is read from."""
    is_search, base, options = split_name(name)
    if not is_search and base in (*agents.names(), agents.ISMCTS) and base != agents.TRAINED:
        return name
    path = agents.find_trained(rules) if base == agents.TRAINED else Path(base if is_search else name)
    if path.is_dir():
        path = path / f"policy{agents.POLICY_SUFFIX}"
    files = [path, path.with_name(f"equity{agents.POLICY_SUFFIX}")] if is_search else [path]
    digests = " ".join(hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file())
    return f"search:sha256 {digests}{options and '?'}{options}" if is_search else f"sha256 {digests}"


def describe_code() -> dict[str, Any]:
    """Versions of what plays: packages, the observation layout, a digest of this project's sources and policies."""
    digest = hashlib.sha256()
    root = Path(agents.__file__).parents[1]
    for package in ("pitch_env", "agents"):
        for path in sorted((root / package).rglob("*")):
            if path.suffix in (".py", agents.POLICY_SUFFIX):
                digest.update(path.read_bytes())
    versions = {name: importlib.metadata.version(name) for name in ("numpy", "torch")}
    return {"layout": LAYOUT_VERSION, "sources": digest.hexdigest(), **versions}


def _list_differences(there: Any, here: Any, name: str = "") -> list[str]:
    if isinstance(there, dict) and isinstance(here, dict):
        return [
            text
            for key in dict.fromkeys([*here, *there])
            for text in _list_differences(there.get(key), here.get(key), f"{name} {key}".strip())
        ]
    return [] if there == here else [f"{name} {there} instead of {here}"]


def _pack(array: np.ndarray) -> list:
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return [array.dtype.str, list(array.shape), base64.b64encode(array.tobytes()).decode()]


def _unpack(values: list) -> np.ndarray:
    kind, shape, text = values
    if kind not in _ARRAYS:
        raise ValueError(f"no array of {kind!r}")
    array = np.frombuffer(base64.b64decode(text, validate=True), kind).reshape(shape)
    return array.astype(array.dtype.newbyteorder("="))


class SavedChunks:
    """Chunks that a file keeps; see the module.

    Args:
        path: the file, made if there is none.
        key: everything that decides the result, JSON-ready.

    Raises:
        ValueError: if the file holds another measurement, naming what differs, or none, or a damaged one.
    """

    def __init__(self, path: str | Path, key: dict[str, Any]) -> None:
        self.path = Path(path)
        self._prefix = ""
        self._chunks: dict[str, list[tuple[int, int, Part]]] = {}
        key = json.loads(json.dumps(key))
        head = json.dumps({"format": FORMAT, "version": VERSION, "key": key}).encode() + b"\n"
        content = self.path.read_bytes() if self.path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if whole:
            whole = whole if self._read(whole.splitlines(), key) else b""
        elif not head.startswith(content):
            raise ValueError(f"{self.path} is no saved measurement: give another file")
        with open(self.path, "ab") as file:
            file.truncate(len(whole))
        if not whole:
            self._append(head)

    def _read(self, lines: list[bytes], key: dict[str, Any]) -> bool:
        """Take in what is kept; returns whether it is of this measurement, or of another one that nothing came of."""
        try:
            head = json.loads(lines[0])
            if head["format"] != FORMAT or head["version"] != VERSION:
                raise ValueError
            there = head["key"]
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{self.path} is no saved measurement of format {VERSION}: give another file") from None
        if there != key:
            if len(lines) == 1:
                return False
            different = ", ".join(_list_differences(there, key))
            raise ValueError(f"{self.path} holds another measurement: {different}; give another file")
        for number, line in enumerate(lines[1:], 2):
            try:
                word, low, high, part = json.loads(line)
                self._remember(word, low, high, tuple(map(_unpack, part)))
            except (ValueError, TypeError, AttributeError, binascii.Error) as error:
                raise ValueError(f"{self.path}, line {number} is damaged: {error}") from None
        return True

    def _remember(self, word: str, low: int, high: int, part: Part) -> None:
        chunks = self._chunks.setdefault(word, [])
        if low == (chunks[-1][1] if chunks else 0):  # two processes that kept in one file kept the same twice
            chunks.append((low, high, part))

    def _append(self, line: bytes) -> None:
        with open(self.path, "ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def under(self, name: str) -> "SavedChunks":
        """The same file for a measurement that is one of several, each with a name of its own."""
        other = copy.copy(self)
        other._prefix = f"{self._prefix}{name} "
        return other

    def list_done(self, word: str, first: int, last: int) -> list[tuple[int, int, Part]]:
        """Chunks that are done from first to last, in order and without a gap: (low, high, arrays)."""
        return [chunk for chunk in self._chunks.get(self._prefix + word, []) if first <= chunk[0] < chunk[1] <= last]

    def add(self, word: str, low: int, high: int, part: Part) -> None:
        """Keep the chunk from low to high; it is on the disk when this returns."""
        word = self._prefix + word
        self._append(json.dumps([word, low, high, [_pack(array) for array in part]]).encode() + b"\n")
        self._remember(word, low, high, part)


def play_chunks(
    play: Callable[[int, int], Part],
    word: str,
    first: int,
    last: int,
    total: int,
    size: int,
    num_threads: int,
    report: Report | None = None,
    saved: SavedChunks | None = None,
) -> list[Part]:
    """Everything from first to last in order, played in chunks of up to `size` or known already.

    Args:
        play: called with the low and the high end of a chunk, from several threads at once.
        word: "deals" or "matches".
        total: what `report` is told there is in all.
    """
    known = [] if saved is None else saved.list_done(word, first, last)
    parts = [part for _, _, part in known]
    done = known[-1][1] if known else first
    if report is not None and done > first:
        report(word, done, total)
    most = max(1, min(size, -(-(last - done) // num_threads)))
    size = most if saved is None else min(_FIRST, most)
    threads = ThreadPoolExecutor(num_threads)
    try:
        while done < last:
            lows = range(done, last, size)[: None if saved is None else num_threads]
            highs = [min(low + size, last) for low in lows]
            clock = time.monotonic()
            for high, part in zip(highs, (threads.map if num_threads > 1 else map)(play, lows, highs), strict=True):
                if saved is not None:
                    saved.add(word, done, high, part)
                parts.append(part)
                done = high
                if report is not None:
                    report(word, done, total)
            spent = time.monotonic() - clock
            size = min(2 * size, most) if spent < _SECONDS else max(size // 2, 1) if spent > 4 * _SECONDS else size
    finally:
        threads.shutdown(cancel_futures=True)
    return parts
