"""The plain solver: looks up one product after the other in the multiplication table. Independent of the generator."""

from __future__ import annotations

from collections.abc import Sequence


def solve(table: Sequence[Sequence[int]], word: Sequence[int], start: int = 0) -> list[int]:
    """The product of `start` with the first, with the first two, … elements of a word; element 0 is the identity.

    >>> solve([[0, 1], [1, 0]], [1, 1, 0, 1])
    [1, 0, 0, 1]
    """
    products = []
    product = start
    for element in word:
        product = table[product][element]
        products.append(product)
    return products
