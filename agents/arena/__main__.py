"""The command line of the arena: ``python -m agents.arena match A B``, and its other subcommands."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from agents.arena.chunks import Report
from agents.arena.commands import add_exploit, add_scenarios, find_exploit, find_scenarios
from agents.arena.match import Result, play_duplicate
from agents.arena.pools import (
    add_ladder,
    add_league,
    add_measuring,
    find_ladder,
    find_league,
    load_all,
    open_saved,
    read_rules,
)
from pitch_env.kernels import is_interrupt


def build_parser() -> argparse.ArgumentParser:
    """The options of every subcommand."""
    parser = argparse.ArgumentParser(prog="python -m agents.arena", description="Measure agents against each other.")
    commands = parser.add_subparsers(dest="command", required=True)
    match = commands.add_parser(
        "match",
        help="measure A among copies of B",
        description="Measure A among copies of B: every deal is played again with A at every place (with --teams as "
        "either team). Points a hand come from single hands at a score of 0, wins from whole matches.",
    )
    match.add_argument("challenger", metavar="A", help="an agent's name or the path of a policy")
    match.add_argument("opponent", metavar="B", help="the agent at all other places")
    add_measuring(match, deals=2000, matches=500, threads=1)
    match.add_argument(
        "--until-clear",
        action="store_true",
        help="look at a 16th, an 8th, a quarter and a half of the deals (at 100 or more) and stop once the interval, "
        "which is wider for that, leaves out 0; matches are all played",
    )
    match.add_argument(
        "--critic",
        metavar="CRITIC",
        help="a run folder, or its critic's file: also give the margin with the luck of the cards taken out",
    )
    match.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    add_league(commands)
    add_ladder(commands)
    add_scenarios(commands)
    add_exploit(commands)
    exact = commands.add_parser(
        "exact",
        help="measure an agent exactly on a tiny deck",
        description="What best responses to an agent gain, exactly, over every deal and every course of one hand on a "
        "deck so small that this can be done. Without other rules a policy is measured under its own.",
    )
    exact.add_argument("agent", metavar="AGENT", help="an agent's name or the path of a policy")
    for flag, name, text in (
        ("--players", "num_players", "players at a table"),
        ("--suits", "num_suits", "suits in the deck"),
        ("--ranks", "num_ranks", "ranks in the deck, from the ace down"),
        ("--cards", "hand_size", "cards dealt to each"),
    ):
        exact.add_argument(flag, dest=name, type=int, help=f"{text} (default: the policy's, or that of the tiny game)")
    exact.add_argument("--draw", action="store_true", help="let a policy draw its actions, even one made to be greedy")
    exact.add_argument(
        "--samples", type=int, default=64, help="times an agent that draws is asked (default %(default)s)"
    )
    exact.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    return parser


def _format_interval(value: float | None, low: float | None, high: float | None, pattern: str) -> str:
    if value is None or low is None or high is None:
        return "not measured"
    return f"{value:{pattern}} (95 %: {low:{pattern}} to {high:{pattern}})"


def describe_verdict(result: Result) -> str:
    """What the intervals show, in words: points and wins can differ in sign, for only a pitcher wins a match."""
    parts = []
    if result.low is not None and result.high is not None:
        if result.low > 0 or result.high < 0:
            parts.append("scores more" if result.low > 0 else "scores less")
        elif result.low == result.high == 0:
            parts.append("scores the same")
        elif result.deals_needed is None:
            parts.append("no difference in points shown")
        else:
            parts.append(
                f"no difference in points shown (about {result.deals_needed:,} deals would, if this one is real)"
            )
    if result.match_low is not None and result.match_high is not None:
        if result.match_low > result.equal_share or result.match_high < result.equal_share:
            parts.append("wins more" if result.match_low > result.equal_share else "wins less")
        else:
            parts.append("no difference in wins shown")
    return ", ".join(parts) or "nothing was measured"


def _describe_look(result: Result) -> str:
    if result.look is None:
        return ""
    return f"; ended at look {result.look} of at most {result.planned_deals:,}, interval widened for the looks"


def list_variate_rows(variate: dict[str, float | None]) -> list[tuple[str, str]]:
    """What a critic adds to a result, as labels and texts."""
    rows = [("luck taken out", _format_interval(variate["margin"], variate["low"], variate["high"], "+.4f"))]
    plain, both = variate["plain_ratio"], variate["ratio"]
    if plain is not None and both is not None:
        text = f"{plain:.2f} times that of plain hands with it, {both:.2f} times that of the same deals with it"
        rows.append(("with the critic", f"plain hands have a variance {text}"))
    return rows


def list_rows(result: Result) -> list[tuple[str, str]]:
    """A result as labels and texts."""
    rules = result.rules
    table = f"{rules.num_players} players{' in two teams' if rules.teams else ''} to {rules.target}"
    rows = [
        ("table", f"{table}, seed {result.seed}"),
        ("points a hand", _format_interval(result.margin, result.low, result.high, "+.4f")),
        ("deals", f"{result.deals:,}, each played {rules.num_sides} times{_describe_look(result)}"),
        ("verdict", describe_verdict(result)),
    ]
    if result.contracts is not None:
        mix = ", ".join(f"{bid}: {share:.1%}" for bid, share in enumerate(result.contracts, 1))
        made = "none" if result.made_rate is None else f"{result.made_rate:.1%}"
        rows.append(("contracts", f"{mix} of hands; made {made}"))
    if result.variance_ratio is not None:
        rows.append(("same deals", f"plain hands, as many, would give {result.variance_ratio:.2f} times the variance"))
    if result.variate is not None:
        rows += list_variate_rows(result.variate)
    rows.append(("matches won", _format_interval(result.match_share, result.match_low, result.match_high, ".1%")))
    rows.append(("an equal wins", f"{result.equal_share:.1%}"))
    if result.hands_per_match is not None:
        rows.append(("matches", f"{result.matches:,}, each played {rules.num_sides} times"))
        rows.append(("hands a match", f"{result.hands_per_match:.1f}; {result.truncated:.1%} cut off"))
    return rows


def show_result(result: Result, console: Console) -> None:
    """A table on a terminal, plain lines elsewhere."""
    show_rows(f"{result.challenger} among {result.opponent}", list_rows(result), console)


def show_rows(title: str, rows: list[tuple[str, str]], console: Console) -> None:
    """Labels and texts as a table on a terminal, as plain lines elsewhere."""
    if not console.is_terminal:
        print(title, *(f"{label}: {text}" for label, text in rows), sep="\n")
        return
    table = Table(title=escape(title), show_header=False)
    for label, text in rows:
        table.add_row(label, escape(text))
    console.print(table)


@contextmanager
def follow_progress(is_quiet: bool) -> Iterator[Report | None]:
    """A bar on stderr if it is a terminal, else a plain line a tenth of the way, or nothing if quiet."""
    console = Console(stderr=True)
    if console.is_terminal:
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        with Progress(*columns, console=console, transient=True) as progress:
            tasks: dict[str, TaskID] = {}

            def move_bar(word: str, done: int, total: int) -> None:
                if word not in tasks:
                    tasks[word] = progress.add_task(word, total=total)
                progress.update(tasks[word], completed=done)

            yield move_bar
        return
    told: dict[str, int] = {}

    def print_line(word: str, done: int, total: int) -> None:
        tenth = 10 * done // total
        if tenth > told.get(word, 0):
            told[word] = tenth
            print(f"{word}: {done} of {total}", file=sys.stderr, flush=True)

    yield None if is_quiet else print_line


def run_match(options: argparse.Namespace) -> None:
    """The subcommand ``match``."""
    rules = read_rules(options)
    critic = None
    if options.critic is not None:
        from agents.critic import read_critic

        critic = read_critic(options.critic, rules)
    challenger, opponent = load_all([options.challenger, options.opponent], rules)  # sees to torch's threads too
    saved = open_saved(options, options.challenger, options.opponent)
    with follow_progress(is_quiet=options.json) as report:
        result = play_duplicate(
            challenger,
            opponent,
            rules,
            options.deals,
            options.matches,
            options.seed,
            names=(options.challenger, options.opponent),
            num_threads=options.threads,
            report=report,
            until_clear=options.until_clear,
            saved=saved,
            critic=critic,
        )
    if options.json:
        print(json.dumps(result.to_dict()))
    else:
        show_result(result, Console())


def run_pool(options: argparse.Namespace) -> None:
    """The subcommands of `agents.arena.pools`."""
    from agents.arena.show import show_ladder, show_league

    find, show = {"league": (find_league, show_league), "ladder": (find_ladder, show_ladder)}[options.command]
    is_quiet = options.json in (True, "-")
    with follow_progress(is_quiet) as report:
        found = find(options, report)
    if is_quiet:
        print(json.dumps(found))
    else:
        show(found, Console())


def run_exact(options: argparse.Namespace) -> None:
    """The subcommand ``exact``."""
    from agents import load
    from agents.arena.courses import Tree
    from agents.arena.exact import TINY, ask, measure

    agent = load(options.agent, is_greedy=False if options.draw else None)
    rules = agent.rules or TINY
    given = {name: getattr(options, name) for name in ("num_players", "num_suits", "num_ranks", "hand_size")}
    rules = dataclasses.replace(rules, **{name: value for name, value in given.items() if value is not None})
    tree = Tree(rules)
    policy, is_known = ask(agent, tree, options.samples)
    result, uniform = measure(tree, policy), measure(tree, tree.uniform())
    if options.json:
        facts = {"agent": options.agent, "rules": rules.to_dict(), "is_exact": is_known, "infosets": tree.num_infosets}
        print(json.dumps({**facts, **result.to_dict(), "uniform_nash_conv": uniform.nash_conv}))
        return
    deck = f"{rules.num_suits} suits of {rules.num_ranks} ranks, {rules.hand_size} cards each"
    rows = [
        ("table", f"{rules.num_players} players, {deck}"),
        ("information sets", f"{tree.num_infosets:,} in {tree.num_nodes:,} positions"),
        ("NashConv", f"{result.nash_conv:.4f} points a hand ({uniform.nash_conv:.4f} for random play)"),
        ("values", " ".join(f"{round(value, 4) + 0:+.4f}" for value in result.values)),  # + 0 makes -0 a 0
        ("best responses", " ".join(f"{round(value, 4) + 0:+.4f}" for value in result.best)),
    ]
    if not is_known:
        rows.append(
            ("note", f"the agent draws; it was asked {options.samples} times, so NashConv is an upper estimate")
        )
    show_rows(options.agent, rows, Console())


def run_more(options: argparse.Namespace) -> None:
    """The subcommands of `agents.arena.commands`."""
    find = {"scenarios": find_scenarios, "exploit": find_exploit}[options.command]
    with follow_progress(is_quiet=options.json) as report:
        title, found, rows = find(options, report)
    if options.json:
        print(json.dumps(found))
    else:
        show_rows(title, rows, Console())


def describe_way_on(options: argparse.Namespace) -> str:
    """How an interrupted command goes on, as the end of a sentence."""
    if not hasattr(options, "save"):
        return ""
    if options.save is None:
        return "; with --save FILE the same command would go on from here"
    return f"; what was played is in {options.save}, and the same command goes on from there"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit code: 0, 2 after one sentence on stderr about what was wrong, 130 after one about an interrupt.
    """
    options = build_parser().parse_args(arguments)
    try:
        known = {"match": run_match, "league": run_pool, "ladder": run_pool, "exact": run_exact}
        known.get(options.command, run_more)(options)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interrupt(error):
            raise
        print(f"interrupted{describe_way_on(options)}", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
