"""Observations read back: into small integers, into a view, and into words.

A float vector holds every fact its seat may know about the hand (perfect recall): `view_from_compact` plays the hand
again from it. Seats come out relative to the viewer, who is seat 0; scores come out relative to the target.
"""

import numpy as np

from pitch_env.cards import CARD_ACTION, NUM_CARDS, NUM_RANKS, NUM_SUITS, SUIT_SYMBOLS, SUITS, card_name, cards_of
from pitch_env.engine import apply, set_hand
from pitch_env.layout import COMPACT, COMPACT_SIZE, FIELDS, IN_HAND, MAX_NEED, MIN_NEED, PLAYED, TOP, WINS, layout
from pitch_env.rules import MAX_HAND_SIZE, MAX_PLAYERS, Rules
from pitch_env.table import NOBODY, TABLE, write_rules


def find_num_seats(size: int) -> int:
    """The number of seats whose layout has this many features.

    Raises:
        ValueError: if there is none.
    """
    for num_seats in range(2, MAX_PLAYERS + 1):
        if layout(num_seats).size == size:
            return num_seats
    sizes = ", ".join(f"{layout(num_seats).size} for {num_seats}" for num_seats in range(2, MAX_PLAYERS + 1))
    raise ValueError(f"an observation has {sizes} players, not {size} numbers")


def decode(vector: np.ndarray) -> np.ndarray:
    """The compact observation, uint8 (COMPACT_SIZE,), that a float vector, (layout size,), stands for.

    Raises:
        ValueError: if it is no vector of any layout.
    """
    vector = np.asarray(vector)
    num_seats = find_num_seats(vector.size)
    blocks = layout(num_seats).blocks
    compact = np.zeros(COMPACT_SIZE, np.uint8)

    def plane(name: str) -> np.ndarray:
        return np.flatnonzero(vector[blocks[name]])

    compact[plane("hand")] = IN_HAND
    compact[plane("top")] += TOP
    compact[plane("wins")] += WINS
    seat_of = np.full(NUM_CARDS, NOBODY)
    for seat in range(num_seats):
        seat_of[plane(f"earlier_{seat}")] = seat
        if seat > 0:
            seat_of[plane(f"on_table_{seat}")] = seat
    for trick in range(MAX_HAND_SIZE):
        for card in plane(f"in_trick_{trick + 1}"):
            compact[card] = PLAYED + MAX_PLAYERS * trick + seat_of[card]
    for field in FIELDS:
        start = COMPACT[field.name].start
        for index, name in enumerate(field.list_names(num_seats)):
            active = plane(name)
            if field.is_bit_set:
                compact[start + index] = sum(1 << int(place) for place in active)
            elif active.size:
                compact[start + index] = active[0] + 1
    return compact


def view_from_compact(compact: np.ndarray) -> np.ndarray:
    """The view, (1,), that a compact observation in real suits describes, its seats counted from the viewer.

    Only scores are not absolute: the target is set to 51 and each score to what is needed for it.
    """

    def value(name: str, index: int = 0) -> int:
        return int(compact[COMPACT[name].start + index])

    num_players = value("num_players") + 1
    rules = Rules(
        num_players=num_players,
        teams=bool(value("teams")),
        target=MAX_NEED,
        win_needs_made_bid=bool(value("win_needs_made_bid")),
        low_point="holder" if value("low_to_holder") else "taker",
        pitch_by_card=bool(value("pitch_by_card")),
        num_suits=NUM_SUITS - value("missing_suits"),
        num_ranks=NUM_RANKS - value("missing_ranks"),
        hand_size=MAX_HAND_SIZE - value("missing_cards"),
    )
    dealt = [0] * num_players
    played: dict[tuple[int, int], int] = {}
    for card in np.flatnonzero(compact[:NUM_CARDS]):
        state = int(compact[card])
        seat = 0
        if PLAYED <= state < TOP:
            trick, seat = divmod(state - PLAYED, MAX_PLAYERS)
            played[trick, seat] = int(card)
        dealt[seat] |= 1 << int(card)
    view = np.zeros(1, TABLE)
    write_rules(view, rules)
    view["winner"], view["viewer"] = NOBODY, 0
    set_hand(view, dealt, value("dealer") - 1)
    for turn in range(1, num_players + 1):
        seat = (int(view["dealer"][0]) + turn) % num_players
        if value("bids", seat):
            apply(view, value("bids", seat) - 1)
    while (int(view["num_plays"][0]) // num_players, int(view["seat"][0])) in played:
        trick, seat = int(view["num_plays"][0]) // num_players, int(view["seat"][0])
        apply(view, CARD_ACTION + played[trick, seat])
    for side in range(rules.num_sides):
        view["scores"][0, side] = MAX_NEED - (value("needs", side) - 1 + MIN_NEED)
    return view


def _name_seat(seat: int) -> str:
    return "you" if seat == 0 else f"the player {seat} to your left"


def describe(observation: np.ndarray | dict) -> str:
    """An observation in words.

    Args:
        observation: a float vector, (layout size,), a compact observation, uint8 (COMPACT_SIZE,), or the dict that the
            environment gives.
    """
    array = np.asarray(observation["observation"] if isinstance(observation, dict) else observation)
    compact = array if array.dtype == np.uint8 and array.size == COMPACT_SIZE else decode(array)
    t = view_from_compact(compact)[0]
    num_players = int(t["num_players"])
    needs = compact[COMPACT["needs"]].astype(int) - 1 + MIN_NEED
    lines = [
        f"{num_players} players{' in two teams' if t['num_sides'] != num_players else ''}; "
        f"dealer: {_name_seat(t['dealer'])}",
        "hand: " + " ".join(card_name(card) for card in cards_of(t["dealt"][0] & ~t["played"])),
    ]
    for seat in range(num_players):
        bid = int(t["bids"][seat])
        facts = [
            "has not bid" if bid < 0 else "passed" if bid == 0 else f"bid {bid}",
            f"needs {needs[seat]}{' or more' if needs[seat] == MAX_NEED else ''}",
            f"trick points {compact[COMPACT['trick_points'].start + seat]}",
        ]
        voids = [SUIT_SYMBOLS[suit] for suit in range(NUM_SUITS) if t["voids"][seat] >> suit & 1]
        if voids:
            facts.append("has no " + " ".join(voids))
        lines.append(f"{_name_seat(seat)}: " + ", ".join(facts))
    if t["num_plays"]:
        lines.append(
            f"trump {SUIT_SYMBOLS[t['trump']]} ({SUITS[t['trump']]}), contract {t['bid']} of {_name_seat(t['pitcher'])}"
        )
    for trick, start in enumerate(range(0, int(t["num_plays"]), num_players)):
        cards = [card_name(card) for card in t["plays"][start : min(start + num_players, t["num_plays"])]]
        ending = "is winning" if len(cards) < num_players else "won"
        lines.append(
            f"trick {trick + 1}, led by {_name_seat(t['leaders'][trick])}: {' '.join(cards)}; "
            f"{_name_seat(t['winners'][trick])} {ending}"
        )
    for name, what in (("high_taker", "highest"), ("low_taker", "lowest")):
        if compact[COMPACT[name].start]:
            lines.append(f"{what} trump captured so far: {_name_seat(int(compact[COMPACT[name].start]) - 1)}")
    if compact[COMPACT["jack_taker"].start]:
        lines.append(f"jack of trumps: {_name_seat(int(compact[COMPACT['jack_taker'].start]) - 1)}")
    lines.append("the hand is over" if t["seat"] == NOBODY else f"to act: {_name_seat(t['seat'])}")
    return "\n".join(lines)
