"""Pitch as a PettingZoo AEC environment.

`env()` is wrapped as PettingZoo's classic games are: an illegal action ends the episode with -1 for the offender.
`raw_env()` raises a `ValueError` that says what is legal. An episode is a match; agents are ``player_0`` ...

Version history:
    v0: first version.
"""

import difflib
from typing import Any

import gymnasium
import numpy as np
from pettingzoo import AECEnv
from pettingzoo.utils.env_logger import EnvLogger
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from pitch_env.cards import NUM_ACTIONS, mask_of, parse_card
from pitch_env.engine import explain_illegal, new_tables, next_hand, set_hand, start_matches, try_action
from pitch_env.layout import layout
from pitch_env.observation import observe
from pitch_env.record import record_match
from pitch_env.rules import Rules
from pitch_env.table import MATCH_OVER, MAX_SCORE, NOBODY, TABLE, deck_mask
from pitch_env.view import view_table

REWARDS = ("points", "match")
RENDER_MODES = ("human", "ansi", "rgb_array")
OPTIONS = ("dealer", "deal", "scores")


def env(rules: Rules | None = None, render_mode: str | None = None, reward: str = "points") -> AECEnv:
    """The environment with what PettingZoo's wrappers do: illegal actions end it, order is enforced. See `raw_env`."""
    return GuardedEnv(raw_env(rules, render_mode, reward))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _has_length(values: Any, length: int) -> bool:
    return isinstance(values, list | tuple | np.ndarray) and len(values) == length


class raw_env(AECEnv):
    """The environment without wrappers.

    Observations are ``{"observation": float32 (layout size,), "action_mask": int8 (57,)}``; the mask of a seat not to
    move is all zero. Actions are ``Discrete(57)``: 0 pass, 1-4 bids, 5 + card.

    Args:
        rules: what is played; by default four players to 7.
        render_mode: ``"ansi"`` (a string), ``"rgb_array"`` (a picture), ``"human"`` (a window), or None.
        reward: ``"points"`` pays each seat its side's score change when a hand is settled; ``"match"`` pays 1 to the
            winner's side and -1/(sides - 1) to each other side, once.

    Raises:
        ValueError: for an unknown render mode or reward.
    """

    metadata = {  # noqa: RUF012  (PettingZoo reads it from the class)
        "name": "pitch_v0",
        "render_modes": list(RENDER_MODES),
        "is_parallelizable": False,
        "render_fps": 2,
    }

    def __init__(self, rules: Rules | None = None, render_mode: str | None = None, reward: str = "points") -> None:
        super().__init__()
        if rules is None:
            rules = Rules()
        if not isinstance(rules, Rules):
            raise ValueError(f"rules takes a pitch_env.Rules, not {rules!r}")
        if reward not in REWARDS:
            raise ValueError(f"reward takes 'points' or 'match', not {reward!r}")
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ValueError(f"render_mode takes {', '.join(map(repr, RENDER_MODES))} or None, not {render_mode!r}")
        self.rules = rules
        self.reward = reward
        self.render_mode = render_mode
        self.possible_agents = [f"player_{seat}" for seat in range(rules.num_players)]
        self._num_players = rules.num_players
        self._seats = {name: seat for seat, name in enumerate(self.possible_agents)}
        size = layout(rules.num_players).size
        self.observation_spaces = {
            name: gymnasium.spaces.Dict(
                {
                    "observation": gymnasium.spaces.Box(0, 1, (size,), np.float32),
                    "action_mask": gymnasium.spaces.Box(0, 1, (NUM_ACTIONS,), np.int8),
                }
            )
            for name in self.possible_agents
        }
        self.action_spaces = {name: gymnasium.spaces.Discrete(NUM_ACTIONS) for name in self.possible_agents}
        self.table = np.zeros(0, TABLE)  # one table after the first reset
        self._window: Any = None

    def observation_space(self, agent: str) -> gymnasium.spaces.Space:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.spaces.Space:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict | None = None) -> None:
        """Start a match.

        Args:
            seed: fixes everything that follows, later matches too; without one the stream goes on, or on the first
                reset is drawn from the operating system.
            options: any of ``dealer`` (seat), ``deal`` (cards of each seat, such as ``[["6C", ...], ...]``) and
                ``scores`` (per side), for this match's first hand. Left-out ones are drawn or zero.

        Raises:
            ValueError: for an option that does not exist or a value it does not take; nothing is changed then.
        """
        dealer, dealt, scores = self._read_options(options or {})
        if not len(self.table) or seed is not None:
            self.table = new_tables(self.rules, seed)
        else:
            start_matches(self.table)
        if dealer is not None and dealt is None:
            self.table["dealer"] = dealer
            set_hand(self.table, [int(cards) for cards in self.table["dealt"][0]])
        elif dealt is not None:
            set_hand(self.table, dealt, dealer)
        self.table["scores"][0, : len(scores)] = scores
        self._start_scores = list(scores)
        self._has_paid = False
        self._hands: list[np.ndarray] = []
        self.agents = list(self.possible_agents)
        self.rewards: dict[str, float] = dict.fromkeys(self.agents, 0)
        self._cumulative_rewards: dict[str, float] = dict.fromkeys(self.agents, 0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict] = {name: {} for name in self.agents}
        self.agent_selection = self.agents[self.table["seat"][0]]
        if self.render_mode == "human":
            self.render()

    def _read_options(self, options: dict) -> tuple[int | None, list[int] | None, list[int]]:
        if not isinstance(options, dict):
            raise ValueError(f"options takes a dict, not {options!r}")
        for name in options:  # PettingZoo's conformance test passes a foreign option, so only slips are refused
            close = difflib.get_close_matches(str(name), OPTIONS, n=1, cutoff=0.7)
            if close and name not in OPTIONS:
                raise ValueError(f"reset has no option {name!r}: {close[0]!r} is meant? It has {', '.join(OPTIONS)}")
        num_players, num_sides, hand_size = self.rules.num_players, self.rules.num_sides, self.rules.hand_size
        dealer, deal, scores = options.get("dealer"), options.get("deal"), options.get("scores")
        if dealer is not None and not (_is_whole(dealer) and 0 <= dealer < num_players):
            raise ValueError(f"option dealer takes a seat from 0 to {num_players - 1}, not {dealer!r}")
        dealt = None
        if deal is not None:
            if not _has_length(deal, num_players) or not all(_has_length(hand, hand_size) for hand in deal):
                raise ValueError(f"option deal takes {num_players} hands of {hand_size} cards, not {deal!r}")
            dealt = [mask_of(parse_card(card) for card in hand) for hand in deal]
            everything = mask_of(parse_card(card) for hand in deal for card in hand)
            if everything.bit_count() != num_players * hand_size:
                raise ValueError("option deal holds a card twice")
            if everything & ~deck_mask(self.rules):
                raise ValueError("option deal holds a card that is not in the deck of these rules")
        if scores is None:
            return dealer, dealt, [0] * num_sides
        if not _has_length(scores, num_sides) or not all(
            _is_whole(score) and abs(score) <= MAX_SCORE for score in scores
        ):
            raise ValueError(f"option scores takes {num_sides} whole numbers within {MAX_SCORE}, not {scores!r}")
        return dealer, dealt, [int(score) for score in scores]

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        """What a seat may know; see the class."""
        vector, mask = observe(self.table, self._seats[agent], self._num_players)
        return {"observation": vector, "action_mask": mask}

    def step(self, action: int | None) -> None:
        """Take an action for the seat to act.

        Raises:
            ValueError: if it is not legal; nothing is changed then.
        """
        if self.terminations[self.agent_selection] or self.truncations[self.agent_selection]:
            self._was_dead_step(action)
        elif action is None:
            raise ValueError(f"None is only for agents whose match is over; {self.agent_selection} is to act")
        elif not self.try_step(action):
            raise ValueError(explain_illegal(self.table, action))

    def try_step(self, action: int | None) -> bool:
        """Take an action for the seat to act, which must be alive; False, with nothing changed, if it is not legal."""
        seat = try_action(self.table, action)
        if seat is None:
            return False
        self._cumulative_rewards[self.agent_selection] = 0
        if self._has_paid:
            self._clear_rewards()
            self._has_paid = False
        if seat == NOBODY:
            self._finish_hand()
            seat = self.table["seat"][0]  # of the next hand; when the match is over, whoever is first
        self.agent_selection = self.possible_agents[seat]
        if self.render_mode == "human":
            self.render()
        return True

    def _is_over(self) -> bool:
        return self.table["phase"][0] == MATCH_OVER

    def _finish_hand(self) -> None:
        t = self.table[0]
        self._has_paid = True
        self._hands.append(self.table.copy())
        is_won = t["winner"] != NOBODY
        if self.reward == "points":
            for name, seat in self._seats.items():
                self.rewards[name] = int(t["deltas"][self.rules.side(seat)])
        elif is_won:
            loss = -1 / (self.rules.num_sides - 1)
            for name, seat in self._seats.items():
                self.rewards[name] = 1 if self.rules.side(seat) == t["winner"] else loss
        self._accumulate_rewards()
        if self._is_over():
            ends = self.terminations if is_won else self.truncations
            ends.update(dict.fromkeys(self.agents, True))
        else:
            next_hand(self.table)

    def record(self) -> dict[str, Any]:
        """The match so far as a JSON-ready game record (see `pitch_env.record`)."""
        hands = self._hands if self._is_over() else [*self._hands, self.table]
        return record_match(hands, self._start_scores)

    def view(self, agent: str | None = None) -> np.ndarray:
        """The view, (1,) of `TABLE`, of an agent, by default the one to act."""
        return view_table(self.table, self._seats[agent or self.agent_selection])

    def render(self) -> str | np.ndarray | None:
        """The table with every hand open: text, a picture, or nothing when a window shows it."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() needs a render_mode: pitch_v0.env(render_mode='ansi')")
            return None
        from pitch_env import render

        if self.render_mode == "ansi":
            return render.render_text(self.table)
        if self.render_mode == "rgb_array":
            return render.render_rgb(self.table)
        if self._window is None:
            self._window = render.Window()
        self._window.show(self.table)
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_window": None}  # a window cannot be copied; the copy opens its own


class GuardedEnv(OrderEnforcingWrapper):
    """PettingZoo's three usual wrappers (illegal actions, bounds, order) in one: stacked, they cost three times more.

    It does what ``OrderEnforcingWrapper(AssertOutOfBoundsWrapper(TerminateIllegalWrapper(raw_env, -1)))`` does.
    """

    env: raw_env
    agents = property(lambda self: self._get("agents"))
    agent_selection = property(lambda self: self._get("agent_selection"))
    rewards = property(lambda self: self._get("rewards"))
    terminations = property(lambda self: self._get("terminations"))
    truncations = property(lambda self: self._get("truncations"))
    infos = property(lambda self: self._get("infos"))
    _cumulative_rewards = property(lambda self: self.env._cumulative_rewards)

    def _get(self, name: str) -> Any:
        if not self._has_reset:
            raise AttributeError(f"{name} cannot be accessed before reset")
        return getattr(self.env, name)

    def step(self, action: int | None) -> None:
        """Take an action; an illegal one costs its agent -1 and ends the match for all."""
        raw = self.env
        if not self._has_reset or not raw.agents:
            super().step(action)  # says what is wrong
            return
        self._has_updated = True
        name = raw.agent_selection
        is_over = raw.terminations[name] or raw.truncations[name]
        assert (is_over and action is None) or raw.action_spaces[name].contains(action), "action is not in action space"
        if is_over:
            raw.step(action)
            return
        if not raw.try_step(action):
            self._end_by_illegal_action(name)

    def _end_by_illegal_action(self, name: str) -> None:
        EnvLogger.warn_on_illegal_move()
        raw = self.env
        raw._cumulative_rewards[name] = 0
        raw.terminations = dict.fromkeys(raw.agents, True)
        raw.truncations = dict.fromkeys(raw.agents, True)
        raw.rewards = {**dict.fromkeys(raw.agents, 0), name: -1.0}
        raw._accumulate_rewards()
        raw._deads_step_first()
