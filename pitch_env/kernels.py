"""Compiled kernels: the two decorators, bit tricks, and a word to the user while the first compilation runs.

`kernel` marks what Python calls: compiled at the first call, kept on disk, releasing the GIL. `part` marks what only
kernels call. A kept kernel is used again only while no file with kernels has changed, which Numba alone does not check
across files.
"""

import hashlib
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import event
from numba.extending import intrinsic

U64 = np.uint64
ONE = np.uint64(1)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the step of SplitMix64 from one random number to the next

part = njit(inline="never")
_NOTICE_AFTER = 1.0  # seconds of compilation before the user is told


@cache
def _source_stamp(package: Path) -> str:
    """Hash of every source file with kernels that code in the package may call: its own and the game's."""
    digest = hashlib.sha256()
    for place in sorted({package, Path(__file__).parent}):
        for path in sorted(place.rglob("*.py")):
            source = path.read_bytes()
            if b"@kernel" in source or b"@part" in source:
                digest.update(source)
    return digest.hexdigest()


def kernel(function: Callable) -> Any:
    """Compile a function that Python calls; the result is kept on disk."""
    compiled: Any = njit(cache=True, nogil=True)(function)
    depth = function.__module__.count(".")
    package = Path(function.__code__.co_filename).parents[max(depth - 1, 0)]
    compiled._cache._cache_file._source_stamp = _source_stamp(package)
    return compiled


class _CompileNotice(event.Listener):
    """Says on stderr that kernels are being compiled, once, if it takes more than a second."""

    def __init__(self) -> None:
        self._depth = 0
        self._timer: threading.Timer | None = None
        self._is_told = False

    @staticmethod
    def _is_ours(data: Any) -> bool:
        module = data.data["dispatcher"].py_func.__module__ if data.data else ""
        return module.split(".")[0] in ("pitch_env", "agents")

    def _tell(self) -> None:
        self._is_told = True
        print(
            "pitch_env: compiling the game for this machine (once; the result is kept) ...", file=sys.stderr, flush=True
        )

    def on_start(self, event: Any) -> None:
        if not self._is_ours(event):
            return
        self._depth += 1
        if self._depth == 1 and not self._is_told:
            self._timer = threading.Timer(_NOTICE_AFTER, self._tell)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        if not self._is_ours(event):
            return
        self._depth -= 1
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()


event.register("numba:compile", _CompileNotice())


_intrinsic: Any = intrinsic  # its own types do not say that the first argument is left out in calls


@_intrinsic
def _count(typingctx, mask):
    def generate(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


@_intrinsic
def _trailing(typingctx, mask):
    def generate(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@_intrinsic
def _leading(typingctx, mask):
    def generate(context, builder, signature, args):
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@part
def count(mask):
    """Number of set bits of a uint64."""
    return np.int64(_count(mask))


@part
def lowest(mask):
    """Index of the lowest set bit; 64 for an empty mask."""
    return np.int64(_trailing(mask))


@part
def highest(mask):
    """Index of the highest set bit; -1 for an empty mask."""
    return np.int64(63) - np.int64(_leading(mask))


@part
def bit(index):
    """The mask with one bit set."""
    return ONE << U64(index)


@part
def nth(mask, index):
    """Position of the set bit with `index` set bits below it."""
    for _ in range(index):
        mask &= mask - ONE
    return lowest(mask)


@part
def scramble(z):
    """SplitMix64's finalizer: 64 bits of a counter as 64 random ones."""
    z = (z ^ (z >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U64(27))) * U64(0x94D049BB133111EB)
    return z ^ (z >> U64(31))


def is_interrupt(error: BaseException) -> bool:
    """Whether an error comes of Ctrl-C, which a kernel hides behind a SystemError if it is told of it on its way in."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__ or cause.__context__
    return cause is not None
