"""Several processes that train one policy, started by ``torchrun``: each plays its own shards, sums are shared.

Without torchrun there is one process and nothing is exchanged. Only arrays and text travel, never pickled objects.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.distributed as dist


class Ranks:
    """The processes of a run.

    Attributes:
        rank: number of this process; 0 writes files and talks.
        num_ranks: how many there are.

    Raises:
        ValueError: if there is no such device.
    """

    def __init__(self, device: torch.device) -> None:
        if device.type == "cuda" and not torch.cuda.is_available():
            raise ValueError("device takes 'cpu' here: PyTorch finds no GPU, or is a build without CUDA")
        self.num_ranks = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        self.device = device
        if self.num_ranks > 1 and not dist.is_initialized():
            if device.type == "cuda":
                torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo")

    def close(self) -> None:
        """Leave the group of processes."""
        if self.num_ranks > 1 and dist.is_initialized():
            dist.destroy_process_group()

    def own(self, num_shards: int) -> range:
        """Numbers of the shards that this process plays.

        Raises:
            ValueError: if the shards cannot be shared out evenly.
        """
        if num_shards % self.num_ranks:
            raise ValueError(f"shards must be a multiple of the {self.num_ranks} processes, not {num_shards}")
        each = num_shards // self.num_ranks
        return range(self.rank * each, (self.rank + 1) * each)

    def add_up(self, array: np.ndarray) -> np.ndarray:
        """Sum of an array over all processes."""
        return self._reduce(array, dist.ReduceOp.SUM)

    def find_max(self, number: int) -> int:
        """Greatest of a whole number over all processes."""
        return int(self._reduce(np.array([number]), dist.ReduceOp.MAX)[0])

    def _reduce(self, array: np.ndarray, operation: Any) -> np.ndarray:
        if self.num_ranks == 1:
            return array
        tensor = torch.from_numpy(np.ascontiguousarray(array)).to(self.device)
        dist.all_reduce(tensor, operation)
        return tensor.cpu().numpy()

    def add_up_gradients(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        """Sums of tensors over all processes, exchanged as one."""
        if self.num_ranks == 1:
            return gradients
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        dist.all_reduce(flat)
        parts = flat.split([gradient.numel() for gradient in gradients])
        return [part.view_as(gradient) for part, gradient in zip(parts, gradients, strict=True)]

    def gather(self, array: np.ndarray) -> list[np.ndarray]:
        """The array of each process, in their order; first lengths may differ, the rest of the shape not."""
        if self.num_ranks == 1:
            return [array]
        raw = torch.from_numpy(np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8).copy())
        longest = self.find_max(len(raw))
        sizes = self.add_up(np.eye(self.num_ranks, dtype=np.int64)[self.rank] * len(raw))
        padded = torch.zeros(longest, dtype=torch.uint8)
        padded[: len(raw)] = raw
        found = [torch.zeros(longest, dtype=torch.uint8, device=self.device) for _ in range(self.num_ranks)]
        dist.all_gather(found, padded.to(self.device))
        arrays = [part[: int(size)].cpu().numpy().view(array.dtype) for part, size in zip(found, sizes, strict=True)]
        return [part.reshape(-1, *array.shape[1:]) for part in arrays]

    def share_out(self, work: list[int], do: Callable[[int], str]) -> list[str]:
        """Texts that a function makes of pieces of work, each piece done by one process, in the order of the pieces."""
        own = {index: do(work[index]) for index in range(self.rank, len(work), self.num_ranks)}
        texts = []
        for index in range(len(work)):
            text = np.frombuffer(own.get(index, "").encode(), np.uint8)
            texts.append(b"".join(part.tobytes() for part in self.gather(text)).decode())
        return texts
