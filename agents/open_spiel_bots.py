"""Our agents as bots of OpenSpiel, and bots of OpenSpiel as our agents.

>>> from agents import load
>>> from agents.open_spiel_bots import AgentBot, BotAgent, make_ismcts
>>> bot = AgentBot(load("rules"), seed=1)  # step(state) at states of pitch_env.open_spiel
>>> agent = BotAgent(make_ismcts(num_simulations=100))  # plays wherever an agent does
"""

from collections.abc import Callable

import numpy as np
import pyspiel
from open_spiel.python.algorithms import ismcts, mcts

from agents.base import Agent
from agents.options import read_options
from pitch_env.open_spiel import PitchGame, PitchState, load_game, state_of_view
from pitch_env.table import read_rules

NUM_SIMULATIONS = 200  # of a search, for each decision
_SIMULATION_COST = 5.0  # of a decision, for each
BotMaker = Callable[[PitchGame, int], pyspiel.Bot]
"""Makes a bot for a game; the number is its seed."""


class AgentBot(pyspiel.Bot):
    """An agent as a bot: it is given what the seat to act may know.

    Args:
        agent: who chooses.
        seed: fixes what it draws.
    """

    def __init__(self, agent: Agent, seed: int | None = None) -> None:
        super().__init__()
        self.agent = agent
        self._stream = np.random.default_rng(seed)

    def restart_at(self, state: PitchState) -> None:
        """Nothing to do: agents keep nothing between decisions."""

    def step(self, state: PitchState) -> int:
        """The agent's action at a state."""
        seeds = self._stream.integers(0, 2**64, size=1, dtype=np.uint64)
        return int(self.agent.act(state.view(state.current_player()), seeds)[0])


class BotAgent(Agent):
    """A bot as an agent, for one hand at a time: it does not see the scores.

    The bot gets a state in which all that the seat cannot know is dealt at random, so no bot can peek.

    Args:
        make_bot: makes a bot for each decision.
        name: shown in tables.
    """

    def __init__(self, make_bot: BotMaker, name: str = "open_spiel") -> None:
        super().__init__()
        self._make_bot, self.name = make_bot, name

    def act(self, views: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        actions = np.empty(len(views), np.int64)
        for index, seed in enumerate(seeds):
            draw, bot_seed = np.random.default_rng(int(seed)), int(seed) & 0x7FFFFFFF
            state = state_of_view(views[index : index + 1], draw.random)
            bot = self._make_bot(load_game(read_rules(views[index])), bot_seed)
            actions[index] = bot.step(state)
        return actions


def make_ismcts(num_simulations: int = NUM_SIMULATIONS, exploration: float = 4.0) -> BotMaker:
    """OpenSpiel's information set Monte Carlo tree search with random rollouts.

    Args:
        num_simulations: for each decision.
        exploration: UCT's constant; points of a hand differ by a few.
    """

    def make(game: PitchGame, seed: int) -> pyspiel.Bot:
        random = np.random.RandomState(seed)
        evaluator = mcts.RandomRolloutEvaluator(1, random)
        bot = ismcts.ISMCTSBot(game, evaluator, exploration, num_simulations, random_state=random)
        bot.set_resampler(lambda state, player: state.resample_from_infostate(player, random.random_sample))
        return bot

    return make


def new_ismcts(options: str) -> BotAgent:
    """OpenSpiel's search as an agent, as a text asks for it, such as "simulations=500"; empty for nothing.

    Raises:
        ValueError: for an option that is not known, or a value that it does not take.
    """
    given = read_options("ismcts", options, {"simulations": int})
    num_simulations = given.get("simulations", NUM_SIMULATIONS)
    if num_simulations < 1:
        raise ValueError(f"simulations takes a whole number from 1 up, not {num_simulations}")
    agent = BotAgent(make_ismcts(num_simulations), "ismcts")
    agent.cost = _SIMULATION_COST * num_simulations
    return agent
