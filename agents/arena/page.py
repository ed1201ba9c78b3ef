"""A league as one HTML page that needs nothing else: no script, no font, no picture from anywhere."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

_ABOVE, _BELOW = (33, 102, 172), (178, 88, 18)  # blue and brown, told apart by everyone
_BIDS = ("#d9d9d9", "#c6dbef", "#7fb3d8", "#3a7fb9", "#12497f")  # pass, 1 to 4
_WIDTH, _LEFT, _ROW = 760, 190, 26  # of a plot; its names; its lines
_LONGEST = 26  # characters of a name in a plot

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 70em; margin: 2em auto;
  padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
p { max-width: 46em; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; padding: .25em .6em; }
td { text-align: right; padding: .25em .6em; border: 1px solid #fff; }
.wide { overflow-x: auto; }
svg { display: block; max-width: 100%; height: auto; }
svg text { font: 13px system-ui, sans-serif; fill: #1a1a1a; }
svg .faint { fill: #666; }
"""

Row = tuple[str, float, float, float]


def _cell(text: str, hover: str, strength: float) -> str:
    """A cell, the more coloured the nearer the strength is to 1 or -1; by the root, so that small ones show."""
    mix = math.sqrt(min(1.0, abs(strength))) * 0.85
    colour = [round(255 + (end - 255) * mix) for end in (_ABOVE if strength > 0 else _BELOW)]
    ink = "#fff" if mix > 0.55 else "#1a1a1a"
    style = f"background: rgb({colour[0]}, {colour[1]}, {colour[2]}); color: {ink}"
    return f'<td style="{style}" title="{escape(hover)}">{escape(text)}</td>'


def draw_cross_table(names: Sequence[str], found: dict[str, Any], pattern: str, middle: float = 0.0) -> str:
    """Row among copies of column as a heat map around a middle value; the interval is shown on hover."""
    num = len(names)
    spread = max((abs(found["value"][i][j] - middle) for i in range(num) for j in range(num) if i != j), default=0)
    lines = ['<div class="wide"><table>', "<tr><th></th>"]
    lines += [f'<th scope="col">{escape(name)}</th>' for name in names]
    lines.append("</tr>")
    for i, name in enumerate(names):
        lines.append(f'<tr><th scope="row">{escape(name)}</th>')
        for j, other in enumerate(names):
            if i == j:
                lines.append("<td>·</td>")
                continue
            value, low, high = (found[word][i][j] for word in ("value", "low", "high"))
            hover = f"{name} among {other}: {value:{pattern}} (95 %: {low:{pattern}} to {high:{pattern}})"
            lines.append(_cell(f"{value:{pattern}}", hover, (value - middle) / spread if spread else 0.0))
        lines.append("</tr>")
    return "".join([*lines, "</table></div>"])


def find_ticks(low: float, high: float) -> list[float]:
    """Round numbers, about six, within a span."""
    span = high - low
    step = 10.0 ** math.floor(math.log10(span / 6))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= 7)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(index * step, 12) + 0.0 for index in range(first, last + 1)]


def _label(name: str, y: float) -> str:
    short = name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}"
    return f'<text x="{_LEFT - 10}" y="{y:.1f}" text-anchor="end"><title>{escape(name)}</title>{escape(short)}</text>'


def _frame(what: str, num_rows: int, parts: Sequence[str]) -> str:
    height = num_rows * _ROW + 34
    head = f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img"'
    return "\n".join([f'{head} aria-label="{escape(what)}">', *parts, "</svg>"])


def draw_intervals(what: str, rows: Sequence[Row], pattern: str, line: float | None = 0.0) -> str:
    """Values with error bars, one name below the other, and an upright line where it says."""
    ends = [end for _, value, low, high in rows for end in (value, low, high)]
    ends += [] if line is None else [line]
    low, high = min(ends), max(ends)
    pad = (high - low) * 0.05 or 1.0
    low, high = low - pad, high + pad
    bottom = len(rows) * _ROW + 6

    def place(value: float) -> float:
        return _LEFT + (value - low) / (high - low) * (_WIDTH - _LEFT - 30)

    parts = []
    for tick in find_ticks(low, high):
        x, text = place(tick), f"{100 * tick:g}%" if "%" in pattern else f"{tick:g}"
        parts.append(f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{bottom}" stroke="#e5e5e5"/>')
        parts.append(f'<text class="faint" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{text}</text>')
    if line is not None:
        parts.append(f'<line x1="{place(line):.1f}" y1="0" x2="{place(line):.1f}" y2="{bottom}" stroke="#888"/>')
    for index, (name, value, least, most) in enumerate(rows):
        y = index * _ROW + _ROW / 2 + 2
        hover = f"{name}: {value:{pattern}} (95 %: {least:{pattern}} to {most:{pattern}})"
        parts.append(_label(name, y + 4))
        parts.append(
            f"<g><title>{escape(hover)}</title>"
            f'<rect x="{place(least) - 4:.1f}" y="{y - 9:.1f}" width="{place(most) - place(least) + 8:.1f}" '
            'height="18" fill="#fff" fill-opacity="0"/>'
            f'<line x1="{place(least):.1f}" y1="{y:.1f}" x2="{place(most):.1f}" y2="{y:.1f}" '
            'stroke="#2166ac" stroke-width="2.5"/>'
            f'<circle cx="{place(value):.1f}" cy="{y:.1f}" r="4.5" fill="#2166ac"/></g>'
        )
    return _frame(what, len(rows), parts)


def draw_bids(names: Sequence[str], bids: Sequence[dict[str, Any]]) -> str:
    """Each agent's bids as one bar, with the share of contracts it made at the end."""
    width = _WIDTH - _LEFT - 130
    parts = []
    for index, (name, facts) in enumerate(zip(names, bids, strict=True)):
        y = index * _ROW + 4
        parts.append(_label(name, y + 14))
        x = float(_LEFT)
        for bid, share in enumerate(facts["bids"]):
            said = f"bid {bid}" if bid else "pass"
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{share * width:.1f}" height="18" fill="{_BIDS[bid]}">'
                f"<title>{escape(name)}: {said} {share:.1%}</title></rect>"
            )
            x += share * width
        rate = facts["made_rate"]
        text = "no contract" if rate is None else f"made {rate:.1%}"
        number = sum(facts["contracts"])
        parts.append(
            f'<text x="{_LEFT + width + 10}" y="{y + 14}"><title>{sum(facts["made"])} of {number} contracts</title>'
            f"{text}</text>"
        )
    y = len(names) * _ROW + 10
    for bid, colour in enumerate(_BIDS):
        x = _LEFT + bid * 70
        parts.append(f'<rect x="{x}" y="{y}" width="14" height="14" fill="{colour}"/>')
        parts.append(f'<text class="faint" x="{x + 20}" y="{y + 12}">{bid or "pass"}</text>')
    return _frame("bids of each agent", len(names), parts)


def _rank(names: Sequence[str], found: dict[str, Any]) -> list[Row]:
    """Rows of a plot, the highest first; equals in the order of the pool."""
    value = found.get("value", found.get("elo"))
    assert value is not None
    rows = [(names[i], value[i], found["low"][i], found["high"][i]) for i in range(len(names))]
    return sorted(rows, key=lambda row: -row[1])


def _draw_ratings(names: Sequence[str], ratings: dict[str, Any]) -> list[str]:
    basis = "who won the matches" if ratings["of"] == "matches" else "who scored most in the hands"
    parts = [
        "<h2>Ratings</h2>",
        f"<p>Elo points by maximum likelihood from {basis} at mixed tables; the mean of the pool is 0. Bars are 95 % "
        "intervals, with the games of one deal taken together. Ratings are numbers of this pool and hide who beats "
        "whom; the tables above do not.</p>",
        draw_intervals("Elo points", _rank(names, ratings), "+.0f"),
    ]
    skill = ratings["openskill"]
    if skill is not None:
        rows = [
            (name, mu, mu - 2 * sigma, mu + 2 * sigma) for name, mu, sigma in zip(names, *skill.values(), strict=True)
        ]
        rows.sort(key=lambda row: -row[1])
        parts.append(
            "<p>OpenSkill (Plackett-Luce) from the same games, two sigmas to each side. It takes the games one after "
            "another and as independent, so its bars follow its own rule and not the deals.</p>"
        )
        parts.append(draw_intervals("OpenSkill", rows, ".2f", line=None))
    return parts


def _draw_game(names: Sequence[str], word: str, game: dict[str, Any]) -> list[str]:
    rows = [(name, *ends) for name, *ends in zip(names, game["nash"], game["nash_low"], game["nash_high"], strict=True)]
    pattern = "+.3f" if word == "points" else "+.1%"
    facts = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{game["nash"][i]:.1%}</td>'
        f"<td>{round(game['skill'][i], 6) + 0.0:{pattern}}</td>"
        f"<td>{game['ratings'][i]:{pattern}}</td></tr>"
        for i, name in enumerate(names)
    )
    return [
        f"<h3>By {word}</h3>",
        f"<p>Cyclic share {game['cyclic_share']:.1%} of the squared margins; {game['cyclic_corrected']:.1%} "
        "corrected for chance.</p>",
        draw_intervals(f"Nash mix by {word}", rows, ".1%"),
        f"<table><tr><th></th><th>Nash mix</th><th>against the mix</th><th>transitive rating</th></tr>{facts}</table>",
    ]


def render_page(found: dict[str, Any]) -> str:
    """The page of a league.

    Args:
        found: what `League.to_dict` gives.
    """
    names, rules, mixed = found["names"], found["rules"], found["mixed"]
    table = f"{rules['num_players']} players{' in two teams' if rules['teams'] else ''} to {rules['target']}"
    facts = f"{table}; {found['deals']:,} deals, {found['matches']:,} matches, seed {found['seed']}."
    if found["truncated"]:
        facts += f" {found['truncated']:.1%} of the matches were cut off and shared equally."
    parts = [f"<h1>League of {len(names)} agents</h1>", f"<p>{facts}</p>"]
    equal = found["equal_share"]
    sides = round(1 / equal)
    how = ", one among copies of the column's," if sides > 2 else " against the column's"
    for word, title, text, pattern, middle in (
        ("points", "Points a hand", "points a hand above the mean of the other sides", "+.3f", 0.0),
        ("wins", "Matches won", f"share of the matches won; an equal wins {equal:.1%}", ".1%", equal),
    ):
        if found["pairs"][word] is None:
            continue
        parts.append(f"<h2>{title}</h2><p>The row's agent{how} on the same deals: {text}.")
        parts.append("The 95 % interval shows on hover.</p>")
        parts.append(draw_cross_table(names, found["pairs"][word], pattern, middle))
        parts.append("<p>The same at mixed tables, in the company of the others of the pool:</p>")
        parts.append(draw_intervals(f"{title} at mixed tables", _rank(names, mixed[word]), pattern, middle))
    if found["ratings"] is not None:
        parts += _draw_ratings(names, found["ratings"])
    games = [(word, game) for word, game in found["game"].items() if game is not None]
    if games:
        parts.append(
            "<h2>The pool as a game</h2><p>If everyone could choose an agent of this pool, the Nash mix is what none "
            "beats, the most even of them; bars are 95 % intervals by drawing the deals again. Where strength is not "
            "transitive no rating explains all margins; the cyclic share is what the best leave over."
        )
        parts.append(" Tables of more than two sides count by pairs.</p>" if sides > 2 else "</p>")
        for word, game in games:
            parts += _draw_game(names, word, game)
    if mixed["bids"] is not None:
        parts.append("<h2>Bids</h2><p>What each agent bid at mixed tables, and the share of its contracts it made.</p>")
        parts.append(draw_bids(names, mixed["bids"]))
    head = f'<meta charset="utf-8"><title>League of {len(names)} agents</title><style>{_STYLE}</style>'
    body = "\n".join(parts)
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'
