"""Networks: a sum of feature vectors, then a small multilayer perceptron.

The first layer adds up one learned vector for each active feature, which is a dense layer on the multi-hot vector
without its zeros.
"""

import math
from itertools import pairwise

import numpy as np
import torch
from torch import nn

from pitch_env.cards import NUM_ACTIONS
from pitch_env.kernels import kernel


@kernel
def _add_up(features, lengths, weight, bias, out):
    size = weight.shape[1]
    for i in range(features.shape[0]):
        for column in range(size):
            out[i, column] = bias[column]
        for index in range(lengths[i]):
            row = features[i, index]
            for column in range(size):
                out[i, column] += weight[row, column]


@kernel
def _spread(features, lengths, gradient, weight_gradient):
    size = gradient.shape[1]
    for i in range(features.shape[0]):
        for index in range(lengths[i]):
            row = features[i, index]
            for column in range(size):
                weight_gradient[row, column] += gradient[i, column]


class _SumFeatures(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, lengths, weight, bias):  # type: ignore[override]
        ctx.features, ctx.lengths, ctx.shape = features, lengths, weight.shape
        out = torch.empty(len(features), weight.shape[1])
        _add_up(features, lengths, weight.detach().numpy(), bias.detach().numpy(), out.numpy())
        return out

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[override]
        weight_gradient = torch.zeros(ctx.shape)
        gradient = gradient.contiguous()
        _spread(ctx.features, ctx.lengths, gradient.numpy(), weight_gradient.numpy())
        return None, None, weight_gradient, gradient.sum(0)


class FeatureSum(nn.Module):
    """Sum of the vectors of the active features, plus a bias.

    On the CPU it runs as a compiled kernel, which releases the GIL and walks no padding; elsewhere as
    ``torch.nn.functional.embedding_bag``.
    """

    def __init__(self, num_features: int, size: int) -> None:
        super().__init__()
        # about fifty features are active at once
        self.weight = nn.Parameter(torch.empty(num_features, size).normal_(0, 1 / math.sqrt(50)))
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, features: np.ndarray, lengths: np.ndarray) -> torch.Tensor:
        """float32 (N, size) of int16 features, (N, most), of which the first `lengths`, uint8 (N,), count."""
        if self.weight.device.type == "cpu":
            return _SumFeatures.apply(features, lengths, self.weight, self.bias)
        device = self.weight.device
        is_used = np.arange(features.shape[1]) < lengths[:, None]
        ends = np.cumsum(lengths, dtype=np.int64)
        offsets = torch.from_numpy(ends - lengths).to(device)
        flat = torch.from_numpy(features[is_used].astype(np.int64)).to(device)
        return nn.functional.embedding_bag(flat, self.weight, offsets, mode="sum") + self.bias


def _linear(num_in: int, num_out: int, gain: float) -> nn.Linear:
    layer = nn.Linear(num_in, num_out)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class Trunk(nn.Module):
    """Feature sum, hidden layers with ReLU, one linear head in float32."""

    def __init__(self, num_features: int, hidden: tuple[int, ...], num_out: int, head_gain: float) -> None:
        super().__init__()
        self.first = FeatureSum(num_features, hidden[0])
        self.norm = nn.LayerNorm(hidden[0])
        self.hidden = nn.ModuleList(_linear(num_in, size, math.sqrt(2)) for num_in, size in pairwise(hidden))
        self.head = _linear(hidden[-1], num_out, head_gain)

    def forward(self, features: np.ndarray, lengths: np.ndarray, is_half: bool = False) -> torch.Tensor:
        """float32 (N, num_out); `is_half` runs the hidden layers in bfloat16."""
        x = torch.relu(self.norm(self.first(features, lengths)))
        with torch.autocast(x.device.type, torch.bfloat16, enabled=is_half):
            for layer in self.hidden:
                x = torch.relu(layer(x))
        return self.head(x.float())


def new_policy(num_features: int, hidden: tuple[int, ...]) -> Trunk:
    """A network from features to logits over the 57 actions, almost uniform at first."""
    return Trunk(num_features, hidden, NUM_ACTIONS, 0.01)


def new_critic(num_features: int, hidden: tuple[int, ...]) -> Trunk:
    """A network from features, hidden hands' too, to a seat's expected reward."""
    return Trunk(num_features, hidden, 1, 1.0)
