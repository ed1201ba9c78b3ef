"""What a seat may know: a table with everything hidden taken out.

A view is a table record like any other, so every reader of tables reads views; what the seat has not seen is simply
not in it: no other hand, no undealt card, no random stream.
"""

from typing import Any

import numpy as np

from pitch_env.cards import CARD_ACTION, MAX_BID, SUITS, action_name, card_name, cards_of, mask_of, parse_card
from pitch_env.engine import apply, legal_mask, set_hand
from pitch_env.kernels import U64, kernel, part
from pitch_env.rules import Rules
from pitch_env.table import AUCTION, NOBODY, NOT_YET, PHASES, TABLE, deck_mask, or_none, read_rules, write_rules

_MOST = 2**15 - 1  # what a score in a table can be
_BYTES = np.dtype((np.void, TABLE.itemsize))  # a record of fields is copied field by field, several times slower


@part
def hide_from(t, seat):
    """Take out of a table what a seat does not know; the cards others have played stay."""
    for other in range(t.num_players):
        if other != seat:
            t.dealt[other] &= t.played
    t.rng = U64(0)
    t.viewer = seat


@kernel
def _hide(tables, seats):
    for i in range(tables.shape[0]):
        hide_from(tables[i], seats[i])


def view_tables(tables: np.ndarray, seats: np.ndarray) -> np.ndarray:
    """Views of the tables, (N,), each from one seat, (N,)."""
    views = tables.view(_BYTES).copy().view(TABLE)
    _hide(views, np.ascontiguousarray(seats, np.int64))
    return views


def view_table(table: np.ndarray, seat: int) -> np.ndarray:
    """The view, (1,), of a table, (1,), from one seat.

    Raises:
        ValueError: if there is no such seat.
    """
    num_players = int(table["num_players"][0])
    if not 0 <= seat < num_players:
        raise ValueError(f"seat takes a number from 0 to {num_players - 1}, not {seat!r}")
    return view_tables(table, np.array([seat]))


def view_to_dict(view: np.ndarray) -> dict[str, Any]:
    """A view, (1,), as a JSON-ready dict in words: what a server or a person passes around."""
    t = view[0]
    rules = read_rules(t)
    num_players = rules.num_players
    first = (int(t["dealer"]) + 1) % num_players
    bids = [(first + turn) % num_players for turn in range(num_players)]
    plays = [card_name(card) for card in t["plays"][: t["num_plays"]]]
    tricks: list[dict[str, Any]] = [
        {"leader": int(leader), "cards": plays[index * num_players : (index + 1) * num_players]}
        for index, leader in enumerate(t["leaders"][: -(-int(t["num_plays"]) // num_players)])
    ]
    for trick, winner in zip(tricks, t["winners"], strict=False):
        trick["winner"] = int(winner) if len(trick["cards"]) == num_players else None
    seat = int(t["viewer"])
    legal = legal_mask(view) if t["seat"] == seat else 0
    return {
        "rules": rules.to_dict(),
        "seat": seat,
        "phase": PHASES[t["phase"]],
        "dealer": int(t["dealer"]),
        "to_act": or_none(t["seat"]),
        "dealt": [card_name(card) for card in cards_of(t["dealt"][seat])],
        "hand": [card_name(card) for card in cards_of(t["dealt"][seat] & ~t["played"])],
        "bids": [[bidder, int(t["bids"][bidder])] for bidder in bids if t["bids"][bidder] != NOT_YET],
        "pitcher": or_none(t["pitcher"]),
        "bid": int(t["bid"]),
        "trump": SUITS[t["trump"]] if t["trump"] != NOT_YET else None,
        "tricks": tricks,
        "scores": [int(score) for score in t["scores"][: rules.num_sides]],
        "num_hands": int(t["num_hands"]),
        "winner": or_none(t["winner"]),
        "legal": [action_name(index) for index in range(64) if legal >> index & 1],
    }


def view_from_dict(values: dict[str, Any]) -> np.ndarray:
    """The view, (1,), that a dict of `view_to_dict` describes, found by playing its hand again.

    Raises:
        ValueError: if something is missing, unknown, or breaks a rule.
    """
    try:
        rules = Rules.from_dict(dict(values["rules"]))
        seat, dealer = int(values["seat"]), int(values["dealer"])
        own = mask_of(parse_card(text) for text in values["dealt"])
        bids = [(int(bidder), int(bid)) for bidder, bid in values["bids"]]
        tricks = [(int(trick["leader"]), [parse_card(text) for text in trick["cards"]]) for trick in values["tricks"]]
        scores = [int(score) for score in values["scores"]]
        num_hands = int(values.get("num_hands", 0))
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"a view needs rules, seat, dealer, dealt, bids, tricks, scores and num_hands; trouble with {error}"
        ) from error
    num_players = rules.num_players
    for name, number in (("seat", seat), ("dealer", dealer), *(("leader", leader) for leader, _ in tricks)):
        if not 0 <= number < num_players:
            raise ValueError(f"{name} takes a number from 0 to {num_players - 1}, not {number}")
    if len(scores) != rules.num_sides or any(abs(score) > _MOST for score in scores):
        raise ValueError(f"scores takes {rules.num_sides} numbers within {_MOST}, not {scores}")
    if own.bit_count() != rules.hand_size or len(values["dealt"]) != rules.hand_size:
        raise ValueError(f"dealt takes {rules.hand_size} different cards, not {values['dealt']!r}")
    lengths = [len(cards) for _, cards in tricks]
    if lengths and not (0 < lengths[-1] <= num_players and set(lengths[:-1]) <= {num_players}):
        raise ValueError(f"each trick has {num_players} cards, the last one at least 1, not {lengths}")
    if sum(lengths) == num_players * rules.hand_size:
        raise ValueError("the hand of this view is over: there is nothing to decide in it")
    if not 0 <= num_hands < rules.max_hands:
        raise ValueError(f"num_hands takes a number from 0 to {rules.max_hands - 1}, not {num_hands}")
    dealt = [0] * num_players
    for leader, cards in tricks:
        for place, card in enumerate(cards):
            dealt[(leader + place) % num_players] |= 1 << card
    others = mask_of(card for other, mask in enumerate(dealt) if other != seat for card in cards_of(mask))
    if others & own:
        raise ValueError(f"another seat plays {card_name(cards_of(others & own)[0])}, which seat {seat} holds")
    if (others | own) & ~deck_mask(rules):
        raise ValueError("a card is not in the deck of these rules")
    dealt[seat] = own
    view = np.zeros(1, TABLE)
    write_rules(view, rules)
    view["scores"][0, : rules.num_sides] = scores
    view["num_hands"] = num_hands
    view["winner"] = NOBODY
    view["viewer"] = seat
    set_hand(view, dealt, dealer)
    for bidder, bid in bids:
        if view["seat"][0] != bidder:
            raise ValueError(f"seat {bidder} bid {bid if bid else 'pass'} out of turn")
        if bid > MAX_BID:
            raise ValueError(f"a bid is a number from 0 to {MAX_BID}, not {bid}")
        apply(view, bid)
    if tricks and view["phase"][0] == AUCTION:
        raise ValueError("a card was played before the auction was over")
    for leader, cards in tricks:
        for place, card in enumerate(cards):
            if view["seat"][0] != (leader + place) % num_players:
                raise ValueError(f"{card_name(card)} was played out of turn")
            apply(view, CARD_ACTION + card)  # of others' hands only what they later show is known to R11
    return view
