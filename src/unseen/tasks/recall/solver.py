"""The plain solver: reads the context from left to right into a dictionary. Independent of the generator."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def solve(context: Sequence[int], queries: Sequence[int], keys: int, values: int) -> list[int]:
    """The value that followed each query in the context; tokens are keys, then values, then the filler.

    >>> solve([0, 2, 4, 4, 1, 3], queries=[1, 0], keys=2, values=2)
    [1, 0]
    """
    memory = {}
    for token, following in pairwise(context):
        if token < keys:
            if not keys <= following < keys + values:
                raise ValueError(f"key {token} is followed by token {following}, which is not a value")
            memory[token] = following - keys
    return [memory[query] for query in queries]
