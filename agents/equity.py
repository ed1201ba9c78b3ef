"""Match equity: each side's chance to win the match when a hand begins, from the scores and the dealer.

Only the pitcher's side can win (R19), so a hand is worth more than its points: what it does to these chances. Two
sides have a table of all scores, solved by value iteration from how hands end; more have a small network. Both are
published as data: safetensors and a JSON head, like policies.
"""

import argparse
from abc import abstractmethod
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import agents
from agents.files import read_tensors, write_tensors
from agents.policy import check_rules
from pitch_env.layout import MAX_NEED, MIN_NEED
from pitch_env.rules import Rules
from pitch_env.table import MATCH_OVER, NOBODY, read_rules

FORMAT_VERSION = 2
EQUITY_FILE = "equity.safetensors"
NUM_NEEDS = MAX_NEED - MIN_NEED + 1
_HIDDEN = 64
_NUM_TOLD_APART = 20 - MIN_NEED + 1  # needs with a vector of their own, all of 20 and more together
_SLOPE = 0.2  # of the log of the odds, for each point that a side needs


class Equity(nn.Module):
    """Chances of all sides. Sides are told apart by their place counted from the dealer's, never by their number.

    Args:
        rules: what is played.
        num_kinds: kinds of players that are told apart while learning; everybody is of kind 0 if nothing is said, and
            that is what is published.
    """

    def __init__(self, rules: Rules, num_kinds: int = 1) -> None:
        super().__init__()
        self.rules, self.num_kinds = rules, num_kinds

    @abstractmethod
    def forward(self, needs: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
        """Log of the chances of the sides from the dealer's on, float32 (N, sides).

        Args:
            needs: int64 (N, sides) points to the target, see `encode`.
            kinds: int64 (N, sides) who plays each.
        """

    @abstractmethod
    def pick_published(self) -> dict[str, torch.Tensor]:
        """The part of the state that is about players of kind 0."""

    def list_sides(self, dealers: np.ndarray) -> np.ndarray:
        """The sides from the dealer's on, int64 (N, sides)."""
        num_sides = self.rules.num_sides
        return (dealers.astype(np.int64)[:, None] + np.arange(num_sides)) % num_sides

    def encode(
        self, scores: np.ndarray, dealers: np.ndarray, kinds: np.ndarray | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Needs, as whole numbers from 0 to `NUM_NEEDS` - 1, and kinds, of the sides from the dealer's on."""
        sides = self.list_sides(dealers)
        needs = np.clip(self.rules.target - np.take_along_axis(scores.astype(np.int64), sides, 1), MIN_NEED, MAX_NEED)
        found = np.zeros_like(needs) if kinds is None else np.take_along_axis(kinds.astype(np.int64), sides, 1)
        return torch.from_numpy(needs - MIN_NEED), torch.from_numpy(found)

    def estimate(self, scores: np.ndarray, dealers: np.ndarray, kinds: np.ndarray | None = None) -> np.ndarray:
        """Chance of each side, float32 (N, sides), when a hand begins.

        Args:
            scores: whole numbers (N, sides).
            dealers: whole numbers (N,) seat that deals the hand.
            kinds: whole numbers (N, sides) who plays each side; None: everybody is alike.
        """
        with torch.inference_mode():
            chances = self(*self.encode(scores, dealers, kinds)).exp().numpy()
        found = np.empty_like(chances)
        np.put_along_axis(found, self.list_sides(dealers), chances, 1)
        return found

    def estimate_after(self, tables: np.ndarray, kinds: np.ndarray | None = None) -> np.ndarray:
        """The same at the end of a hand, array of `TABLE` (N,): of the next one, or of the match if it is over.

        A match that was cut off is worth the same to all.

        Raises:
            ValueError: for tables under other rules than its own.
        """
        check_rules(self.rules, read_rules(tables[0]), "the equity")
        num_sides = self.rules.num_sides
        dealers = (tables["dealer"].astype(np.int64) + 1) % self.rules.num_players
        chances = self.estimate(tables["scores"][:, :num_sides], dealers, kinds)
        is_over = tables["phase"] == MATCH_OVER
        winners = tables["winner"].astype(np.int64)
        chances[is_over] = 0
        is_won = is_over & (winners != NOBODY)
        chances[is_won, winners[is_won]] = 1
        chances[is_over & ~is_won] = 1 / num_sides
        return chances


class EquityTable(Equity):
    """The chance of the dealer's side for every pair of needs; the deal goes to the other side after every hand."""

    chances: torch.Tensor

    def __init__(self, rules: Rules, num_kinds: int = 1) -> None:
        super().__init__(rules, num_kinds)
        shape = (num_kinds, num_kinds, NUM_NEEDS, NUM_NEEDS)  # kinds and needs, the dealer's side first
        self.register_buffer("chances", torch.full(shape, 0.5))

    def forward(self, needs: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
        own = self.chances[kinds[:, 0], kinds[:, 1], needs[:, 0], needs[:, 1]]
        return torch.stack([own, 1 - own], 1).log()

    def pick_published(self) -> dict[str, torch.Tensor]:
        return {"chances": self.chances[:1, :1]}


class EquityNetwork(Equity):
    """A multilayer perceptron on the sum of one vector for each side, by its place, kind and need.

    It corrects a straight line, by which every point that a side needs makes it less likely to win. Scores far below 0
    that have not been met yet have the line alone: without it they look like an equal chance, a policy that learns from
    them gives up points for nothing, and the false hope moves on with it to ever lower scores.
    """

    def __init__(self, rules: Rules, num_kinds: int = 1) -> None:
        super().__init__(rules, num_kinds)
        self.embed = nn.EmbeddingBag(num_kinds * rules.num_sides * _NUM_TOLD_APART, _HIDDEN, mode="sum")
        self.hidden = nn.Linear(_HIDDEN, _HIDDEN)
        self.head = nn.Linear(_HIDDEN, rules.num_sides)
        nn.init.normal_(self.embed.weight, 0, 0.1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, needs: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
        num_sides = self.rules.num_sides
        told_apart = needs.clamp(max=_NUM_TOLD_APART - 1)
        inputs = told_apart + _NUM_TOLD_APART * (torch.arange(num_sides) + num_sides * kinds)
        corrections = self.head(torch.relu(self.hidden(torch.relu(self.embed(inputs)))))
        return torch.log_softmax(corrections - _SLOPE * needs, 1)

    def pick_published(self) -> dict[str, torch.Tensor]:
        embed = self.embed.weight[: self.rules.num_sides * _NUM_TOLD_APART]
        return {**self.state_dict(), "embed.weight": embed}


def new_equity(rules: Rules, num_kinds: int = 1) -> EquityTable | EquityNetwork:
    """An equity that knows nothing yet: a table for two sides, a network for more."""
    return EquityTable(rules, num_kinds) if rules.num_sides == 2 else EquityNetwork(rules, num_kinds)


def write_equity(path: str | Path, equity: Equity) -> None:
    """Write an equity file, whole or not at all."""
    write_tensors(path, "equity", FORMAT_VERSION, {"rules": equity.rules.to_dict()}, equity.pick_published())


def read_equity(path: str | Path, rules: Rules | None = None) -> Equity:
    """Read an equity file.

    Args:
        path: the file.
        rules: if given, what it is to be used for.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no equity file, or one for other rules; the text says what differs.
    """
    head, tensors = read_tensors(path, "equity", FORMAT_VERSION)
    try:
        equity = new_equity(Rules.from_dict(head["rules"]))
        equity.load_state_dict(tensors)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} cannot be used: {error}") from None
    if rules is not None:
        check_rules(equity.rules, rules, str(path))
    return equity.eval()


def tabulate(equity: Equity, dealer: int, most: int = 8) -> Table:
    """Chances of seat 0 in percent, by the points it needs (rows) and those that each other side needs (columns)."""
    needs = np.arange(1, most + 1)
    scores = np.full((most, most, equity.rules.num_sides), equity.rules.target) - needs[None, :, None]
    scores[:, :, 0] = equity.rules.target - needs[:, None]
    chances = equity.estimate(scores.reshape(most * most, -1), np.full(most * most, dealer))[:, 0]
    table = Table(
        "needs", *map(str, needs), title=f"Chance of seat 0 to win the match, in percent; seat {dealer} deals"
    )
    for need, row in zip(needs, chances.reshape(most, most), strict=True):
        table.add_row(str(need), *(f"{100 * chance:.0f}" for chance in row))
    return table


def main(arguments: list[str] | None = None) -> None:
    """Print what scores are worth."""
    parser = argparse.ArgumentParser(
        prog="python -m agents.equity",
        description="Print the chance of seat 0 to win the match when a hand begins, by the points that it needs "
        "(rows) and that every other side needs (columns), among equals.",
    )
    parser.add_argument("run", nargs="?", help="run folder or equity file (default: what comes with the package)")
    parser.add_argument("--players", type=int, default=4, help="of what comes with the package (default %(default)s)")
    parser.add_argument("--teams", action="store_true", help="two teams of two")
    parser.add_argument("--dealer", type=int, default=0, help="seat that deals (default %(default)s)")
    given = parser.parse_args(arguments)
    try:
        rules = Rules(num_players=given.players, teams=given.teams)
        path = Path(given.run or agents.find_trained(rules))
        equity = read_equity(path / EQUITY_FILE if path.is_dir() else path)
        if not 0 <= given.dealer < equity.rules.num_players:
            raise ValueError(f"--dealer takes a seat from 0 to {equity.rules.num_players - 1}, not {given.dealer}")
    except (FileNotFoundError, ValueError) as error:
        parser.exit(2, f"error: {error}\n")
    Console().print(tabulate(equity, given.dealer))


if __name__ == "__main__":
    main()
