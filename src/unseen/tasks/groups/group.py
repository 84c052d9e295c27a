"""Finite groups: named ones, and those given by generating permutations or by a multiplication table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from itertools import permutations as permutations_of

import numpy as np

from unseen.errors import UsageError
from unseen.randomness import Ints

MOST_ELEMENTS = 1_000
_MOST_POINTS = 12
"""Permutations of more points would not fit the numbers by which they are told apart."""


@dataclass(frozen=True)
class PermutationGroup:
    """The elements as permutations, one per row, the identity first; a product a · b is a first, then b.

    `regular`: element g is the permutation x → x · g of the elements themselves, as for a group given by its table.
    """

    permutations: Ints
    regular: bool = False

    @property
    def order(self) -> int:
        """The number of elements."""
        return len(self.permutations)

    def number(self, permutations: Ints) -> Ints:
        """The numbers of these permutations (…, points) among the elements."""
        # Codes tell elements apart, so a binary search among the sorted codes finds the element.
        codes = self._encode(self.permutations)
        by_code = np.argsort(codes)
        numbers: Ints = by_code[np.searchsorted(codes[by_code], self._encode(permutations))]
        return numbers

    def _encode(self, permutations: Ints) -> Ints:
        """A number that tells elements apart: the image of the identity, or the digits of the permutation."""
        if self.regular:
            # Element g is x → x · g, so the identity, which is 0, becomes g itself.
            return permutations[..., 0]
        points = permutations.shape[-1]
        code: Ints = permutations @ (points ** np.arange(points, dtype=np.int64))
        return code

    @cached_property
    def table(self) -> Ints:
        """The multiplication table: row a, column b has the number of a · b."""
        # a first, then b: the product a · b maps point x to b[a[x]].
        products = self.permutations[np.arange(self.order)[None, :, None], self.permutations[:, None, :]]
        return self.number(products)

    @cached_property
    def names(self) -> list[str]:
        """The elements in cycle notation, points from 1; of a group given by its table their numbers."""
        if self.regular:
            return [str(number) for number in range(self.order)]
        return [_write_cycles(row.tolist()) for row in self.permutations]

    def generate(self, generators: Sequence[int]) -> set[int]:
        """The elements that products of these generate."""
        reached = {0}
        frontier = [0]
        while frontier:
            element = frontier.pop()
            for generator in generators:
                product = int(self.table[element, generator])
                if product not in reached:
                    reached.add(product)
                    frontier.append(product)
        return reached

    def find_commutators(self, members: Sequence[int]) -> list[int]:
        """The elements of the commutator subgroup of a subgroup: what products of a⁻¹ b⁻¹ a b generate, in order."""
        inverse = self.table.argmin(1)  # where the product is 0, the identity
        commutators: set[int] = set()
        for a in members:
            for b in members:
                commutators.add(int(self.table[self.table[inverse[a], inverse[b]], self.table[a, b]]))
        return sorted(self.generate(sorted(commutators)))

    @cached_property
    def solvable(self) -> bool:
        """Whether the series of commutator subgroups ends with the identity alone."""
        members = list(range(self.order))
        while len(members) > 1:
            smaller = self.find_commutators(members)
            if len(smaller) == len(members):
                return False
            members = smaller
        return True

    @cached_property
    def abelian_quotient(self) -> Ints:
        """The coset of the commutator subgroup that each element is in, named by its first element.

        The product of cosets does not depend on the order of the factors. There are order / |commutator subgroup| of them.
        """
        subgroup = self.find_commutators(range(self.order))
        # Row a, at the columns of the subgroup, lists the coset of a; its least element is the same for the whole coset.
        cosets: Ints = self.table[:, subgroup].min(1)
        return cosets


def make_named_group(name: str) -> PermutationGroup:
    """Z, S or A with a number: the cyclic, symmetric or alternating group of as many points.

    >>> [make_named_group(name).order for name in ("Z2", "S3", "A5")]
    [2, 6, 60]
    """
    letter = name[0]
    points = int(name[1:])
    if letter == "Z":
        return PermutationGroup((np.arange(points)[:, None] + np.arange(points)) % points)
    rows = [row for row in permutations_of(range(points)) if letter == "S" or _is_even(row)]
    return PermutationGroup(np.array(rows, dtype=np.int64))


def generate_group(generators: Sequence[Sequence[int]]) -> PermutationGroup:
    """The group that permutations generate: the identity, then the generators, then their products.

    >>> generate_group([(1, 2, 0)]).order
    3
    """
    points = len(generators[0]) if generators else 0
    for row in generators:
        if sorted(row) != list(range(points)):
            raise UsageError(f"{list(row)} is not a permutation of 0 … {points - 1}; write where each point goes")
    if not 2 <= points <= _MOST_POINTS:
        raise UsageError(f"permutations of {points} points: choose 2 to {_MOST_POINTS} points")
    elements = list(dict.fromkeys([tuple(range(points)), *map(tuple, generators)]))
    reached = set(elements)
    for element in elements:  # the list grows while the loop runs, until no product is new
        for row in generators:
            product = tuple(row[point] for point in element)
            if product not in reached:
                reached.add(product)
                elements.append(product)
        if len(elements) > MOST_ELEMENTS:
            raise UsageError(f"these permutations generate more than {MOST_ELEMENTS} elements; choose a smaller group")
    return PermutationGroup(np.array(elements, dtype=np.int64))


def read_group_table(table: Sequence[Sequence[int]]) -> PermutationGroup:
    """The group of a multiplication table, after a check of the axioms; element 0 must be the identity.

    >>> read_group_table([[0, 1], [1, 0]]).order
    2
    """
    order = len(table)
    if not 2 <= order <= MOST_ELEMENTS or any(len(row) != order for row in table):
        raise UsageError(f"a multiplication table has 2 to {MOST_ELEMENTS} rows and as many columns")
    products = np.array(table, dtype=np.int64)
    elements = np.arange(order)
    if not ((products[0] == elements).all() and (products[:, 0] == elements).all()):
        raise UsageError("element 0 of the multiplication table is not the identity; number the elements from it")
    rows_complete = (np.sort(products, axis=1) == elements).all()
    columns_complete = (np.sort(products, axis=0) == elements[:, None]).all()
    if not (rows_complete and columns_complete):
        raise UsageError("a row or column of the multiplication table does not have every element once: no group")
    for element in elements:
        # (element · b) · c and element · (b · c), for all b and c at once.
        if (products[products[element]] != products[element][products]).any():
            raise UsageError(f"the multiplication table is not associative at element {element}: no group")
    # Row g of the permutations is x → x · g, which is column g of the table.
    return PermutationGroup(products.T.copy(), regular=True)


def _is_even(row: Iterable[int]) -> bool:
    inversions = sum(first > second for first, second in combinations(row, 2))
    return inversions % 2 == 0


def _write_cycles(row: Sequence[int]) -> str:
    """Cycle notation.

    >>> _write_cycles([1, 0, 2]), _write_cycles([0, 1])
    ('(1 2)', 'e')
    """
    cycles = []
    seen: set[int] = set()
    for start in range(len(row)):
        cycle = []
        point = start
        while point not in seen:
            seen.add(point)
            cycle.append(str(point + 1))
            point = row[point]
        if len(cycle) > 1:
            cycles.append(f"({' '.join(cycle)})")
    return "".join(cycles) or "e"
