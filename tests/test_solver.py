"""The exact solver: equal to plain recursion over the engine, consistent with itself, and clear about misuse."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import actions_of, choose_uniformly, name_rules, play_some

from agents.search.solver import OBJECTIVES, choose_card, solve, solve_many, solve_max_n, solve_max_n_many
from pitch_env import Rules
from pitch_env.cards import CARD_ACTION, cards_of, mask_of, parse_action, parse_card
from pitch_env.engine import apply, legal_mask, new_tables, set_hand
from pitch_env.table import PLAY
from pitch_env.view import view_table

ROOT = Path(__file__).parents[1]
SMALL = [
    Rules(num_players=2, hand_size=3),
    Rules(num_players=2, hand_size=3, num_suits=2, num_ranks=5),
    Rules(num_players=2, hand_size=1, num_suits=1, num_ranks=4),
    Rules(num_players=3, hand_size=2, num_ranks=6, low_point="holder"),
    Rules(num_players=3, hand_size=3, num_suits=3, num_ranks=5),
    Rules(num_players=4, hand_size=2, num_suits=2, num_ranks=7),
    Rules(num_players=4, hand_size=2, num_suits=3, num_ranks=6, low_point="holder"),
    Rules(teams=True, hand_size=2, num_suits=3, num_ranks=5),
    Rules(teams=True, hand_size=2, num_suits=2, num_ranks=13, low_point="holder"),
    Rules(num_players=5, hand_size=2, num_ranks=5),
]
CASES = [(rules, rules.hand_size) for rules in SMALL] + [  # and the last tricks of longer hands, cards captured before
    (Rules(), 2),
    (Rules(teams=True), 2),
    (Rules(teams=True, num_ranks=6), 2),
    (Rules(num_players=3, num_ranks=7, low_point="holder"), 3),
    (Rules(num_players=2, num_suits=2, num_ranks=8), 4),
    (Rules(num_players=6), 2),
    (Rules(num_players=7), 2),
]
NUM_POSITIONS = 40  # of each
each_case = pytest.mark.parametrize(
    ("rules", "most_left"), CASES, ids=[f"{left} left, {name_rules(rules)}" for rules, left in CASES]
)


def find_positions(rules, num_positions, most_left):
    """Tables in play after random actions, the seats holding at most some cards."""
    found = []
    for seed in itertools.count():
        table = play_some(rules, seed % (rules.num_players * (rules.hand_size + 1)), seed, choose_uniformly)
        left = rules.hand_size * rules.num_players - int(table["num_plays"][0])
        if table["phase"][0] == PLAY and left <= most_left * rules.num_players:
            found.append(table)
            if len(found) == num_positions:
                return found


def try_actions(table):
    """The tables after each legal action."""
    for action in actions_of(legal_mask(table)):
        after = table.copy()
        apply(after, action)
        yield action - CARD_ACTION, after


def find_scores(table):
    """Score changes of the sides when the hand is over, the pitcher's side first."""
    num_sides, pitcher = int(table["num_sides"][0]), int(table["pitcher"][0])
    return [int(table["deltas"][0, (pitcher + turn) % num_sides]) for turn in range(num_sides)]


def pay(table, objective):
    own, *others = find_scores(table)
    if objective == "margin":
        return own - sum(others) / len(others)
    if objective == "score":
        return own
    return int((table["points"][0] == table["pitcher"][0] % table["num_sides"][0]).sum())


def recurse(table, objective):
    """The two-sided value of a table, by plain recursion."""
    if table["phase"][0] != PLAY:
        return pay(table, objective)
    num_sides = table["num_sides"][0]
    pick = max if table["seat"][0] % num_sides == table["pitcher"][0] % num_sides else min
    return pick(recurse(after, objective) for _, after in try_actions(table))


def recurse_max_n(table):
    """Score changes from the pitcher's side clockwise when each side plays for itself, by plain recursion."""
    if table["phase"][0] != PLAY:
        scores = find_scores(table)
        return [len(scores) * score - sum(scores) for score in scores]
    own = int(table["seat"][0] - table["pitcher"][0]) % int(table["num_sides"][0])
    return min((recurse_max_n(after) for _, after in try_actions(table)), key=lambda pays: (-pays[own], pays))


@each_case
def test_two_sided_values_are_those_of_plain_recursion(rules, most_left):
    tables = find_positions(rules, NUM_POSITIONS, most_left)
    for number, table in enumerate(tables):
        objective = OBJECTIVES[number % 4 % 3]
        values = solve_many(table, objective)[0]
        expected = {card: recurse(after, objective) for card, after in try_actions(table)}
        assert {card: pytest.approx(values[card]) for card in np.flatnonzero(~np.isnan(values))} == expected


@each_case
def test_max_n_values_are_those_of_plain_recursion(rules, most_left):
    for table in find_positions(rules, NUM_POSITIONS, most_left):
        num_sides, pitcher = rules.num_sides, int(table["pitcher"][0])
        values = solve_max_n_many(table)[0]
        for card, after in try_actions(table):
            expected = recurse_max_n(after)
            for turn in range(num_sides):
                assert values[card, (pitcher + turn) % num_sides] == pytest.approx(expected[turn] / (num_sides - 1))
            values[card] = np.nan
        assert np.isnan(values).all()


FULL = [
    Rules(num_players=2),
    Rules(num_players=3),
    Rules(),
    Rules(low_point="holder"),
    Rules(teams=True),
    Rules(num_players=5, hand_size=4),
    Rules(num_players=7, hand_size=3, num_suits=2, num_ranks=13),
]


def new_contracts(rules, num_tables, seed):
    """Tables before the first lead: in turn contracts of 1 to 4, at different seats."""
    tables = new_tables(rules, seed, num_tables)
    for i in range(num_tables):
        table = tables[i : i + 1]
        while table["phase"][0] != PLAY:
            apply(table, 0 if table["bid"][0] else i % 4 + 1)
    return tables


def find_margins(table):
    """Score change of each side less the mean of the others'."""
    num_sides = int(table["num_sides"][0])
    deltas = table["deltas"][0, :num_sides].astype(float)
    return (num_sides * deltas - deltas.sum()) / (num_sides - 1)


@pytest.mark.parametrize("rules", FULL, ids=name_rules)
def test_best_play_from_the_first_lead_ends_with_the_value_it_began_with(rules):
    for table in np.split(new_contracts(rules, 4, seed=2), 4):
        value, pitching = solve(table).value, int(table["pitcher"][0]) % rules.num_sides
        while table["phase"][0] == PLAY:
            solution = solve(table)
            assert solution.value == pytest.approx(value)
            apply(table, CARD_ACTION + solution.card)
        assert find_margins(table)[pitching] == pytest.approx(value)


@pytest.mark.parametrize("rules", FULL, ids=name_rules)
def test_max_n_play_ends_with_the_values_it_began_with(rules):
    for table in find_positions(rules, 6, 3):
        values = solve_max_n(table).value
        while table["phase"][0] == PLAY:
            solution = solve_max_n(table)
            assert solution.value == pytest.approx(values)
            assert solution.values[solution.card] == solution.value
            apply(table, CARD_ACTION + solution.card)
        assert find_margins(table).tolist() == pytest.approx(values)


@pytest.mark.parametrize("rules", [Rules(teams=True), Rules(num_players=2)], ids=name_rules)
def test_of_two_sides_both_searches_tell_the_same(rules):
    tables = np.concatenate(find_positions(rules, 40, 4))
    values, all_values = solve_many(tables), solve_max_n_many(tables)
    for i, table in enumerate(tables):
        pitching = table["pitcher"] % 2
        np.testing.assert_allclose(all_values[i, :, pitching], values[i])
        np.testing.assert_allclose(all_values[i, :, 1 - pitching], -values[i])


@pytest.mark.parametrize("rules", [Rules(), Rules(teams=True), Rules(num_players=3)], ids=name_rules)
def test_a_card_is_worth_what_the_position_after_it_is(rules):
    for table in np.split(new_contracts(rules, 3, seed=8), 3):
        for objective in OBJECTIVES:
            values = solve_many(table, objective)[0]
            for card, after in try_actions(table):
                assert solve(after, objective).value == pytest.approx(values[card])


def test_values_do_not_depend_on_the_names_of_the_suits():
    order = [2, 0, 3, 1]
    for table in np.split(new_contracts(Rules(), 4, seed=5), 4):
        other = table.copy()
        for seat in range(4):
            cards = cards_of(table["dealt"][0, seat])
            other["dealt"][0, seat] = mask_of(order[card // 13] * 13 + card % 13 for card in cards)
        values = solve_many(table).reshape(4, 13)
        np.testing.assert_array_equal(solve_many(other).reshape(4, 13)[order], values)


def test_a_batch_may_mix_rules_and_gives_what_each_table_gives_alone():
    tables = np.concatenate([table for rules, left in CASES for table in find_positions(rules, 2, left)])
    for solver in (solve_many, solve_max_n_many):
        values = solver(tables)
        for i in reversed(range(len(tables))):
            np.testing.assert_array_equal(solver(tables[i : i + 1])[0], values[i])
        np.testing.assert_array_equal(solver(tables), values)


# Hands in text: seat 0 pitches and leads.


def set_table(hands, said, **changes):
    rules = Rules(num_players=len(hands), hand_size=len(hands[0].split()), **changes)
    table = new_tables(rules, 1)
    set_hand(table, [mask_of(parse_card(word) for word in hand.split()) for hand in hands], dealer=len(hands) - 1)
    for word in said.split():
        apply(table, parse_action(word))
    return table


def test_the_lone_trump_that_is_the_jack_scores_three():
    table = set_table(["JS 2C", "3C 4C"], "3 pass")
    assert solve(table, "score").values == {parse_card("JS"): 4, parse_card("2C"): -3}  # Game with its one trick point


def test_the_holder_of_low_has_it_whoever_takes_it():
    hands = ["AS KS", "2S 3C"]
    assert solve(set_table(hands, "2 pass"), "points").value == 3
    assert solve(set_table(hands, "2 pass", low_point="holder"), "points").value == 2


def test_of_equal_cards_the_cheapest_is_chosen():
    values = np.full(52, np.nan)
    ace, jack, low, plain = (parse_card(name) for name in ("AS", "JS", "2S", "TH"))
    values[[ace, jack, low, plain]] = 1.0, 1.0, 1.0, 0.5
    assert choose_card(values, trump=3) == low
    values[plain] = 1.0
    assert choose_card(values, trump=3) == plain
    assert choose_card(values, trump=-1) == low


def test_the_best_lead_sets_the_trump_that_pays():
    table = set_table(["AS TH", "KS QS"], "2 pass")  # the ace draws the king; the queen then takes Low and the ten
    assert solve(table, "score").values == {parse_card("AS"): -2, parse_card("TH"): 3}
    assert solve(table).card == parse_card("TH")


def test_misuse_is_told():
    table = new_tables(Rules(), 1)
    with pytest.raises(ValueError, match="in the phase 'play', not 'auction'"):
        solve_many(table)
    table = new_contracts(Rules(), 1, 1)
    with pytest.raises(ValueError, match="a view does not hold all cards"):
        solve_max_n_many(view_table(table, 0))
    with pytest.raises(ValueError, match="objective takes one of margin"):
        solve_many(table, "fun")
    with pytest.raises(ValueError, match="array of TABLE"):
        solve_many(np.zeros(1))


def test_a_kept_kernel_serves_the_next_process():
    solve(new_contracts(Rules(num_players=2), 1, 1))
    code = (
        "from agents.search.solver import solve_many, solve_max_n_many; from pitch_env import Rules;"
        "from pitch_env.engine import new_tables; t = new_tables(Rules(num_players=2), 1, 9); t['phase'] = 1;"
        "t['pitcher'] = t['seat'] = 0; t['bid'] = 2; print(solve_many(t).shape, solve_max_n_many(t[:2]).shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == ["(9,", "52)", "(2,", "52,", "7)"]
