"""The variant being played: one frozen, validated record."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from pitch_env.cards import NUM_RANKS, NUM_SUITS

MAX_PLAYERS = 7
MAX_HAND_SIZE = 6
LOW_POINTS = ("taker", "holder")


def _number(default: int, low: int, high: int, text: str) -> Any:
    return field(default=default, metadata={"low": low, "high": high, "help": text})


def _switch(text: str) -> Any:
    return field(default=False, metadata={"help": text})


@dataclass(frozen=True)
class Rules:
    """What is played. Every field is checked; a nonsense value raises ``ValueError`` naming the field.

    The defaults are four players to 7 points under the literal reading of the rules.
    """

    num_players: int = _number(4, 2, MAX_PLAYERS, "players at the table (R1)")
    teams: bool = _switch("two teams of two, seats 0 and 2 against 1 and 3; needs four players (R1)")
    target: int = _number(7, 1, 1000, "score that wins at the end of a hand one's side pitched (R19)")
    win_needs_made_bid: bool = _switch("a pitcher who is set cannot win, whatever the score (R19)")
    low_point: str = field(
        default="taker",
        metadata={"help": "who scores Low: the 'taker' of the lowest trump, or its first 'holder' (R14)"},
    )
    pitch_by_card: bool = _switch("playing a card in the auction is a bid of 4 and the lead in one (R9)")
    max_hands: int = _number(200, 1, 5000, "hands after which a match without a winner is cut off")
    num_suits: int = _number(NUM_SUITS, 1, NUM_SUITS, "suits in the deck, from clubs up")
    num_ranks: int = _number(NUM_RANKS, 1, NUM_RANKS, "ranks in the deck, from the ace down")
    hand_size: int = _number(MAX_HAND_SIZE, 1, MAX_HAND_SIZE, "cards dealt to each player (R2)")

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if "low" in item.metadata:
                low, high = item.metadata["low"], item.metadata["high"]
                if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                    raise ValueError(f"Rules.{item.name} takes a whole number from {low} to {high}, not {value!r}")
            elif item.name == "low_point":
                if value not in LOW_POINTS:
                    raise ValueError(f"Rules.low_point takes 'taker' or 'holder', not {value!r}")
            elif not isinstance(value, bool):
                raise ValueError(f"Rules.{item.name} takes True or False, not {value!r}")
        if self.teams and self.num_players != 4:
            raise ValueError(f"Rules.teams needs num_players=4, not {self.num_players}")
        dealt, deck = self.num_players * self.hand_size, self.num_suits * self.num_ranks
        if dealt > deck:
            raise ValueError(
                f"Rules.hand_size={self.hand_size} for {self.num_players} players deals {dealt} cards "
                f"from a deck of {deck}: lower hand_size or raise num_suits or num_ranks"
            )

    @property
    def num_sides(self) -> int:
        """Sides that score: the players, or two teams (R1)."""
        return 2 if self.teams else self.num_players

    def side(self, seat: int) -> int:
        """The side a seat scores for."""
        return seat % self.num_sides

    @property
    def sides(self) -> tuple[int, ...]:
        """The side of every seat; as an index it spreads an array over sides to one over seats."""
        return tuple(self.side(seat) for seat in range(self.num_players))

    def to_dict(self) -> dict[str, Any]:
        """The fields as a JSON-ready dict."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Rules":
        """Rules of a dict as `to_dict` makes it; left-out fields take their defaults.

        Raises:
            ValueError: for an unknown field or a value that a field does not take.
        """
        known = [item.name for item in dataclasses.fields(cls)]
        for name in values:
            if name not in known:
                raise ValueError(f"Rules has no field {name!r}; it has {', '.join(known)}")
        return cls(**values)

    def describe_difference(self, other: "Rules") -> str:
        """The fields in which two rules differ, in words; empty when they are equal."""
        mine, theirs = self.to_dict(), other.to_dict()
        return ", ".join(
            f"{name} {mine[name]!r} against {theirs[name]!r}" for name in mine if mine[name] != theirs[name]
        )
