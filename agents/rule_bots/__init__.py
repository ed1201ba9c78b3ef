"""Rule-based agents after bots that are in public use: deterministic, compiled, and they see one view only."""

from agents.rule_bots.alphonso import AlphonsoAgent
from agents.rule_bots.baby import BabyAgent
from agents.rule_bots.trickster import TricksterAgent

__all__ = ["AlphonsoAgent", "BabyAgent", "TricksterAgent"]
