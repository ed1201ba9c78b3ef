"""Rule-based bots: always legal, led by their view alone, and each with the habits it is known for."""

import itertools

import numpy as np
import pytest

from agents.random_bots import PassiveRandomAgent, RandomAgent
from agents.rule_bots import AlphonsoAgent, BabyAgent, TricksterAgent
from pitch_env import Rules
from pitch_env.cards import CARD_ACTION, action_name, cards_of, mask_of, parse_action, parse_card
from pitch_env.engine import apply, legal_mask, new_tables, next_hand, set_hand
from pitch_env.table import HAND_OVER, MATCH_OVER, deck_mask
from pitch_env.view import view_table, view_tables

BOTS = {
    "trickster": TricksterAgent(),
    "brave": TricksterAgent(courage=1.0, steals=False),
    "alphonso": AlphonsoAgent(),
    "baby": BabyAgent(),
}
VARIANTS = [
    *(Rules(num_players=players) for players in range(2, 8)),
    *(Rules(num_players=players, low_point="holder") for players in (2, 7)),
    Rules(teams=True),
    Rules(teams=True, low_point="holder", num_ranks=8),
    Rules(win_needs_made_bid=True, target=3),
    Rules(pitch_by_card=True),
    Rules(num_players=2, num_suits=1),
    Rules(num_players=3, num_suits=2, num_ranks=9),
    Rules(num_players=3, num_suits=2, num_ranks=4, hand_size=2),
    Rules(num_players=5, num_ranks=3, hand_size=2),
    Rules(num_players=4, num_ranks=1, hand_size=1),
    Rules(num_players=2, num_suits=1, num_ranks=2, hand_size=1, low_point="holder"),
]


def look(tables):
    return view_tables(tables, tables["seat"].astype(np.int64))


def act(bot, tables, seed=0):
    return bot.act(look(tables), np.full(len(tables), seed, np.uint64))


def walk(rules, bot, num_tables, seed):
    """Tables on their way, half of the steps the bot's and half random ones, so that it meets odd positions as well."""
    rng = np.random.default_rng(seed)
    chance = RandomAgent()
    tables = new_tables(rules, seed, num_tables)
    for _ in range(3 * rules.num_players * (rules.hand_size + 1)):
        for i in np.flatnonzero(tables["phase"] == HAND_OVER):
            next_hand(tables[i : i + 1])
        tables = tables[tables["phase"] != MATCH_OVER]
        if not len(tables):
            return
        actions = act(bot, tables)
        yield tables, actions
        random_actions = chance.act(look(tables), rng.integers(0, 2**64, len(tables), dtype=np.uint64))
        for i in range(len(tables)):
            apply(tables[i : i + 1], (actions if rng.random() < 0.5 else random_actions)[i])


@pytest.mark.parametrize("bot", BOTS.values(), ids=BOTS)
@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_every_action_is_legal(bot, rules):
    for tables, actions in walk(rules, bot, 100, seed=1):
        for i, action in enumerate(actions):
            assert legal_mask(tables[i : i + 1]) >> int(action) & 1, action_name(int(action))


def deal_again(table, rules, rng):
    """The table with the cards that the seat to act has not seen dealt anew."""
    seat, played = int(table["seat"][0]), int(table["played"][0])
    own = int(table["dealt"][0, seat])
    unseen = iter(rng.permutation(cards_of(deck_mask(rules) & ~own & ~played)).tolist())
    other = table.copy()
    for player in set(range(rules.num_players)) - {seat}:
        shown = int(table["dealt"][0, player]) & played
        hidden = mask_of(itertools.islice(unseen, rules.hand_size - shown.bit_count()))
        other["dealt"][0, player] = shown | hidden
    return other


@pytest.mark.parametrize("bot", BOTS.values(), ids=BOTS)
@pytest.mark.parametrize("rules", [Rules(), Rules(num_players=7), Rules(teams=True, low_point="holder")], ids=str)
def test_what_others_hold_changes_nothing(bot, rules):
    rng = np.random.default_rng(6)
    for tables, actions in walk(rules, bot, 4, seed=2):
        others = np.concatenate([deal_again(tables[i : i + 1], rules, rng) for i in range(len(tables))])
        assert (act(bot, others, seed=99) == actions).all()


@pytest.mark.parametrize("bot", BOTS.values(), ids=BOTS)
def test_a_batch_may_mix_rules_and_gives_what_each_view_gives_alone(bot):
    tables = np.concatenate([new_tables(rules, 8, 5) for rules in VARIANTS])
    actions = act(bot, tables)
    assert actions.dtype == np.int64
    assert actions.tolist() == [act(bot, tables[i : i + 1])[0] for i in range(len(tables))]


# Positions in text: the hands from seat 0 on, the dealer at the last seat, then what was said and played.


def cards(text):
    return mask_of(parse_card(word) for word in text.split())


def set_table(hands, said="", **changes):
    rules = Rules(num_players=len(hands), hand_size=len(hands[0].split()), **changes)
    table = new_tables(rules, 1)
    set_hand(table, [cards(hand) for hand in hands], dealer=len(hands) - 1)
    for word in said.split():
        apply(table, parse_action(word))
    return table


def decide(bot, hands, said="", **changes):
    table = set_table(hands, said, **changes)
    return action_name(bot(view_table(table, int(table["seat"][0])))).removeprefix("bid ").removeprefix("play ")


def decide_bid(bot, hand, said="", **changes):
    """What the bot says with a hand after some words of the auction, the fourth of four seats being the dealer."""
    deck = iter(cards_of(deck_mask(Rules()) & ~cards(hand)))
    hands = [" ".join(action_name(CARD_ACTION + next(deck))[5:] for _ in range(6)) for _ in range(4)]
    hands[len(said.split())] = hand
    return decide(bot, hands, said, **changes)


@pytest.mark.parametrize("bot", BOTS.values(), ids=BOTS)
@pytest.mark.parametrize("hand", ["7C 5C 4D 3D 8H 9S", "AC KC QC JC TC 2C"])
def test_a_stuck_dealer_bids_two(bot, hand):
    assert decide_bid(bot, hand, "pass pass pass") == "2"


# Trickster


@pytest.mark.parametrize(
    ("hand", "bid"),
    [
        ("AC KC QC JC 2C 7H", "4"),
        ("AC KC JC 5C 8D 7H", "3"),
        ("AC KC 3C 5D 7H 8S", "2"),
        ("KC QC 5C 8D 7H 6S", "pass"),
        ("6C 5C 4D 3D 2H 2S", "pass"),
    ],
)
def test_trickster_bids_the_whole_points_of_its_hand(hand, bid):
    assert decide_bid(TricksterAgent(), hand) == bid


def test_trickster_jumps_over_a_bid_or_passes():
    assert decide_bid(TricksterAgent(), "AC KC JC 5C 8D 7H", "1 2") == "3"
    assert decide_bid(TricksterAgent(), "AC KC 3C 5D 7H 8S", "1 2") == "pass"


def test_courage_lifts_the_value_before_it_is_rounded_down():
    hand = "KC QC 5C 8D 7H 6S"  # worth 1.57
    assert decide_bid(TricksterAgent(courage=0.4), hand) == "pass"
    assert decide_bid(TricksterAgent(courage=0.5), hand) == "2"
    assert decide_bid(TricksterAgent(courage=100), hand) == "4"
    with pytest.raises(ValueError, match="courage takes a number"):
        TricksterAgent(courage=float("nan"))


def test_trickster_counts_the_low_cards_where_their_holder_scores_low():
    for hand in ("KC 2C 5C 8D 7H 6S", "KC 3C 5C 8D 7H 6S"):
        assert decide_bid(TricksterAgent(), hand) == "pass"
        assert decide_bid(TricksterAgent(), hand, low_point="holder") == "2"


@pytest.mark.parametrize(
    ("said", "with_steals", "without"),
    [("pass 1 pass", "1", "2"), ("pass 2 pass", "2", "3"), ("pass 3 pass", "3", "pass"), ("pass 1 2", "2", "3")],
)
def test_the_dealer_steals_or_bids_one_more(said, with_steals, without):
    hand = "AC KC JC 5C 8D 7H"  # worth 3
    assert decide_bid(TricksterAgent(), hand, said) == with_steals
    assert decide_bid(TricksterAgent(steals=False), hand, said) == without


def test_the_dealer_does_not_steal_more_than_the_hand_is_worth():
    assert decide_bid(TricksterAgent(), "AC KC 3C 5D 7H 8S", "3 pass pass") == "pass"


def test_a_dealer_leaves_the_bid_of_the_partner_alone():
    hand = "AC KC JC 5C 8D 7H"
    assert decide_bid(TricksterAgent(), hand, "pass 2 pass", teams=True) == "pass"
    assert decide_bid(TricksterAgent(), hand, "2 pass pass", teams=True) == "2"


@pytest.mark.parametrize(
    ("hand", "lead"),
    [
        ("AC 9C 5C 8D 7H", "AC"),  # nothing beats it
        ("KC JC 9C 8D AH", "9C"),  # the cheapest of the suit it bid on, not the ace beside it
        ("KC QC 9C 3C AH", "9C"),  # the 3 may be Low, so the next trump worth as much goes
        ("KC QC 6C 5C AH", "6C"),  # so does the card next to it
        ("KC QC 9C 5C AH", "5C"),  # but a 5 is seldom Low
    ],
)
def test_trickster_opens(hand, lead):
    others = ["TD 9D 7D 6D 5D", "TH 9H 8H 6H 5H", "TS 9S 8S 7S 6S"]
    assert decide(TricksterAgent(), [hand, *others], "2 pass pass pass") == lead


def test_where_the_holder_scores_low_it_is_not_protected():
    hands = ["KC QC 9C 3C AH", "TD 9D 7D 6D 5D", "TH 9H 8H 6H 5H", "TS 9S 8S 7S 6S"]
    assert decide(TricksterAgent(), hands, "2 pass pass pass", low_point="holder") == "3C"


@pytest.mark.parametrize(
    ("hand", "lead"),
    [
        ("AC KC QC AH", "KC"),  # the pitcher draws trumps
        ("AC AD 3D AH", "AH"),  # then cashes the shortest suit
        ("AC KD 5D 9H", "5D"),  # then leads the cheapest
        ("AC 5C TD KD", "KD"),  # plain before trump, though it is dear
    ],
)
def test_trickster_leads_on(hand, lead):
    hands = [hand, "7C 9D 7D 6D", "6C 8D 6H 5H", "8C 9S 7S 6S"]
    assert decide(TricksterAgent(), hands, "2 pass pass pass AC 7C 6C 8C") == lead


@pytest.mark.parametrize(
    ("led", "third", "answer"),
    [
        ("AD", "2C", "5H"),  # a bare 2 may be over-ruffed
        ("AD", "JC", "5H"),
        ("AD", "6C", "6C"),  # four trick points are worth a small trump
        ("3D", "6C", "5H"),
    ],
)
def test_second_seat_ruffs_with_care(led, third, answer):
    hands = ["AC AD 3D", f"9C {third} 5H", "4C 6D 7D", "5C 8D 9D"]
    assert decide(TricksterAgent(), hands, f"2 pass pass pass AC 9C 4C 5C {led}") == answer


def test_third_seat_overruffs_with_its_highest_trump():
    hands = ["AC AD 3D 4D", "9C 6C 5H 6H", "4C 7C TC 9S", "5C 8D 9D TD"]
    assert decide(TricksterAgent(), hands, "2 pass pass pass AC 9C 4C 5C AD 6C") == "TC"


def test_early_seats_play_the_top_card_if_it_wins_and_the_cheapest_if_not():
    hands = ["AC QD 3D 4D", "9C KD 5D 6H", "4C 7D TD 9S", "5C 8D 9D AD"]
    assert decide(TricksterAgent(), hands, "2 pass pass pass AC 9C 4C 5C QD") == "KD"
    assert decide(TricksterAgent(), hands, "2 pass pass pass AC 9C 4C 5C QD KD") == "7D"


@pytest.mark.parametrize(
    ("hand", "trick", "answer"),
    [
        ("5C 2C 9S", "JD QD AD", "2C"),
        ("5C 2C 9S", "3H 4H 5H", "2C"),  # Low comes home even in an empty trick
        ("5C JC 9S", "3H 4H 5H", "JC"),
        ("5C 7C 9S", "3H 4H 5H", "9S"),
        ("5C 7C 9S", "JD QD AD", "7C"),
    ],
)
def test_last_seat_brings_points_home(hand, trick, answer):
    hands = ["AC JD 3H", "9C QD 4H", "4C AD 5H", hand]
    assert decide(TricksterAgent(), hands, f"2 pass pass pass AC 9C 4C 5C {trick}") == answer


def test_last_seat_wins_with_the_richest_card():
    hands = ["AC 5D 3H 4H", "9C 3D 5H 6H", "4C 4D 7H 8H", "5C 6D TD AD"]
    assert decide(TricksterAgent(), hands, "2 pass pass pass AC 9C 4C 5C 5D 3D 4D") == "TD"


def test_last_seat_feeds_a_partner_who_wins():
    hands = ["AC 3D 3H 4H", "9C AD 5H 6H", "4C 4D 7H 8H", "5C JC 6D TD"]
    said = "2 pass pass pass AC 9C 4C 5C 3D AD 4D"
    assert decide(TricksterAgent(), hands, said, teams=True) == "JC"
    assert decide(TricksterAgent(), [*hands[:3], "5C 7C 6D TD"], said, teams=True) == "TD"
    assert decide(TricksterAgent(), [*hands[:3], "5C 7C 6D 8D"], said, teams=True) == "6D"


# Alphonso


@pytest.mark.parametrize(
    ("hand", "bid", "lead"),
    [
        ("AC JC 5C 7D 8H 9S", "4", "AC"),
        ("KC JC TC 7D 8H 9S", "4", "KC"),
        ("QC 5C 4C 7D 8H 9S", "3", "QC"),
        ("KC QC 6D 7D 8H 9S", "3", "KC"),
        ("QC TC 6D 7D 8H 9S", "3", "QC"),
        ("AC 5C KD 8H 9S 6S", "3", "AC"),
        ("AC 5C 7D 8H 9S 6S", "2", "AC"),
        ("JC 5C 3C 7D 8H 9S", "3", "5C"),
        ("JC 8C 2D 3H 4S 5D", "3", "8C"),
        ("JC 6C 2D 3H 4S 5D", "2", "JC"),
        ("6C 5C 4C 2D 3H 7S", "2", "6C"),
        ("TC 9C 2D 3H 4S 5D", "2", "9C"),
        ("9C 7C 2D 3H 4S 5D", "pass", "9C"),
    ],
)
def test_alphonso_bids_and_opens(hand, bid, lead):
    assert decide_bid(AlphonsoAgent(), hand) == bid
    others = ["QD JD TD 9D 8D 3D", "TH 9H 7H 6H 5H 4H", "TS 8S 6S 5S 3S 2S"]
    assert decide(AlphonsoAgent(), [hand, *others], "2 pass pass pass") == lead


def test_alphonso_never_steals():
    assert decide_bid(AlphonsoAgent(), "QC 5C 4C 7D 8H 9S", "pass 3 pass") == "pass"
    assert decide_bid(AlphonsoAgent(), "QC 5C 4C 7D 8H 9S", "pass 2 pass") == "3"


@pytest.mark.parametrize(
    ("hand", "lead"),
    [
        ("AC JC TC 5C", "5C"),
        ("AC JC TC KD", "TC"),
        ("AC 3C 9D KD", "KD"),  # not a lone 3
        ("AC 3C 4C KD", "4C"),
        ("AC 3C TD 9H", "9H"),  # a ten last
    ],
)
def test_alphonso_leads_on(hand, lead):
    hands = [hand, "7C 7D 6D 5D", "6C 8D 6H 5H", "8C 9S 7S 6S"]
    assert decide(AlphonsoAgent(), hands, "2 pass pass pass AC 7C 6C 8C") == lead


@pytest.mark.parametrize(
    ("led", "hand", "answer"),
    [
        ("5D", "6D TD AD", "TD"),  # the ten wins
        ("TD", "6D KD AD", "KD"),
        ("TD", "6D 7C 9C", "7C"),
        ("JD", "3D KD AD", "KD"),
        ("JD", "3D 9C 4H", "3D"),
        ("KD", "3D AD 9C", "AD"),
        ("AD", "3H 9C 4C", "4C"),
        ("8D", "6D KD 3C", "6D"),
        ("8D", "TH KH 3C", "KH"),  # a ten is the last plain card to give
        ("8D", "TH 7C 3C", "TH"),
    ],
)
def test_alphonso_follows_a_plain_lead(led, hand, answer):
    assert decide(AlphonsoAgent(), [f"AC {led} 3S 2S", f"8C {hand}"], f"2 pass AC 8C {led}") == answer


@pytest.mark.parametrize(
    ("led", "hand", "answer"),
    [
        ("KC", "AC 5C 9H", "AC"),
        ("TC", "JC 5C 9H", "JC"),
        ("2C", "JC 5C 9H", "5C"),
        ("QC", "AC 9C 5C", "9C"),  # no prize, and the 9 is the least valuable
        ("6C", "JC 2C TC", "TC"),
        ("6C", "TH 4H 3H", "3H"),
    ],
)
def test_alphonso_follows_a_trump_lead(led, hand, answer):
    assert decide(AlphonsoAgent(), [f"{led} 3S 2S", hand], f"2 pass {led}") == answer


def test_alphonso_beats_what_wins_the_trick_not_what_was_led():
    hands = ["AC 5D 3S 2S", "9C KD 5H 6H", "8C AD 6D 4C"]
    assert decide(AlphonsoAgent(), hands, "2 pass pass AC 9C 8C 5D KD") == "AD"


# Baby


@pytest.mark.parametrize(
    ("hand", "worth"),
    [
        ("JC AC 4C 3C 7D 8H", 4),
        ("KC JC 3C 7D 8H 9S", 3),
        ("QC 9C 4C 3C 8H 9S", 3),
        ("AC 2C 7D 8H 9S TD", 2),
        ("QC 3C 4C 7D 8H 9S", 2),
        ("QC JC 7D 8H 9S TD", 1),
        ("AC 7D 8H 9S TD 6H", 1),
        ("JC TC 9C 8C 7D 8H", 1),
    ],
)
def test_baby_raises_by_one_up_to_what_its_best_suit_is_worth(hand, worth):
    assert decide_bid(BabyAgent(), hand) == ("2" if worth >= 2 else "pass")
    assert decide_bid(BabyAgent(), hand, "1") == ("2" if worth >= 2 else "pass")
    assert decide_bid(BabyAgent(), hand, "2 pass") == ("3" if worth >= 3 else "pass")
    assert decide_bid(BabyAgent(), hand, "2 pass 3") == ("4" if worth >= 4 else "pass")


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("2 pass pass", "KC"),  # the top card of the best suit
        ("2 pass pass KC 9C 8C", "QC"),  # then the top trump
        ("2 pass pass KC 9C 8C 3C AC 4C", "AD"),  # who has no trump left leads the top card
        ("2 pass pass KC 9C 8C 3C AC 4C AD", "7C"),  # a trump even where the suit is held
    ],
)
def test_baby_plays_its_strongest_card(said, answer):
    hands = ["KC QC 3C AH", "9C AC AD KS", "8C 4C 7C 6D"]
    assert decide(BabyAgent(), hands, said) == answer


def test_baby_follows_high_without_trump():
    hands = ["AC 5D 3D 2D", "9C KD 6D AH"]
    assert decide(BabyAgent(), hands, "2 pass AC 9C 5D") == "KD"
    assert decide(BabyAgent(), ["AC 5D 3D 2D", "9C KH 6S AH"], "2 pass AC 9C 5D") == "AH"


# Strength


@pytest.mark.parametrize(("bot", "share"), [("trickster", 0.75), ("brave", 0.75), ("alphonso", 0.7), ("baby", 0.75)])
def test_one_bot_among_three_passive_players_wins_most_matches(bot, share):
    rng = np.random.default_rng(5)
    passive = PassiveRandomAgent()
    tables = new_tables(Rules(), 5, 160)
    place = np.arange(160) % 4
    running = np.ones(160, bool)
    while running.any():
        live = np.flatnonzero(running)
        views = look(tables[live])
        actions = passive.act(views, rng.integers(0, 2**64, len(live), dtype=np.uint64))
        mine = views["seat"] == place[live]
        actions[mine] = BOTS[bot].act(views[mine], np.zeros(mine.sum(), np.uint64))
        for i, action in zip(live, actions, strict=True):
            apply(tables[i : i + 1], action)
            if tables["phase"][i] == HAND_OVER:
                next_hand(tables[i : i + 1])
        running = tables["phase"] != MATCH_OVER
    assert np.mean(tables["winner"] == place) > share
