"""The subcommands ``scenarios`` and ``exploit``: their options, and what they find as a title, a dict and rows."""

import argparse
import dataclasses
from typing import Any

from agents.arena.chunks import Report
from agents.arena.pools import check_output
from pitch_env.rules import LOW_POINTS, Rules

Found = tuple[str, dict[str, Any], list[tuple[str, str]]]

_RULES = (
    ("--players", "num_players", "players at a table"),
    ("--target", "target", "score that wins"),
    ("--suits", "num_suits", "suits in the deck"),
    ("--ranks", "num_ranks", "ranks in the deck, from the ace down"),
    ("--cards", "hand_size", "cards dealt to each"),
)


def add_scenarios(commands: Any) -> None:
    """Add the options of ``scenarios``."""
    parser = commands.add_parser(
        "scenarios",
        help="ask an agent in positions in which a decent player finds the action",
        description="Ask an agent in named positions. A policy is judged by its likeliest action, whether it draws or "
        "not, any other agent by the most frequent of some answers. Positions under rules that a policy, or search on "
        "one, was not trained for are left out; `trained` is the policy of each table.",
    )
    parser.add_argument("agent", metavar="AGENT", help="an agent's name or the path of a policy")
    parser.add_argument("--file", metavar="YAML", help="other scenarios than the project's own")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def add_exploit(commands: Any) -> None:
    """Add the options of ``exploit``."""
    parser = commands.add_parser(
        "exploit",
        help="train a best response to an agent and measure what it gains",
        description="Train one side against copies of a frozen agent at all other places and measure what it gains a "
        "hand, on deals it was not chosen by: a lower bound on what the agent can be exploited for. Schedules go by "
        "decisions; a short probe finds how many the time allows. Measuring comes on top of it.",
    )
    parser.add_argument("agent", metavar="AGENT", help="an agent's name or the path of a policy")
    parser.add_argument("--minutes", type=float, default=20.0, help="time to train (default %(default)s)")
    parser.add_argument("--steps", type=int, help="decisions to play instead, so that the machine's speed is no matter")
    parser.add_argument("--seed", type=int, default=0, help="fixes training and measuring (default %(default)s)")
    parser.add_argument("--deals", type=int, default=20_000, help="deals of the measurement (default %(default)s)")
    parser.add_argument(
        "--selection-deals", type=int, default=4000, help="deals to choose a candidate by (default %(default)s)"
    )
    parser.add_argument("--fresh", action="store_true", help="begin with new weights, not with a copy of a policy")
    parser.add_argument("--draw", action="store_true", help="let a policy draw its actions, even one made to be greedy")
    parser.add_argument("--device", default="cpu", help="where the learner runs: cpu or cuda (default %(default)s)")
    parser.add_argument("--threads", type=int, default=0, help="the learner's threads; 0: one a core (default 0)")
    parser.add_argument("--save", metavar="FILE", dest="response", help="write the response there, as a policy file")
    for flag, name, text in _RULES:
        parser.add_argument(flag, dest=name, type=int, help=f"{text} (default: the policy's, or the full game's)")
    parser.add_argument("--teams", action="store_true", default=None, help="two teams of two")
    parser.add_argument("--low-point", choices=LOW_POINTS, help="who scores Low")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def _is_trained(name: str) -> bool:
    """Whether an agent is what comes with the package, or search on it: there is one for each table."""
    from agents import TRAINED
    from agents.options import split_name

    return split_name(name).base == TRAINED


def find_scenarios(options: argparse.Namespace, report: Report | None) -> Found:  # noqa: ARG001  (it takes seconds)
    """What an agent does in the scenarios."""
    from agents import has_trained, load
    from agents.arena.scenarios import FILE, ask, list_rows, read_scenarios

    scenarios = read_scenarios(options.file or FILE)

    def load_for(rules: Rules) -> Any:
        return load(options.agent, rules) if has_trained(rules) else None

    outcome = ask(load_for if _is_trained(options.agent) else load(options.agent), scenarios, options.agent)
    return f"{options.agent} in {len(outcome.answers)} scenarios", outcome.to_dict(), list_rows(outcome, scenarios)


def find_exploit(options: argparse.Namespace, report: Report | None) -> Found:
    """What a best response gains."""
    from agents import load
    from agents.arena.exploit import exploit, list_rows
    from agents.policy import write_policy

    if options.response is not None:
        check_output(options.response)
    names = [name for _, name, _ in _RULES] + ["teams", "low_point"]
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    kind = Rules(**given) if _is_trained(options.agent) else None
    agent = load(options.agent, kind, is_greedy=False if options.draw else None)
    agent.name = options.agent
    rules = agent.rules or Rules()
    result, response = exploit(
        agent,
        dataclasses.replace(rules, **given),
        options.minutes,
        options.seed,
        num_steps=options.steps,
        is_fresh=options.fresh,
        selection_deals=options.selection_deals,
        deals=options.deals,
        settings={"device": options.device, "threads": options.threads},
        report=report,
    )
    if options.response is not None:
        write_policy(options.response, response.spec, response.network.state_dict())
    return f"best response to {options.agent}", result.to_dict(), list_rows(result)
