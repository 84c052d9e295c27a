"""Query tables of T3–T7: which pairs of features hide behind an opaque query id.

A table lists, for each id 0 … F − 1, its pairs. Every pair joins a feature of the low half with one of the high half,
and every feature fills equally many places: 2 with one pair per query, 4 with two. T6 and T7 are T4 and T5 with an
order that alternates with the id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from unseen.errors import UsageError
from unseen.randomness import stream
from unseen.tasks.retrieval.pairs import Pair, equals, meets, part, regular_pairs
from unseen.tasks.retrieval.wrinkles import wrinkled_queries

Table = tuple[tuple[Pair, ...], ...]

PAIRS = {"T3": 1, "T4": 1, "T5": 2, "T6": 1, "T7": 2}
"""Pairs per query of the tasks that have a table."""

ORDERED = ("T6", "T7")


def draw_table(
    kind: str, features: int, task_seed: int, *, distinct_pairs: bool = True, disjoint_within_query: bool = True
) -> Table:
    """A table of our own: no pair used twice (`distinct_pairs`), the two pairs of a query without a common feature
    (`disjoint_within_query`).

    >>> t4, t6 = draw_table("T4", 36, task_seed=0), draw_table("T6", 36, task_seed=0)
    >>> [set(pairs[0]) for pairs in t4] == [set(pairs[0]) for pairs in t6]
    True
    """
    per_query = PAIRS[kind]
    options = (distinct_pairs, disjoint_within_query) if per_query == 2 else (distinct_pairs,)
    draws = stream("mapping", "own", per_query, features, *options, task_seed).block()
    pairs = regular_pairs(features // 2, 2 * per_query, distinct_pairs, draws)
    if per_query == 1:
        return _orient(kind, [[pair] for pair in pairs])
    return _orient(kind, part(pairs, meets if disjoint_within_query else equals))


def draw_released_table(kind: str, features: int, task_seed: int) -> Table:
    """A table with what was measured on the published one, which is not available here.

    One pair: a single cycle through all features. Two pairs, 36 features: 68 distinct pairs, 6 queries whose pairs
    share a feature, 70 distinct ordered pairs in T7. Other numbers of features: as our own tables.
    """
    per_query = PAIRS[kind]
    if per_query == 1 or features != 36:
        return draw_table(kind, features, task_seed)
    return _orient(kind, wrinkled_queries(stream("mapping", "released", task_seed).block()))


def check_table(kind: str, table: Table, features: int) -> Table:
    """The table itself, or an error that names the query at fault."""
    if len(table) != features:
        raise UsageError(f"mapping of {kind}: expected {features} queries, one per feature; got {len(table)}")
    for query, pairs in enumerate(table):
        fault = query_fault(kind, query, pairs, features)
        if fault:
            raise UsageError(f"mapping of {kind}, query {query}: {fault}")
    fault = use_fault(kind, table, features)
    if fault:
        raise UsageError(f"mapping of {kind}: {fault}")
    return table


def query_fault(kind: str, query: int, pairs: Sequence[Pair], features: int) -> str | None:
    """What is wrong with the pairs of one query, if anything."""
    if len(pairs) != PAIRS[kind]:
        return f"expected {PAIRS[kind]} pair(s), got {len(pairs)}"
    half = features // 2
    for place, (a, b) in enumerate(pairs):
        if not (0 <= a < features and 0 <= b < features):
            return f"features are 0 … {features - 1}, got {a} {b}"
        if (a < half) == (b < half):
            return f"a pair joins one of 0 … {half - 1} with one of {half} … {features - 1}, got {a} {b}"
        if kind in ORDERED and (a >= half) != _high_first(query, place):
            order = "high" if _high_first(query, place) else "low"
            return f"orders alternate: pair {place + 1} must name its {order} feature first, got {a} {b}"
    if len({frozenset(pair) for pair in pairs}) != len(pairs):
        return f"its two pairs are the same: {pairs[0]} and {pairs[1]}"
    return None


def use_fault(kind: str, table: Table, features: int) -> str | None:
    """Whether some feature is used more or less often than the others."""
    places = 2 * PAIRS[kind]
    uses = Counter(feature for pairs in table for pair in pairs for feature in pair)
    for feature in range(features):
        if uses[feature] != places:
            return f"every feature must be used {places} times; feature {feature} is used {uses[feature]} times"
    return None


def shares_feature(pairs: Sequence[Pair]) -> bool:
    """Whether the pairs of a query have a feature in common."""
    return len({feature for pair in pairs for feature in pair}) < 2 * len(pairs)


def _high_first(query: int, place: int) -> bool:
    """Even ids: the first pair high feature first, the second low first; odd ids the reverse."""
    return (query + place) % 2 == 0


def _orient(kind: str, queries: Sequence[Sequence[Pair]]) -> Table:
    """Pairs as (low, high), or in the order that T6 and T7 demand."""

    def pair(query: int, place: int, a: int, b: int) -> Pair:
        low, high = min(a, b), max(a, b)
        return (high, low) if kind in ORDERED and _high_first(query, place) else (low, high)

    return tuple(tuple(pair(q, place, *p) for place, p in enumerate(pairs)) for q, pairs in enumerate(queries))
