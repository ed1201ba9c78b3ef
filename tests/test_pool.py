"""Who sits where when there is an opponent pool."""

import numpy as np
import pytest
import torch
from test_learner import UNIFORM

from agents.network import new_policy
from agents.training.parallel import Ranks
from agents.training.pool import Pool
from agents.training.rollout import Shard, reward_points
from pitch_env import Rules
from pitch_env.table import MATCH_OVER


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
    assert set(np.unique(is_member.sum(1))) == set(range(0, rules.num_players, 2 if rules.teams else 1))
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


def test_members_stay_for_a_match():
    pool, shard = seat(Rules(target=3), 300)
    for _ in range(6):
        before = shard.seat_players.copy()
        shard.play([UNIFORM, *pool.players()])
        is_going_on = shard.tables["phase"] != MATCH_OVER
        shard.deal()
        pool.seat(shard)
        assert (shard.seat_players[is_going_on] == before[is_going_on]).all()
        assert (shard.seat_players[~is_going_on] != before[~is_going_on]).any()


def test_a_member_that_goes_leaves_its_seats_to_the_learner():
    rules = Rules(num_players=3)
    pool = Pool(rules, ["random"], share=1.0, max_snapshots=2)
    shard = Shard(rules, 100, np.random.SeedSequence(1))
    for number in range(2):
        pool.add_snapshot(new_policy(3, (8,)), number, [shard])
    shard.deal()
    pool.seat(shard)
    names = np.array(["learner", *(member.name for member in pool.members)])
    before = names[shard.seat_players]
    pool.add_snapshot(new_policy(3, (8,)), 2, [shard])
    names = np.array(["learner", *(member.name for member in pool.members)])
    assert list(names) == ["learner", "random", "step 0", "step 2"]
    assert (names[shard.seat_players] == np.where(before == "step 1", "learner", before)).all()
    assert (before == "step 1").any()


def test_the_oldest_and_the_newest_stay():
    for most, steps in ((1, [4]), (2, [0, 4]), (3, [0, 3, 4])):
        pool = Pool(Rules(num_players=3), [], share=0.5, max_snapshots=most)
        for number in range(5):
            pool.add_snapshot(new_policy(3, (8,)), number, [])
        assert [member.name for member in pool.members] == [f"step {number}" for number in steps]


def test_margins_and_their_intervals_are_those_of_the_hands():
    pool, shard = seat(Rules(num_players=2), 400)
    shard.play([UNIFORM, *pool.players()])
    pool.score([shard], Ranks(torch.device("cpu")))
    points = reward_points(shard.tables)
    for number, member in enumerate(pool.members, 1):
        rows = (shard.seat_players == number).any(1)
        own = points[rows][shard.seat_players[rows] == 0]
        assert member.margin == pytest.approx(2 * own.mean(), abs=1e-6)
        assert member.half == pytest.approx(1.95996 * 2 * own.std() / np.sqrt(len(own)), rel=1e-4)


def test_matches_won_are_what_counts_where_matches_are_played_for():
    rules = Rules(num_players=3, target=2)
    pool = Pool(rules, ["random", "passive"], share=0.5, max_snapshots=2, is_by_match=True)
    shard = Shard(rules, 2000, np.random.SeedSequence(5))
    shard.deal()
    pool.seat(shard)
    shard.play([UNIFORM, *pool.players()])
    pool.score([shard], Ranks(torch.device("cpu")))
    is_over = shard.tables["phase"] == MATCH_OVER
    assert 0 < is_over.sum() < len(is_over)
    for number, member in enumerate(pool.members, 1):
        ahead = []
        for seats, winner in zip(shard.seat_players[is_over], shard.tables["winner"][is_over], strict=True):
            if number in seats:
                by = seats[winner]
                ahead.append(1 / (seats == by).sum() * (1 if by == 0 else -1))
        assert member.sums[0] == len(ahead)
        assert member.margin == pytest.approx(np.mean(ahead))


def test_bots_and_snapshots_have_shares_of_their_own_and_the_hardest_is_met_most():
    pool = Pool(Rules(num_players=3), ["random", "passive", "baby"], share=0.5, max_snapshots=2, bot_share=0.8)
    for member, margin in zip(pool.members, (3.0, 1.0, 2.0), strict=True):
        member.sums[:2] = 10, 10 * margin
    alone = pool.weigh()
    assert alone.sum() == pytest.approx(1)
    assert alone[0] < alone[2] < alone[1]
    assert alone[1] == pytest.approx(4 * alone[0])
    pool.add_snapshot(new_policy(3, (8,)), 1, [])
    assert pool.weigh() == pytest.approx([*(0.8 * alone), 0.2])
