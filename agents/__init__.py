"""Agents: whoever chooses actions at a table. `load` gives one by name or from a policy file."""

from pathlib import Path
from typing import TYPE_CHECKING

from agents.base import Agent
from agents.options import read_options, split_name
from pitch_env.rules import Rules

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Agent", "load", "names"]

POLICY_SUFFIX = ".safetensors"
TRAINED = "trained"  # the name of the policies that come with the package, one for each kind of table
_TRAINED_FOLDER = Path(__file__).parent / TRAINED
ISMCTS = "ismcts"


def _makers() -> "dict[str, Callable[[str], Agent]]":
    """What makes each agent of a name, from the options behind it."""
    from agents.random_bots import PassiveRandomAgent, RandomAgent
    from agents.rule_bots import AlphonsoAgent, BabyAgent, TricksterAgent

    plain: dict[str, Callable[[], Agent]] = {
        "random": RandomAgent,
        "passive": PassiveRandomAgent,
        "baby": BabyAgent,
        "alphonso": AlphonsoAgent,
        "trickster": TricksterAgent,
        "trickster+0.5": lambda: TricksterAgent(courage=0.5),
        "trickster+1": lambda: TricksterAgent(courage=1.0),
        "rules": lambda: TricksterAgent(courage=0.5),
    }
    return {**{name: _without_options(name, make) for name, make in plain.items()}, "pimc": _make_pimc}


def _without_options(name: str, make: "Callable[[], Agent]") -> "Callable[[str], Agent]":
    def make_plain(options: str) -> Agent:
        read_options(name, options, {})
        return make()

    return make_plain


def _make_pimc(options: str) -> Agent:
    from agents.search.pimc import new_pimc

    return new_pimc(options)


def _make_ismcts(options: str) -> Agent:
    try:
        from agents.open_spiel_bots import new_ismcts
    except ModuleNotFoundError:
        raise ValueError('ismcts needs OpenSpiel, which is not installed: pip install "open-spiel>=1.6"') from None
    return new_ismcts(options)


def _load_search(name: str, options: str, rules: Rules | None, is_greedy: bool | None) -> Agent:
    from agents.policy import PolicyAgent
    from agents.search.policy_search import new_search

    policy = load(name, rules, is_greedy)
    if not isinstance(policy, PolicyAgent):
        raise ValueError(f"search starts from a trained policy, not from {name!r}: give a policy file or run folder")
    return new_search(policy, _find_policy(name, rules).parent, options)


def names() -> list[str]:
    """The names that `load` knows besides policy files and `ISMCTS`, which needs another package."""
    return [*_makers(), TRAINED]


def find_trained(rules: Rules | None = None) -> Path:
    """The folder of the policy that comes with the package for a kind of table, four players by default.

    Raises:
        ValueError: if there is none for as many players; the text says which there are.
    """
    rules = rules or Rules()
    folder = _TRAINED_FOLDER / ("teams" if rules.teams else f"players{rules.num_players}")
    if not folder.is_dir():
        known = ", ".join(sorted(path.parent.name for path in _TRAINED_FOLDER.glob(f"*/policy{POLICY_SUFFIX}")))
        raise ValueError(f"no trained policy comes with the package for {folder.name}: there are {known}")
    return folder


def has_trained(rules: Rules) -> bool:
    """Whether a trained policy comes with the package for exactly these rules: each table has one, played to 7 by the
    usual rules; the length guard may differ."""
    return rules == Rules(num_players=rules.num_players, teams=rules.teams, max_hands=rules.max_hands)


def _find_policy(name: str, rules: Rules | None) -> Path:
    path = find_trained(rules) if name == TRAINED else Path(name)
    return path / f"policy{POLICY_SUFFIX}" if path.is_dir() else path


def load(name: str | Path, rules: Rules | None = None, is_greedy: bool | None = None) -> Agent:
    """An agent, ready to use.

    Args:
        name: a name of `names`, a policy file, or a run folder with a ``policy.safetensors``; with ``search:`` before
            a policy, search on top of it. ``trained`` is the policy that comes with the package for `rules`. Search
            plays to win the match if an ``equity.safetensors`` lies beside the policy, else for points;
            ``?worlds=64``, ``?seconds=0.5`` and ``?objective=points`` at the end of its name, several with a comma
            between them, say how long it thinks and for what. ``pimc`` takes the first two, and ``ismcts``, of
            OpenSpiel, ``?simulations=500``.
        rules: if given, a policy trained for other rules is refused here instead of at its first decision.
        is_greedy: let a policy take its likeliest action, or draw one; None: as it was made for.

    Returns:
        The agent: call it on an environment or a view, or `act` on a batch of views.

    Raises:
        ValueError: for a name that is not known, or a file that is no usable policy.
        FileNotFoundError: for a file that is not there.
    """
    text = str(name)
    is_search, base, options = split_name(text)
    if is_search:
        return _load_search(base, options, rules, is_greedy)
    makers = {**_makers(), ISMCTS: _make_ismcts}
    if base in makers:
        agent = makers[base](options)
        agent.name = text
        return agent
    path = _find_policy(text, rules)
    if path.suffix == POLICY_SUFFIX or path.is_file():
        from agents.policy import PolicyAgent

        policy = PolicyAgent.load(path, rules, is_greedy)
        if text == TRAINED:
            policy.name = text
        return policy
    raise ValueError(f"there is no agent {text!r}: give one of {', '.join(names())}, or a policy file or run folder")
