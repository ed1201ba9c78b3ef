"""Learning match equity from the hands that self-play settles.

A network learns by temporal differences: a hand's beginning is worth what its end is, or the winner where the match is
over. For two sides, how hands end is counted by what both sides need, and the chances follow by value iteration.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import astuple, dataclass

import numpy as np
import torch

from agents.equity import NUM_NEEDS, Equity, EquityNetwork, EquityTable, new_equity
from pitch_env.cards import MAX_BID
from pitch_env.kernels import kernel
from pitch_env.layout import MIN_NEED
from pitch_env.rules import Rules

_KEPT_ROUNDS = 8  # rounds of hands that a network learns from again
_STEPS = 8  # gradient steps a round
_MINIBATCH = 1024
_MEMORY = 0.98  # how much of the counts is kept from one round to the next
_SWEEPS = 4  # of value iteration a round
_FAR = 8  # from this need up hands end alike
_SAMPLE = ("needs", "kinds", "chances")
_PRIOR = 50.0  # hands of any needs that are mixed into those of each pair of needs
_NUM_SIZES, _FIRST_SIZE = 40, -4  # needs that usual gains are told apart by, and the least of them
POINT_WORTH = 0.002  # of a match: decides where chances cannot be told apart, for one who is far behind


@dataclass
class SettledHands:
    """How hands began and ended: scores int16 (N, sides), dealers int8 (N,), kinds of players int64 (N, sides), then
    pitchers int8 (N,), score changes int8 (N, sides), the chances of the sides afterwards and what they gained, both
    float32 (N, sides)."""

    scores: np.ndarray
    dealers: np.ndarray
    kinds: np.ndarray
    pitchers: np.ndarray
    deltas: np.ndarray
    chances: np.ndarray
    gains: np.ndarray

    @classmethod
    def join(cls, parts: "list[SettledHands]", gather: Callable[[np.ndarray], list[np.ndarray]]) -> "SettledHands":
        """One of several, of all processes."""
        columns = zip(*map(astuple, parts), strict=True)
        return cls(*(np.concatenate(gather(np.concatenate(column))) for column in columns))


class GainSizes:
    """The usual size of a side's gain in a hand, by its own need and the least need of the others.

    Gains are learned from in these units, which leaves the best play at any score what it is, for a hand is an episode.
    Without them, gains at scores where a hand changes little drown in those at scores where it decides, and the bonus
    for entropy rules there.

    Args:
        rules: what is played.

    Attributes:
        sums: float64 (2, own needs, others' needs): hands, older ones fading, and the squares of their gains.
    """

    def __init__(self, rules: Rules) -> None:
        self.target = rules.target
        self.sums = torch.zeros((2, _NUM_SIZES, _NUM_SIZES), dtype=torch.float64)

    def _find_cells(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        needs = self.target - scores.astype(np.int64)
        ordered = np.sort(needs, axis=1)
        others = np.where(needs == ordered[:, :1], ordered[:, 1:2], ordered[:, :1])
        own, other = (np.clip(part - _FIRST_SIZE, 0, _NUM_SIZES - 1) for part in (needs, others))
        return own, other

    def learn(self, scores: np.ndarray, gains: np.ndarray) -> None:
        """Take in the gains, float32 (N, sides), of hands that began at these scores, whole numbers (N, sides)."""
        self.sums *= _MEMORY
        cells = self._find_cells(scores)
        hands, squares = self.sums.numpy()
        np.add.at(hands, cells, 1)
        np.add.at(squares, cells, np.square(gains, dtype=np.float64))

    def find(self, scores: np.ndarray) -> np.ndarray:
        """The usual gains at scores, float32 (N, sides): roots of mean squares, all hands counting as one in each."""
        hands, squares = self.sums.numpy()
        usual = np.sqrt((squares + squares.sum() / max(hands.sum(), 1)) / (hands + 1))
        usual[usual == 0] = 1  # nobody has gained anything yet
        return usual[self._find_cells(scores)].astype(np.float32)


class EquityLearner(ABC):
    """Learns equity, a round of hands at a time."""

    equity: Equity

    @abstractmethod
    def learn(self, hands: SettledHands, generator: np.random.Generator) -> float:
        """Learn from a round of hands; returns the mean cross-entropy of their ends under their beginnings."""

    @abstractmethod
    def pack(self) -> dict[str, torch.Tensor]:
        """All that learning goes on with, for a checkpoint."""

    @abstractmethod
    def unpack(self, tensors: dict[str, torch.Tensor]) -> None:
        """Put back what `pack` gave."""


def new_equity_learner(rules: Rules, num_kinds: int = 1) -> EquityLearner:
    """A learner of the sort of equity that rules call for."""
    equity = new_equity(rules, num_kinds)
    return TableLearner(equity) if isinstance(equity, EquityTable) else NetworkLearner(equity)


class NetworkLearner(EquityLearner):
    """Temporal differences by Adam."""

    def __init__(self, equity: EquityNetwork) -> None:
        self.equity: EquityNetwork = equity
        self.optimizer = torch.optim.Adam(equity.parameters(), lr=1e-3)
        self._samples: list[tuple[torch.Tensor, ...]] = []  # needs, kinds and chances of rounds kept

    def learn(self, hands: SettledHands, generator: np.random.Generator) -> float:
        inputs = self.equity.encode(hands.scores, hands.dealers, hands.kinds)
        targets = np.take_along_axis(hands.chances, self.equity.list_sides(hands.dealers), 1)
        self._samples = [*self._samples[1 - _KEPT_ROUNDS :], (*inputs, torch.from_numpy(targets))]
        losses = []
        for _ in range(_STEPS):
            needs, kinds, wanted = self._samples[generator.integers(len(self._samples))]
            rows = torch.from_numpy(generator.integers(len(needs), size=min(_MINIBATCH, len(needs))))
            loss = -(wanted[rows] * self.equity(needs[rows], kinds[rows])).sum(1).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(float(loss.detach()))
        return float(np.mean(losses))

    def pack(self) -> dict[str, torch.Tensor]:
        tensors = {f"network.{name}": tensor for name, tensor in self.equity.state_dict().items()}
        for index, parameter in enumerate(self.equity.parameters()):
            for name, tensor in self.optimizer.state[parameter].items():
                tensors[f"adam.{index}.{name}"] = tensor
        for index, parts in enumerate(self._samples):
            tensors.update({f"{name}.{index}": part for name, part in zip(_SAMPLE, parts, strict=True)})
        return tensors

    def unpack(self, tensors: dict[str, torch.Tensor]) -> None:
        self.equity.load_state_dict({name: tensors[f"network.{name}"] for name in self.equity.state_dict()})
        names = ("step", "exp_avg", "exp_avg_sq")
        state = {
            index: {name: tensors[f"adam.{index}.{name}"] for name in names if f"adam.{index}.{name}" in tensors}
            for index, _ in enumerate(self.equity.parameters())
        }
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})
        rounds = sum(name.startswith("needs.") for name in tensors)
        self._samples = [tuple(tensors[f"{name}.{index}"] for name in _SAMPLE) for index in range(rounds)]


@kernel
def _sweep(other_deals, shares, near, own_after, other_after, is_won, is_lost, chances):
    """One sweep of value iteration: chances of the dealer's side by those when the other side deals."""
    for own in range(chances.shape[0]):
        for other in range(chances.shape[1]):
            total = 0.0
            for end in range(shares.shape[2]):
                share = shares[near[own], near[other], end]
                if is_won[own, end]:
                    total += share
                elif not is_lost[other, end]:
                    total += share * (1 - other_deals[other_after[other, end], own_after[own, end]])
            chances[own, other] = total


def _find_shares(counts: np.ndarray) -> np.ndarray:
    """The share of each end at each pair of near needs, of counts in the same shape."""
    total = counts.sum((0, 1))
    counts = counts + _PRIOR * total / total.sum()
    return counts / counts.sum(2, keepdims=True)


class TableLearner(EquityLearner):
    """Counts how hands end and solves for the chances.

    An end is who pitched and both sides' score changes. It is counted by who plays and by both sides' needs, those from
    8 up and those of 0 or less taken together; older rounds fade.
    """

    def __init__(self, equity: EquityTable) -> None:
        self.equity: EquityTable = equity
        shape = (equity.num_kinds, equity.num_kinds, _FAR + 1, _FAR + 1, len(_ENDS))
        self.counts = torch.zeros(shape, dtype=torch.float64)
        needs = np.arange(NUM_NEEDS) + MIN_NEED
        self._near = np.clip(needs, 0, _FAR)
        self._after = np.clip(np.arange(NUM_NEEDS)[:, None] - _ENDS[:, 1:].T[:, None], 0, NUM_NEEDS - 1)
        is_made = np.where(_ENDS[:, 0] == 0, _ENDS[:, 1], _ENDS[:, 2]) > 0
        may_win = is_made | (not equity.rules.win_needs_made_bid)
        is_pitcher = _ENDS[:, 0] == np.arange(2)[:, None, None]
        self._is_over = (self._after + MIN_NEED <= 0) & may_win & is_pitcher  # as `_after`: by side, its need, and end

    def learn(self, hands: SettledHands, generator: np.random.Generator) -> float:  # noqa: ARG002
        inputs = self.equity.encode(hands.scores, hands.dealers, hands.kinds)
        needs, kinds = (part.numpy() for part in inputs)
        sides = self.equity.list_sides(hands.dealers)
        own, other = np.take_along_axis(hands.deltas.astype(np.int64), sides, 1).T
        places = (hands.pitchers % 2 != sides[:, 0]).astype(np.int64)
        ends = _END_NUMBERS[places, own + MAX_BID, other + MAX_BID]
        near = self._near[needs]
        self.counts *= _MEMORY
        np.add.at(self.counts.numpy(), (*kinds.T, *near.T, ends), 1)
        self._solve()
        log_chances = self.equity(*inputs).numpy()
        targets = np.take_along_axis(hands.chances, sides, 1)
        is_certain = targets == 0  # a chance of nothing adds nothing, whatever its logarithm
        return float(-np.where(is_certain, 0, targets * np.where(is_certain, 0, log_chances)).sum(1).mean())

    def _solve(self) -> None:
        values = self.equity.chances.numpy()
        pairs = [pair for pair in np.ndindex(*values.shape[:2]) if self.counts[pair].any()]
        shares = {pair: _find_shares(self.counts[pair].numpy()) for pair in pairs}
        for _ in range(_SWEEPS):
            old = values.copy()
            for own, other in pairs:
                _sweep(
                    old[other, own], shares[own, other], self._near, *self._after, *self._is_over, values[own, other]
                )

    def pack(self) -> dict[str, torch.Tensor]:
        return {"chances": self.equity.chances, "counts": self.counts}

    def unpack(self, tensors: dict[str, torch.Tensor]) -> None:
        self.equity.chances.copy_(tensors["chances"])
        self.counts.copy_(tensors["counts"])


def _list_ends() -> np.ndarray:
    """All ends of a hand of two sides, int64 (ends, 3): the pitcher's place from the dealer's side on, and both sides'
    score changes. At most four points are won; a pitcher who is set loses the bid, and then the others keep theirs."""
    ends = []
    for place in range(2):
        for pitched in [*range(-MAX_BID, 0), *range(1, MAX_BID + 1)]:
            for other in range(MAX_BID + 1 - max(pitched, 0)):
                ends.append((place, *((pitched, other) if place == 0 else (other, pitched))))
    return np.array(ends)


_ENDS = _list_ends()
_END_NUMBERS = np.full((2, 2 * MAX_BID + 1, 2 * MAX_BID + 1), -1)
_END_NUMBERS[_ENDS[:, 0], _ENDS[:, 1] + MAX_BID, _ENDS[:, 2] + MAX_BID] = np.arange(len(_ENDS))
