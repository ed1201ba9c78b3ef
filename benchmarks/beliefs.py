"""How much search reads from bids and plays: ``python -m benchmarks.beliefs --players 4 7``.

The trained policy plays at all seats up to a random decision. There the seat to act is asked where the cards are that
the others hold: by deals that are all as likely, and by those that search on the policy draws. The figure is the mean
surprise of the truth, in nats a card, by the trick in progress; less is better.
"""

import argparse

import numpy as np

import agents
from agents.arena.pools import use_one_thread
from agents.search.playout import apply_each
from agents.search.policy_search import PolicySearchAgent
from agents.search.worlds import sample_worlds
from benchmarks.report import write_table
from pitch_env import Rules
from pitch_env.cards import cards_of
from pitch_env.engine import new_tables
from pitch_env.kernels import ONE
from pitch_env.table import AUCTION, PLAY
from pitch_env.view import view_tables


def draw_positions(policy: agents.Agent, rules: Rules, num: int, seed: int) -> np.ndarray:
    """Tables, array of `TABLE` (N,), N at most `num`, at random decisions of hands that a policy plays."""
    generator = np.random.default_rng(seed)
    tables = new_tables(rules, seed, num)
    num_left = generator.integers(rules.num_players * (rules.hand_size + 1), size=num)
    while len(running := np.flatnonzero((num_left > 0) & np.isin(tables["phase"], (AUCTION, PLAY)))):
        some = tables[running]
        seeds = generator.integers(2**64, size=len(running), dtype=np.uint64)
        apply_each(some, policy.act(view_tables(some, some["seat"]), seeds))
        tables[running] = some
        num_left[running] -= 1
    return tables[np.isin(tables["phase"], (AUCTION, PLAY))]


def measure_surprise(worlds: np.ndarray, tables: np.ndarray, views: np.ndarray) -> np.ndarray:
    """Mean surprise in nats, float64 (N,), at who truly holds each hidden card, by worlds, (N, M), of views, (N,).

    A holder that no world has counts as met in a part of one more world.
    """
    num_players, num_worlds = int(tables["num_players"][0]), worlds.shape[1]
    surprises = np.zeros(len(tables))
    for place, (table, view) in enumerate(zip(tables, views, strict=True)):
        hidden = table["dealt"][:num_players] & ~(view["dealt"][:num_players] | table["played"])
        found = []
        for seat in np.flatnonzero(hidden):
            cards = np.array(cards_of(hidden[seat]), np.uint64)
            hits = (worlds["dealt"][place, :, seat, None] >> cards & ONE).sum(axis=0)
            found.extend(-np.log((hits + 1 / num_players) / (num_worlds + 1)))
        surprises[place] = np.mean(found) if found else np.nan
    return surprises


def tabulate(num_players: int, num: int, num_worlds: int, seed: int) -> str:
    """A Markdown table for a number of players: a row for the auction and each trick."""
    rules = Rules(num_players=num_players)
    search = agents.load("search:trained", rules)
    assert isinstance(search, PolicySearchAgent)
    tables = draw_positions(search.policy, rules, num, seed)
    views, seeds = view_tables(tables, tables["seat"]), np.arange(len(tables), dtype=np.uint64)
    alike = sample_worlds(views, num_worlds, seeds).reshape(len(views), num_worlds)
    likely = search.sample(views, seeds, num_worlds)
    found = [measure_surprise(worlds, tables, views) for worlds in (alike, likely)]
    tricks = np.where(tables["phase"] == AUCTION, 0, 1 + tables["num_plays"] // num_players)
    rows = []
    for trick in range(rules.hand_size + 1):
        is_here = (tricks == trick) & ~np.isnan(found[0])
        if is_here.any():
            means = [f"{values[is_here].mean():.3f}" for values in found]
            rows.append([str(trick) if trick else "auction", str(is_here.sum()), *means])
    return write_table(["Trick", "Positions", "All deals as likely", "By the policy"], rows)


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, measure, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.beliefs", description=__doc__.split("\n")[0])
    parser.add_argument("--players", type=int, nargs="+", default=[4], help="tables, one after another (default 4)")
    parser.add_argument("--positions", type=int, default=800, help="decisions at each (default %(default)s)")
    parser.add_argument("--worlds", type=int, default=256, help="deals at each decision (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="fixes everything (default %(default)s)")
    given = parser.parse_args(arguments)
    use_one_thread()
    for num_players in given.players:
        print(f"\n{num_players} players, nats a hidden card:\n")
        print(tabulate(num_players, given.positions, given.worlds, given.seed), flush=True)


if __name__ == "__main__":
    main()
