"""Who sits where when there is an opponent pool."""

import numpy as np
import pytest
from test_learner import UNIFORM

from agents.training.pool import Pool
from agents.training.rollout import Shard
from pitch_env import Rules


def seat(rules, num_tables=2000):
    pool = Pool(rules, ["random", "passive"], share=0.5, max_snapshots=2)
    shard = Shard(rules, num_tables, np.random.SeedSequence(5))
    shard.deal()
    pool.seat(shard)
    return pool, shard


@pytest.mark.parametrize("rules", [Rules(num_players=2), Rules(), Rules(num_players=7), Rules(teams=True)], ids=str)
def test_members_and_learner_sit_at_every_side_equally_often(rules):
    _, shard = seat(rules)
    is_member = shard.seat_players > 0
    is_mixed = is_member.any(1)
    assert is_mixed.sum() == 1000
    assert not is_member[is_mixed].all(1).any()  # the learner always has a side
    shares = is_member[is_mixed].mean(0)
    assert shares == pytest.approx(np.full(rules.num_players, shares.mean()), abs=0.06)
    for player in range(rules.num_players):  # a side has one mind
        assert (shard.seat_players[:, player] == shard.seat_players[:, rules.side(player)]).all()


def test_only_the_learners_decisions_are_kept_for_a_whole_hand():
    pool, shard = seat(Rules(), 200)
    before = shard.seat_players.copy()
    batch, _ = shard.play([UNIFORM, *pool.players()])
    assert (shard.seat_players == before).all()
    learners = np.flatnonzero(before.reshape(-1) == 0)
    assert set(batch.streams) <= set(learners)
    assert len(set(batch.streams)) > 0.95 * len(learners)
