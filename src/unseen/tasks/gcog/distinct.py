"""Uniform draws without replacement, for many rows at once."""

from __future__ import annotations

import numpy as np

from unseen.randomness import Bools, Draws, Ints

_STOCK = 2048


class Redraws:
    """Uniform integers, a few at a time: from a stock, because a draw costs the same whether it gives 3 or 3 000."""

    def __init__(self, draws: Draws) -> None:
        self._draws, self._stock, self._used = draws, np.zeros(0, np.uint64), 0

    def integers(self, high: Ints) -> Ints:
        """One uniform integer below each of `high`."""
        if self._used + len(high) > len(self._stock):
            self._stock = self._draws.lanes(max(_STOCK, len(high)), np.uint32).astype(np.uint64)
            self._used = 0
        taken = self._stock[self._used : self._used + len(high)]
        self._used += len(high)
        return ((taken * high.view(np.uint64)) >> np.uint64(32)).view(np.int64)


def draw_distinct(bound: Ints, wanted: Bools, taken: Bools, draws: Draws, first: Ints | None = None) -> Ints:
    """Numbers (T, B) below `bound` (B,): in each column those wanted differ from each other and from those taken.

    `taken` (B, N) is marked as they are drawn, one after the other, each uniform over what is left: so every order is
    equally likely. `first`: the first number of each column, where it is already chosen. There must be enough left.

    >>> from unseen.randomness import stream
    >>> wanted, taken = np.ones((3, 1), bool), np.zeros((1, 3), bool)
    >>> draw_distinct(np.array([3]), wanted, taken, stream("x").block()).ravel().tolist()
    [2, 1, 0]
    """
    table, base, again = taken.reshape(-1), np.arange(len(bound)) * taken.shape[1], Redraws(draws)
    found = draws.integers(bound, wanted.shape)
    if first is not None:
        found[0] = first
    for row, active in zip(found, wanted, strict=True):
        spot = base + row
        clashes = (table[spot] & active).nonzero()[0]
        while len(clashes):
            row[clashes] = again.integers(bound[clashes])
            spot[clashes] = base[clashes] + row[clashes]
            clashes = clashes[table[spot[clashes]]]
        table[spot] |= active
    return found


def shuffled(count: int, length: int, swaps: int, draws: Draws, first: Ints | None = None) -> Ints:
    """Rows 0 … length − 1, (count, length), of which the first `swaps` places hold a uniform draw without replacement.

    `first`: what the first place holds, where that is already chosen.
    """
    order = np.tile(np.arange(length), (count, 1))
    rows = np.arange(count)
    for place in range(swaps):
        other = place + draws.integers(length - place, count)
        if place == 0 and first is not None:
            other = first
        chosen = order[rows, other]
        order[rows, other] = order[:, place]
        order[:, place] = chosen
    return order
