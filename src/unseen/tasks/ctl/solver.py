"""The plain solver, which decodes one example after the other and applies the tables; and what follows from it.

It is independent of the generator. The variables of a chain are the symbol after each function, each function, its group and
its position. Two chains are the same function if they make the same of every symbol.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unseen.tasks.variables import NONE, Ints, Variable, answer_each, split_name, table

Tables = Sequence[Sequence[int]]
Chain = tuple[list[int], int]
"""Functions in order of application, and the symbol that they are applied to."""


def solve(tables: Tables, functions: Sequence[int], symbol: int) -> int:
    """Apply functions to a symbol, the first in the list first.

    >>> solve([[1, 0, 2], [2, 1, 0]], [0, 1], 1)
    2
    """
    for function in functions:
        symbol = tables[function][symbol]
    return symbol


def decode(tokens: Sequence[int], symbols: int, functions: int, backward: bool) -> Chain:
    """The functions of an example in order of application, and the symbol they are applied to."""
    eos = symbols + functions
    sos = eos + 1
    if tokens[0] != sos or eos not in tokens:
        raise ValueError(f"expected SOS ({sos}) in front and EOS ({eos}) behind; got {list(tokens)}")
    inner = list(tokens[1 : tokens.index(eos)])
    if backward:
        inner.reverse()
    return [token - symbols for token in inner[1:]], inner[0]


def decode_all(tables: Tables, tokens: NDArray[Any], mask: NDArray[Any], backward: bool) -> list[Chain]:
    """The chains of tokens (B, T) under a mask (B, T), one after the other."""
    chains = []
    for row, row_mask in zip(tokens.tolist(), mask.tolist(), strict=True):
        visible = [token for token, is_visible in zip(row, row_mask, strict=True) if is_visible]
        chains.append(decode(visible, len(tables[0]), len(tables), backward))
    return chains


def compose(tables: Ints, functions: Ints) -> NDArray[np.int16]:
    """The symbol that each chain makes of every symbol, (B, symbols): two chains are the same function if it is equal.

    `functions` (B, T) are in order of application, with −1 where there is none.

    >>> compose(np.array([[1, 0, 2], [2, 1, 0]]), np.array([[0, 1], [1, -1]])).tolist()
    [[1, 2, 0], [2, 1, 0]]
    """
    symbols = tables.shape[1]
    # One more table, the identity, where there is no function: the index −1 selects the last table.
    all_tables = np.vstack([tables, np.arange(symbols)]).astype(np.int16)
    maps = np.tile(np.arange(symbols, dtype=np.int16), (len(functions), 1))
    for function in functions.T:
        maps = all_tables[function[:, None], maps]
    return maps


# Variables.

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
