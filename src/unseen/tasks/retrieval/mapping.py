"""Query tables of T3–T7: which pairs of features are behind an opaque query id.

A table lists the pairs of each id 0 … F − 1. Every pair joins a feature of the low half with one of the high half, and
every feature is used equally often: twice with one pair per query, four times with two. T6 and T7 have the pairs of T4
and T5, in an order that alternates with the id.

In the published files a table has one line per query: `id`, tab, `a b`, and for T5 and T7 another tab and `c d`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain, product
from operator import eq
from pathlib import Path

from unseen.errors import UsageError
from unseen.randomness import Draws, stream
from unseen.tasks.base import read_lines

Pair = tuple[int, int]
Table = tuple[tuple[Pair, ...], ...]

PAIRS_PER_QUERY = {"T3": 1, "T4": 1, "T5": 2, "T6": 1, "T7": 2}
"""The tasks that have a table."""
ORDERED = ("T6", "T7")
MOST_BYTES = 64 * 10**6
"""The largest mapping file that is read."""

_LINE = re.compile(r"([0-9]{1,9})((?:\t[0-9]{1,9} [0-9]{1,9})+)")


# Drawing a table


def draw_table(
    task: str, features: int, task_seed: int, *, distinct_pairs: bool = True, disjoint_within_query: bool = True
) -> Table:
    """Draw a table. By default no pair is used twice, and the two pairs of a query have no feature in common.

    >>> t4, t6 = draw_table("T4", 36, task_seed=0), draw_table("T6", 36, task_seed=0)
    >>> [set(pairs[0]) for pairs in t4] == [set(pairs[0]) for pairs in t6]
    True
    """
    per_query = PAIRS_PER_QUERY[task]
    options = (distinct_pairs, disjoint_within_query) if per_query == 2 else (distinct_pairs,)
    draws = stream("mapping", "own", per_query, features, *options, task_seed).block()
    pairs = _draw_regular_pairs(features // 2, 2 * per_query, distinct_pairs, draws)
    if per_query == 1:
        return _orient(task, [[pair] for pair in pairs])
    return _orient(task, _join_pairs(pairs, _share_feature if disjoint_within_query else eq))


def _draw_regular_pairs(half: int, degree: int, distinct: bool, draws: Draws) -> list[Pair]:
    """Draw pairs (low, high) in random order, every feature in `degree` of them.

    The start is a ring of shuffled features (degree 2: one single cycle). Degree 4, or pairs that may repeat, are then
    mixed by switches (a, b), (c, d) → (a, d), (c, b), which change no degree.
    """
    low = draws.permutation(half).tolist()
    high = (half + draws.permutation(half)).tolist()
    pairs = [(low[i], high[(i + step) % half]) for i, step in product(range(half), range(degree))]
    if degree > 2 or not distinct:
        present = set(pairs)
        # Far more switches than pairs, so that nothing of the ring is left.
        for i, j in draws.integers(len(pairs), (20 * len(pairs), 2)).tolist():
            (a, b), (c, d) = pairs[i], pairs[j]
            if distinct and ((a, d) in present or (c, b) in present):
                continue
            present -= {(a, b), (c, d)}
            present |= {(a, d), (c, b)}
            pairs[i], pairs[j] = (a, d), (c, b)
    return [pairs[i] for i in draws.permutation(len(pairs)).tolist()]


def _join_pairs(pairs: list[Pair], clash: Callable[[Pair, Pair], bool]) -> list[list[Pair]]:
    """Join pairs two by two into queries without a clash inside a query.

    A query with a clash exchanges its second pair with another query such that neither clashes then. A pair of a
    4-regular set meets at most six others, so of the 2 (Q − 1) exchanges at most 12 are barred: with 8 queries or more
    there is one that works, and a single pass removes all clashes.
    """
    queries = [pairs[i : i + 2] for i in range(0, len(pairs), 2)]
    for query in queries:
        if not clash(*query):
            continue
        for other, slot in product(queries, (0, 1)):
            if other is query or clash(query[0], other[slot]) or clash(query[1], other[1 - slot]):
                continue
            query[1], other[slot] = other[slot], query[1]
            break
    return queries


def _share_feature(a: Pair, b: Pair) -> bool:
    return a[0] == b[0] or a[1] == b[1]


def _high_first(query: int, slot: int) -> bool:
    """Even ids name the high feature first in their first pair and the low one in their second; odd ids the reverse."""
    return (query + slot) % 2 == 0


def _orient(task: str, queries: Sequence[Sequence[Pair]]) -> Table:
    """Write pairs as (low, high), or in the order that T6 and T7 demand."""
    table = []
    for query, pairs in enumerate(queries):
        oriented = []
        for slot, pair in enumerate(pairs):
            descending = task in ORDERED and _high_first(query, slot)
            oriented.append((max(pair), min(pair)) if descending else (min(pair), max(pair)))
        table.append(tuple(oriented))
    return tuple(table)


# The quirks of the released table

_HALF = 18
_REPEATED_PAIRS = 4
_SHARING_QUERIES = 6
_MAX_TRIES = 1000


def draw_released_table(task: str, features: int, task_seed: int) -> Table:
    """Draw a table with the quirks measured on the published one, which is not available here.

    One pair per query: a single cycle through all features. Two pairs and 36 features: of the 72 pairs 68 are distinct,
    four are used by two queries; in six queries the two pairs share a feature; and of T7's ordered pairs 70 are
    distinct, so two of the repeated pairs have the same order in both queries.
    Other numbers of features have no quirks.
    """
    if PAIRS_PER_QUERY[task] == 1 or features != 2 * _HALF:
        return draw_table(task, features, task_seed)
    draws = stream("mapping", "released", task_seed).block()
    pairs = _draw_regular_pairs(_HALF, 4, True, draws)
    for _ in range(_REPEATED_PAIRS):
        _repeat_a_pair(pairs)
    sharing = _take_sharing_queries(pairs, draws.permutation(2 * _HALF).tolist())
    queries = sharing + _join_pairs(pairs, _share_feature)
    for _ in range(_MAX_TRIES):  # each try succeeds with a probability of about 3/8
        order = draws.permutation(len(queries)).tolist()
        flips = draws.bernoulli(0.5, len(queries)).tolist()
        shuffled = [queries[i][::-1] if flip else queries[i] for i, flip in zip(order, flips, strict=True)]
        ordered_pairs = set()
        for query, query_pairs in enumerate(shuffled):
            for slot, pair in enumerate(query_pairs):
                ordered_pairs.add((pair, _high_first(query, slot)))
        if len(ordered_pairs) == 2 * len(queries) - _REPEATED_PAIRS // 2:
            return _orient(task, shuffled)
    raise RuntimeError("no order of the released-like table was found")


def _repeat_a_pair(pairs: list[Pair]) -> None:
    """Make one pair occur twice by a switch (low, b), (c, high) → (low, high), (c, b) that touches no repeated pair."""
    count = Counter(pairs)
    for low, high in pairs:
        for i, (first_low, b) in enumerate(pairs):
            for j, (c, second_high) in enumerate(pairs):
                fits = first_low == low and second_high == high and b != high and c != low
                if fits and count[c, b] == 0 and count[pairs[i]] == count[pairs[j]] == count[low, high] == 1:
                    pairs[i] = (low, high)
                    pairs[j] = (c, b)
                    return


def _take_sharing_queries(pairs: list[Pair], features: list[int]) -> list[list[Pair]]:
    """Take six queries out of `pairs`, each of two different pairs with a common feature; no feature serves twice."""
    queries: list[list[Pair]] = []
    for feature in features:
        candidates = sorted({pair for pair in pairs if feature in pair})
        if len(candidates) >= 2:
            queries.append(candidates[:2])
            for pair in candidates[:2]:
                pairs.remove(pair)
        if len(queries) == _SHARING_QUERIES:
            break
    return queries


# Checking, reading and writing a table


def check_table(task: str, table: Table, features: int) -> None:
    """Refuse a table with an error that names the query at fault."""
    if len(table) != features:
        raise UsageError(f"mapping of {task}: expected {features} queries, one per feature; got {len(table)}")
    for query, pairs in enumerate(table):
        fault = _query_fault(task, query, pairs, features)
        if fault:
            raise UsageError(f"mapping of {task}, query {query}: {fault}")
    fault = _use_fault(task, table, features)
    if fault:
        raise UsageError(f"mapping of {task}: {fault}")


def load_mapping(path: str | Path, kind: str, features: int = 36) -> Table:
    """Read the query table in a published mapping file and check it; an error names the line.

    `kind` is T3 … T7; the result is what the option `mapping` of a task takes.
    """
    if kind not in PAIRS_PER_QUERY:
        raise UsageError(f"{kind} has no query table; a mapping belongs to {', '.join(PAIRS_PER_QUERY)}")
    path = Path(path)
    rows: dict[int, tuple[Pair, ...]] = {}
    for number, raw in enumerate(read_lines(path, MOST_BYTES), 1):
        line = raw.decode("utf-8", "replace").rstrip()
        origin = f"{path}, line {number}"
        match = _LINE.fullmatch(line)
        if not match:
            form = "id, tab, 'a b'" + (", tab, 'c d'" if PAIRS_PER_QUERY[kind] == 2 else "")
            raise UsageError(f"{origin}: expected {form}; got {line[:60]!r}")
        query = int(match[1])
        pairs = []
        for text in match[2].split("\t")[1:]:
            a, b = text.split(" ")
            pairs.append((int(a), int(b)))
        if query >= features:
            raise UsageError(f"{origin}: query ids are 0 … {features - 1}; got {query}")
        if query in rows:
            raise UsageError(f"{origin}: query {query} is given twice")
        fault = _query_fault(kind, query, pairs, features)
        if fault:
            raise UsageError(f"{origin}: {fault}")
        rows[query] = tuple(pairs)
    if len(rows) != features:
        missing = min(set(range(features)) - set(rows))
        raise UsageError(
            f"{path}, line {len(rows)}: the file ends with {len(rows)} of {features} queries; "
            f"query {missing} is missing"
        )
    table = tuple(rows[query] for query in range(features))
    fault = _use_fault(kind, table, features)
    if fault:
        raise UsageError(f"{path}: {fault}")
    return table


def write_mapping(table: Table, path: str | Path) -> None:
    """Write a query table as a published mapping file."""
    lines = []
    for query, pairs in enumerate(table):
        fields = [str(query), *(f"{a} {b}" for a, b in pairs)]
        lines.append("\t".join(fields) + "\n")
    Path(path).write_bytes("".join(lines).encode())


def _query_fault(task: str, query: int, pairs: Sequence[Pair], features: int) -> str | None:
    """Describe the fault in the pairs of one query; empty if there is none."""
    if len(pairs) != PAIRS_PER_QUERY[task]:
        return f"expected {PAIRS_PER_QUERY[task]} pair(s), got {len(pairs)}"
    half = features // 2
    for slot, (a, b) in enumerate(pairs):
        if not (0 <= a < features and 0 <= b < features):
            return f"features are 0 … {features - 1}, got {a} {b}"
        if (a < half) == (b < half):
            return f"a pair joins one of 0 … {half - 1} with one of {half} … {features - 1}, got {a} {b}"
        if task in ORDERED and (a >= half) != _high_first(query, slot):
            order = "high" if _high_first(query, slot) else "low"
            return f"orders alternate: pair {slot + 1} must name its {order} feature first, got {a} {b}"
    if len({frozenset(pair) for pair in pairs}) != len(pairs):
        return f"its two pairs are the same: {pairs[0]} and {pairs[1]}"
    return None


def _use_fault(task: str, table: Table, features: int) -> str | None:
    """Whether some feature is used more or less often than the others."""
    expected = 2 * PAIRS_PER_QUERY[task]
    uses = Counter(chain.from_iterable(chain.from_iterable(table)))
    for feature in range(features):
        if uses[feature] != expected:
            return f"every feature must be used {expected} times; feature {feature} is used {uses[feature]} times"
    return None


def has_shared_feature(pairs: Sequence[Pair]) -> bool:
    """Whether the pairs of a query have a feature in common."""
    return len(set(chain.from_iterable(pairs))) < 2 * len(pairs)
