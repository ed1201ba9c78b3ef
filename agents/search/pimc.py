"""PIMC: perfect information Monte Carlo, the plainest search for games with hidden cards (Levy 1989; Ginsberg 2001).

It deals the hidden cards many times, asks the exact solver what each card is worth with all cards seen, and plays the
best on average. Its known faults are that it counts on seeing the hidden cards later, and that it reads nothing into
bids and plays (Frank and Basin 1998). Against the second, deals are weighed by how a rule-based bot would have bid.
"""

from dataclasses import dataclass
from itertools import compress
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from agents.base import Agent
from agents.options import read_options
from agents.rule_bots import TricksterAgent
from agents.search.belief import draw_hands, judge_hands_by_bot, sample_likely_worlds, temper
from agents.search.budget import check_seconds, cost_of, plan_rounds
from agents.search.objective import value_hands
from agents.search.playout import apply_each, derive_streams
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
_VIEWS, _WORLDS = 32, 1 << 13  # decided, and looked at, at a time
_FIRST_ROUND = 8  # worlds, when time is the budget
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


def count_held(t: np.void) -> int:
    """Cards that all seats of a table hold."""
    return int(t["num_players"]) * int(t["hand_size"]) - int(t["num_plays"])


@dataclass
class Turn:
    """A decision being made.

    Attributes:
        view: array of `TABLE`, (1,).
        actions: what is legal; bids alone in the auction.
        values: float64 (actions, worlds so far), what each was worth in each world.
    """

    view: np.ndarray
    actions: list[int]
    values: np.ndarray


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
        seconds: time for each decision in place of these numbers. Deals are then added in rounds until it is up, 8 at
            least; their number, and so the decision, may differ from run to run.
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
        seconds: float | None = None,
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
        check_seconds(seconds)
        self.num_worlds, self.num_bid_worlds, self.seconds = num_worlds, num_bid_worlds, seconds
        self.method, self.contracts, self.is_reading, self.equity = method, contracts, is_reading, equity
        self.cost = cost_of(seconds) if seconds else num_worlds
        self._bot = TricksterAgent(courage=0.5)

    def act(self, views: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        if self.seconds is not None:  # the time is for one decision
            places = range(len(views))
            return np.array([self._act_in_time(views[i : i + 1], seeds[i], self.seconds) for i in places], np.int64)
        actions = np.empty(len(views), np.int64)
        together = max(1, min(_VIEWS, _WORLDS // max(self.num_worlds, self.num_bid_worlds)))
        for low in range(0, len(views), together):
            places = range(low, min(low + together, len(views)))
            turns = [self._open_turn(views[place : place + 1]) for place in places]
            is_open = [len(turn.actions) > 1 for turn in turns]
            open_turns, open_seeds = list(compress(turns, is_open)), compress(seeds[places], is_open)
            self._add_worlds(open_turns, list(open_seeds), list(map(self._count_worlds, open_turns)))
            actions[places] = list(map(self._choose, turns))
        return actions

    def _act_in_time(self, view: np.ndarray, seed: np.uint64, seconds: float) -> int:
        end, turn = perf_counter() + seconds, self._open_turn(view)
        if len(turn.actions) > 1:
            for number, size in enumerate(plan_rounds(_FIRST_ROUND, end), 1):
                luck = derive_streams(np.array([seed], np.uint64), number)[0, -1]
                self._add_worlds([turn], [luck], [size])
        return self._choose(turn)

    def _open_turn(self, view: np.ndarray) -> Turn:
        actions = list_legal(view)
        if view["phase"][0] == AUCTION:
            actions = [action for action in actions if action < CARD_ACTION] or actions
        return Turn(view, actions, np.empty((len(actions), 0)))

    def _count_worlds(self, turn: Turn) -> int:
        t = turn.view[0]
        if t["phase"] == AUCTION:
            return self.num_bid_worlds
        left = int(t["hand_size"]) - int(t["num_plays"]) // int(t["num_players"])
        return max(min(_FEWEST, self.num_worlds), self.num_worlds >> max(0, left - _FULL_FROM))

    def sample(self, view: np.ndarray, seed: np.uint64, num_worlds: int) -> np.ndarray:
        """Worlds of a view, (1,), by what the agent reads into what the others did: array of `TABLE`, (num_worlds,)."""
        if not self.is_reading:
            return sample_worlds(view, num_worlds, seed)
        seeds = np.array([seed], np.uint64)
        hands = draw_hands(view, _NUM_CANDIDATES, ~seeds)
        found = judge_hands_by_bot(view, hands[0], self._bot, _NOISE)
        weights = temper(np.ascontiguousarray(found.T[None]), _LEAST_EFFECTIVE)
        return sample_likely_worlds(view, num_worlds, seeds, hands, weights)[0]

    def _add_worlds(self, turns: list[Turn], seeds: list[np.uint64], numbers: list[int]) -> None:
        """Find what the actions of some turns are worth in so many more worlds of each."""
        played = []
        for turn, seed, num_worlds in zip(turns, seeds, numbers, strict=True):
            worlds = self.sample(turn.view, seed, num_worlds)
            if self._is_solved(turn.view[0]):
                turn.values = np.concatenate([turn.values, self._solve(worlds, turn.actions)], axis=1)
            else:
                played.append((turn, worlds))
        if played:
            self._play_out(played)

    def _is_solved(self, t: np.void) -> bool:
        return t["phase"] == PLAY and count_held(t) <= _MOST_SOLVED

    def _solve(self, worlds: np.ndarray, actions: list[int]) -> np.ndarray:
        """Exact values of cards, (actions, worlds)."""
        t = worlds[0]
        num_sides = int(t["num_sides"])
        side, pitching = int(t["seat"]) % num_sides, int(t["pitcher"]) % num_sides
        if self.method == "max_n" and count_held(t) <= _MOST_MAX_N:
            values = solve_max_n_many(worlds)[:, :, side]
        else:
            values = solve_many(worlds) if side == pitching else -solve_many(worlds)
        return values[:, np.array(actions) - CARD_ACTION].T

    def _play_out(self, played: list[tuple[Turn, np.ndarray]]) -> None:
        """Let the bot play all actions of some turns out, each in some worlds, all together."""
        parts = [np.tile(worlds, len(turn.actions)) for turn, worlds in played]
        tables = np.concatenate(parts)
        actions = [np.repeat(turn.actions, len(worlds)) for turn, worlds in played]
        apply_each(tables, np.concatenate(actions))
        play_on(tables, self._bot, (AUCTION, PLAY))
        ends = np.cumsum([len(part) for part in parts])
        for (turn, worlds), part in zip(played, np.split(tables, ends[:-1]), strict=True):
            t = turn.view[0]
            num_sides = int(t["num_sides"])
            values = value_hands(part, int(t["seat"]) % num_sides, num_sides, self.equity)
            values = values.reshape(len(turn.actions), -1)
            if self._is_contract_solved(t):
                is_own = part["pitcher"].reshape(len(turn.actions), -1) == t["seat"]
                values = np.where(is_own, value_contracts(worlds, int(t["seat"]))[:, turn.actions].T, values)
            turn.values = np.concatenate([turn.values, values], axis=1)

    def _is_contract_solved(self, t: np.void) -> bool:
        return self.contracts == "solved" and t["phase"] == AUCTION and count_held(t) <= _MOST_SOLVED

    def _choose(self, turn: Turn) -> int:
        if len(turn.actions) == 1:
            return turn.actions[0]
        means = turn.values.mean(axis=1)
        if turn.view["phase"][0] == AUCTION:
            return turn.actions[int(np.argmax(means >= means.max() - _SAME))]  # of equals the lowest
        values = np.full(NUM_CARDS, np.nan)
        values[np.array(turn.actions) - CARD_ACTION] = means
        return CARD_ACTION + choose_card(values, int(turn.view["trump"][0]))


def new_pimc(options: str) -> PimcAgent:
    """PIMC as a text asks for it, such as "worlds=100" or "seconds=0.5"; empty for nothing.

    Raises:
        ValueError: for an option that is not known, or a value that it does not take.
    """
    given = read_options("pimc", options, {"worlds": int, "seconds": float})
    if "worlds" in given:
        given["num_worlds"] = given["num_bid_worlds"] = given.pop("worlds")
    return PimcAgent(**given)


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
