"""Pitch in OpenSpiel: its own checks, the engine's numbers, worlds that agree with what was seen, bots both ways."""

import pickle
import random
import subprocess
import sys
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from differential import GROUPS, draw_rules
from helpers import VARIANTS, WORKED, choose_sensibly, choose_uniformly, name_rules, parse, play_states
from referee import Referee

pyspiel = pytest.importorskip("pyspiel")

from agents import load  # noqa: E402
from agents.open_spiel_bots import AgentBot, BotAgent, make_ismcts  # noqa: E402
from pitch_env import Rules  # noqa: E402
from pitch_env.cards import CARD_ACTION, card_name, cards_of, mask_of, parse_card  # noqa: E402
from pitch_env.deals import draw_deal  # noqa: E402
from pitch_env.engine import legal_mask, new_tables  # noqa: E402
from pitch_env.layout import layout  # noqa: E402
from pitch_env.observation import observe  # noqa: E402
from pitch_env.open_spiel import DRAWN, load_game, state_of_view  # noqa: E402
from pitch_env.table import AUCTION, NOBODY, deck_mask  # noqa: E402
from pitch_env.view import view_table  # noqa: E402

SMALLEST = Rules(num_players=2, num_suits=2, num_ranks=2, hand_size=1)


def deal(state, hands, dealer=None):
    """Take the chance moves of a deal."""
    if dealer is not None:
        state.apply_action(dealer)
    for hand in hands:
        for card in sorted(hand):
            state.apply_action(card)


def walk(state):
    """Every state below one, itself first."""
    yield state
    for move in state.legal_actions():
        yield from walk(state.child(move))


def test_game_is_registered_only_by_its_own_module():
    code = "import sys, pitch_env.pitch_v0, agents; sys.exit('pyspiel' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert "python_pitch" in pyspiel.registered_names()


@pytest.mark.parametrize("dealer", [0, DRAWN])
@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_openspiels_own_simulation(rules, dealer):
    pyspiel.random_sim_test(load_game(rules, dealer), num_sims=2, serialize=True, verbose=False)


@pytest.mark.parametrize(
    "rules", [Rules(max_hands=3), Rules(teams=True, max_hands=2, pitch_by_card=True)], ids=name_rules
)
def test_openspiels_own_simulation_of_matches(rules):
    pyspiel.random_sim_test(load_game(rules, DRAWN, True), num_sims=2, serialize=True, verbose=False)


@pytest.mark.parametrize(
    "text", ["", "(num_players=2,num_suits=2,num_ranks=4,hand_size=2)", "(dealer=-1,whole_match=true)"]
)
def test_parameters_pickling_and_cloning(text):
    game = pyspiel.load_game(f"python_pitch{text}")
    assert str(pickle.loads(pickle.dumps(game))) == str(game)
    assert pickle.loads(pickle.dumps(game.get_type())) == game.get_type()
    state, rng = game.new_initial_state(), random.Random(1)
    for _ in range(12):
        clone = state.clone()
        copy = pickle.loads(pickle.dumps(state))
        assert str(clone) == str(copy) == str(state)
        assert clone.history() == copy.history() == state.history()
        if state.is_terminal():
            break
        clone.apply_action(rng.choice(clone.legal_actions()))  # the state does not change with its clone
        assert str(clone) != str(state)
        state.apply_action(rng.choice(state.legal_actions()))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"num_players": 9}, "num_players takes"),
        ({"low_point": "me"}, "low_point takes"),
        ({"dealer": 4}, "dealer takes"),
    ],
)
def test_nonsense_is_refused_by_name(values, reason):
    with pytest.raises(ValueError, match=reason):
        load_game.__wrapped__(Rules()).__class__({**Rules().to_dict(), **values})


def test_every_deal_is_one_path_and_as_likely_as_any_other():
    rules = Rules(num_players=2, num_suits=2, num_ranks=3, hand_size=2)
    chances = Counter()

    def deal_on(state, chance):
        if not state.is_chance_node():
            chances[tuple(int(mask) for mask in state.table["dealt"][0, :2])] += chance
            return
        outcomes = state.chance_outcomes()
        assert sum(part for _, part in outcomes) == pytest.approx(1, abs=1e-12)
        for card, part in outcomes:
            deal_on(state.child(card), chance * part)

    deal_on(load_game(rules).new_initial_state(), 1.0)
    cards = cards_of(deck_mask(rules))
    expected = {
        (mask_of(one), mask_of(other))
        for one in combinations(cards, 2)
        for other in combinations(sorted(set(cards) - set(one)), 2)
    }
    assert set(chances) == expected
    assert list(chances.values()) == pytest.approx([1 / len(expected)] * len(expected), abs=1e-12)


def play_with_referee(state, referee, rng):
    """Play a state that is dealt to the end of the hand, each decision compared with the referee's."""
    moves = []
    while not referee.is_hand_over:
        assert state.current_player() == referee.seat
        assert state.legal_actions() == sorted(referee.legal())
        move = choose_sensibly(rng, state.legal_actions())
        referee.act(move)
        state.apply_action(move)
        moves.append(move)
    return moves


@pytest.mark.parametrize(("players", "teams"), GROUPS)
def test_hands_are_those_of_the_referee(players, teams):
    rng = random.Random(players)
    for _ in range(12):
        rules = draw_rules(rng, players, teams)
        dealer = rng.randrange(players)
        state = load_game(rules, rng.choice([dealer, DRAWN])).new_initial_state()
        if state.legal_actions() == list(range(players)) and state.table["dealer"][0] == NOBODY:
            state.apply_action(dealer)
        while state.is_chance_node():
            state.apply_action(rng.choice(state.legal_actions()))
        referee = Referee(rules, dealer)
        referee.start_hand([cards_of(mask) for mask in state.table["dealt"][0, :players]])
        play_with_referee(state, referee, rng)
        assert state.is_terminal()
        own = [referee.deltas[rules.side(seat)] for seat in range(players)]
        others = [np.mean(np.delete(referee.deltas, rules.side(seat))) for seat in range(players)]
        assert state.returns() == pytest.approx(np.subtract(own, others).tolist())
        assert sum(state.returns()) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("rules", [Rules(target=3), Rules(teams=True, target=3), Rules(max_hands=2)], ids=name_rules)
def test_matches_are_those_of_the_referee(rules):
    rng = random.Random(5)
    for _ in range(3):
        state = load_game(rules, DRAWN, True).new_initial_state()
        state.apply_action(2)
        referee = Referee(rules, 2)
        while not state.is_terminal():
            while state.is_chance_node():
                state.apply_action(rng.choice(state.legal_actions()))
            referee.start_hand([cards_of(mask) for mask in state.table["dealt"][0, : rules.num_players]])
            assert state.table["dealer"][0] == referee.dealer
            play_with_referee(state, referee, rng)
            assert state.is_terminal() == referee.is_match_over
        losing = -1 / (rules.num_sides - 1)
        sides = [rules.side(seat) for seat in range(rules.num_players)]
        expected = [0 if referee.winner is None else 1 if side == referee.winner else losing for side in sides]
        assert state.returns() == pytest.approx(expected)


def test_worked_hands_pay_what_they_say():
    for hand in WORKED.values():
        state = load_game(Rules(), hand["dealer"]).new_initial_state()
        deal(state, [parse(cards) for cards in hand["deal"]])
        bid = max(2, hand["points_per_seat"][hand["pitcher"]])
        while state.table["phase"][0] == AUCTION:
            state.apply_action(bid if state.current_player() == hand["pitcher"] else 0)
        for trick in hand["tricks"]:
            for card in parse(trick["cards"]):
                state.apply_action(CARD_ACTION + card)
        points = list(hand["points_per_seat"])
        if points[hand["pitcher"]] < bid:
            points[hand["pitcher"]] = -bid
        net = [own - (sum(points) - own) / 3 for own in points]
        assert state.returns() == pytest.approx(net)


@pytest.mark.parametrize(
    "rules", [SMALLEST, Rules(num_players=2, num_suits=1, num_ranks=4, hand_size=2)], ids=name_rules
)
def test_information_states_tell_apart_exactly_what_a_seat_can(rules):
    """String, tensor and what the seat was shown are one to one over the whole game."""
    shown, texts, tensors = {}, {}, {}
    for state in walk(load_game(rules).new_initial_state()):
        if state.is_chance_node() or state.is_terminal():
            continue
        seat = state.current_player()
        num_dealt = rules.num_players * rules.hand_size
        known = (seat, int(state.table["dealt"][0, seat]), *state.history()[num_dealt:])
        text, tensor = state.information_state_string(), bytes(np.array(state.information_state_tensor(), np.uint8))
        assert shown.setdefault(text, known) == known
        assert texts.setdefault(known, text) == text
        assert tensors.setdefault((seat, tensor), known) == known
    assert len(shown) == len(texts) == len(tensors)


def test_tensors_are_the_observation_of_this_project():
    rules = Rules(num_players=3)
    game = load_game(rules)
    assert game.information_state_tensor_shape() == game.observation_tensor_shape() == [layout(3).size]
    state, rng = game.new_initial_state(), random.Random(3)
    while not state.is_terminal():
        if not state.is_chance_node():
            for seat in range(3):
                expected, _ = observe(state.table, seat, 3)
                assert np.array_equal(state.information_state_tensor(seat), expected)
                assert np.array_equal(state.observation_tensor(seat), expected)
        state.apply_action(rng.choice(state.legal_actions()))


def test_a_match_has_information_states_in_words_that_keep_earlier_hands():
    game = load_game(Rules(num_players=2), 0, True)
    assert not game.get_type().provides_information_state_tensor
    assert game.get_type().provides_observation_tensor
    state, rng = game.new_initial_state(), random.Random(3)
    while not state.course.past or state.is_chance_node():
        state.apply_action(choose_sensibly(rng, state.legal_actions()))
    assert state.information_state_string().startswith(state.course.past)
    assert state.information_state_string() == state.course.past + state.observation_string()


def test_observers_show_only_what_was_asked_for():
    observation = pytest.importorskip("open_spiel.python.observation")
    game = load_game(Rules(num_players=2))
    state, rng = game.new_initial_state(), random.Random(3)
    for _ in range(15):
        state.apply_action(rng.choice(state.legal_actions()))

    def look(**kind):
        observer = observation.make_observation(game, pyspiel.IIGObservationType(**kind))
        observer.set_from(state, 0)
        return observer.string_from(state, 0), observer.tensor

    kinds = pyspiel.PrivateInfoType
    public, tensor = look(public_info=True, private_info=kinds.NONE, perfect_recall=True)
    masks = [int(mask & ~state.table["played"][0]) for mask in state.table["dealt"][0, :2]]
    left = [" ".join(card_name(card) for card in sorted(cards_of(mask))) for mask in masks]
    assert left[0] not in public
    assert left[1] not in public
    assert tensor[layout(2).blocks["hand"]].sum() == 0
    private, tensor = look(public_info=False, private_info=kinds.SINGLE_PLAYER, perfect_recall=True)
    assert private == f"seat 0 holds {left[0]}"
    assert tensor is None
    everything, tensor = look(public_info=True, private_info=kinds.ALL_PLAYERS, perfect_recall=True)
    assert left[0] in everything
    assert left[1] in everything
    assert tensor[layout(2).size :].sum() == len(left[0].split()) + len(left[1].split())


@pytest.mark.parametrize("rules", [VARIANTS[0], VARIANTS[2], VARIANTS[5], *VARIANTS[6:]], ids=name_rules)
def test_drawn_worlds_agree_with_all_that_the_seat_saw(rules):
    rng, num_dealt = random.Random(7), rules.num_players * rules.hand_size
    state = load_game(rules, 1).new_initial_state()
    while not state.is_terminal():
        if not state.is_chance_node():
            for seat in range(rules.num_players):
                other = state.resample_from_infostate(seat, rng.random)
                assert other.information_state_string(seat) == state.information_state_string(seat)
                assert other.history()[num_dealt:] == state.history()[num_dealt:]
                assert other.legal_actions(seat) == state.legal_actions(seat)
        state.apply_action(choose_uniformly(rng, state.legal_actions()))


def test_drawn_worlds_are_all_equally_likely():
    """One seat has shown that it lacks clubs, another has not: every deal that fits comes up as often as the others."""
    rules = Rules(num_players=3, num_suits=2, num_ranks=4, hand_size=2)
    state = load_game(rules).new_initial_state()
    hands = [["JC", "QD"], ["AC", "JD"], ["AD", "KD"]]
    deal(state, [[parse_card(card) for card in hand] for hand in hands])
    for move in (1, 0, 0):  # seat 1 bids
        state.apply_action(move)
    for card in ("JD", "AD", "QD"):  # trump is diamonds, the jack of which is led; seat 2 wins and leads
        state.apply_action(CARD_ACTION + parse_card(card))
    state.apply_action(CARD_ACTION + parse_card("KD"))
    state.apply_action(CARD_ACTION + parse_card("JC"))  # seat 0 lacks diamonds now
    view = state.view(2)
    stream = np.random.default_rng(0)
    counts = Counter(tuple(draw_deal(view, stream.random)) for _ in range(6000))
    assert len(counts) == 3  # seat 1 may hold any of three clubs
    assert max(counts.values()) - min(counts.values()) < 300

    # before the last card seat 1 is yet to play, and seat 0, who has played, hides nothing: seat 1 is bound by no void
    first = load_game(rules).new_initial_state()
    deal(first, [[parse_card(card) for card in hand] for hand in [["JC", "AC"], ["AD", "JD"], ["KC", "KD"]]])
    for move in (1, 0, 0):
        first.apply_action(move)
    for card in ("JD", "KD", "JC"):
        first.apply_action(CARD_ACTION + parse_card(card))
    counts = Counter(tuple(draw_deal(first.view(1), stream.random)) for _ in range(6000))
    # seat 0 holds one of the clubs QC KC AC, seat 2 one of the other two or QD: nine deals
    assert len(counts) == 9
    assert max(counts.values()) - min(counts.values()) < 220


@pytest.mark.parametrize("rules", [Rules(), Rules(num_players=6, pitch_by_card=True), VARIANTS[10]], ids=name_rules)
def test_states_of_views(rules):
    rng = random.Random(2)
    for table in play_states(rules, seed=4, num_hands=1):
        seat = int(table["seat"][0])
        if seat == NOBODY:
            continue
        view = view_table(table, seat)
        state = state_of_view(view, rng.random)
        assert state.current_player() == seat
        assert sum(1 << action for action in state.legal_actions()) == legal_mask(table)
        same = state.view(seat)
        same["plays"][0, same["num_plays"][0] :] = view["plays"][0, view["num_plays"][0] :]  # left over, never read
        for name in ("bids", "num_plays", "plays", "dealt", "voids", "leaders", "winners", "captured", "trump", "bid"):
            assert np.array_equal(same[name], view[name]), name


def test_bots_play_both_ways():
    evaluate_bots = pytest.importorskip("open_spiel.python.algorithms.evaluate_bots")
    rules = Rules(num_players=2, num_suits=2, num_ranks=4, hand_size=2)
    bots = [AgentBot(load(name), seed=1) for name in ("rules", "random")]
    returns = evaluate_bots.evaluate_bots(load_game(rules).new_initial_state(), bots, np.random)
    assert sum(returns) == 0
    agent = BotAgent(make_ismcts(num_simulations=20))
    table = new_tables(rules, 5)
    view = view_table(table, int(table["seat"][0]))
    seeds = np.array([9], np.uint64)
    action = int(agent.act(view, seeds)[0])
    assert legal_mask(table) >> action & 1
    assert int(agent.act(view, seeds)[0]) == action  # all it draws comes from the seed


def test_search_beats_random_play():
    from agents.arena import play_duplicate

    rules = Rules(num_players=2, num_suits=2, num_ranks=4, hand_size=2)
    searcher = load("ismcts?simulations=30")
    assert searcher.name == "ismcts?simulations=30"
    result = play_duplicate(searcher, load("random"), rules, num_deals=40, num_matches=0, seed=1)
    assert result.low > 0


def test_ismcts_by_name_says_what_it_takes(monkeypatch):
    for option, message in (("worlds=3", "ismcts takes simulations=WHOLE NUMBER, not"), ("simulations=0", "from 1 up")):
        with pytest.raises(ValueError, match=message):
            load(f"ismcts?{option}")
    monkeypatch.setitem(sys.modules, "agents.open_spiel_bots", None)
    with pytest.raises(ValueError, match="ismcts needs OpenSpiel, which is not installed"):
        load("ismcts")
