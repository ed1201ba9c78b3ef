"""The configuration of a training run: typed fields, YAML files, command-line flags."""

import argparse
import contextlib
import dataclasses
import difflib
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from agents.shape import Shape
from pitch_env.rules import Rules


def _option(default: Any, text: str, low: float | None = None, high: float | None = None) -> Any:
    metadata = {"help": text, "low": low, "high": high}
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Config:
    """Everything that decides what a run does. The defaults train four players to 7 points."""

    rules: Rules = field(default_factory=Rules, metadata={"help": "what is played; each field of Rules by its name"})
    seed: int = _option(0, "fixes everything: the same seed gives the same weights", low=0)
    total_steps: int = _option(30_000_000, "decisions to play in all, forced moves counted", low=1)
    device: str = _option("cpu", "where the networks run: cpu or cuda")
    precision: str = _option(
        "auto", "of the hidden layers: float32, bfloat16, or auto (bfloat16 where the processor computes in it)"
    )
    threads: int = _option(0, "threads that share the shards; 0: one for each core, at most one for each shard", low=0)
    shards: int = _option(
        2,
        "parts that play and compute gradients side by side, a multiple of the processes; a change changes the weights",
        low=1,
    )

    algorithm: str = _option(
        "ppo", "ppo; mmd: drawn to a slowly moving copy of itself; dmc: Deep Monte Carlo, for comparison"
    )
    objective: str = _option("points", "points of a hand against the others', or match: the chance to win the match")

    hidden: list[int] = _option([256, 256], "units of the policy's layers", low=1, high=16_384)
    critic_hidden: list[int] = _option([256, 256], "units of the critic's layers", low=1, high=16_384)
    encoder: str = _option(
        "mlp", "what comes before those layers: mlp, a sum over what is seen; attention, which looks at its pairs too"
    )
    attention_size: int = _option(64, "attention: units of each thing seen, a multiple of 16")
    attention_layers: int = _option(2, "attention: layers of it")
    trunks: str = _option("shared", "shared by auction and play, or separate: two networks without a common weight")
    privileged_critic: bool = _option(True, "let the critic, never the policy, see every hand")

    hands: int = _option(4096, "hands played for each update, spread over the shards", low=1)
    epochs: int = _option(1, "times each decision is learned from", low=1)
    minibatch: int = _option(2048, "decisions in one gradient step", low=1)
    learning_rate: float = _option(2e-3, "of Adam, at the start", low=0)
    final_learning_rate: float = _option(1e-4, "of Adam, at the end", low=0)
    entropy: float = _option(0.1, "weight of the entropy bonus at the start; more of it explores more", low=0)
    final_entropy: float = _option(0.005, "weight of the entropy bonus at the end", low=0)
    bid_entropy_factor: float = _option(2.0, "how much more the entropy of bids counts", low=0)
    hold: float = _option(0.1, "share of the run before learning rate and entropy begin to fall", low=0, high=0.99)
    clip: float = _option(0.2, "PPO's bound on how far one update may move a probability ratio", low=0)
    target_kl: float = _option(0.03, "an update stops after an epoch that moved the policy further than this", low=0)
    gae_lambda: float = _option(0.95, "0 trusts the critic, 1 the points of the hand", low=0, high=1)
    max_grad_norm: float = _option(0.5, "bound on the norm of each network's gradient", low=0)
    reward_scale: float = _option(0.5, "what a point is worth to the learner", low=0)
    magnet_weight: float = _option(0.05, "mmd: weight of the pull to the magnet", low=0)
    magnet_every: int = _option(20, "mmd: updates after which the magnet moves to the average policy", low=1)
    greed: float = _option(0.99, "dmc: how often the action of the highest value is taken", low=0, high=1)
    match_from: float = _option(0.3, "match: share of the run that learns from points first", low=0, high=1)
    match_scale: float = _option(
        2.0, "match: what the usual change of the chances in a hand is worth, in points", low=0
    )
    drawn_scores: float = _option(
        0.0, "share of the matches that begin at drawn scores, for those that are rare in play", low=0, high=1
    )
    pool_share: float = _option(0.0, "share of the matches in which a member of the opponent pool plays", low=0, high=1)
    pool_bots: list[str] = _option([], "agents that are members of the opponent pool from the start")
    bot_share: float = _option(
        0.5, "share of the meetings with the opponent pool that are with bots, the rest with snapshots", low=0, high=1
    )
    snapshot_every: int = _option(2_000_000, "decisions between snapshots that join the opponent pool", low=1)
    max_snapshots: int = _option(8, "snapshots in the opponent pool", low=1)
    average: float = _option(
        0.999, "decay of the running average of weights that is saved and evaluated", low=0, high=1
    )

    eval_every: int = _option(5_000_000, "decisions between evaluations; 0: only at the end", low=0)
    eval_deals: int = _option(1000, "duplicate deals against each opponent in an evaluation", low=2)
    final_deals: int = _option(10_000, "duplicate deals against each opponent at the end", low=2)
    final_matches: int = _option(1000, "duplicate matches against each opponent at the end", low=2)
    opponents: list[str] = _option(
        ["trickster", "trickster+0.5", "trickster+1", "alphonso", "baby"], "agents to be measured against"
    )
    checkpoint_every: int = _option(5_000_000, "decisions between checkpoints", low=1)
    keep_checkpoints: int = _option(3, "latest checkpoints that are kept", low=1)

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            _check(item, getattr(self, item.name))
        if self.device not in ("cpu", "cuda"):
            raise ValueError(f"device takes 'cpu' or 'cuda', not {self.device!r}")
        if self.precision not in ("auto", "float32", "bfloat16"):
            raise ValueError(f"precision takes 'auto', 'float32' or 'bfloat16', not {self.precision!r}")
        if self.algorithm not in ("ppo", "mmd", "dmc"):
            raise ValueError(f"algorithm takes 'ppo', 'mmd' or 'dmc', not {self.algorithm!r}")
        if self.objective not in ("points", "match"):
            raise ValueError(f"objective takes 'points' or 'match', not {self.objective!r}")
        _ = self.shape  # checks its fields
        for name in ("pool_bots", "opponents"):
            if len(set(getattr(self, name))) < len(getattr(self, name)):
                raise ValueError(f"{name} takes each agent once, not {getattr(self, name)!r}")
        if self.hands < self.shards:
            raise ValueError(f"hands must be at least shards, {self.shards}, not {self.hands}")

    @property
    def shape(self) -> Shape:
        """The kind of both networks."""
        return Shape(self.encoder, self.trunks, self.attention_size, self.attention_layers)

    def to_dict(self) -> dict[str, Any]:
        """The fields as a dict that YAML and JSON can hold."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Config":
        """A config of a dict; left-out fields take their defaults.

        Raises:
            ValueError: for an unknown key (with the nearest known one) or a value that a field does not take.
        """
        known = [item.name for item in dataclasses.fields(cls)]
        for key in values:
            if key not in known:
                near = difflib.get_close_matches(str(key), known, n=1)
                hint = f"; {near[0]!r} is meant?" if near else f"; known are {', '.join(known)}"
                raise ValueError(f"the configuration has no key {key!r}{hint}")
        values = dict(values)
        rules = values.pop("rules", None)
        if rules is not None and not isinstance(rules, Rules):
            if not isinstance(rules, dict):
                raise ValueError(f"rules takes fields of Rules, not {rules!r}")
            rules = Rules.from_dict(rules)
        for item in dataclasses.fields(cls):
            if item.type is float and isinstance(values.get(item.name), str):
                with contextlib.suppress(ValueError):  # YAML takes 1e-3, without a dot, for a text
                    values[item.name] = float(values[item.name])
        return cls(**values) if rules is None else cls(rules=rules, **values)

    @classmethod
    def read(cls, path: str | Path, overrides: dict[str, Any] | None = None) -> "Config":
        """A config from a YAML file, with some values replaced (``rules.target`` style keys reach into the rules).

        A file may name another one beside it as its ``base``, whose values count where it is silent.

        Raises:
            ValueError: if the file is no configuration; the text names file and key.
            FileNotFoundError: if there is no such file.
        """
        values = _read_values(Path(path))
        changes: dict[str, Any] = {}
        for key, value in (overrides or {}).items():
            (changes if key.startswith("rules.") else values)[key.removeprefix("rules.")] = value
        try:
            if changes:
                values["rules"] = {**_read_rules(values.get("rules")), **changes}
            return cls.from_dict(values)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def to_yaml(self) -> str:
        """The config as a file that `read` takes."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False)

    def write(self, path: str | Path) -> None:
        """Write the config as YAML."""
        Path(path).write_text(self.to_yaml(), encoding="utf-8")


def _read_mapping(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no configuration file {path}")
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is no YAML: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path}: a configuration is a mapping of keys to values")
    return values


def _read_values(path: Path) -> dict[str, Any]:
    """What a YAML file sets, and where it sets nothing, its base."""
    values = _read_mapping(path)
    name = values.pop("base", None)
    if name is None:
        return values
    below = _read_mapping(path.parent / str(name))
    if "base" in below:
        raise ValueError(f"{path}: base takes the name of a file without a base, and {name} has one")
    if "rules" in below and "rules" in values:
        values["rules"] = {**_read_rules(below["rules"]), **_read_rules(values["rules"])}
    return {**below, **values}


def _read_rules(values: Any) -> dict[str, Any]:
    if not isinstance(values, dict | None):
        raise ValueError(f"rules takes fields of Rules, not {values!r}")
    return values or {}


def _parse_flag(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise argparse.ArgumentTypeError(f"{text!r} is no YAML value, like 3, true, name or [1, 2]") from None


def _check(item: dataclasses.Field, value: Any) -> None:
    kind: Any = item.type
    if kind is Rules:
        return
    name, low, high = item.name, item.metadata["low"], item.metadata["high"]
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    origin = typing.get_origin(kind) or kind
    is_right = isinstance(value, origin) and (origin is bool or not isinstance(value, bool))
    parts = value if isinstance(value, list) else [value]
    if is_right and origin is list:
        (inner,) = typing.get_args(kind)
        is_right = (len(value) > 0 or item.name == "pool_bots") and all(
            isinstance(part, inner) and not isinstance(part, bool) for part in value
        )
    if is_right and low is not None:
        is_right = all(part >= low and (high is None or part <= high) for part in parts)
    if not is_right:
        bounds = "" if low is None else f" from {low:g}" + ("" if high is None else f" to {high:g}")
        names = {
            int: "a whole number",
            float: "a number",
            str: "a text",
            bool: "true or false",
            list: "a list of values",
        }
        raise ValueError(f"{name} takes {names[origin]}{bounds}, not {value!r}")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add a flag for every field of `Config` and of its rules, with help and default from the fields."""
    for item in dataclasses.fields(Config):
        if item.type is Rules:
            continue
        default, kind = getattr(Config(), item.name), item.type
        parser.add_argument(
            f"--{item.name.replace('_', '-')}",
            dest=item.name,
            type=_parse_flag,
            default=None,
            metavar=(typing.get_origin(kind) or typing.cast(type, kind)).__name__.upper(),
            help=f"{item.metadata['help']} (default {default})",
        )
    group = parser.add_argument_group("rules", "what is played")
    for item in dataclasses.fields(Rules):
        group.add_argument(
            f"--rules.{item.name.replace('_', '-')}",
            dest=f"rules.{item.name}",
            type=_parse_flag,
            default=None,
            metavar="VALUE",
            help=f"{item.metadata['help']} (default {item.default})",
        )


def read_flags(arguments: argparse.Namespace) -> dict[str, Any]:
    """The values given on the command line, by key."""
    names = [item.name for item in dataclasses.fields(Config) if item.type is not Rules]
    names += [f"rules.{item.name}" for item in dataclasses.fields(Rules)]
    return {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
