"""The engine where the referee does not reach: deals, reasons for refusals, the worked hands, extremes."""

import numpy as np
import pytest
from helpers import VARIANTS, WORKED, actions_of, deal_worked, name_rules, parse, play_states

from pitch_env import Rules
from pitch_env.cards import CARD_ACTION, cards_of, mask_of, parse_action
from pitch_env.engine import apply, explain_illegal, legal_mask, new_tables, next_hand, set_hand, try_action
from pitch_env.table import (
    AUCTION,
    HAND_OVER,
    MATCH_OVER,
    MAX_SCORE,
    NOBODY,
    PLAY,
    TABLE,
    deck_mask,
    read_rules,
    seed_streams,
)


def do(table, text):
    for word in text.split():
        apply(table, parse_action(word))
    return table


def play_worked(name, bids="2 pass pass pass", rules=None, **scores):
    table = do(deal_worked(name, rules, **scores), bids)
    for trick in WORKED[name]["tricks"]:
        assert table["seat"][0] == trick["leader"]
        do(table, " ".join(trick["cards"]))
    return table


def read(table, key, length=4):
    return table[key][0, :length].tolist()


def test_worked_hands():
    for name, hand in WORKED.items():
        table = play_worked(name)
        won = [read(table, "points").count(seat) for seat in range(4)]
        assert won == hand["points_per_seat"], name
        pitching = hand["pitcher"]
        expected = [-2 if seat == pitching and won[seat] < 2 else won[seat] for seat in range(4)]
        assert read(table, "deltas") == read(table, "scores") == expected, name
        assert table["phase"][0] == HAND_OVER


def test_lone_trump_and_lone_jack_r17():
    assert read(play_worked("lone trump"), "points") == [0, 0, NOBODY, 3]
    assert read(play_worked("lone jack", "3 pass pass pass"), "points") == [0, 0, 0, 1]


def test_game_tie_awards_nothing_r16():
    assert read(play_worked("game tie"), "points") == [0, 0, NOBODY, NOBODY]
    table = play_worked("game tie", rules=Rules(teams=True))
    assert read(table, "points") == [0, 0, NOBODY, 0]
    assert read(table, "scores", 2) == [3, 0]


def test_low_goes_to_taker_or_holder_r14():
    assert read(play_worked("capture against hold"), "points") == [2, 3, 3, 2]
    assert read(play_worked("capture against hold", rules=Rules(low_point="holder")), "points") == [2, 0, 3, 2]


def test_set_pitcher_with_the_target_r19():
    literal = play_worked("capture against hold", side_0=9)
    assert (literal["scores"][0, 0], literal["winner"][0], literal["phase"][0]) == (7, 0, MATCH_OVER)
    strict = play_worked("capture against hold", rules=Rules(win_needs_made_bid=True), side_0=9)
    assert (strict["scores"][0, 0], strict["winner"][0], strict["phase"][0]) == (7, NOBODY, HAND_OVER)


def test_a_loser_may_have_more_r19():
    table = play_worked("game tie", side_0=5, side_1=20)
    assert read(table, "scores") == [7, 20, 0, 0]
    assert table["winner"][0] == 0


@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_deal_r2(rules):
    tables = new_tables(rules, 1, 300)
    for dealt in tables["dealt"].tolist():
        hands = [cards_of(cards) for cards in dealt[: rules.num_players]]
        assert {len(hand) for hand in hands} == {rules.hand_size}
        everything = mask_of(card for hand in hands for card in hand)
        assert everything.bit_count() == rules.num_players * rules.hand_size
        assert everything & ~deck_mask(rules) == 0
        assert not any(dealt[rules.num_players :])


def test_every_card_and_dealer_is_as_likely():
    tables = new_tables(Rules(), 2, 20_000)
    assert np.bincount(tables["dealer"], minlength=4) == pytest.approx(5000, abs=300)
    for seat in range(4):
        dealt = tables["dealt"][:, seat]
        counts = [(dealt >> np.uint64(card) & np.uint64(1)).sum() for card in range(52)]
        assert np.array(counts) == pytest.approx(20_000 * 6 / 52, abs=220)


def test_the_deal_begins_on_the_dealers_left_r2():
    """With the dealer moved one seat on, the same stream deals the same cards one seat on."""
    tables = new_tables(Rules(num_players=5, hand_size=4), 7, 2)
    tables["rng"] = 99
    tables["dealer"] = 1, 2
    tables["phase"] = HAND_OVER
    for index in range(2):
        next_hand(tables[index : index + 1])
    assert read(tables[:1], "dealt", 5) == np.roll(read(tables[1:], "dealt", 5), -1).tolist()


def test_shuffles_differ_from_hand_to_hand_and_go_on_from_match_to_match():
    deals = {tuple(read(table, "dealt")) for table in play_states(Rules(target=1000), num_hands=50)}
    assert len(deals) == 51


def test_streams_do_not_depend_on_how_many_there_are():
    assert (seed_streams(5, 3) == seed_streams(5, 40)[:3]).all()
    assert len(set(seed_streams(0, 50).tolist()) | set(seed_streams(1, 50).tolist())) == 100
    assert (new_tables(Rules(), 5, 3) == new_tables(Rules(), 5, 40)[:3]).all()
    assert (new_tables(Rules(), np.array([8, 9], np.uint64), 2)["rng"] != 0).all()


@pytest.mark.parametrize("seed", [-1, 1.0, "1", True, [1]], ids=str)
def test_seeds_that_are_none(seed):
    with pytest.raises(ValueError, match="seed takes a whole number from 0 up, or None"):
        seed_streams(seed, 1)
    assert seed_streams(np.int64(4), 1) == seed_streams(4, 1)


@pytest.mark.parametrize("rules", VARIANTS, ids=name_rules)
def test_a_table_explains_itself(rules):
    assert read_rules(new_tables(rules, 1)[0]) == rules


def test_bytes_save_a_table():
    table = list(play_states(Rules(), num_hands=1))[-1]
    again = np.frombuffer(bytearray(table.tobytes()), TABLE)
    for state in (table, again):
        apply(state, actions_of(legal_mask(state))[0])
    assert (table == again).all()


@pytest.mark.parametrize(
    ("before", "action", "words"),
    [
        ("1", "1", "bid must be higher than every bid before it (R5)"),
        ("pass pass pass", "pass", "the dealer must bid at least 2 (R6)"),
        ("pass pass pass", "1", "the dealer must bid at least 2 (R6)"),
        ("3 pass pass", "2", "the dealer may steal the highest bid or go over it, not bid less (R7)"),
        ("", "6C", "without the switch pitch_by_card (R9)"),
        ("2 pass pass pass", "pass", "the auction is over (R4)"),
        ("4", "4", "the auction is over (R4)"),
        ("4", "AC", "the seat does not hold that card"),
        ("4 7D", "7H", "must follow or trump (R11)"),
    ],
)
def test_refusals_name_the_rule_and_what_is_legal(before, action, words):
    table = do(deal_worked("lone trump"), before)
    saved = table.copy()
    with pytest.raises(ValueError, match="legal for seat") as caught:
        apply(table, parse_action(action))
    text = str(caught.value)
    assert words in text
    legal = ", ".join(text.split("legal: ")[1].split(", "))
    assert [int(part.split()[0]) for part in legal.split(", ")] == actions_of(legal_mask(table))
    assert (table == saved).all()


def test_a_card_in_the_auction_must_be_held_r9():
    table = deal_worked("lone trump", Rules(pitch_by_card=True))
    assert set(actions_of(legal_mask(table))) == {0, 1, 2, 3, 4} | {
        CARD_ACTION + card for card in parse("6C 3C 7D 5D 4D 5S")
    }
    with pytest.raises(ValueError, match=r"the seat does not hold that card \(R9\)"):
        apply(table, parse_action("AS"))
    do(table, "6C")
    assert (table["bid"][0], table["trump"][0], table["seat"][0], table["phase"][0]) == (4, 0, 1, PLAY)


@pytest.mark.parametrize("action", [-1, 57, 64, 2**40, -(2**40), 2**70, 1.0, "2C", None, np.float32(3), [1]], ids=str)
def test_what_is_no_action(action):
    table = new_tables(Rules(), 3)
    before = table.copy()
    assert try_action(table, action) is None
    with pytest.raises(ValueError, match="is no action: actions are 0 to 56; legal for seat"):
        apply(table, action)
    assert (table == before).all()


@pytest.mark.parametrize("kind", [int, np.int8, np.uint8, np.int32, np.int64, np.uint64, np.array])
def test_numbers_of_any_kind_are_actions(kind):
    table = new_tables(Rules(), 3)
    apply(table, kind(4))
    assert table["bid"][0] == 4
    card = actions_of(legal_mask(table))[0]
    apply(table, kind(card))
    assert table["plays"][0, 0] == card - CARD_ACTION


def test_nothing_is_legal_between_hands():
    table = play_worked("game tie")
    assert legal_mask(table) == 0
    assert table["seat"][0] == NOBODY
    for action in range(57):
        assert try_action(table, action) is None
    with pytest.raises(ValueError, match="no one is to act: the table is in phase 'hand over'"):
        apply(table, 0)
    next_hand(table)
    assert (table["phase"][0], table["dealer"][0], table["seat"][0]) == (AUCTION, 0, 1)
    assert read(table, "points") == [NOBODY] * 4


def test_next_hand_only_when_a_hand_is_over():
    with pytest.raises(ValueError, match="not in phase 'auction'"):
        next_hand(new_tables(Rules(), 1))
    with pytest.raises(ValueError, match="not in phase 'match over'"):
        next_hand(play_worked("game tie", rules=Rules(max_hands=1)))


def test_set_hand_starts_the_hand_again():
    table = play_worked("game tie")
    set_hand(table, read(table, "dealt"))
    assert (table["phase"][0], table["dealer"][0], table["seat"][0]) == (AUCTION, 3, 0)
    assert explain_illegal(table, 70).startswith("70 is no action")


def test_scores_of_the_longest_match_fit():
    most = Rules.__dataclass_fields__["max_hands"].metadata["high"]
    assert MAX_SCORE + 4 * most <= np.iinfo(TABLE["scores"].base).max
    table = new_tables(Rules(num_players=2, hand_size=1, max_hands=most), 1)
    table["num_hands"] = most - 1
    table["scores"][0, :2] = -MAX_SCORE - 4 * (most - 1), MAX_SCORE + 4 * (most - 1)
    set_hand(table, [mask_of(parse("2C")), mask_of(parse("JC"))], dealer=1)
    do(table, "4 2C JC")
    assert read(table, "scores", 2) == [-MAX_SCORE - 4 * most, MAX_SCORE + 4 * most]
    assert (table["phase"][0], table["winner"][0]) == (MATCH_OVER, NOBODY)
