"""What several tests need: rules to try, ways to choose actions, tables part-way through a match."""

import json
import random
from pathlib import Path

from pitch_env import Rules
from pitch_env.cards import cards_of, mask_of
from pitch_env.engine import apply, legal_mask, new_tables, next_hand, set_hand
from pitch_env.table import HAND_OVER, MATCH_OVER, deck_mask, read_rules

WORKED = {
    hand["name"]: hand for hand in json.loads((Path(__file__).parent / "data" / "worked_hands.json").read_text("utf-8"))
}

VARIANTS = [
    *(Rules(num_players=players) for players in range(2, 8)),
    Rules(teams=True, target=11),
    Rules(teams=True, pitch_by_card=True, low_point="holder"),
    Rules(low_point="holder", win_needs_made_bid=True, target=15),
    Rules(num_players=5, pitch_by_card=True, target=21),
    Rules(num_players=3, num_suits=2, num_ranks=7, hand_size=4),
    Rules(num_players=2, num_suits=1, num_ranks=2, hand_size=1, max_hands=3),
]


def name_rules(rules):
    """The fields that are not the default: a readable test id."""
    default = Rules().to_dict()
    changed = [f"{name}={value}" for name, value in rules.to_dict().items() if value != default[name]]
    return ",".join(changed) or "default"


def actions_of(mask):
    """The actions of a bit mask, as a list."""
    return [action for action in range(64) if mask >> action & 1]


def choose_uniformly(rng, legal):
    return rng.choice(legal)


def choose_sensibly(rng, legal):
    """Passes mostly and bids low, so that bids are made and matches end as they do among people."""
    bids = [action for action in legal if action <= 4]
    if not bids:
        return rng.choice(legal)
    if rng.random() < 0.7:
        return bids[0]  # pass, or the least bid of a dealer who must
    return rng.choice(legal if rng.random() < 0.1 else bids[:3])


def play_states(rules, seed=0, num_hands=2, choose=choose_sensibly):
    """The table, (1,), after each action of some hands, first the fresh deal; the same array is changed in place."""
    rng = random.Random(seed)
    table = new_tables(rules, seed)
    yield table
    for _ in range(num_hands):
        while legal_mask(table):
            apply(table, choose(rng, actions_of(legal_mask(table))))
            yield table
        if table["phase"][0] == MATCH_OVER:
            return
        next_hand(table)
        yield table


def play_some(rules, num_actions, seed=0, choose=choose_sensibly):
    """A table, (1,), some actions into a match, which never stands between hands."""
    rng = random.Random(seed)
    table = new_tables(rules, seed)
    for _ in range(num_actions):
        apply(table, choose(rng, actions_of(legal_mask(table))))
        if table["phase"][0] == MATCH_OVER:
            table = new_tables(rules, rng.getrandbits(30))
        elif table["phase"][0] == HAND_OVER:
            next_hand(table)
    return table


def exchange_hidden(table, seat, rng):
    """The table with all that a seat does not know dealt anew: other hands, undealt cards, the random stream."""
    rules = read_rules(table[0])
    other = table.copy()
    t = other[0]
    known = int(t["dealt"][seat] | t["played"])
    unseen = cards_of(deck_mask(rules) & ~known)
    rng.shuffle(unseen)
    for player in range(rules.num_players):
        if player != seat:
            shown = int(t["dealt"][player] & t["played"])
            rest = rules.hand_size - shown.bit_count()
            t["dealt"][player] = shown | mask_of(unseen[:rest])
            unseen = unseen[rest:]
    t["rng"] = rng.getrandbits(64)
    return other


def deal_worked(name, rules=None, **scores):
    """A table, (1,), with the deal of a worked hand."""
    table = new_tables(rules or Rules(), 0)
    for side, score in scores.items():
        table["scores"][0, int(side.removeprefix("side_"))] = score
    hand = WORKED[name]
    set_hand(table, [mask_of(parse(cards)) for cards in hand["deal"]], hand["dealer"])
    return table


def parse(names):
    """Cards of a list or a text of names, by a reading of its own."""
    names = names.split() if isinstance(names, str) else names
    return ["CDHS".index(name[1]) * 13 + "23456789TJQKA".index(name[0]) for name in names]
