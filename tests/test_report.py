"""What TensorBoard is told, against slow counts."""

from collections import defaultdict

import numpy as np
import pytest
from test_learner import UNIFORM

from agents.training.config import Config
from agents.training.report import (
    describe_decisions,
    describe_hands,
    write_hands,
    write_hyperparameters,
    write_scalars,
)
from agents.training.rollout import BID, PLAY_ON, Batch, Shard
from pitch_env import Rules


def play(rules, num_tables=60, num_hands=4):
    shard = Shard(rules, num_tables, np.random.SeedSequence(4))
    for _ in range(num_hands):
        shard.deal()
        shard.play([UNIFORM])
    return shard.tables


@pytest.mark.parametrize(
    "rules",
    [Rules(), Rules(num_players=2), Rules(num_players=7), Rules(teams=True), Rules(pitch_by_card=True)],
    ids=str,
)
def test_hands_are_counted_as_one_would_by_hand(rules):
    tables = play(rules)
    places, scores, contracts = defaultdict(list), defaultdict(list), defaultdict(list)
    for table in tables:
        for seat in range(rules.num_players):
            bid = int(table["bids"][seat])
            if bid < 0:
                continue
            word = "pass" if bid == 0 else str(bid)
            place = (seat - int(table["dealer"])) % rules.num_players
            places[f"place_{place}" if place else "dealer"].append(word)
            score = int(table["scores"][rules.side(seat)]) - int(table["deltas"][rules.side(seat)])
            group = "can_win_now" if score >= rules.target - 4 else "behind" if score < 0 else "between"
            scores[group].append(word)
        contracts[int(table["bid"])].append(int(table["deltas"][rules.side(int(table["pitcher"]))]) < 0)
    expected = {f"game/set_rate_{bid}": np.mean(were_set) for bid, were_set in contracts.items()}
    for title, groups in (("place", places), ("score", scores)):
        for group, words in groups.items():
            for word in ("pass", "1", "2", "3", "4"):
                expected[f"bids_by_{title}/{group}_{word}"] = words.count(word) / len(words)
    assert describe_hands(tables) == pytest.approx(expected)


def new_batch(log_probs, kinds, rewards):
    number = len(kinds)
    nothing = np.zeros(number, np.int64)
    streams = np.arange(number)
    log_probs, kinds = np.array(log_probs, np.float32), np.array(kinds, np.uint8)
    return Batch(nothing, nothing, nothing, nothing, nothing, log_probs, streams, kinds, np.array(rewards, np.float32))


def test_decisions_by_hand():
    # two rewards a point; predicted 0.5 and 0.75 points, which brought 1 and 2; and 3 points, which brought 2
    batches = [new_batch([-1, -3], [BID, BID], [2, 4]), new_batch([-0.5], [PLAY_ON], [4])]
    facts = describe_decisions(batches, [np.array([1.0, 1.5]), np.array([6.0])], 2.0)
    assert facts == pytest.approx(
        {
            "entropy/bid": 2.0,
            "entropy/play": 0.5,
            "critic/real_above_predicted_from_0": (0.5 + 1.25) / 2,
            "critic/real_above_predicted_from_2": -1.0,
            "critic/calibration_error": (0.875 * 2 + 1.0) / 3,
        }
    )


def test_entropy_of_uniform_play_is_that_of_the_choices():
    shard = Shard(Rules(), 50, np.random.SeedSequence(4))
    shard.deal()
    batch, _ = shard.play([UNIFORM])
    facts = describe_decisions([batch], [np.zeros(len(batch))], 1.0)
    is_bid = batch.kinds == BID
    choices = np.array([int(mask).bit_count() for mask in batch.masks])
    assert facts["entropy/bid"] == pytest.approx(np.log(choices[is_bid]).mean(), abs=1e-5)


def test_everything_can_be_read_back(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(tmp_path))
    config = Config(rules=Rules(teams=True), opponents=["baby"])
    write_hyperparameters(writer, config)
    write_scalars(writer, {"eval/trickster+0.5/margin": 0.25, "pool/step 2,000": 1.0}, 70)
    write_hands(writer, play(Rules(), 5, 1), 70)
    writer.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    points = {name: [(event.step, event.value) for event in events.Scalars(name)] for name in events.Tags()["scalars"]}
    assert points == {"eval/trickster_0.5/margin": [(70, 0.25)], "pool/step_2_000": [(70, 1.0)]}
    texts = {
        name: events.Tensors(name)[0].tensor_proto.string_val[0].decode()
        for name in events.Tags()["tensors"]
        if "text" in name
    }
    assert "learning_rate: 0.002" in texts["config/text_summary"]
    for number in (1, 2, 3):
        assert "The hand is over." in texts[f"hands/{number}/text_summary"]
    content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    start = HParamsPluginData.FromString(content).session_start_info
    assert start.hparams["learning_rate"].number_value == config.learning_rate
    assert start.hparams["rules.teams"].string_value == "True"
    assert start.hparams["hidden"].string_value == "[256, 256]"
