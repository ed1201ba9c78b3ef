"""Every interface against the referee, decision by decision: the engine, the environment and many tables at once.

PITCH_DIFFERENTIAL_DECISIONS sets how many decisions of the engine are compared.
"""

import random

import numpy as np
import pytest
from differential import DECISIONS, GROUPS, deal_to, draw_rules, none_or, play_matches, read_table, start_referee
from differential import read_referee as read
from helpers import choose_sensibly, choose_uniformly
from referee import text_of

from pitch_env import pitch_v0
from pitch_env.vector import VectorEnv

# What a run must have met to have tested it.
EVENTS = (
    *("stolen", "dealer stuck", "bid of 4", "auction cut short", "made", "set", "lone trump", "jack", "no jack"),
    *("game tie", "won", "won though set", "not won for being set", "richer loser", "target passed on another's hand"),
    *("truncated", "negative score"),
)


@pytest.mark.parametrize(("players", "teams"), GROUPS)
def test_engine(players, teams):
    num_decisions = DECISIONS // len(GROUPS)
    tally = play_matches(players, teams, num_decisions)
    print(dict(tally))
    assert tally["decisions"] >= num_decisions
    if num_decisions >= 25_000:
        assert [event for event in EVENTS if not tally[event]] == []


def record_of(referee):
    """The hand of a referee as a game record has it."""
    is_bid = referee.pitcher is not None
    return {
        "dealer": referee.dealer,
        "deal": [
            [text_of(card) for card in sorted(hand, key=lambda card: (card // 13, -card))] for hand in referee.deal
        ],
        "bids": [list(bid) for bid in referee.bids],
        "pitcher": referee.pitcher,
        "bid": referee.bid if is_bid else None,
        "trump": None if referee.trump is None else "CDHS"[referee.trump],
        "tricks": [{**trick, "cards": [text_of(card) for card in trick["cards"]]} for trick in referee.tricks],
        "points": referee.points,
        "scores": referee.scores if referee.is_hand_over else None,
    }


def check_environment(env, referee, rewards):
    """What an environment says between two steps, against the referee and the rewards not yet handed out."""
    is_over = referee.is_match_over
    assert env.rewards.keys() == env.terminations.keys() == set(env.agents) == set(env.possible_agents)
    assert set(env.terminations.values()) == {is_over and not referee.is_truncated}
    assert set(env.truncations.values()) == {referee.is_truncated}
    for seat, name in enumerate(env.agents):
        mask = env.observe(name)["action_mask"]
        assert np.flatnonzero(mask).tolist() == (sorted(referee.legal()) if seat == referee.seat else [])
    if not is_over:
        assert env.agent_selection == f"player_{referee.seat}"
        assert env.last()[1] == rewards[referee.seat]


def pay(referee, kind):
    """Rewards per seat for the last act of a referee."""
    if not referee.is_hand_over or (kind == "match" and referee.winner is None):
        return [0] * len(referee.seats)
    if kind == "points":
        return [referee.deltas[referee.side_of(seat)] for seat in referee.seats]
    loss = -1 / (referee.num_sides - 1)
    return [1 if referee.side_of(seat) == referee.winner else loss for seat in referee.seats]


@pytest.mark.parametrize("wrap", [pitch_v0.env, pitch_v0.raw_env])
@pytest.mark.parametrize(("players", "teams"), GROUPS)
def test_environment(players, teams, wrap):
    rng = random.Random(f"{players} {teams}")
    for number in range(6):
        rules, kind = draw_rules(rng, players, teams), rng.choice(["points", "match"])
        env = wrap(rules, reward=kind)
        env.reset(seed=number)
        table = env.unwrapped.table
        referee, hands = start_referee(rules, table), []
        owed = [0] * players
        for _ in range(300):
            check_environment(env, referee, owed)
            acting, action = referee.seat, choose_sensibly(rng, sorted(referee.legal()))
            referee.act(action)
            env.step(action)
            owed[acting] = 0
            paid = pay(referee, kind)
            assert [env.rewards[name] for name in env.agents] == paid
            owed = [before + now for before, now in zip(owed, paid, strict=True)]
            if referee.is_hand_over:
                hands.append(record_of(referee))
                if referee.is_match_over:
                    check_environment(env, referee, owed)
                    break
                deal_to(referee, table)
        now = [] if referee.is_match_over else [record_of(referee)]
        record = {"version": 1, "rules": rules.to_dict(), "hands": hands + now, "winner": referee.winner}
        assert env.unwrapped.record() == record
        while env.agents:  # the last reward reaches every seat
            if not referee.is_match_over:
                break
            assert env.last()[1] == owed[int(env.agent_selection.removeprefix("player_"))]
            env.step(None)


@pytest.mark.parametrize("is_lockstep", [False, True])
def test_many_tables_of_mixed_rules(is_lockstep):
    rng = random.Random(8)
    rules = [draw_rules(rng, *group) for group in GROUPS * 4]
    env = VectorEnv(len(rules), rules, seed=5, is_lockstep=is_lockstep)
    tables = [env.tables[i : i + 1] for i in range(len(rules))]
    referees = [start_referee(*pair) for pair in zip(rules, tables, strict=True)]
    for _ in range(400):
        actions = np.zeros(len(rules), np.int64)
        was_waiting = env.seats == -1
        for i, referee in enumerate(referees):
            legal = sorted(referee.legal())
            assert none_or(env.seats[i]) == referee.seat
            assert np.flatnonzero(env.masks[i]).tolist() == legal
            assert env.legal[i] == sum(1 << action for action in legal)
            if legal:
                actions[i] = rng.choice([choose_uniformly, choose_sensibly])(rng, legal)
                referee.act(actions[i])
        env.step(actions)
        for i, referee in enumerate(referees):
            assert env.has_settled[i] == (referee.is_hand_over and not was_waiting[i])
            assert env.is_match_over[i] == (referee.is_match_over and not was_waiting[i])
            if env.has_settled[i]:
                assert env.winners[i] == (-1 if referee.winner is None else referee.winner)
                assert env.deltas[i, : len(referee.seats)].tolist() == pay(referee, "points")
            else:
                assert env.winners[i] == -1
        if is_lockstep:
            if rng.random() < 0.9:
                continue
            waiting = [table.copy() for table in tables]
            env.deal()
            for i, referee in enumerate(referees):
                assert referee.is_hand_over or waiting[i] == tables[i]
        for i, referee in enumerate(referees):
            if referee.is_match_over:
                referees[i] = start_referee(rules[i], tables[i])
            elif referee.is_hand_over:
                deal_to(referee, tables[i])
            assert read_table(tables[i])["hands"] == read(referees[i])["hands"]
