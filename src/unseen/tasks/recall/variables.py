"""The variables of a recall example: the value that each query asks for, and the positions of key, value and query."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unseen.tasks.variables import NONE, Ints, Variable, split_name


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
