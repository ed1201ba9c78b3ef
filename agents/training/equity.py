"""Match equity: each side's probability of winning the match when a hand begins, from the scores and the dealer.

Only the pitcher's side can win, so a hand is worth more than its points: what it does to these probabilities. They are
learned from the hands that self-play settles, each one's beginning being worth what its end is (temporal differences
with a target that is the winner where the match is over).
"""

import numpy as np
import torch
from torch import nn

from pitch_env.observation import MAX_NEED, MIN_NEED
from pitch_env.rules import Rules
from pitch_env.table import MATCH_OVER, NOBODY

_NUM_NEEDS = MAX_NEED - MIN_NEED + 1
_HIDDEN = 64
_KEPT_ROUNDS = 8  # rounds of hands that are learned from again
_STEPS = 8  # gradient steps a round
_MINIBATCH = 1024


class Equity(nn.Module):
    """A small network from needs, counted from the dealer, to a distribution over the sides.

    It has no other random state than its weights: samples are drawn with the generator handed to `learn`.
    """

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self.rules = rules
        num_seats = rules.num_players
        self.embed = nn.EmbeddingBag(num_seats * _NUM_NEEDS, _HIDDEN, mode="sum")
        self.hidden = nn.Linear(_HIDDEN, _HIDDEN)
        self.head = nn.Linear(_HIDDEN, rules.num_sides)
        nn.init.normal_(self.embed.weight, 0, 0.1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self._samples: list[tuple[np.ndarray, np.ndarray]] = []
        self.optimizer = torch.optim.Adam(self.parameters(), lr=1e-3)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Logits over the sides counted from the dealer's, (N, sides), of inputs by `_encode`."""
        return self.head(torch.relu(self.hidden(torch.relu(self.embed(inputs)))))

    def _encode(self, scores: np.ndarray, dealers: np.ndarray) -> np.ndarray:
        num_seats, num_sides = self.rules.num_players, self.rules.num_sides
        seats = (dealers[:, None] + np.arange(num_seats)) % num_seats
        needs = self.rules.target - np.take_along_axis(scores, seats % num_sides, 1)
        return np.clip(needs, MIN_NEED, MAX_NEED) - MIN_NEED + _NUM_NEEDS * np.arange(num_seats)

    def _sides(self, dealers: np.ndarray) -> np.ndarray:
        """The real side of each one counted from the dealer's, (N, sides)."""
        num_sides = self.rules.num_sides
        return (dealers[:, None] + np.arange(num_sides)) % num_sides

    def estimate(self, scores: np.ndarray, dealers: np.ndarray) -> np.ndarray:
        """Probability that each side wins, float32 (N, sides), when a hand begins.

        Args:
            scores: whole numbers (N, sides).
            dealers: whole numbers (N,) seat that deals the hand.
        """
        dealers = dealers.astype(np.int64)
        inputs = torch.from_numpy(self._encode(scores.astype(np.int64), dealers))
        with torch.inference_mode():
            chances = torch.softmax(self(inputs), 1).numpy()
        found = np.empty_like(chances)
        np.put_along_axis(found, self._sides(dealers), chances, 1)
        return found

    def estimate_after(self, tables: np.ndarray) -> np.ndarray:
        """The same at the end of a hand: of the next one, or of the match if it is over; cut off, all are equal."""
        num_sides = self.rules.num_sides
        dealers = (tables["dealer"].astype(np.int64) + 1) % self.rules.num_players
        chances = self.estimate(tables["scores"][:, :num_sides], dealers)
        is_over = tables["phase"] == MATCH_OVER
        winners = tables["winner"].astype(np.int64)
        chances[is_over] = 0
        is_won = is_over & (winners != NOBODY)
        chances[is_won, winners[is_won]] = 1
        chances[is_over & ~is_won] = 1 / num_sides
        return chances

    def learn(
        self, scores: np.ndarray, dealers: np.ndarray, chances_after: np.ndarray, generator: np.random.Generator
    ) -> float:
        """Learn from a round of hands: their beginnings and `estimate_after` of their ends; returns the mean loss."""
        dealers = dealers.astype(np.int64)
        targets = np.take_along_axis(chances_after, self._sides(dealers), 1)
        self._samples = [*self._samples[1 - _KEPT_ROUNDS :], (self._encode(scores.astype(np.int64), dealers), targets)]
        losses = []
        for _ in range(_STEPS):
            inputs, wanted = self._samples[generator.integers(len(self._samples))]
            rows = generator.integers(len(inputs), size=min(_MINIBATCH, len(inputs)))
            log_chances = torch.log_softmax(self(torch.from_numpy(inputs[rows])), 1)
            loss = -(torch.from_numpy(wanted[rows]) * log_chances).sum(1).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(float(loss.detach()))
        return float(np.mean(losses))

    def get_samples(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The rounds kept, for a checkpoint."""
        return self._samples

    def set_samples(self, samples: list[tuple[np.ndarray, np.ndarray]]) -> None:
        """Put the rounds of a checkpoint back."""
        self._samples = list(samples)
