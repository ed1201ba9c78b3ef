"""What an agent is: anything that chooses an action from what one seat may know."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from pitch_env.rules import Rules
from pitch_env.view import view_from_dict, view_table


class Agent(ABC):
    """Chooses actions from views, one at a time or a batch at once.

    An agent is only ever given views, which hold no hidden card. It keeps no state between decisions; what it draws
    at random comes from the `seeds` handed in with the views, so a decision does not depend on the rest of its batch.

    Attributes:
        name: shown in tables.
        rules: the only ones it plays, but for `max_hands`; None if it plays all.
        cost: of a decision, roughly, in decisions of a bot or policy. A ladder plays fewer deals with who costs more.
    """

    name: str = "agent"
    rules: Rules | None = None
    cost: float = 1.0

    def __init__(self, seed: int | None = None) -> None:
        self._stream = np.random.default_rng(seed)

    @abstractmethod
    def act(self, views: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        """Legal actions for the seats that look.

        Args:
            views: array of `TABLE`, (N,), each the view of the seat to act there.
            seeds: uint64 (N,), the randomness of each decision.

        Returns:
            int64 (N,) actions.
        """

    def __call__(self, source: Any) -> int:
        """The action to take now.

        Args:
            source: a PettingZoo environment of this project, a view as a JSON dict, or a view, (1,).

        Raises:
            ValueError: if the seat that looks is not to act.
        """
        if isinstance(source, dict):
            view = view_from_dict(source)
        elif isinstance(source, np.ndarray):
            view = source
        else:
            table = source.unwrapped.table
            if table["seat"][0] < 0:
                raise ValueError("the match is over: there is nothing to decide; call env.reset() or step with None")
            view = view_table(table, int(table["seat"][0]))
        if view["viewer"][0] < 0 or view["seat"][0] != view["viewer"][0]:
            raise ValueError(f"seat {view['viewer'][0]} is not to act here; it is the turn of seat {view['seat'][0]}")
        seeds = self._stream.integers(0, 2**64, size=1, dtype=np.uint64)
        return int(self.act(view, seeds)[0])

    def __repr__(self) -> str:
        return f"<{self.name}>"
