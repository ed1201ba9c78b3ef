"""What a run tells TensorBoard: how hands are bid and settled, how sure the policy is, how right the critic is.

The names of the curves are the words before and after the last ``/``; docs/training.md says how to read them.
"""

import re

import numpy as np
from tensorboard.compat.proto.summary_pb2 import Summary
from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import hparams

from agents.arena import Result
from agents.training.config import Config
from agents.training.rollout import BID, FIRST_LEAD, PLAY_ON, Batch
from pitch_env.render import render_text

_BIDS = ("pass", "1", "2", "3", "4")
_SCORES = ("can_win_now", "behind", "between")  # within a hand's 4 points of the target, below 0, all others
_KINDS = {"bid": BID, "first_lead": FIRST_LEAD, "play": PLAY_ON}
_EDGES = (-2.0, -1.0, 0.0, 1.0, 2.0)  # of the buckets of predicted points
_BUCKETS = ("below_-2", "from_-2", "from_-1", "from_0", "from_1", "from_2")
_NUM_SHOWN_HANDS = 3


def _mix(bids: np.ndarray, groups: np.ndarray, num_groups: int) -> np.ndarray:
    """Share of each bid in each group, (groups, 5); NaN for a group in which nobody has bid."""
    has_bid = bids >= 0
    counts = np.bincount(groups[has_bid] * 5 + bids[has_bid], minlength=num_groups * 5).reshape(num_groups, 5)
    totals = counts.sum(1, keepdims=True)
    return np.where(totals > 0, counts / np.maximum(totals, 1), np.nan)


def describe_hands(tables: np.ndarray) -> dict[str, float]:
    """Bids by place in the auction and by score, and how often each contract is set, of hands just settled."""
    num_seats, num_sides = int(tables["num_players"][0]), int(tables["num_sides"][0])
    bids = tables["bids"][:, :num_seats].astype(np.int64)
    seats = np.arange(num_seats)
    places = (seats - tables["dealer"].astype(np.int64)[:, None] - 1) % num_seats
    scores = (tables["scores"] - tables["deltas"])[:, seats % num_sides]
    needs = tables["target"][:, None] - scores
    groups = np.where(needs <= 4, 0, np.where(scores < 0, 1, 2))
    names = [f"place_{place + 1}" for place in range(num_seats - 1)] + ["dealer"]
    shares = {f"bids_by_place/{name}": row for name, row in zip(names, _mix(bids, places, num_seats), strict=True)}
    shares |= {f"bids_by_score/{name}": row for name, row in zip(_SCORES, _mix(bids, groups, 3), strict=True)}
    facts = {
        f"{name}_{bid}": float(share)
        for name, row in shares.items()
        for bid, share in zip(_BIDS, row, strict=True)
        if not np.isnan(share)
    }
    sides = (tables["pitcher"] % tables["num_sides"]).astype(np.int64)
    is_set = np.take_along_axis(tables["deltas"], sides[:, None], 1)[:, 0] < tables["bid"]
    for bid in range(1, 5):
        is_bid = tables["bid"] == bid
        if is_bid.any():
            facts[f"game/set_rate_{bid}"] = float(is_set[is_bid].mean())
    return facts


def describe_decisions(batches: list[Batch], values: list[np.ndarray], scale: float) -> dict[str, float]:
    """Entropy by kind of decision, and how far the critic's predictions are from what hands brought.

    The entropy is estimated from the actions drawn: the mean of minus their log-probability.

    Args:
        batches: decisions with their rewards.
        values: the critic's prediction of each batch's decisions, before it learned from them.
        scale: what a point is worth in rewards and values.
    """
    facts = {}
    kinds = np.concatenate([batch.kinds for batch in batches])
    log_probs = np.concatenate([batch.log_probs for batch in batches])
    for name, kind in _KINDS.items():
        chosen = log_probs[kinds == kind]
        if len(chosen):
            facts[f"entropy/{name}"] = -float(chosen.mean())
    predicted = np.concatenate(values).astype(np.float64) / (scale or 1.0)
    real = np.concatenate([batch.rewards[batch.streams] for batch in batches]).astype(np.float64) / (scale or 1.0)
    buckets = np.digitize(predicted, _EDGES)
    counts = np.bincount(buckets, minlength=len(_BUCKETS))
    errors = np.bincount(buckets, real - predicted, len(_BUCKETS)) / np.maximum(counts, 1)
    for name, count, error in zip(_BUCKETS, counts, errors, strict=True):
        if count:
            facts[f"critic/real_above_predicted_{name}"] = float(error)
    facts["critic/calibration_error"] = float((np.abs(errors) * counts).sum() / max(counts.sum(), 1))
    return facts


def describe_results(results: list[Result]) -> dict[str, float]:
    """Margins with their intervals, and shares of matches, of an evaluation."""
    facts = {
        f"eval/{result.opponent}/{name}": getattr(result, name)
        for result in results
        for name in ("margin", "low", "high", "match_share", "match_low", "match_high")
    }
    return {name: value for name, value in facts.items() if value is not None}


def write_scalars(writer: SummaryWriter, facts: dict[str, float], step: int) -> None:
    """Write many numbers as one event, so that a crash leaves all of an update or none."""
    summary = Summary(
        value=[
            Summary.Value(tag=re.sub(r"[^-/\w.]", "_", name), simple_value=float(value))
            for name, value in facts.items()
        ]
    )
    writer._get_file_writer().add_summary(summary, step)


def write_hyperparameters(writer: SummaryWriter, config: Config) -> None:
    """Write the configuration as text and for the table of hyperparameters, which shows the margins besides."""
    values = config.to_dict()
    writer.add_text("config", "\n".join(f"    {key}: {value}" for key, value in values.items()), 0)
    values |= {f"rules.{key}": value for key, value in values.pop("rules").items()}
    plain = {key: value if type(value) in (int, float) else str(value) for key, value in values.items()}
    for summary in hparams(plain, {f"eval/{name}/margin": 0.0 for name in config.opponents}):
        writer._get_file_writer().add_summary(summary, 0)


def write_hands(writer: SummaryWriter, tables: np.ndarray, step: int) -> None:
    """Write the hands that the first tables have just played."""
    for number in range(min(_NUM_SHOWN_HANDS, len(tables))):
        text = render_text(tables[number : number + 1])
        writer.add_text(f"hands/{number + 1}", "\n".join(f"    {line}" for line in text.splitlines()), step)
