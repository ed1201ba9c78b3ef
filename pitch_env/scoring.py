"""Who scores what when a hand is over (R13-R19)."""

from pitch_env.cards import JACK, NUM_CARDS, NUM_RANKS, TRICK_POINTS
from pitch_env.kernels import U64, bit, count, highest, lowest, part
from pitch_env.table import HAND_OVER, MATCH_OVER, NOBODY

POINT_NAMES = ("high", "low", "jack", "game")
HIGH, LOW, JACK_POINT, GAME = range(4)

SUIT_MASK = U64((1 << NUM_RANKS) - 1)


# Cards whose trick points (R16) have the binary digit 1, 2, 4 or 8.
_WORTH = tuple(
    U64(sum(1 << card for card in range(NUM_CARDS) if TRICK_POINTS[card % NUM_RANKS] & digit)) for digit in (1, 2, 4, 8)
)


@part
def suit_cards(suit):
    """Mask of the thirteen cards of a suit."""
    return SUIT_MASK << U64(suit * NUM_RANKS)


@part
def count_trick_points(cards):
    """Trick points of a mask of cards (R16)."""
    return (
        count(cards & _WORTH[0])
        + 2 * count(cards & _WORTH[1])
        + 4 * count(cards & _WORTH[2])
        + 8 * count(cards & _WORTH[3])
    )


@part
def find_owner(masks, card, num_seats):
    """The seat whose mask holds a card, or NOBODY."""
    for seat in range(num_seats):
        if masks[seat] & bit(card):
            return seat
    return NOBODY


@part
def award_points(t):
    """Write the side that won each of High, Low, Jack and Game into the table (R13-R17)."""
    num_players, num_sides = t.num_players, t.num_sides
    trumps = t.played & suit_cards(t.trump)
    jack = t.trump * NUM_RANKS + JACK
    t.points[HIGH] = find_owner(t.captured, highest(trumps), num_players) % num_sides
    owners = t.dealt if t.low_to_holder else t.captured
    t.points[LOW] = find_owner(owners, lowest(trumps), num_players) % num_sides
    t.points[JACK_POINT] = NOBODY
    if trumps & bit(jack):
        t.points[JACK_POINT] = find_owner(t.captured, jack, num_players) % num_sides
    t.points[GAME] = NOBODY
    best = 0
    for side in range(num_sides):
        cards = U64(0)
        for seat in range(side, num_players, num_sides):
            cards |= t.captured[seat]
        total = count_trick_points(cards)
        if total > best:
            best = total
            t.points[GAME] = side
        elif total == best:
            t.points[GAME] = NOBODY


@part
def settle(t):
    """Score a hand whose last card is played and decide whether the match is over (R18, R19)."""
    award_points(t)
    num_sides = t.num_sides
    for side in range(num_sides):
        t.deltas[side] = 0
    for point in range(4):
        if t.points[point] != NOBODY:
            t.deltas[t.points[point]] += 1
    pitching = t.pitcher % num_sides
    is_made = t.deltas[pitching] >= t.bid
    if not is_made:
        t.deltas[pitching] = -t.bid
    for side in range(num_sides):
        t.scores[side] += t.deltas[side]
    t.num_hands += 1
    t.seat = NOBODY
    t.phase = HAND_OVER
    if t.scores[pitching] >= t.target and (is_made or not t.win_needs_made_bid):
        t.winner = pitching
        t.phase = MATCH_OVER
    elif t.num_hands >= t.max_hands:
        t.phase = MATCH_OVER
