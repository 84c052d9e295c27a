"""Where objects stand: cells, or pairs of cells, that give an operator the truth value it was drawn with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from unseen.randomness import Bools, Draws, Ints
from unseen.tasks.gcog.distinct import Redraws
from unseen.tasks.gcog.features import Draft
from unseen.tasks.gcog.schema import Schema

PATIENCE = 32
"""Draws after which the free places of a class are counted instead."""


@dataclass(frozen=True)
class Numbered:
    """The number at each place of any kind, the class of all places with that number, and the number by two cells."""

    number: Ints
    of: Ints
    by_cells: Ints


@dataclass(frozen=True)
class Places:
    """Classes of places. Class c: `cells[start[c] : start[c] + size[c]]`, a cell or a first and a second one per row.

    `of` (code, truth, two objects): the class of an operator, where that does not depend on a number; `rank`: in which
    order operators choose, the most particular first (ties in heap order). `numbered` by (code, two objects).
    """

    schema: Schema
    cells: Ints
    start: Ints
    size: Ints
    of: Ints
    rank: NDArray[np.uint8]
    numbered: dict[tuple[int, int], Numbered]

    def draw_classes(self, draft: Draft, draws: Draws) -> tuple[Ints, Ints]:
        """Classes and numbers, both (K, B): a number is that of a place drawn without regard to the truth."""
        classes: Ints = self.of[draft.operator, draft.truth.view(np.int8), draft.two.view(np.int8)]
        number = np.zeros_like(classes)
        for (code, pair), known in self.numbered.items():
            here = np.nonzero((draft.operator == code) & (draft.two == pair))
            place = draws.integers(len(known.number), len(here[0]))
            number[here] = known.number[place]
            # False: any place will do that has another number, which `settle` sees to.
            classes[here] = np.where(draft.truth[here], known.of[place], classes[here])
        return classes, number

    def settle(self, draft: Draft, classes: Ints, number: Ints, taken: Bools, draws: Draws) -> tuple[Ints, Bools]:
        """Cells (K, 1 or 2, B) for the present objects, uniform over the free places of their class; who failed, (B,).

        `taken` (B, cells) is marked.
        """
        (nodes, count), parts = classes.shape, self.cells.shape[1]
        columns, redraws = np.arange(count), Redraws(draws)
        found, failed = np.zeros((nodes, parts, count), np.int64), np.zeros(count, np.bool_)
        order = np.zeros((1, count), np.int64)
        if nodes > 1:
            rank = self.rank[draft.operator, draft.truth.view(np.int8), draft.two.view(np.int8)]
            order = np.argsort(rank, axis=0, kind="stable")
        for node in order:
            at = node, columns
            present = draft.present[node, :parts, columns]
            asked = _Asked(self, draft.operator[at], classes[at], present, draft.truth[at], number[at], taken)
            cells, stuck = asked.draw(draws, redraws)
            failed |= stuck
            found[node, :, columns] = cells
            for part in range(parts):
                taken[columns, cells[:, part]] |= present[:, part]
        return found, failed


@dataclass(frozen=True)
class _Asked:
    """One operator per column that wants its places."""

    places: Places
    operator: Ints
    classes: Ints
    present: Bools
    truth: Bools
    number: Ints
    taken: Bools

    def draw(self, draws: Draws, redraws: Redraws) -> tuple[Ints, Bools]:
        """Cells (B, 1 or 2), and where there were none."""
        columns, stuck = np.arange(len(self.classes)), np.zeros(len(self.classes), np.bool_)
        size = self.places.size[self.classes]
        cells = self._propose(columns, draws.integers(size, len(size)))
        clashes = self._refused(columns, cells).nonzero()[0]
        for _ in range(PATIENCE):
            if not len(clashes):
                return cells, stuck
            cells[clashes] = self._propose(clashes, redraws.integers(size[clashes]))
            clashes = clashes[self._refused(clashes, cells[clashes])]
        for column in clashes.tolist():
            free = self._free(column)
            stuck[column] = not len(free)
            if len(free):
                cells[column] = free[redraws.integers(np.array([len(free)]))[0]]
        return cells, stuck

    def _propose(self, columns: Ints, chosen: Ints) -> Ints:
        place = self.places.start[self.classes[columns]] + chosen
        # An empty class proposes what is not its own, which is refused; at the end of the table there is nothing.
        proposed: Ints = self.places.cells[np.minimum(place, len(self.places.cells) - 1)]
        return proposed

    def _refused(self, columns: Ints, cells: Ints) -> Bools:
        present = self.present[columns]
        refused = (self.taken[columns[:, None], cells] & present).any(axis=1)
        refused |= (self.places.size[self.classes[columns]] == 0) & present.any(axis=1)
        for (code, pair), known in self.places.numbered.items():
            two = present[:, 1] if present.shape[1] == 2 else np.zeros(len(columns), np.bool_)
            asks = (self.operator[columns] == code) & (two == pair) & ~self.truth[columns]
            if asks.any():
                refused[asks] |= known.by_cells[cells[asks, 0], cells[asks, -1]] == self.number[columns[asks]]
        return np.asarray(refused)

    def _free(self, column: int) -> Ints:
        """The places of its class that one column could still choose."""
        start, size = self.places.start[self.classes[column]], self.places.size[self.classes[column]]
        cells: Ints = self.places.cells[start : start + size]
        return cells[~self._refused(np.full(len(cells), column), cells)]


_EVEN = {"SumEven": True, "SumOdd": False, "ProductEven": True, "ProductOdd": False}


@lru_cache(maxsize=32)
def places(schema: Schema, two: bool) -> Places:
    """The classes of places of a schema, with pairs of cells if questions may be about two objects."""
    codes = max(schema.by_code) + 1
    lists: list[Ints] = []
    of, rank = np.zeros((codes, 2, 2), np.int64), np.full((codes, 2, 2), 8, np.uint8)
    numbered: dict[tuple[int, int], Numbered] = {}
    for pair in range(1 + two):
        any_cells = _all_cells(schema, 1 + two, pair)
        x, y = schema.place(any_cells[:, : 1 + pair])
        total, product = x.sum(axis=1) + y.sum(axis=1), (x * y).prod(axis=1)
        of[:, :, pair] = len(lists)
        lists.append(any_cells)
        for name, even in _EVEN.items():
            code, value = schema.operators[name].code, product if name.startswith("Product") else total
            for truth in (0, 1):
                wants_even = even == bool(truth)
                of[code, truth, pair] = len(lists)
                lists.append(any_cells[value % 2 == (0 if wants_even else 1)])
                first = (6 if wants_even else 2) if name.startswith("Product") else 4
                rank[code, truth, pair] = first + (1 - pair)
        values = {"AddEqual": total, "SubtractEqual": -total, "MultiplyEqual": product} if schema.numbers else {}
        for name, value in values.items():
            code = schema.operators[name].code
            found, index = np.unique(value, return_inverse=True)
            by_cells = np.zeros((schema.cells, schema.cells), np.int64)
            by_cells[any_cells[:, 0], any_cells[:, -1]] = value
            numbered[code, pair] = Numbered(value, len(lists) + index, by_cells)
            lists += [any_cells[index == i] for i in range(len(found))]
            rank[code, :, pair] = 1
    rank[schema.operators["GetLocation"].code] = 0
    size = np.array([len(cells) for cells in lists])
    return Places(schema, np.concatenate(lists), np.cumsum(size) - size, size, of, rank, numbered)


def _all_cells(schema: Schema, parts: int, pair: int) -> Ints:
    """Every cell, or every ordered pair of different ones; a second column without a meaning repeats the first."""
    first, second = np.divmod(np.arange(schema.cells**2), schema.cells)
    keep = (first != second) if pair else (first == second)
    return np.asarray(np.stack([first, second], axis=1)[keep][:, :parts])
