"""The arena: exact numbers against a slow replay, honest intervals, and results that depend on the seed alone."""

import json
import statistics

import numpy as np
import pytest

from agents.arena import play_duplicate, play_hands, play_matches
from agents.arena.__main__ import main
from agents.arena.estimates import (
    compare_variances,
    count_deals_needed,
    estimate_mean,
    estimate_share,
    find_t_quantile,
)
from agents.arena.match import derive_streams
from agents.arena.sequential import ALPHA, find_bounds, plan_looks, spend
from agents.base import Agent
from agents.random_bots import PassiveRandomAgent, RandomAgent
from agents.rule_bots import AlphonsoAgent, BabyAgent, TricksterAgent
from pitch_env import Rules
from pitch_env.engine import apply, legal_mask, new_tables, next_hand
from pitch_env.table import AUCTION, HAND_OVER, MATCH_OVER, NOBODY, TABLE, seed_streams
from pitch_env.view import view_table

VARIANTS = [
    Rules(num_players=2),
    Rules(),
    Rules(num_players=7, target=5),
    Rules(teams=True),
    Rules(num_players=3, pitch_by_card=True, low_point="holder"),
    Rules(num_players=2, num_suits=1, num_ranks=2, hand_size=1, max_hands=20),
]


class Marked(Agent):
    """Bids 4 or passes, plays its highest or lowest card, and keeps the views it was given."""

    def __init__(self, bids: bool, name: str = "marked") -> None:
        super().__init__()
        self.bids, self.name = bids, name
        self.views = np.zeros(0, TABLE)

    def act(self, views, seeds):
        assert views.shape == seeds.shape
        self.views = np.concatenate([self.views, views])
        masks = [legal_mask(views[i : i + 1]) for i in range(len(views))]
        return np.array([mask.bit_length() - 1 if self.bids else (mask & -mask).bit_length() - 1 for mask in masks])


class Fixed(Agent):
    """Answers with what it is told to."""

    name = "fixed"

    def __init__(self, answer) -> None:
        super().__init__()
        self.answer = answer

    def act(self, views, seeds):
        assert views.shape == seeds.shape
        return self.answer(len(views))


def play_slowly(rules, stream, agents, is_match):
    """One table played seat by seat with agents that draw nothing at random."""
    table = new_tables(rules, np.array([stream], np.uint64))
    while True:
        seat = int(table["seat"][0])
        if seat != NOBODY:
            apply(table, int(agents[seat].act(view_table(table, seat), np.zeros(1, np.uint64))[0]))
        elif is_match and table["phase"][0] == HAND_OVER:
            next_hand(table)
        else:
            return table[0]


def place(rules, side, challenger, opponent):
    return [challenger if rules.side(seat) == side else opponent for seat in range(rules.num_players)]


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_numbers_are_those_of_a_slow_replay(rules):
    challenger, opponent = TricksterAgent(courage=0.5), AlphonsoAgent()
    result = play_duplicate(challenger, opponent, rules, num_deals=10, num_matches=10, seed=5)
    margins, contracts, num_made, hands = [], [0] * 5, 0, []
    for stream in derive_streams(5, 0, 10)[0]:
        leads = []
        for side in range(rules.num_sides):
            end = play_slowly(rules, stream, place(rules, side, challenger, opponent), is_match=False)
            points = [int(delta) for delta in end["deltas"][: rules.num_sides]]
            own = points.pop(side)
            leads.append(own - statistics.mean(points))
            if rules.side(int(end["pitcher"])) == side:
                contracts[end["bid"]] += 1
                num_made += own >= end["bid"]
        margins.append(statistics.mean(leads))
        hands += leads
    shares, num_hands, num_cut = [], 0, 0
    for stream in derive_streams(5, 1, 10)[0]:
        wins = []
        for side in range(rules.num_sides):
            end = play_slowly(rules, stream, place(rules, side, challenger, opponent), is_match=True)
            assert end["phase"] == MATCH_OVER
            wins.append(1 / rules.num_sides if end["winner"] == NOBODY else float(end["winner"] == side))
            num_hands += int(end["num_hands"])
            num_cut += int(end["winner"] == NOBODY)
        shares.append(statistics.mean(wins))
    half = 2.2622 * statistics.stdev(margins) / 10**0.5  # Student's t with 9 degrees of freedom
    assert result.margin == pytest.approx(statistics.mean(margins))
    assert (result.low, result.high) == pytest.approx((result.margin - half, result.margin + half))
    assert result.contracts == pytest.approx([number / (10 * rules.num_sides) for number in contracts[1:]])
    assert result.made_rate == (pytest.approx(num_made / sum(contracts)) if sum(contracts) else None)
    duplicate = statistics.variance(margins) / 10
    expected = statistics.pvariance(hands) / len(hands) / duplicate if duplicate else None
    assert result.variance_ratio == (pytest.approx(expected) if expected else None)
    assert result.match_share == pytest.approx(statistics.mean(shares))
    assert (result.match_low, result.match_high) == pytest.approx(estimate_share(np.array(shares))[1:])
    assert result.hands_per_match == pytest.approx(num_hands / (10 * rules.num_sides))
    assert result.truncated == pytest.approx(num_cut / (10 * rules.num_sides))


@pytest.mark.parametrize("agent", [BabyAgent(), RandomAgent()], ids=lambda agent: agent.name)
@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_an_agent_among_copies_of_itself_is_exactly_equal(agent, rules):
    result = play_duplicate(agent, agent, rules, num_deals=40, num_matches=20, seed=2)
    assert result.margin == result.low == result.high == 0
    assert result.deals_needed is None
    assert result.match_share == pytest.approx(1 / rules.num_sides, abs=1e-12)
    assert result.equal_share == 1 / rules.num_sides
    assert result.match_low == pytest.approx(result.match_high)


@pytest.mark.parametrize("rules", [Rules(num_players=2), Rules(teams=True)], ids=str)
def test_two_sides_are_zero_sum(rules):
    one, other = BabyAgent(), RandomAgent()
    there = play_duplicate(one, other, rules, num_deals=200, num_matches=100, seed=3)
    back = play_duplicate(other, one, rules, num_deals=200, num_matches=100, seed=3)
    assert there.margin == -back.margin != 0
    assert there.match_share + back.match_share == pytest.approx(1)
    assert there.match_low == pytest.approx(1 - back.match_high)


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_the_challenger_sits_at_every_place_of_every_deal_and_agents_see_views_only(rules):
    loud, quiet = Marked(bids=True), Marked(bids=False)
    result = play_duplicate(loud, quiet, rules, num_deals=30, num_matches=0, seed=4)
    for agent in (loud, quiet):
        views = agent.views
        assert not views["rng"].any()
        assert (views["viewer"] == views["seat"]).all()
        others = np.arange(7) != views["viewer"][:, None]
        assert not (views["dealt"] & ~views["played"][:, None])[others].any()
    assert loud.name == "marked"
    if rules.hand_size > 1:
        assert result.contracts == (0, 0, 0, 1)  # the one that bids 4 is always the pitcher
        bidding = loud.views[loud.views["phase"] == AUCTION]
        seats, counts = np.unique(bidding["viewer"], return_counts=True)
        assert seats.tolist() == list(range(rules.num_players))
        if not rules.teams:
            assert (counts == 30).all()  # once in every seat of every deal


def test_the_cards_of_every_hand_do_not_depend_on_who_plays():
    rules = Rules(target=1000, max_hands=3)
    ends = []
    for agent in (RandomAgent(), BabyAgent()):
        tables = new_tables(rules, 8, 50)
        play_matches(tables, [agent], np.zeros((50, 4), int), stream=1)
        ends.append(tables)
    for name in ("dealt", "dealer", "rng", "num_hands"):
        assert (ends[0][name] == ends[1][name]).all()
    assert (ends[0]["plays"] != ends[1]["plays"]).any()


@pytest.mark.parametrize("play", [play_hands, play_matches])
def test_a_table_does_not_depend_on_its_batch(play):
    agents = [RandomAgent(), BabyAgent(), PassiveRandomAgent()]
    rng = np.random.default_rng(0)
    lineups = rng.integers(0, 3, (60, 7))
    start = np.concatenate([new_tables(Rules(num_players=n, max_hands=30), n, 20) for n in (3, 4, 7)])
    ids = np.arange(100, 160)
    whole = start.copy()
    play(whole, agents, lineups, 9, ids)
    order = rng.permutation(60)
    for part in (order[:1], order[1:20], order[20:]):
        tables = start[part]
        play(tables, agents, lineups[part], 9, ids[part])
        assert (tables == whole[part]).all()
    other = start.copy()
    play(other, agents, lineups, 10, ids)
    assert (other["plays"] != whole["plays"]).any()


@pytest.mark.parametrize("rules", [Rules(), Rules(num_players=7)], ids=str)
def test_an_agent_is_asked_once_for_what_is_alike(rules):
    def play(agent, tables, ids):
        raw = np.random.default_rng(1).integers(0, 256, tables.nbytes, np.uint8)  # between the fields is anything
        raw.view(TABLE)[:] = tables
        play_hands(raw.view(TABLE), [agent], np.zeros((len(tables), rules.num_players), int), 1, ids)
        return raw.view(TABLE)

    deals = new_tables(rules, 5, 20)
    once, thrice, apart = (Marked(bids=False) for _ in range(3))
    ends = play(once, deals, np.arange(20))
    order = np.random.default_rng(0).permutation(60)
    again = play(thrice, np.repeat(deals, 3)[order], np.repeat(np.arange(20), 3)[order])
    assert (again == np.repeat(ends, 3)[order]).all()
    assert sorted(map(str, thrice.views)) == sorted(map(str, once.views))
    play(apart, np.repeat(deals, 3), np.arange(60))  # other ids: the same views meet other randomness
    assert len(apart.views) == 3 * len(once.views)


def test_results_depend_on_the_seed_alone():
    def measure(seed=6, **options):
        return play_duplicate(PassiveRandomAgent(), AlphonsoAgent(), Rules(num_players=3), 50, 30, seed, **options)

    first = measure()
    for options in ({}, {"chunk_tables": 1}, {"chunk_tables": 31}, {"num_threads": 2}, {"num_threads": 3}):
        assert measure(**options) == first
    assert measure(seed=7).margin != first.margin


def test_deals_of_measuring_are_not_those_of_plain_seeds_and_start_alike():
    deals, matches = (derive_streams(11, kind, 1000)[0] for kind in (0, 1))
    plain = seed_streams(11, 1000)
    assert len(np.unique(np.concatenate([deals, matches, plain]))) == 3000
    assert (derive_streams(11, 0, 10)[0] == deals[:10]).all()
    assert derive_streams(11, 0, 10)[1] == derive_streams(11, 0, 1000)[1]


def test_matches_that_are_cut_off_are_shared():
    result = play_duplicate(BabyAgent(), RandomAgent(), Rules(num_players=5, target=1000, max_hands=2), 2, 10)
    assert result.truncated == 1
    assert result.hands_per_match == 2
    assert result.match_share == pytest.approx(0.2)


def test_intervals():
    mean, half = estimate_mean(np.array([1.0, 2.0, 3.0, 4.0]))
    assert (mean, half) == pytest.approx((2.5, 3.1824 * (5 / 3) ** 0.5 / 2), rel=1e-4)
    for degrees, quantile in ((1, 12.7062), (10, 2.2281), (20, 2.0860), (30, 2.0423), (120, 1.9799), (10**6, 1.9600)):
        assert find_t_quantile(degrees) == pytest.approx(quantile, abs=1e-4)
    assert estimate_share(np.zeros(10)) == pytest.approx((0, 0, 0.3085), abs=1e-4)  # none of ten
    assert estimate_share(np.ones(10)) == pytest.approx((1, 0.6915, 1), abs=1e-4)
    mean, low, high = estimate_share(np.array([0.0, 0.0, 0.5]))
    assert (low, high) == (0, pytest.approx(1 / 6 + 4.3027 / 6, rel=1e-4))


def test_bounds_of_the_looks_are_those_that_were_published():
    fifths = [number / 5 for number in range(1, 6)]
    assert find_bounds(fifths) == pytest.approx([2.438, 2.427, 2.410, 2.397, 2.386], abs=2e-3)
    normal = statistics.NormalDist()
    spent = [4 - 4 * normal.cdf(normal.inv_cdf(0.9875) / share**0.5) for share in fifths]  # O'Brien and Fleming's kind
    assert find_bounds(fifths, spent) == pytest.approx([4.877, 3.357, 2.680, 2.290, 2.031], abs=2e-3)
    assert find_bounds([1.0]) == pytest.approx([1.95996], abs=1e-4)
    assert spend(1) == pytest.approx(ALPHA)


def test_looks_double():
    assert plan_looks(16_000) == [1000, 2000, 4000, 8000, 16_000]
    assert plan_looks(1000) == [125, 250, 500, 1000]
    assert plan_looks(200) == [100, 200]
    assert plan_looks(150) == [150]


def test_looking_often_is_wrong_in_five_of_a_hundred_only():
    looks = plan_looks(1600)
    bounds = find_bounds([look / 1600 for look in looks])
    sums = np.cumsum(np.random.default_rng(0).normal(size=(5000, 1600)), axis=1)[:, [look - 1 for look in looks]]
    z = np.abs(sums) / np.sqrt(looks)
    assert (z > bounds).any(1).mean() == pytest.approx(ALPHA, abs=0.01)
    assert (z > 1.96).any(1).mean() > 0.12  # what plain intervals would do


def test_a_clear_difference_ends_early_and_equals_never_do():
    baby, passive = BabyAgent(), PassiveRandomAgent()
    sure = play_duplicate(baby, passive, num_deals=1600, num_matches=0, seed=1, until_clear=True, chunk_tables=120)
    assert (sure.look, sure.deals, sure.planned_deals) == (1, 100, 1600)
    plain = play_duplicate(baby, passive, num_deals=100, num_matches=0, seed=1)
    assert (plain.look, plain.planned_deals) == (None, 100)
    assert (sure.margin, sure.contracts, sure.variance_ratio) == (plain.margin, plain.contracts, plain.variance_ratio)
    bound = find_bounds([1 / 16, 1 / 8, 1 / 4, 1 / 2, 1])[0]
    assert sure.high - sure.margin == pytest.approx((plain.high - plain.margin) * bound / 1.95996, rel=1e-4)
    assert sure.low > 0
    equal = play_duplicate(baby, baby, num_deals=400, num_matches=0, seed=1, until_clear=True)
    assert (equal.look, equal.deals, equal.margin) == (3, 400, 0)
    assert equal.variance_ratio is None


def test_duplicates_save_variance_between_agents_that_are_alike():
    careful, bold = TricksterAgent(), TricksterAgent(courage=0.5)
    near = play_duplicate(bold, careful, num_deals=1000, num_matches=0, seed=2)
    assert near.variance_ratio > 1.8  # measured 2.5: the hands of a deal cancel
    far = play_duplicate(careful, AlphonsoAgent(), num_deals=1000, num_matches=0, seed=2)
    assert far.variance_ratio < 1  # measured 0.7: three copies go wrong in the same deals wherever the fourth one sits
    # deals whose hands all give the same save nothing: they are the same measurement again
    assert compare_variances(np.repeat([[1.0], [-1.0]] * 500, 2, axis=1)) == pytest.approx(0.5, rel=2e-3)


@pytest.mark.parametrize("mean", [2.0, 0.5, 0.05, 0.001])
def test_deals_needed_are_the_first_that_suffice(mean):
    margins = mean + np.tile([1.0, -1.0], 500)
    spread, needed = margins.std(ddof=1), count_deals_needed(margins)

    def find_half(number):
        return find_t_quantile(number - 1) * spread / number**0.5

    assert find_half(needed) < mean
    assert find_half(needed - 1) >= mean or needed > 10_000
    assert find_half(needed - 2) >= mean


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda count: np.full(count, 4), r"agent 'fixed' at table \d+: action 4 \(bid 4\) is not legal"),
        (lambda count: np.full(count, 57), "agent 'fixed' at table 0: 57 is no action"),
        (lambda count: np.full(count, -1), "at table 0"),
        (lambda count: np.zeros(count), "agent 'fixed' was to give 3 whole numbers, not float64"),
        (lambda count: np.zeros(count + 1, int), "whole numbers"),
    ],
)
def test_an_agent_that_breaks_the_rules_is_named(answer, reason):
    with pytest.raises(ValueError, match=reason):
        play_hands(new_tables(Rules(), 1, 3), [Fixed(answer)], np.zeros((3, 4), int), stream=0)
    with pytest.raises(ValueError, match="agent 'fixed'"):
        play_duplicate(BabyAgent(), Fixed(answer), num_deals=2, num_matches=2, num_threads=2, chunk_tables=4)


@pytest.mark.parametrize(
    ("lineups", "ids", "reason"),
    [
        (np.zeros((3, 3), int), None, r"lineups takes an agent for each seat, \(3, 4\)"),
        (np.ones((3, 4), int), None, "from 0 to 0"),
        (np.full((3, 4), -1), None, "from 0 to 0"),
        (np.zeros((3, 4), int), np.arange(2), "ids takes 3"),
    ],
)
def test_wrong_shapes_are_refused(lineups, ids, reason):
    with pytest.raises(ValueError, match=reason):
        play_hands(new_tables(Rules(), 1, 3), [BabyAgent()], lineups, 0, ids)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"num_deals": 1}, "num_deals takes a whole number from 2 up, or 0"),
        ({"num_matches": -2}, "num_matches"),
        ({"seed": -1}, "seed takes"),
        ({"seed": 1.5}, "seed takes"),
        ({"num_threads": 0}, "num_threads"),
        ({"chunk_tables": 0}, "chunk_tables"),
    ],
)
def test_nonsense_counts_are_refused(options, reason):
    with pytest.raises(ValueError, match=reason):
        play_duplicate(BabyAgent(), BabyAgent(), **options)


def test_known_strengths():
    baby, alphonso = BabyAgent(), AlphonsoAgent()
    bold = play_duplicate(alphonso, baby, num_deals=500, num_matches=500, seed=1)
    timid = play_duplicate(baby, alphonso, num_deals=500, num_matches=500, seed=1)
    assert 0.42 < bold.match_share < 0.56  # measured 0.490, and 49 % in an independent program
    assert 0.02 < timid.match_share < 0.10  # measured 0.056: it seldom gets to pitch
    assert bold.match_low < bold.match_share < bold.match_high < bold.match_low + 0.06
    weak = play_duplicate(PassiveRandomAgent(), baby, num_deals=500, num_matches=100, seed=1)
    assert -0.7 < weak.margin < -0.3  # measured -0.46
    assert weak.low < weak.margin < weak.high < 0
    assert weak.deals_needed < 100


def test_a_result_is_json_and_what_was_left_out_is_null():
    result = play_duplicate(
        BabyAgent(), AlphonsoAgent(), Rules(teams=True), np.int64(20), np.int64(0), np.int64(3), names=("me", "you")
    )
    values = json.loads(json.dumps(result.to_dict()))
    assert values["challenger"] == "me"
    assert values["opponent"] == "you"
    assert Rules.from_dict(values["rules"]) == Rules(teams=True)
    assert (values["deals"], values["matches"], values["seed"]) == (20, 0, 3)
    assert values["match_share"] is values["match_low"] is values["truncated"] is None
    assert len(values["contracts"]) == 4
    only_matches = play_duplicate(BabyAgent(), AlphonsoAgent(), num_deals=0, num_matches=4)
    assert only_matches.margin is only_matches.contracts is only_matches.deals_needed is None
    assert 0 <= only_matches.match_low <= only_matches.match_share <= only_matches.match_high <= 1


def test_progress_is_reported():
    calls = []
    play_duplicate(
        BabyAgent(), BabyAgent(), num_deals=10, num_matches=4, chunk_tables=16, report=lambda *call: calls.append(call)
    )
    assert calls == [("deals", 4, 10), ("deals", 8, 10), ("deals", 10, 10), ("matches", 4, 4)]


COMMAND = ["match", "baby", "alphonso", "--deals", "20", "--matches", "10", "--seed", "4"]


def test_command_line_prints_one_json_object(capsys):
    assert main([*COMMAND, "--players", "3", "--target", "5", "--threads", "2", "--json"]) == 0
    captured = capsys.readouterr()
    values = json.loads(captured.out)
    expected = play_duplicate(BabyAgent(), AlphonsoAgent(), Rules(num_players=3, target=5), 20, 10, 4)
    assert values == json.loads(json.dumps(expected.to_dict()))
    assert {"margin", "low", "high", "match_share", "match_low", "match_high", "deals"} <= values.keys()


def test_command_line_prints_plain_lines_where_there_is_no_terminal(capsys):
    assert main([*COMMAND, "--teams"]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0] == "baby among alphonso"
    assert any(line.startswith("points a hand: ") and "95 %" in line for line in lines)
    assert any(line.startswith("verdict: ") for line in lines)
    assert "matches: 10 of 10" in captured.err.splitlines()
    assert any(line.startswith("same deals: ") for line in lines)
    assert main([*COMMAND[:3], "--deals", "300", "--matches", "0", "--until-clear"]) == 0
    assert "; ended at look " in capsys.readouterr().out
    assert main([*COMMAND[:3], "--deals", "0", "--matches", "0"]) == 0
    assert "verdict: nothing was measured" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["match", "baby", "nobody-of-that-name"], "nobody-of-that-name"),
        ([*COMMAND, "--players", "9"], "Rules.num_players takes a whole number from 2 to 7"),
        ([*COMMAND, "--players", "3", "--teams"], "Rules.teams needs num_players=4"),
        ([*COMMAND, "--deals", "1"], "num_deals takes"),
        ([*COMMAND, "--seed", "-1"], "seed takes"),
    ],
)
def test_command_line_says_what_is_wrong_in_one_sentence(arguments, reason, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert reason in captured.err
    assert captured.err.count("\n") == 1
