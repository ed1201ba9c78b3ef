"""What an agent's name is made of: ``search:`` before it, options behind it, as in ``pimc?worlds=64,seconds=0.5``."""

from collections.abc import Callable
from typing import Any, NamedTuple

_SEARCH = "search:"


class AgentName(NamedTuple):
    """The parts of a name: whether search on a policy is meant, the name or path itself, and options."""

    is_search: bool
    base: str
    options: str


def split_name(name: str) -> AgentName:
    """A name in its parts."""
    base, _, options = name.removeprefix(_SEARCH).partition("?")
    return AgentName(name.startswith(_SEARCH), base, options)


def read_options(name: str, text: str, known: dict[str, Callable[[str], Any]]) -> dict[str, Any]:
    """Options by their names.

    Args:
        name: the agent's, for errors.
        text: such as "worlds=64,seconds=0.5"; empty for none.
        known: what reads the value of each option, with a ValueError for one that is not taken.

    Raises:
        ValueError: for an option that is not known, or a value that it does not take; the text says what is.
    """
    given = {}
    for option in text.split(",") if text else ():
        key, _, value = option.partition("=")
        try:
            given[key] = known[key](value)
        except (KeyError, ValueError):
            takes = ", ".join(f"{key}={_describe(read)}" for key, read in known.items()) or "no options"
            raise ValueError(f"{name} takes {takes}, not {option!r}") from None
    return given


def choose_one(*choices: str) -> Callable[[str], str]:
    """What reads one of some words."""

    def read(value: str) -> str:
        if value not in choices:
            raise ValueError
        return value

    read.__name__ = "|".join(choices)
    return read


def _describe(read: Callable[[str], Any]) -> str:
    return {"int": "WHOLE NUMBER", "float": "NUMBER"}.get(read.__name__, read.__name__)
