"""What the generators of one condition are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unseen.randomness import Draws, Ints
from unseen.tasks.gcog.records import operator_count
from unseen.tasks.gcog.schema import Schema

Group = tuple[tuple[str, ...], ...]
"""The operators allowed at each place of a tree, in heap order."""


@dataclass(frozen=True)
class Plan:
    """Questions of one depth.

    - `groups`: the operators of a tree come from one of these, chosen by a fair draw;
    - `distractors`: the lowest and the highest number asked for;
    - `two_objects`: how often an operator that may be about one or two objects is about two;
    - `constant_count`: one more distractor for each object that is asked about and absent;
    - `named` (depth 1): the objects that an operator may name, as numbers; see `allowed_numbers`;
    - `task_objects` (preset released): the objects that questions are about, as numbers; None for all.
    """

    schema: Schema
    depth: int
    groups: tuple[Group, ...]
    distractors: tuple[int, int]
    two_objects: float = 0.0
    constant_count: bool = False
    named: tuple[tuple[str, tuple[int, ...]], ...] = ()
    task_objects: tuple[int, ...] | None = None

    @cached_property
    def operator_names(self) -> set[str]:
        """Every operator that may occur."""
        return {name for group in self.groups for names in group for name in names}

    @cached_property
    def two(self) -> bool:
        """Whether some question may be about two objects."""
        counts = [self.schema.operators[name].objects for name in self.operator_names]
        return (2,) in counts or (self.two_objects > 0 and (1, 2) in counts)

    @cached_property
    def leaf_codes(self) -> list[int]:
        """The codes of the operators that a path may end at, in order."""
        leaves = self.operators_in_tree // 2
        names = {name for group in self.groups for names in group[leaves:] for name in names}
        return sorted(self.schema.operators[name].code for name in names)

    @property
    def operators_in_tree(self) -> int:
        """How many operators a tree has."""
        return operator_count(self.depth)

    @cached_property
    def _tables(self) -> tuple[Ints, Ints]:
        """Codes (group, place, choice), and how many choices there are."""
        size = np.array([[len(names) for names in group] for group in self.groups])
        codes = np.zeros((*size.shape, size.max()), np.int64)
        for g, group in enumerate(self.groups):
            for place, names in enumerate(group):
                codes[g, place, : len(names)] = [self.schema.operators[name].code for name in names]
        return codes, size

    def draw_operators(self, leaf: Ints, dealt: Ints | None, draws: Draws) -> Ints:
        """Codes of operators (K, B), uniform and independent within a group; those at `leaf` as dealt, if any are."""
        codes, size = self._tables
        count = len(leaf)
        group = draws.integers(len(self.groups), count)
        if dealt is not None and len(self.groups) > 1:
            fits = (codes[:, leaf] == dealt[:, None]).any(axis=2)
            group = np.where(fits[group, np.arange(count)], group, fits.argmax(axis=0))
        places = np.arange(self.operators_in_tree)[:, None]
        operator: Ints = codes[group, places, draws.integers(size[group, places], (len(places), count))]
        if dealt is not None:
            operator[leaf, np.arange(count)] = dealt
        return operator


def deal(codes: Sequence[int], count: int, draws: Draws) -> Ints:
    """`count` operators of which every stretch of as many as there are codes has each once, in a random order."""
    order = draws.permutations(-(-count // len(codes)), len(codes)).reshape(-1)[:count]
    dealt: Ints = np.asarray(codes)[order]
    return dealt


def allowed_numbers(
    schema: Schema, operator: str, objects: Sequence[tuple[int, ...]], hidden: bool = False
) -> tuple[int, ...]:
    """What an operator may name if its object is one of these (value numbers from 0, feature by feature).

    An operator that names an object by one feature may name the values that occur; any other, and with `hidden` all,
    the objects themselves, as numbers in which the first feature runs fastest.
    """
    key = schema.operators[operator].key
    if key is not None and not hidden:
        return tuple(sorted({values[key] for values in objects}))
    strides = np.cumprod((1, *schema.sizes[:-1]))
    return tuple(sorted(int(np.dot(values, strides)) for values in objects))
