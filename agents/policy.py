"""Trained policies: the file format, and the agent that plays one.

A policy file is data only: safetensors weights with a JSON head that holds the rules, the observation layout and the
network's shape. Reading one cannot run code.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agents.base import Agent
from agents.encoding import choose_actions, encode_views
from agents.files import read_tensors, write_tensors
from agents.network import Network, new_policy, run_network
from agents.shape import PLAIN, Shape
from pitch_env.layout import LAYOUT_VERSION
from pitch_env.rules import Rules
from pitch_env.table import RULE_FIELDS, read_rules

FORMAT_VERSION = 1
_RULE_FIELDS = [name for name in RULE_FIELDS if name != "max_hands"] + ["low_to_holder"]


@dataclass(frozen=True)
class PolicySpec:
    """What must be known of a network to use it."""

    rules: Rules
    hidden: tuple[int, ...]
    num_seats: int  # of the observation layout
    layout_version: int = LAYOUT_VERSION
    is_greedy: bool = True  # whether it is meant to take its likeliest action; else it draws one
    notes: dict[str, Any] = field(default_factory=dict)  # how it was made, for people
    shape: Shape = PLAIN

    def to_dict(self) -> dict[str, Any]:
        return {
            "rules": self.rules.to_dict(),
            "hidden": list(self.hidden),
            **asdict(self.shape),
            "num_seats": self.num_seats,
            "layout_version": self.layout_version,
            "is_greedy": self.is_greedy,
            "notes": self.notes,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "PolicySpec":
        hidden = tuple(int(size) for size in values["hidden"])
        if not 1 <= len(hidden) <= 16 or not all(1 <= size <= 16_384 for size in hidden):
            raise ValueError(f"hidden is a list of layer sizes, not {values['hidden']!r}")
        return cls(
            rules=Rules.from_dict(values["rules"]),
            hidden=hidden,
            num_seats=int(values["num_seats"]),
            layout_version=int(values["layout_version"]),
            is_greedy=bool(values["is_greedy"]),
            notes=dict(values.get("notes", {})),
            shape=Shape.from_head(values),
        )

    def new_network(self) -> Network:
        """An untrained network of this shape."""
        return new_policy(self.num_seats, self.hidden, self.shape)


def write_policy(path: str | Path, spec: PolicySpec, weights: dict[str, torch.Tensor]) -> None:
    """Write a policy file, whole or not at all."""
    write_tensors(path, "policy", FORMAT_VERSION, spec.to_dict(), weights)


def read_policy(path: str | Path, rules: Rules | None = None) -> tuple[PolicySpec, Network]:
    """Read a policy file.

    Args:
        path: the file.
        rules: if given, what the policy is to be used for.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no policy, or one for another layout or other rules; the text says what differs.
    """
    head, weights = read_tensors(path, "policy", FORMAT_VERSION)
    try:
        spec = PolicySpec.from_dict(head)
        if spec.layout_version != LAYOUT_VERSION:
            raise ValueError(
                f"it reads observation layout {spec.layout_version}, and this version makes {LAYOUT_VERSION}"
            )
        network = spec.new_network()
        network.load_state_dict(weights)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} cannot be used: {error}") from None
    if rules is not None:
        check_rules(spec.rules, rules, str(path))
    # not in eval mode, which means nothing here but a path of torch for attention that is slower and rounds otherwise
    return spec, network


def check_rules(trained: Rules, used: Rules, name: str) -> None:
    """Refuse a policy under rules it was not trained for; the length guard `max_hands` may differ.

    Raises:
        ValueError: says which rules differ.
    """
    same_length = Rules.from_dict({**used.to_dict(), "max_hands": trained.max_hands})
    if trained != same_length:
        raise ValueError(
            f"{name} was trained for other rules: {trained.describe_difference(same_length)} (trained against used)"
        )


class PolicyAgent(Agent):
    """Plays a trained policy.

    Args:
        spec: what the network reads.
        network: the network.
        is_greedy: take the likeliest action instead of drawing one; None does as the policy was made for.
        name: shown in tables.
        seed: for the draws when called one decision at a time.
    """

    def __init__(
        self,
        spec: PolicySpec,
        network: Network,
        is_greedy: bool | None = None,
        name: str = "policy",
        seed: int | None = None,
    ) -> None:
        super().__init__(seed)
        self.spec, self.network, self.name, self.rules = spec, network, name, spec.rules
        self.is_greedy = spec.is_greedy if is_greedy is None else is_greedy
        self._known_rules: set[tuple] = set()

    @classmethod
    def load(cls, path: str | Path, rules: Rules | None = None, is_greedy: bool | None = None) -> "PolicyAgent":
        """An agent from a policy file; errors as `read_policy`."""
        spec, network = read_policy(path, rules)
        name = Path(path).stem if Path(path).stem != "policy" else Path(path).resolve().parent.name
        return cls(spec, network, is_greedy, name)

    def act(self, views: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        self.check_views(views)
        encoded = encode_views(views, self.spec.num_seats)
        logits = run_network(self.network, encoded.features, encoded.lengths)
        return choose_actions(logits, encoded, seeds, self.is_greedy)[0]

    def check_views(self, views: np.ndarray) -> None:
        """Refuse views, (N,), under rules that the policy was not trained for; see `check_rules`."""
        known = tuple(views[:1][_RULE_FIELDS][0].tolist())
        if known not in self._known_rules:
            check_rules(self.spec.rules, read_rules(views[0]), self.name)
            self._known_rules.add(known)
        if not all((column == column[0]).all() for column in (views[name] for name in _RULE_FIELDS)):
            for view in views:
                check_rules(self.spec.rules, read_rules(view), self.name)
