"""Whether ``torch.compile`` makes the networks faster on this processor: ``python -m benchmarks.compiled``.

The first layer is a kernel of its own, so what is compiled are the layers behind it. It needs a C++ compiler.
"""

import statistics
import time

import torch

from agents.network import new_policy
from pitch_env.rules import Rules

_ROWS = 1024  # of a shard in a gradient step
_HIDDEN = (256, 256)
_ROUNDS, _STEPS = 7, 40


class _Behind(torch.nn.Module):
    """A policy without its first layer."""

    def __init__(self) -> None:
        super().__init__()
        policy = new_policy(Rules().num_players, _HIDDEN)
        self.norm, self.hidden, self.head = policy.norm, policy.hidden, policy.head

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(x))
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.head(x)


def main() -> None:
    """Time both in turn and print the medians."""
    torch.set_num_threads(1)
    plain = _Behind()
    ways = {"eager": plain, "compiled": torch.compile(plain)}
    x = torch.randn(_ROWS, _HIDDEN[0], requires_grad=True)
    gradient = torch.randn(_ROWS, 57)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(_ROUNDS + 1):
        for name, network in ways.items():
            clock = time.process_time()
            for _ in range(_STEPS if number else 1):  # the first compiles
                torch.autograd.grad(network(x), [*plain.parameters(), x], gradient)
            if number:
                times[name].append((time.process_time() - clock) / _STEPS * 1000)
    for name, found in times.items():
        print(
            f"{name}: {statistics.median(found):.2f} ms for {_ROWS:,} rows forward and backward "
            f"({min(found):.2f} to {max(found):.2f})"
        )


if __name__ == "__main__":
    main()
