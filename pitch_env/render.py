"""A table or a view for a person to look at: as text, as a picture, in a window.

All three show the same `Scene`. Nothing that a view hides can be shown, since it is not in the view. Pictures and
windows need pygame, which is imported only when they are asked for.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from pitch_env.cards import JACK, NUM_RANKS, RANKS, SUIT_SYMBOLS, TRICK_POINTS, cards_of
from pitch_env.rules import Rules
from pitch_env.table import AUCTION, HAND_OVER, MATCH_OVER, NOBODY, NOT_YET, read_rules

RENDER_FPS = 2  # tables a window shows per second, so that a person can follow

_EVENTS_PER_SECOND = 30
_SUIT_WORDS = ("clubs", "diamonds", "hearts", "spades")
_CARD_BACK = "??"
_TO_COME = "··"
_POINT_NAMES = ("High", "Low", "Jack", "Game")


@dataclass(frozen=True)
class Trick:
    """A trick: its leader, its cards in the order played, and who wins it (so far)."""

    leader: int
    cards: tuple[int, ...]
    winner: int


@dataclass(frozen=True)
class Scene:
    """What there is to show of a table or a view, in plain numbers."""

    rules: Rules
    phase: int
    viewer: int
    hand_number: int  # 1 for the first of the match
    dealer: int
    seat: int  # to act
    pitcher: int
    bid: int
    trump: int
    bids: tuple[int, ...]  # per seat
    hands: tuple[tuple[int, ...], ...]  # per seat: the cards that are known
    hidden: tuple[int, ...]  # per seat: how many more it holds
    tricks: tuple[Trick, ...]  # the last one may be in progress
    trick_points: tuple[int, ...]  # per side: captured so far
    scores: tuple[int, ...]  # per side
    deltas: tuple[int, ...]  # per side: score change of the hand that is over
    points: tuple[int, ...]  # side that won High, Low, Jack, Game of it
    winner: int

    @property
    def is_over(self) -> bool:
        """Whether the hand is over."""
        return self.phase in (HAND_OVER, MATCH_OVER)

    @property
    def bidding_order(self) -> list[int]:
        """The seats from the dealer's left to the dealer (R4)."""
        return [(self.dealer + turn) % len(self.bids) for turn in range(1, len(self.bids) + 1)]

    def is_full(self, trick: Trick) -> bool:
        """Whether each player has played to a trick."""
        return len(trick.cards) == self.rules.num_players

    def count_tricks(self, seat: int) -> int:
        """Tricks a seat has won."""
        return sum(trick.winner == seat for trick in self.tricks if self.is_full(trick))


def read_scene(table: np.ndarray) -> Scene:
    """The scene of a table or a view, (1,).

    Raises:
        ValueError: if there is not exactly one table.
    """
    if np.size(table) != 1:
        raise ValueError(f"one table is shown at a time, array (1,), not {np.size(table)}")
    t = np.reshape(table, -1)[0]
    rules = read_rules(t)
    num_players, num_sides = rules.num_players, rules.num_sides
    seats = range(num_players)
    dealt = [int(t["dealt"][seat]) for seat in seats]
    captured = [sum(TRICK_POINTS[card % NUM_RANKS] for card in cards_of(t["captured"][seat])) for seat in seats]
    plays = [int(card) for card in t["plays"][: t["num_plays"]]]
    tricks = [
        Trick(int(leader), tuple(plays[start : start + num_players]), int(winner))
        for start, leader, winner in zip(range(0, len(plays), num_players), t["leaders"], t["winners"], strict=False)
    ]

    def read(name: str, length: int) -> tuple[int, ...]:
        return tuple(int(value) for value in t[name][:length])

    return Scene(
        rules=rules,
        hand_number=int(t["num_hands"]) + (t["phase"] not in (HAND_OVER, MATCH_OVER)),
        bids=read("bids", num_players),
        hands=tuple(tuple(cards_of(cards & ~int(t["played"]))) for cards in dealt),
        hidden=tuple(rules.hand_size - cards.bit_count() for cards in dealt),
        tricks=tuple(tricks),
        trick_points=tuple(sum(captured[side::num_sides]) for side in range(num_sides)),
        scores=read("scores", num_sides),
        deltas=read("deltas", num_sides),
        points=read("points", len(_POINT_NAMES)),
        **{name: int(t[name]) for name in ("phase", "viewer", "dealer", "seat", "pitcher", "bid", "trump", "winner")},
    )


def write_card(card: int) -> str:
    """A card with its symbol: ``"A♠"``."""
    return RANKS[card % NUM_RANKS] + SUIT_SYMBOLS[card // NUM_RANKS]


def describe_rules(rules: Rules) -> str:
    """The rules that are not the default ones, in one line; empty when all are."""
    words = []
    usual = Rules().to_dict()
    for name, value in rules.to_dict().items():
        if value != usual[name]:
            text = name.removeprefix("num_").replace("_", " ")
            words.append({True: text, False: f"no {text}"}[value] if isinstance(value, bool) else f"{text} {value}")
    return ", ".join(words)


def describe_side(scene: Scene, side: int) -> str:
    """The name of a side: a seat, or a team by its seats."""
    if side == NOBODY:
        return "nobody"
    return f"team {side}+{side + scene.rules.num_sides}" if scene.rules.teams else f"seat {side}"


def describe_bid(scene: Scene, seat: int) -> str:
    """What a seat did in the auction: ``"pass"``, ``"bid 2"``, ``"steal 2"``, or nothing so far."""
    bid = scene.bids[seat]
    if bid == NOT_YET:
        return ""
    if bid == 0:
        return "pass"
    is_stolen = seat == scene.dealer and bid in scene.bids[:seat] + scene.bids[seat + 1 :]  # R5, R7
    return f"{'steal' if is_stolen else 'bid'} {bid}"


def describe_status(scene: Scene) -> str:
    """Whose turn it is, or how the hand or the match ended."""
    if scene.phase == MATCH_OVER:
        who = describe_side(scene, scene.winner)
        return f"{who} wins the match" if scene.winner != NOBODY else "cut off without a winner"
    if scene.phase == HAND_OVER:
        return "the hand is over"
    return f"seat {scene.seat} to {'bid' if scene.phase == AUCTION else 'play'}"


def describe_verdict(scene: Scene) -> tuple[str, str]:
    """Whether the contract of a hand that is over was made: ``("Made", "seat 3 bid 2, won 3")``."""
    side = scene.pitcher % scene.rules.num_sides
    won = scene.points.count(side)
    winners = f"{describe_side(scene, side)} " if scene.rules.teams else ""
    return "Made" if won >= scene.bid else "Set", f"seat {scene.pitcher} bid {scene.bid}, {winners}won {won}"


def describe_points(scene: Scene) -> list[tuple[str, str, int | None, str]]:
    """The points of a hand that is over: each its name, who won it, with which card, and a note."""
    trumps = [card for trick in scene.tricks for card in trick.cards if card // NUM_RANKS == scene.trump]
    jack = scene.trump * NUM_RANKS + JACK
    totals = "-".join(str(total) for total in scene.trick_points)
    cards = (max(trumps), min(trumps), jack, None)
    notes = (
        "",
        "",
        "not in play" if scene.points[2] == NOBODY else "",
        f"trick points {totals}" + (", a tie" if scene.points[3] == NOBODY else ""),
    )
    names = [describe_side(scene, side) for side in scene.points]
    return list(zip(_POINT_NAMES, names, cards, notes, strict=True))


def render_text(table: np.ndarray) -> str:
    """A table or a view, (1,), as lines of text; hidden cards are shown as ``??``."""
    scene = read_scene(table)
    rules_line = describe_rules(scene.rules)
    lines = [("Rules", rules_line)] if rules_line else []
    lines += [
        ("Hand", f"{scene.hand_number}, dealt by seat {scene.dealer}"),
        ("Score", f"{_align_by_side(scene, scene.scores, '3d')}   (target {scene.rules.target})"),
        ("Auction", _write_auction(scene)),
    ]
    if scene.phase != AUCTION:
        symbol = f"{SUIT_SYMBOLS[scene.trump]} {_SUIT_WORDS[scene.trump]}" if scene.trump != NOT_YET else "not yet set"
        lines.append(("Contract", f"seat {scene.pitcher} pitches for {scene.bid}, trump {symbol}"))
    text = [f"{label:<10}{content}" for label, content in lines]
    if scene.tricks:
        text += ["", *(_write_trick(scene, number) for number in range(1, len(scene.tricks) + 1))]
    if scene.is_over:
        points = describe_points(scene)
        widest = max(len(who) for _, who, _, _ in points)
        text.append("")
        for name, who, card, note in points:
            remark = " ".join(words for words in (write_card(card) if card is not None else "", note) if words)
            text.append(f"{name:<10}{who:<{widest}}  ({remark})")
        verdict, reason = describe_verdict(scene)
        text.append(f"{verdict:<10}{reason}")
        text.append(f"{'Change':<10}{_align_by_side(scene, scene.deltas, '+3d')}")
    else:
        text += ["", *(_write_hand(scene, seat) for seat in range(scene.rules.num_players))]
    status = describe_status(scene)
    return "\n".join([*text, "", f"{status[0].upper()}{status[1:]}."])


def _align_by_side(scene: Scene, numbers: tuple[int, ...], form: str) -> str:
    return "   ".join(f"{describe_side(scene, side)} {number:{form}}" for side, number in enumerate(numbers))


def _write_auction(scene: Scene) -> str:
    bids = [(seat, describe_bid(scene, seat)) for seat in scene.bidding_order]
    return ", ".join(f"seat {seat} {bid}" for seat, bid in bids if bid) or "no bid so far"


def _write_trick(scene: Scene, number: int) -> str:
    trick = scene.tricks[number - 1]
    cards = [write_card(card) for card in trick.cards] + [_TO_COME] * (scene.rules.num_players - len(trick.cards))
    verb = "wins" if scene.is_full(trick) else "is winning"
    return f"{f'Trick {number}':<10}seat {trick.leader} leads  {' '.join(cards)}  seat {trick.winner} {verb}"


def _write_hand(scene: Scene, seat: int) -> str:
    cards = [write_card(card) for card in scene.hands[seat]] + [_CARD_BACK] * scene.hidden[seat]
    notes = [word for word, is_so in (("you", seat == scene.viewer), ("dealer", seat == scene.dealer)) if is_so]
    num_tricks = scene.count_tricks(seat)
    taken = f"{num_tricks} trick{'s' * (num_tricks != 1)}" if num_tricks else ""
    name = f"seat {seat}" + (f" ({', '.join(notes)})" if notes else "")
    width = 3 * scene.rules.hand_size + 1
    return f"{'>' if seat == scene.seat else ' '} {name:<22}{' '.join(cards):<{width}}{taken}".rstrip()


def render_rgb(table: np.ndarray) -> np.ndarray:
    """A table or a view, (1,), drawn: uint8 (height, width, 3). Needs pygame, but no display.

    Raises:
        gymnasium.error.DependencyNotInstalled: without pygame.
    """
    pygame = _import_pygame()
    from pitch_env.picture import draw_scene

    pixels = pygame.surfarray.pixels3d(draw_scene(pygame, read_scene(table)))
    return np.ascontiguousarray(pixels.swapaxes(0, 1))


class Window:
    """A window that shows tables, at most `fps` a second; once its user has closed it, it stays closed.

    Raises:
        gymnasium.error.DependencyNotInstalled: without pygame.
    """

    def __init__(self, fps: float = RENDER_FPS, title: str = "Pitch") -> None:
        if not fps > 0:
            raise ValueError(f"fps takes a number above 0, not {fps!r}")
        self.fps = fps
        self.title = title
        self.is_dismissed = False  # closed by its user
        self._pygame = _import_pygame()
        self._screen: Any = None
        self._clock = self._pygame.time.Clock()

    def show(self, table: np.ndarray) -> None:
        """Show a table or a view, (1,), when the one before has been seen long enough."""
        from pitch_env.picture import SIZE, draw_scene

        pygame = self._pygame
        if self.is_dismissed:
            return
        if self._screen is None or not pygame.display.get_init():
            pygame.display.init()
            self._screen = pygame.display.set_mode(SIZE)
            pygame.display.set_caption(self.title)
            self._clock.tick()
        else:
            self._wait()
        if self.is_dismissed:
            return
        self._screen.blit(draw_scene(pygame, read_scene(table)), (0, 0))
        pygame.display.flip()
        self._handle_events()

    def close(self) -> None:
        """Close the window; showing a table opens it again."""
        if self._screen is not None:
            self._screen = None
            self._pygame.display.quit()

    def _wait(self) -> None:
        """Let the time of a frame pass since the last one, while the window stays alive."""
        passed = self._clock.tick()
        while passed < 1000 / self.fps and not self.is_dismissed:
            self._handle_events()
            passed += self._clock.tick(_EVENTS_PER_SECOND)

    def _handle_events(self) -> None:
        if any(event.type == self._pygame.QUIT for event in self._pygame.event.get()):
            self.is_dismissed = True
            self.close()


def _import_pygame() -> Any:
    """pygame, without its greeting."""
    quiet = "PYGAME_HIDE_SUPPORT_PROMPT"
    was_set = quiet in os.environ
    os.environ.setdefault(quiet, "1")
    try:
        import pygame
    except ImportError as error:
        from gymnasium.error import DependencyNotInstalled

        raise DependencyNotInstalled('drawing a table needs pygame: pip install "pitch-env[render]"') from error
    finally:
        if not was_set:
            del os.environ[quiet]
    return pygame
