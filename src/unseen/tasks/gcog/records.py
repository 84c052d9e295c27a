"""Questions with their grids as arrays: the record of which tokens, tree, sentence, picture and target are views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from unseen.randomness import Ints

Codes = NDArray[np.uint8]
Small = NDArray[np.uint16]


def operator_count(depth: int) -> int:
    """How many operators a tree of this depth has.

    >>> [operator_count(depth) for depth in (1, 3, 5, 7)]
    [1, 3, 7, 15]
    """
    return (1 << (depth + 1) // 2) - 1


@dataclass(frozen=True)
class Rows:
    """Arrays with questions along their first axes. `redraws` (B,): how often each was drawn again."""

    redraws: Ints

    def __len__(self) -> int:
        return len(self.redraws)

    def take(self, rows: Ints) -> Self:
        """Some of the questions."""
        return type(self)(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})

    def put(self, rows: Ints, others: Self) -> None:
        """Replace some questions by others, which were drawn once more than these."""
        others.redraws[:] = self.redraws[rows] + 1
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(others, field.name)

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Parts one after the other."""
        return cls(**{f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)})


@dataclass(frozen=True)
class Records(Rows):
    """B questions of one depth, K operators in heap order (children of j: 2j + 1 THEN, 2j + 2 ELSE), and their grids.

    Codes of features are 1, 2, …; 0 is nothing. `named` (B, K, 2, F): what is said of the first and the second object;
    `number` (B, K): what an operator compares with; `grid` (B, cells, F); `leaf` (B,): the operator the path ends at;
    `distractors` (B,): objects no operator asks about.
    """

    operator: Codes
    named: Codes
    number: Ints
    grid: Codes
    target: Ints
    leaf: Ints
    distractors: Ints


def leaf_path(leaf: Ints, depth: int) -> NDArray[np.int8]:
    """The turns that lead to a leaf, (B, levels − 1): 1 THEN, 0 ELSE.

    >>> leaf_path(np.array([3, 6]), 5).tolist()
    [[1, 1], [0, 0]]
    """
    turns = np.zeros((len(leaf), (depth - 1) // 2), np.int8)
    node = leaf.copy()
    for level in range(turns.shape[1] - 1, -1, -1):
        turns[:, level] = node % 2
        node = (node - 1) // 2
    return turns
