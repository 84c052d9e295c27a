"""Uniform subsets of the numbers below any bound: exact, vectorised, without rejection.

Numbers below 2**62 are `int64` arrays; larger ones are arrays of Python integers, by the same formulas.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unseen.errors import UsageError
from unseen.randomness import Draws

Numbers = NDArray[Any]
LARGEST = 2**62
"""Bounds from here on need Python integers."""

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def number_type(bound: int) -> Any:
    """The dtype that holds every number up to a bound."""
    return np.dtype(np.int64) if bound < LARGEST else np.dtype(object)


def below(draws: Draws, bounds: Numbers) -> Numbers:
    """One number per bound, uniform on 0 … bound − 1; the bias is below 2**−64, however large the bound.

    A fraction of at least 64 bits more than the bound is drawn, multiplied by the bound, and rounded down.
    """
    if bounds.dtype != object:
        words = draws.words(2 * len(bounds)).reshape(2, -1)
        factor = bounds.astype(np.uint64)
        middle = words[0] * factor
        carry = middle + _high_product(words[1], factor) < middle
        found: Numbers = (_high_product(words[0], factor) + carry).astype(np.int64)
        return found
    count = max(int(bound).bit_length() for bound in bounds) // 64 + 2
    rows = draws.words(count * len(bounds)).reshape(-1, count).tolist()
    return _objects([(_joined(row) * int(bound)) >> (64 * count) for row, bound in zip(rows, bounds, strict=True)])


def subset(draws: Draws, population: int, count: int) -> Numbers:
    """`count` different numbers below `population`, every set of them equally likely, in no particular order.

    Floyd's algorithm: for each top number j, draw t up to j and take it, or j where t was taken before. An earlier t is
    always taken; and j's taken instead of a t can be met again as a t. So the only thing to follow is which draws
    point to a top number that was itself a substitute, and they point backwards: it ends.

    >>> from unseen.randomness import stream
    >>> sorted(subset(stream("doctest").block(), 5, 5).tolist())
    [0, 1, 2, 3, 4]
    """
    if not 0 <= count <= population:
        raise UsageError(f"{count} different numbers were asked for, {population} exist")
    tops = np.arange(count, dtype=number_type(population)) + (population - count)
    if not count:
        return tops
    drawn = below(draws, tops + 1)
    _, first = np.unique(drawn, return_index=True)
    taken = np.ones(count, np.bool_)
    taken[first] = False
    place = np.arange(count)
    points = (drawn >= population - count) & (drawn < tops)
    towards = np.where(points, drawn - (population - count), place).astype(np.int64)
    while True:
        more = taken | (points & taken[towards])
        if (more == taken).all():
            return np.where(taken, tops, drawn)
        taken = more


def skip(numbers: Numbers, banned: Numbers) -> Numbers:
    """Numbers counted without the banned ones, as they are counted with them. `banned` is sorted, without repeats.

    >>> skip(np.array([0, 1, 2, 3]), np.array([1, 2, 5])).tolist()
    [0, 3, 4, 6]
    """
    return numbers + np.searchsorted(banned - np.arange(len(banned)), numbers, side="right")


def _high_product(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The upper 64 bits of products of 64-bit numbers."""
    a_low, a_high, b_low, b_high = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    cross = a_high * b_low + (a_low * b_low >> _HALF)
    other = a_low * b_high + (cross & _LOW)
    found: NDArray[np.uint64] = a_high * b_high + (cross >> _HALF) + (other >> _HALF)
    return found


def _joined(words: list[int]) -> int:
    number = 0
    for word in words:
        number = number << 64 | word
    return number


def _objects(numbers: list[int]) -> Numbers:
    found = np.empty(len(numbers), object)
    found[:] = numbers
    return found
