"""The plain solver: decodes one example after the other and applies the tables. It is independent of the generator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def compose(tables: NDArray[np.int64], functions: NDArray[np.int64]) -> NDArray[np.int16]:
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
