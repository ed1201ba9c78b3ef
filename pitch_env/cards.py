"""Cards, actions and their text forms.

A card is ``suit * 13 + rank`` with suits C D H S = 0..3 and ranks 2..A = 0..12 (R2). A set of cards is a 52-bit
mask with bit ``card`` set. An action is 0 (pass), 1-4 (a bid) or ``CARD_ACTION + card`` (play that card).
"""

NUM_SUITS = 4
NUM_RANKS = 13
NUM_CARDS = NUM_SUITS * NUM_RANKS
SUITS = "CDHS"
RANKS = "23456789TJQKA"
SUIT_SYMBOLS = "♣♦♥♠"

JACK = RANKS.index("J")
TRICK_POINTS = (0,) * 8 + (10, 1, 2, 3, 4)  # R16, per rank

PASS = 0
MAX_BID = 4
CARD_ACTION = MAX_BID + 1
NUM_ACTIONS = CARD_ACTION + NUM_CARDS


def card_name(card: int) -> str:
    """Text form of a card, rank then suit: ``card_name(51) == "AS"``."""
    return RANKS[card % NUM_RANKS] + SUITS[card // NUM_RANKS]


def parse_card(text: str) -> int:
    """Card of a text form such as ``"TD"`` or ``"as"``.

    Raises:
        ValueError: if the text names no card.
    """
    name = text.strip().upper() if isinstance(text, str) else ""
    if len(name) != 2 or name[0] not in RANKS or name[1] not in SUITS:
        raise ValueError(f"{text!r} is no card: write a rank of {RANKS} and a suit of {SUITS}, such as 'TD'")
    return SUITS.index(name[1]) * NUM_RANKS + RANKS.index(name[0])


def action_name(action: int) -> str:
    """``"pass"``, ``"bid 3"`` or ``"play TD"``."""
    if action == PASS:
        return "pass"
    if action <= MAX_BID:
        return f"bid {action}"
    return f"play {card_name(action - CARD_ACTION)}"


def parse_action(text: str) -> int:
    """Action of a text form: ``"pass"``, ``"3"``, ``"bid 3"``, ``"TD"`` or ``"play TD"``.

    Raises:
        ValueError: if the text names no action.
    """
    word = text.strip().lower() if isinstance(text, str) else ""
    if word in ("pass", "p", "0"):
        return PASS
    bid = word.removeprefix("bid").strip()
    if bid in ("1", "2", "3", "4"):
        return int(bid)
    try:
        return CARD_ACTION + parse_card(word.removeprefix("play"))
    except ValueError:
        raise ValueError(f"{text!r} is no action: write 'pass', a bid from 1 to 4, or a card such as 'TD'") from None


def cards_of(mask: int) -> list[int]:
    """The cards of a mask, by suit and from high to low."""
    mask = int(mask)
    return [
        suit * NUM_RANKS + rank
        for suit in range(NUM_SUITS)
        for rank in reversed(range(NUM_RANKS))
        if mask >> (suit * NUM_RANKS + rank) & 1
    ]


def mask_of(cards) -> int:
    """The mask of some cards."""
    mask = 0
    for card in cards:
        mask |= 1 << int(card)
    return mask
