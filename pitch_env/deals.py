"""Deals that agree with what a seat has seen, each as likely as any other, by exact counts.

Which cards may a seat hold? Play proves that a seat lacks a suit when it neither follows nor ruffs (R11), and nothing
else is proved. Seats that lack a suit are dealt first, how many of each suit weighted by the ways to deal the others.
"""

import math
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate, product

import numpy as np

from pitch_env.cards import NUM_RANKS, NUM_SUITS
from pitch_env.table import deck_mask, read_rules


@lru_cache(maxsize=100_000)
def _list_splits(missing: int, voids: int, counts: tuple[int, ...]) -> list[tuple[int, ...]]:
    """How many cards of each suit a seat may hold."""
    ranges = [range(0 if voids >> suit & 1 else min(missing, num) + 1) or range(1) for suit, num in enumerate(counts)]
    return [split for split in product(*ranges) if sum(split) == missing]


def _count_ways(split: tuple[int, ...], counts: tuple[int, ...]) -> int:
    return math.prod(math.comb(num, part) for num, part in zip(counts, split, strict=True))


def _take(counts: tuple[int, ...], split: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(num - part for num, part in zip(counts, split, strict=True))


@lru_cache(maxsize=100_000)
def _count_deals(seats: tuple[tuple[int, int], ...], counts: tuple[int, ...]) -> int:
    """In how many ways seats, each (missing cards, suits it lacks), can be dealt from so many cards of each suit."""
    if not seats:
        return 1
    (missing, voids), *rest = seats
    return sum(
        _count_ways(split, counts) * _count_deals(tuple(rest), _take(counts, split))
        for split in _list_splits(missing, voids, counts)
    )


def draw_deal(view: np.ndarray, sampler: Callable[[], float]) -> list[int]:
    """A whole deal that agrees with a view, (1,), each as likely as any other; masks of the cards of each seat.

    Args:
        view: whose viewer's cards, and all cards played, stay.
        sampler: gives numbers from 0 up to 1.
    """
    t, rules = view[0], read_rules(view[0])
    dealt = [int(mask) for mask in t["dealt"][: rules.num_players]]
    unseen = deck_mask(rules) & ~sum(dealt)
    pools = [[suit * NUM_RANKS + rank for rank in range(NUM_RANKS)] for suit in range(NUM_SUITS)]
    pools = [[card for card in pool if unseen >> card & 1] for pool in pools]

    def draw_from(pool: list[int]) -> int:
        return pool.pop(int(sampler() * len(pool)))

    others = [
        (rules.hand_size - mask.bit_count(), int(t["voids"][seat]), seat)
        for seat, mask in enumerate(dealt)
        if mask.bit_count() < rules.hand_size
    ]
    bound = [other for other in others if other[1]]
    for place, (missing, voids, seat) in enumerate(bound):
        counts = tuple(len(pool) for pool in pools)
        rest = tuple((other[0], other[1]) for other in bound[place + 1 :])
        splits = _list_splits(missing, voids, counts)
        weights = [_count_ways(split, counts) * _count_deals(rest, _take(counts, split)) for split in splits]
        chosen = bisect_right(list(accumulate(weights)), int(sampler() * sum(weights)))
        for suit, part in enumerate(splits[chosen]):
            for _ in range(part):
                dealt[seat] |= 1 << draw_from(pools[suit])
    left = [card for pool in pools for card in pool]
    for missing, voids, seat in others:
        if not voids:
            for _ in range(missing):
                dealt[seat] |= 1 << draw_from(left)
    return dealt
