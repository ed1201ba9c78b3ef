"""What must hold in every match: cards, scores, records, secrecy, perfect recall, and that suits are only names."""

import json
import random

import numpy as np
import pytest
from differential import start_referee
from helpers import actions_of, choose_sensibly, choose_uniformly, exchange_hidden, name_rules, play_some
from hypothesis import assume, given
from hypothesis import strategies as st
from numba import njit

from pitch_env import Rules, frame
from pitch_env.cards import CARD_ACTION, NUM_ACTIONS
from pitch_env.describe import decode, view_from_compact
from pitch_env.engine import apply, legal_mask, new_tables, next_hand, set_hand
from pitch_env.observation import observe, observe_compact
from pitch_env.record import record_hand, record_match, replay_record
from pitch_env.table import HAND_OVER, MATCH_OVER, NOBODY, deck_mask
from pitch_env.view import view_table, view_to_dict


@st.composite
def some_rules(draw):
    players = draw(st.integers(2, 7))
    deck = {"num_suits": 4, "num_ranks": 13, "hand_size": 6}
    if draw(st.booleans()):
        deck = {
            "num_suits": draw(st.integers(1, 4)),
            "num_ranks": draw(st.integers(1, 13)),
            "hand_size": draw(st.integers(1, 6)),
        }
        assume(players * deck["hand_size"] <= deck["num_suits"] * deck["num_ranks"])
    return Rules(
        num_players=players,
        teams=players == 4 and draw(st.booleans()),
        target=draw(st.sampled_from([1, 7, 11, 21])),
        win_needs_made_bid=draw(st.booleans()),
        low_point=draw(st.sampled_from(["taker", "holder"])),
        pitch_by_card=draw(st.booleans()),
        max_hands=draw(st.integers(1, 12)),
        **deck,
    )


@st.composite
def some_tables(draw):
    """A table some way into a match, never between hands."""
    choose = draw(st.sampled_from([choose_sensibly, choose_uniformly]))
    return play_some(draw(some_rules()), draw(st.integers(0, 120)), draw(st.integers(0, 2**32 - 1)), choose)


def union(masks):
    total = 0
    for mask in masks:
        assert total & mask == 0  # no card is in two places
        total |= mask
    return total


@given(some_rules(), st.integers(0, 2**32 - 1), st.sampled_from([choose_sensibly, choose_uniformly]))
def test_matches(rules, seed, choose):
    rng = random.Random(seed)
    table = new_tables(rules, seed)
    t = table[0]
    players, sides = rules.num_players, rules.num_sides
    hands = []
    while True:
        before = t["scores"][:sides].tolist()
        while t["seat"] != NOBODY:
            check_cards(t, rules)
            legal = actions_of(legal_mask(table))
            assert legal
            apply(table, choose(rng, legal))
        check_cards(t, rules)
        assert union(t["captured"][:players].tolist()) == union(t["dealt"][:players].tolist()) == t["played"]
        check_scores(t, before, sides)
        hands.append(table.copy())
        if t["phase"] == MATCH_OVER:
            break
        assert t["phase"] == HAND_OVER
        next_hand(table)
    assert legal_mask(table) == 0
    assert (t["winner"] == NOBODY) == (t["num_hands"] == rules.max_hands and not_won(t, rules))
    record = record_match(hands, [0] * sides)
    assert record_match(replay_record(json.loads(json.dumps(record))), [0] * sides) == record


def check_cards(t, rules):
    players, num_plays = rules.num_players, int(t["num_plays"])
    dealt = union(t["dealt"][:players].tolist())
    assert dealt.bit_count() == players * rules.hand_size
    assert dealt & ~deck_mask(rules) == 0
    on_table = union(1 << int(card) for card in t["plays"][num_plays - num_plays % players : num_plays])
    in_hand = union(cards & ~int(t["played"]) for cards in t["dealt"][:players].tolist())
    assert union([*t["captured"][:players].tolist(), on_table, in_hand]) == dealt
    assert int(t["played"]).bit_count() == num_plays


def check_scores(t, before, sides):
    points, deltas = t["points"].tolist(), t["deltas"][:sides].tolist()
    assert t["scores"][:sides].tolist() == [score + delta for score, delta in zip(before, deltas, strict=True)]
    pitching = t["pitcher"] % sides
    for side in range(sides):
        won = points.count(side)
        is_set = side == pitching and won < t["bid"]
        assert deltas[side] == (-t["bid"] if is_set else won)
    assert points[0] != NOBODY
    assert points[1] != NOBODY


def not_won(t, rules):
    side = t["pitcher"] % rules.num_sides
    return t["scores"][side] < rules.target or (rules.win_needs_made_bid and t["deltas"][side] < 0)


@given(some_tables(), st.randoms(use_true_random=False))
def test_nothing_seen_depends_on_what_is_hidden(table, rng):
    num_players = int(table["num_players"][0])
    for seat in range(num_players):
        other = exchange_hidden(table, seat, rng)
        assert (view_table(table, seat) == view_table(other, seat)).all()
        assert view_to_dict(view_table(table, seat)) == view_to_dict(view_table(other, seat))
        for mine, theirs in zip(observe(table, seat, num_players), observe(other, seat, num_players), strict=True):
            assert (mine == theirs).all()
        for is_canonical in (False, True):
            seen, again = (observe_compact(each, [seat], is_canonical) for each in (table, other))
            assert (seen[0] == again[0]).all()
            assert (seen[1] == again[1]).all()


@given(some_tables())
def test_observations_can_be_read_back(table):
    num_players = int(table["num_players"][0])
    for seat in range(num_players):
        compact = observe_compact(table, [seat])[0][0]
        assert (decode(observe(table, seat, num_players)[0]) == compact).all()
        assert (observe_compact(view_from_compact(compact), [0])[0][0] == compact).all()


TINY = [
    Rules(num_players=2, num_suits=2, num_ranks=2, hand_size=2),
    Rules(num_players=2, num_suits=2, num_ranks=3, hand_size=2, pitch_by_card=True),
    Rules(num_players=3, num_suits=3, num_ranks=2, hand_size=2),
    Rules(num_players=4, num_suits=2, num_ranks=4, hand_size=2, low_point="holder"),
    Rules(num_players=4, num_suits=2, num_ranks=4, hand_size=2, teams=True),
    Rules(num_players=2, num_suits=3, num_ranks=3, hand_size=3),
]


@pytest.mark.parametrize("rules", TINY, ids=name_rules)
def test_perfect_recall_within_a_hand(rules):
    """Over many hands of a tiny deck: what a seat knows and what it is shown tell each other."""
    rng = random.Random(1)
    shown, known = {}, {}  # by seat and knowledge, by seat and observation
    num_seen = 0
    for seed in range(1500):
        table = new_tables(rules, seed)
        referee = start_referee(rules, table)
        while True:
            for seat in range(rules.num_players):
                vector, mask = observe(table, seat, rules.num_players)
                observation, knowledge = (seat, vector.tobytes()), referee.known(seat)
                assert shown.setdefault(knowledge, (observation, mask.tobytes())) == (observation, mask.tobytes())
                assert known.setdefault(observation, knowledge) == knowledge
                num_seen += 1
            if referee.is_hand_over:
                break
            action = rng.choice(sorted(referee.legal()))
            referee.act(action)
            apply(table, action)
    assert len(shown) == len(known)
    assert len(known) < 0.9 * num_seen  # so the same was met again and again


def test_scores_and_dealers_are_told_apart():
    table = new_tables(Rules(), 1)
    seen = set()
    for dealer in range(4):
        for score in range(-5, 7):
            table["dealer"], table["scores"][0, 1] = dealer, score
            set_hand(table, table["dealt"][0].tolist())
            seen.add(observe(table, 0, 4)[0].tobytes())
    assert len(seen) == 4 * 12


@njit
def frame_mask(legal, order):
    return frame.reorder_actions(legal, order)


@njit
def there_and_back(action, order):
    moved, restored = frame.reorder_action(action, order), frame.restore_action(action, order)
    return moved, frame.restore_action(moved, order), frame.reorder_action(restored, order), restored


@given(st.permutations(range(4)))
def test_moving_actions_to_a_frame_and_back(order):
    order = np.array(order)
    for action in range(NUM_ACTIONS):
        moved, back, forth, restored = there_and_back(action, order)
        assert back == forth == action
        assert frame_mask(np.uint64(1 << action), order) == 1 << moved
        if action < CARD_ACTION:
            assert moved == restored == action
        else:
            suit, rank = divmod(action - CARD_ACTION, 13)
            assert moved == CARD_ACTION + order[suit] * 13 + rank


def rename(card, names):
    return names[card // 13] * 13 + card % 13


def rename_suits(table, names):
    """The same hand, each suit under another name, played again to where it stands."""
    t = table[0]
    other = table.copy()
    dealt = [sum(1 << rename(card, names) for card in range(52) if cards >> card & 1) for cards in t["dealt"].tolist()]
    set_hand(other, dealt)
    for _, bid in record_hand(table)["bids"]:
        apply(other, bid)
    for card in t["plays"][: t["num_plays"]].tolist():
        apply(other, CARD_ACTION + rename(card, names))
    return other


def are_alike(t, seat, suit, other):
    """Whether nothing that a seat knows tells two suits apart: as many cards of the same ranks, none of them played."""
    own, both = int(t["dealt"][seat]), (suit, other)
    first, second = (own >> 13 * one & 0x1FFF for one in both)
    played = any(int(t["played"]) >> 13 * one & 0x1FFF for one in both)
    return first == second and not played


@given(some_tables(), st.permutations(range(4)))
def test_suits_are_only_names(table, names):
    num_suits = int(table["num_suits"][0])
    names = [name for name in names if name < num_suits] + list(range(num_suits, 4))
    other = rename_suits(table, names)
    t = table[0]
    for seat in range(int(t["num_players"])):
        (compact,), (order,) = observe_compact(table, [seat], is_canonical=True)
        (again,), (other_order,) = observe_compact(other, [seat], is_canonical=True)
        assert (compact == again).all()
        for suit in range(4):
            place = other_order[names[suit]]
            assert place == order[suit] or are_alike(t, seat, suit, int(np.flatnonzero(order == place)[0]))
    legal, other_legal = (np.uint64(legal_mask(each)) for each in (table, other))
    (order,), (other_order,) = (observe_compact(each, [t["seat"]], True)[1] for each in (table, other))
    assert frame_mask(legal, order) == frame_mask(other_legal, other_order)
