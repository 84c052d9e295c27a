"""From records to the inputs of a model and back: tokens, three codings of them, and the factors of each example.

Rule tokens are the nodes of the tree in level order and an end token. Stimulus tokens are the cells of the grid and an
end token. A coding turns tokens into input fields:

- `integer`: codes as real numbers, as published; stimulus tokens have colour before shape, rule tokens after it;
- `onehot`: every code as a one-hot vector;
- `embedding`: every code as a category, for models that learn a vector per value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unseen.randomness import Bools, Ints
from unseen.spec import Field
from unseen.tasks.base import Array
from unseen.tasks.gcog.plan import Codes, QuestionPlan, QuestionRecords, count_operators
from unseen.tasks.gcog.pools import RecordsOfPlan
from unseen.tasks.gcog.schema import CONDITIONAL, Schema
from unseen.tasks.gcog.tree import Conditional, Description, GridObject, Query, Tree

TIME = 1
"""The time code of every object, which means "current"."""

CodingName = Literal["integer", "onehot", "embedding"]
Inputs = Mapping[str, Array]


@dataclass(frozen=True)
class GcogTokens:
    """Tokens as integer codes, before any coding.

    Attributes:
        rule: (B, R, width): the operator; the features and the time of the first and of the second object; the end
            flag; the number, if an operator of the schema compares with one. Rows after the end token are zero.
        grid: (B, cells, F): the features of the object in each cell. Codings add the end token of the stimulus.
    """

    rule: Ints
    grid: Codes

    @property
    def mask(self) -> Bools:
        """Which rule tokens are real, (B, R): those up to the end token."""
        flags = self.rule[:, :, get_end_column(self.grid.shape[2])]
        # A reversed cumulative sum is positive up to the only flag.
        return np.asarray(np.cumsum(flags[:, ::-1], axis=1)[:, ::-1] > 0)


def get_end_column(features: int) -> int:
    """Return the column of a rule token that holds the end flag."""
    return 1 + 2 * (features + 1)


def get_rule_width(schema: Schema) -> int:
    """Return the number of columns of a rule token.

    >>> get_rule_width(Schema())
    8
    """
    return get_end_column(len(schema.features)) + 1 + schema.numbers


def get_rule_length(depth: int) -> int:
    """Return the number of rule tokens of a question of this depth, including the end token.

    >>> [get_rule_length(depth) for depth in (1, 3, 5, 7)]
    [2, 5, 11, 23]
    """
    return 3 * (count_operators(depth) + 1) // 2 - 1


@cache
def _get_positions(depth: int) -> tuple[Ints, Ints]:
    """Return the positions of the operators, in heap order, and of the conditionals among the rule tokens.

    Each level has its operators and then, except for the last one, as many conditionals.
    """
    operators: list[int] = []
    conditionals: list[int] = []
    start = 0
    for level in range((depth + 1) // 2):
        width = 2**level
        operators += range(start, start + width)
        if level < (depth - 1) // 2:
            conditionals += range(start + width, start + 2 * width)
        start += 2 * width
    return np.array(operators), np.array(conditionals, np.int64)


def encode_tokens(
    schema: Schema, records: QuestionRecords, depth: int, length: int, unnamed_code: int = 0
) -> GcogTokens:
    """Return the tokens of questions of one depth, padded with zero rows to a length.

    `unnamed_code` encodes a feature that the question does not state; the release writes 1, which also means a or red.
    """
    features = len(schema.features)
    operators, conditionals = _get_positions(depth)
    rule = np.zeros((len(records), length, get_rule_width(schema)), np.int64)
    rule[:, operators, 0] = records.operator
    for slot in (0, 1):
        stated = records.stated[:, :, slot]
        start = 1 + slot * (features + 1)
        exists = np.asarray(stated.any(axis=2, keepdims=True))
        if unnamed_code:
            stated = np.where(exists & (stated == 0), unnamed_code, stated)
        rule[:, operators, start : start + features] = stated
        rule[:, operators, start + features] = exists[:, :, 0] * TIME
    rule[:, conditionals, 0] = CONDITIONAL
    rule[:, get_rule_length(depth) - 1, get_end_column(features)] = 1
    if schema.numbers:
        rule[:, operators, get_end_column(features) + 1] = records.number
    return GcogTokens(rule, records.grid)


def read_tree(schema: Schema, rows: list[list[int]]) -> Tree:
    """Return the tree that rule tokens describe. It reads the format independently of the encoder."""
    flags = [row[get_end_column(len(schema.features))] for row in rows]
    stop = flags.index(1)
    levels: list[list[Query]] = []
    start = 0
    width = 1
    while start < stop:
        levels.append([_read_query(schema, row) for row in rows[start : start + width]])
        start += width
        if start < stop:
            assert all(row[0] == CONDITIONAL for row in rows[start : start + width])
        start += width
        width *= 2
    # Build the tree from the leaves upwards: node i of a level has the children 2i and 2i + 1 of the next level.
    trees: list[Tree] = list(levels[-1])
    for level in reversed(levels[:-1]):
        trees = [Conditional(query, trees[2 * i], trees[2 * i + 1]) for i, query in enumerate(level)]
    return trees[0]


def _read_query(schema: Schema, row: list[int]) -> Query:
    operator = schema.by_code[row[0]]
    features = len(schema.features)
    objects: list[Description] = []
    for start in (1, features + 2):
        if row[start + features] != TIME:
            continue
        values: list[str | None] = [None] * features
        for feature in operator.named_features:
            values[feature] = schema.features[feature][1][row[start + feature] - 1]
        objects.append(tuple(values))
    number = row[get_end_column(features) + 1] if operator.category == "equal" else None
    return Query(operator.name, tuple(objects), number)


def read_objects(schema: Schema, grid: Codes) -> list[GridObject]:
    """Return the objects on one grid, (cells, F), in the order of the cells."""
    objects = []
    for cell in np.flatnonzero(grid.any(axis=1)).tolist():
        x, y = schema.coordinates(cell)
        codes = grid[cell].tolist()
        values = [names[code - 1] for (_, names), code in zip(schema.features, codes, strict=True)]
        objects.append(GridObject(tuple(values), x, y))
    return objects


@dataclass(frozen=True)
class Coding:
    """A coding: its input fields, tokens to inputs, and inputs to tokens.

    The boolean argument says whether a question may be about two objects.
    """

    fields: Callable[[Schema, bool], list[Field]]
    write: Callable[[Schema, bool, GcogTokens], dict[str, Array]]
    read: Callable[[Schema, Inputs], GcogTokens]


def _integer_fields(schema: Schema, two: bool) -> list[Field]:
    return [
        Field("rule", "real", get_rule_width(schema), "rule"),
        Field("stimulus", "real", len(schema.features) + 1, "stimulus"),
    ]


def _write_integer(schema: Schema, two: bool, tokens: GcogTokens) -> dict[str, Array]:
    count, cells, features = tokens.grid.shape
    stimulus = np.zeros((count, cells + 1, features + 1), np.float32)
    stimulus[:, :cells, :features] = tokens.grid[:, :, ::-1]
    stimulus[:, cells, features] = 1
    return {"rule": tokens.rule.astype(np.float32), "stimulus": stimulus}


def _read_integer(schema: Schema, inputs: Inputs) -> GcogTokens:
    grid = inputs["stimulus"][:, :-1, : len(schema.features)][:, :, ::-1].astype(np.uint8)
    return GcogTokens(inputs["rule"].astype(np.int64), grid)


def _get_onehot_widths(schema: Schema) -> list[int]:
    """Return the number of one-hot columns for each column of a rule token; a width of 1 keeps the number."""
    object_widths = [*schema.sizes, 1]
    widths = [schema.highest_code, *object_widths, *object_widths, 1]
    return [*widths, 1] if schema.numbers else widths


def _onehot_fields(schema: Schema, two: bool) -> list[Field]:
    return [
        Field("rule", "real", sum(_get_onehot_widths(schema)), "rule"),
        Field("stimulus", "real", sum(schema.sizes) + 1, "stimulus"),
    ]


def _write_onehot(schema: Schema, two: bool, tokens: GcogTokens) -> dict[str, Array]:
    columns: list[NDArray[np.float32]] = []
    for index, width in enumerate(_get_onehot_widths(schema)):
        codes = tokens.rule[:, :, index]
        if width == 1:
            columns.append(codes[:, :, None].astype(np.float32))
        else:
            # Without its first column, the identity matrix has a row of zeros for the code 0.
            columns.append(np.eye(width + 1, dtype=np.float32)[:, 1:][codes])
    count, cells, features = tokens.grid.shape
    stimulus = np.zeros((count, cells + 1, sum(schema.sizes) + 1), np.float32)
    start = 0
    for feature in reversed(range(features)):
        # Only the occupied cells are written, because most cells are empty.
        row, cell = np.nonzero(tokens.grid[:, :, feature])
        stimulus[row, cell, start + tokens.grid[row, cell, feature].astype(np.int64) - 1] = 1
        start += schema.sizes[feature]
    stimulus[:, cells, start] = 1
    return {"rule": np.concatenate(columns, axis=2), "stimulus": stimulus}


def _read_onehot(schema: Schema, inputs: Inputs) -> GcogTokens:
    def decode(rows: Array) -> Array:
        # A row without a one is the code 0, which has no column.
        return np.where(rows.any(axis=-1), rows.argmax(axis=-1) + 1, 0)

    widths = _get_onehot_widths(schema)
    columns = []
    for onehot, width in zip(np.split(inputs["rule"], np.cumsum(widths)[:-1], axis=2), widths, strict=True):
        columns.append(onehot[:, :, 0] if width == 1 else decode(onehot))
    reversed_sizes = schema.sizes[::-1]
    features = np.split(inputs["stimulus"][:, :-1, :-1], np.cumsum(reversed_sizes)[:-1], axis=2)
    grid = np.stack([decode(onehot) for onehot in features[::-1]], axis=2).astype(np.uint8)
    return GcogTokens(np.stack(columns, axis=2).astype(np.int64), grid)


def _list_stated_fields(schema: Schema, two: bool) -> list[tuple[str, int, int]]:
    """Return the field name, the column of the rule token and the number of categories of each stated feature."""
    fields = []
    for slot, suffix in ((0, ""), (1, "_2"))[: 1 + two]:
        start = 1 + slot * (len(schema.features) + 1)
        for index, (name, values) in enumerate(schema.features):
            fields.append((f"rule_{name}{suffix}", start + index, len(values) + 1))
    return fields


def _embedding_fields(schema: Schema, two: bool) -> list[Field]:
    fields = [Field("rule_operator", "category", schema.highest_code + 2, "rule")]
    for name, _, size in _list_stated_fields(schema, two):
        fields.append(Field(name, "category", size, "rule"))
    if schema.numbers:
        fields.append(Field("rule_number", "real", 1, "rule"))
    for name, values in reversed(schema.features):
        fields.append(Field(f"stimulus_{name}", "category", len(values) + 2, "stimulus"))
    return fields


def _write_embedding(schema: Schema, two: bool, tokens: GcogTokens) -> dict[str, Array]:
    """The end of the rule is an operator of its own; the end of the stimulus is the last value of every feature."""
    rule = tokens.rule
    end_column = get_end_column(len(schema.features))
    count, cells, features = tokens.grid.shape
    operator = rule[:, :, 0] + (schema.highest_code + 1) * rule[:, :, end_column]
    inputs: dict[str, Array] = {"rule_operator": operator.astype(np.uint8)}
    for name, column, _ in _list_stated_fields(schema, two):
        inputs[name] = rule[:, :, column].astype(np.uint8)
    if schema.numbers:
        inputs["rule_number"] = rule[:, :, end_column + 1, None].astype(np.float32)
    for feature in reversed(range(features)):
        values = np.empty((count, cells + 1), np.uint8)
        values[:, :cells] = tokens.grid[:, :, feature]
        values[:, cells] = schema.sizes[feature] + 1
        inputs[f"stimulus_{schema.features[feature][0]}"] = values
    return inputs


def _read_embedding(schema: Schema, inputs: Inputs) -> GcogTokens:
    features = len(schema.features)
    end_column = get_end_column(features)
    operator = inputs["rule_operator"].astype(np.int64)
    rule = np.zeros((*operator.shape, get_rule_width(schema)), np.int64)
    is_end = operator == schema.highest_code + 1
    rule[:, :, 0] = np.where(is_end, 0, operator)
    rule[:, :, end_column] = is_end
    # Inputs without fields for a second object come from a task whose questions are about one object.
    two = f"rule_{schema.features[0][0]}_2" in inputs
    for name, column, _ in _list_stated_fields(schema, two):
        rule[:, :, column] = inputs[name]
    for slot in range(1 + two):
        start = 1 + slot * (features + 1)
        rule[:, :, start + features] = rule[:, :, start : start + features].any(axis=2) * TIME
    if schema.numbers:
        rule[:, :, end_column + 1] = inputs["rule_number"][:, :, 0]
    grid = np.stack([inputs[f"stimulus_{name}"][:, :-1] for name, _ in schema.features], axis=2)
    return GcogTokens(rule, grid)


CODINGS: dict[CodingName, Coding] = {
    "integer": Coding(_integer_fields, _write_integer, _read_integer),
    "onehot": Coding(_onehot_fields, _write_onehot, _read_onehot),
    "embedding": Coding(_embedding_fields, _write_embedding, _read_embedding),
}


def encode_block(
    plans: Sequence[QuestionPlan], unnamed_code: int, records_of_plans: Iterable[RecordsOfPlan]
) -> tuple[GcogTokens, Ints, dict[str, Array]]:
    """Return the tokens, targets and factors of a block of questions, in the order of its rows.

    Everything is padded for the deepest of the plans.
    """
    deepest = max(plan.depth for plan in plans)
    rows: list[Ints] = []
    arrays: list[dict[str, Array]] = []
    for plan, plan_rows, records in records_of_plans:
        tokens = encode_tokens(plan.schema, records, plan.depth, get_rule_length(deepest), unnamed_code)
        factors = _make_factors(plan.schema, records, plan.depth, deepest)
        rows.append(plan_rows)
        arrays.append({"rule tokens": tokens.rule, "grid": tokens.grid, "targets": records.target, **factors})
    block = arrays[0]
    if len(arrays) > 1:
        # Each row occurs once, so sorting the rows restores the order of the block.
        order = np.argsort(np.concatenate(rows))
        block = {}
        for name in arrays[0]:
            block[name] = np.concatenate([plan_arrays[name] for plan_arrays in arrays])[order]
    return GcogTokens(block.pop("rule tokens"), block.pop("grid")), block.pop("targets"), block


def _make_factors(schema: Schema, records: QuestionRecords, depth: int, deepest: int) -> dict[str, Array]:
    """Return the factors of questions of one depth; operators and turns are padded for the deepest questions."""
    count = len(records)
    leaf = np.arange(count), records.leaf
    names = np.array([""] * (max(schema.by_code) + 1), dtype=f"<U{max(map(len, schema.operators))}")
    for code, operator in schema.by_code.items():
        names[code] = operator.name
    operators = np.zeros((count, count_operators(deepest)), np.uint8)
    operators[:, : count_operators(depth)] = records.operator
    path = np.full((count, (deepest - 1) // 2), -1, np.int8)
    path[:, : (depth - 1) // 2] = encode_path(records.leaf, depth)
    return {
        "depth": np.full(count, depth),
        "operator": names[records.operator[leaf]],
        "answer_kind": schema.answer_kinds[records.target],
        "object": records.stated[:, :, 0][leaf],
        "operators": operators,
        "path": path,
        "distractors": records.distractors,
        "redraws": records.redraws,
    }


def encode_path(leaf: Ints, depth: int) -> NDArray[np.int8]:
    """Return the turns that lead to a leaf, (B, levels − 1): 1 for THEN, 0 for ELSE.

    >>> encode_path(np.array([3, 6]), 5).tolist()
    [[1, 1], [0, 0]]
    """
    turns = np.zeros((len(leaf), (depth - 1) // 2), np.int8)
    node = leaf.copy()
    # In heap order, THEN children have odd indices.
    for level in range(turns.shape[1] - 1, -1, -1):
        turns[:, level] = node % 2
        node = (node - 1) // 2
    return turns
