"""Exact counts of a language's examples, and the way from a number to an example and back.

C(r, g, s), the number of ways to go on with r more functions from state g at symbol s, is 1 or 0 for r = 0 (may it
end there?) and otherwise the sum of C(r − 1, …) over the functions that may come. Examples of a length are numbered by
start symbol, then by functions in order of application, ascending by id; all arithmetic is exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unseen.randomness import Bools, Ints
from unseen.tasks.ctl.language import Language
from unseen.tasks.ctl.subsets import Numbers, number_type

Walks = tuple[Ints, Ints]
"""Start symbols (B,) and functions in order of application (B, L)."""


@dataclass(frozen=True)
class Level:
    """The choice of a function with r to go: for each place the running sum of C over the functions.

    `before` (places, functions): how many examples come before those that begin with a function;
    `after`: how many before those of the next one, moved apart by `stride` per row so that one search serves all rows.
    """

    before: NDArray[Any]
    after: NDArray[Any]
    stride: int


class Ranks:
    """The examples of a language over given tables (functions, symbols), counted and numbered."""

    def __init__(self, language: Language, tables: Ints) -> None:
        self.language, self.tables = language, tables
        self.symbols = tables.shape[1]
        # A place is state · symbols + symbol. Where each function leads from each place, (places, functions):
        after = np.maximum(language.follow, 0)[:, None, :] * self.symbols + tables.T[None]
        self.after: Ints = after.reshape(-1, len(tables))
        self._legal = (language.legal.transpose(0, 2, 1) & (language.follow >= 0)[:, None, :]).reshape(self.after.shape)
        self._counts: list[NDArray[Any]] = [np.repeat(language.final.astype(object) * 1, self.symbols)]
        self._levels: dict[int, Level] = {}

    def counts(self, left: int) -> NDArray[Any]:
        """C(left, place) as Python integers."""
        while len(self._counts) <= left:
            self._counts.append(self.ways(len(self._counts)).sum(-1))
        return self._counts[left]

    def ways(self, left: int) -> NDArray[Any]:
        """The number of examples that go on with each function, (places, functions)."""
        found: NDArray[Any] = self._legal * self.counts(left - 1)[self.after]
        return found

    def viable(self, left: int) -> Bools:
        """Which functions may come and can be completed, (places, functions)."""
        found: Bools = self.ways(left) > 0
        return found

    def begins(self, length: int) -> NDArray[Any]:
        """How many examples of a length begin with each symbol, as Python integers."""
        return self.counts(length)[: self.symbols]

    def total(self, length: int) -> int:
        """How many examples of a length there are."""
        return int(self.begins(length).sum())

    def unrank(self, ranks: Numbers, length: int) -> Walks:
        """The examples of a length with these numbers."""
        starts = np.cumsum(self.begins(length)).astype(ranks.dtype)
        start = place = np.searchsorted(starts, ranks, side="right")
        left = ranks - (starts - self.begins(length).astype(ranks.dtype))[place]
        functions = np.empty((len(ranks), length), np.int64)
        for step in range(length):
            level = self._level(length - step)
            row = place.astype(level.after.dtype) * level.stride
            found = np.searchsorted(level.after, left.astype(level.after.dtype) + row, side="right")
            functions[:, step] = found - place * len(self.tables)
            left = left - level.before[place, functions[:, step]]
            place = self.after[place, functions[:, step]]
        return start, functions

    def rank(self, start: Ints, functions: Ints) -> Numbers:
        """The numbers of examples of one length; −1 for those that the language does not have."""
        length = functions.shape[1]
        begins = self.begins(length)
        number = (np.cumsum(begins) - begins).astype(number_type(self.total(length)))[start]
        place, known = start, begins[start] > 0
        for step in range(length):
            function = functions[:, step]
            number = number + self._level(length - step).before[place, function]
            known = known & self.viable(length - step)[place, function]
            place = self.after[place, function]
        return np.where(known, number, -1)

    def covered(self, lengths: Iterable[int]) -> Bools:
        """Which functions occur in an example of one of these lengths."""
        found = np.zeros(len(self.tables), np.bool_)
        for length in lengths:
            here = np.arange(len(self.after)) < self.symbols
            for left in range(length, 0, -1):
                steps = here[:, None] & self.viable(left)
                found |= steps.any(0)
                here = np.zeros_like(here)
                here[self.after[steps]] = True
        return found

    def _level(self, left: int) -> Level:
        if left not in self._levels:
            ways = self.ways(left)
            after = np.cumsum(ways, axis=1)
            stride = int(after[:, -1].max()) + 1
            kind = number_type(stride * (len(after) + 1))
            apart = np.arange(len(after)).astype(kind)[:, None] * stride
            self._levels[left] = Level((after - ways).astype(kind), (after.astype(kind) + apart).reshape(-1), stride)
        return self._levels[left]
