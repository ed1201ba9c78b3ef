"""The opponent pool: bots and frozen snapshots that play some seats, the harder to beat the more often."""

import copy
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

import agents
from agents.arena.estimates import Z
from agents.network import Network
from agents.training.parallel import Ranks
from agents.training.rollout import AgentPlayer, NetworkPlayer, Player, Shard, reward_points
from pitch_env.rules import Rules
from pitch_env.table import MATCH_OVER

_MEMORY = 0.98  # how much of what is known of a member is kept from one update to the next
_FADING = np.array([_MEMORY, _MEMORY, _MEMORY, _MEMORY**2])  # of a member's sums
_FLOOR = 0.25  # the easiest member is still met this often, relative to the hardest


@dataclass
class Member:
    """Someone in the pool.

    Attributes:
        name: shown in tables.
        player: who decides.
        network: its network, None for a bot.
        sums: float64 (4,) of the hands or matches it was met in, older ones fading: their weights, how much the learner
            was ahead, weighted, the weighted squares of these, and the squares of the weights.
    """

    name: str
    player: Player
    network: Network | None = None
    sums: np.ndarray = field(default_factory=lambda: np.zeros(4))

    @property
    def margin(self) -> float:
        """How much the learner has lately been ahead of it: points a hand, or the share of matches a seat won."""
        return float(self.sums[1] / self.sums[0]) if self.sums[0] else 0.0

    @property
    def half(self) -> float:
        """Half the width of the 95 % interval of the margin."""
        if self.sums[0] < 2:
            return math.inf
        weight, _, squares, squared_weights = self.sums
        variance = max(float(squares / weight) - self.margin**2, 0.0)
        return Z * math.sqrt(variance * squared_weights) / float(weight)


class Pool:
    """Opponents of the learner in a share of the tables.

    Args:
        rules: what is played.
        bots: names of agents that are members from the start.
        share: share of the matches at which a member sits; there it plays one side or more, as many as the learner
            leaves it, any number of which is as likely.
        max_snapshots: snapshots kept; when there are more the middle one goes, so that the oldest and the newest stay.
        bot_share: share of the meetings that are with bots, the rest with snapshots, while there are both.
        is_by_match: whether being ahead means the matches won and not the points of a hand.
    """

    def __init__(
        self,
        rules: Rules,
        bots: list[str],
        share: float,
        max_snapshots: int,
        bot_share: float = 0.5,
        is_by_match: bool = False,
    ) -> None:
        self.rules, self.share, self.max_snapshots = rules, share, max_snapshots
        self.bot_share, self.is_by_match = bot_share, is_by_match
        self.members = [Member(name, AgentPlayer(agents.load(name, rules))) for name in bots]

    def add_snapshot(self, network: Network, num_steps: int, shards: list[Shard]) -> None:
        """Freeze a copy of a network as a member; where one goes for it, the learner takes over its seats."""
        frozen = copy.deepcopy(network).requires_grad_(False)
        self.members.append(Member(f"step {num_steps:,}", _play_network(frozen), frozen))
        snapshots = [member for member in self.members if member.network is not None]
        if len(snapshots) > self.max_snapshots:
            number = 1 + self.members.index(snapshots[(len(snapshots) - 1) // 2])
            del self.members[number - 1]
            for shard in shards:
                shard.seat_players[shard.seat_players == number] = 0
                shard.seat_players[shard.seat_players > number] -= 1

    @property
    def unit(self) -> str:
        """What margins are in, in words."""
        return "share of matches" if self.is_by_match else "points a hand"

    def weigh(self) -> np.ndarray:
        """Probability of each member to be met: of bots and of snapshots, higher the less the learner beats it."""
        margins = np.array([member.margin for member in self.members])
        is_bot = np.array([member.network is None for member in self.members])
        weights = np.zeros(len(margins))
        for is_kind, share in ((is_bot, self.bot_share), (~is_bot, 1 - self.bot_share)):
            if is_kind.any():
                behind = margins[is_kind].max() - margins[is_kind]
                spread = behind.max()
                kind_weights = _FLOOR + (1 - _FLOOR) * (behind / spread if spread > 0 else np.ones(len(behind)))
                weights[is_kind] = kind_weights / kind_weights.sum() * (1 if is_kind.all() else share)
        return weights / weights.sum()

    def seat(self, shard: Shard) -> None:
        """Seat members at those of a shard's tables where a match begins, for all of it.

        A member's number is its place in the list plus 1.
        """
        places = np.flatnonzero(shard.tables["num_hands"] == 0)
        shard.seat_players[places] = 0
        if not self.members or not self.share:
            return
        generator, num_sides = shard.generator, self.rules.num_sides
        num_mixed = int(self.share * len(places) + generator.random())
        places = generator.permutation(places)[:num_mixed]
        chosen = 1 + generator.choice(len(self.members), num_mixed, p=self.weigh())
        num_own = generator.integers(1, num_sides, size=num_mixed)  # sides of the learner
        is_member = generator.permuted(np.tile(np.arange(num_sides), (num_mixed, 1)), axis=1) >= num_own[:, None]
        by_seat = is_member[:, self.rules.sides]
        shard.seat_players[places] = np.where(by_seat, chosen[:, None], 0)

    def list_kinds(self, shard: Shard) -> np.ndarray:
        """Who plays each side, for the equity: 0 the learner or a snapshot, else a bot's number; int64 (N, sides)."""
        is_bot = np.array([0, *(member.network is None for member in self.members)], np.int64)
        players = shard.seat_players[:, : self.rules.num_sides]
        return players * is_bot[players]  # bots are the first members

    def score(self, shards: list[Shard], ranks: Ranks) -> dict[str, float]:
        """Take in how the learner did against each member in the hands just played, or in the matches that they ended;
        returns facts for the log."""
        sums = np.zeros((len(self.members), 4))
        for shard in shards if self.members else ():
            worth = self._find_wins(shard.tables) if self.is_by_match else reward_points(shard.tables)
            is_counted = (shard.tables["phase"] == MATCH_OVER) | (not self.is_by_match)
            is_own = shard.seat_players == 0
            for number in range(1, len(self.members) + 1):
                is_other = shard.seat_players == number
                is_met = is_other.any(1) & is_counted
                own = (worth * is_own)[is_met].sum(1) / is_own[is_met].sum(1)
                other = (worth * is_other)[is_met].sum(1) / is_other[is_met].sum(1)
                ahead = (own - other).astype(np.float64)
                sums[number - 1] += len(ahead), ahead.sum(), np.square(ahead).sum(), len(ahead)
        facts = {}
        for member, more in zip(self.members, ranks.add_up(sums), strict=True):
            if more[0]:
                member.sums = _FADING * member.sums + more
                facts[f"pool/{member.name}"] = member.margin
        return facts

    def _find_wins(self, tables: np.ndarray) -> np.ndarray:
        """Whether each seat's side won the match, (N, seats)."""
        return tables["winner"][:, None] == np.array(self.rules.sides)

    def describe(self) -> dict[str, list[float]]:
        """Margin over each member that was met, and half the width of its 95 % interval."""
        return {member.name: [member.margin, member.half] for member in self.members if member.sums[0] >= 2}

    def pack(self) -> list[dict[str, Any]]:
        """Names and sums of all members, JSON-ready, for a checkpoint."""
        return [{"name": member.name, "sums": member.sums.tolist()} for member in self.members]

    def restore(self, notes: list[dict[str, Any]], weights: list[dict[str, torch.Tensor]], like: Network) -> None:
        """Put the members of a checkpoint back, as `pack` gave them, with the weights of those that are snapshots."""
        bots = {member.name: member for member in self.members if member.network is None}
        self.members = []
        for note, tensors in zip(notes, weights, strict=True):
            if tensors:
                network = copy.deepcopy(like)
                network.load_state_dict(tensors)
                member = Member(note["name"], _play_network(network), network)
            else:
                member = bots[note["name"]]
            member.sums = np.array(note["sums"])
            self.members.append(member)

    def players(self) -> list[Player]:
        """Who plays for each number from 1 up."""
        return [member.player for member in self.members]


def _play_network(network: Network) -> NetworkPlayer:
    def compute_logits(features: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return network(features, lengths).cpu().numpy()

    return NetworkPlayer(compute_logits)
