"""Checkpoints: everything a run needs to go on exactly as if it had never stopped.

A checkpoint is one safetensors file, written whole or not at all, with a digest of its content; nothing in it can run
code. A torn or foreign one is refused by name and the one before it is used.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agents.files import read_tensors, write_tensors
from agents.training.config import Config
from agents.training.learner import Learner
from pitch_env.layout import LAYOUT_VERSION
from pitch_env.table import TABLE

FORMAT_VERSION = 4


class CheckpointError(ValueError):
    """A file that is no checkpoint of this run; the text says which file and why."""


def _digest(tensors: dict[str, torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].numpy().tobytes())
    return digest.hexdigest()


def _networks(learner: Learner) -> dict[str, torch.nn.Module]:
    networks: dict[str, torch.nn.Module] = {
        "policy": learner.policy,
        "critic": learner.critic,
        "average": learner.average,
    }
    return networks if learner.magnet is None else {**networks, "magnet": learner.magnet}


def _gather_shards(learner: Learner) -> list[tuple[np.ndarray, ...]]:
    """Tables, streams and who sits where, of every shard of every process."""
    gather, sizes = learner.ranks.gather, [len(shard.tables) for shard in learner.shards]
    bounds = np.cumsum(np.concatenate(gather(np.array(sizes))))[:-1]
    parts = zip(*((shard.tables, shard.agent_streams, shard.seat_players) for shard in learner.shards), strict=True)
    arrays = [np.concatenate(gather(np.concatenate(part))) for part in parts]
    return list(zip(*(np.split(array, bounds) for array in arrays), strict=True))


def _gather_generators(learner: Learner) -> list[dict[str, Any]]:
    """States of the shards' generators of every process."""
    text = json.dumps([shard.generator.bit_generator.state for shard in learner.shards])
    parts = learner.ranks.gather(np.frombuffer(text.encode(), np.uint8))
    return [state for part in parts for state in json.loads(part.tobytes().decode())]


def _pack(learner: Learner) -> dict[str, torch.Tensor]:
    """All arrays of a learner's state by name."""
    tensors: dict[str, torch.Tensor] = {}
    for name, network in _networks(learner).items():
        tensors.update({f"{name}.{key}": tensor for key, tensor in network.state_dict().items()})
    for index, parameter in enumerate(learner.optimizer.param_groups[0]["params"]):
        for key, tensor in learner.optimizer.state[parameter].items():
            tensors[f"adam.{index}.{key}"] = tensor
    for index, (tables, streams, seats) in enumerate(_gather_shards(learner)):
        tensors[f"shard.{index}.tables"] = torch.from_numpy(tables.view(np.uint8).reshape(-1))
        tensors[f"shard.{index}.streams"] = torch.from_numpy(streams.view(np.int64))
        tensors[f"shard.{index}.seats"] = torch.from_numpy(seats)
    if learner.equity is not None:
        tensors.update({f"equity.{key}": tensor for key, tensor in learner.equity.pack().items()})
        tensors["gain_sizes"] = learner.gain_sizes.sums
    for index, member in enumerate(learner.pool.members):
        if member.network is not None:
            tensors.update({f"member.{index}.{key}": tensor for key, tensor in member.network.state_dict().items()})
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def _part(tensors: dict[str, torch.Tensor], start: str) -> dict[str, torch.Tensor]:
    return {key.removeprefix(start): tensor for key, tensor in tensors.items() if key.startswith(start)}


def _unpack(learner: Learner, tensors: dict[str, torch.Tensor]) -> None:
    for name, network in _networks(learner).items():
        network.load_state_dict(_part(tensors, f"{name}."))
    groups = learner.optimizer.state_dict()["param_groups"]
    state = {index: _part(tensors, f"adam.{index}.") for index in range(len(groups[0]["params"]))}
    learner.optimizer.load_state_dict({"state": state, "param_groups": groups})
    for index, shard in zip(learner.ranks.own(learner.config.shards), learner.shards, strict=True):
        shard.tables[:] = tensors[f"shard.{index}.tables"].numpy().view(TABLE)
        shard.agent_streams[:] = tensors[f"shard.{index}.streams"].numpy().view(np.uint64)
        shard.seat_players[:] = tensors[f"shard.{index}.seats"].numpy()
    if learner.equity is not None:
        learner.equity.unpack(_part(tensors, "equity."))
        learner.gain_sizes.sums.copy_(tensors["gain_sizes"])


def write_checkpoint(folder: Path, learner: Learner, notes: dict[str, Any], num_kept: int) -> Path:
    """Write the state of a learner between two updates and drop all but the latest `num_kept` checkpoints.

    Every process of the run calls it; the first one writes.

    Args:
        folder: where checkpoints lie.
        learner: what to save.
        notes: JSON-ready facts of the run to get back on resuming.
        num_kept: how many to keep.

    Returns:
        The file.
    """
    tensors = _pack(learner)
    head = {
        "layout_version": LAYOUT_VERSION,
        "table_size": TABLE.itemsize,
        "config": learner.config.to_dict(),
        "num_steps": learner.num_steps,
        "num_updates": learner.num_updates,
        "generator": learner.generator.bit_generator.state,
        "shard_generators": _gather_generators(learner),
        "pool": learner.pool.pack(),
        "notes": notes,
        "digest": _digest(tensors),
    }
    path = folder / f"step-{learner.num_steps:012d}.safetensors"
    bad = [name for name, tensor in tensors.items() if tensor.is_floating_point() and not tensor.isfinite().all()]
    if bad:
        raise CheckpointError(f"{bad[0]} is not finite, so {path.name} is not written; what was saved before is whole")
    if learner.ranks.rank:
        return path
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(path, "checkpoint", FORMAT_VERSION, head, tensors)
    for old in list_checkpoints(folder)[num_kept:]:
        old.unlink()
    return path


def list_checkpoints(folder: Path) -> list[Path]:
    """Checkpoints in a folder, the latest first."""
    return sorted(folder.glob("step-*.safetensors"), reverse=True)


def read_checkpoint(path: Path, learner: Learner) -> dict[str, Any]:
    """Bring a learner to the state that a checkpoint holds.

    Returns:
        The notes that were written with it.

    Raises:
        CheckpointError: if the file is torn, foreign, or of a run with another configuration; the learner is unchanged.
    """
    try:
        head, tensors = read_tensors(path, "checkpoint", FORMAT_VERSION)
    except (OSError, ValueError) as error:
        raise CheckpointError(str(error)) from None
    if head["layout_version"] != LAYOUT_VERSION or head["table_size"] != TABLE.itemsize:
        raise CheckpointError(f"{path} was written with another observation layout or table; it cannot be gone on with")
    if _digest(tensors) != head["digest"]:
        raise CheckpointError(f"{path} is damaged: its content is not what was written")
    own, usual = (json.loads(json.dumps(config.to_dict())) for config in (learner.config, Config()))
    differences = [key for key in own if own[key] != head["config"].get(key, usual[key]) and key != "threads"]
    if differences:
        raise CheckpointError(f"{path} belongs to a run with another {', '.join(differences)}")
    learner.pool.restore(
        head["pool"],
        [_part(tensors, f"member.{index}.") for index in range(len(head["pool"]))],
        learner.average,
    )
    _unpack(learner, tensors)
    learner.generator.bit_generator.state = head["generator"]
    for index, shard in zip(learner.ranks.own(learner.config.shards), learner.shards, strict=True):
        shard.generator.bit_generator.state = head["shard_generators"][index]
    learner.num_steps, learner.num_updates = head["num_steps"], head["num_updates"]
    return head["notes"]


def _read_in_all(path: Path, learner: Learner) -> dict[str, Any]:
    """Read a checkpoint in every process; what one of them cannot read, on a host that lacks it, is refused by all."""
    notes: dict[str, Any] = {}
    problem = ""
    try:
        notes = read_checkpoint(path, learner)
    except CheckpointError as error:
        problem = str(error)
    ranks = learner.ranks
    if ranks.find_max(bool(problem)):
        raise CheckpointError(next(filter(None, ranks.share_out(list(range(ranks.num_ranks)), lambda _: problem))))
    return notes


def resume_latest(folder: Path, learner: Learner, warn: Callable[[str], None]) -> dict[str, Any] | None:
    """Go on from the latest checkpoint of a folder that is whole for every process.

    Every process of the run calls it; which checkpoints there are is for the first one to say.

    Args:
        folder: where checkpoints lie.
        learner: what to bring to its state.
        warn: told of each checkpoint that is refused.

    Returns:
        The notes written with it, or None if there is no checkpoint.

    Raises:
        CheckpointError: if there are checkpoints and none can be used.
    """
    (text,) = learner.ranks.share_out([0], lambda _: json.dumps([path.name for path in list_checkpoints(folder)]))
    names = json.loads(text)
    for name in names:
        try:
            return _read_in_all(folder / name, learner)
        except CheckpointError as error:
            warn(str(error))
    if names:
        raise CheckpointError(f"none of the {len(names)} checkpoints in {folder} can be used")
    return None
