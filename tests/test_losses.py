"""Losses and advantages against numbers worked by hand."""

import math

import numpy as np
import pytest
import torch

from agents.training.losses import (
    compiled_policy_loss,
    estimate_advantages,
    masked_entropy,
    masked_kl,
    masked_log_softmax,
    policy_loss,
    value_loss,
)

MASK = torch.tensor([[True, True, False], [False, True, False]])


def test_masked_log_softmax_spreads_over_legal_actions_only():
    log_probs = masked_log_softmax(torch.tensor([[0.0, math.log(3), 50.0], [9.0, 1.0, 9.0]]), MASK)
    # 1 : 3 over the two legal actions; a single legal action is certain
    assert log_probs[0, :2].exp().tolist() == pytest.approx([0.25, 0.75])
    assert log_probs[0, 2].exp() == 0
    assert log_probs[1].exp().tolist() == [0, 1, 0]


def test_entropy_counts_legal_actions_only_and_is_finite_for_a_single_one():
    log_probs = masked_log_softmax(torch.zeros(2, 3), MASK)
    assert masked_entropy(log_probs, MASK).tolist() == pytest.approx([math.log(2), 0])


def test_kl_of_two_distributions():
    first = masked_log_softmax(torch.tensor([[0.0, math.log(3), 5.0], [0.0, 0.0, 0.0]]), MASK)
    second = masked_log_softmax(torch.zeros(2, 3), MASK)
    # 1/4 ln(1/4 : 1/2) + 3/4 ln(3/4 : 1/2)
    expected = 0.25 * math.log(0.5) + 0.75 * math.log(1.5)
    assert masked_kl(first, second, MASK).tolist() == pytest.approx([expected, 0], abs=1e-6)


def test_no_gradient_reaches_illegal_actions():
    logits = torch.randn(2, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    terms = policy_loss(
        logits,
        MASK,
        actions=torch.tensor([1, 1]),
        old_log_probs=torch.tensor([-0.5, 0.0]),
        advantages=torch.tensor([2.0, -1.0]),
        entropy_weights=torch.tensor([0.3, 0.3]),
        clip=0.2,
    )
    terms.loss.backward()
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[~MASK] == 0).all()
    assert (logits.grad[0, :2] != 0).all()
    assert logits.grad[1, 1] == 0  # a forced move teaches nothing


def test_policy_loss_by_hand():
    # two actions at even odds, taken with probability 0.4 and 0.8 before: ratios 1.25 and 0.625
    terms = policy_loss(
        torch.zeros(2, 2),
        torch.ones(2, 2, dtype=torch.bool),
        actions=torch.tensor([0, 1]),
        old_log_probs=torch.tensor([math.log(0.4), math.log(0.8)]),
        advantages=torch.tensor([1.0, -1.0]),
        entropy_weights=torch.tensor([0.1, 0.0]),
        clip=0.2,
    )
    # clipped: min(1.25, 1.2) = 1.2 and min(-0.625, -0.8) = -0.8; entropy ln 2 counts for the first row alone
    assert terms.loss.item() == pytest.approx(-(1.2 - 0.8 + 0.1 * math.log(2)) / 2)
    assert terms.entropy.item() == pytest.approx(math.log(2))
    assert terms.clip_fraction.item() == 1.0
    kl = (1.25 - 1 - math.log(1.25) + 0.625 - 1 - math.log(0.625)) / 2
    assert terms.approx_kl.item() == pytest.approx(kl)


def test_clipped_rows_have_no_gradient():
    logits = torch.zeros(1, 2, requires_grad=True)
    terms = policy_loss(
        logits,
        torch.ones(1, 2, dtype=torch.bool),
        actions=torch.tensor([0]),
        old_log_probs=torch.tensor([math.log(0.25)]),  # ratio 2, and the advantage asks for more
        advantages=torch.tensor([1.0]),
        entropy_weights=torch.zeros(1),
        clip=0.2,
    )
    terms.loss.backward()
    assert (logits.grad == 0).all()


def test_value_loss_is_quadratic_near_and_linear_far():
    loss = value_loss(torch.tensor([0.5, 3.0]), torch.zeros(2))
    assert loss.item() == pytest.approx((0.125 + 2.5) / 2)


def test_advantages_of_interleaved_seats_by_hand():
    # seats 0 and 1 take turns: 0 1 0 1 0; rewards 1 for seat 0 and -1 for seat 1, lambda 1/2
    streams = np.array([0, 1, 0, 1, 0])
    values = np.array([0.2, 0.1, 0.4, -0.3, 0.6], np.float32)
    advantages, returns = estimate_advantages(streams, values, np.array([1.0, -1.0], np.float32), 0.5)
    third = 1.0 - 0.6
    second = (0.6 - 0.4) + 0.5 * third
    first = (0.4 - 0.2) + 0.5 * second
    other_second = -1.0 - -0.3
    other_first = (-0.3 - 0.1) + 0.5 * other_second
    expected = [first, other_first, second, other_second, third]
    assert advantages.tolist() == pytest.approx(expected, abs=1e-6)
    assert returns.tolist() == pytest.approx((np.array(expected) + values).tolist(), abs=1e-6)


@pytest.mark.parametrize("gae_lambda", [0.0, 0.3, 1.0])
def test_one_seat_does_not_feel_what_another_is_paid(gae_lambda):
    streams = np.array([0, 1, 1, 0])
    values = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    one, _ = estimate_advantages(streams, values, np.array([1, 5], np.float32), gae_lambda)
    other, _ = estimate_advantages(streams, values, np.array([1, -5], np.float32), gae_lambda)
    assert one[[0, 3]].tolist() == other[[0, 3]].tolist()
    assert one[2] != other[2]


def test_lambda_one_gives_the_final_reward_as_return():
    streams = np.zeros(4, np.int64)
    values = np.array([0.5, -0.5, 2.0, 0.0], np.float32)
    _, returns = estimate_advantages(streams, values, np.array([3.0], np.float32), 1.0)
    assert returns.tolist() == pytest.approx([3.0] * 4)


@pytest.mark.parametrize("has_magnet", [False, True])
def test_the_compiled_loss_and_its_gradient_are_those_of_the_plain_one(has_magnet):
    generator = np.random.default_rng(4)
    num = 300
    is_legal = generator.random((num, 57)) < 0.2
    actions = generator.integers(57, size=num)
    is_legal[np.arange(num), actions] = True  # the only legal one in some rows
    is_legal[:20] = False
    is_legal[np.arange(20), actions[:20]] = True
    old = np.log(generator.uniform(0.05, 1, num)).astype(np.float32)
    advantages, weights = generator.normal(size=(2, num)).astype(np.float32)
    magnet = (3 * generator.normal(size=(num, 57))).astype(np.float32) if has_magnet else None
    start = (3 * generator.normal(size=(num, 57))).astype(np.float32)

    plain_logits = torch.tensor(start, requires_grad=True)
    arrays = [torch.from_numpy(array) for array in (is_legal, actions, old, advantages, abs(weights))]
    plain = policy_loss(plain_logits, *arrays, 0.2, None if magnet is None else torch.from_numpy(magnet), 0.3)
    (3 * plain.loss).backward()

    masks = np.packbits(np.pad(is_legal, ((0, 0), (0, 7))), axis=1, bitorder="little").view(np.uint64)[:, 0]
    logits = torch.tensor(start, requires_grad=True)
    found = compiled_policy_loss(logits, masks, actions, old, advantages, abs(weights), 0.2, magnet, 0.3)
    (3 * found.loss).backward()
    for name in ("loss", "magnet_kl", "entropy", "approx_kl", "clip_fraction"):
        values = [getattr(terms, name).item() for terms in (found, plain)]
        assert values[0] == pytest.approx(values[1], rel=1e-4, abs=1e-6), name
    assert found.clip_fraction > 0.1
    torch.testing.assert_close(logits.grad, plain_logits.grad, rtol=1e-4, atol=1e-7)
    assert (logits.grad[torch.from_numpy(~is_legal)] == 0).all()
