"""The interface of the two generators: a plan tells them which questions to draw, and they return records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from unseen.randomness import Draws, Floats, Ints
from unseen.tasks.gcog.schema import Schema

Codes = NDArray[np.uint8]
SmallInts = NDArray[np.uint16]

OperatorGroup = tuple[tuple[str, ...], ...]
"""The operators that are allowed at each node of a tree, in heap order (children of node j: 2j + 1 THEN, 2j + 2 ELSE)."""


def count_operators(depth: int) -> int:
    """Return the number of operators in a tree of this depth.

    >>> [count_operators(depth) for depth in (1, 3, 5, 7)]
    [1, 3, 7, 15]
    """
    return (1 << (depth + 1) // 2) - 1


def allow_all_operators(schema: Schema, depth: int) -> tuple[OperatorGroup, ...]:
    """Return the one group that allows every boolean operator at inner nodes and every operator at the leaves."""
    booleans = tuple(name for name in schema.enabled if schema.operators[name].boolean)
    if depth > 1 and not booleans:
        raise ValueError(f"operators: a question of depth {depth} needs a boolean operator, such as Exist")
    nodes = count_operators(depth)
    inner = nodes // 2
    return ((booleans,) * inner + (schema.enabled,) * (nodes - inner),)


@dataclass(frozen=True)
class QuestionPlan:
    """Questions of one depth.

    Attributes:
        groups: the operators of a tree come from one of these groups, which are equally likely.
        distractors: the lowest and the highest number of distractors.
        two_objects: how often an operator that accepts one or two objects is about two.
        constant_count: whether one distractor is added for every queried object that is absent.
        allowed_objects: for depth 1, the objects that each operator may name, see `number_objects`; empty for all.
        task_objects: in the preset `released`, the objects that questions may be about; None for all.
    """

    schema: Schema
    depth: int
    groups: tuple[OperatorGroup, ...]
    distractors: tuple[int, int]
    two_objects: float = 0.0
    constant_count: bool = False
    allowed_objects: tuple[tuple[str, tuple[int, ...]], ...] = ()
    task_objects: tuple[int, ...] | None = None

    @property
    def nodes(self) -> int:
        """The number of operators in a tree."""
        return count_operators(self.depth)

    @property
    def leaf_start(self) -> int:
        """The heap index of the first leaf."""
        return self.nodes // 2

    @cached_property
    def operator_names(self) -> set[str]:
        """Every operator that may occur."""
        names: set[str] = set()
        for group in self.groups:
            names = names.union(*group)
        return names

    @cached_property
    def two(self) -> bool:
        """Whether a question may be about two objects."""
        counts = {self.schema.operators[name].object_counts for name in self.operator_names}
        return (2,) in counts or (self.two_objects > 0 and (1, 2) in counts)

    @cached_property
    def leaf_codes(self) -> list[int]:
        """The sorted codes of the operators that may be leaves."""
        names: set[str] = set()
        for group in self.groups:
            names = names.union(*group[self.leaf_start :])
        return sorted(self.schema.operators[name].code for name in names)

    @cached_property
    def _operator_choices(self) -> tuple[Ints, Ints]:
        """The allowed codes (groups, nodes, choices), padded with zeros, and the number of choices (groups, nodes)."""
        counts = np.array([list(map(len, group)) for group in self.groups])
        codes = np.zeros((*counts.shape, counts.max()), np.int64)
        for number, group in enumerate(self.groups):
            for node, names in enumerate(group):
                codes[number, node, : len(names)] = [self.schema.operators[name].code for name in names]
        return codes, counts

    def draw_operators(self, leaf: Ints, dealt: Ints | None, draws: Draws) -> Ints:
        """Draw operator codes (K, B), uniform and independent within a group.

        Args:
            leaf: (B,), the node at which the path of each question ends.
            dealt: (B,), the operator at that node if it is fixed already.
        """
        codes, counts = self._operator_choices
        columns = np.arange(len(leaf))
        group = draws.integers(len(self.groups), len(leaf))
        if dealt is not None and len(self.groups) > 1:
            # Where the drawn group does not allow the dealt operator at the leaf, take the first group that does.
            allowed = (codes[:, leaf] == dealt[:, None]).any(axis=2)
            group = np.where(allowed[group, columns], group, allowed.argmax(axis=0))
        nodes = np.arange(self.nodes)[:, None]
        choice = draws.integers(counts[group, nodes], (self.nodes, len(leaf)))
        operator: Ints = codes[group, nodes, choice]
        if dealt is not None:
            operator[leaf, columns] = dealt
        return operator

    def draw_distractor_counts(self, count: int, draws: Draws) -> Ints:
        """Draw the number of distractors of each question, (B,)."""
        low, high = self.distractors
        return low + draws.integers(high - low + 1, count)

    def restrict_objects(self, operator: Ints, uniform: Floats, objects: Ints) -> None:
        """Replace objects, (B,), by a uniform choice among those that their operator may name, if it is restricted."""
        for name, numbers in self.allowed_objects:
            mask = operator == self.schema.operators[name].code
            objects[mask] = np.array(numbers)[(uniform[mask] * len(numbers)).astype(np.int64)]


def deal_operators(codes: Sequence[int], count: int, draws: Draws) -> Ints:
    """Return `count` operator codes in random order such that every run of len(codes) of them contains each once."""
    # One shuffled round of all codes after the other; the last round may be cut.
    order = draws.permutations(-(-count // len(codes)), len(codes)).reshape(-1)[:count]
    dealt: Ints = np.asarray(codes)[order]
    return dealt


def number_objects(
    schema: Schema, operator: str, objects: Sequence[tuple[int, ...]], whole: bool = False
) -> tuple[int, ...]:
    """Return what an operator may name if its object is one of these, as sorted numbers.

    An operator that finds its object by one feature may name the values of that feature. All others, and all operators
    if `whole`, name objects; in the number of an object, the first feature runs fastest.

    Args:
        schema: the world of the task.
        operator: the name of an operator.
        objects: objects as indices of their values (from 0), feature by feature.
        whole: number the whole object for every operator, including the features that the question does not state.
    """
    key = schema.operators[operator].key
    if key is not None and not whole:
        return tuple(sorted({values[key] for values in objects}))
    strides = np.cumprod((1, *schema.sizes[:-1]))
    return tuple(sorted(int(np.dot(values, strides)) for values in objects))


@dataclass(frozen=True)
class QuestionRows:
    """Arrays with questions along their first axes. `redraws` (B,) counts how often each question was drawn again."""

    redraws: Ints

    def __len__(self) -> int:
        return len(self.redraws)

    def take(self, rows: Ints) -> Self:
        """Return some of the questions."""
        return type(self)(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})

    def put(self, rows: Ints, others: Self) -> None:
        """Replace some questions by others, which count as drawn once more than these."""
        others.redraws[:] = self.redraws[rows] + 1
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(others, field.name)

    @classmethod
    def join(cls, blocks: Sequence[Self]) -> Self:
        """Concatenate blocks of questions."""
        joined = {}
        for field in fields(cls):
            joined[field.name] = np.concatenate([getattr(block, field.name) for block in blocks])
        return cls(**joined)


@dataclass(frozen=True)
class QuestionRecords(QuestionRows):
    """B questions of one depth with K operators in heap order, and their grids.

    Codes of feature values are 1, 2, …; the code 0 means "nothing".

    Attributes:
        operator: (B, K), operator codes.
        stated: (B, K, 2, F), the values that the question states for the first and the second object.
        number: (B, K), the number that an operator compares with.
        grid: (B, cells, F), the objects on the grid.
        target: (B,), the class of the answer.
        leaf: (B,), the node at which the path ends.
        distractors: (B,), the number of objects that no operator asks about.
    """

    operator: Codes
    stated: Codes
    number: Ints
    grid: Codes
    target: Ints
    leaf: Ints
    distractors: Ints
