"""Game records: a match as JSON, written, read, replayed and verified.

``python -m pitch_env.record FILE`` prints a match as text and says where a record breaks a rule.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from pitch_env.cards import CARD_ACTION, SUITS, card_name, cards_of, mask_of, parse_card
from pitch_env.engine import apply, next_hand, set_hand
from pitch_env.rules import Rules
from pitch_env.scoring import POINT_NAMES
from pitch_env.table import (
    AUCTION,
    HAND_OVER,
    MATCH_OVER,
    MAX_SCORE,
    NOBODY,
    NOT_YET,
    TABLE,
    deck_mask,
    or_none,
    read_rules,
    write_rules,
)

VERSION = 1
HAND_KEYS = ("dealer", "deal", "bids", "pitcher", "bid", "trump", "tricks", "points", "scores")


class RecordError(ValueError):
    """A record that is malformed or breaks a rule; the text says where."""


def record_hand(table: np.ndarray) -> dict[str, Any]:
    """One hand, finished or in progress, of a table, (1,); what is not yet known is None or empty."""
    t = table[0]
    num_players, num_plays = int(t["num_players"]), int(t["num_plays"])
    bidders = [(int(t["dealer"]) + turn) % num_players for turn in range(1, num_players + 1)]
    tricks = []
    for index, start in enumerate(range(0, num_plays, num_players)):
        cards = [card_name(card) for card in t["plays"][start : min(start + num_players, num_plays)]]
        winner = int(t["winners"][index]) if len(cards) == num_players else None
        tricks.append({"leader": int(t["leaders"][index]), "cards": cards, "winner": winner})
    is_over = t["phase"] >= HAND_OVER
    is_bid = t["phase"] != AUCTION
    points = {name: or_none(side) for name, side in zip(POINT_NAMES, t["points"], strict=True)}
    return {
        "dealer": int(t["dealer"]),
        "deal": [[card_name(card) for card in cards_of(cards)] for cards in t["dealt"][:num_players]],
        "bids": [[seat, int(t["bids"][seat])] for seat in bidders if t["bids"][seat] != NOT_YET],
        "pitcher": int(t["pitcher"]) if is_bid else None,
        "bid": int(t["bid"]) if is_bid else None,
        "trump": SUITS[t["trump"]] if t["trump"] != NOT_YET else None,
        "tricks": tricks,
        "points": points if is_over else None,
        "scores": [int(score) for score in t["scores"][: t["num_sides"]]] if is_over else None,
    }


def record_match(hands: list[np.ndarray], start_scores: list[int]) -> dict[str, Any]:
    """A match as a JSON-ready dict.

    Args:
        hands: the table, (1,), at the end of each hand; the last one may be in progress.
        start_scores: per side; kept in the record only if some score is not zero.
    """
    last = hands[-1][0]
    record: dict[str, Any] = {"version": VERSION, "rules": read_rules(last).to_dict()}
    if any(start_scores):
        record["start_scores"] = list(start_scores)
    record["hands"] = [record_hand(table) for table in hands]
    record["winner"] = or_none(last["winner"])
    return record


def write_record(record: dict[str, Any], path: str | Path) -> None:
    """Write a record as JSON, one hand a line."""
    head = {key: value for key, value in record.items() if key not in ("hands", "winner")}
    hands = ",\n  ".join(json.dumps(hand) for hand in record["hands"])
    text = f'{json.dumps(head)[:-1]}, "hands": [\n  {hands}\n ], "winner": {json.dumps(record["winner"])}}}\n'
    Path(path).write_text(text, encoding="utf-8")


def read_record(path: str | Path) -> dict[str, Any]:
    """Read a record and check that it has the parts of one; whether it keeps the rules is for `replay_record`.

    Raises:
        RecordError: if the file holds no game record.
        OSError: if it cannot be read.
    """
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} holds no JSON: {error}") from None
    _read_head(record)
    return record


def _read_head(record: Any) -> tuple[Rules, list[int]]:
    if not isinstance(record, dict) or not {"version", "rules", "hands", "winner"} <= record.keys():
        raise RecordError("a game record is a JSON object with version, rules, hands and winner")
    if type(record["version"]) is not int or record["version"] != VERSION:
        raise RecordError(f"this is a record of version {record['version']!r}; version {VERSION} is read here")
    try:
        rules = Rules.from_dict(record["rules"])
    except (TypeError, ValueError, AttributeError) as error:
        raise RecordError(f"rules: {error}") from None
    if not isinstance(record["hands"], list) or not record["hands"]:
        raise RecordError("hands is a list of at least one hand")
    scores = record.get("start_scores", [0] * rules.num_sides)
    if (
        not isinstance(scores, list)
        or len(scores) != rules.num_sides
        or not all(type(score) is int and abs(score) <= MAX_SCORE for score in scores)
    ):
        raise RecordError(f"start_scores is a list of {rules.num_sides} whole numbers within {MAX_SCORE}")
    return rules, scores


def replay_record(record: dict[str, Any]) -> list[np.ndarray]:
    """Play a record again and check every statement in it.

    Returns:
        The table, (1,), at the end of each hand; `record_match` of them gives the record again.

    Raises:
        RecordError: at the first thing that breaks a rule or does not follow from the play.
    """
    hands: list[np.ndarray] = []
    for table in _replay(record):
        hands.append(table.copy())
    return hands


def _replay(record: dict[str, Any]):
    rules, scores = _read_head(record)
    table = np.zeros(1, TABLE)
    write_rules(table, rules)
    table["scores"][0, : rules.num_sides] = scores
    table["winner"] = table["viewer"] = NOBODY
    for number, hand in enumerate(record["hands"], 1):
        where = f"hand {number}"
        if not isinstance(hand, dict) or set(hand) != set(HAND_KEYS):
            raise RecordError(f"{where}: a hand has exactly {', '.join(HAND_KEYS)}")
        if number > 1:
            if table["phase"][0] == MATCH_OVER:
                raise RecordError(f"{where}: the match was over before it (R19)")
            if table["phase"][0] != HAND_OVER:
                raise RecordError(f"{where}: the hand before it is not finished")
            next_hand(table)
        try:
            _replay_hand(table, hand, where, is_first=number == 1)
        except RecordError:
            raise
        except (TypeError, ValueError, LookupError, AttributeError):
            raise RecordError(f"{where}: not of the form that a record has") from None
        yield table
    _check("the record", "winner", record["winner"], or_none(table["winner"][0]))


def _replay_hand(table: np.ndarray, hand: dict[str, Any], where: str, is_first: bool) -> None:
    rules = read_rules(table[0])
    if type(hand["dealer"]) is not int or not 0 <= hand["dealer"] < rules.num_players:
        raise RecordError(f"{where}: dealer is a seat from 0 to {rules.num_players - 1}, not {hand['dealer']!r}")
    if not is_first:
        _check(where, "dealer", hand["dealer"], int(table["dealer"][0]), "R3")
    set_hand(table, _read_deal(hand["deal"], rules, where), hand["dealer"])
    for seat, bid in hand["bids"]:
        _act(table, seat, bid, f"{where}, bid of seat {seat}", is_bid=True)
    for index, trick in enumerate(hand["tricks"], 1):
        leader = trick["leader"]
        for place, name in enumerate(trick["cards"]):
            seat = (leader + place) % rules.num_players
            spot = f"{where}, trick {index}, seat {seat} plays {name}"
            try:
                card = parse_card(name)
            except ValueError as error:
                raise RecordError(f"{spot}: {error}") from None
            _act(table, seat, CARD_ACTION + card, spot, is_bid=False)
    found = record_hand(table)
    for key in HAND_KEYS:
        if key != "deal":
            _check(where, key, hand[key], found[key])


def _read_deal(deal: list, rules: Rules, where: str) -> list[int]:
    try:
        dealt = [mask_of(parse_card(card) for card in cards) for cards in deal]
    except ValueError as error:
        raise RecordError(f"{where}: {error}") from None
    everything = 0
    for cards in dealt:
        everything |= cards
    is_whole = len(deal) == rules.num_players and all(len(cards) == rules.hand_size for cards in deal)
    if not is_whole or everything.bit_count() != rules.num_players * rules.hand_size or everything & ~deck_mask(rules):
        raise RecordError(
            f"{where}: the deal is {rules.num_players} hands of {rules.hand_size} different cards of the deck (R2)"
        )
    return dealt


def _act(table: np.ndarray, seat: Any, action: Any, where: str, is_bid: bool) -> None:
    if type(action) is not int or (is_bid and not 0 <= action < CARD_ACTION):
        raise RecordError(f"{where}: a bid is a number from 0 to 4, not {action!r}")
    turn = int(table["seat"][0])
    if turn != seat:
        raise RecordError(f"{where}: {'the hand is over' if turn == NOBODY else f'it is the turn of seat {turn}'}")
    try:
        apply(table, action)
    except ValueError as error:
        raise RecordError(f"{where}: {error}") from None


def _check(where: str, what: str, said: Any, found: Any, rule: str = "") -> None:
    if json.dumps(said, sort_keys=True) != json.dumps(found, sort_keys=True):  # to == 1, 1.0 and True are the same
        source = f" ({rule})" if rule else ""
        raise RecordError(f"{where}: {what} is {said!r}, but by the play it is {found!r}{source}")


def print_record(record: dict[str, Any], file: Any = None) -> None:
    """Print a match as text, hand by hand, up to where it breaks a rule.

    Raises:
        RecordError: as `replay_record`, after printing the hands before.
    """
    from pitch_env.render import render_text

    for number, table in enumerate(_replay(record), 1):
        print(f"--- hand {number} ---\n{render_text(table)}\n", file=file)
    winner = record["winner"]
    print("no winner yet" if winner is None else f"side {winner} wins the match", file=file)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m pitch_env.record", description="Print a game record as text and say where it breaks a rule."
    )
    parser.add_argument("file", help="a game record, JSON")
    path = parser.parse_args(arguments).file
    try:
        print_record(read_record(path))
    except (RecordError, OSError) as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
