"""Grids that objects are put on and taken off again, one step for many grids at a time."""

from __future__ import annotations

import numpy as np

from unseen.randomness import Bools, Draws, Ints
from unseen.tasks.gcog.distinct import Redraws


class Board:
    """`count` grids of `cells` cells. An object is a number; each stands on a grid at most once.

    `at` (count, cells): the object in a cell, or −1; `where` (count, objects): the cell of an object, or −1; `asked`
    (count, cells): whether a question is about the object there.
    """

    def __init__(self, count: int, cells: int, objects: int, draws: Draws) -> None:
        self.at = np.full((count, cells), -1)
        self.where = np.full((count, objects), -1)
        self.asked = np.zeros((count, cells), np.bool_)
        self._redraws = Redraws(draws)

    def free_cells(self, rows: Ints) -> Ints:
        """A uniformly drawn free cell of each of these grids."""
        cells = np.zeros(len(rows), np.int64)
        left = np.arange(len(rows))
        while len(left):
            cells[left] = self._redraws.integers(np.full(len(left), self.at.shape[1]))
            left = left[self.at[rows[left], cells[left]] >= 0]
        return cells

    def add(self, rows: Ints, objects: Ints, cells: Ints, asked: bool) -> None:
        """Put objects on free cells."""
        self.at[rows, cells], self.where[rows, objects], self.asked[rows, cells] = objects, cells, asked

    def remove(self, rows: Ints, cells: Ints) -> None:
        """Take away what is in these cells."""
        self.where[rows, self.at[rows, cells]] = -1
        self.at[rows, cells], self.asked[rows, cells] = -1, False

    def add_distractors(self, rows: Ints, objects: Ints) -> None:
        """A distractor goes to a free cell; an equal one that was there before goes away."""
        cells = self.free_cells(rows)
        before = self.where[rows, objects]
        again = before >= 0
        self.remove(rows[again], before[again])
        self.add(rows, objects, cells, asked=False)

    def add_asked(self, rows: Ints, objects: Ints, cells: Ints) -> None:
        """An object that is asked about goes to its cell, unless it is on the grid already.

        A distractor like it goes away. So does a distractor in its cell, but then the object goes to a free cell, as it
        does where another object that is asked about has the cell.
        """
        before = self.where[rows, objects]
        new = ~((before >= 0) & self.asked[rows, before])
        rows, objects, cells, before = rows[new], objects[new], cells[new], before[new]
        double = before >= 0
        self.remove(rows[double], before[double])
        occupied = self.at[rows, cells] >= 0
        distractor = occupied & ~self.asked[rows, cells]
        self.remove(rows[distractor], cells[distractor])
        cells[occupied] = self.free_cells(rows[occupied])
        self.add(rows, objects, cells, asked=True)

    def first_cell(self, fits: Bools) -> Ints:
        """The smallest cell, so the one with the smallest (x, y), that fits, of those (count, cells) that do."""
        return np.asarray(fits.argmax(axis=1))
