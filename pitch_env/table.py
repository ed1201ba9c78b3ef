"""The table: one fixed-size record that holds everything about one match.

A table explains itself: which rules are played, the cards, the order of bids and plays, the scores and its own random
stream. A batch is an array of tables and may mix rules. Copying a table copies its match; its bytes save it.
"""

from typing import Any

import numpy as np

from pitch_env.cards import NUM_RANKS
from pitch_env.rules import LOW_POINTS, MAX_HAND_SIZE, MAX_PLAYERS, Rules

MAX_PLAYS = MAX_PLAYERS * MAX_HAND_SIZE
MAX_SCORE = 10_000  # of a side at the start of a match, either way: with 4 a hand for max_hands, scores fit 16 bits

# Phases of a table.
AUCTION, PLAY, HAND_OVER, MATCH_OVER = range(4)
PHASES = ("auction", "play", "hand over", "match over")

NOBODY = -1  # a seat or a side that is not known, or that there is not
NOT_YET = -1  # a bid or a trump not made so far

_P = MAX_PLAYERS
TABLE = np.dtype(
    [
        ("rng", "u8"),  # state of the random stream; 0 in a view
        ("played", "u8"),  # mask of the cards played in this hand
        ("dealt", "u8", (_P,)),  # mask of the cards dealt to each seat; in a view, those the viewer has seen
        ("captured", "u8", (_P,)),  # mask of the cards each seat won in tricks
        ("target", "i2"),
        ("max_hands", "i2"),
        ("num_hands", "i2"),  # hands settled in this match
        ("scores", "i2", (_P,)),  # per side
        ("deltas", "i1", (_P,)),  # per side: score change when the last hand was settled
        ("bids", "i1", (_P,)),  # per seat: NOT_YET, 0 pass, 1-4
        ("points", "i1", (4,)),  # side that won High, Low, Jack, Game of the settled hand, or NOBODY
        ("voids", "u1", (_P,)),  # per seat: bit s set when public play proves no card of suit s
        ("plays", "u1", (MAX_PLAYS,)),  # cards in the order played
        ("leaders", "i1", (MAX_HAND_SIZE,)),  # seat that led each trick
        ("winners", "i1", (MAX_HAND_SIZE,)),  # seat that won each trick, or so far wins the one in progress
        ("best", "u1"),  # card that so far wins the trick in progress
        ("num_players", "u1"),
        ("num_sides", "u1"),
        ("num_suits", "u1"),
        ("num_ranks", "u1"),
        ("hand_size", "u1"),
        ("win_needs_made_bid", "u1"),
        ("low_to_holder", "u1"),
        ("pitch_by_card", "u1"),
        ("phase", "u1"),
        ("dealer", "i1"),
        ("seat", "i1"),  # to act, NOBODY when the hand is over
        ("pitcher", "i1"),  # highest bidder so far
        ("bid", "i1"),  # highest bid so far; after the auction the contract
        ("trump", "i1"),  # suit, NOT_YET before the first lead
        ("num_plays", "u1"),
        ("winner", "i1"),  # side that won the match
        ("viewer", "i1"),  # seat whose view this is, NOBODY for the table itself
    ],
    align=True,
)

RULE_FIELDS = (
    "num_players",
    "num_sides",
    "target",
    "win_needs_made_bid",
    "pitch_by_card",
    "max_hands",
    "num_suits",
    "num_ranks",
    "hand_size",
)


def write_rules(tables: np.ndarray, rules: Rules) -> None:
    """Write which rules are played into tables (any array of `TABLE`)."""
    for name in RULE_FIELDS:
        tables[name] = getattr(rules, name)
    tables["low_to_holder"] = rules.low_point == "holder"


def read_rules(table: np.ndarray) -> Rules:
    """The rules that a table is played under."""
    values: dict[str, Any] = {name: int(table[name]) for name in RULE_FIELDS if name != "num_sides"}
    for name in ("win_needs_made_bid", "pitch_by_card"):
        values[name] = bool(values[name])
    teams = int(table["num_sides"]) != values["num_players"]
    return Rules(teams=teams, low_point=LOW_POINTS[int(table["low_to_holder"])], **values)


def or_none(number: Any) -> int | None:
    """A seat or a side as JSON holds it: None for `NOBODY`."""
    return None if number == NOBODY else int(number)


def seed_streams(seed: int | None, num_tables: int) -> np.ndarray:
    """Random streams of tables, uint64 (num_tables,): table i's stream does not depend on how many there are.

    ``None`` draws the seed from the operating system; 0 is a seed like any other.

    Raises:
        ValueError: for a negative seed or one that is no whole number.
    """
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
        raise ValueError(f"seed takes a whole number from 0 up, or None, not {seed!r}")
    return np.random.SeedSequence(seed).generate_state(num_tables, np.uint64)


def deck_mask(rules: Rules) -> int:
    """Mask of the cards in play under some rules: the highest ranks of the first suits."""
    suit = ((1 << rules.num_ranks) - 1) << (NUM_RANKS - rules.num_ranks)
    return sum(suit << (NUM_RANKS * index) for index in range(rules.num_suits))
