"""Networks: an encoder of the active features, then a small multilayer perceptron.

The plain encoder adds up one learned vector for each active feature, which is a dense layer on the multi-hot vector
without its zeros. The other one is attention. Auction and play share a trunk or have one each.
"""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn

from agents.shape import HEAD_SIZE, PLAIN, Shape
from pitch_env.cards import NUM_ACTIONS
from pitch_env.kernels import kernel
from pitch_env.layout import layout, num_hidden_features

_ROWS_AT_ONCE = 1 << 11  # what fits the cache
_LEAST_ROWS = 8  # fewer are multiplied by other code, whose last bits differ

_ROWS_TOGETHER = {"cpu": 128, "cuda": 4096}  # rows under attention at a time: what fits the cache, what fills a GPU


@kernel
def _add_up(features, lengths, weight, bias, out):
    size = weight.shape[1]
    for i in range(features.shape[0]):
        for column in range(size):
            out[i, column] = bias[column]
        num = np.int64(lengths[i])
        for index in range(0, num - 3, 4):  # four at a time, in the same order: less to load and store
            a, b, c, d = features[i, index], features[i, index + 1], features[i, index + 2], features[i, index + 3]
            for column in range(size):
                total = out[i, column] + weight[a, column] + weight[b, column]
                out[i, column] = total + weight[c, column] + weight[d, column]
        for index in range(num - num % 4, num):
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
        ends = np.cumsum(lengths, dtype=np.int64)
        offsets = torch.from_numpy(ends - lengths).to(device)
        flat = torch.from_numpy(features[_mark_used(features, lengths)].astype(np.int64)).to(device)
        return nn.functional.embedding_bag(flat, self.weight, offsets, mode="sum") + self.bias


def _linear(num_in: int, num_out: int, gain: float) -> nn.Linear:
    layer = nn.Linear(num_in, num_out)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def _mark_used(features: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    return np.arange(features.shape[1]) < lengths[:, None]


def _put_back(parts: list[torch.Tensor], groups: list[np.ndarray]) -> torch.Tensor:
    """Results for groups of rows, in the order of the rows."""
    places = torch.from_numpy(np.argsort(np.concatenate(groups)))
    return torch.cat(parts)[places.to(parts[0].device)]


class Attention(nn.Module):
    """Self-attention over the active features, each of which is a token; then their mean and one linear layer.

    The order of the features means nothing. Rows go through it sorted by length, some at a time, for padding costs as
    much as a token.
    """

    def __init__(self, num_features: int, size: int, num_layers: int, num_out: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(num_features, size)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                size, size // HEAD_SIZE, 2 * size, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in range(num_layers)
        )
        self.out = _linear(size, num_out, 1.0)

    def forward(self, features: np.ndarray, lengths: np.ndarray) -> torch.Tensor:
        """float32 (N, num_out) of int16 features, (N, most), of which the first `lengths`, uint8 (N,), count: 1 or more
        in each row."""
        together = _ROWS_TOGETHER[self.embed.weight.device.type]
        groups = np.array_split(np.argsort(lengths, kind="stable"), -(-len(lengths) // together))
        return self.out(_put_back([self._average(features[rows], lengths[rows]) for rows in groups], groups))

    def _average(self, features: np.ndarray, lengths: np.ndarray) -> torch.Tensor:
        device = self.embed.weight.device
        features = features[:, : lengths.max()]
        is_used = _mark_used(features, lengths)
        tokens = self.embed(torch.from_numpy(np.where(is_used, features, 0).astype(np.int64)).to(device))
        is_padding = torch.from_numpy(~is_used).to(device)
        for layer in self.layers:
            tokens = layer(tokens, src_key_padding_mask=is_padding)
        total = tokens.masked_fill(is_padding[:, :, None], 0).sum(1)
        return total / (~is_padding).sum(1, keepdim=True)


class Trunk(nn.Module):
    """Encoder, hidden layers with ReLU, one linear head in float32."""

    def __init__(
        self, num_features: int, hidden: tuple[int, ...], num_out: int, head_gain: float, shape: Shape
    ) -> None:
        super().__init__()
        self.first = (
            FeatureSum(num_features, hidden[0])
            if shape.encoder == "mlp"
            else Attention(num_features, shape.attention_size, shape.attention_layers, hidden[0])
        )
        self.norm = nn.LayerNorm(hidden[0])
        self.hidden = nn.ModuleList(_linear(num_in, size, math.sqrt(2)) for num_in, size in pairwise(hidden))
        self.head = _linear(hidden[-1], num_out, head_gain)

    def forward(self, features: np.ndarray, lengths: np.ndarray, is_half: bool = False) -> torch.Tensor:
        """float32 (N, num_out); `is_half` runs attention and the hidden layers in bfloat16."""
        with torch.autocast(self.head.weight.device.type, torch.bfloat16, enabled=is_half):
            x = torch.relu_(self.norm(self.first(features, lengths).float()))
            for layer in self.hidden:
                x = torch.relu_(layer(x))
        return self.head(x.float())


class SeparateTrunks(nn.Module):
    """A trunk for the auction and one for play; which of them reads a row is told by the row itself."""

    def __init__(self, tricks: slice, *arguments: Any) -> None:
        """The features that only a row of play has one of, then what makes a `Trunk`."""
        super().__init__()
        self.tricks = tricks
        self.auction, self.play = Trunk(*arguments), Trunk(*arguments)

    def forward(self, features: np.ndarray, lengths: np.ndarray, is_half: bool = False) -> torch.Tensor:
        """float32 (N, num_out), as `Trunk`."""
        is_trick = (features >= self.tricks.start) & (features < self.tricks.stop)
        is_play = (is_trick & _mark_used(features, lengths)).any(1)
        both = (self.auction, np.flatnonzero(~is_play)), (self.play, np.flatnonzero(is_play))
        work = [(trunk, rows) for trunk, rows in both if len(rows)]
        parts = [trunk(features[rows], lengths[rows], is_half) for trunk, rows in work]
        return _put_back(parts, [rows for _, rows in work])


Network = Trunk | SeparateTrunks


def _new_network(
    num_seats: int, num_features: int, hidden: tuple[int, ...], num_out: int, head_gain: float, shape: Shape
) -> Network:
    arguments = num_features, hidden, num_out, head_gain, shape
    if shape.trunks == "shared":
        return Trunk(*arguments)
    return SeparateTrunks(layout(num_seats).blocks["trick"], *arguments)


def new_policy(num_seats: int, hidden: tuple[int, ...], shape: Shape = PLAIN) -> Network:
    """A network from the layout for `num_seats` to logits over the 57 actions, almost uniform at first."""
    return _new_network(num_seats, layout(num_seats).size, hidden, NUM_ACTIONS, 0.01, shape)


def new_critic(num_seats: int, hidden: tuple[int, ...], is_privileged: bool, shape: Shape = PLAIN) -> Network:
    """A network from the layout, and all hands behind it if `is_privileged`, to a seat's expected reward."""
    num_features = layout(num_seats).size + (num_hidden_features(num_seats) if is_privileged else 0)
    return _new_network(num_seats, num_features, hidden, 1, 1.0, shape)


def run_network(network: Network, features: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Outputs of a network, float32 (N, outputs), each of which depends on its own row alone.

    Args:
        network: in float32.
        features: int16 (N, most), of which the first `lengths` in each row count.
        lengths: uint8 (N,).
    """
    num_rows = len(features)
    if 0 < num_rows < _LEAST_ROWS:
        rows = np.arange(_LEAST_ROWS) % num_rows
        features, lengths = features[rows], lengths[rows]
    parts = []
    with torch.inference_mode():
        for low in range(0, max(len(features), 1), _ROWS_AT_ONCE):
            low = max(0, min(low, len(features) - _LEAST_ROWS))  # the last part may overlap, so as not to be small
            high = low + _ROWS_AT_ONCE
            parts.append((low, network(features[low:high], lengths[low:high]).cpu().numpy()))
    found = np.empty((len(features), parts[0][1].shape[1]), np.float32)
    for low, part in parts:
        found[low : low + len(part)] = part
    return found[:num_rows]
