"""sb3-contrib's MaskablePPO on Pitch by self-play: ``pip install -e ".[bench]"``.

In PettingZoo's tutorial one stream of steps goes from seat to seat, and a seat is paid only for a step of its own. In
Pitch that loses the points of every seat but the one that plays the last card of a hand, and credits a seat with what
the next one expects. So here one seat of each table learns and the same model plays the others, by SB3's own interface
for many environments. An episode is a hand, paid as in `agents.training`: a seat's points less the mean of the others'.
All settings are MaskablePPO's defaults; the decisions of a rollout are shared out over the tables.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import VecEnv

from agents.base import Agent
from pitch_env import Rules, pitch_v0
from pitch_env.observation import observe

_NUM_TABLES = 32
_ROLLOUT = 2048  # decisions of the learning seats that an update learns from: the default of MaskablePPO


class SelfPlayTables(VecEnv):
    """Tables of `pitch_v0`: the action given is of the seat that learns, and `model` plays until it is to act again.

    Attributes:
        model: plays the other seats; to be set before the first reset.
        num_decisions: actions taken so far at all seats.
    """

    def __init__(self, num_tables: int, rules: Rules) -> None:
        self.tables = [pitch_v0.raw_env(rules) for _ in range(num_tables)]
        seats = self.tables[0].possible_agents
        self._learners = [seats[number % len(seats)] for number in range(num_tables)]
        self.model: Any = None
        self.num_decisions = 0
        space = self.tables[0].observation_spaces[seats[0]]
        super().__init__(num_tables, space["observation"], self.tables[0].action_spaces[seats[0]])
        self._masks = np.zeros((num_tables, self.action_space.n), np.int8)
        self._rewards = np.zeros(num_tables, np.float32)
        self._dones = np.zeros(num_tables, bool)

    def reset(self) -> np.ndarray:
        """Start a match at every table; the vectors, float32 (tables, layout size), where the learning seats act."""
        for table, seed in zip(self.tables, self._seeds, strict=True):
            table.reset(seed)
        self._reset_seeds()
        return self._play_on()

    def step_async(self, actions: np.ndarray) -> None:
        """Take the learning seats' actions, (tables,)."""
        self._rewards[:], self._dones[:] = 0, False
        self._act(range(self.num_envs), actions)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict]]:
        """Vectors as of `reset`, rewards, whether a hand was settled, and empty dicts."""
        observations = self._play_on()
        return observations, self._rewards.copy(), self._dones.copy(), [{} for _ in self.tables]

    def _act(self, numbers: Iterable[int], actions: np.ndarray) -> None:
        for number, action in zip(numbers, actions, strict=True):
            table, learner = self.tables[number], self._learners[number]
            table.step(int(action))
            self.num_decisions += 1
            if any(table.rewards.values()):  # a hand is settled: its pitcher always wins or loses points
                own, total = table.rewards[learner], sum(table.rewards.values())
                self._rewards[number] = own - (total - own) / (table.num_agents - 1)
                self._dones[number] = True
            if table.terminations[learner] or table.truncations[learner]:
                table.reset()

    def _play_on(self) -> np.ndarray:
        while True:
            others = [
                number
                for number, learner in enumerate(self._learners)
                if self.tables[number].agent_selection != learner
            ]
            if not others:
                break
            vectors, masks = self._look(others)
            self._act(others, self.model.predict(vectors, action_masks=masks)[0])
        vectors, self._masks = self._look(range(self.num_envs))
        return vectors

    def _look(self, numbers: Iterable[int]) -> tuple[np.ndarray, np.ndarray]:
        tables = [self.tables[number] for number in numbers]
        seen = [table.observe(table.agent_selection) for table in tables]
        return np.stack([each["observation"] for each in seen]), np.stack([each["action_mask"] for each in seen])

    def action_masks(self) -> np.ndarray:
        """Legal actions of the learning seats, int8 (tables, 57)."""
        return self._masks

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list:  # noqa: ARG002
        return list(getattr(self, method_name)(*args, **kwargs))

    def get_attr(self, attr_name: str, indices: Any = None) -> list:  # noqa: ARG002
        return [getattr(self if attr_name == "action_masks" else table, attr_name) for table in self.tables]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:  # noqa: ARG002
        return [False] * self.num_envs

    def close(self) -> None:
        """Nothing is open."""


class ModelAgent(Agent):
    """Plays the likeliest legal action of a model of SB3."""

    name = "maskable_ppo"

    def __init__(self, model: MaskablePPO) -> None:
        super().__init__()
        self.model = model

    def act(self, views: np.ndarray, seeds: np.ndarray) -> np.ndarray:  # noqa: ARG002
        num_players = int(views["num_players"][0])
        seen = [observe(views[row : row + 1], int(views["viewer"][row]), num_players) for row in range(len(views))]
        vectors, masks = (np.stack(parts) for parts in zip(*seen, strict=True))
        return self.model.predict(vectors, action_masks=masks, deterministic=True)[0]


def train(rules: Rules, seed: int) -> Iterator[tuple[int, Agent]]:
    """Learn from one rollout each time it is asked; decisions played so far, forced ones counted, and the agent."""
    tables = SelfPlayTables(_NUM_TABLES, rules)
    num_steps = _ROLLOUT // _NUM_TABLES
    model = MaskablePPO("MlpPolicy", tables, n_steps=num_steps, seed=seed, device="cpu")
    tables.model, agent = model, ModelAgent(model)
    while True:
        model.learn(_ROLLOUT, reset_num_timesteps=False)
        yield tables.num_decisions, agent
