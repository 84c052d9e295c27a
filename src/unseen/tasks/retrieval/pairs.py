"""Sets of low–high pairs in which every feature is used equally often, and how they are parted into queries."""

from __future__ import annotations

from collections.abc import Callable

from unseen.randomness import Draws

Pair = tuple[int, int]


def regular_pairs(half: int, degree: int, distinct: bool, draws: Draws) -> list[Pair]:
    """Pairs (low, high) in random order, every feature in `degree` of them.

    It starts from a ring of shuffled features (degree 2: one single cycle). Degree 4, or pairs that may repeat, are
    then mixed by switches (a, b), (c, d) → (a, d), (c, b), which change no degree.
    """
    low, high = draws.permutation(half).tolist(), (half + draws.permutation(half)).tolist()
    pairs = [(low[i], high[(i + step) % half]) for i in range(half) for step in range(degree)]
    if degree > 2 or not distinct:
        known = set(pairs)
        for i, j in draws.integers(len(pairs), (20 * len(pairs), 2)).tolist():
            (a, b), (c, d) = pairs[i], pairs[j]
            if distinct and ((a, d) in known or (c, b) in known):
                continue
            known -= {(a, b), (c, d)}
            known |= {(a, d), (c, b)}
            pairs[i], pairs[j] = (a, d), (c, b)
    return [pairs[i] for i in draws.permutation(len(pairs)).tolist()]


def part(pairs: list[Pair], clash: Callable[[Pair, Pair], bool]) -> list[list[Pair]]:
    """Pairs two by two, without a clash inside a query.

    A query with a clash exchanges its second pair with another query so that neither clashes then. A pair of a
    4-regular set meets at most six others, so of the 2 (Q − 1) exchanges at most 12 are barred: with 8 queries or more
    one is left, and one pass mends everything.
    """
    queries = [pairs[i : i + 2] for i in range(0, len(pairs), 2)]
    for query in queries:
        if not clash(*query):
            continue
        for other, place in ((o, p) for o in queries if o is not query for p in (0, 1)):
            if not clash(query[0], other[place]) and not clash(query[1], other[1 - place]):
                query[1], other[place] = other[place], query[1]
                break
    return queries


def meets(one: Pair, two: Pair) -> bool:
    """Whether two pairs have a feature in common."""
    return one[0] == two[0] or one[1] == two[1]


def equals(one: Pair, two: Pair) -> bool:
    """Whether two pairs are the same."""
    return one == two
