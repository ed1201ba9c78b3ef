import io

import pytest
from rich.console import Console

import agents
from agents.arena import play_duplicate
from agents.training.panel import Panel, show_results

FACTS = {"charts/SPS": 54_321.0, "losses/entropy": 0.5, "game/made_rate": 0.75}


def watch(is_terminal: bool) -> str:
    """What a person sees of a run of three updates and one evaluation."""
    out = io.StringIO()
    panel = Panel(300, Console(file=out, force_terminal=is_terminal, width=150))
    results = [play_duplicate(agents.load("baby"), agents.load("passive"), num_deals=10, num_matches=4)]
    with panel:
        panel.print("resumed at 0 decisions")
        panel.advance(100, FACTS)
        panel.show_margins(results)
        panel.advance(200, FACTS)
        panel.advance(300, FACTS)
    show_results(results, panel.console)
    return out.getvalue()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_run_can_be_watched(is_terminal):
    shown = watch(is_terminal)
    for part in (
        "resumed at 0 decisions",
        "300 of 300 decisions",
        "54,321/s",
        "ahead of passive",
        "share of matches won",
    ):
        assert part in shown, part


def test_plain_lines_have_no_control_characters():
    assert "\x1b" not in watch(is_terminal=False)
    assert "\x1b" in watch(is_terminal=True)
