"""Sampled deals: each one fits its view, all that fit come up equally often, and nothing hidden gets in."""

import collections
import itertools
import random

import numpy as np
import pytest
from helpers import VARIANTS, choose_uniformly, exchange_hidden, name_rules, play_states

from agents.search.worlds import sample_worlds
from pitch_env import Rules
from pitch_env.cards import NUM_RANKS, cards_of, mask_of, parse_action, parse_card
from pitch_env.engine import apply, new_tables, set_hand
from pitch_env.table import NOBODY, TABLE, deck_mask, read_rules
from pitch_env.view import view_table

TIGHT = [  # nearly all cards dealt, so that voids leave few deals
    Rules(num_players=4, num_ranks=6),
    Rules(num_players=7, num_ranks=11),
    Rules(num_players=3, num_suits=3, num_ranks=6),
]


def are_same(tables, others):
    """Whether tables are equal in every field; what lies between the fields does not count."""
    return all((tables[name] == others[name]).all() for name in TABLE.names)


def hold_voids(world):
    """Whether no seat holds a card of a suit that it is known to be out of."""
    t = world[0]
    for seat in range(t["num_players"]):
        held = cards_of(t["dealt"][seat] & ~t["played"])
        if any(t["voids"][seat] >> (card // NUM_RANKS) & 1 for card in held):
            return False
    return True


@pytest.mark.parametrize("rules", VARIANTS + TIGHT, ids=name_rules)
def test_every_world_reproduces_the_view(rules):
    for step, table in enumerate(play_states(rules, seed=5, num_hands=2, choose=choose_uniformly)):
        seat = step % rules.num_players
        view = view_table(table, seat)
        worlds = sample_worlds(view, 8, seed_of(step))
        assert (worlds["viewer"] == NOBODY).all()
        for i in range(len(worlds)):
            world = worlds[i : i + 1]
            assert are_same(view_table(world, seat), view)
            assert hold_voids(world)
            hands = [int(mask) for mask in world["dealt"][0, : rules.num_players]]
            assert all(hand.bit_count() == rules.hand_size for hand in hands)
            union = mask_of(card for hand in hands for card in cards_of(hand))
            assert union.bit_count() == rules.hand_size * rules.num_players
            assert not union & ~deck_mask(rules)


def seed_of(number):
    return np.array([number], np.uint64)


def find_hidden(view):
    """The seats that hide cards, what each may hold and how many, by a reading of its own; and all unseen cards."""
    t = view[0]
    rules = read_rules(t)
    unseen = set(cards_of(deck_mask(rules))) - set(cards_of(t["played"])) - set(cards_of(t["dealt"][t["viewer"]]))
    hidden = []
    for seat in range(rules.num_players):
        number = rules.hand_size - int(t["dealt"][seat]).bit_count()
        if number:
            hidden.append((seat, {card for card in unseen if not t["voids"][seat] >> (card // NUM_RANKS) & 1}, number))
    return hidden, unseen


def list_deals(hidden, unseen):
    """Every way to give the seats that hide cards theirs."""
    if not hidden:
        return [()]
    (_, allowed, number), *rest = hidden
    return [
        (mask_of(cards), *others)
        for cards in itertools.combinations(sorted(allowed & unseen), number)
        for others in list_deals(rest, unseen - set(cards))
    ]


def find_crossed_views(rules, num_views, most_deals):
    """Views in which two seats hide cards, each out of a suit that the other may hold, and the deals that fit them."""
    for seed in itertools.count():
        for table in play_states(rules, seed=seed, num_hands=1, choose=choose_uniformly):
            view = view_table(table, int(table["dealer"][0]))
            hidden, unseen = find_hidden(view)
            held = [allowed for _, allowed, _ in hidden]
            if any(a - b and b - a for a, b in itertools.combinations(held, 2)):
                deals = list_deals(hidden, unseen)
                if 6 <= len(deals) <= most_deals:
                    yield view, [seat for seat, _, _ in hidden], deals
                    num_views -= 1
                    if num_views == 0:
                        return
                    break


def test_every_deal_that_fits_comes_up_equally_often():
    rules = Rules(num_players=4, num_suits=3, num_ranks=5, hand_size=3)
    excess = []
    for view, seats, deals in find_crossed_views(rules, 12, 120):
        num_worlds = 200 * len(deals)
        worlds = sample_worlds(view, num_worlds, seed_of(11))
        held = worlds["dealt"][:, seats] & ~view["dealt"][0, seats]
        found = collections.Counter(map(tuple, held.tolist()))
        assert set(found) == set(deals)
        squares = sum((found[deal] - 200) ** 2 / 200 for deal in deals)
        degrees = len(deals) - 1
        excess.append((squares - degrees) / (2 * degrees) ** 0.5)  # about standard normal
    assert max(excess) < 4
    assert abs(np.mean(excess)) < 4 / len(excess) ** 0.5


def test_worlds_depend_on_the_view_and_the_seed_alone():
    table = new_tables(Rules(), 3)
    view = view_table(table, 1)
    worlds = sample_worlds(view, 20, seed_of(7))
    other = sample_worlds(view_table(exchange_hidden(table, 1, random.Random(1)), 1), 20, seed_of(7))
    assert are_same(worlds, other)
    assert are_same(sample_worlds(view, 5, 7), worlds[:5])
    assert len({tuple(world) for world in worlds["dealt"].tolist()}) == 20
    assert len(set(worlds["rng"].tolist())) == 20
    views = np.concatenate([view_table(table, 0), view])
    assert are_same(sample_worlds(views, 20, np.array([1, 7], np.uint64))[20:], worlds)


def test_a_table_s_own_stream_as_the_seed_does_not_give_away_its_cards():
    for seed in range(200):
        table = new_tables(Rules(num_players=2), seed)
        start = np.zeros(1, np.uint64) + np.random.SeedSequence(seed).generate_state(1, np.uint64)
        for stream in (start, table["rng"]):
            worlds = sample_worlds(view_table(table, 0), 2, stream)
            assert (worlds["dealt"][:, 1] != table["dealt"][0, 1]).all()


def test_the_last_hidden_card_is_known():
    rules = Rules(num_players=2, num_suits=1, num_ranks=4, hand_size=2)
    table = new_tables(rules, 1)
    cards = [[parse_card(name) for name in hand.split()] for hand in ("AC JC", "KC QC")]
    set_hand(table, [mask_of(hand) for hand in cards], dealer=1)
    for word in ("2", "pass", "AC", "QC"):
        apply(table, parse_action(word))
    worlds = sample_worlds(view_table(table, 0), 3, 0)
    assert (worlds["dealt"][:, 1] == table["dealt"][0, 1]).all()


def test_misuse_is_told():
    table = new_tables(Rules(), 1)
    with pytest.raises(ValueError, match="the view of a seat"):
        sample_worlds(table, 1, 1)
    with pytest.raises(ValueError, match="num_worlds takes a whole number"):
        sample_worlds(view_table(table, 0), -1, 1)
    assert sample_worlds(view_table(table, 0), 0, 1).shape == (0,)
