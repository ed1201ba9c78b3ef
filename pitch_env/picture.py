"""The drawn table: a scene as a picture.

Drawn with pygame on a surface of its own, so no window and no display are needed. Seats sit clockwise round the table,
the viewer (or else seat 0) at the bottom.
"""

import math
from collections.abc import Iterable
from typing import Any

from pitch_env.cards import NUM_RANKS, RANKS
from pitch_env.render import (
    Scene,
    describe_bid,
    describe_points,
    describe_rules,
    describe_side,
    describe_status,
    describe_verdict,
)
from pitch_env.table import AUCTION, MATCH_OVER, NOBODY, NOT_YET

SIZE = (1080, 760)  # width, height

_SHARPNESS = 2  # drawn this much larger, then scaled down: smooth edges
_CENTRE = (540, 380)
_SEATS = (412, 296)  # half axes of the ellipse of the seats
_TRICK = (180, 118)  # and of the trick inside it
_CARD = (64, 90)
_CORNER_CARD = (40, 56)
_PLATE = (210, 52)
_FAN = 29  # from one card of a hand to the next
_MARGIN = 22

_BACKGROUND = (17, 40, 36)
_RIM, _RIM_EDGE = (110, 70, 40), (70, 43, 24)
_FELT, _FELT_LINE = (28, 110, 74), (44, 133, 93)
_DARK = (16, 28, 32)
_WHITE, _GREY, _GOLD = (248, 246, 238), (170, 188, 182), (252, 202, 72)
_GOOD, _BAD = (134, 222, 136), (255, 138, 122)
_BLACK, _RED = (24, 28, 34), (204, 32, 44)
_SUIT_COLOURS = (_BLACK, _RED, _RED, _BLACK)
_BACK, _BACK_LINE = (40, 72, 132), (96, 132, 194)
_TEAMS = ((96, 172, 255), (255, 156, 80))

Point = tuple[float, float]
Colour = tuple[int, ...]


class _Brush:
    """Shapes, words and cards on a surface, in the coordinates of the finished picture."""

    def __init__(self, pygame: Any) -> None:
        self._pygame = pygame
        if not pygame.font.get_init():
            pygame.font.init()
        self._surface = pygame.Surface((SIZE[0] * _SHARPNESS, SIZE[1] * _SHARPNESS), 0, 32)
        self._surface.fill(_BACKGROUND)
        self._fonts: dict[int, Any] = {}

    def finish(self) -> Any:
        """The picture at its proper size."""
        return self._pygame.transform.smoothscale(self._surface, SIZE)

    def polygon(self, points: Iterable[Point], colour: Colour) -> None:
        scaled = [(x * _SHARPNESS, y * _SHARPNESS) for x, y in points]
        self._pygame.draw.polygon(self._surface, colour, scaled)

    def circle(self, centre: Point, radius: float, colour: Colour) -> None:
        scaled = (centre[0] * _SHARPNESS, centre[1] * _SHARPNESS)
        self._pygame.draw.circle(self._surface, colour, scaled, radius * _SHARPNESS)

    def ellipse(self, half: Point, colour: Colour, width: float = 0) -> None:
        rect = self._scale((_CENTRE[0] - half[0], _CENTRE[1] - half[1], 2 * half[0], 2 * half[1]))
        self._pygame.draw.ellipse(self._surface, colour, rect, round(width * _SHARPNESS))

    def box(self, rect: tuple[float, ...], colour: Colour, radius: float = 8, width: float = 0) -> None:
        self._pygame.draw.rect(
            self._surface, colour, self._scale(rect), round(width * _SHARPNESS), round(radius * _SHARPNESS)
        )

    def line(self, start: Point, end: Point, colour: Colour, width: float = 1) -> None:
        ends = [(x * _SHARPNESS, y * _SHARPNESS) for x, y in (start, end)]
        self._pygame.draw.line(self._surface, colour, *ends, round(width * _SHARPNESS))

    def text(self, words: str, place: Point, size: int, colour: Colour = _WHITE, anchor: str = "midleft") -> float:
        """Write words; where they end."""
        if size not in self._fonts:
            self._fonts[size] = self._pygame.font.Font(None, size * _SHARPNESS)
        image = self._fonts[size].render(words, True, colour)
        rect = image.get_rect(**{anchor: (round(place[0] * _SHARPNESS), round(place[1] * _SHARPNESS))})
        self._surface.blit(image, rect)
        return rect.right / _SHARPNESS

    def suit(self, suit: int, centre: Point, size: float, colour: Colour | None = None) -> None:
        """A club, diamond, heart or spade as high as `size`."""
        colour = colour or _SUIT_COLOURS[suit]
        x, y = centre
        half = size / 2
        if suit == 1:
            self.polygon(_place(_DIAMOND, centre, half), colour)
        elif suit == 2:
            self.polygon(_place(_HEART, centre, half), colour)
        else:
            if suit == 3:
                self.polygon(_place(_SPADE, centre, half), colour)
            else:
                for left, up in ((0, -0.5), (-0.5, 0.16), (0.5, 0.16)):
                    self.circle((x + left * half, y + up * half), 0.47 * half, colour)
                self.circle((x, y), 0.3 * half, colour)
            self.polygon(_place(_STEM, centre, half), colour)

    def card(self, corner: Point, card: int | None, size: Point = _CARD, is_marked: bool = False) -> None:
        """A card, or the back of one for None, by its upper left corner."""
        x, y = corner
        width, height = size
        unit = height / _CARD[1]
        if is_marked:
            self.box((x - 4, y - 4, width + 8, height + 8), _GOLD, 10 * unit)
        self.box((x - 1, y - 1, width + 2, height + 2), _DARK, 7 * unit)
        self.box((x, y, width, height), _WHITE, 6 * unit)
        if card is None:
            self._card_back(x + 4, y + 4, width - 8, height - 8)
            return
        suit, rank = divmod(card, NUM_RANKS)
        name = RANKS[rank].replace("T", "10")
        self.text(name, (x + 14 * unit, y + 15 * unit), round(23 * unit + 1), _SUIT_COLOURS[suit], "center")
        self.suit(suit, (x + 14 * unit, y + 34 * unit), 15 * unit)
        self.suit(suit, (x + width - 18 * unit, y + height - 30 * unit), 30 * unit)

    def chip(self, card: int, place: Point) -> None:
        """A card as a small label, by the middle of its left edge."""
        x, y = place
        suit, rank = divmod(card, NUM_RANKS)
        self.box((x, y - 14, 52, 28), _WHITE, 6)
        self.text(RANKS[rank].replace("T", "10"), (x + 17, y + 0.5), 24, _SUIT_COLOURS[suit], "center")
        self.suit(suit, (x + 37, y), 18)

    def _card_back(self, x: float, y: float, width: float, height: float) -> None:
        self.box((x, y, width, height), _BACK, 4)
        step = width / 4
        for row in range(round(height / step)):
            for column in range(4):
                centre = (x + (column + 0.5) * step, y + (row + 0.5) * height / round(height / step))
                self.polygon(_place(_DIAMOND, centre, step * 0.42), _BACK_LINE)

    def _scale(self, rect: tuple[float, ...]) -> tuple[int, ...]:
        return tuple(round(value * _SHARPNESS) for value in rect)


def _place(shape: list[Point], centre: Point, half: float) -> list[Point]:
    return [(centre[0] + x * half, centre[1] + y * half) for x, y in shape]


def _curve_heart() -> list[Point]:
    """A heart from -1 to 1, point down."""
    points = []
    for step in range(72):
        a = 2 * math.pi * step / 72
        up = 13 * math.cos(a) - 5 * math.cos(2 * a) - 2 * math.cos(3 * a) - math.cos(4 * a)
        points.append((math.sin(a) ** 3 * 0.98, -(up + 2.5) / 14.5))
    return points


# Shapes of suits about (0, 0), y downwards, from -1 to 1.
_DIAMOND: list[Point] = [
    (0, -1),
    (0.34, -0.44),
    (0.74, 0),
    (0.34, 0.44),
    (0, 1),
    (-0.34, 0.44),
    (-0.74, 0),
    (-0.34, -0.44),
]
_HEART = _curve_heart()
_SPADE = [(x * 0.92, -y * 0.84 - 0.16) for x, y in _HEART]
_STEM: list[Point] = [(-0.07, 0), (0.07, 0), (0.14, 0.6), (0.42, 1), (-0.42, 1), (-0.14, 0.6)]


def draw_scene(pygame: Any, scene: Scene) -> Any:
    """A scene as a pygame surface of `SIZE`."""
    brush = _Brush(pygame)
    _draw_felt(brush)
    _draw_title(brush, scene)
    _draw_last_trick(brush, scene)
    _draw_status(brush, scene)
    for seat in range(scene.rules.num_players):
        _draw_seat(brush, scene, seat)
    if scene.is_over:
        _draw_result(brush, scene)
    else:
        _draw_middle(brush, scene)
    return brush.finish()


def _find_place(scene: Scene, seat: int, half: Point) -> Point:
    """Where a seat is on an ellipse about the centre: the viewer at the bottom, clockwise from there."""
    first = scene.viewer if scene.viewer != NOBODY else 0
    angle = math.pi / 2 + 2 * math.pi * (seat - first) / scene.rules.num_players
    return _CENTRE[0] + half[0] * math.cos(angle), _CENTRE[1] + half[1] * math.sin(angle)


def _colour_of(scene: Scene, side: int) -> Colour:
    return _TEAMS[side] if scene.rules.teams and side != NOBODY else _WHITE


def _draw_felt(brush: _Brush) -> None:
    for wider, colour in ((26, _RIM_EDGE), (22, _RIM), (4, _RIM_EDGE), (0, _FELT)):
        brush.ellipse((424 + wider, 286 + wider), colour)
    brush.ellipse((404, 266), _FELT_LINE, 2)


def _draw_title(brush: _Brush, scene: Scene) -> None:
    """Top left what is played, top right the scores of teams."""
    brush.text("Pitch", (_MARGIN, 38), 44, _GOLD)
    brush.text(f"hand {scene.hand_number}, target {scene.rules.target}", (_MARGIN, 72), 23)
    extras = [words for words in describe_rules(scene.rules).split(", ") if not words.startswith(("players", "target"))]
    for index, words in enumerate(words for words in extras if words):
        brush.text(words, (_MARGIN, 98 + 21 * index), 20, _GREY)
    if scene.rules.teams:
        for side, score in enumerate(scene.scores):
            y = 38 + 40 * side
            brush.text(describe_side(scene, side), (SIZE[0] - 84, y), 26, _TEAMS[side], "midright")
            brush.text(str(score), (SIZE[0] - _MARGIN, y), 38, _TEAMS[side], "midright")


def _draw_last_trick(brush: _Brush, scene: Scene) -> None:
    """Bottom left, once it is no longer in the middle."""
    full = [trick for trick in scene.tricks if scene.is_full(trick)]
    if not full or (scene.tricks[-1] is full[-1] and not scene.is_over):
        return
    trick = full[-1]
    brush.text(f"trick {len(full)}: seat {trick.winner} won", (_MARGIN, 648), 20, _GREY)
    for place, card in enumerate(trick.cards):
        seat = (trick.leader + place) % scene.rules.num_players
        x = _MARGIN + 4 + place * (_CORNER_CARD[0] + 8)
        brush.card((x, 667), card, _CORNER_CARD, seat == trick.winner)
        brush.text(str(seat), (x + _CORNER_CARD[0] / 2, 738), 19, _GREY, "center")


def _draw_status(brush: _Brush, scene: Scene) -> None:
    """Bottom right: whose turn it is."""
    status = describe_status(scene)
    colour = _GOLD if scene.phase == MATCH_OVER or not scene.is_over else _WHITE
    right = SIZE[0] - _MARGIN
    brush.text(status[0].upper() + status[1:], (right, 728), 32, colour, "midright")
    if not scene.is_over:
        number = min(len(scene.tricks) + (not scene.tricks or scene.is_full(scene.tricks[-1])), scene.rules.hand_size)
        where = "auction" if scene.phase == AUCTION else f"trick {number} of {scene.rules.hand_size}"
        brush.text(where, (right, 699), 20, _GREY, "midright")


def _draw_seat(brush: _Brush, scene: Scene, seat: int) -> None:
    """A seat's cards over its plate with name, bid, tricks and score."""
    x, y = _find_place(scene, seat, _SEATS)
    width, height = _PLATE
    overlap = 10
    left, top = x - width / 2, y + (_CARD[1] + height - overlap) / 2 - height
    cards = [*scene.hands[seat], *[None] * scene.hidden[seat]]
    start = x - (_CARD[0] + _FAN * (len(cards) - 1)) / 2
    for index, card in enumerate(cards):
        brush.card((start + index * _FAN, top + overlap - _CARD[1]), card)

    side = scene.rules.side(seat)
    brush.box((left - 1, top - 1, width + 2, height + 2), _GREY if seat != scene.seat else _GOLD, 11)
    inset = 1 if seat != scene.seat else 3
    brush.box((left + inset - 1, top + inset - 1, width + 2 - 2 * inset, height + 2 - 2 * inset), _DARK, 10)
    if scene.rules.teams:
        brush.box((left + 7, top + 9, 4, height - 18), _TEAMS[side], 2)
    name_end = brush.text(f"Seat {seat}", (left + 18, top + 17), 25, _colour_of(scene, side))
    if seat == scene.viewer:
        name_end = brush.text("you", (name_end + 7, top + 18), 19, _GREY)
    if seat == scene.dealer:
        brush.circle((name_end + 19, top + 16), 10, _WHITE)
        brush.text("D", (name_end + 19.5, top + 16.5), 19, _DARK, "center")
    _draw_plate_line(brush, scene, seat, (left + 18, top + 38))
    right = left + width - 14
    change = scene.deltas[side] if scene.is_over else 0
    line = top + height / 2 - 7 * bool(change)
    brush.text(str(scene.scores[side]), (right, line), 38, _colour_of(scene, side), "midright")
    if change:
        brush.text(f"{change:+d}", (right, top + 40), 20, _GOOD if change > 0 else _BAD, "midright")
    if seat == scene.seat:  # a gold arrow at the turn
        brush.polygon([(left - 15, top + 13), (left - 4, top + 26), (left - 15, top + 39)], _GOLD)


def _draw_plate_line(brush: _Brush, scene: Scene, seat: int, place: Point) -> None:
    bid = describe_bid(scene, seat)
    is_pitcher = seat == scene.pitcher
    end = brush.text(bid, place, 20, _GOLD if is_pitcher else _GREY)
    tricks = scene.count_tricks(seat)
    if tricks:
        x = end + 9 if bid else place[0]
        brush.text(f"{tricks} trick{'s' * (tricks != 1)}", (x, place[1]), 20, _WHITE)


def _draw_middle(brush: _Brush, scene: Scene) -> None:
    """The trick on the table about the contract and trump."""
    x, y = _CENTRE
    if scene.pitcher == NOBODY:
        brush.text("no bid so far", (x, y), 26, _GREY, "center")
    else:
        verb = "bids" if scene.phase == AUCTION else "pitches"
        line = y if scene.trump == NOT_YET else y + 34
        brush.text(f"Seat {scene.pitcher} {verb} {scene.bid}", (x, line), 26, _WHITE, "center")
    if scene.trump != NOT_YET:
        brush.circle((x, y - 14), 30, _WHITE)
        brush.suit(scene.trump, (x, y - 14), 38)
    if not scene.tricks:
        return
    trick = scene.tricks[-1]
    for place, card in enumerate(trick.cards):
        seat = (trick.leader + place) % scene.rules.num_players
        spot = _find_place(scene, seat, _TRICK)
        brush.card((spot[0] - _CARD[0] / 2, spot[1] - _CARD[1] / 2), card, is_marked=seat == trick.winner)


def _draw_result(brush: _Brush, scene: Scene) -> None:
    """The points of a hand that is over."""
    x, y = _CENTRE
    width, height = 460, 226
    left, top = x - width / 2, y - height / 2
    brush.box((left - 2, top - 2, width + 4, height + 4), _GOLD, 14)
    brush.box((left, top, width, height), _DARK, 12)
    word, reason = describe_verdict(scene)
    end = brush.text(word, (left + 24, top + 32), 36, _GOOD if word == "Made" else _BAD)
    brush.text(reason, (end + 12, top + 34), 23)
    brush.line((left + 22, top + 58), (left + width - 22, top + 58), _GREY)
    for index, (name, who, card, note) in enumerate(describe_points(scene)):
        line = top + 84 + 38 * index
        brush.text(name, (left + 24, line), 24, _GOLD)
        brush.text(who, (left + 96, line), 24, _colour_of(scene, scene.points[index]))
        if card is not None:
            brush.chip(card, (left + 196, line))
        brush.text(note, (left + (196 if card is None else 260), line), 20, _GREY)
