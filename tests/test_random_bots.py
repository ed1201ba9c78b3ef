"""Agents that choose by chance: legal, uniform, and a function of view and seed alone."""

import numpy as np
import pytest

from agents.random_bots import PassiveRandomAgent, RandomAgent
from pitch_env import Rules
from pitch_env.cards import CARD_ACTION, PASS, cards_of, mask_of
from pitch_env.engine import apply, legal_mask, new_tables, next_hand, set_hand
from pitch_env.table import AUCTION, HAND_OVER, MATCH_OVER, PLAY, deck_mask
from pitch_env.view import view_table, view_tables

AGENTS = [RandomAgent(), PassiveRandomAgent()]
VARIANTS = [
    *(Rules(num_players=players) for players in range(2, 8)),
    Rules(teams=True),
    Rules(low_point="holder", win_needs_made_bid=True),
    Rules(pitch_by_card=True),
    Rules(num_players=7, pitch_by_card=True, hand_size=1),
    Rules(num_players=3, num_suits=2, num_ranks=5, hand_size=3),
    Rules(num_players=2, num_suits=1, num_ranks=2, hand_size=1),
]


def draw_seeds(rng, size):
    return rng.integers(0, 2**64, size=size, dtype=np.uint64)


def look(tables):
    return view_tables(tables, tables["seat"].astype(np.int64))


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_every_action_is_legal(agent, rules):
    rng = np.random.default_rng(3)
    tables = new_tables(rules, 11, 200)
    for _ in range(4 * rules.num_players * (rules.hand_size + 1)):
        for i in np.flatnonzero(tables["phase"] == HAND_OVER):
            next_hand(tables[i : i + 1])
        tables = tables[tables["phase"] != MATCH_OVER]
        if not len(tables):
            break
        for i, action in enumerate(agent.act(look(tables), draw_seeds(rng, len(tables)))):
            apply(tables[i : i + 1], action)  # raises if it is not legal


@pytest.mark.parametrize("phase", [AUCTION, PLAY])
def test_random_is_uniform_over_the_legal_actions_even_of_neighbouring_seeds(phase):
    table = new_tables(Rules(pitch_by_card=phase == AUCTION), 5)
    if phase == PLAY:
        apply(table, 4)
    legal = [action for action in range(64) if legal_mask(table) >> action & 1]
    views = np.repeat(look(table), 20_000)
    actions, counts = np.unique(RandomAgent().act(views, np.arange(20_000, dtype=np.uint64)), return_counts=True)
    assert actions.tolist() == legal
    expected = 20_000 / len(legal)
    assert np.abs(counts - expected).max() < 5 * expected**0.5


def test_passive_passes_wherever_it_may():
    table = new_tables(Rules(), 5)
    agent = PassiveRandomAgent()
    for _ in range(3):
        assert agent(view_table(table, int(table["seat"][0]))) == PASS
        apply(table, PASS)
    views = np.repeat(look(table), 3000)  # the dealer is stuck and bids as it comes
    actions, counts = np.unique(agent.act(views, np.arange(3000, dtype=np.uint64)), return_counts=True)
    assert actions.tolist() == [2, 3, 4]
    assert counts.min() > 850


def test_passive_plays_any_card():
    table = new_tables(Rules(), 5)
    apply(table, 4)
    views = np.repeat(look(table), 600)
    actions = PassiveRandomAgent().act(views, np.arange(600, dtype=np.uint64))
    hand = cards_of(int(table["dealt"][0, table["seat"][0]]))
    assert set(actions.tolist()) == {CARD_ACTION + card for card in hand}


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_a_choice_depends_on_its_view_and_seed_only(agent):
    rng = np.random.default_rng(2)
    tables = new_tables(Rules(num_players=5), 7, 200)
    for step in range(4):
        seeds = draw_seeds(rng, 200)
        views = look(tables)
        actions = agent.act(views, seeds)
        order = rng.permutation(200)
        assert (agent.act(views[order], seeds[order]) == actions[order]).all()
        assert agent.act(views[:1], seeds[:1])[0] == actions[0]
        for i, action in enumerate(actions):
            apply(tables[i : i + 1], action if step else 4)


def test_what_others_hold_changes_nothing():
    rng = np.random.default_rng(4)
    rules = Rules()
    agent = RandomAgent()
    for seed in range(50):
        table = new_tables(rules, seed)
        seat = int(table["seat"][0])
        other = table.copy()
        own = int(table["dealt"][0, seat])
        rest = rng.permutation(cards_of(deck_mask(rules) & ~own)).reshape(-1)
        deal = [mask_of(rest[6 * player : 6 * player + 6]) for player in range(4)]
        deal[seat] = own
        set_hand(other, deal)
        seeds = draw_seeds(rng, 1)
        assert agent.act(look(table), seeds) == agent.act(look(other), seeds)


def test_an_agent_with_a_seed_repeats_itself():
    view = look(new_tables(Rules(), 5))
    first, second = RandomAgent(seed=9), RandomAgent(seed=9)
    assert [first(view) for _ in range(50)] == [second(view) for _ in range(50)]
