import numpy as np
import pytest
import torch

from agents.training.checkpoint import (
    CheckpointError,
    list_checkpoints,
    read_checkpoint,
    resume_latest,
    write_checkpoint,
)
from agents.training.config import Config
from agents.training.learner import Learner, TrainingError
from agents.training.rollout import BID, NetworkPlayer, Shard
from pitch_env import Rules
from pitch_env.layout import layout, num_hidden_features
from pitch_env.table import HAND_OVER

SMALL = {"hands": 24, "minibatch": 64, "hidden": [16, 16], "critic_hidden": [16, 16], "total_steps": 5000}
ATTENTION = {"encoder": "attention", "attention_size": 16, "attention_layers": 1}
VARIANTS = [Rules(num_players=num) for num in range(2, 8)] + [
    Rules(teams=True),
    Rules(pitch_by_card=True, low_point="holder", win_needs_made_bid=True),
    Rules(num_players=2, num_suits=2, num_ranks=4, hand_size=2),
]


def make_learner(**values) -> Learner:
    return Learner(Config(**{**SMALL, **values}))


def weights_of(learner: Learner) -> dict[str, torch.Tensor]:
    return {
        f"{name}.{key}": tensor.clone()
        for name in ("policy", "critic", "average")
        for key, tensor in getattr(learner, name).state_dict().items()
    }


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


UNIFORM = NetworkPlayer(lambda features, _: np.zeros((len(features), 57), np.float32))


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_rollout_keeps_every_open_decision_and_pays_each_seat_its_hand(rules):
    shard = Shard(rules, 50, np.random.SeedSequence(3))
    num_open = num_all = 0
    for _ in range(3):
        shard.deal()
        batch, num_decisions = shard.play([UNIFORM])
        num_open, num_all = num_open + len(batch), num_all + num_decisions
        assert (shard.tables["phase"] >= HAND_OVER).all()
        # a seat's reward is its side's points less the mean of the other sides', which sums to nothing over sides
        for table, rewards in zip(shard.tables, batch.rewards.reshape(50, -1), strict=True):
            deltas = table["deltas"][: rules.num_sides].astype(float)
            expected = [
                deltas[rules.side(seat)] - np.delete(deltas, rules.side(seat)).mean()
                for seat in range(rules.num_players)
            ]
            assert rewards.tolist() == pytest.approx(expected, abs=1e-6)
        assert batch.rewards.reshape(50, -1).sum(1).tolist() == pytest.approx([0] * 50, abs=1e-5)
        legal_counts = np.array([int(mask).bit_count() for mask in batch.masks])
        assert (legal_counts > 1).all()  # forced moves are not learned from
        assert all(int(mask) >> int(action) & 1 for mask, action in zip(batch.masks, batch.actions, strict=True))
        assert batch.log_probs.tolist() == pytest.approx((-np.log(legal_counts)).tolist(), abs=1e-5)
        # no seat decides more often than one bid and its cards
        assert np.bincount(batch.streams).max() <= 1 + rules.hand_size
        used = np.arange(batch.features.shape[1]) < batch.lengths[:, None]
        assert batch.features[used].max() < layout(rules.num_players).size
        hidden = (np.arange(batch.features.shape[1]) < batch.full_lengths[:, None]) & ~used
        assert batch.features[hidden].min() >= layout(rules.num_players).size
        assert batch.features[hidden].max() < layout(rules.num_players).size + num_hidden_features(rules.num_players)
    assert num_open < num_all


@pytest.mark.parametrize("rules", [Rules(num_players=3), Rules(teams=True, target=3)], ids=str)
def test_a_share_of_the_matches_begins_at_drawn_scores_and_goes_on_from_them(rules):
    shard = Shard(rules, 2000, np.random.SeedSequence(3))
    shard.deal(drawn_share=0.25)
    before = shard.tables["scores"].copy()
    scores = before[:, : rules.num_sides]
    is_drawn = scores.any(1)
    assert is_drawn.mean() == pytest.approx(0.25, abs=0.03)
    assert set(np.unique(scores[is_drawn])) == set(range(-4, rules.target + 5))
    shard.play([UNIFORM])
    assert (shard.tables["scores"] == before + shard.tables["deltas"]).all()
    is_going_on = shard.tables["phase"] == HAND_OVER
    before = shard.tables["scores"].copy()
    shard.deal(drawn_share=1.0)
    assert (shard.tables["scores"] == before)[is_going_on].all()
    assert shard.tables["scores"][~is_going_on].any(1).mean() > 0.9


@pytest.mark.parametrize(
    ("threads", "shape"), [(1, {}), (2, {}), (3, {}), (2, {"trunks": "separate"}), (2, ATTENTION)], ids=str
)
def test_threads_do_not_change_a_bit(threads, shape):
    alone, shared = make_learner(shards=3, threads=1, **shape), make_learner(shards=3, threads=threads, **shape)
    for _ in range(3):
        assert alone.update()["losses/policy_loss"] == shared.update()["losses/policy_loss"]
    assert_same(weights_of(alone), weights_of(shared))


def test_seed_decides():
    one, same, other = make_learner(seed=1), make_learner(seed=1), make_learner(seed=2)
    for learner in (one, same, other):
        learner.update()
    assert_same(weights_of(one), weights_of(same))
    assert not torch.equal(one.policy.head.weight, other.policy.head.weight)


def test_global_random_state_is_neither_read_nor_touched():
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002  (the global state is what is tested)
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    one = make_learner()
    one.update()
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002
    torch.manual_seed(6)
    other = make_learner()
    other.update()
    assert_same(weights_of(one), weights_of(other))


KINDS = {
    "ppo": {},
    "plain critic": {"privileged_critic": False},
    "mmd": {"algorithm": "mmd", "magnet_every": 1},
    "dmc": {"algorithm": "dmc"},
    "match": {"objective": "match", "match_from": 0.0, "drawn_scores": 0.5},
    "pool": {"pool_share": 0.5, "pool_bots": ["trickster", "random"], "snapshot_every": 500, "max_snapshots": 2},
    "match and pool": {
        "objective": "match",
        "match_from": 0.0,
        "drawn_scores": 0.5,
        "pool_share": 0.5,
        "pool_bots": ["random", "passive"],
        "snapshot_every": 500,
        "max_snapshots": 2,
    },
    "separate": {"trunks": "separate", "algorithm": "mmd"},
    "attention": {**ATTENTION, "pool_share": 0.5, "snapshot_every": 500},
    "teams": {"rules": Rules(teams=True), "objective": "match", "pool_share": 0.5, "snapshot_every": 500},
}


def drop_times(facts: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in facts.items() if not name.startswith("time/")}


@pytest.mark.parametrize("kind", KINDS)
def test_resume_is_exact(tmp_path, kind):
    values = KINDS[kind]
    straight, stopped = make_learner(**values), make_learner(**values)
    for _ in range(2):
        straight.update()
        stopped.update()
    write_checkpoint(tmp_path, stopped, {"seconds": 1.5}, 3)
    resumed = make_learner(**values)
    assert resume_latest(tmp_path, resumed, pytest.fail) == {"seconds": 1.5}
    for _ in range(2):
        facts, expected = resumed.update(), straight.update()
        assert drop_times(facts) == drop_times(expected)
    assert_same(weights_of(straight), weights_of(resumed))
    assert (straight.num_steps, straight.num_updates) == (resumed.num_steps, resumed.num_updates)


def test_last_checkpoints_are_kept_and_a_bad_one_is_refused_by_name(tmp_path):
    learner = make_learner()
    for _ in range(4):
        learner.update()
        write_checkpoint(tmp_path, learner, {}, 2)
    latest, before = list_checkpoints(tmp_path)
    whole = latest.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", whole[:-1] + bytes([whole[-1] ^ 1]), b"junk" * 100):
        latest.write_bytes(damaged)
        told = []
        resumed = make_learner()
        resume_latest(tmp_path, resumed, told.append)
        assert len(told) == 1
        assert latest.name in told[0]
        assert resumed.num_steps == int(before.stem.removeprefix("step-"))
    before.write_bytes(b"")
    with pytest.raises(CheckpointError, match="none of the 2 checkpoints"):
        resume_latest(tmp_path, make_learner(), print)


def test_checkpoint_of_another_run_is_refused(tmp_path):
    learner = make_learner()
    learner.update()
    path = write_checkpoint(tmp_path, learner, {}, 2)
    other = make_learner(seed=9, clip=0.1)
    before = weights_of(other)
    with pytest.raises(CheckpointError, match="another seed, clip"):
        read_checkpoint(path, other)
    assert_same(before, weights_of(other))
    read_checkpoint(path, make_learner(threads=1))  # threads never change a result


def test_checkpoint_of_another_kind_of_network_is_refused(tmp_path):
    learner = make_learner()
    learner.update()
    path = write_checkpoint(tmp_path, learner, {}, 2)
    with pytest.raises(CheckpointError, match="another trunks"):
        read_checkpoint(path, make_learner(trunks="separate"))
    with pytest.raises(CheckpointError, match="another encoder, attention_size, attention_layers"):
        read_checkpoint(path, make_learner(**ATTENTION))


def test_a_minibatch_of_play_alone_leaves_the_trunk_of_the_auction_where_it_is():
    learner = make_learner(trunks="separate")
    batches, _, _ = learner._play()
    lessons = [learner._prepare(batch) for batch in batches]
    rows = np.flatnonzero(batches[0].kinds != BID)
    gradients, _ = learner._differentiate(batches[0], rows, lessons[0])
    names = [name for network in (learner.policy, learner.critic) for name, _ in network.named_parameters()]
    for name, gradient in zip(names, gradients, strict=True):
        assert gradient.any() == name.startswith("play."), name


def test_weights_that_are_not_finite_are_never_written(tmp_path):
    learner = make_learner()
    learner.update()
    write_checkpoint(tmp_path, learner, {}, 2)
    learner.update()
    with torch.no_grad():
        learner.critic.head.bias.fill_(float("nan"))
    with pytest.raises(CheckpointError, match=r"critic\.head\.bias is not finite.*saved before is whole"):
        write_checkpoint(tmp_path, learner, {}, 2)
    assert len(list_checkpoints(tmp_path)) == 1


def test_schedules_are_shares_of_the_run():
    for total_steps in (1000, 100_000):
        learner = make_learner(total_steps=total_steps, hold=0.2)
        for share, value in ((0.0, 1.0), (0.2, 1.0), (0.6, 0.55), (1.0, 0.1), (1.5, 0.1)):
            learner.num_steps = int(share * total_steps)
            assert learner.schedule(1.0, 0.1) == pytest.approx(value)


def test_time_is_shared_out():
    facts = make_learner().update()
    assert 0 < facts["time/inference_share"] < 1 - facts["time/update_share"] < 1


def test_gradients_that_are_not_finite_are_skipped_and_then_reported():
    learner = make_learner(minibatch=100_000, epochs=1)
    before = weights_of(learner)
    object.__setattr__(learner.config, "reward_scale", float("nan"))
    learner.update()
    learner.update()
    assert_same(before, weights_of(learner))
    with pytest.raises(TrainingError, match="not finite"):
        learner.update()


def test_policy_improves_in_seconds():
    """After a few dozen updates on a tiny deck the policy earns more than a uniform one among copies of it."""
    from agents.arena import play_duplicate
    from agents.policy import PolicyAgent, PolicySpec
    from agents.random_bots import RandomAgent

    rules = Rules(num_players=2, num_suits=2, num_ranks=4, hand_size=2)
    learner = make_learner(rules=rules, hands=512, minibatch=512, total_steps=100_000, learning_rate=3e-3)
    while learner.num_steps < 100_000:
        learner.update()
    agent = PolicyAgent(PolicySpec(rules, (16, 16), 2), learner.average)
    result = play_duplicate(agent, RandomAgent(), rules, num_deals=1000, num_matches=0, seed=1)
    assert result.low > 0.5
