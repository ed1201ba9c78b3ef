"""Write the parts of the documents that follow from the code, between their marks.

``python docs/generate.py`` brings README.md and docs/rules.md up to date; with ``--check`` it only says whether they
are. A part stands between ``<!-- begin: NAME -->`` and ``<!-- end -->``. Parts with measured numbers (speed, strength)
are not written here.
"""

import argparse
import dataclasses
import re
import sys
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path

import agents
from agents.training.config import Config
from pitch_env import Rules, pitch_v0
from pitch_env.cards import CARD_ACTION, NUM_ACTIONS, NUM_RANKS, NUM_SUITS, PASS, action_name
from pitch_env.describe import describe
from pitch_env.layout import FIELDS, layout
from pitch_env.record import replay_record
from pitch_env.render import render_text
from pitch_env.rules import LOW_POINTS, MAX_PLAYERS

ROOT = Path(__file__).resolve().parent.parent
FILES = ("README.md", "docs/rules.md")
PART = re.compile(r"(<!-- begin: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

_TRANSCRIPT_SEED = 23  # a hand with a contested auction and a jack in play
_SHOWN_ACTIONS = 13  # of that hand, before the first picture of it
_SUIT_NAMES = ("clubs", "diamonds", "hearts", "spades")
_PLANES = {
    "hand": "cards in hand",
    "top": "those of them that no unseen card of their suit beats",
    "wins": "those of them that would win the trick in progress so far",
    "earlier": "cards each seat played in earlier tricks; of the viewer, in the trick in progress too",
    "on_table": "cards each other seat played in the trick in progress",
    "in_trick": "cards that fell in each trick",
}


def write_table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', '&#124;') for cell in line)} |" for line in lines)


def write_observation() -> str:
    """The blocks of the float vector for four players, and its size for every number of players."""
    form = layout(Rules().num_players)
    texts = {**_PLANES, **{field.name: field.text for field in FIELDS}}
    rows = []
    for name, group in groupby(form.blocks.items(), key=lambda item: re.sub(r"_\d+$", "", item[0])):
        blocks = list(group)
        (first, start), (last, end) = blocks[0], blocks[-1]
        shown = f"`{first}`" if len(blocks) == 1 else f"`{first}` … `{last.removeprefix(name)}`"
        size = start.stop - start.start
        rows.append((f"{start.start}–{end.stop - 1}", shown, size, texts[name]))
    sizes = ", ".join(f"{layout(players).size} for {players}" for players in range(2, MAX_PLAYERS + 1))
    table = write_table(("Features", "Block", "Each", "What it says"), rows)
    return f"{table}\n\nLength of the vector: {sizes} players."


def write_actions() -> str:
    """What each action means."""
    rows: list[tuple[object, ...]] = [(f"`{PASS}`", action_name(PASS))]
    rows.append((f"`{PASS + 1}`–`{CARD_ACTION - 1}`", f"{action_name(PASS + 1)} to {action_name(CARD_ACTION - 1)}"))
    for suit in range(NUM_SUITS):
        first, last = CARD_ACTION + suit * NUM_RANKS, CARD_ACTION + suit * NUM_RANKS + NUM_RANKS - 1
        rows.append((f"`{first}`–`{last}`", f"{_SUIT_NAMES[suit]}, {action_name(first)} to {action_name(last)}"))
    assert last == NUM_ACTIONS - 1
    return write_table(("Action", "Meaning"), rows)


def _describe_values(item: dataclasses.Field) -> str:
    if "low" in item.metadata:
        return f"{item.metadata['low']:,} to {item.metadata['high']:,}"
    values = LOW_POINTS if item.name == "low_point" else (False, True)
    return ", ".join(f"`{value!r}`" for value in values)


def write_rules_fields() -> str:
    """The fields of `Rules`."""
    rows = [
        (f"`{item.name}`", f"`{item.default!r}`", _describe_values(item), item.metadata["help"])
        for item in dataclasses.fields(Rules)
    ]
    return write_table(("Field", "Default", "Takes", "Meaning"), rows)


def write_config_flags() -> str:
    """The flags of ``train.py`` that are fields of `Config`."""
    config = Config()
    rows = []
    for item in dataclasses.fields(Config):
        flag = f"--{item.name.replace('_', '-')}"
        if item.name == "rules":
            rows.append((f"`{flag}.FIELD`", "", "a field of `Rules`, such as `--rules.target 11`"))
        else:
            rows.append((f"`{flag}`", f"`{getattr(config, item.name)}`", item.metadata["help"]))
    return write_table(("Flag", "Default", "Meaning"), rows)


def write_transcript() -> str:
    """One hand of the bot ``rules``: what the seat to act knows part-way, and how the hand ends."""
    bot = agents.load("rules")
    env = pitch_v0.env()
    env.reset(seed=_TRANSCRIPT_SEED)
    for _ in range(_SHOWN_ACTIONS):
        env.step(bot(env))
    part_way = render_text(env.unwrapped.view())
    while len(env.unwrapped.record()["hands"]) == 1:
        env.step(bot(env))
    whole = render_text(replay_record(env.unwrapped.record())[0])
    return f"```text\n{part_way}\n```\n\nAnd when the hand is over:\n\n```text\n{whole}\n```"


def write_description() -> str:
    """An observation in words."""
    bot = agents.load("rules")
    env = pitch_v0.env()
    env.reset(seed=_TRANSCRIPT_SEED)
    for _ in range(_SHOWN_ACTIONS):
        env.step(bot(env))
    return f"```text\n{describe(env.observe(env.agent_selection))}\n```"


def write_bots() -> str:
    """The names that `agents.load` knows."""
    return ", ".join(f"`{name}`" for name in agents.names())


PARTS: dict[str, Callable[[], str]] = {
    "transcript": write_transcript,
    "description": write_description,
    "observation": write_observation,
    "actions": write_actions,
    "rules-fields": write_rules_fields,
    "config-flags": write_config_flags,
    "bots": write_bots,
}


def bring_up_to_date(text: str) -> str:
    """A document with the parts of `PARTS` written anew; parts of other names stay."""

    def write(match: re.Match) -> str:
        begin, name, end = match.groups()
        return f"{begin}{PARTS[name]()}\n{end}" if name in PARTS else match.group(0)

    return PART.sub(write, text)


def main(arguments: list[str] | None = None) -> int:
    """Write, or with ``--check`` name, what is out of date."""
    parser = argparse.ArgumentParser(prog="python docs/generate.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a document is out of date")
    is_check = parser.parse_args(arguments).check
    num_stale = 0
    for name in FILES:
        text = (ROOT / name).read_text(encoding="utf-8")
        fresh = bring_up_to_date(text)
        if fresh == text:
            continue
        num_stale += 1
        if is_check:
            print(f"{name} is out of date: run make docs", file=sys.stderr)
        else:
            (ROOT / name).write_text(fresh, encoding="utf-8")
            print(f"wrote {name}")
    return int(is_check and num_stale > 0)


if __name__ == "__main__":
    sys.exit(main())
