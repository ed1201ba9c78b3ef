"""Files of tensors: safetensors with a JSON head that says what they are.

They hold data only, so that reading one cannot run code.
"""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

_HEAD = "pitch"  # key of the head in the file's metadata


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file so that a crash leaves the old one or the new one, never a part."""
    path = Path(path)
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()  # on a full disk every byte counts
        raise


def write_tensors(
    path: str | Path, what: str, version: int, head: dict[str, Any], tensors: dict[str, torch.Tensor]
) -> None:
    """Write a file of tensors, whole or not at all.

    Args:
        path: the file.
        what: what it is, in a word such as "policy".
        version: of its format.
        head: JSON-ready facts.
        tensors: by name.
    """
    head = {"format": f"pitch-{what}", "format_version": version, **head}
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, save(plain, {_HEAD: json.dumps(head)}))


def read_tensors(path: str | Path, what: str, version: int) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The head and the tensors of a file that `write_tensors` wrote.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is torn, something else, or of another version of the format; the text names the file.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no {what} file {path}")
    try:
        with safe_open(str(path), framework="pt") as file:
            head = json.loads((file.metadata() or {}).get(_HEAD, "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a dict)
    except (SafetensorError, OSError, ValueError) as error:
        raise ValueError(f"{path} is torn or no {what} file: {error}") from None
    if not isinstance(head, dict) or head.get("format") != f"pitch-{what}":
        raise ValueError(f"{path} is no {what} file: its head does not say 'pitch-{what}'")
    if head.get("format_version") != version:
        raise ValueError(f"{path} has {what} format {head.get('format_version')!r}; this version reads {version}")
    return head, tensors
