"""The plain solver, which reads the context from left to right into a dictionary, and the variables that it passes through.

Both are independent of the generator. The variables of an example are the value that each query asks for, and the positions
of key, value and query.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unseen.tasks.variables import NONE, Ints, Variable, split_name


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


def list_variables(contexts: NDArray[Any], queries: NDArray[Any], keys: int, value_count: int) -> dict[str, Variable]:
    """For each query q from 0: `value[q]`; `key_position[q]` and `value_position[q]`, the places of its pair in the context;
    and `query_position[q]`, its own behind the context, where a model reads both as one sequence."""
    key_positions = find_value_positions(contexts, queries) - 1
    length = contexts.shape[1]
    tokens = length + queries.shape[1]
    rows = np.arange(len(contexts))
    variables: dict[str, Variable] = {}
    for q, key_position in enumerate(key_positions.T):
        value = contexts[rows, key_position + 1].astype(np.int64) - keys
        variables[f"value[{q}]"] = Variable(value, value_count)
        variables[f"key_position[{q}]"] = Variable(key_position, length, positions=True, causal=False)
        variables[f"value_position[{q}]"] = Variable(key_position + 1, length, positions=True, causal=False)
        query_position = np.full(len(contexts), length + q)
        variables[f"query_position[{q}]"] = Variable(query_position, tokens, positions=True, causal=False)
    return variables


def find_value_positions(contexts: NDArray[Any], queries: NDArray[Any]) -> Ints:
    """The position of the token behind the key of every query: (B, queries).

    >>> find_value_positions(np.array([[0, 5, 9, 9, 1, 4]]), np.array([[1, 0]])).tolist()
    [[5, 1]]
    """
    positions = np.empty(queries.shape, np.int64)
    for row, (context, keys) in enumerate(zip(contexts.tolist(), queries.tolist(), strict=True)):
        for number, key in enumerate(keys):
            positions[row, number] = context.index(key) + 1
    return positions


def answer_with(targets: NDArray[Any], name: str, values: Ints) -> NDArray[Any]:
    """The answers if the value that the query asks for were another: keys differ, so no other answer changes."""
    _, q = split_name(name)
    answers = targets.copy()
    answers[:, q] = np.where(values == NONE, targets[:, q], values)
    return answers
