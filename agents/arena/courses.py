"""Every course of one hand, on decks so small that all fit into memory."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb

import numpy as np

from pitch_env.cards import NUM_ACTIONS, cards_of, mask_of
from pitch_env.engine import apply_action, legal_actions, set_hand
from pitch_env.kernels import ONE, count, kernel, lowest
from pitch_env.rules import Rules
from pitch_env.table import NOBODY, TABLE, deck_mask, write_rules
from pitch_env.view import view_tables

MOST_DEALS = 20_000
MOST_NODES = 30_000_000


@kernel
def _list_legal(tables, legal, counts):
    for i in range(tables.shape[0]):
        legal[i] = legal_actions(tables[i])
        counts[i] = count(legal[i])


@kernel
def _list_actions(legal, actions):
    k = 0
    for i in range(legal.shape[0]):
        mask = legal[i]
        while mask:
            actions[k] = lowest(mask)
            mask &= mask - ONE
            k += 1


@kernel
def _apply_all(tables, actions):
    for i in range(tables.shape[0]):
        apply_action(tables[i], actions[i])


@kernel
def _reach(first, parents, slots, seats, policy, skipped, reach):
    # chance of each node when one seat (or nobody) does what leads there
    for i in range(first, parents.shape[0]):
        parent = parents[i]
        reach[i] = reach[parent]
        if seats[parent] != skipped:
            reach[i] *= policy[slots[i]]


@kernel
def _respond(levels, parents, slots, seats, infosets, starts, seat, values, gains, best):
    # values: of the ends, times the others' reach; from the last level up each information set takes its best choice
    for level in range(levels.shape[0] - 2, 0, -1):
        for i in range(levels[level], levels[level + 1]):
            parent = parents[i]
            if seats[parent] == seat:
                gains[slots[i]] += values[i]
            else:
                values[parent] += values[i]
        for i in range(levels[level], levels[level + 1]):
            parent = parents[i]
            if seats[parent] != seat:
                continue
            infoset = infosets[parent]
            if best[infoset] < 0:
                choice = starts[infoset]
                for slot in range(starts[infoset] + 1, starts[infoset + 1]):
                    if gains[slot] > gains[choice]:
                        choice = slot
                best[infoset] = choice
            if best[infoset] == slots[i]:
                values[parent] += values[i]


def _list_deals(deck: int, num_seats: int, hand_size: int) -> Iterator[list[int]]:
    if num_seats == 0:
        yield []
        return
    for cards in combinations(cards_of(deck), hand_size):
        hand = mask_of(cards)
        for rest in _list_deals(deck & ~hand, num_seats - 1, hand_size):
            yield [hand, *rest]


class Tree:
    """Every course of one hand. Nodes are numbered level by level; a policy is a probability for each slot.

    Attributes:
        rules: what is played.
        levels: int64, the first node of each level, and the number of nodes; level 0 are the deals.
        parents: int64 (nodes,) the node before, -1 at a deal.
        slots: int64 (nodes,) the choice that led here, -1 at a deal.
        seats: int64 (nodes,) to act, -1 at the end of the hand.
        infosets: int64 (nodes,) what that seat knows, -1 at the end.
        payoffs: float64 (nodes, seats), 0 before the end.
        starts: int64, the first slot of each information set, and the number of slots.
        actions: int64 (slots,) the action of each.
        views: `TABLE` (information sets,).

    Args:
        rules: what is played.
        dealers: seats that deal, each as often as the others; None for all.

    Raises:
        ValueError: if there are too many deals or courses.
    """

    def __init__(self, rules: Rules, dealers: Sequence[int] | None = None) -> None:
        self.rules = rules
        num_seats = rules.num_players
        dealers = list(range(num_seats) if dealers is None else dealers)
        deck, num_deals = rules.num_suits * rules.num_ranks, len(dealers)
        for seat in range(num_seats):
            num_deals *= comb(deck - seat * rules.hand_size, rules.hand_size)
        if num_deals > MOST_DEALS:
            raise ValueError(
                f"exact measuring takes rules with at most {MOST_DEALS:,} deals, these have {num_deals:,}: lower "
                f"num_players, num_suits, num_ranks or hand_size"
            )
        tables = self._deal(dealers, num_deals)
        levels: list[dict[str, np.ndarray]] = []
        parents, slots = np.full(num_deals, -1), np.full(num_deals, -1)
        public = tables["dealer"].astype(np.int64)  # what all have seen: the dealer, then every action
        views, starts, actions, first, num_infosets, num_slots = [], [np.zeros(1, np.int64)], [], 0, 0, 0
        while len(tables):
            seats = tables["seat"].astype(np.int64)
            legal, counts = np.empty(len(tables), np.uint64), np.empty(len(tables), np.int64)
            _list_legal(tables, legal, counts)
            is_open = seats != NOBODY
            infosets = np.full(len(tables), -1)
            hands = np.take_along_axis(tables["dealt"], np.maximum(seats, 0)[:, None], 1)[:, 0]
            hands = np.unique(hands, return_inverse=True)[1]
            _, examples, inverse = np.unique(
                (public * (hands.max() + 1) + hands)[is_open], return_index=True, return_inverse=True
            )
            infosets[is_open] = num_infosets + inverse
            payoffs = np.zeros((len(tables), num_seats))
            payoffs[~is_open] = self._pay(tables["deltas"][~is_open])
            levels.append(
                {"parents": parents, "slots": slots, "seats": seats, "infosets": infosets, "payoffs": payoffs}
            )
            chosen = np.flatnonzero(is_open)[examples]
            views.append(view_tables(tables.take(chosen), seats[chosen]))
            ends = num_slots + np.cumsum(counts[chosen])
            starts.append(ends)
            choices = np.empty(counts[chosen].sum(), np.int64)
            _list_actions(legal[chosen], choices)
            actions.append(choices)
            # the next level: children of a node stand together, in the order of their slots
            num_children = int(counts.sum())
            if first + len(tables) + num_children > MOST_NODES:
                raise ValueError(f"exact measuring takes rules with at most {MOST_NODES:,} courses of a hand")
            places = np.repeat(np.arange(len(tables)), counts)
            moves = np.empty(num_children, np.int64)
            _list_actions(legal, moves)
            ranks = np.arange(num_children) - np.repeat(np.cumsum(counts) - counts, counts)
            slots = (ends - counts[chosen])[infosets[places] - num_infosets] + ranks
            parents = first + places
            first += len(tables)
            num_infosets += len(chosen)
            num_slots += len(choices)
            public = np.unique(public[places] * NUM_ACTIONS + moves, return_inverse=True)[1]
            tables = tables.take(places)
            _apply_all(tables, moves)
        self.levels = np.cumsum([0] + [len(level["seats"]) for level in levels])
        self.parents, self.slots, self.seats, self.infosets, self.payoffs = (
            np.concatenate([level[name] for level in levels])
            for name in ("parents", "slots", "seats", "infosets", "payoffs")
        )
        self.starts, self.actions, self.views = np.concatenate(starts), np.concatenate(actions), np.concatenate(views)

    def _deal(self, dealers: list[int], num_deals: int) -> np.ndarray:
        rules = self.rules
        table = np.zeros(1, TABLE)
        write_rules(table, rules)
        table["winner"] = table["viewer"] = NOBODY
        tables = np.zeros(num_deals, TABLE)
        deals = [*_list_deals(deck_mask(rules), rules.num_players, rules.hand_size)]
        for index, (dealer, deal) in enumerate((dealer, deal) for dealer in dealers for deal in deals):
            set_hand(table, deal, dealer)
            tables[index] = table[0]
        return tables

    def _pay(self, deltas: np.ndarray) -> np.ndarray:
        sides = self.rules.num_sides
        deltas = deltas[:, :sides].astype(np.float64)
        net = deltas - (deltas.sum(1, keepdims=True) - deltas) / (sides - 1)
        return net[:, self.rules.sides]

    @property
    def num_deals(self) -> int:
        """Deals, those of each dealer counted."""
        return int(self.levels[1])

    @property
    def num_nodes(self) -> int:
        """Nodes after the deal: decisions and ends."""
        return len(self.parents)

    @property
    def num_ends(self) -> int:
        """Nodes at which the hand is over."""
        return int((self.seats == NOBODY).sum())

    @property
    def num_infosets(self) -> int:
        """Information sets, those with one legal action too."""
        return len(self.views)

    def uniform(self) -> np.ndarray:
        """The policy that takes each legal action as often as the others."""
        counts = np.diff(self.starts)
        return np.repeat(1 / counts, counts)

    def reach(self, policy: np.ndarray, skipped: int = NOBODY) -> np.ndarray:
        """Chance of each node, (nodes,), if one seat does all it can to get there."""
        reach = np.full(self.num_nodes, 1 / self.num_deals)
        _reach(self.num_deals, self.parents, self.slots, self.seats, policy, skipped, reach)
        return reach

    def respond(self, policy: np.ndarray, seat: int) -> tuple[float, np.ndarray]:
        """The most a seat can expect against a policy of all others, and a slot for each of its information sets.

        Slots of information sets that are the others', or never come up, are -1.
        """
        values = self.payoffs[:, seat] * self.reach(policy, seat)
        best = np.full(self.num_infosets, -1)
        gains = np.zeros(len(self.actions))
        _respond(
            self.levels, self.parents, self.slots, self.seats, self.infosets, self.starts, seat, values, gains, best
        )
        return float(values[: self.num_deals].sum()), best
