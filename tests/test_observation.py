"""The layout, and every number of an observation against what the referee knows."""

import itertools
import random

import numpy as np
import pytest
from differential import GROUPS, deal_to, draw_rules, start_referee
from helpers import VARIANTS, choose_sensibly, choose_uniformly, name_rules, play_some, play_states
from referee import deck_of, pips_of, rank_of, suit_of

from pitch_env import Rules
from pitch_env.cards import NUM_CARDS
from pitch_env.engine import apply, new_tables, next_hand
from pitch_env.layout import (
    COMPACT,
    COMPACT_SIZE,
    FIELDS,
    MAX_NEED,
    MIN_NEED,
    MOST_ACTIVE,
    Layout,
    layout,
    num_hidden_features,
)
from pitch_env.observation import observe, observe_compact, to_vectors

SIZES = {2: 1158, 3: 1376, 4: 1594, 5: 1812, 6: 2030, 7: 2248}


def test_compact_slices_follow_each_other():
    places = list(COMPACT.values())
    assert places[0] == slice(0, NUM_CARDS)
    assert all(before.stop == after.start for before, after in itertools.pairwise(places))
    assert list(COMPACT) == ["cards", *(field.name for field in FIELDS)]
    assert places[-1].stop <= COMPACT_SIZE < places[-1].stop + 8
    assert COMPACT_SIZE % 8 == 0


@pytest.mark.parametrize("num_seats", range(2, 8))
def test_blocks_are_disjoint_and_cover_everything(num_seats):
    form = layout(num_seats)
    places = sorted(form.blocks.values(), key=lambda place: place.start)
    assert places[0].start == 0
    assert places[-1].stop == form.size
    assert all(before.stop == after.start for before, after in itertools.pairwise(places))
    assert form.max_active <= MOST_ACTIVE
    assert layout(num_seats) is form


def test_sizes_differ_and_stay():
    assert {num_seats: layout(num_seats).size for num_seats in range(2, 8)} == SIZES


@pytest.mark.parametrize("num_seats", [1, 8, 0])
def test_layouts_that_do_not_exist(num_seats):
    with pytest.raises(ValueError, match="num_seats takes a number from 2 to 7"):
        Layout(num_seats)


def test_hidden_features():
    assert num_hidden_features(4) == 3 * 52


def expect(referee, seat):
    """The compact observation of a seat, written from the words of `FIELDS` and what the referee says."""
    rules, seats = referee.rules, referee.seats
    turns = [(other - seat) % len(seats) for other in seats]
    out = np.zeros(COMPACT_SIZE, int)

    def put(name, value, turn=0):
        out[COMPACT[name].start + turn] = value

    hand = sorted(referee.hands[seat])
    hidden = deck_of(rules) - set(referee.deal[seat]) - {card for trick in referee.tricks for card in trick["cards"]}
    out[hand] = 1
    for card in hand:
        out[card] += 64 * all(rank_of(other) < rank_of(card) for other in hidden if suit_of(other) == suit_of(card))
    for suit in range(4):
        put("held", sum(suit_of(card) == suit for card in hand), suit)
        put("unseen", sum(suit_of(card) == suit for card in hidden), suit)
    for number, trick in enumerate(referee.tricks):
        for other, card in referee.players_of(trick):
            out[card] = 2 + 7 * number + turns[other]
    put("num_players", len(seats) - 1)
    for name in ("teams", "win_needs_made_bid", "pitch_by_card"):
        put(name, getattr(rules, name))
    put("low_to_holder", rules.low_point == "holder")
    put("missing_suits", 4 - rules.num_suits)
    put("missing_ranks", 13 - rules.num_ranks)
    put("missing_cards", 6 - rules.hand_size)
    put("dealer", turns[referee.dealer] + 1)
    put("bid", referee.bid)
    highest = [other for other, bid in referee.bids if bid and bid == referee.bid]
    put("pitcher", turns[highest[-1]] + 1 if highest else 0)
    put("waits_for", 0 if referee.seat is None else turns[referee.seat])
    for other, bid in referee.bids:
        put("bids", bid + 1, turns[other])
    pips = referee.trick_points()
    for other in seats:
        side = referee.side_of(other)
        need = min(max(rules.target - referee.scores[side], MIN_NEED), MAX_NEED)
        put("needs", need - MIN_NEED + 1, turns[other])
        put("trick_points", min(pips[side], 41), turns[other])
        put("voids", sum(1 << suit for suit in referee.voids[other]), turns[other])
    if referee.pitcher is None:
        return out
    done = [trick for trick in referee.tricks if trick["winner"] is not None]
    put("trick", len(done) + 1)
    if len(done) < len(referee.tricks):
        trick = referee.tricks[-1]
        put("place", len(trick["cards"]))
        put("leader", turns[trick["leader"]] + 1)
        put("winning", turns[referee._trick_winner(trick)] + 1)
        put("led_suit", suit_of(trick["cards"][0]) + 1)
        put("trick_worth", min(sum(map(pips_of, trick["cards"])), 41))
        place = (referee._trick_winner(trick) - trick["leader"]) % len(seats)
        put("best_card", trick["cards"][place] + 1)
        for card in hand:
            more = {**trick, "cards": [*trick["cards"], card]}
            out[card] += 128 * (referee._trick_winner(more) == (trick["leader"] + len(trick["cards"])) % len(seats))
    if referee.trump is not None:
        put("trump", referee.trump + 1)
        trumps = [card for card in deck_of(rules) if suit_of(card) == referee.trump]
        seen = [card for card in trumps if card not in hidden]
        put("higher_trumps", sum(card > max(seen) for card in trumps))
        put("lower_trumps", sum(card < min(seen) for card in trumps))
        put("jack_unseen", any(pips_of(card) == 1 and card in hidden for card in trumps))
        put_takers(put, referee, turns)
    return out


def put_takers(put, referee, turns):
    taken = {card: other for other in referee.seats for card in referee.captured[other]}
    trumps = sorted((card for card in taken if suit_of(card) == referee.trump), key=rank_of)
    if trumps:
        put("high_taker", turns[taken[trumps[-1]]] + 1)
        holder = next(other for other in referee.seats if trumps[0] in referee.deal[other])
        put("low_taker", turns[holder if referee.rules.low_point == "holder" else taken[trumps[0]]] + 1)
    for card in trumps:
        if pips_of(card) == 1:
            put("jack_taker", turns[taken[card]] + 1)


@pytest.mark.parametrize(("players", "teams"), GROUPS)
def test_every_number_is_what_the_referee_says(players, teams):
    rng = random.Random(f"{players} {teams}")
    for number in range(12):
        rules = draw_rules(rng, players, teams)
        choose = rng.choice([choose_sensibly, choose_uniformly])
        table = new_tables(rules, number)
        referee = start_referee(rules, table)
        for _ in range(80):
            seats = range(players)
            compact = observe_compact(np.repeat(table, players), seats)[0]
            for seat in seats:
                expected = expect(referee, seat)
                if (compact[seat] != expected).any():
                    named = {name: (compact[seat, at], expected[at]) for name, at in COMPACT.items()}
                    assert {name: pair for name, pair in named.items() if (pair[0] != pair[1]).any()} == {}
                mask = observe(table, seat, players)[1]
                legal = sorted(referee.legal()) if seat == referee.seat else []
                assert np.flatnonzero(mask).tolist() == legal
            if referee.is_match_over:
                break
            if referee.is_hand_over:
                next_hand(table)
                deal_to(referee, table)
                continue
            action = choose(rng, sorted(referee.legal()))
            apply(table, action)
            referee.act(action)


@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_vectors_are_the_multi_hot_form(rules):
    num_players = rules.num_players
    for table in play_states(rules, seed=5):
        for seat in range(num_players):
            compact = observe_compact(table, [seat])[0]
            vector, mask = observe(table, seat, num_players)
            assert (vector.dtype, vector.shape) == (np.float32, (layout(num_players).size,))
            assert (mask.dtype, mask.shape) == (np.int8, (57,))
            assert set(vector) <= {0, 1}
            assert vector.sum() <= layout(num_players).max_active
            assert (to_vectors(compact, num_players)[0] == vector).all()
            blocks = layout(num_players).blocks
            for field in FIELDS:
                for index, name in enumerate(field.list_names(num_players)):
                    value = compact[0, COMPACT[field.name].start + index]
                    block = vector[blocks[name]]
                    if field.is_bit_set:
                        assert value == sum(1 << int(bit) for bit in np.flatnonzero(block))
                    else:
                        assert np.flatnonzero(block).tolist() == ([value - 1] if value else [])


def test_larger_layouts_hold_smaller_tables():
    table = play_some(Rules(), 15, seed=2)
    compact = observe_compact(table, [1])[0]
    for num_seats in range(4, 8):
        assert to_vectors(compact, num_seats).sum() == to_vectors(compact, 4).sum()


def test_needs_are_told_apart_within_their_range():
    table = new_tables(Rules(target=1000), 1)
    at = COMPACT["needs"].start
    for score, value in [(-500, 64), (949, 64), (950, 63), (999, 14), (1000, 13), (1012, 1), (1013, 1), (9000, 1)]:
        table["scores"][0, 2] = score
        compact = observe_compact(table, [1])[0][0]
        assert compact[at + 1] == value, score


def test_trick_points_stop_at_41():
    table = new_tables(Rules(num_players=2), 1)
    apply(table, 4)
    table["captured"][0, 0] = 2**52 - 1
    table["num_plays"] = 1
    table["trump"] = 0
    assert observe_compact(table, [0])[0][0, COMPACT["trick_points"].start] == 41


@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_canonical_frames(rules):
    """Trump first, then by the number and ranks of the seat's first cards, then by which suit was played first."""
    for table in play_states(rules, seed=6):
        trump = int(table["trump"][0])
        for seat in range(rules.num_players):
            compact, orders = observe_compact(table, [seat], is_canonical=True)
            own, plays = table["dealt"][0, seat], table["plays"][0, : table["num_plays"][0]] // 13
            keys = []
            for suit in range(4):
                cards = int(own) >> 13 * suit & 0x1FFF
                first_played = -plays.tolist().index(suit) if suit in plays else -99
                keys.append((suit == trump, cards.bit_count(), cards, first_played, -suit))
            assert [keys[suit] for suit in np.argsort(orders[0])] == sorted(keys, reverse=True)
            if trump >= 0:
                assert compact[0, COMPACT["trump"].start] == 1
            plain = observe_compact(table, [seat])[0][0]
            for suit, place in enumerate(orders[0]):
                assert (compact[0, 13 * place : 13 * place + 13] == plain[13 * suit : 13 * suit + 13]).all()
