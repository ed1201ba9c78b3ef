import io

import pytest
from rich.console import Console

import agents
from agents.arena import play_duplicate
from agents.training.panel import Panel, describe_losses, describe_time, show_results

FACTS = {
    "charts/SPS": 54_321.0,
    "losses/policy_loss": -0.0125,
    "losses/value_loss": 0.25,
    "losses/entropy": 0.5,
    "losses/approx_kl": 0.004,
    "game/made_rate": 0.75,
    "time/update_share": 0.5,
    "time/inference_share": 0.3,
}


def watch(is_terminal: bool) -> str:
    """What a person sees of a run of three updates and one evaluation."""
    out = io.StringIO()
    panel = Panel(300, Console(file=out, force_terminal=is_terminal, width=150))
    results = [play_duplicate(agents.load("baby"), agents.load("passive"), num_deals=10, num_matches=4)]
    with panel:
        panel.print("resumed at 0 decisions")
        panel.advance(100, FACTS)
        panel.show_margins(results, {"baby": [0.5, 0.02], "step 2,000,000": [0.125, 0.01]}, "points a hand")
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
        "ahead of passive" if not is_terminal else "ahead of  passive",
        " ± ",
        "share of matches won",
    ):
        assert part in shown, part


def test_a_terminal_shows_where_time_goes_and_what_is_lost_and_won():
    shown = watch(is_terminal=True)
    for part in (
        "engine 20%, inference 30%, update 50%",
        "policy -0.0125, value 0.2500, entropy 0.5000, KL 0.0040",
        "points a hand: step 2,000,000 +0.12 ± 0.01, baby +0.50 ± 0.02",  # the hardest first
    ):
        assert part in shown, part


def test_facts_that_are_left_out_are_not_missed():
    assert describe_losses({}) == ""
    assert describe_time({}) == "engine 100%, inference 0%, update 0%"


def test_plain_lines_have_no_control_characters():
    assert "\x1b" not in watch(is_terminal=False)
    assert "\x1b" in watch(is_terminal=True)
