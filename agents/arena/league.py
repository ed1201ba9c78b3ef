"""Leagues: every agent against every other, and mixed tables, all on the same deals.

At a table of a pair one agent sits among copies of the other, at every place, as in `play_duplicate`. At a mixed table
sit different agents: for each deal the pool is put in a random circle, and each stretch of it as long as the table
makes a table, so that every agent sits at every place of every deal once. A pool smaller than the table is put in the
circle several times. With teams, "place" means team.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.arena.chunks import Report, SavedChunks, play_chunks
from agents.arena.estimates import estimate_mean, estimate_share
from agents.arena.match import CHUNK_TABLES, check_counts, derive_streams, seat_challenger
from agents.arena.play import play_hands, play_matches
from agents.arena.ratings import ELO, analyse_game, fit_strengths, rate_openskill
from agents.base import Agent
from pitch_env.cards import MAX_BID
from pitch_env.engine import new_tables
from pitch_env.rules import Rules
from pitch_env.table import NOBODY

_DEALS, _MATCHES, _CIRCLES = 0, 1, 2  # what a seed's streams are for; circles of deals 2, of matches 3
_WIDE = 1.959964  # standard errors in half a 95 % interval


@dataclass(frozen=True)
class Games:
    """What was played of one kind, hands or matches; `deals` counts hands' deals, or matches' sequences of deals.

    Attributes:
        pairs: float64 (deals, agents, agents), the row's agent among copies of the column's: its margin in points a
            hand, or its share of the wins; 0 or an equal share on the diagonal.
        mixed: float64 (deals, agents), the same at mixed tables.
        seated: int64 (deals, mixed tables, sides), who each side was.
        scores: float64, the same shape, points of the hand or share of the win.
        counts: int64; of hands (agents, 15), at mixed tables: bids 0 to 4, contracts won by bid, those made by bid;
            of matches (1, 2): those played and those cut off.
    """

    pairs: np.ndarray
    mixed: np.ndarray
    seated: np.ndarray
    scores: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class League:
    """Who played, under which rules, and what came of it; `hands` or `matches` is None if none were played."""

    names: tuple[str, ...]
    rules: Rules
    seed: int
    hands: Games | None
    matches: Games | None

    def to_dict(self) -> dict[str, Any]:
        """All results with their 95 % intervals, JSON-ready: `pairs`, `mixed`, `ratings`, `game`; see `summarise`."""
        return summarise(self)


class _Pool:
    """Plays all tables of a chunk of deals or matches."""

    def __init__(self, agents: Sequence[Agent], rules: Rules, seed: int) -> None:
        self.agents, self.rules, self.seed = agents, rules, seed
        num, sides = len(agents), rules.num_sides
        pairs = [(one, other) for one in range(num) for other in range(num) if one != other]
        self.pairs = np.array([pair for pair in pairs if sides > 2 or pair[0] < pair[1]])  # two sides: both at once
        places = seat_challenger(rules)[:, :sides]
        self.pair_lineups = self.pairs[:, places].reshape(-1, sides)
        self.members = np.arange(num * -(-sides // num)) % num  # of a circle
        self.windows = (np.arange(len(self.members))[:, None] + np.arange(sides)) % len(self.members)
        self.num_tables = len(self.pair_lineups) + len(self.windows)  # of a deal

    def draw_circles(self, kind: int, total: int) -> np.ndarray:
        """Line-ups of the mixed tables by side, (total, mixed tables, sides); a deal's do not depend on the total."""
        keys = derive_streams(self.seed, _CIRCLES + kind, total * len(self.members))[0]
        order = keys.reshape(total, -1).argsort(axis=1, kind="stable")
        return self.members[order][:, self.windows]

    def play(self, kind: int, streams: np.ndarray, stream: int, seated: np.ndarray, low: int, high: int) -> Games:
        """The deals or matches from low to high; those of one deal share an id, so that equals play equally."""
        num_deals, num_pair_tables = high - low, len(self.pair_lineups)
        sides = self.rules.num_sides
        lineups = np.concatenate(
            [np.broadcast_to(self.pair_lineups, (num_deals, num_pair_tables, sides)), seated[low:high]], axis=1
        )
        by_seat = lineups.reshape(-1, sides)[:, self.rules.sides]
        tables = np.repeat(new_tables(self.rules, streams[low:high], num_deals), self.num_tables)
        ids = np.repeat(np.arange(low, high, dtype=np.uint64), self.num_tables)
        (play_matches if kind == _MATCHES else play_hands)(tables, self.agents, by_seat, stream, ids)
        if kind == _DEALS:
            scores: np.ndarray = tables["deltas"][:, :sides].astype(np.int64)
            values = sides * scores - scores.sum(axis=1, keepdims=True)  # (sides - 1) times the margin
            unit, equal = sides - 1, 0.0
        else:
            is_cut = tables["winner"] == NOBODY
            won = sides * (tables["winner"][:, None] == np.arange(sides))
            values = np.where(is_cut[:, None], 1, won)  # sides times the share of the win
            scores, unit, equal = values / sides, sides, 1 / sides
        values = values.reshape(num_deals, -1, sides)
        mixed_scores = scores.reshape(num_deals, -1, sides)[:, num_pair_tables:].astype(np.float64)
        return Games(
            self._collect_pairs(values[:, :num_pair_tables], unit, equal),
            self._collect_mixed(values[:, num_pair_tables:], lineups[:, num_pair_tables:], unit),
            lineups[:, num_pair_tables:],
            mixed_scores,
            np.array([[len(tables), is_cut.sum()]]) if kind == _MATCHES else self._count_bids(tables, by_seat),
        )

    def _collect_pairs(self, values: np.ndarray, unit: int, equal: float) -> np.ndarray:
        num, sides = len(self.agents), self.rules.num_sides
        own = np.einsum("dpss->dp", values.reshape(len(values), len(self.pairs), sides, sides))
        pairs = np.full((len(values), num, num), equal)
        rows, columns = self.pairs.T
        pairs[:, rows, columns] = own / (sides * unit)
        if sides == 2:
            pairs[:, columns, rows] = 2 * equal - pairs[:, rows, columns]
        return pairs

    def _collect_mixed(self, values: np.ndarray, lineups: np.ndarray, unit: int) -> np.ndarray:
        sums = np.zeros((len(values), len(self.agents)))
        np.add.at(sums, (np.arange(len(values))[:, None, None], lineups), values)
        times = len(self.members) // len(self.agents) * self.rules.num_sides
        return sums / (times * unit)

    def _count_bids(self, tables: np.ndarray, by_seat: np.ndarray) -> np.ndarray:
        is_mixed = np.arange(len(tables)) % self.num_tables >= len(self.pair_lineups)
        tables, by_seat = tables[is_mixed], by_seat[is_mixed]
        counts = np.zeros((len(self.agents), 3, MAX_BID + 1), np.int64)
        bids = tables["bids"][:, : self.rules.num_players]
        has_bid = bids >= 0
        np.add.at(counts[:, 0], (by_seat[has_bid], bids[has_bid]), 1)
        rows, pitchers, contracts = np.arange(len(tables)), tables["pitcher"], tables["bid"]
        owners = by_seat[rows, pitchers]
        is_made = tables["deltas"][rows, pitchers % self.rules.num_sides] >= contracts
        np.add.at(counts[:, 1], (owners, contracts), 1)
        np.add.at(counts[:, 2], (owners[is_made], contracts[is_made]), 1)
        return counts.reshape(len(self.agents), -1)

    def run(
        self,
        kind: int,
        total: int,
        chunk_tables: int,
        num_threads: int,
        report: Report | None,
        saved: SavedChunks | None,
    ) -> Games:
        """All of one kind."""
        streams, stream = derive_streams(self.seed, kind, total)
        seated = self.draw_circles(kind, total)

        def play_chunk(low: int, high: int) -> tuple[np.ndarray, ...]:
            games = self.play(kind, streams, stream, seated, low, high)
            return games.pairs, games.mixed, games.seated, games.scores, games.counts

        word, size = ("deals", "matches")[kind], chunk_tables // self.num_tables
        parts = play_chunks(play_chunk, word, 0, total, total, size, num_threads, report, saved)
        *arrays, counts = zip(*parts, strict=True)
        pairs, mixed, places, scores = map(np.concatenate, arrays)
        return Games(pairs, mixed, places, scores, np.sum(counts, axis=0))


def play_league(
    agents: Sequence[Agent],
    rules: Rules | None = None,
    num_deals: int = 500,
    num_matches: int = 200,
    seed: int = 0,
    *,
    names: Sequence[str] | None = None,
    chunk_tables: int = CHUNK_TABLES,
    num_threads: int = 1,
    report: Report | None = None,
    saved: SavedChunks | None = None,
) -> League:
    """Play every agent against every other and at mixed tables, on the same deals.

    A pair's numbers are those of `play_duplicate` with the same seed. The numbers depend on neither `chunk_tables` nor
    `num_threads`, and those of the first deals not on how many follow.

    Args:
        agents: at least two.
        rules: four players to 7 if None.
        num_deals: different deals, at least 2; 0 leaves out the points.
        num_matches: different matches, at least 2; 0 leaves out the wins.
        seed: fixes everything.
        names: what to call the agents, each different; by default their own names.
        chunk_tables: tables played at a time.
        num_threads: threads that share the chunks; more than one needs agents that may be called from several at once.
        report: called as (word, done, total) after each chunk, the word "deals" or "matches".
        saved: keeps the chunks that are finished and knows those that are (see `agents.arena.chunks`).

    Raises:
        ValueError: for a nonsense value, or if an agent chooses an illegal action.
    """
    check_counts(num_deals, num_matches, seed, chunk_tables, num_threads)
    names = tuple(agent.name for agent in agents) if names is None else tuple(names)
    if len(agents) < 2 or len(names) != len(agents):
        raise ValueError(f"a league takes at least two agents and a name for each, not {len(agents)} and {len(names)}")
    if len(set(names)) < len(names):
        raise ValueError(f"a league takes each agent once, not {', '.join(names)}")
    rules = rules or Rules()
    pool = _Pool(list(agents), rules, int(seed))
    played = [
        pool.run(kind, int(total), chunk_tables, num_threads, report, saved) if total else None
        for kind, total in ((_DEALS, num_deals), (_MATCHES, num_matches))
    ]
    return League(names, rules, int(seed), *played)


def _summarise_games(games: Games | None, is_share: bool) -> tuple[dict | None, dict | None]:
    """Value, low and high of each pair, lists (agents, agents), and of each agent at mixed tables, (agents,)."""
    if games is None:
        return None, None

    def estimate(values: np.ndarray) -> tuple[float, float, float]:
        if is_share:
            return estimate_share(values)
        mean, half = estimate_mean(values)
        return mean, mean - half, mean + half

    def name(values: np.ndarray) -> dict[str, Any]:
        return {word: values[..., index].tolist() for index, word in enumerate(("value", "low", "high"))}

    num = games.mixed.shape[1]
    pairs = np.array([[estimate(games.pairs[:, row, column]) for column in range(num)] for row in range(num)])
    return name(pairs), name(np.array([estimate(games.mixed[:, agent]) for agent in range(num)]))


def _summarise_bids(games: Games) -> list[dict[str, Any]]:
    found = []
    for bids, contracts, made in games.counts.reshape(-1, 3, MAX_BID + 1).tolist():
        found.append(
            {
                "bids": [count / max(1, sum(bids)) for count in bids],
                "contracts": contracts[1:],
                "made": made[1:],
                "made_rate": sum(made) / sum(contracts) if sum(contracts) else None,
            }
        )
    return found


def _rate(games: Games, word: str, num: int) -> dict[str, Any]:
    best = games.scores == games.scores.max(axis=-1, keepdims=True)
    strengths = fit_strengths(games.seated, best / best.sum(axis=-1, keepdims=True), num)
    elo, half = ELO * strengths.values, _WIDE * ELO * strengths.errors
    skill = rate_openskill(games.seated, games.scores, num)
    return {
        "of": word,
        "elo": elo.tolist(),
        "error": (ELO * strengths.errors).tolist(),
        "low": (elo - half).tolist(),
        "high": (elo + half).tolist(),
        "model_error": (ELO * np.sqrt(np.diag(strengths.covariance))).tolist(),
        "openskill": None if skill is None else {"mu": skill[:, 0].tolist(), "sigma": skill[:, 1].tolist()},
    }


def summarise(league: League) -> dict[str, Any]:
    """A league's results, JSON-ready. What was not measured is null; lists are in the order of `names`.

    - `pairs`: `points` and `wins`, each with `value`, `low` and `high`, row among copies of column.
    - `mixed`: the same for each agent at mixed tables, with its `bids` (shares of pass and 1 to 4, contracts, made).
    - `ratings`: Elo points (mean 0) with standard errors, from the matches at mixed tables, or from who scored most in
      the hands; `error` takes the games of a deal together, `model_error` takes all as independent. OpenSkill's too.
    - `game`: of `points` and of `wins`, the pool seen as a game, see `ratings.Game`.
    """
    points, mixed_points = _summarise_games(league.hands, is_share=False)
    wins, mixed_wins = _summarise_games(league.matches, is_share=True)
    played = league.matches or league.hands
    game: dict[str, Any] = {}
    for word, games in (("points", league.hands), ("wins", league.matches)):
        found = None if games is None else vars(analyse_game(games.pairs))
        game[word] = found and {
            name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in found.items()
        }
    num_matches, num_cut = (0, 0) if league.matches is None else league.matches.counts[0].tolist()
    return {
        "names": list(league.names),
        "rules": league.rules.to_dict(),
        "seed": league.seed,
        "deals": 0 if league.hands is None else len(league.hands.pairs),
        "matches": 0 if league.matches is None else len(league.matches.pairs),
        "truncated": num_cut / num_matches if num_matches else None,
        "equal_share": 1 / league.rules.num_sides,
        "pairs": {"points": points, "wins": wins},
        "mixed": {
            "points": mixed_points,
            "wins": mixed_wins,
            "bids": None if league.hands is None else _summarise_bids(league.hands),
        },
        "ratings": None
        if played is None
        else _rate(played, "hands" if league.matches is None else "matches", len(league.names)),
        "game": game,
    }
