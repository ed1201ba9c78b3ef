"""Named positions in which a decent player finds the action, and what an agent does in them.

They lie in ``scenarios.yaml`` beside this file, a list of mappings with these keys:

- ``name``, ``theme``, ``why``: what it is called, what it is about, and why the best actions are best, in a sentence.
- ``rules``: fields of `Rules` that are not the default; may be left out.
- ``dealer``: a seat. ``bids``: those made so far from the dealer's left, such as ``[pass, 2]``.
- ``tricks``: texts of the cards played, one a trick, such as ``[AS 3S 4S 5S, 7H]``; may be left out.
- ``hand``: text of the cards that the seat to act still holds.
- ``scores``: of the sides; 0 if left out.
- ``best``: the actions that pass, such as ``[AS]`` or ``[pass]``. ``bad``: those that are blunders; may be left out.
- ``judgement``: true where the points of the hand do not show that the best action is best, as where the score decides.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from agents.base import Agent
from agents.encoding import encode_views
from pitch_env.cards import CARD_ACTION, NUM_ACTIONS, NUM_RANKS, action_name, parse_action, parse_card
from pitch_env.engine import legal_mask
from pitch_env.frame import reorder_action
from pitch_env.rules import Rules
from pitch_env.view import view_from_dict

FILE = Path(__file__).with_name("scenarios.yaml")
ASKED = 8  # times an agent is asked that may draw its answer

_NEEDED = ("name", "theme", "why", "dealer", "bids", "hand", "best")
_OPTIONAL = ("rules", "tricks", "scores", "bad", "judgement")


@dataclass(frozen=True)
class Scenario:
    """A position and what to do in it.

    Attributes:
        name: unlike any other's.
        theme: what it is about, in a word or two.
        why: why the best actions are best.
        rules: what is played.
        view: (1,) of `TABLE`, of the seat to act.
        best: actions that pass.
        bad: actions that are blunders.
        is_judgement: whether the points of the hand do not show it.
    """

    name: str
    theme: str
    why: str
    rules: Rules
    view: np.ndarray
    best: frozenset[int]
    bad: frozenset[int]
    is_judgement: bool


@dataclass(frozen=True)
class Answer:
    """What an agent did in a scenario.

    Attributes:
        scenario: its name.
        theme: its theme.
        action: what the agent did, or did most often, in words.
        share: probability or frequency of the best actions.
        passed: whether `action` is one of the best.
        blundered: whether it is one of the bad.
    """

    scenario: str
    theme: str
    action: str
    share: float
    passed: bool
    blundered: bool


@dataclass(frozen=True)
class Outcome:
    """What an agent did in all scenarios that it can play.

    Attributes:
        agent: its name.
        judged_by: how its action was found, in words.
        answers: one for each scenario.
        skipped: scenarios under rules that the agent does not play.
    """

    agent: str
    judged_by: str
    answers: tuple[Answer, ...]
    skipped: int

    @property
    def passed(self) -> int:
        """Scenarios passed."""
        return sum(answer.passed for answer in self.answers)

    def count_themes(self) -> dict[str, tuple[int, int]]:
        """Scenarios passed and asked by theme, in the order of the file."""
        themes: dict[str, tuple[int, int]] = {}
        for answer in self.answers:
            passed, asked = themes.get(answer.theme, (0, 0))
            themes[answer.theme] = passed + answer.passed, asked + 1
        return themes

    def to_dict(self) -> dict[str, Any]:
        """The fields as a JSON-ready dict, with the counts."""
        return {
            "agent": self.agent,
            "judged_by": self.judged_by,
            "passed": self.passed,
            "blundered": sum(answer.blundered for answer in self.answers),
            "asked": len(self.answers),
            "skipped": self.skipped,
            "themes": {
                name: {"passed": passed, "asked": asked} for name, (passed, asked) in self.count_themes().items()
            },
            "answers": [dataclasses.asdict(answer) for answer in self.answers],
        }


def _list_tricks(tricks: list[list[str]], pitcher: int, num_players: int) -> list[dict[str, Any]]:
    """Tricks with their leaders: the pitcher, then whoever won the one before (R12)."""
    listed, leader, trump = [], pitcher, None
    for cards in tricks:
        listed.append({"leader": leader, "cards": cards})
        numbers = [parse_card(card) for card in cards]
        trump = numbers[0] // NUM_RANKS if trump is None else trump
        best = 0
        for place, card in enumerate(numbers):
            suit, top = card // NUM_RANKS, numbers[best]
            if (suit == top // NUM_RANKS and card > top) or (suit == trump and top // NUM_RANKS != trump):
                best = place
        leader = (leader + best) % num_players
    return listed


def _read_view(values: dict[str, Any], rules: Rules) -> np.ndarray:
    num_players, dealer = rules.num_players, int(values["dealer"])
    numbers = [parse_action(str(bid)) for bid in values["bids"]]
    bids = [[(dealer + 1 + turn) % num_players, bid] for turn, bid in enumerate(numbers)]
    pitcher, highest, seat = dealer, 0, (dealer + 1 + len(bids)) % num_players
    for bidder, bid in bids:
        if bid and bid >= highest:  # an equal one is a steal (R7)
            pitcher, highest = bidder, bid
    tricks = _list_tricks([str(cards).split() for cards in values.get("tricks", [])], pitcher, num_players)
    if highest and (len(bids) == num_players or highest == 4):
        seat = pitcher
        if tricks:
            full = [*tricks, {"leader": -1, "cards": []}] if len(tricks[-1]["cards"]) == num_players else tricks
            leaders = _list_tricks([*(trick["cards"] for trick in full[:-1]), ["2C"]], pitcher, num_players)
            seat = (leaders[-1]["leader"] + len(full[-1]["cards"])) % num_players
    own = [
        card
        for trick in tricks
        for place, card in enumerate(trick["cards"])
        if (trick["leader"] + place) % num_players == seat
    ]
    return view_from_dict(
        {
            "rules": rules.to_dict(),
            "seat": seat,
            "dealer": dealer,
            "dealt": str(values["hand"]).split() + own,
            "bids": bids,
            "tricks": tricks,
            "scores": values.get("scores", [0] * rules.num_sides),
        }
    )


def read_scenario(values: dict[str, Any]) -> Scenario:
    """A scenario of a mapping as in the file.

    Raises:
        ValueError: for an unknown or missing key, or a position or an action that the rules do not allow; the text
            begins with the scenario's name.
    """
    name = values.get("name", "a scenario without a name") if isinstance(values, dict) else values
    try:
        if not isinstance(values, dict):
            raise ValueError("a scenario is a mapping of keys to values")
        for key in values:
            if key not in (*_NEEDED, *_OPTIONAL):
                raise ValueError(f"there is no key {key!r}; known are {', '.join((*_NEEDED, *_OPTIONAL))}")
        for key in _NEEDED:
            if key not in values:
                raise ValueError(f"the key {key!r} is missing")
        if not isinstance(values.get("judgement", False), bool):
            raise ValueError(f"judgement takes true or false, not {values['judgement']!r}")
        rules = Rules.from_dict(values.get("rules", {}))
        view = _read_view(values, rules)
        legal = legal_mask(view)
        best, bad = (frozenset(parse_action(str(action)) for action in values.get(key, ())) for key in ("best", "bad"))
        for action in best | bad:
            if not legal >> action & 1:
                raise ValueError(f"{action_name(action)} is not legal")
        if not best or best & bad or legal.bit_count() <= len(best):
            raise ValueError("best takes some, but not all, of the legal actions, and none that is bad")
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
    theme, why = str(values["theme"]).strip(), str(values["why"]).strip()
    return Scenario(str(name).strip(), theme, why, rules, view, best, bad, values.get("judgement", False))


def read_scenarios(path: str | Path = FILE) -> list[Scenario]:
    """The scenarios of a file.

    Raises:
        ValueError: as `read_scenario`, or if two share a name, or the file is no list.
    """
    try:
        entries = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is no YAML: {error}") from None
    if not isinstance(entries, list):
        raise ValueError(f"{path}: scenarios are a list")
    scenarios = [read_scenario(values) for values in entries]
    names = [scenario.name for scenario in scenarios]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{path}: two scenarios are called {name!r}")
    return scenarios


def _fits(agent: Agent, rules: Rules) -> bool:
    return agent.rules is None or dataclasses.replace(rules, max_hands=agent.rules.max_hands) == agent.rules


def find_chances(agent: Any, view: np.ndarray, seed: int = 0) -> np.ndarray:
    """How likely an agent is to take each action at a view, (1,): float64 (57,).

    A policy's is computed, whether it draws or not; any other agent is asked `ASKED` times.
    """
    chances = np.zeros(NUM_ACTIONS)
    if hasattr(agent, "spec"):
        import torch

        encoded = encode_views(view, agent.spec.num_seats)
        with torch.inference_mode():
            logits = agent.network(encoded.features, encoded.lengths).numpy()[0].astype(np.float64)
        legal = [action for action in range(NUM_ACTIONS) if legal_mask(view) >> action & 1]
        own = logits[[reorder_action(action, encoded.orders[0]) for action in legal]]
        chances[legal] = np.exp(own - own.max()) / np.exp(own - own.max()).sum()
        return chances
    seeds = np.random.default_rng(seed).integers(0, 2**64, size=ASKED, dtype=np.uint64)
    for action in agent.act(np.repeat(view, ASKED), seeds):
        chances[action] += 1 / ASKED
    return chances


def ask(
    agent: Agent | Callable[[Rules], Agent | None],
    scenarios: Sequence[Scenario],
    name: str | None = None,
    seed: int = 0,
) -> Outcome:
    """What an agent does in some scenarios; those under rules that it does not play are left out.

    A policy is judged by its likeliest action, any other agent by the action that it takes most often.

    Args:
        agent: an agent, or what gives the one for some rules, or None if nobody plays them.
        scenarios: where it is asked.
        name: shown in tables; the agent's own if None.
        seed: of what an agent draws that is no policy.
    """
    if isinstance(agent, Agent):
        name = name or agent.name

    @cache
    def find(rules: Rules) -> Agent | None:
        if not isinstance(agent, Agent):
            return agent(rules)
        return agent if _fits(agent, rules) else None

    answers, is_policy = [], hasattr(agent, "spec")
    for scenario in scenarios:
        asked = find(scenario.rules)
        if asked is None:
            continue
        is_policy = hasattr(asked, "spec")
        chances = find_chances(asked, scenario.view, seed)
        action = int(np.argmax(chances))
        answers.append(
            Answer(
                scenario.name,
                scenario.theme,
                action_name(action).removeprefix("play "),
                float(sum(chances[best] for best in scenario.best)),
                action in scenario.best,
                action in scenario.bad,
            )
        )
    judged_by = "its likeliest action" if is_policy else f"the most frequent of {ASKED} answers"
    return Outcome(name or "agent", judged_by, tuple(answers), len(scenarios) - len(answers))


def describe_best(scenario: Scenario) -> str:
    """The best actions of a scenario in words."""
    order = sorted(scenario.best, key=lambda action: (action >= CARD_ACTION, action))
    return " or ".join(action_name(action).removeprefix("play ") for action in order)


def list_rows(outcome: Outcome, scenarios: Sequence[Scenario]) -> list[tuple[str, str]]:
    """An outcome as labels and texts: the counts by theme, then each scenario that was failed."""
    rows = [("judged by", outcome.judged_by)]
    rows += [(theme, f"{passed} of {asked}") for theme, (passed, asked) in outcome.count_themes().items()]
    skipped = f"; {outcome.skipped} under other rules than its own left out" if outcome.skipped else ""
    rows.append(("all", f"{outcome.passed} of {len(outcome.answers)}{skipped}"))
    found = {scenario.name: scenario for scenario in scenarios}
    for answer in outcome.answers:
        if not answer.passed:
            scenario = found[answer.scenario]
            word = "blundered" if answer.blundered else "failed"
            share = f" (best {answer.share:.0%})" if answer.share > 0 else ""
            rows.append(
                (f"{word}: {answer.scenario}", f"{answer.action}, not {describe_best(scenario)}{share}: {scenario.why}")
            )
    return rows
