"""The opponent pool: bots and frozen snapshots that play some seats, the harder to beat the more often."""

import copy
from dataclasses import dataclass

import numpy as np
import torch

import agents
from agents.network import Trunk
from agents.training.parallel import Ranks
from agents.training.rollout import AgentPlayer, NetworkPlayer, Player, Shard, reward_points
from pitch_env.rules import Rules

_MEMORY = 0.98  # how much of a member's margin is remembered from one update to the next
_FLOOR = 0.25  # the easiest member is still met this often, relative to the hardest


@dataclass
class Member:
    """Someone in the pool.

    Attributes:
        name: shown in tables.
        player: who decides.
        network: its network, None for a bot.
        margin: running mean of the learner's points a hand ahead of it.
        num_hands: hands the margin comes from.
    """

    name: str
    player: Player
    network: Trunk | None = None
    margin: float = 0.0
    num_hands: int = 0


class Pool:
    """Opponents of the learner in a share of the tables.

    Args:
        rules: what is played.
        bots: names of agents that are members from the start.
        share: share of the tables at which a member sits; there it plays each side with even odds, and at least one
            side is the learner's and one the member's.
        max_snapshots: snapshots kept; when there are more the middle one goes, so that the oldest and the newest stay.
    """

    def __init__(self, rules: Rules, bots: list[str], share: float, max_snapshots: int) -> None:
        self.rules, self.share, self.max_snapshots = rules, share, max_snapshots
        self.members = [Member(name, AgentPlayer(agents.load(name, rules))) for name in bots]

    def add_snapshot(self, network: Trunk, num_steps: int) -> None:
        """Freeze a copy of a network as a member."""
        frozen = copy.deepcopy(network).requires_grad_(False)
        self.members.append(Member(f"step {num_steps:,}", _play_network(frozen), frozen))
        snapshots = [member for member in self.members if member.network is not None]
        if len(snapshots) > self.max_snapshots:
            self.members.remove(snapshots[len(snapshots) // 2])

    def weigh(self) -> np.ndarray:
        """Probability of each member to be met: higher the less the learner beats it."""
        margins = np.array([member.margin for member in self.members])
        spread = np.ptp(margins)
        hardness = (margins.max() - margins) / spread if spread > 0 else np.ones(len(margins))
        weights = _FLOOR + (1 - _FLOOR) * hardness
        return weights / weights.sum()

    def seat(self, shard: Shard) -> None:
        """Seat members at a shard's tables for the next hand; a member's number is its place in the list plus 1."""
        num_tables, num_seats = shard.seat_players.shape
        generator = shard.generator
        shard.seat_players[:] = 0
        num_mixed = round(self.share * num_tables) if self.members else 0
        if num_mixed == 0:
            return
        places = generator.permutation(num_tables)[:num_mixed]
        chosen = 1 + generator.choice(len(self.members), num_mixed, p=self.weigh())
        num_sides = self.rules.num_sides
        is_member = generator.random((num_mixed, num_sides)) < 0.5
        learner_sides = generator.integers(num_sides, size=num_mixed)
        member_sides = (learner_sides + generator.integers(1, num_sides, size=num_mixed)) % num_sides
        rows = np.arange(num_mixed)
        is_member[rows, learner_sides] = False
        is_member[rows, member_sides] = True
        by_seat = is_member[:, np.arange(num_seats) % num_sides]
        shard.seat_players[places] = np.where(by_seat, chosen[:, None], 0)

    def score(self, shards: list[Shard], ranks: Ranks) -> dict[str, float]:
        """Take in how the learner did against each member in the hands just played; returns facts for the log."""
        sums = np.zeros((len(self.members), 2))  # of the learner's points ahead, and of hands
        for shard in shards if self.members else ():
            points = reward_points(shard.tables)
            for number in range(1, len(self.members) + 1):
                is_other = shard.seat_players == number
                is_met = is_other.any(1)
                is_own = shard.seat_players == 0
                own = (points * is_own)[is_met].sum(1) / is_own[is_met].sum(1)
                other = (points * is_other)[is_met].sum(1) / is_other[is_met].sum(1)
                sums[number - 1] += (own - other).sum(), is_met.sum()
        facts = {}
        for member, (total, num_hands) in zip(self.members, ranks.add_up(sums), strict=True):
            if num_hands:
                weight = _MEMORY if member.num_hands else 0.0
                member.margin = weight * member.margin + (1 - weight) * total / num_hands
                member.num_hands += int(num_hands)
                facts[f"pool/{member.name}"] = float(member.margin)
        return facts

    def restore(self, notes: list[dict], weights: list[dict[str, torch.Tensor]], like: Trunk) -> None:
        """Put the members of a checkpoint back: their names and margins, and weights of those that are snapshots."""
        bots = {member.name: member for member in self.members if member.network is None}
        self.members = []
        for note, tensors in zip(notes, weights, strict=True):
            if tensors:
                network = copy.deepcopy(like)
                network.load_state_dict(tensors)
                member = Member(note["name"], _play_network(network), network)
            else:
                member = bots[note["name"]]
            member.margin, member.num_hands = note["margin"], note["num_hands"]
            self.members.append(member)

    def players(self) -> list[Player]:
        """Who plays for each number from 1 up."""
        return [member.player for member in self.members]


def _play_network(network: Trunk) -> NetworkPlayer:
    def compute_logits(features: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return network(features, lengths).cpu().numpy()

    return NetworkPlayer(compute_logits)
