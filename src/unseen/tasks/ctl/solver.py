"""The plain solver: decodes one example after the other and applies the tables. It is independent of the generator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tables = Sequence[Sequence[int]]


def solve(tables: Tables, functions: Sequence[int], symbol: int) -> int:
    """Apply functions to a symbol, the first in the list first.

    >>> solve([[1, 0, 2], [2, 1, 0]], [0, 1], 1)
    2
    """
    for function in functions:
        symbol = tables[function][symbol]
    return symbol


def decode(tokens: Sequence[int], symbols: int, functions: int, backward: bool) -> tuple[list[int], int]:
    """The functions of an example in order of application, and the symbol they are applied to."""
    eos = symbols + functions
    sos = eos + 1
    if tokens[0] != sos or eos not in tokens:
        raise ValueError(f"expected SOS ({sos}) in front and EOS ({eos}) behind; got {list(tokens)}")
    inner = list(tokens[1 : tokens.index(eos)])
    if backward:
        inner.reverse()
    return [token - symbols for token in inner[1:]], inner[0]


def solve_all(tables: Tables, tokens: NDArray[Any], mask: NDArray[Any], backward: bool) -> NDArray[np.int64]:
    """The targets (B,) of tokens (B, T) under a mask (B, T), one after the other."""
    answers = []
    for row, row_mask in zip(tokens.tolist(), mask.tolist(), strict=True):
        visible = [token for token, is_visible in zip(row, row_mask, strict=True) if is_visible]
        functions, symbol = decode(visible, len(tables[0]), len(tables), backward)
        answers.append(solve(tables, functions, symbol))
    return np.array(answers, np.int64)
