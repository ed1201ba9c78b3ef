"""The PIMC agent: legal everywhere, led by its view and its seeds alone, and it finds what one can see in the cards."""

import math
import random

import numpy as np
import pytest
from helpers import VARIANTS, actions_of, choose_sensibly, exchange_hidden, name_rules, play_some, play_states

from agents import load
from agents.arena import play_duplicate
from agents.equity import new_equity
from agents.rule_bots import BabyAgent, TricksterAgent
from agents.search import budget, pimc
from agents.search.belief import draw_hands, judge_hands_by_bot
from agents.search.objective import find_margins
from agents.search.pimc import PimcAgent, play_on, value_contracts
from agents.search.worlds import sample_worlds
from pitch_env import Rules
from pitch_env.cards import CARD_ACTION, mask_of, parse_action, parse_card
from pitch_env.engine import apply, legal_mask, new_tables, set_hand
from pitch_env.table import AUCTION, HAND_OVER, MATCH_OVER, PLAY
from pitch_env.view import view_table, view_tables

QUICK = {
    "two-sided": PimcAgent(4, 4),
    "unread": PimcAgent(4, 4, is_reading=False),
    "max^n": PimcAgent(4, 4, method="max_n"),
    "solved contracts": PimcAgent(2, 2, contracts="solved"),
}


def look(table):
    return view_table(table, int(table["seat"][0]))


def act(agent, table, seed=0):
    return int(agent.act(look(table), np.array([seed], np.uint64))[0])


@pytest.mark.parametrize("agent", QUICK.values(), ids=QUICK)
@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_every_action_is_legal(agent, rules):
    table = new_tables(rules, 4)
    for _ in range(rules.num_players * (rules.hand_size + 1)):
        if table["phase"][0] in (HAND_OVER, MATCH_OVER):
            break
        action = act(agent, table)
        assert legal_mask(table) >> action & 1
        apply(table, action)


@pytest.mark.parametrize("rules", [Rules(), Rules(teams=True), Rules(num_players=6)], ids=name_rules)
def test_what_others_hold_changes_nothing(rules):
    rng = random.Random(3)
    some = QUICK["two-sided"], QUICK["unread"], PimcAgent(4, 4, equity=new_equity(rules).eval())
    for step, table in enumerate(play_states(rules, seed=6, num_hands=1, choose=choose_sensibly)):
        if table["seat"][0] >= 0 and step % 3 == 0:
            other = exchange_hidden(table, int(table["seat"][0]), rng)
            for agent in some:
                assert act(agent, table, 5) == act(agent, other, 5)
            worlds = [some[0].sample(look(each), np.uint64(5), 4) for each in (table, other)]
            assert worlds[0].tobytes() == worlds[1].tobytes()


def test_a_batch_gives_what_each_view_gives_alone_and_seeds_matter():
    agent = PimcAgent(2, 2)
    tables = [play_some(rules, 9, seed) for seed, rules in enumerate(VARIANTS)]
    views = np.concatenate([look(table) for table in tables])
    seeds = np.arange(len(tables), dtype=np.uint64)
    actions = agent.act(views, seeds)
    assert actions.dtype == np.int64
    assert actions.tolist() == [act(agent, table, seed) for seed, table in enumerate(tables)]
    lead = new_tables(Rules(), 12)
    while lead["phase"][0] == AUCTION:
        apply(lead, 4)
    assert len({act(agent, lead, seed) for seed in range(20)}) > 1


@pytest.mark.parametrize("agent", QUICK.values(), ids=QUICK)
def test_turns_decided_together_are_decided_as_alone(agent):
    tables = [table for table in play_states(Rules(num_players=2), 8, 1, choose_sensibly) if table["seat"][0] >= 0]
    views, seeds = np.concatenate([look(table) for table in tables]), np.arange(len(tables), dtype=np.uint64)
    assert agent.act(views, seeds).tolist() == [act(agent, table, seed) for seed, table in enumerate(tables)]


def test_worlds_are_added_until_the_time_is_up(monkeypatch):
    clock, sizes = [0.0], []
    agent, table = PimcAgent(seconds=1.0), play_some(Rules(), 3, seed=1)
    for module in (pimc, budget):
        monkeypatch.setattr(module, "perf_counter", lambda: clock[0])
    draw = agent.sample

    def sample(view, seed, num_worlds):
        clock[0] += 0.01 * num_worlds
        sizes.append(num_worlds)
        return draw(view, seed, num_worlds)

    monkeypatch.setattr(agent, "sample", sample)
    assert legal_mask(table) >> act(agent, table) & 1
    assert sizes[:3] == [8, 8, 16]
    assert 0.85 < clock[0] <= 1.0
    agent.seconds = 0.001
    del sizes[:]
    act(agent, table)
    assert sizes == [8]


def test_a_name_says_how_long_it_thinks():
    agent = load("pimc?worlds=3")
    assert (agent.num_worlds, agent.num_bid_worlds, agent.seconds, agent.name) == (3, 3, None, "pimc?worlds=3")
    assert load("pimc?seconds=0.25").seconds == 0.25
    assert load("pimc").num_worlds == PimcAgent().num_worlds
    with pytest.raises(ValueError, match="pimc takes worlds=WHOLE NUMBER, seconds=NUMBER, not 'worlds=many'"):
        load("pimc?worlds=many")
    with pytest.raises(ValueError, match="not 'hours=1'"):
        load("pimc?worlds=4,hours=1")
    with pytest.raises(ValueError, match="num_worlds takes a whole number from 1 up, not 0"):
        load("pimc?worlds=0")
    with pytest.raises(ValueError, match="baby takes no options, not 'worlds=4'"):
        load("baby?worlds=4")


def set_table(hands, said, **changes):
    rules = Rules(num_players=len(hands), hand_size=len(hands[0].split()), **changes)
    table = new_tables(rules, 1)
    set_hand(table, [mask_of(parse_card(word) for word in hand.split()) for hand in hands], dealer=len(hands) - 1)
    for word in said.split():
        apply(table, parse_action(word))
    return table


@pytest.mark.parametrize("agent", QUICK.values(), ids=QUICK)
def test_what_can_be_seen_in_the_cards_is_played(agent):
    table = set_table(["KS 3H", "AS 2H", "9S JS"], "2 pass pass KS AS")
    assert act(agent, table) == CARD_ACTION + parse_card("9S")  # the jack is not thrown under the ace
    table = set_table(["AS 9S 3H", "2S 3S 2H", "JS TS 7S"], "2 pass pass 9S 3S")
    assert act(agent, table) in (CARD_ACTION + parse_card("JS"), CARD_ACTION + parse_card("TS"))  # last, it wins


@pytest.mark.parametrize("agent", QUICK.values(), ids=QUICK)
def test_a_strong_hand_bids_and_a_weak_one_passes(agent):
    hands = ["AS KS QS JS TS 2S", "5S 6S 7C 9D 9H TH", "3D 4D 5D 6D 7D 8D", "3H 4H 5H 6H 7H 8H"]
    assert act(agent, set_table(hands, "")) >= 2
    assert act(agent, set_table(hands, "3")) == 0


def judge_by_hand(table, seat, held, said, noise):
    """Likelihood of a seat's bid and first lead by the bot's own choices in its place, with some cards."""
    again, chance, bot = table.copy(), 1.0, TricksterAgent(courage=0.5)
    set_hand(again, [held if other == seat else int(cards) for other, cards in enumerate(table["dealt"][0, :3])])
    for word in said.split()[:4]:
        action, legal = parse_action(word), actions_of(legal_mask(again))
        if again["seat"][0] == seat and len(legal) > 1:
            alike = [
                other for other in legal if other == action or word[-1] == "S" == "CDHS"[(other - CARD_ACTION) // 13]
            ]
            is_hit = int(bot.act(look(again), np.zeros(1, np.uint64))[0]) in alike
            chance *= (1 - noise) * is_hit + noise * len(alike) / len(legal)
        apply(again, action)
    return chance


def test_hands_are_weighed_by_what_the_bot_would_have_bid_and_led():
    said = "pass 2 pass KS 6D"
    table = set_table(["AS JS 2S", "KS QC 5D", "3C 4C 6D"], said)
    view = look(table)
    assert view["viewer"][0] == 0
    hands = draw_hands(view, 200, np.array([4], np.uint64))[0]
    found = judge_hands_by_bot(view, hands, TricksterAgent(courage=0.5), 0.2)
    assert (found[:, [0, *range(3, 7)]] == 0).all()
    for number in range(200):
        for seat in (1, 2):
            expected = math.log(judge_by_hand(table, seat, int(hands[number, seat]), said, 0.2))
            assert found[number, seat] == pytest.approx(expected)
    assert min(len(set(found[:, seat].tolist())) for seat in (1, 2)) > 1


def test_a_seat_that_bid_high_is_taken_to_hold_high_trumps():
    hands = ["3C 4C 5D 6D 7H 8H", "AS KS JS 2S 9H TD", "3D 4D 2D 2C 7D 8D", "3H 4H 5H 6H 2H TH"]
    view = look(set_table(hands, "pass 3 pass pass KS 8D 4H"))
    tops = [1 << parse_card(name) for name in ("AS", "JS")]
    counts = []
    for is_reading in (False, True):
        worlds = PimcAgent(is_reading=is_reading).sample(view, np.uint64(1), 400)
        counts.append(sum((worlds["dealt"][:, 1] & np.uint64(top) != 0).mean() for top in tops))
        assert (view_tables(worlds, np.zeros(400, np.int64))["dealt"] == view["dealt"]).all()
    assert counts[1] > 1.5 * counts[0] > 0.1


def test_with_an_equity_a_contract_is_taken_from_a_side_that_would_win_with_it():
    rules = Rules(num_players=2)
    table = set_table(["2C 3C 4D 5D 6H 7H", "AS KS JS 2S 9D TD"], "")
    table["scores"][0, 1] = 6
    assert act(PimcAgent(8, 32), table) == 0
    assert act(PimcAgent(8, 32, equity=new_equity(rules).eval()), table) == 4  # all are equal until one has won
    with pytest.raises(ValueError, match="the equity was trained for other rules: num_players 4 against 2"):
        act(PimcAgent(8, 32, equity=new_equity(Rules()).eval()), table)


def test_own_contracts_are_worth_less_the_higher_they_are():
    table = set_table(["AS KS JS 9H 5D 2C", "3C 4C 5C 6C 7C 8C", "3D 4D AD 6D 7D 8D", "3H 4H 5H 6H 7H 8H"], "")
    values = value_contracts(sample_worlds(look(table), 6, 1), 0).mean(axis=0)
    assert np.isnan(values[0])
    assert values[1] >= values[2] >= values[3] >= values[4]


def test_the_bot_plays_on_to_the_end_of_the_hand():
    tables = new_tables(Rules(), 5, 3)
    play_on(tables, BabyAgent(), (AUCTION,))
    assert (tables["phase"] == PLAY).all()
    assert (tables["num_plays"] == 0).all()
    play_on(tables, BabyAgent(), (PLAY,))
    assert np.isin(tables["phase"], (HAND_OVER, MATCH_OVER)).all()
    total = sum(find_margins(tables, side, 4) for side in range(4))
    assert total == pytest.approx(np.zeros(3))


def test_it_beats_a_beginner():
    result = play_duplicate(PimcAgent(8, 16), BabyAgent(), num_deals=120, num_matches=0, seed=2)
    assert result.low > 0


def test_misuse_is_told():
    with pytest.raises(ValueError, match="num_worlds takes a whole number from 1 up"):
        PimcAgent(0)
    with pytest.raises(ValueError, match="num_bid_worlds takes"):
        PimcAgent(num_bid_worlds=2.5)
    with pytest.raises(ValueError, match="seconds takes a number above 0, or None, not 0"):
        PimcAgent(seconds=0)
    with pytest.raises(ValueError, match="method takes one of two_sided, max_n"):
        PimcAgent(method="magic")
    with pytest.raises(ValueError, match="contracts takes one of played, solved"):
        PimcAgent(contracts="guessed")
    with pytest.raises(ValueError, match="contracts='solved' counts points and takes no equity"):
        PimcAgent(contracts="solved", equity=new_equity(Rules()))
