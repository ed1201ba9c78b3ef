"""Pitch (Auction Pitch, Setback) as a reinforcement-learning environment.

>>> from pitch_env import Rules, pitch_v0
>>> env = pitch_v0.env(rules=Rules(num_players=4, target=7))
"""

from pitch_env.rules import Rules

__all__ = ["Rules"]
