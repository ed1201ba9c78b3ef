import numpy as np
import pytest
import torch

from agents import network as networks
from agents.network import Attention, SeparateTrunks, Trunk, new_critic, new_policy
from agents.shape import Shape
from agents.training.rollout import BID, Batch, NetworkPlayer, Shard
from pitch_env import Rules

RULES = Rules()
SMALL = {"attention_size": 32, "attention_layers": 2}
SHAPES = [
    Shape(encoder=encoder, trunks=trunks, **SMALL)
    for encoder in ("mlp", "attention")
    for trunks in ("shared", "separate")
]


def name_shape(shape: Shape) -> str:
    return f"{shape.encoder} {shape.trunks}"


@pytest.fixture(scope="module")
def batch() -> Batch:
    """Open decisions of a few hands, auction and play."""
    shard = Shard(RULES, 10, np.random.SeedSequence(3))
    shard.deal()
    return shard.play([NetworkPlayer(lambda features, _: np.zeros((len(features), 57), np.float32))])[0]


def make_networks(shape: Shape, batch: Batch) -> list[tuple[torch.nn.Module, np.ndarray]]:
    """A policy and a critic, each with the lengths of what it reads."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        policy = new_policy(RULES.num_players, (16, 16), shape)
        critic = new_critic(RULES.num_players, (16, 16), True, shape)
    return [(policy, batch.lengths), (critic, batch.full_lengths)]


@pytest.mark.parametrize("encoder", ["mlp", "attention"])
def test_separate_trunks_learn_from_their_own_rows_alone(encoder, batch):
    is_bid = batch.kinds == BID
    assert 0 < is_bid.sum() < len(batch)
    for network, lengths in make_networks(Shape(encoder=encoder, trunks="separate", **SMALL), batch):
        for rows, own, other in ((is_bid, network.auction, network.play), (~is_bid, network.play, network.auction)):
            network.zero_grad()
            network(batch.features[rows], lengths[rows]).square().sum().backward()
            assert all(parameter.grad is not None for parameter in own.parameters())
            assert all(parameter.grad is None for parameter in other.parameters())


def test_separate_trunks_give_each_row_what_its_trunk_gives(batch):
    for network, lengths in make_networks(Shape(trunks="separate"), batch):
        with torch.no_grad():
            found = network(batch.features, lengths)
            auction, play = (trunk(batch.features, lengths) for trunk in (network.auction, network.play))
        is_bid = torch.from_numpy(batch.kinds == BID)[:, None]
        assert torch.allclose(found, torch.where(is_bid, auction, play), atol=1e-6)
        assert not torch.allclose(auction, play, atol=1e-3)


def test_attention_knows_neither_order_nor_padding(batch, monkeypatch):
    rng = np.random.default_rng(1)
    for network, lengths in make_networks(Shape(encoder="attention", **SMALL), batch):
        mixed = np.full((len(batch), batch.features.shape[1] + 9), 32_000, np.int16)  # no such feature
        for row, length in enumerate(lengths):
            mixed[row, :length] = rng.permutation(batch.features[row, :length])
        with torch.no_grad():
            found = network(batch.features, lengths)
            assert torch.allclose(network(mixed, lengths), found, atol=1e-5)
            monkeypatch.setitem(networks._ROWS_TOGETHER, "cpu", 7)  # groups of rows are put back in their order
            assert torch.allclose(network(batch.features, lengths), found, atol=1e-5)
            monkeypatch.undo()
            alone = [network(batch.features[row : row + 1], lengths[row : row + 1]) for row in range(len(batch))]
        assert torch.allclose(torch.cat(alone), found, atol=1e-5)
        assert found.std(0).max() > 1e-4  # rows differ


def test_attention_looks_at_pairs():
    """Of a sum, what two features do together is what each does alone; of attention it is not."""
    torch.manual_seed(0)
    attention = Attention(5, 32, 1, 8)
    rows, lengths = np.array([[1, 3], [1, 4], [2, 3], [2, 4]], np.int16), np.full(4, 2, np.uint8)
    with torch.no_grad():
        one, two, three, four = attention(rows, lengths)
    assert (one - two - three + four).abs().max() > 1e-3


@pytest.mark.parametrize("shape", SHAPES, ids=name_shape)
def test_bfloat16_gives_nearly_the_same(shape, batch):
    for network, lengths in make_networks(shape, batch):
        with torch.no_grad():
            whole, half = (network(batch.features, lengths, is_half) for is_half in (False, True))
        assert whole.dtype == half.dtype == torch.float32
        assert torch.allclose(whole, half, atol=0.1)
        assert not torch.equal(whole, half)


def test_the_default_is_one_plain_trunk(batch):
    (policy, _), (critic, _) = make_networks(Shape(), batch)
    for network in (policy, critic):
        assert isinstance(network, Trunk)
        assert list(network.state_dict()) == [
            *("first.weight", "first.bias", "norm.weight", "norm.bias", "hidden.0.weight", "hidden.0.bias"),
            *("head.weight", "head.bias"),
        ]
    assert isinstance(make_networks(Shape(trunks="separate"), batch)[0][0], SeparateTrunks)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"encoder": "lstm"}, "encoder takes 'mlp' or 'attention', not 'lstm'"),
        ({"trunks": 2}, "trunks takes 'shared' or 'separate', not 2"),
        ({"attention_size": 40}, "attention_size takes a multiple of 16, not 40"),
        ({"attention_size": 4096}, "attention_size takes a whole number from 16 to 1024, not 4096"),
        ({"attention_layers": 0}, "attention_layers takes a whole number from 1 to 16, not 0"),
        ({"attention_layers": True}, "attention_layers takes a whole number from 1 to 16, not True"),
    ],
)
def test_bad_shapes_are_refused_by_name(values, message):
    with pytest.raises(ValueError, match=message):
        Shape(**values)
