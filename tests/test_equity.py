"""Chances to win the match: solved by hand, against matches played, and as files."""

import json

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from test_learner import make_learner

from agents.arena.play import play_hands
from agents.equity import EquityTable, main, new_equity, read_equity, write_equity
from agents.rule_bots import TricksterAgent
from agents.training.equity import GainSizes, SettledHands, new_equity_learner
from pitch_env import Rules
from pitch_env.engine import new_tables, start_hand, start_match
from pitch_env.kernels import kernel
from pitch_env.table import HAND_OVER, MATCH_OVER


@kernel
def deal(tables):
    for i in range(tables.shape[0]):
        if tables[i].phase == HAND_OVER:
            start_hand(tables[i])
        elif tables[i].phase == MATCH_OVER:
            start_match(tables[i])


def settle(scores, dealers, pitchers, deltas, equity, rules):
    """Hands that ended so, with what their ends are worth: only those that end no match."""
    scores, deltas = np.array(scores, np.int16), np.array(deltas, np.int8)
    dealers, pitchers = np.array(dealers, np.int8), np.array(pitchers, np.int8)
    chances = equity.estimate(scores + deltas, (dealers + 1) % rules.num_players)
    return SettledHands(scores, dealers, np.zeros(scores.shape, np.int64), pitchers, deltas, chances, 0 * chances)


def test_the_table_is_solved_as_by_hand():
    rules = Rules(num_players=2)
    learner = new_equity_learner(rules)
    # the dealer always pitches and makes exactly one point, so who deals at need 1 wins
    for _ in range(20):
        hands = settle([[0, 0], [6, 3], [5, 5]], [0, 0, 1], [0, 0, 1], [[1, 0], [1, 0], [0, 1]], learner.equity, rules)
        learner.learn(hands, np.random.default_rng(0))
    chances = learner.equity.estimate(np.array([[6, 6], [5, 6], [5, 5], [0, 6]]), np.zeros(4, np.int64))
    # dealer at 1: wins. At 2 against 1: scores, then the other deals and wins. At 2 against 2: gets to 1, the other
    # gets to 1, then it deals and wins. At 7 against 1: loses.
    assert chances[:, 0] == pytest.approx([1, 0, 1, 0], abs=1e-6)
    assert chances.sum(1) == pytest.approx(np.ones(4))


def test_a_set_pitcher_wins_only_where_the_rules_let_it():
    for needs_made, chance in ((False, 1.0), (True, 0.5)):  # with it nobody ever wins, and it keeps its first guess
        rules = Rules(num_players=2, win_needs_made_bid=needs_made)
        learner = new_equity_learner(rules)
        for _ in range(20):  # the dealer always pitches and is set by one
            hands = settle([[9, 0], [0, 9]], [0, 1], [0, 1], [[-1, 0], [0, -1]], learner.equity, rules)
            learner.learn(hands, np.random.default_rng(0))
        assert learner.equity.estimate(np.array([[9, 3]]), np.array([0]))[0, 0] == pytest.approx(chance)


@pytest.mark.parametrize(
    "rules", [Rules(num_players=2), Rules(teams=True), Rules(num_players=3), Rules(num_players=5)], ids=str
)
def test_chances_are_the_shares_of_matches_that_are_won(rules):
    learner, generator = new_equity_learner(rules), np.random.default_rng(1)
    tables = new_tables(rules, 3, 1500)
    lineups = np.zeros((len(tables), rules.num_players), np.int64)
    bot, num_sides = TricksterAgent(courage=1.0), rules.num_sides
    foreseen, open_rows, wins = [], [[] for _ in tables], {}
    for number in range(120):
        deal(tables)
        scores, dealers = tables["scores"][:, :num_sides].copy(), tables["dealer"].copy()
        if number >= 70:  # judged on hands that it has not learned from
            for index, chances in enumerate(learner.equity.estimate(scores, dealers)):
                open_rows[index].append(len(foreseen))
                foreseen.append(chances)
        play_hands(tables, [bot], lineups, number)
        kinds = np.zeros((len(tables), num_sides), np.int64)
        after = learner.equity.estimate_after(tables)
        assert after.sum(1) == pytest.approx(np.ones(len(tables)), abs=1e-5)
        if number < 70:
            deltas = tables["deltas"][:, :num_sides]
            hands = SettledHands(scores, dealers, kinds, tables["pitcher"], deltas, after, 0 * after)
            learner.learn(hands, generator)
        for index in np.flatnonzero(tables["phase"] == MATCH_OVER):
            wins.update(dict.fromkeys(open_rows[index], tables["winner"][index]))
            open_rows[index] = []
    rows = np.array(sorted(wins))
    chances = np.array(foreseen)[rows]
    is_won = np.array([wins[row] for row in rows])[:, None] == np.arange(num_sides)
    for low in np.arange(0, 1, 0.2):
        chosen = (chances >= low) & (chances < low + 0.2)
        if chosen.sum() > 2000:
            assert is_won[chosen].mean() == pytest.approx(chances[chosen].mean(), abs=0.04)
    assert chances.std() > 0.1  # it tells scores apart


@pytest.mark.parametrize("num_players", [3, 4, 7])
def test_scores_that_were_never_met_are_worth_less_the_lower_they_are(num_players):
    rules = Rules(num_players=num_players)
    learner = new_equity_learner(rules)
    deltas = [[1] + [0] * (num_players - 1)] * 4
    for _ in range(30):  # only these scores are ever met
        hands = settle(
            [[0] * num_players, [2] * num_players, [4] + [0] * (num_players - 1), [-3] + [5] * (num_players - 1)],
            [0, 1, 2, 0],
            [0] * 4,
            deltas,
            learner.equity,
            rules,
        )
        learner.learn(hands, np.random.default_rng(0))
    scores = np.array([[own] + [3] * (num_players - 1) for own in range(-14, -45, -5)])
    chances = learner.equity.estimate(scores, np.ones(len(scores), np.int64))[:, 0]
    assert (np.diff(chances) < 0).all()
    assert chances[-1] < 0.01


def test_usual_gains_are_told_apart_by_the_own_need_and_the_least_of_the_others():
    sizes = GainSizes(Rules(num_players=3))
    assert (sizes.find(np.zeros((1, 3), np.int16)) == 1).all()  # of nothing gained so far
    level, behind = np.tile([0, 0, 0], (1000, 1)), np.tile([6, -20, 2], (1000, 1))
    sign = np.where(np.arange(1000) % 2, 1, -1)[:, None]
    sizes.learn(level, (0.1 * sign * [1, 1, 1]).astype(np.float32))
    sizes.learn(behind, (0.1 * sign * [2, 0.01, 1]).astype(np.float32))
    assert sizes.find(level[:1])[0] == pytest.approx([0.1, 0.1, 0.1], rel=1e-2)
    # one hand of the mean size among 1,000
    assert sizes.find(behind[:1])[0] == pytest.approx([0.2, 0.0038, 0.1], rel=2e-2)
    # a tie: each has the other beside it
    sizes.learn(np.tile([3, 3, 0], (1000, 1)), np.full((1000, 3), 0.3, np.float32))
    assert sizes.find(np.array([[0, 3, 3]]))[0] == pytest.approx([0.3, 0.3, 0.3], rel=2e-2)


@pytest.mark.parametrize("rules", [Rules(teams=True), Rules(num_players=3)], ids=str)
def test_files_hold_what_is_known_of_equals(rules, tmp_path):
    equity = new_equity(rules, num_kinds=3)
    with torch.no_grad():
        for tensor in equity.state_dict().values():
            tensor.uniform_(0.1, 0.9, generator=torch.Generator().manual_seed(1))
    write_equity(tmp_path / "equity.safetensors", equity)
    again = read_equity(tmp_path / "equity.safetensors", rules)
    scores, dealers = np.array([[3, 6, 1], [0, 0, 0], [-4, 9, 2]])[:, : rules.num_sides], np.array([0, 1, 2])
    assert again.num_kinds == 1
    assert (again.estimate(scores, dealers) == equity.estimate(scores, dealers)).all()
    kinds = np.full_like(scores, 2)
    assert (equity.estimate(scores, dealers, kinds) != equity.estimate(scores, dealers)).any()


def test_files_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "equity.safetensors"
    with pytest.raises(FileNotFoundError, match="no equity file"):
        read_equity(path)
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="no equity file"):
        read_equity(path)
    write_equity(path, new_equity(Rules(num_players=3)))
    with safe_open(str(path), "pt") as file:
        head = json.loads(file.metadata()["pitch"])
    for change, reason in (
        ({"format": "pitch-policy"}, "its head does not say 'pitch-equity'"),
        ({"format_version": 1}, "has equity format 1; this version reads 2"),
        ({"rules": {}}, "cannot be used"),
    ):
        save_file(load_file(path), tmp_path / "other.safetensors", {"pitch": json.dumps({**head, **change})})
        with pytest.raises(ValueError, match=reason):
            read_equity(tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="num_players 3 against 4"):
        read_equity(path, Rules())


def test_a_match_run_writes_tables_for_two_sides():
    learner = make_learner(rules=Rules(num_players=2), objective="match")
    learner.update()
    assert isinstance(learner.equity.equity, EquityTable)
    assert learner.equity.counts.sum() == learner.config.hands
    learner.close()


def test_it_can_be_printed(tmp_path, capsys):
    main(["--players", "4", "--dealer", "2"])
    shown = capsys.readouterr().out
    assert "seat 2 deals" in shown
    assert shown.count("│") > 8 * 8
    for arguments, reason in (
        (["--dealer", "4"], "--dealer takes a seat from 0 to 3, not 4"),
        ([str(tmp_path)], "there is no equity file"),
    ):
        with pytest.raises(SystemExit):
            main(arguments)
        assert reason in capsys.readouterr().err
