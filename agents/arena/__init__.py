"""The arena: agents measured against each other on the same deals.

>>> from agents.arena import play_duplicate
>>> from agents.rule_bots import BabyAgent, TricksterAgent
>>> result = play_duplicate(TricksterAgent(), BabyAgent(), num_deals=1000, num_matches=200, seed=1)
>>> result.margin, result.low, result.high  # points a hand with the 95 % interval
"""

from agents.arena.league import League, play_league
from agents.arena.match import Result, play_duplicate
from agents.arena.play import play_hands, play_matches

__all__ = ["League", "Result", "play_duplicate", "play_hands", "play_league", "play_matches"]
