"""The variables of a chain: the symbol after each function, each function, its group, and its position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unseen.tasks.ctl.solver import Chain, Tables, solve
from unseen.tasks.variables import NONE, Ints, Variable, answer_each, split_name, table

FIRST_BEHIND = 2
"""Read forward, the first function follows the start marker and the symbol."""


def list_variables(
    tables: Tables, group_of: Sequence[int], chains: Sequence[Chain], tokens: int, backward: bool
) -> dict[str, Variable]:
    """`symbol[k]`, the symbol after k functions (0: the one they are applied to), and for k = 1, 2, … in order of
    application `function[k]`, its group `group[k]` and its position among the `tokens` of an example, `token[k]`."""
    longest = max((len(functions) for functions, _ in chains), default=0)
    passed_rows = []
    for functions, start in chains:
        passed_rows.append([solve(tables, functions[:k], start) for k in range(len(functions) + 1)])
    passed = table(passed_rows, longest + 1)
    applied = table([functions for functions, _ in chains], longest)
    starts = passed[:, :1]
    groups = np.append(np.asarray(group_of, np.int64), NONE)
    variables: dict[str, Variable] = {}
    for k in range(longest + 1):
        before = np.hstack([starts, applied[:, :k]])
        after = applied[:, k:]
        variables[f"symbol[{k}]"] = Variable(passed[:, k], len(tables[0]), causes=before, context=after)
    for k in range(1, longest + 1):
        function = applied[:, k - 1]
        others = np.hstack([starts, np.delete(applied, k - 1, axis=1)])
        variables[f"function[{k}]"] = Variable(function, len(tables), causes=function[:, None], context=others)
        group = groups[function]  # −1 stays −1: the last entry
        variables[f"group[{k}]"] = Variable(group, int(groups.max()) + 1, causes=function[:, None], causal=False)
        token = _find_token(chains, k, backward)
        variables[f"token[{k}]"] = Variable(token, tokens, positions=True, causal=False)
    return variables


def answer_with(
    tables: Tables, chains: Sequence[Chain], name: str, values: Ints, targets: NDArray[Any]
) -> NDArray[Any]:
    """The answers if the symbol after k functions, or the k-th function, were another."""
    stem, k = split_name(name)

    def answer(index: int, value: int) -> int:
        functions, start = chains[index]
        if stem == "symbol":
            return solve(tables, functions[k:], value)
        return solve(tables, [*functions[: k - 1], value, *functions[k:]], start)

    return answer_each(targets, values, answer)


def _find_token(chains: Sequence[Chain], k: int, backward: bool) -> Ints:
    """The position of the k-th function: behind the start marker and, read forward, the symbol."""
    positions = []
    for functions, _ in chains:
        position = len(functions) - k + 1 if backward else FIRST_BEHIND + k - 1
        positions.append(position if k <= len(functions) else NONE)
    return np.array(positions, np.int64)
