"""The plain solver: slow, obvious, and independent of the generator.

It gets a sequence as sets of features, the id (T2: the features) of the query, and the query table as plain data.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pairs = Sequence[tuple[int, int]]


def solve(task: str, sequence: Sequence[Collection[int]], query: Sequence[int], table: Sequence[Pairs] = ()) -> bool:
    """The answer to a query about a sequence. `table[id]` lists the pairs behind a query id (T3–T7).

    >>> solve("T2", [{1, 2}, {7}], [7, 1])
    True
    >>> table = [[(7, 1)]]
    >>> solve("T4", [{1, 2}, {7}], [0], table), solve("T6", [{1, 2}, {7}], [0], table)
    (True, False)
    """
    if task == "T1":
        return _occurs(query[0], sequence)
    if task == "T2":
        return _occurs(query[0], sequence) and _occurs(query[1], sequence)
    pairs = table[query[0]]
    if task == "T3":
        return any(_occurs(a, sequence) or _occurs(b, sequence) for a, b in pairs)
    if task in ("T4", "T5"):
        return any(_occurs(a, sequence) and _occurs(b, sequence) for a, b in pairs)
    if task in ("T6", "T7"):
        return any(_before(a, b, sequence) for a, b in pairs)
    raise ValueError(f"no such task: {task}")


def solve_all(
    task: str, sequences: NDArray[Any], queries: NDArray[Any], table: Sequence[Pairs] = ()
) -> NDArray[np.uint8]:
    """The answers, (B,), to sequences (B, n, F) and queries (B, F) given as bits; one after the other."""
    answers = []
    for sequence, query in zip(sequences, queries, strict=True):
        tokens = [active_features(token) for token in sequence.tolist()]
        answers.append(solve(task, tokens, sorted(active_features(query.tolist())), table))
    return np.array(answers, np.uint8)


def active_features(bits: Sequence[int]) -> set[int]:
    """The features whose bit is set."""
    return {feature for feature, bit in enumerate(bits) if bit}


def _occurs(feature: int, sequence: Sequence[Collection[int]]) -> bool:
    return any(feature in token for token in sequence)


def _before(a: int, b: int, sequence: Sequence[Collection[int]]) -> bool:
    for i, earlier in enumerate(sequence):
        for later in sequence[i + 1 :]:
            if a in earlier and b in later:
                return True
    return False
