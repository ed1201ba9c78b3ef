"""Losses and advantages. Plain functions on arrays, tested against numbers worked by hand."""

from dataclasses import dataclass

import numpy as np
import torch

from pitch_env.cards import NUM_ACTIONS
from pitch_env.kernels import ONE, U64, kernel

ILLEGAL_LOGIT = -1e9  # finite: an infinite one turns entropies into NaN


def masked_log_softmax(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Log-probabilities over the legal actions.

    Args:
        logits: float32 (N, A).
        mask: bool (N, A), at least one legal action a row.

    Returns:
        float32 (N, A); about -1e9 on illegal actions, through which no gradient flows.
    """
    return torch.log_softmax(logits.masked_fill(~mask, ILLEGAL_LOGIT), dim=1)


def masked_entropy(log_probs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Entropy in nats, (N,), of distributions given by `masked_log_softmax`."""
    return -(log_probs.exp() * log_probs.masked_fill(~mask, 0)).sum(1)


def masked_kl(log_probs: torch.Tensor, other: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """KL divergence in nats, (N,), of the first distribution from the second, over legal actions."""
    return (log_probs.exp() * (log_probs - other).masked_fill(~mask, 0)).sum(1)


@dataclass
class PolicyTerms:
    """Parts of the policy loss, each a scalar tensor; all but `loss` without a gradient."""

    loss: torch.Tensor
    magnet_kl: torch.Tensor
    entropy: torch.Tensor
    approx_kl: torch.Tensor
    clip_fraction: torch.Tensor


def policy_loss(
    logits: torch.Tensor,
    mask: torch.Tensor,
    actions: torch.Tensor,
    old_log_probs: torch.Tensor,
    advantages: torch.Tensor,
    entropy_weights: torch.Tensor,
    clip: float,
    magnet_logits: torch.Tensor | None = None,
    magnet_weight: float = 0.0,
) -> PolicyTerms:
    """Clipped surrogate of PPO (Schulman et al. 2017) with an entropy bonus, as a mean over rows.

    With a magnet it is the loss of magnetic mirror descent (Sokota et al. 2022): the policy is drawn to a slowly moving
    copy of itself, which makes the last policy, not only the average one, settle.

    Args:
        logits: float32 (N, A).
        mask: bool (N, A).
        actions: int64 (N,) taken.
        old_log_probs: float32 (N,) of the actions when they were taken.
        advantages: float32 (N,).
        entropy_weights: float32 (N,).
        clip: how far the probability ratio may go from 1 before its gradient stops.
        magnet_logits: float32 (N, A) of the magnet, or None.
        magnet_weight: weight of the KL divergence from the magnet.
    """
    log_probs = masked_log_softmax(logits, mask)
    log_ratio = log_probs.gather(1, actions[:, None])[:, 0] - old_log_probs
    ratio = log_ratio.exp()
    surrogate = torch.min(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)
    entropy = masked_entropy(log_probs, mask)
    objective = surrogate + entropy_weights * entropy
    magnet_kl = torch.zeros(())
    if magnet_logits is not None:
        kl = masked_kl(log_probs, masked_log_softmax(magnet_logits, mask), mask)
        objective = objective - magnet_weight * kl
        magnet_kl = kl.detach().mean()
    with torch.no_grad():
        approx_kl = (ratio - 1 - log_ratio).mean()
        clip_fraction = ((ratio - 1).abs() > clip).float().mean()
    return PolicyTerms(
        loss=-objective.mean(),
        magnet_kl=magnet_kl,
        entropy=entropy.detach().mean(),
        approx_kl=approx_kl,
        clip_fraction=clip_fraction,
    )


@kernel
def _judge_rows(
    logits, masks, actions, old_log_probs, advantages, weights, clip, magnet_logits, magnet_weight, gradient, sums
):
    """Gradient of the loss by each logit; adds each row's objective, magnet's KL, entropy, KL and clipping to sums."""
    num_rows = logits.shape[0]
    has_magnet = magnet_logits.shape[0] > 0
    lowest, highest = np.float32(1 - clip), np.float32(1 + clip)
    legal = np.empty(NUM_ACTIONS, np.int64)
    log_probs = np.empty(NUM_ACTIONS, np.float32)
    probs = np.empty(NUM_ACTIONS, np.float32)
    behind = np.empty(NUM_ACTIONS, np.float32)  # log-probability less the magnet's
    for i in range(num_rows):
        num = 0
        top = magnet_top = np.float32(-np.inf)
        for action in range(NUM_ACTIONS):
            if (masks[i] >> U64(action)) & ONE:
                legal[num] = action
                num += 1
                top = max(top, logits[i, action])
                if has_magnet:
                    magnet_top = max(magnet_top, magnet_logits[i, action])
        total = magnet_total = np.float32(0)
        for place in range(num):
            probs[place] = np.exp(logits[i, legal[place]] - top)
            total += probs[place]
            if has_magnet:
                magnet_total += np.exp(magnet_logits[i, legal[place]] - magnet_top)
        log_total, magnet_log_total = np.log(total), np.log(magnet_total) if has_magnet else np.float32(0)
        taken = entropy = kl = np.float32(0)
        for place in range(num):
            action = legal[place]
            log_probs[place] = logits[i, action] - top - log_total
            probs[place] /= total
            entropy -= probs[place] * log_probs[place]
            if has_magnet:
                behind[place] = log_probs[place] - (magnet_logits[i, action] - magnet_top - magnet_log_total)
                kl += probs[place] * behind[place]
            if action == actions[i]:
                taken = log_probs[place]
        log_ratio = taken - old_log_probs[i]
        ratio = np.exp(log_ratio)
        plain, clipped = ratio * advantages[i], np.float32(min(max(ratio, lowest), highest)) * advantages[i]
        slope = plain if plain <= clipped else np.float32(0)  # of the surrogate by the log-probability of the action
        for place in range(num):
            action = legal[place]
            slope_here = (slope if action == actions[i] else np.float32(0)) - slope * probs[place]
            slope_here -= weights[i] * probs[place] * (log_probs[place] + entropy)
            if has_magnet:
                slope_here -= magnet_weight * probs[place] * (behind[place] - kl)
            gradient[i, action] = -slope_here / num_rows
        sums[0] += min(plain, clipped) + weights[i] * entropy - magnet_weight * kl
        sums[1] += kl
        sums[2] += entropy
        sums[3] += ratio - 1 - log_ratio
        sums[4] += abs(ratio - 1) > clip


class _GivenGradient(torch.autograd.Function):
    """A loss whose gradient by the logits is known already."""

    @staticmethod
    def forward(ctx, _logits, loss, gradient):  # type: ignore[override]
        ctx.gradient = gradient
        return loss

    @staticmethod
    def backward(ctx, factor):  # type: ignore[override]
        return ctx.gradient * factor, None, None


def compiled_policy_loss(
    logits: torch.Tensor,
    masks: np.ndarray,
    actions: np.ndarray,
    old_log_probs: np.ndarray,
    advantages: np.ndarray,
    entropy_weights: np.ndarray,
    clip: float,
    magnet_logits: np.ndarray | None = None,
    magnet_weight: float = 0.0,
) -> PolicyTerms:
    """`policy_loss` for 57 actions on the CPU in one pass over the legal ones, with its gradient.

    Args:
        logits: float32 (N, 57).
        masks: uint64 (N,) legal actions as bits.
        actions, old_log_probs, advantages, entropy_weights, clip, magnet_logits, magnet_weight: as `policy_loss`.
    """
    gradient, sums = np.zeros(logits.shape, np.float32), np.zeros(5)
    _judge_rows(
        logits.detach().numpy(),
        masks,
        actions,
        old_log_probs,
        advantages,
        entropy_weights,
        np.float32(clip),
        np.empty((0, NUM_ACTIONS), np.float32) if magnet_logits is None else magnet_logits,
        np.float32(magnet_weight),
        gradient,
        sums,
    )
    objective, *others = (torch.tensor(float(value) / len(gradient)) for value in sums)
    loss = _GivenGradient.apply(logits, -objective, torch.from_numpy(gradient))
    return PolicyTerms(loss, *others)


def action_value_loss(action_values: torch.Tensor, actions: torch.Tensor, returns: torch.Tensor) -> torch.Tensor:
    """Squared error of the values of the actions taken, as in Deep Monte Carlo (Zha et al. 2021).

    Args:
        action_values: float32 (N, A).
        actions: int64 (N,) taken.
        returns: float32 (N,) what the hand brought.
    """
    return (action_values.gather(1, actions[:, None])[:, 0] - returns).square().mean()


def value_loss(values: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Huber loss of predicted rewards, both float32 (N,)."""
    return torch.nn.functional.smooth_l1_loss(values, targets)


@kernel
def _estimate(streams, values, rewards, gae_lambda, next_values, next_advantages, has_next, advantages, returns):
    for i in range(values.shape[0] - 1, -1, -1):
        stream = streams[i]
        if has_next[stream]:
            delta = next_values[stream] - values[i]
            advantages[i] = delta + gae_lambda * next_advantages[stream]
        else:
            has_next[stream] = True
            advantages[i] = rewards[stream] - values[i]
        next_values[stream] = values[i]
        next_advantages[stream] = advantages[i]
        returns[i] = advantages[i] + values[i]


def estimate_advantages(
    streams: np.ndarray, values: np.ndarray, rewards: np.ndarray, gae_lambda: float
) -> tuple[np.ndarray, np.ndarray]:
    """Generalised advantage estimates (Schulman et al. 2016) without discount over interleaved streams.

    A stream is one seat at one table for one hand. Its only reward comes when the hand is settled, after its last
    decision, and its values are never mixed with another seat's.

    Args:
        streams: int64 (N,) stream of each decision; a stream's decisions stand in the order they were made.
        values: float32 (N,) predicted reward at each decision.
        rewards: float32 (number of streams,).
        gae_lambda: 0 takes the next value alone, 1 the final reward alone.

    Returns:
        Advantages and returns (the critic's targets), float32 (N,).
    """
    num_streams = len(rewards)
    advantages = np.empty(len(values), np.float32)
    returns = np.empty(len(values), np.float32)
    _estimate(
        streams,
        values,
        rewards,
        np.float32(gae_lambda),
        np.zeros(num_streams, np.float32),
        np.zeros(num_streams, np.float32),
        np.zeros(num_streams, np.bool_),
        advantages,
        returns,
    )
    return advantages, returns
