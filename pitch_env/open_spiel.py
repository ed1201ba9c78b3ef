"""Pitch as a game of OpenSpiel, played by our engine. Importing this module registers ``python_pitch``.

>>> import pyspiel
>>> import pitch_env.open_spiel
>>> game = pyspiel.load_game("python_pitch(num_players=2,num_suits=2,num_ranks=4,hand_size=2)")

Parameters are the fields of `Rules` and two more. ``whole_match``: without it an episode is one hand from scores of 0,
and each seat's return is its side's score change less the mean of the other sides'; with it an episode is a match,
which pays 1 to the winner's side and -1/(sides - 1) to each other. ``dealer``: the seat that deals first, by default 0,
which keeps the information sets of one hand few; -1 draws it at a chance node.

Cards are dealt one at a time, to one seat after the other, to each from low to high with the probabilities that make
every deal as likely as any other: each deal is one path of chance nodes. What a seat sees begins when all are dealt.

The information state tensor is the observation that networks of this project read, which recalls the whole hand but no
earlier one; a match therefore has information states as strings only.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyspiel

from pitch_env.cards import CARD_ACTION, NUM_ACTIONS, NUM_CARDS, action_name, card_name, cards_of
from pitch_env.deals import draw_deal
from pitch_env.engine import apply, legal_mask, set_hand
from pitch_env.layout import layout
from pitch_env.observation import observe
from pitch_env.rules import MAX_PLAYERS, Rules
from pitch_env.table import HAND_OVER, NOBODY, NOT_YET, TABLE, deck_mask, read_rules, write_rules
from pitch_env.view import view_tables

SHORT_NAME = "python_pitch"
DRAWN = -1  # the dealer is drawn
_MOST_POINTS = 4  # of a hand: High, Low, Jack and Game; also the most that a set pitcher loses

_PARAMETERS = {**Rules().to_dict(), "dealer": 0, "whole_match": False}


def _describe_type(has_tensor: bool) -> pyspiel.GameType:
    return pyspiel.GameType(
        short_name=SHORT_NAME,
        long_name="Python Pitch",
        dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
        chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
        information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
        utility=pyspiel.GameType.Utility.ZERO_SUM,
        reward_model=pyspiel.GameType.RewardModel.TERMINAL,
        max_num_players=MAX_PLAYERS,
        min_num_players=2,
        provides_information_state_string=True,
        provides_information_state_tensor=has_tensor,
        provides_observation_string=True,
        provides_observation_tensor=True,
        provides_factored_observation_string=True,
        parameter_specification=_PARAMETERS,
    )


@dataclass(frozen=True)
class Settings:
    """What is played."""

    rules: Rules
    dealer: int
    whole_match: bool


@dataclass
class Course:
    """All that changes in a state, and its settings; made to be copied fast, for OpenSpiel copies at every step.

    Attributes:
        settings: what is played.
        table: `TABLE` (1,).
        is_dealing: the next move is chance's.
        past: the hands played before this one, in words.
        start: how many moves came before this hand's first card.
    """

    settings: Settings
    table: np.ndarray
    is_dealing: bool = True
    past: str = ""
    start: int = 0

    def __deepcopy__(self, _: dict) -> "Course":
        table = self.table.view(np.uint8).copy().view(TABLE)  # bytes: a record copies twenty times as slowly
        return Course(self.settings, table, self.is_dealing, self.past, self.start)


def _list_bits(mask: int) -> list[int]:
    places = []
    while mask:
        places.append((mask & -mask).bit_length() - 1)
        mask &= mask - 1
    return places


def _list_masks(table: np.ndarray, num_seats: int) -> list[int]:
    return [int(mask) for mask in table["dealt"][0, :num_seats]]


class PitchGame(pyspiel.Game):
    """One hand, or one match, of Pitch.

    Raises:
        ValueError: for a parameter that is unknown or takes another value; the text names it.
    """

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        values = {**_PARAMETERS, **(params or {})}
        dealer, whole_match = values.pop("dealer"), bool(values.pop("whole_match"))
        rules = Rules.from_dict(values)
        if not DRAWN <= dealer < rules.num_players:
            raise ValueError(f"dealer takes a seat from 0 to {rules.num_players - 1}, or {DRAWN}, not {dealer!r}")
        self.settings = Settings(rules, dealer, whole_match)
        num_seats, others = rules.num_players, rules.num_sides - 1
        most = 1.0 if whole_match else _MOST_POINTS + _MOST_POINTS / others
        info = pyspiel.GameInfo(
            num_distinct_actions=NUM_ACTIONS,
            max_chance_outcomes=NUM_CARDS,
            num_players=num_seats,
            min_utility=-1.0 if whole_match else -most,
            max_utility=most,
            utility_sum=0.0,
            max_game_length=self._count_hands() * num_seats * (1 + rules.hand_size),
        )
        super().__init__(_describe_type(has_tensor=not whole_match), info, params or {})
        self.blank = Course(self.settings, np.zeros(1, TABLE), start=1 if dealer == DRAWN else 0)
        write_rules(self.blank.table, rules)
        self.blank.table["viewer"] = self.blank.table["winner"] = NOBODY
        self.blank.table["dealer"] = dealer

    def _count_hands(self) -> int:
        return self.settings.rules.max_hands if self.settings.whole_match else 1

    def max_chance_nodes_in_history(self) -> int:
        """Cards dealt, and the draw of the dealer."""
        rules = self.settings.rules
        return self._count_hands() * rules.num_players * rules.hand_size + (self.settings.dealer == DRAWN)

    def new_initial_state(self) -> "PitchState":
        """A state before the first card is dealt."""
        return PitchState(self)

    def make_py_observer(
        self, iig_obs_type: pyspiel.IIGObservationType | None = None, params: dict[str, Any] | None = None
    ) -> "PitchObserver":
        """An observer; OpenSpiel asks for it."""
        return PitchObserver(self.settings, iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False), params)


class PitchState(pyspiel.State):
    """A hand or match in progress."""

    def __init__(self, game: PitchGame) -> None:
        super().__init__(game)
        self.course = deepcopy(game.blank)

    # what OpenSpiel asks of a state

    def current_player(self) -> int:
        """The seat to act, chance while cards are dealt, or the end."""
        if self.course.is_dealing:
            return pyspiel.PlayerId.CHANCE
        seat = int(self.course.table["seat"][0])
        return pyspiel.PlayerId.TERMINAL if seat == NOBODY else seat

    def is_terminal(self) -> bool:
        """Whether the hand, or with ``whole_match`` the match, is over."""
        return not self.course.is_dealing and int(self.course.table["seat"][0]) == NOBODY

    def _legal_actions(self, _: int) -> list[int]:
        return _list_bits(legal_mask(self.course.table))

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """The dealers, or the cards that may come next, with their probabilities."""
        rules = self.course.settings.rules
        if self.course.table["dealer"][0] == DRAWN:
            return [(seat, 1 / rules.num_players) for seat in range(rules.num_players)]
        dealt = _list_masks(self.course.table, rules.num_players)
        own = dealt[_find_receiver(dealt, rules.hand_size)]
        missing = rules.hand_size - own.bit_count()
        cards = _list_bits(deck_mask(rules) & ~sum(dealt) & ~((1 << own.bit_length()) - 1))
        ways = math.comb(len(cards), missing)
        chances = [math.comb(len(cards) - 1 - place, missing - 1) / ways for place in range(len(cards))]
        return [(card, chance) for card, chance in zip(cards, chances, strict=True) if chance > 0]

    def _apply_action(self, action: int) -> None:
        course = self.course
        if course.is_dealing:
            self._deal(action)
            return
        apply(course.table, action)
        if course.settings.whole_match and course.table["phase"][0] == HAND_OVER:
            course.past += f"{self.describe_public()} | "
            course.table["dealer"] = (int(course.table["dealer"][0]) + 1) % course.settings.rules.num_players
            course.table["dealt"] = 0
            course.is_dealing = True
            course.start = len(self.history()) + 1  # OpenSpiel notes a move after it is made

    def _deal(self, action: int) -> None:
        course, rules = self.course, self.course.settings.rules
        if course.table["dealer"][0] == DRAWN:
            course.table["dealer"] = action
            return
        dealt = _list_masks(course.table, rules.num_players)
        dealt[_find_receiver(dealt, rules.hand_size)] |= 1 << action
        if sum(dealt).bit_count() < rules.num_players * rules.hand_size:
            course.table["dealt"][0, : rules.num_players] = dealt
        else:
            set_hand(course.table, dealt)
            course.is_dealing = False

    def _action_to_string(self, player: int, action: int) -> str:
        if player != pyspiel.PlayerId.CHANCE:
            return action_name(action)
        is_card = not self.course.is_dealing or self.course.table["dealer"][0] != DRAWN
        return f"deal {card_name(action)}" if is_card else f"dealer {action}"

    def returns(self) -> list[float]:
        """What each seat has won; nothing before the end."""
        t, settings = self.course.table[0], self.course.settings
        rules = settings.rules
        if not self.is_terminal():
            return [0.0] * rules.num_players
        if settings.whole_match:
            won = [float(side == t["winner"]) for side in range(rules.num_sides)]
        else:
            won = [float(delta) for delta in t["deltas"][: rules.num_sides]]
        net = [own - (sum(won) - own) / (rules.num_sides - 1) for own in won]
        return [net[side] for side in rules.sides]

    def __str__(self) -> str:
        course, t = self.course, self.course.table[0]
        shown = 0 if course.is_dealing else int(t["played"])
        hands = [cards_of(mask & ~shown) for mask in _list_masks(course.table, course.settings.rules.num_players)]
        text = " / ".join(" ".join(card_name(card) for card in hand) for hand in hands)
        dealer = f" by {t['dealer']}" if course.is_dealing else ""
        return f"{course.past}{self.describe_public()}{dealer}; hands {text}"

    # what our own code asks besides

    @property
    def table(self) -> np.ndarray:
        """The table, `TABLE` (1,), hidden cards and all."""
        return self.course.table

    def view(self, seat: int) -> np.ndarray:
        """What a seat may know, as a view, (1,)."""
        return view_tables(self.course.table, np.array([seat]))

    def describe_public(self) -> str:
        """What all know of this hand."""
        if self.course.is_dealing:
            return "dealing"
        t, rules = self.course.table[0], self.course.settings.rules
        num_seats, dealer = rules.num_players, int(t["dealer"])
        seat_bids, leaders, cards = t["bids"].tolist(), t["leaders"].tolist(), t["plays"][: t["num_plays"]].tolist()
        turns = [(dealer + 1 + turn) % num_seats for turn in range(num_seats)]
        bids = [f"{seat}-{seat_bids[seat] or 'pass'}" for seat in turns if seat_bids[seat] != NOT_YET]
        plays = [
            f"{(leaders[index // num_seats] + index) % num_seats}-{card_name(card)}" for index, card in enumerate(cards)
        ]
        parts = [f"dealer {dealer}", f"bids {' '.join(bids)}", f"plays {' '.join(plays)}"]
        if self.course.settings.whole_match:
            parts.append(f"scores {' '.join(str(score) for score in t['scores'][: rules.num_sides])}")
        return "; ".join(parts)

    def describe_hand(self, seat: int) -> str:
        """The cards a seat still holds."""
        if self.course.is_dealing:
            return ""
        t = self.course.table[0]
        return " ".join(card_name(card) for card in _list_bits(int(t["dealt"][seat] & ~t["played"])))

    def resample_from_infostate(self, player: int, sampler: Callable[[], float]) -> "PitchState":
        """A state that the player cannot tell from this one, each that play leaves possible as likely as any other.

        Args:
            player: whose knowledge is kept.
            sampler: gives numbers from 0 up to 1.
        """
        moves, start, rules = self.history(), self.course.start, self.course.settings.rules
        state = self.get_game().new_initial_state()
        for move in moves[:start]:
            state.apply_action(move)
        if self.course.is_dealing:
            return state  # a seat sees its cards when all are dealt
        _deal_all(state, draw_deal(self.view(player), sampler))
        for move in moves[start + rules.num_players * rules.hand_size :]:
            state.apply_action(move)
        return state


def _find_receiver(dealt: list[int], hand_size: int) -> int:
    return next(seat for seat, mask in enumerate(dealt) if mask.bit_count() < hand_size)


def _deal_all(state: PitchState, dealt: list[int]) -> None:
    for mask in dealt:
        for card in _list_bits(mask):
            state.apply_action(card)


def state_of_view(view: np.ndarray, sampler: Callable[[], float]) -> PitchState:
    """A state of one hand that agrees with a view, (1,); what the view hides is drawn as `draw_deal` does."""
    t = view[0]
    num_seats = int(t["num_players"])
    state = load_game(read_rules(t), dealer=DRAWN).new_initial_state()
    state.apply_action(int(t["dealer"]))
    _deal_all(state, draw_deal(view, sampler))
    plays = [CARD_ACTION + int(card) for card in t["plays"][: t["num_plays"]]]
    for turn in range(1, num_seats + 1):
        bid = int(t["bids"][(int(t["dealer"]) + turn) % num_seats])
        if bid != NOT_YET:
            state.apply_action(bid)
    for move in plays:
        state.apply_action(move)
    return state


@cache
def load_game(rules: Rules, dealer: int = 0, whole_match: bool = False) -> PitchGame:
    """The game for some rules, as OpenSpiel loads it."""
    return pyspiel.load_game(SHORT_NAME, {**rules.to_dict(), "dealer": dealer, "whole_match": whole_match})


class PitchObserver:
    """What a seat sees, as OpenSpiel asks for it.

    Attributes:
        tensor: float32 of 0 and 1, None where there is none.
        dict: parts of it by name.
    """

    def __init__(
        self, settings: Settings, kind: pyspiel.IIGObservationType, params: dict[str, Any] | None = None
    ) -> None:
        if params:
            raise ValueError(f"an observer of {SHORT_NAME} takes no parameters, not {params}")
        self._settings, self._kind = settings, kind
        num_seats = settings.rules.num_players
        self.dict: dict[str, np.ndarray] = {}
        self.tensor: np.ndarray | None = None
        if not kind.public_info or (kind.perfect_recall and settings.whole_match):
            return
        shapes: dict[str, tuple[int, ...]] = {"observation": (layout(num_seats).size,)}
        if kind.private_info == pyspiel.PrivateInfoType.ALL_PLAYERS:
            shapes["hands"] = (num_seats, NUM_CARDS)
        self.tensor = np.zeros(sum(math.prod(shape) for shape in shapes.values()), np.float32)
        start = 0
        for name, shape in shapes.items():
            self.dict[name] = self.tensor[start : start + math.prod(shape)].reshape(shape)
            start += math.prod(shape)

    def set_from(self, state: PitchState, player: int) -> None:
        """Write `tensor` for a seat."""
        if self.tensor is None:
            return
        self.tensor.fill(0)
        if state.course.is_dealing:
            return
        is_private = self._kind.private_info != pyspiel.PrivateInfoType.NONE
        view = state.view(player if is_private else NOBODY)
        self.dict["observation"][:] = observe(view, player, self._settings.rules.num_players)[0]
        if "hands" in self.dict:
            t = state.course.table[0]
            for seat, plane in enumerate(self.dict["hands"]):
                plane[cards_of(t["dealt"][seat] & ~t["played"])] = 1

    def string_from(self, state: PitchState, player: int) -> str:
        """The same in words; with perfect recall also the hands before this one."""
        parts = []
        if self._kind.public_info:
            past = state.course.past if self._kind.perfect_recall else ""
            parts.append(past + state.describe_public())
        if self._kind.private_info == pyspiel.PrivateInfoType.SINGLE_PLAYER:
            parts.append(f"seat {player} holds {state.describe_hand(player)}")
        elif self._kind.private_info == pyspiel.PrivateInfoType.ALL_PLAYERS:
            seats = range(self._settings.rules.num_players)
            parts.append("; ".join(f"seat {seat} holds {state.describe_hand(seat)}" for seat in seats))
        return "; ".join(parts)


pyspiel.register_game(_describe_type(has_tensor=True), PitchGame)
