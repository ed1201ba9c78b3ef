"""Whole matches played by the engine and by the referee side by side, everything compared after every decision.

The number of decisions is set by the environment variable PITCH_DIFFERENTIAL_DECISIONS.
"""

import os
import random
from collections import Counter

from helpers import choose_sensibly, choose_uniformly
from referee import Referee

from pitch_env import Rules
from pitch_env.cards import cards_of, mask_of
from pitch_env.engine import apply, legal_mask, new_tables, next_hand, try_action
from pitch_env.table import AUCTION, HAND_OVER, MATCH_OVER, NOBODY, TABLE

DECISIONS = int(os.environ.get("PITCH_DIFFERENTIAL_DECISIONS", "200000"))
GROUPS = [(players, False) for players in range(2, 8)] + [(4, True)]  # players, teams


def draw_rules(rng, players, teams):
    """Rules of any kind; half of them with the full deck and six cards."""
    values = {
        "num_players": players,
        "teams": teams,
        "target": rng.choice([1, 3, 7, 7, 7, 11, 15, 21]),
        "win_needs_made_bid": rng.random() < 0.5,
        "low_point": rng.choice(["taker", "holder"]),
        "pitch_by_card": rng.random() < 0.4,
        "max_hands": rng.choice([1, 2, 5, 15, 40]),
    }
    while rng.random() < 0.5:
        short = {"num_suits": rng.randint(1, 4), "num_ranks": rng.randint(1, 13), "hand_size": rng.randint(1, 6)}
        if players * short["hand_size"] <= short["num_suits"] * short["num_ranks"]:
            return Rules(**values, **short)
    return Rules(**values)


def read_table(table):
    """What a table, (1,), says, in plain numbers."""
    t = dict(zip(TABLE.names, table[0].item(), strict=True))
    players, sides, plays = t["num_players"], t["num_sides"], t["plays"][: t["num_plays"]].tolist()
    order = [(t["dealer"] + turn) % players for turn in range(1, players + 1)]
    bids = t["bids"].tolist()
    tricks = [plays[start : start + players] for start in range(0, len(plays), players)]
    is_over = t["phase"] in (HAND_OVER, MATCH_OVER)
    return {
        "seat": none_or(t["seat"]),
        "is_auction": t["phase"] == AUCTION,
        "dealer": t["dealer"],
        "bids": [(seat, bids[seat]) for seat in order if bids[seat] != -1],
        "bid": t["bid"],
        "highest_bidder": none_or(t["pitcher"]),
        "trump": none_or(t["trump"]),
        "leaders": t["leaders"][: len(tricks)].tolist(),
        "tricks": tricks,
        "winning": t["winners"][: len(tricks)].tolist(),
        "played": t["played"],
        "hands": [dealt & ~t["played"] for dealt in t["dealt"][:players].tolist()],
        "captured": t["captured"][:players].tolist(),
        "voids": t["voids"][:players].tolist(),
        "points": [none_or(side) for side in t["points"].tolist()] if is_over else None,
        "deltas": t["deltas"][:sides].tolist(),
        "scores": t["scores"][:sides].tolist(),
        "num_hands": t["num_hands"],
        "is_hand_over": is_over,
        "is_match_over": t["phase"] == MATCH_OVER,
        "winner": none_or(t["winner"]),
    }


def none_or(number):
    return None if number == NOBODY else number


def read_referee(referee):
    """The same of a referee."""
    bidders = [seat for seat, bid in referee.bids if bid and bid == referee.bid]
    tricks = referee.tricks
    return {
        "seat": referee.seat,
        "is_auction": referee.pitcher is None,
        "dealer": referee.dealer,
        "bids": referee.bids,
        "bid": referee.bid,
        "highest_bidder": bidders[-1] if bidders else None,
        "trump": referee.trump,
        "leaders": [trick["leader"] for trick in tricks],
        "tricks": [trick["cards"] for trick in tricks],
        "winning": [referee._trick_winner(trick) for trick in tricks],
        "played": mask_of(card for trick in tricks for card in trick["cards"]),
        "hands": [mask_of(hand) for hand in referee.hands],
        "captured": [mask_of(cards) for cards in referee.captured],
        "voids": [mask_of(suits) for suits in referee.voids],
        "points": list(referee.points.values()) if referee.points else None,
        "deltas": referee.deltas,
        "scores": referee.scores,
        "num_hands": referee.hands_played,
        "is_hand_over": referee.is_hand_over,
        "is_match_over": referee.is_match_over,
        "winner": referee.winner,
    }


def start_referee(rules, table, scores=None):
    """A referee of the match that has just begun at a table, (1,)."""
    referee = Referee(rules, dealer=int(table["dealer"][0]), scores=scores)
    deal_to(referee, table)
    return referee


def deal_to(referee, table):
    """Give a referee the hand that was just dealt at a table, (1,)."""
    referee.start_hand([cards_of(cards) for cards in table["dealt"][0, : len(referee.seats)].tolist()])


def check_illegal(table, rng, legal):
    """An action that is not legal is refused and changes nothing."""
    action = rng.randrange(-3, 70)
    if action not in legal:
        before = table.tobytes()
        assert try_action(table, action) is None
        assert table.tobytes() == before


def play_match(rules, rng, tally):
    """Play a match on both sides, comparing after every decision; the tally counts what came up."""
    choose = rng.choice([choose_uniformly, choose_sensibly])
    table = new_tables(rules, rng.getrandbits(32))
    scores = None
    if rng.random() < 0.3:
        scores = [rng.randint(-5, rules.target + 5) for _ in range(rules.num_sides)]
        table["scores"][0, : rules.num_sides] = scores
    referee = start_referee(rules, table, scores)
    assert read_table(table) == read_referee(referee)
    while True:
        while not referee.is_hand_over:
            legal = referee.legal()
            assert legal_mask(table) == mask_of(legal)
            check_illegal(table, rng, legal)
            action = choose(rng, sorted(legal))
            referee.act(action)
            seat = apply(table, action)
            assert none_or(seat) == referee.seat
            assert read_table(table) == read_referee(referee)
            tally["decisions"] += 1
        note_hand(referee, tally)
        if referee.is_match_over:
            return
        next_hand(table)
        deal_to(referee, table)
        assert read_table(table) == read_referee(referee)


def note_hand(referee, tally):
    """Count what a finished hand shows, so that a run can prove it saw everything."""
    highest = [seat for seat, bid in referee.bids if bid == referee.bid]
    pitching = referee.side_of(referee.pitcher)
    is_set = referee.deltas[pitching] < 0
    trumps = sum(card // 13 == referee.trump for hand in referee.deal for card in hand)
    pips = referee.trick_points()
    events = {
        "stolen": len(highest) == 2,
        "dealer stuck": referee.pitcher == referee.dealer and not any(bid for _, bid in referee.bids[:-1]),
        "bid of 4": referee.bid == 4,
        "auction cut short": len(referee.bids) < len(referee.seats),
        "made": not is_set,
        "set": is_set,
        "lone trump": trumps == 1,
        "jack": referee.points["jack"] is not None,
        "no jack": referee.points["jack"] is None,
        "game tie": referee.points["game"] is None and max(pips) > 0,
        "game tie at zero": max(pips) == 0,
        "won": referee.winner is not None,
        "won though set": referee.winner is not None and is_set,
        "not won for being set": is_set and referee.scores[pitching] >= referee.rules.target and referee.winner is None,
        "richer loser": referee.winner is not None and max(referee.scores) > referee.scores[referee.winner],
        "target passed on another's hand": referee.winner is None and max(referee.scores) >= referee.rules.target,
        "truncated": referee.is_truncated,
        "negative score": min(referee.scores) < 0,
    }
    tally.update(name for name, is_so in events.items() if is_so)


def play_matches(players, teams, num_decisions, seed=0):
    """Matches under random rules until so many decisions were compared; returns the tally."""
    rng = random.Random(f"{players} {teams} {seed}")
    tally = Counter(decisions=0)
    while tally["decisions"] < num_decisions:
        play_match(draw_rules(rng, players, teams), rng, tally)
    return tally
