import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import agents
from agents.encoding import encode_views
from agents.network import FeatureSum, new_policy
from agents.policy import PolicySpec, read_policy, write_policy
from agents.search.policy_search import PolicySearchAgent
from agents.shape import Shape
from pitch_env import Rules, pitch_v0
from pitch_env.engine import new_tables
from pitch_env.layout import LAYOUT_VERSION
from pitch_env.view import view_tables, view_to_dict


@pytest.fixture
def policy_path(tmp_path):
    spec = PolicySpec(Rules(), (8, 8), 4, notes={"steps": 3})
    write_policy(tmp_path / "mine.safetensors", spec, spec.new_network().state_dict())
    return tmp_path / "mine.safetensors"


def test_policy_file_round_trip(policy_path):
    spec, network = read_policy(policy_path)
    assert (spec.rules, spec.hidden, spec.num_seats, spec.notes) == (Rules(), (8, 8), 4, {"steps": 3})
    again = read_policy(policy_path)[1]
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name])


@pytest.mark.parametrize("trunks", ["shared", "separate"])
@pytest.mark.parametrize("encoder", ["mlp", "attention"])
def test_every_shape_loads_plays_and_is_searched_with(tmp_path, encoder, trunks):
    shape = Shape(encoder, trunks, attention_size=16, attention_layers=1)
    spec = PolicySpec(Rules(), (8, 8), 4, shape=shape)
    made = spec.new_network()
    write_policy(tmp_path / "policy.safetensors", spec, made.state_dict())
    agent = agents.load(tmp_path)
    assert agent.spec == spec
    search = PolicySearchAgent(agent, num_worlds=2, num_candidates=2)
    env = pitch_v0.env()
    env.reset(seed=1)
    for _ in range(12):  # the auction and some play
        view = env.unwrapped.view()
        encoded = encode_views(view, 4)
        with torch.inference_mode():
            assert torch.equal(
                made(encoded.features, encoded.lengths), agent.network(encoded.features, encoded.lengths)
            )
        mask = env.observe(env.agent_selection)["action_mask"]
        assert mask[search.act(view, np.zeros(1, np.uint64))[0]] == 1
        env.step(agent(env))


HEAD = {"format": "pitch-policy", "format_version": 1}


def test_a_file_from_before_there_were_shapes_is_the_plain_network(tmp_path, policy_path):
    spec, network = read_policy(policy_path)
    head = {key: value for key, value in spec.to_dict().items() if not hasattr(spec.shape, key)}
    head |= HEAD
    assert "encoder" not in head
    save_file(load_file(policy_path), tmp_path / "old.safetensors", {"pitch": json.dumps(head)})
    old_spec, old = read_policy(tmp_path / "old.safetensors")
    assert old_spec == spec
    assert all(torch.equal(tensor, network.state_dict()[name]) for name, tensor in old.state_dict().items())


def test_loaded_agent_plays_a_whole_match_in_one_line(policy_path):
    bot = agents.load(policy_path)
    env = pitch_v0.env()
    env.reset(seed=1)
    for _ in env.agent_iter():
        done = env.terminations[env.agent_selection] or env.truncations[env.agent_selection]
        env.step(None if done else bot(env))
    assert not env.agents


def test_agent_takes_a_json_view(policy_path):
    env = pitch_v0.env()
    env.reset(seed=1)
    view = json.loads(json.dumps(view_to_dict(env.unwrapped.view())))
    assert agents.load(policy_path, is_greedy=True)(view) == agents.load(policy_path, is_greedy=True)(env)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (Rules(target=11), "target 7 against 11"),
        (Rules(num_players=3), "num_players 4 against 3"),
        (Rules(low_point="holder"), "low_point 'taker' against 'holder'"),
    ],
)
def test_other_rules_are_refused_in_words(policy_path, rules, message):
    with pytest.raises(ValueError, match="trained for other rules") as caught:
        agents.load(policy_path, rules)
    assert message in str(caught.value)
    tables = new_tables(rules, 0, 3)
    with pytest.raises(ValueError, match="trained for other rules"):
        agents.load(policy_path).act(view_tables(tables, tables["seat"]), np.zeros(3, np.uint64))


def test_mixed_batch_is_refused_though_its_first_view_fits(policy_path):
    tables = np.concatenate([new_tables(Rules(), 0, 2), new_tables(Rules(target=11), 0, 2)])
    with pytest.raises(ValueError, match="target 7 against 11"):
        agents.load(policy_path).act(view_tables(tables, tables["seat"]), np.zeros(4, np.uint64))


def test_length_guard_may_differ(policy_path):
    agents.load(policy_path, Rules(max_hands=5))


def test_bad_files_are_refused(tmp_path, policy_path):
    with pytest.raises(FileNotFoundError, match="no policy file"):
        agents.load(tmp_path / "none.safetensors")
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(b"no tensors")
    with pytest.raises(ValueError, match="no policy file"):
        agents.load(bad)
    bad.write_bytes(policy_path.read_bytes()[:500])
    with pytest.raises(ValueError, match="no policy file"):
        agents.load(bad)
    save_file({"x": torch.zeros(2)}, bad)
    with pytest.raises(ValueError, match="does not say"):
        agents.load(bad)
    weights = load_file(policy_path)
    for change, message in (
        ({"layout_version": LAYOUT_VERSION + 1}, "observation layout"),
        ({"format_version": 99}, "policy format 99"),
        ({"hidden": [8, 9]}, "cannot be used"),
        ({"hidden": [10**9]}, "layer sizes"),
        ({"rules": {"num_players": 99}}, "num_players"),
        ({"encoder": "lstm"}, "encoder takes 'mlp' or 'attention'"),
        ({"trunks": "separate"}, "cannot be used"),
    ):
        head = {**HEAD, **PolicySpec(Rules(), (8, 8), 4).to_dict(), **change}
        save_file(weights, bad, {"pitch": json.dumps(head)})
        with pytest.raises(ValueError, match=message):
            agents.load(bad)


def test_unknown_agent_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match="random, passive, baby"):
        agents.load("nobody")


@pytest.mark.parametrize("name", agents.names())
def test_every_name_loads_and_plays(name):
    env = pitch_v0.env()
    env.reset(seed=0)
    assert env.observe(env.agent_selection)["action_mask"][agents.load(name)(env)] == 1


def test_feature_sum_equals_an_embedding_bag():
    torch.manual_seed(0)
    layer = FeatureSum(30, 7)
    rng = np.random.default_rng(0)
    features, lengths = rng.integers(0, 30, (5, 9)).astype(np.int16), np.array([9, 0, 3, 1, 5], np.uint8)
    out = layer(features, lengths)
    out.square().sum().backward()
    mine = layer.weight.grad.clone(), layer.bias.grad.clone()
    layer.zero_grad()
    flat = torch.from_numpy(np.concatenate([row[:num] for row, num in zip(features, lengths, strict=True)])).long()
    offsets = torch.from_numpy(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)[:-1]]))
    expected = torch.nn.functional.embedding_bag(flat, layer.weight, offsets, mode="sum") + layer.bias
    assert torch.allclose(out, expected, atol=1e-6)
    expected.square().sum().backward()
    assert torch.allclose(mine[0], layer.weight.grad, atol=1e-4)
    assert torch.allclose(mine[1], layer.bias.grad, atol=1e-4)


def test_relabelled_suits_give_relabelled_answers():
    """The network sees canonical suits, so moving every suit of a deal moves its answer and changes nothing else."""
    rng = np.random.default_rng(0)
    network = new_policy(4, (16, 16))
    torch.manual_seed(1)
    for seed in range(30):
        table = new_tables(Rules(), seed)
        moved = table.copy()
        places = rng.permutation(4)
        for seat in range(4):
            cards = int(table["dealt"][0, seat])
            moved["dealt"][0, seat] = sum(
                ((cards >> (13 * suit)) & 0x1FFF) << (13 * int(places[suit])) for suit in range(4)
            )
        seat = table["seat"]
        one, other = (encode_views(view_tables(tables, seat), 4) for tables in (table, moved))
        held = [int(table["dealt"][0, seat[0]]) >> (13 * suit) & 0x1FFF for suit in range(4)]
        assert one.features.tolist() == other.features.tolist()
        with torch.no_grad():
            assert torch.equal(network(one.features, one.lengths), network(other.features, other.lengths))
        if len(set(held)) == 4:  # suits alike in everything may change places
            assert [one.orders[0, suit] for suit in range(4)] == [other.orders[0, places[suit]] for suit in range(4)]


def test_decisions_do_not_depend_on_the_batch(policy_path):
    agent = agents.load(policy_path)
    tables = new_tables(Rules(), 0, 40)
    views = view_tables(tables, tables["seat"])
    seeds = np.arange(40, dtype=np.uint64) << np.uint64(50)
    together = agent.act(views, seeds)
    alone = [agent.act(views[i : i + 1], seeds[i : i + 1])[0] for i in range(40)]
    assert together.tolist() == alone
