"""Pitch (Auction Pitch, Setback) as a reinforcement-learning environment.

>>> from pitch_env import Rules, pitch_v0
>>> env = pitch_v0.env(rules=Rules(num_players=4, target=7))
"""

import pettingzoo

from pitch_env.rules import Rules

pettingzoo.register("aec", "pitch/pitch-v0", entry_point="pitch_env.pitch_v0:env")

__all__ = ["Rules"]
