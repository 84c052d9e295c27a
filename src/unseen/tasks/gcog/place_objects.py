"""Uniform draws without replacement, and cells for objects: cells that give an operator its intended truth value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from unseen.randomness import Bools, Draws, Ints
from unseen.tasks.gcog.schema import Schema

_STOCK = 2048
_PATIENCE = 32
"""Draws after which the free members of a cell class are listed instead."""


class Redraws:
    """Uniform integers, a few at a time.

    They come from a stock of raw numbers, because a call of the generator costs the same for 3 numbers and for 3 000.
    """

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self._stock = np.zeros(0, np.uint64)
        self._used = 0

    def integers(self, high: Ints) -> Ints:
        """Draw one integer below each element of `high`."""
        if self._used + len(high) > len(self._stock):
            self._stock = self._draws.lanes(max(_STOCK, len(high)), np.uint32).astype(np.uint64)
            self._used = 0
        lanes = self._stock[self._used : self._used + len(high)]
        self._used += len(high)
        # (lane × high) / 2³² is uniform below high, as in `Draws.integers`.
        return ((lanes * high.view(np.uint64)) >> np.uint64(32)).view(np.int64)


def draw_distinct(bound: Ints, active: Bools, occupied: Bools, draws: Draws, first: Ints | None = None) -> Ints:
    """Draw numbers that differ within each column.

    The numbers of a column are drawn in turn, each uniform over the free ones, so every order is equally likely.

    Args:
        bound: (B,), the numbers of each column are below its bound.
        active: (T, B), which numbers must be distinct and unoccupied. The others are arbitrary.
        occupied: (B, N), the numbers that are not free; those drawn are marked in place. Enough must be free.
        first: (B,), the first number of each column if it is fixed already.

    Returns:
        The numbers, (T, B).

    >>> from unseen.randomness import stream
    >>> active, occupied = np.ones((3, 1), bool), np.zeros((1, 3), bool)
    >>> draw_distinct(np.array([3]), active, occupied, stream("x").block()).ravel().tolist()
    [2, 1, 0]
    """
    # A flat view of `occupied`: one index per column and number is faster than two.
    table = occupied.reshape(-1)
    offset = np.arange(len(bound)) * occupied.shape[1]
    redraws = Redraws(draws)
    # Draw everything at once and then repair the few clashes row by row.
    numbers = draws.integers(bound, active.shape)
    if first is not None:
        numbers[0] = first
    for row, row_active in zip(numbers, active, strict=True):
        index = offset + row
        clashes = (table[index] & row_active).nonzero()[0]
        while len(clashes):
            row[clashes] = redraws.integers(bound[clashes])
            index[clashes] = offset[clashes] + row[clashes]
            # Rejection keeps a number uniform over the free ones; only those that clash again are drawn again.
            clashes = clashes[table[index[clashes]]]
        table[index] |= row_active
    return numbers


def shuffle_rows(count: int, length: int, swaps: int, draws: Draws, first: Ints | None = None) -> Ints:
    """Return rows of 0 … length − 1, (count, length), whose first `swaps` entries are drawn without replacement.

    These are the first steps of a Fisher–Yates shuffle. `first` (count,) fixes the first entry of each row.
    """
    order = np.tile(np.arange(length), (count, 1))
    rows = np.arange(count)
    for position in range(swaps):
        # Drawn even if `first` replaces it: the draws that follow must not depend on `first`.
        other = position + draws.integers(length - position, count)
        if position == 0 and first is not None:
            other = first
        chosen = order[rows, other]
        order[rows, other] = order[:, position]
        order[:, position] = chosen
    return order


@dataclass(frozen=True)
class QueryBatch:
    """B questions of K operators whose objects need cells.

    Attributes:
        operator: (K, B), operator codes.
        two: (K, B), whether the operator is about two objects.
        present: (K, 2, B), which objects are on the grid.
        truth: (K, B), the intended value of boolean operators.
    """

    operator: Ints
    two: Bools
    present: Bools
    truth: Bools


@dataclass(frozen=True)
class NumberTable:
    """The values of an equality operator: for each cell (or pair of cells) its number and its cell class; and the
    number by first and second cell."""

    number: Ints
    cell_class: Ints
    by_cells: Ints


@dataclass(frozen=True)
class CellClasses:
    """Sets of cells, or of pairs of cells, among which an object is placed.

    Attributes:
        cells: (members, 1 or 2), the members of all classes; class c is `cells[start[c] : start[c] + size[c]]`.
        start, size: (classes,), the slice of each class.
        by_operator: (codes, 2, 2), the class by operator code, truth value and whether there are two objects.
        rank: (codes, 2, 2), the order in which operators choose their cells, the most restricted first.
        numbered: the tables of the equality operators by code and whether there are two objects. Their class depends
            on a number.
    """

    schema: Schema
    cells: Ints
    start: Ints
    size: Ints
    by_operator: Ints
    rank: NDArray[np.uint8]
    numbered: dict[tuple[int, int], NumberTable]

    def draw_classes(self, batch: QueryBatch, draws: Draws) -> tuple[Ints, Ints]:
        """Return the cell class and the number of every operator, both (K, B).

        The number of an equality operator is that of a uniformly drawn cell, whether the operator is to be true or not.
        """
        # Truth values serve as indices 0 and 1: a view, because a conversion would copy.
        classes: Ints = self.by_operator[batch.operator, batch.truth.view(np.int8), batch.two.view(np.int8)]
        number = np.zeros_like(classes)
        for (code, pair), table in self.numbered.items():
            nodes = np.nonzero((batch.operator == code) & (batch.two == pair))
            member = draws.integers(len(table.number), len(nodes[0]))
            number[nodes] = table.number[member]
            # If the operator is to be false, any cell with another number will do; `place_objects` refuses the rest.
            classes[nodes] = np.where(batch.truth[nodes], table.cell_class[member], classes[nodes])
        return classes, number

    def place_objects(
        self, batch: QueryBatch, classes: Ints, number: Ints, occupied: Bools, draws: Draws
    ) -> tuple[Ints, Bools]:
        """Draw a cell for every present object, uniform over the free members of its class.

        Args:
            batch: the operators.
            classes, number: (K, B), from `draw_classes`.
            occupied: (B, cells), the cells in use; those that are drawn are marked in place.

        Returns:
            Cells (K, 1 or 2, B), and which questions failed for lack of free cells, (B,).
        """
        nodes, count = classes.shape
        width = self.cells.shape[1]
        columns = np.arange(count)
        redraws = Redraws(draws)
        cells = np.zeros((nodes, width, count), np.int64)
        failed = np.zeros(count, np.bool_)
        order = np.zeros((1, count), np.int64)
        if nodes > 1:
            # A stable sort, so that operators of equal rank choose in heap order.
            rank = self.rank[batch.operator, batch.truth.view(np.int8), batch.two.view(np.int8)]
            order = np.argsort(rank, axis=0, kind="stable")
        for node in order:
            request = _CellRequest(
                self,
                batch.operator[node, columns],
                classes[node, columns],
                batch.present[node, :width, columns],
                batch.truth[node, columns],
                number[node, columns],
                occupied,
            )
            chosen, stuck = request.draw(draws, redraws)
            failed |= stuck
            cells[node, :, columns] = chosen
            for slot in range(width):
                occupied[columns, chosen[:, slot]] |= request.present[:, slot]
        return cells, failed


@dataclass(frozen=True)
class _CellRequest:
    """One operator per column that needs cells; all arrays have B rows."""

    cell_classes: CellClasses
    operator: Ints
    classes: Ints
    present: Bools
    truth: Bools
    number: Ints
    occupied: Bools

    def draw(self, draws: Draws, redraws: Redraws) -> tuple[Ints, Bools]:
        """Return cells (B, 1 or 2), and which columns found no free member."""
        columns = np.arange(len(self.classes))
        stuck = np.zeros(len(columns), np.bool_)
        size = self.cell_classes.size[self.classes]
        cells = self._propose(columns, draws.integers(size, len(size)))
        clashes = self._refuses(columns, cells).nonzero()[0]
        for _ in range(_PATIENCE):
            if not len(clashes):
                return cells, stuck
            cells[clashes] = self._propose(clashes, redraws.integers(size[clashes]))
            clashes = clashes[self._refuses(clashes, cells[clashes])]
        # Rejection takes too long where nearly everything is occupied: list what is free.
        for column in clashes.tolist():
            start = self.cell_classes.start[self.classes[column]]
            members: Ints = self.cell_classes.cells[start : start + size[column]]
            free = members[~self._refuses(np.full(len(members), column), members)]
            stuck[column] = not len(free)
            if len(free):
                cells[column] = free[redraws.integers(np.array([len(free)]))[0]]
        return cells, stuck

    def _propose(self, columns: Ints, member: Ints) -> Ints:
        index = self.cell_classes.start[self.classes[columns]] + member
        # An empty class proposes a member of the next class, which is refused; the last class has no next one.
        proposed: Ints = self.cell_classes.cells[np.minimum(index, len(self.cell_classes.cells) - 1)]
        return proposed

    def _refuses(self, columns: Ints, cells: Ints) -> Bools:
        """Return which proposed cells are occupied, do not belong to the class, or make a false equality true."""
        present = self.present[columns]
        refused = (self.occupied[columns[:, None], cells] & present).any(axis=1)
        refused |= (self.cell_classes.size[self.classes[columns]] == 0) & present.any(axis=1)
        two = present[:, 1] if present.shape[1] == 2 else np.zeros(len(columns), np.bool_)
        for (code, pair), table in self.cell_classes.numbered.items():
            false = (self.operator[columns] == code) & (two == pair) & ~self.truth[columns]
            if false.any():
                refused[false] |= table.by_cells[cells[false, 0], cells[false, -1]] == self.number[columns[false]]
        return np.asarray(refused)


@lru_cache(maxsize=32)
def build_cell_classes(schema: Schema, two: bool) -> CellClasses:
    """Return the cell classes of a schema, with pairs of cells if questions may be about two objects."""
    codes = max(schema.by_code) + 1
    classes: list[Ints] = []
    by_operator = np.zeros((codes, 2, 2), np.int64)
    rank = np.full((codes, 2, 2), 8, np.uint8)
    numbered: dict[tuple[int, int], NumberTable] = {}
    for pair in range(1 + two):
        # All cells, or all ordered pairs of different cells. With one object, a second column repeats the first.
        first, second = np.divmod(np.arange(schema.cells**2), schema.cells)
        selected = (first != second) if pair else (first == second)
        all_cells = np.stack([first, second], axis=1)[selected][:, : 1 + two]
        x, y = schema.coordinates(all_cells[:, : 1 + pair])
        total = x.sum(axis=1) + y.sum(axis=1)
        product = (x * y).prod(axis=1)
        by_operator[:, :, pair] = len(classes)
        classes.append(all_cells)
        for operator in schema.operators.values():
            value = product if operator.quantity == "product" else total
            if operator.category == "parity":
                for truth in (0, 1):
                    needs_even = operator.even == bool(truth)
                    by_operator[operator.code, truth, pair] = len(classes)
                    classes.append(all_cells[value % 2 == (0 if needs_even else 1)])
                    # Odd products are the rarest, even ones the commonest; of equal ones, pairs choose first.
                    base = 4
                    if operator.quantity == "product":
                        base = 6 if needs_even else 2
                    rank[operator.code, truth, pair] = base + (1 - pair)
            elif operator.category == "equal" and schema.numbers:
                value = -value if operator.negated else value
                distinct, index = np.unique(value, return_inverse=True)
                by_cells = np.zeros((schema.cells, schema.cells), np.int64)
                by_cells[all_cells[:, 0], all_cells[:, -1]] = value
                numbered[operator.code, pair] = NumberTable(value, len(classes) + index, by_cells)
                classes += [all_cells[index == i] for i in range(len(distinct))]
                rank[operator.code, :, pair] = 1
    # The answer of GetLocation is its cell, which must be uniform: it chooses before anything is occupied.
    rank[schema.operators["GetLocation"].code] = 0
    size = np.array(list(map(len, classes)))
    return CellClasses(schema, np.concatenate(classes), np.cumsum(size) - size, size, by_operator, rank, numbered)
