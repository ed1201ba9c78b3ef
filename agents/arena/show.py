"""Leagues and ladders as text: tables on a terminal, plain columns elsewhere."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agents.arena.ladder import compare
from agents.arena.match import Result


def show_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> None:
    """Rows of texts under a header, the first column to the left, the others to the right."""
    if console.is_terminal:
        table = Table(title=escape(title), title_justify="left")
        for index, name in enumerate(header):
            table.add_column(escape(name), justify="right" if index else "left", overflow="fold")
        for row in rows:
            table.add_row(*map(escape, row))
        console.print(table)
        return
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    print(title)
    for row in (header, *rows):
        cells = [
            text.rjust(width) if index else text.ljust(width)
            for index, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
    print()


def _format(found: dict[str, Any], pattern: str, *place: int) -> str:
    """A value with its interval, or with half the width of it where it lies in the middle."""
    value, low, high = (found[word] for word in ("value", "low", "high"))
    for index in place:
        value, low, high = value[index], low[index], high[index]
    if abs(low + high - 2 * value) > 1e-9:
        return f"{value:{pattern}} ({low:{pattern}} to {high:{pattern}})"
    return f"{value:{pattern}} ±{(high - low) / 2:{pattern.lstrip('+')}}"


def show_league(found: dict[str, Any], console: Console) -> None:
    """Everything that `League.to_dict` gives."""
    names = found["names"]
    numbers = range(len(names))
    equal = found["equal_share"]
    texts = (
        ("points", "+.3f", "Points a hand, row among copies of column, ± 95 %"),
        ("wins", ".1%", f"Matches won, row among copies of column, ± 95 %; an equal wins {equal:.1%}"),
    )
    for word, pattern, title in texts:
        pairs = found["pairs"][word]
        if pairs is not None:
            rows = [[names[i], *("·" if i == j else _format(pairs, pattern, i, j) for j in numbers)] for i in numbers]
            show_table(title, ["", *names], rows, console)
    header, columns = [""], [list(names)]
    for word, pattern, _ in texts:
        mixed = found["mixed"][word]
        if mixed is not None:
            header.append({"points": "points a hand", "wins": "matches won"}[word])
            columns.append([_format(mixed, pattern, i) for i in numbers])
    ratings = found["ratings"]
    if ratings is not None:
        header.append(f"Elo of {ratings['of']}")
        columns.append(
            [f"{ratings['elo'][i]:+.0f} ±{(ratings['high'][i] - ratings['low'][i]) / 2:.0f}" for i in numbers]
        )
        if ratings["openskill"] is not None:
            header.append("OpenSkill ±2σ")
            mu, sigma = ratings["openskill"]["mu"], ratings["openskill"]["sigma"]
            columns.append([f"{mu[i]:.2f} ±{2 * sigma[i]:.2f}" for i in numbers])
    if found["mixed"]["bids"] is not None:
        header += ["pass/1/2/3/4", "made"]
        bids = found["mixed"]["bids"]
        columns.append(["/".join(f"{100 * share:.0f}" for share in one["bids"]) + " %" for one in bids])
        columns.append(["none" if one["made_rate"] is None else f"{one['made_rate']:.1%}" for one in bids])
    if len(header) > 1:
        show_table("At mixed tables, ± 95 %", header, list(zip(*columns, strict=True)), console)
    _show_game(found, console)
    if ratings is not None and ratings["openskill"] is None:
        console.print("OpenSkill ratings need the package: pip install 'pitch-env[arena]'", markup=False)


def _show_game(found: dict[str, Any], console: Console) -> None:
    header, columns, notes = [""], [found["names"]], []
    for word, pattern in (("points", "+.3f"), ("wins", "+.1%")):
        game = found["game"][word]
        if game is None:
            continue
        header += [f"Nash mix, {word}", "95 %", "against it", "transitive"]
        columns.append([f"{share:.1%}" for share in game["nash"]])
        ends = zip(game["nash_low"], game["nash_high"], strict=True)
        columns.append([f"{low:.0%} to {high:.0%}" for low, high in ends])
        columns.append([f"{round(value, 6) + 0.0:{pattern}}" for value in game["skill"]])
        columns.append([f"{value:{pattern}}" for value in game["ratings"]])
        notes.append(f"{game['cyclic_share']:.1%} by {word} ({game['cyclic_corrected']:.1%} corrected for chance)")
    if notes:
        title = "The pool as a game; cyclic share of the squared margins " + ", ".join(notes)
        show_table(title, header, list(zip(*columns, strict=True)), console)


def show_ladder(found: dict[str, Any], console: Console) -> None:
    """Where an agent stands: a line for each rung, and in words; of what `ladder.to_dict` gives."""
    results = [Result.from_dict(values) for values in found["rungs"]]
    rows = []
    for one in results:
        points = wins = "not measured"
        if one.margin is not None:
            points = f"{one.margin:+.3f} ({one.low:+.3f} to {one.high:+.3f})"
        if one.match_share is not None:
            wins = f"{one.match_share:.1%} ({one.match_low:.1%} to {one.match_high:.1%})"
        places = [place or "" for place in compare(one)]
        rows.append([one.opponent, points, places[0], wins, places[1], f"{one.deals:,}", f"{one.matches:,}"])
    title = f"{found['agent']} among copies of each rung; an equal wins {results[0].equal_share:.1%}"
    header = ["rung", "points a hand (95 %)", "", "matches won (95 %)", "", "deals", "matches"]
    show_table(title, header, rows, console)
    if found["left_out"]:
        console.print(f"left out, for they were trained for other rules: {', '.join(found['left_out'])}", markup=False)
    for word, standing in found["standing"].items():
        if standing is not None:
            parts = [
                f"{place}{' with' * (place == 'level')} {', '.join(names)}"
                for place, names in standing.items()
                if names
            ]
            console.print(f"{word}: {'; '.join(parts)}", markup=False, highlight=False, soft_wrap=True)
