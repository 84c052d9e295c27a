"""Which chains of functions are the same function."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unseen.randomness import Ints


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
