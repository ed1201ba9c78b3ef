"""Leagues, their page and the ladder: the numbers of duplicate matches, and nothing but the seed decides them."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

from agents import load
from agents.arena import play_duplicate
from agents.arena.__main__ import main
from agents.arena.estimates import estimate_mean
from agents.arena.ladder import LADDER, climb, find_standing, to_dict
from agents.arena.league import _Pool, play_league
from agents.arena.match import derive_streams
from agents.arena.page import find_ticks, render_page
from agents.arena.play import play_hands
from agents.arena.show import show_ladder, show_league
from agents.random_bots import PassiveRandomAgent, RandomAgent
from agents.rule_bots import AlphonsoAgent, BabyAgent, TricksterAgent
from pitch_env import Rules
from pitch_env.engine import new_tables

VARIANTS = [Rules(num_players=2), Rules(num_players=3, target=5), Rules(), Rules(num_players=7), Rules(teams=True)]
MANY = [BabyAgent(), AlphonsoAgent(), TricksterAgent(), PassiveRandomAgent(), RandomAgent()]


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_pairs_are_those_of_duplicate_matches(rules):
    agents = [BabyAgent(), AlphonsoAgent(), PassiveRandomAgent()]
    found = play_league(agents, rules, 20, 6, seed=3).to_dict()
    for i, one in enumerate(agents):
        for j, other in enumerate(agents):
            if i == j:
                assert found["pairs"]["points"]["value"][i][i] == 0
                assert found["pairs"]["wins"]["value"][i][i] == pytest.approx(1 / rules.num_sides)
                continue
            match = play_duplicate(one, other, rules, 20, 6, seed=3)
            points, wins = (
                [found["pairs"][what][word][i][j] for word in ("value", "low", "high")] for what in ("points", "wins")
            )
            assert points == pytest.approx([match.margin, match.low, match.high])
            assert wins == pytest.approx([match.match_share, match.match_low, match.match_high])


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
@pytest.mark.parametrize("num_agents", [2, 3, 5])
def test_everyone_sits_at_every_place_of_every_mixed_deal(rules, num_agents):
    pool = _Pool(MANY[:num_agents], rules, 4)
    seated = pool.draw_circles(0, 30)
    times = -(-rules.num_sides // num_agents)
    for side in range(rules.num_sides):
        counts = [np.bincount(deal, minlength=num_agents).tolist() for deal in seated[:, :, side]]
        assert counts == [[times] * num_agents] * 30
    for table in seated.reshape(-1, rules.num_sides):
        assert len(set(table)) == rules.num_sides if num_agents >= rules.num_sides else len(set(table)) >= 2
    assert (pool.draw_circles(0, 7) == seated[:7]).all()
    assert (pool.draw_circles(1, 30) != seated).any()


@pytest.mark.parametrize("rules", [Rules(), Rules(teams=True), Rules(num_players=6)], ids=str)
def test_mixed_tables_against_a_replay(rules):
    games = play_league(MANY, rules, 12, 0, seed=5).hands
    streams, stream = derive_streams(5, 0, 12)
    num_sides = rules.num_sides
    leads = np.zeros((12, 5))
    bids = np.zeros((5, 5), int)
    made = won = 0
    for deal in range(12):
        for line, scores in zip(games.seated[deal], games.scores[deal], strict=True):
            by_seat = np.array([[line[rules.side(seat)] for seat in range(rules.num_players)]])
            table = new_tables(rules, streams[deal : deal + 1])
            play_hands(table, MANY, by_seat, stream, np.array([deal]))
            assert table["deltas"][0, :num_sides].tolist() == scores.tolist()
            for side, agent in enumerate(line):
                leads[deal, agent] += scores[side] - (scores.sum() - scores[side]) / (num_sides - 1)
            for seat, agent in enumerate(by_seat[0]):
                if table["bids"][0, seat] >= 0:
                    bids[agent, table["bids"][0, seat]] += 1
            if by_seat[0, table["pitcher"][0]] == 2:
                won += 1
                made += scores[rules.side(int(table["pitcher"][0]))] >= table["bid"][0]
    leads /= (games.seated[0] == 0).sum()
    assert games.mixed == pytest.approx(leads)
    assert games.counts[:, :5].tolist() == bids.tolist()
    assert (games.counts[2, 5:10].sum(), games.counts[2, 10:].sum()) == (won, made)


def test_results_depend_on_the_seed_alone():
    def measure(seed=6, **options):
        return play_league(MANY[:4], Rules(num_players=3), 15, 3, seed, **options).to_dict()

    first = measure()
    for options in ({"chunk_tables": 1}, {"chunk_tables": 100}, {"num_threads": 2}):
        assert measure(**options) == first
    assert measure(seed=7)["pairs"] != first["pairs"]
    longer = play_league(MANY[:4], Rules(num_players=3), 20, 0, 6)
    shorter = play_league(MANY[:4], Rules(num_players=3), 15, 0, 6)
    assert (longer.hands.pairs[:15] == shorter.hands.pairs).all()
    assert (longer.hands.scores[:15] == shorter.hands.scores).all()
    assert shorter.matches is None


def test_copies_are_equal_in_everything():
    twin = BabyAgent()
    league = play_league([BabyAgent(), twin, AlphonsoAgent()], None, 30, 10, names=["a", "b", "c"])
    found = league.to_dict()
    assert found["pairs"]["points"]["value"][0][1] == 0
    assert found["pairs"]["points"]["value"][0][2] == found["pairs"]["points"]["value"][1][2]
    assert found["game"]["points"]["ratings"][0] == pytest.approx(found["game"]["points"]["ratings"][1])
    assert found["game"]["wins"]["nash"][0] == pytest.approx(found["game"]["wins"]["nash"][1], abs=1e-6)
    mean, half = estimate_mean(league.hands.mixed[:, 2])
    assert found["mixed"]["points"]["high"][2] == pytest.approx(mean + half)


def test_the_whole_pool_is_reported():
    found = play_league(MANY, Rules(), 60, 20, seed=1).to_dict()
    assert json.loads(json.dumps(found)) == found
    baby, alphonso, trickster, passive, random = range(5)
    elo = found["ratings"]["elo"]
    assert sum(elo) == pytest.approx(0, abs=1e-6)
    assert min(elo[alphonso], elo[trickster]) > elo[baby] > elo[passive]
    assert found["ratings"]["of"] == "matches"
    assert found["ratings"]["openskill"]["mu"][trickster] > found["ratings"]["openskill"]["mu"][passive]
    assert found["mixed"]["points"]["high"][random] < -1
    bids = found["mixed"]["bids"]
    assert sum(bids[baby]["bids"]) == pytest.approx(1)
    assert bids[passive]["bids"][0] > 0.7 > bids[alphonso]["bids"][0]
    assert bids[trickster]["made_rate"] > bids[random]["made_rate"]
    for word in ("points", "wins"):
        assert sum(found["game"][word]["nash"]) == pytest.approx(1)
        assert 0 <= found["game"][word]["cyclic_share"] < 1
    assert found["game"]["points"]["nash"][random] == pytest.approx(0)


class Checker(HTMLParser):
    """Collects tags, addresses and what is shown on hover; every tag must be closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.links, self.hovers = [], set(), [], []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "xlink:href")]
        self.hovers += [value for name, value in attributes if name == "title"]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else():
    names = ["<script>alert(1)</script>", 'b"&amp;', "runs/" + "long" * 20 + "/policy.safetensors"]
    found = play_league(MANY[:3], Rules(num_players=3), 20, 8, names=names).to_dict()
    page = render_page(found)
    assert page == render_page(json.loads(json.dumps(found)))
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert checker.links == []
    assert not re.search(r"https?://|@import|url\(", page)
    assert "script" not in checker.tags
    assert {"svg", "table", "style"} <= checker.tags
    margin = found["pairs"]["points"]["value"][0][1]
    assert any(hover.startswith(f"{names[0]} among {names[1]}: {margin:+.3f} (95 %:") for hover in checker.hovers)
    assert page.count("Nash mix by") == 2


@pytest.mark.parametrize(("deals", "matches"), [(0, 5), (10, 0), (0, 0)])
def test_what_was_not_measured_is_left_out(deals, matches, capsys):
    found = play_league(MANY[:2], Rules(teams=True), deals, matches).to_dict()
    page = render_page(found)
    show_league(found, Console())
    text = capsys.readouterr().out
    for shown in (page, text):
        assert ("Points a hand" in shown) == bool(deals)
        assert ("Matches won" in shown) == bool(matches)
        assert ("Nash mix" in shown) == bool(deals or matches)
    assert (found["ratings"] is None) == (not deals and not matches)
    if deals:
        assert found["ratings"]["of"] == "hands"


@pytest.mark.parametrize(("low", "high"), [(-0.3, 0.4), (0, 1), (-1234, 77), (0.0001, 0.0002)])
def test_ticks_are_round_and_within(low, high):
    ticks = find_ticks(low, high)
    assert 2 <= len(ticks) <= 8
    assert low - 1e-9 <= ticks[0] <= ticks[-1] <= high + 1e-9


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="at least two agents"):
        play_league([BabyAgent()])
    with pytest.raises(ValueError, match="each agent once, not baby, baby"):
        play_league([BabyAgent(), BabyAgent()])
    with pytest.raises(ValueError, match="num_matches takes"):
        play_league(MANY, num_matches=1)


def test_progress_is_reported():
    calls = []
    play_league(MANY[:2], Rules(teams=True), 10, 4, chunk_tables=16, report=lambda *call: calls.append(call))
    assert calls == [("deals", 4, 10), ("deals", 8, 10), ("deals", 10, 10), ("matches", 4, 4)]


COMMAND = ["league", "baby", "alphonso", "passive", "--deals", "10", "--matches", "4", "--players", "3"]


def test_command_line_of_leagues(tmp_path, capsys):
    files = [tmp_path / "league.json", tmp_path / "league.html"]
    assert main([*COMMAND, "--json", str(files[0]), "--html", str(files[1])]) == 0
    captured = capsys.readouterr()
    assert "Points a hand, row among copies of column" in captured.out
    assert "deals: 10 of 10" in captured.err
    found = json.loads(files[0].read_text("utf-8"))
    assert found["names"] == ["baby", "alphonso", "passive"]
    assert (
        found
        == play_league([BabyAgent(), AlphonsoAgent(), PassiveRandomAgent()], Rules(num_players=3), 10, 4).to_dict()
    )
    assert files[1].read_text("utf-8") == render_page(found)
    assert main([*COMMAND, "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == found
    assert captured.err == ""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["league", "baby"], "at least two agents"),
        (["league", "baby", "baby"], "each agent once"),
        (["league", "baby", "nobody"], "there is no agent 'nobody'"),
        ([*COMMAND, "--html", "no/such/folder/page.html"], "there is no folder"),
        (["ladder", "nobody"], "there is no agent 'nobody'"),
    ],
)
def test_command_line_says_what_is_wrong_in_one_sentence(arguments, reason, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert reason in captured.err
    assert captured.err.count("\n") == 1


def test_tables_on_a_terminal(capsys):
    found = play_league(MANY[:3], None, 10, 4, names=["[bold]a", "b", "c"]).to_dict()
    console = Console(force_terminal=True, width=200)
    show_league(found, console)
    text = capsys.readouterr().out
    assert "[bold]a" in text
    assert "┏" in text


def test_the_ladder_on_a_few_deals(capsys):
    rungs = ["baby", "random"]
    calls = []
    results = climb(BabyAgent(), None, 60, 20, 1, rungs=rungs, report=lambda *call: calls.append(call))
    assert [(one.opponent, one.deals, one.matches) for one in results] == [("baby", 60, 20), ("random", 60, 20)]
    assert results[0] == play_duplicate(BabyAgent(), BabyAgent(), None, 60, 20, 1)
    assert calls[-1] == ("percent", 100, 100)
    assert [done for _, done, _ in calls] == sorted(done for _, done, _ in calls)
    assert find_standing(results)["points"] == {"above": ["random"], "level": ["baby"], "below": []}
    show_ladder(to_dict(results), Console())
    assert "points: above random; level with baby" in capsys.readouterr().out
    assert find_standing(climb(BabyAgent(), None, 4, 0, rungs=rungs))["wins"] is None
    with pytest.raises(ValueError, match="num_deals takes"):
        climb(BabyAgent(), None, 1, 0, rungs=rungs)


def test_who_costs_more_plays_less():
    dear = BabyAgent()
    dear.cost = 4
    (one,) = climb(dear, None, 60, 20, 1, rungs=["baby"])
    assert (one.deals, one.matches) == (15, 10)
    assert one == play_duplicate(BabyAgent(), BabyAgent(), None, 15, 10, 1)
    costs = {name: load(name).cost for name in (*LADDER, "pimc?seconds=0.5", "search:trained?worlds=1000")}
    assert [name for name, cost in costs.items() if cost == 1] == [*LADDER[:7], "trained"]
    assert costs["pimc?worlds=10"] < costs["search:trained"] < costs["pimc?worlds=100"] < costs["pimc?seconds=0.5"]
    assert costs["search:trained?worlds=1000"] > 5 * costs["search:trained"]


def test_the_ladder_is_the_known_one_and_slow_rungs_play_less(capsys):
    assert LADDER[:2] == ("random", "passive")
    assert LADDER[-2:] == ("trained", "search:trained")
    assert main(["ladder", "alphonso", "--deals", "20", "--matches", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["agent"] == "alphonso"
    assert [one["opponent"] for one in found["rungs"]] == list(LADDER)
    assert found["rungs"][-1]["deals"] < found["rungs"][0]["deals"] == 20
    assert found["standing"]["points"]["above"][0] == "random"
    assert found["left_out"] == []


def test_rungs_trained_for_other_rules_are_left_out_by_name(capsys, monkeypatch):
    monkeypatch.setattr("agents.arena.ladder.LADDER", (LADDER[0], *LADDER[-2:]))
    rules = Rules(target=11)
    found = to_dict(climb(BabyAgent(), rules, 4, 0, rungs=(LADDER[0], *LADDER[-2:])))
    assert [one["opponent"] for one in found["rungs"]] == ["random"]
    assert found["left_out"] == ["trained", "search:trained"]
    show_ladder(found, Console())
    assert "left out, for they were trained for other rules: trained, search:trained" in capsys.readouterr().out
