"""The plain solver: reads the tokens of one example after the other and applies the tables. A stranger to the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tables = Sequence[Sequence[int]]


def solve(tables: Tables, functions: Sequence[int], symbol: int) -> int:
    """The symbol after applying functions, the first of them first.

    >>> solve([[1, 0, 2], [2, 1, 0]], [0, 1], 1)
    2
    """
    for function in functions:
        symbol = tables[function][symbol]
    return symbol


def decode(tokens: Sequence[int], symbols: int, functions: int, backward: bool) -> tuple[list[int], int]:
    """The functions in order of application, and the symbol they are applied to."""
    end = symbols + functions
    if tokens[0] != end + 1 or end not in tokens:
        raise ValueError(f"expected SOS ({end + 1}) in front and EOS ({end}) behind; got {list(tokens)}")
    inner = list(tokens[1 : tokens.index(end)])
    if backward:
        inner.reverse()
    return [token - symbols for token in inner[1:]], inner[0]


def solve_all(tables: Tables, tokens: NDArray[Any], mask: NDArray[Any], backward: bool) -> NDArray[np.int64]:
    """The targets (B,) of tokens (B, T) under a mask (B, T); one after the other."""
    answers = []
    for row, real in zip(tokens.tolist(), mask.tolist(), strict=True):
        given = [token for token, there in zip(row, real, strict=True) if there]
        functions, symbol = decode(given, len(tables[0]), len(tables), backward)
        answers.append(solve(tables, functions, symbol))
    return np.array(answers, np.int64)
