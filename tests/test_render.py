"""What a person sees: the facts are all there, and what is hidden is not."""

import itertools
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled

from pitch_env.cards import NUM_ACTIONS, SUIT_SYMBOLS, card_name, cards_of, mask_of
from pitch_env.engine import apply, legal_mask, new_tables, next_hand
from pitch_env.render import RENDER_FPS, Window, render_rgb, render_text
from pitch_env.rules import Rules
from pitch_env.table import AUCTION, HAND_OVER, MATCH_OVER, NOBODY, deck_mask
from pitch_env.view import view_table

GOLDEN = Path(__file__).parent / "data" / "render_hand.txt"
VARIANTS = [
    *(Rules(num_players=num_players) for num_players in range(2, 8)),
    Rules(teams=True, target=11, win_needs_made_bid=True, low_point="holder"),
    Rules(num_players=3, pitch_by_card=True, num_suits=2, num_ranks=5, hand_size=2, max_hands=3),
]


def name_variant(rules):
    return rules.describe_difference(Rules()) or "default"


def play_on(table, num_actions, seed=0):
    """Play at random, one hand after another."""
    chance = random.Random(seed)
    for _ in range(num_actions):
        if table["phase"][0] == MATCH_OVER:
            return
        if table["phase"][0] == HAND_OVER:
            next_hand(table)
        legal = legal_mask(table)
        apply(table, chance.choice([action for action in range(NUM_ACTIONS) if legal >> action & 1]))


def play_states(rules, seed=0):
    """Copies of a table in every state of its first hand."""
    table = new_tables(rules, seed)
    states = [table.copy()]
    while table["seat"][0] != NOBODY:
        play_on(table, 1, seed + len(states))
        states.append(table.copy())
    return states


def find_cards(text):
    """The names of the cards in a text with symbols."""
    return [name[0] + "CDHS"[SUIT_SYMBOLS.index(name[1])] for name in re.findall(f"[2-9TJQKA][{SUIT_SYMBOLS}]", text)]


def names_of(mask):
    return {card_name(card) for card in cards_of(mask)}


def exchange_hidden(table, viewer, seed=0):
    """The same table with other cards wherever the viewer cannot see."""
    other = table.copy()
    t = other[0]
    rules_deck = deck_mask(Rules(num_suits=int(t["num_suits"]), num_ranks=int(t["num_ranks"])))
    known = int(t["dealt"][viewer]) | int(t["played"])
    pool = cards_of(rules_deck & ~known)
    random.Random(seed).shuffle(pool)
    for seat in range(t["num_players"]):
        if seat != viewer:
            shown = int(t["dealt"][seat]) & int(t["played"])
            num_hidden = int(t["hand_size"]) - shown.bit_count()
            t["dealt"][seat] = shown | mask_of(pool[:num_hidden])
            del pool[:num_hidden]
    return other


def line_of(text, label):
    """What a line says after its label."""
    return next(line for line in text.splitlines() if line.startswith(label)).removeprefix(label).strip()


@pytest.mark.parametrize("rules", VARIANTS, ids=name_variant)
def test_text_states_the_facts(rules):
    for table in play_states(rules):
        t = table[0]
        text = render_text(table)
        assert all(sign == "\n" or sign.isprintable() for sign in text)
        assert all(len(line) <= 120 and line == line.rstrip() for line in text.splitlines())
        assert f"dealt by seat {t['dealer']}" in line_of(text, "Hand")
        assert f"target {rules.target}" in line_of(text, "Score")
        scores = re.findall(r"(?:seat \d|team \d\+\d) +(-?\d+)", line_of(text, "Score"))
        assert [int(score) for score in scores] == list(t["scores"][: rules.num_sides])
        for seat, bid in enumerate(t["bids"][: rules.num_players]):
            said = re.search(rf"seat {seat} (pass|(?:bid|steal) (\d))", line_of(text, "Auction"))
            assert (bid if said is None else int(said[2] or 0)) == bid
            assert (said is None) == (bid == -1)
        if t["phase"] in (HAND_OVER, MATCH_OVER):
            continue
        held = set().union(*(names_of(int(cards) & ~int(t["played"])) for cards in t["dealt"]))
        assert sorted(find_cards(text)) == sorted(held | names_of(t["played"]))
        assert "??" not in text
        assert text.endswith(f"Seat {t['seat']} to {'bid' if t['phase'] == AUCTION else 'play'}.")
        assert re.search(rf"^> seat {t['seat']}\b", text, re.MULTILINE)
        plays = [card_name(card) for card in t["plays"][: t["num_plays"]]]
        for number, start in enumerate(range(0, len(plays), rules.num_players)):
            line = line_of(text, f"Trick {number + 1}")
            assert line.startswith(f"seat {t['leaders'][number]} leads")
            assert find_cards(line) == plays[start : start + rules.num_players]
            assert re.search(rf"seat {t['winners'][number]} (wins|is winning)$", line)
        if plays:
            assert SUIT_SYMBOLS[t["trump"]] in line_of(text, "Contract")
            assert f"seat {t['pitcher']} pitches for {t['bid']}" in line_of(text, "Contract")


@pytest.mark.parametrize("rules", VARIANTS, ids=name_variant)
def test_text_settles_a_hand(rules):
    for seed in range(8):
        table = play_states(rules, seed)[-1]
        t = table[0]
        text = render_text(table)
        sides = ["team 0+2", "team 1+3"] if rules.teams else [f"seat {seat}" for seat in range(rules.num_players)]
        for name, side in zip(("High", "Low", "Jack", "Game"), t["points"], strict=True):
            assert line_of(text, name).startswith("nobody" if side == NOBODY else sides[side])
        side = t["pitcher"] % rules.num_sides
        is_made = t["deltas"][side] > 0
        assert line_of(text, "Made" if is_made else "Set").startswith(f"seat {t['pitcher']} bid {t['bid']}, ")
        assert ("\nMade" in text, "\nSet" in text) == (is_made, not is_made)
        changes = re.findall(r"[+-]\d+(?=$| {3})", line_of(text, "Change"))
        assert [int(change) for change in changes] == list(t["deltas"][: rules.num_sides])
        assert text.endswith("The hand is over.")


def test_text_shows_points_by_their_cards():
    text = render_text(play_states(Rules(), 5)[-1])
    played = [card for line in text.splitlines() if line.startswith("Trick") for card in find_cards(line)]
    trump = "CDHS"[SUIT_SYMBOLS.index(line_of(text, "Contract").split("trump ")[1][0])]
    trumps = sorted((card for card in played if card[1] == trump), key=lambda card: "23456789TJQKA".index(card[0]))
    assert find_cards(line_of(text, "High")) == [trumps[-1]]
    assert find_cards(line_of(text, "Low")) == [trumps[0]]
    assert ("not in play" in line_of(text, "Jack")) == (f"J{trump}" not in trumps)


def test_text_names_the_winner_or_says_there_is_none():
    table = new_tables(Rules(num_players=2, target=1), 3)
    play_on(table, 1000)
    assert render_text(table).endswith(f"Seat {table['winner'][0]} wins the match.")
    table = new_tables(Rules(teams=True, target=500, max_hands=2), 3)
    play_on(table, 1000)
    assert render_text(table).endswith("Cut off without a winner.")
    assert line_of(render_text(table), "Hand").startswith("2,")


def test_text_tells_only_unusual_rules():
    assert "Rules" not in render_text(new_tables(Rules(), 0))
    text = render_text(new_tables(Rules(teams=True, target=11, low_point="holder"), 0))
    assert line_of(text, "Rules") == "teams, target 11, low point holder"


def test_text_calls_a_steal_a_steal():
    table = new_tables(Rules(num_players=3), 0)
    dealer = table["dealer"][0]
    for bid in (0, 2, 2):
        apply(table, bid)
    assert line_of(render_text(table), "Auction").endswith(f"bid 2, seat {dealer} steal 2")


@pytest.mark.parametrize("rules", VARIANTS, ids=name_variant)
def test_view_shows_no_hidden_card(rules):
    for table in play_states(rules)[:-1]:
        t = table[0]
        for viewer in range(rules.num_players):
            text = render_text(view_table(table, viewer))
            own = names_of(int(t["dealt"][viewer]) & ~int(t["played"]))
            assert sorted(find_cards(text)) == sorted(own | names_of(t["played"]))
            hidden = set().union(*(names_of(cards) for cards in t["dealt"])) - own - names_of(t["played"])
            assert not hidden & set(re.findall(r"\b[2-9TJQKA][CDHS]\b", text))
            assert text.count("??") == len(hidden)
            assert f"seat {viewer} (you" in text


@pytest.mark.parametrize("rules", [Rules(num_players=2), Rules(teams=True), Rules(num_players=7)], ids=name_variant)
def test_view_does_not_depend_on_hidden_cards(rules):
    for table in play_states(rules)[:-1:5]:
        for viewer in (0, rules.num_players - 1):
            other = exchange_hidden(table, viewer)
            one, two = view_table(table, viewer), view_table(other, viewer)
            assert render_text(one) == render_text(two)
            assert np.array_equal(render_rgb(one), render_rgb(two))
    opened = play_states(rules)[0]
    assert not np.array_equal(render_rgb(opened), render_rgb(exchange_hidden(opened, 0)))


@pytest.mark.parametrize("rules", VARIANTS, ids=name_variant)
def test_picture_of_every_state(rules):
    pictures = [render_rgb(table) for table in play_states(rules)]
    for picture in pictures:
        assert picture.dtype == np.uint8
        assert picture.shape == (760, 1080, 3)
        assert picture.flags.c_contiguous
    for before, after in itertools.pairwise(pictures):
        assert not np.array_equal(before, after)


def test_picture_is_the_same_again_and_differs_by_seat():
    table = play_states(Rules())[8]
    assert np.array_equal(render_rgb(table), render_rgb(table))
    views = [render_rgb(view_table(table, seat)) for seat in range(4)]
    assert all(not np.array_equal(views[i], views[j]) for i in range(4) for j in range(i))


def test_picture_survives_quitting_pygame():
    pygame = pytest.importorskip("pygame")
    table = new_tables(Rules(), 0)
    before = render_rgb(table)
    pygame.quit()
    assert np.array_equal(render_rgb(table), before)


def test_showing_leaves_the_table_alone():
    table = play_states(Rules())[9]
    before = table.tobytes()
    render_text(table)
    render_rgb(table)
    assert table.tobytes() == before


def test_one_table_at_a_time():
    with pytest.raises(ValueError, match="one table"):
        render_text(new_tables(Rules(), 0, 2))


def test_window_shows_and_closes(monkeypatch):
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    table = new_tables(Rules(), 0)
    window = Window(fps=20)
    started = time.perf_counter()
    window.show(table)
    screen = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
    assert np.array_equal(screen, render_rgb(table))
    window.show(table)
    window.show(table)
    assert time.perf_counter() - started > 0.08  # two frames since the first picture, however busy the machine
    window.close()
    window.close()
    assert not pygame.display.get_init()
    window.show(table)
    assert pygame.display.get_init()
    window.close()


def test_window_stays_closed_when_its_user_closed_it(monkeypatch):
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    table = new_tables(Rules(), 0)
    window = Window()
    window.show(table)
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    window.show(table)
    window.show(table)
    assert window.is_dismissed
    assert not pygame.display.get_init()
    window.close()


def test_window_takes_a_sensible_pace():
    assert RENDER_FPS <= 2
    with pytest.raises(ValueError, match="fps"):
        Window(fps=0)


def test_missing_pygame_is_explained(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    table = new_tables(Rules(), 0)
    for ask in (lambda: render_rgb(table), Window):
        with pytest.raises(DependencyNotInstalled, match=re.escape('pip install "pitch-env[render]"')):
            ask()
    render_text(table)


def test_pygame_comes_late_and_quietly():
    code = """
import os, sys
import numpy as np
from pitch_env.render import render_rgb, render_text
from pitch_env.rules import Rules
from pitch_env.table import TABLE, write_rules
table = np.zeros(1, TABLE)
write_rules(table, Rules())
render_text(table)
assert "pygame" not in sys.modules
before = dict(os.environ)
render_rgb(table)
assert dict(os.environ) == before
import pygame
assert not pygame.display.get_init()
"""
    quiet = {name: value for name, value in os.environ.items() if not name.startswith(("PYGAME", "SDL", "DISPLAY"))}
    root = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code], env={**quiet, "PYTHONPATH": root}, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def show_hand():
    """One hand in five pictures of text, and one of them again as a player sees it."""
    table = new_tables(Rules(num_players=4, teams=True, target=11), 7)
    texts = [render_text(table)]
    stops = {2, 4, 14, 28}
    for step in range(1, 29):
        legal = [action for action in range(NUM_ACTIONS) if legal_mask(table) >> action & 1]
        apply(table, legal[7 * step % len(legal)] if step > 4 else legal[step % 2])
        if step in stops:
            texts.append(render_text(table))
        if step == 14:
            texts.append(render_text(view_table(table, 1)))
    return "\n\n-----\n\n".join(texts) + "\n"


def test_a_whole_hand_reads_as_kept():
    assert show_hand() == GOLDEN.read_text(encoding="utf-8")


if __name__ == "__main__":  # keep the hand anew after a wanted change
    GOLDEN.write_text(show_hand(), encoding="utf-8", newline="\n")
