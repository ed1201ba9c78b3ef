"""How a network is made, but for its hidden layers and the features it reads. Without torch, for configurations too."""

from dataclasses import dataclass, fields
from typing import Any

HEAD_SIZE = 16  # units of one head of attention
_CHOICES = {"encoder": ("mlp", "attention"), "trunks": ("shared", "separate")}
_BOUNDS = {"attention_size": (HEAD_SIZE, 1024), "attention_layers": (1, 16)}


@dataclass(frozen=True)
class Shape:
    """The kind of a network; policy and critic of a run have the same.

    Attributes:
        encoder: what comes before the hidden layers: ``mlp`` adds up a vector for each active feature, ``attention``
            lets the features attend to each other and takes the mean.
        trunks: ``shared`` by auction and play, or ``separate``: then the two have no weight in common.
        attention_size: units of a feature under attention, a multiple of 16.
        attention_layers: layers of self-attention.

    Raises:
        ValueError: for any other value.
    """

    encoder: str = "mlp"
    trunks: str = "shared"
    attention_size: int = 64
    attention_layers: int = 2

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            _require(name, getattr(self, name), getattr(self, name) in choices, " or ".join(map(repr, choices)))
        for name, (low, high) in _BOUNDS.items():
            value = getattr(self, name)
            is_right = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
            _require(name, value, is_right, f"a whole number from {low} to {high}")
        is_whole = self.attention_size % HEAD_SIZE == 0
        _require("attention_size", self.attention_size, is_whole, f"a multiple of {HEAD_SIZE}")

    @classmethod
    def from_head(cls, head: dict[str, Any]) -> "Shape":
        """The shape in the head of a file; one from before there were shapes says nothing of it."""
        return cls(**{item.name: head[item.name] for item in fields(cls) if item.name in head})


def _require(name: str, value: Any, is_right: bool, what: str) -> None:
    if not is_right:
        raise ValueError(f"{name} takes {what}, not {value!r}")


PLAIN = Shape()
