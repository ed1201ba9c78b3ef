"""The subcommands ``league`` and ``ladder``: their options, and what they find as a dict; what ``match`` shares."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from agents.arena.chunks import Report, SavedChunks, describe_code, identify_agent
from agents.base import Agent
from pitch_env.rules import Rules


def add_measuring(parser: argparse.ArgumentParser, deals: int, matches: int, threads: int) -> None:
    """Add the options that all measurements have."""
    for flag, default, text in (
        ("--deals", deals, "different deals, 0 for none"),
        ("--matches", matches, "different matches, 0 for none"),
        ("--seed", 0, "fixes deals and agents"),
        ("--players", 4, "players at a table"),
        ("--target", 7, "score that wins"),
        ("--threads", threads, "threads that share the tables"),
    ):
        parser.add_argument(flag, type=int, default=default, help=f"{text} (default %(default)s)")
    parser.add_argument("--teams", action="store_true", help="two teams of two")
    parser.add_argument(
        "--save", metavar="FILE", help="keep what is played there; after a stop the same command goes on from it"
    )


def read_rules(options: argparse.Namespace) -> Rules:
    """The rules that the options of `add_measuring` choose."""
    return Rules(num_players=options.players, teams=options.teams, target=options.target)


def open_saved(options: argparse.Namespace, *names: str) -> SavedChunks | None:
    """The file of ``--save``, for a measurement of some agents, which are loaded already."""
    if options.save is None:
        return None
    rules = read_rules(options)
    agents = {f"agent {number}": identify_agent(name, rules) for number, name in enumerate(names, 1)}
    counts = {word: getattr(options, word) for word in ("seed", "deals", "matches")}
    until_clear = getattr(options, "until_clear", False)
    key = {"command": options.command, **agents, "rules": rules.to_dict(), **counts, "until_clear": until_clear}
    return SavedChunks(options.save, {**key, **describe_code()})


def add_league(commands: Any) -> None:
    """Add the options of ``league``."""
    parser = commands.add_parser(
        "league",
        help="measure every agent of a pool against every other",
        description="Measure every agent against every other, as `match` does, and all of them at mixed tables, on the "
        "same deals: cross tables, ratings with their errors, and how far strength is not transitive.",
    )
    parser.add_argument("agents", metavar="A", nargs="+", help="agents' names or paths of policies, two or more")
    add_measuring(parser, deals=500, matches=200, threads=1)
    parser.add_argument("--json", metavar="FILE", help="write the results there; - prints them and nothing else")
    parser.add_argument("--html", metavar="FILE", help="write them as a page that needs no other file")


def add_ladder(commands: Any) -> None:
    """Add the options of ``ladder``."""
    parser = commands.add_parser(
        "ladder",
        help="measure an agent against a row of known opponents",
        description="Measure an agent among copies of each rung, from chance to search, in about a minute. Where one "
        "of the two thinks long, fewer deals and matches are played, ten at least.",
    )
    parser.add_argument("agent", metavar="AGENT", help="an agent's name or the path of a policy")
    add_measuring(parser, deals=4000, matches=400, threads=2)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def check_output(file: str) -> None:
    """Tell now, and not after hours, that a file cannot be written."""
    path = Path(file)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} in")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file to write")


def use_one_thread() -> None:
    """One thread for each operation of a network: a small one is slower on more, and others may need the cores."""
    import torch

    torch.set_num_threads(1)


def load_all(names: list[str], rules: Rules) -> list[Agent]:
    """Agents by name, with one thread for each operation of a network."""
    from agents import load

    agents = [load(name, rules) for name in names]
    if "torch" in sys.modules:  # else there is no network
        use_one_thread()
    return agents


def find_league(options: argparse.Namespace, report: Report | None) -> dict[str, Any]:
    """What `League.to_dict` gives; the files asked for are written."""
    from agents.arena.league import play_league
    from agents.arena.page import render_page

    files = {word: getattr(options, word) for word in ("json", "html") if getattr(options, word) not in (None, "-")}
    for file in files.values():
        check_output(file)
    rules = read_rules(options)
    agents = load_all(options.agents, rules)
    counts = options.deals, options.matches, options.seed
    how: dict[str, Any] = {"names": options.agents, "num_threads": options.threads, "report": report}
    how["saved"] = open_saved(options, *options.agents)
    found = play_league(agents, rules, *counts, **how).to_dict()
    if "html" in files:
        Path(files["html"]).write_text(render_page(found), "utf-8")
    if "json" in files:
        Path(files["json"]).write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return found


def find_ladder(options: argparse.Namespace, report: Report | None) -> dict[str, Any]:
    """What `agents.arena.ladder.to_dict` gives."""
    from agents.arena.ladder import climb, to_dict

    rules = read_rules(options)
    (agent,) = load_all([options.agent], rules)
    use_one_thread()  # some rungs are networks
    counts = options.deals, options.matches, options.seed
    how: dict[str, Any] = {"name": options.agent, "num_threads": options.threads, "report": report}
    return to_dict(climb(agent, rules, *counts, **how, saved=open_saved(options, options.agent)))
