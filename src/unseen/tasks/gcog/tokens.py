"""Questions and grids as tokens: level order for the rule, cell by cell for the stimulus."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from unseen.randomness import Bools, Ints
from unseen.tasks.gcog.operators import CONDITIONAL
from unseen.tasks.gcog.records import Codes, Records, operator_count
from unseen.tasks.gcog.schema import Schema
from unseen.tasks.gcog.tree import Ask, Branch, Named, Thing, Tree

TIME = 1
"""The time code of every object: "current"."""


@dataclass(frozen=True)
class Tokens:
    """Tokens as small integers, before any coding.

    `rule` (B, R, width): operator; shape, colour, …, time of the first and of the second object; end flag; a number
    where some operator compares with one. Rows after the end are zero. `grid` (B, cells, F): codes of features in the
    schema's order; the end token of the stimulus is left to the coding.
    """

    rule: Ints
    grid: Codes

    @property
    def mask(self) -> Bools:
        """Which rule tokens are real, (B, R): those up to the end token."""
        flags = self.rule[:, :, end_column(self.grid.shape[2])]
        return np.asarray(np.cumsum(flags[:, ::-1], axis=1)[:, ::-1] > 0)


def end_column(features: int) -> int:
    """The dimension of a rule token that marks the end."""
    return 1 + 2 * (features + 1)


def rule_width(schema: Schema) -> int:
    """How many dimensions a rule token has.

    >>> rule_width(Schema())
    8
    """
    return end_column(len(schema.features)) + 1 + schema.numbers


def rule_length(depth: int) -> int:
    """How many rule tokens a question of this depth has, with the end token.

    >>> [rule_length(depth) for depth in (1, 3, 5, 7)]
    [2, 5, 11, 23]
    """
    return 3 * (operator_count(depth) + 1) // 2 - 1


@cache
def _layout(depth: int) -> tuple[Ints, Ints]:
    """The places of the operators, in heap order, and of the conditionals in level order."""
    operators, conditionals, start = list[int](), list[int](), 0
    for level in range((depth + 1) // 2):
        width = 2**level
        operators += range(start, start + width)
        if level < (depth - 1) // 2:
            conditionals += range(start + width, start + 2 * width)
        start += 2 * width
    return np.array(operators), np.array(conditionals, np.int64)


def encode(schema: Schema, records: Records, depth: int, length: int, unnamed: int = 0) -> Tokens:
    """The tokens of questions of one depth, padded with zero rows to a length.

    `unnamed` is what stands for a feature that a question does not name: the release writes 1, which is also a or red.
    """
    count, features = len(records), len(schema.features)
    places, conditionals = _layout(depth)
    rule = np.zeros((count, length, rule_width(schema)), np.int64)
    rule[:, places, 0] = records.operator
    for number in (0, 1):
        named = records.named[:, :, number]
        start = 1 + number * (features + 1)
        there = np.asarray(named.any(axis=2, keepdims=True))
        rule[:, places, start : start + features] = np.where(there & (named == 0), unnamed, named) if unnamed else named
        rule[:, places, start + features] = there[:, :, 0] * TIME
    rule[:, conditionals, 0] = CONDITIONAL
    rule[:, rule_length(depth) - 1, end_column(features)] = 1
    if schema.numbers:
        rule[:, places, end_column(features) + 1] = records.number
    return Tokens(rule, records.grid)


def read_tree(schema: Schema, rows: list[list[int]]) -> Tree:
    """The tree that rule tokens stand for: a reading of the format of its own, not the encoder run backwards."""
    end = next(place for place, row in enumerate(rows) if row[end_column(len(schema.features))] == 1)
    found: list[list[Ask]] = []
    start, width = 0, 1
    while start < end:
        found.append([_read_ask(schema, row) for row in rows[start : start + width]])
        start += width
        if start < end:
            assert all(row[0] == CONDITIONAL for row in rows[start : start + width])
        start += width
        width *= 2
    trees: list[Tree] = list(found[-1])
    for level in reversed(found[:-1]):
        trees = [Branch(ask, trees[2 * i], trees[2 * i + 1]) for i, ask in enumerate(level)]
    return trees[0]


def _read_ask(schema: Schema, row: list[int]) -> Ask:
    operator, features = schema.by_code[row[0]], len(schema.features)
    objects: list[Named] = []
    for start in (1, features + 2):
        if row[start + features] == TIME:
            codes = row[start : start + features]
            objects.append(
                tuple(schema.features[i][1][code - 1] if i in operator.named else None for i, code in enumerate(codes))
            )
    number = row[end_column(features) + 1] if operator.kind == "equal" else None
    return Ask(operator.name, tuple(objects), number)


def read_things(schema: Schema, grid: Codes) -> list[Thing]:
    """The objects on one grid, (cells, F), in the order of the cells."""
    found = []
    for cell in np.flatnonzero(grid.any(axis=1)).tolist():
        values = tuple(schema.features[i][1][code - 1] for i, code in enumerate(grid[cell].tolist()))
        x, y = schema.place(cell)
        found.append(Thing(values, x, y))
    return found
