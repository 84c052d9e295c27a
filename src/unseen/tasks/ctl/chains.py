"""Examples in their barest form: a start symbol and the functions applied to it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from unseen.tasks.base import Array
from unseen.tasks.ctl.ranks import Walks


@dataclass(frozen=True)
class Chains:
    """Start symbols (B,), functions in order of application (B, longest) padded with −1, and lengths (B,)."""

    start: Array
    functions: Array
    length: Array

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, index: slice | Array) -> Chains:
        return Chains(self.start[index], self.functions[index], self.length[index])

    def copy(self) -> Chains:
        """The same examples in arrays of their own."""
        return Chains(self.start.copy(), self.functions.copy(), self.length.copy())

    @staticmethod
    def of(walks: Walks) -> Chains:
        """Examples of one length."""
        start, functions = walks
        return Chains(start, functions, np.full(len(start), functions.shape[1]))

    @staticmethod
    def join(parts: Sequence[Chains], longest: int = 0) -> Chains:
        """Parts one after the other, with places for at least `longest` functions."""
        longest = max([longest, *(part.functions.shape[1] for part in parts)])
        functions = np.full((sum(map(len, parts)), longest), -1, np.int16)
        row = 0
        for part in parts:
            functions[row : row + len(part), : part.functions.shape[1]] = part.functions
            row += len(part)
        starts, lengths = ([getattr(part, name) for part in parts] or [np.empty(0)] for name in ("start", "length"))
        return Chains(np.concatenate(starts).astype(np.int16), functions, np.concatenate(lengths).astype(np.int16))


class Recent:
    """The sets asked for last, up to so many examples, so that a part of a set does not draw the set again."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, Chains] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Chains]) -> Chains:
        """What is kept under a key, or what `make` makes."""
        found = self._kept.pop(key) if key in self._kept else make()
        self._kept[key] = found
        while len(self._kept) > 1 and sum(map(len, self._kept.values())) > self._most:
            self._kept.popitem(last=False)
        return found
