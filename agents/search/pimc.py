"""PIMC: perfect information Monte Carlo, the plainest search for games with hidden cards (Levy 1989; Ginsberg 2001).

It deals the hidden cards many times, asks the exact solver what each card is worth with all cards seen, and plays the
best on average. Its known faults are that it counts on seeing the hidden cards later, and that it reads nothing into
bids and plays (Frank and Basin 1998). Against the second, deals are weighed by how a rule-based bot would have bid.
"""

from typing import TYPE_CHECKING

import numpy as np

from agents.base import Agent
from agents.rule_bots import TricksterAgent
from agents.search.belief import draw_hands, judge_hands_by_bot, sample_likely_worlds, temper
from agents.search.objective import value_hands
from agents.search.solver import choose_card, solve_many, solve_max_n_many
from agents.search.worlds import sample_worlds
from pitch_env.cards import CARD_ACTION, JACK, MAX_BID, NUM_ACTIONS, NUM_CARDS, NUM_RANKS
from pitch_env.engine import apply_action, legal_mask
from pitch_env.kernels import ONE, kernel
from pitch_env.table import AUCTION, NOT_YET, PLAY
from pitch_env.view import view_tables

if TYPE_CHECKING:
    from agents.equity import Equity

METHODS = ("two_sided", "max_n")
CONTRACTS = ("played", "solved")
_MOST_SOLVED = 25  # cards held that a search takes milliseconds for: from the first lead, or after a trick of five
_MOST_MAX_N = 16  # the same of max^n, which cuts less
_FULL_FROM = 4  # cards a seat when all worlds are solved; one card more halves their number
_FEWEST = 4
_NUM_CANDIDATES = 256  # hands of each other seat that are judged
_LEAST_EFFECTIVE = 32  # of them, below which weights are tempered
_NOISE = 0.2  # how often others are taken to act at random, and not as the bot does
_SAME = 1e-6  # mean values that differ less are equal


@kernel
def _apply_each(tables, turns, actions):
    for place in range(turns.shape[0]):
        apply_action(tables[turns[place]], actions[place])


def play_on(tables: np.ndarray, bot: Agent, phases: tuple[int, ...]) -> None:
    """Let a bot that draws nothing at random act at every seat of tables, (N,), in place, while in some phases."""
    while len(turns := np.flatnonzero(np.isin(tables["phase"], phases))):
        views = view_tables(tables[turns], tables["seat"][turns])
        _apply_each(tables, turns, bot.act(views, np.zeros(len(turns), np.uint64)))


def list_legal(view: np.ndarray) -> list[int]:
    """Legal actions at a view, (1,)."""
    legal = legal_mask(view)
    return [action for action in range(NUM_ACTIONS) if legal >> action & 1]


class PimcAgent(Agent):
    """Averages exact values over sampled deals; bids what is worth most when a rule-based bot goes on from there.

    Beyond 25 cards held, with five players or more until some tricks are played, the bot's games take the place of
    exact values.

    Args:
        num_worlds: deals a card is chosen by; with five cards a seat half of them are solved, with six a quarter.
        num_bid_worlds: deals a bid is chosen by.
        method: what best play is: "two_sided", the pitcher's side against all others together, or "max_n", each side
            for itself, from 16 cards down; above that it is two-sided all the same.
        contracts: how an own contract is judged: "played" by the bot at all seats, or "solved" by best play against
            all others together. Solved ones cost more and bid worse: they meet no mistakes and see all cards.
        seed: of the decisions that are asked for one at a time, by calling the agent.
        is_reading: whether deals are likelier in which the bot would have bid, and led first, as the others did; else
            all that fit are as likely.
        equity: values hands that the bot plays to their end by each side's chance to win the match; None: by points,
            whatever the score. Solved cards are worth points all the same, for the solver knows no scores.

    Raises:
        ValueError: for a nonsense value.
    """

    name = "pimc"

    def __init__(
        self,
        num_worlds: int = 64,
        num_bid_worlds: int = 64,
        method: str = "two_sided",
        contracts: str = "played",
        seed: int | None = None,
        *,
        is_reading: bool = True,
        equity: "Equity | None" = None,
    ) -> None:
        super().__init__(seed)
        for name, number in (("num_worlds", num_worlds), ("num_bid_worlds", num_bid_worlds)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise ValueError(f"{name} takes a whole number from 1 up, not {number!r}")
        for name, choice, choices in (("method", method, METHODS), ("contracts", contracts, CONTRACTS)):
            if choice not in choices:
                raise ValueError(f"{name} takes one of {', '.join(choices)}, not {choice!r}")
        if equity is not None and contracts == "solved":
            raise ValueError("contracts='solved' counts points and takes no equity; give contracts='played'")
        self.num_worlds, self.num_bid_worlds = num_worlds, num_bid_worlds
        self.method, self.contracts, self.is_reading, self.equity = method, contracts, is_reading, equity
        self._bot = TricksterAgent(courage=0.5)

    def act(self, views: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        return np.array([self._act_once(views[i : i + 1], seeds[i]) for i in range(len(views))], np.int64)

    def _act_once(self, view: np.ndarray, seed: np.uint64) -> int:
        legal = list_legal(view)
        if len(legal) == 1:
            return legal[0]
        if view["phase"][0] == AUCTION:
            return self._choose_bid(view, seed, [bid for bid in legal if bid < CARD_ACTION])
        return self._choose_card(view, seed)

    def sample(self, view: np.ndarray, seed: np.uint64, num_worlds: int) -> np.ndarray:
        """Worlds of a view, (1,), by what the agent reads into what the others did: array of `TABLE`, (num_worlds,)."""
        if not self.is_reading:
            return sample_worlds(view, num_worlds, seed)
        seeds = np.array([seed], np.uint64)
        hands = draw_hands(view, _NUM_CANDIDATES, ~seeds)
        found = judge_hands_by_bot(view, hands[0], self._bot, _NOISE)
        weights = temper(np.ascontiguousarray(found.T[None]), _LEAST_EFFECTIVE)
        return sample_likely_worlds(view, num_worlds, seeds, hands, weights)[0]

    def _choose_card(self, view: np.ndarray, seed: np.uint64) -> int:
        seat = int(view["seat"][0])
        left = int(view["hand_size"][0]) - int(view["num_plays"][0]) // int(view["num_players"][0])
        num_worlds = max(min(_FEWEST, self.num_worlds), self.num_worlds >> max(0, left - _FULL_FROM))
        values = self._value_cards(self.sample(view, seed, num_worlds), seat).mean(axis=0)
        return CARD_ACTION + choose_card(values, int(view["trump"][0]))

    def _value_cards(self, worlds: np.ndarray, seat: int) -> np.ndarray:
        """What each card is worth to the seat to act in each world, (N, 52)."""
        num_sides = int(worlds["num_sides"][0])
        side, pitching = seat % num_sides, int(worlds["pitcher"][0]) % num_sides
        held = int(worlds["num_players"][0]) * int(worlds["hand_size"][0]) - int(worlds["num_plays"][0])
        if held > _MOST_SOLVED:
            return self._play_cards_out(worlds, side, num_sides)
        if self.method == "max_n" and held <= _MOST_MAX_N:
            return solve_max_n_many(worlds)[:, :, side]
        values = solve_many(worlds)
        return values if side == pitching else -values

    def _play_cards_out(self, worlds: np.ndarray, side: int, num_sides: int) -> np.ndarray:
        cards = [action - CARD_ACTION for action in list_legal(worlds[:1])]
        tables = np.tile(worlds, len(cards))
        _apply_each(tables, np.arange(len(tables)), CARD_ACTION + np.repeat(cards, len(worlds)))
        play_on(tables, self._bot, (PLAY,))
        values = np.full((len(worlds), NUM_CARDS), np.nan)
        values[:, cards] = value_hands(tables, side, num_sides, self.equity).reshape(len(cards), -1).T
        return values

    def _choose_bid(self, view: np.ndarray, seed: np.uint64, bids: list[int]) -> int:
        seat, num_sides = int(view["seat"][0]), int(view["num_sides"][0])
        worlds = self.sample(view, seed, self.num_bid_worlds)
        tables = np.tile(worlds, len(bids))
        _apply_each(tables, np.arange(len(tables)), np.repeat(bids, len(worlds)))
        play_on(tables, self._bot, (AUCTION, PLAY))
        values = value_hands(tables, seat % num_sides, num_sides, self.equity).reshape(len(bids), -1)
        cards = int(view["num_players"][0]) * int(view["hand_size"][0])
        if self.contracts == "solved" and cards <= _MOST_SOLVED:
            is_own = tables["pitcher"].reshape(len(bids), -1) == seat
            values = np.where(is_own, value_contracts(worlds, seat)[:, bids].T, values)
        means = values.mean(axis=1)
        return bids[int(np.argmax(means >= means.max() - _SAME))]  # of equals the lowest


def value_contracts(worlds: np.ndarray, seat: int) -> np.ndarray:
    """Margin of each contract of a seat in each world, (N, 5), the lead being the best on average over the worlds.

    One solve tells of all contracts: what the pitcher is sure to win makes a bid or not. The others have the rest.
    """
    num_players, num_sides = int(worlds["num_players"][0]), int(worlds["num_sides"][0])
    tables = worlds.copy()
    tables["pitcher"] = tables["seat"] = seat
    tables["bid"] = 1
    tables["phase"] = PLAY
    points = solve_many(tables, "points")
    dealt = np.bitwise_or.reduce(worlds["dealt"][:, :num_players], axis=1)
    jacks = np.arange(NUM_CARDS, dtype=np.uint64) // NUM_RANKS * NUM_RANKS + JACK  # of each card's suit
    total = 3 + (dealt[:, None] >> jacks & ONE).astype(np.float64)  # Game is nearly always awarded
    values = np.full((len(worlds), MAX_BID + 1), np.nan)
    for bid in range(1, MAX_BID + 1):
        scores = np.where(points < bid, -bid, points)  # NaN stays
        margins = scores - (total - points) / (num_sides - 1)
        values[:, bid] = margins[:, choose_card(margins.mean(axis=0), NOT_YET)]
    return values
