"""A trained critic as a file: what each seat may expect of a hand, judged with all cards open.

The file is data only and of the same make as a policy's. Policies never read it; the arena takes the luck of the deal
out of its margins with it, see `agents.arena.variate`.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agents.encoding import encode_row
from agents.files import read_tensors, write_tensors
from agents.network import new_critic
from agents.policy import check_rules
from agents.shape import PLAIN, Shape
from pitch_env.cards import NUM_SUITS
from pitch_env.engine import apply_action
from pitch_env.kernels import kernel
from pitch_env.layout import COMPACT_SIZE, LAYOUT_VERSION, MOST_ACTIVE, layout
from pitch_env.observation import list_hidden
from pitch_env.rules import Rules

CRITIC_FILE = "critic.safetensors"
FORMAT_VERSION = 1
_DEALS_AT_ONCE = 1024
_PASS = 0


@kernel
def _encode_deals(tables, is_privileged, form, hidden_start, features, lengths):
    # every seat's turn to bid after passes alone, a row each; the tables are left there
    order = np.empty(NUM_SUITS, np.int64)
    words = np.empty((1, COMPACT_SIZE // 8), np.uint64)
    compact = words.view(np.uint8)
    active = np.empty(MOST_ACTIVE, np.int32)
    row = 0
    for i in range(tables.shape[0]):
        t = tables[i]
        for turn in range(t.num_players):
            if turn > 0:
                apply_action(t, _PASS)
            num = encode_row(t, t.seat, order, compact, words, form, active)
            for index in range(num):
                features[row, index] = active[index]
            if is_privileged:
                num_hidden = list_hidden(t, t.seat, order, hidden_start, active)
                for index in range(num_hidden):
                    features[row, num + index] = active[index]
                num += num_hidden
            lengths[row] = num
            row += 1


class Critic:
    """Values deals.

    Args:
        rules: what it was trained for.
        network: from the features of a seat to act, the hidden hands' too if `is_privileged`, to one value.
        name: shown in errors.
    """

    def __init__(
        self, rules: Rules, network: torch.nn.Module, is_privileged: bool = True, name: str = "critic"
    ) -> None:
        self.rules, self.network, self.is_privileged, self.name = rules, network, is_privileged, name

    def value_deals(self, tables: np.ndarray) -> np.ndarray:
        """What the hands of fresh deals, (N,), are worth to the seats, float64 (N, players), in the order of bidding.

        Each seat is valued where it would bid if all before it had passed, the positions that training knows best. The
        unit is the critic's own: what it was trained for times a constant.
        """
        form, num_players = layout(self.rules.num_players), self.rules.num_players
        most = form.max_active + (num_players - 1) * self.rules.hand_size
        values = []
        for start in range(0, len(tables), _DEALS_AT_ONCE):
            part = tables[start : start + _DEALS_AT_ONCE].copy()
            features = np.zeros((len(part) * num_players, most), np.int16)
            lengths = np.zeros(len(features), np.uint8)
            _encode_deals(part, self.is_privileged, form.form, form.size, features, lengths)
            with torch.inference_mode():
                values.append(self.network(features, lengths)[:, 0].numpy().astype(np.float64))
        return np.concatenate([np.zeros(0), *values]).reshape(len(tables), num_players)


def write_critic(
    path: str | Path,
    rules: Rules,
    hidden: tuple[int, ...],
    is_privileged: bool,
    weights: dict[str, torch.Tensor],
    notes: dict[str, Any] | None = None,
    shape: Shape = PLAIN,
) -> None:
    """Write a critic, whole or not at all."""
    head = {
        "rules": rules.to_dict(),
        "hidden": list(hidden),
        **asdict(shape),
        "layout_version": LAYOUT_VERSION,
        "is_privileged": is_privileged,
        "notes": notes or {},
    }
    write_tensors(path, "critic", FORMAT_VERSION, head, weights)


def read_critic(path: str | Path, rules: Rules | None = None) -> Critic:
    """Read a critic.

    Args:
        path: the file, or a run folder that holds one.
        rules: if given, what it is to be used for.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no critic, or one for another layout or other rules; the text says what differs.
    """
    path = Path(path) / CRITIC_FILE if Path(path).is_dir() else Path(path)
    head, weights = read_tensors(path, "critic", FORMAT_VERSION)
    try:
        if head["layout_version"] != LAYOUT_VERSION:
            raise ValueError(
                f"it reads observation layout {head['layout_version']}, and this version makes {LAYOUT_VERSION}"
            )
        trained, hidden = Rules.from_dict(head["rules"]), tuple(int(size) for size in head["hidden"])
        if not 1 <= len(hidden) <= 16 or not all(1 <= size <= 16_384 for size in hidden):
            raise ValueError(f"hidden is a list of layer sizes, not {head['hidden']!r}")
        is_privileged = bool(head["is_privileged"])
        network = new_critic(trained.num_players, hidden, is_privileged, Shape.from_head(head))
        network.load_state_dict(weights)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} cannot be used: {error}") from None
    if rules is not None:
        check_rules(trained, rules, str(path))
    return Critic(trained, network, is_privileged, str(path))  # not in eval mode, as in `read_policy`
