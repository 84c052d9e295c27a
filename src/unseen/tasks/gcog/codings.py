"""Tokens as inputs of a model, in three codings, and back again.

- `integer`: the codes as real numbers, as published; stimulus tokens have colour before shape, rule tokens after it;
- `onehot`: every code as a row of zeros with a one;
- `embedding`: every code as a category of its own, for models that learn a vector per value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unseen.spec import Field
from unseen.tasks.base import Array
from unseen.tasks.gcog.schema import Schema
from unseen.tasks.gcog.tokens import TIME, Tokens, end_column, rule_width

CodingName = Literal["integer", "onehot", "embedding"]
Inputs = Mapping[str, Array]


@dataclass(frozen=True)
class Coding:
    """The input fields, tokens to inputs, and inputs to tokens. `two`: whether a question may be about two objects."""

    fields: Callable[[Schema, bool], list[Field]]
    write: Callable[[Schema, bool, Tokens], dict[str, Array]]
    read: Callable[[Schema, Inputs], Tokens]


def _integer_fields(schema: Schema, two: bool) -> list[Field]:
    return [
        Field("rule", "real", rule_width(schema), "rule"),
        Field("stimulus", "real", len(schema.features) + 1, "stimulus"),
    ]


def _write_integer(schema: Schema, two: bool, tokens: Tokens) -> dict[str, Array]:
    count, cells, features = tokens.grid.shape
    stimulus = np.zeros((count, cells + 1, features + 1), np.float32)
    for feature in range(features):
        stimulus[:, :cells, features - 1 - feature] = tokens.grid[:, :, feature]
    stimulus[:, cells, features] = 1
    return {"rule": tokens.rule.astype(np.float32), "stimulus": stimulus}


def _read_integer(schema: Schema, inputs: Inputs) -> Tokens:
    features = len(schema.features)
    grid = inputs["stimulus"][:, :-1, :features][:, :, ::-1].astype(np.uint8)
    return Tokens(inputs["rule"].astype(np.int64), grid)


def _widths(schema: Schema) -> list[int]:
    """How many one-hot columns each dimension of a rule token takes."""
    one = [*schema.sizes, 1]
    return [schema.highest_code, *one, *one, 1, *([1] if schema.numbers else [])]


def _onehot_fields(schema: Schema, two: bool) -> list[Field]:
    return [
        Field("rule", "real", sum(_widths(schema)), "rule"),
        Field("stimulus", "real", sum(schema.sizes) + 1, "stimulus"),
    ]


def _hot(codes: Array, size: int) -> NDArray[np.float32]:
    """Codes as rows of zeros with a one; the code 0 is all zeros."""
    return np.eye(size + 1, dtype=np.float32)[:, 1:][codes]


def _cold(rows: Array) -> Array:
    """The codes of rows with a one."""
    return np.where(rows.any(axis=-1), rows.argmax(axis=-1) + 1, 0)


def _write_onehot(schema: Schema, two: bool, tokens: Tokens) -> dict[str, Array]:
    columns = [
        tokens.rule[:, :, i, None].astype(np.float32) if width == 1 else _hot(tokens.rule[:, :, i], width)
        for i, width in enumerate(_widths(schema))
    ]
    count, cells, features = tokens.grid.shape
    stimulus = np.zeros((count, cells + 1, sum(schema.sizes) + 1), np.float32)
    start = 0
    for feature in reversed(range(features)):
        row, cell = np.nonzero(tokens.grid[:, :, feature])
        stimulus[row, cell, start + tokens.grid[row, cell, feature].astype(np.int64) - 1] = 1
        start += schema.sizes[feature]
    stimulus[:, cells, start] = 1
    return {"rule": np.concatenate(columns, axis=2), "stimulus": stimulus}


def _read_onehot(schema: Schema, inputs: Inputs) -> Tokens:
    widths = _widths(schema)
    parts = np.split(inputs["rule"], np.cumsum(widths)[:-1], axis=2)
    columns = [part[:, :, 0] if width == 1 else _cold(part) for part, width in zip(parts, widths, strict=True)]
    sizes = schema.sizes[::-1]
    each = np.split(inputs["stimulus"][:, :-1, :-1], np.cumsum(sizes)[:-1], axis=2)
    grid = np.stack([_cold(part) for part in each[::-1]], axis=2).astype(np.uint8)
    return Tokens(np.stack(columns, axis=2).astype(np.int64), grid)


def _named_fields(schema: Schema, two: bool) -> list[tuple[str, int, int]]:
    """Name, dimension of the rule token and number of values of each named feature."""
    features = len(schema.features)
    return [
        (f"rule_{name}{'_2' if number else ''}", 1 + number * (features + 1) + i, len(values) + 1)
        for number in range(1 + two)
        for i, (name, values) in enumerate(schema.features)
    ]


def _embedding_fields(schema: Schema, two: bool) -> list[Field]:
    found = [Field("rule_operator", "category", schema.highest_code + 2, "rule")]
    found += [Field(name, "category", size, "rule") for name, _, size in _named_fields(schema, two)]
    if schema.numbers:
        found.append(Field("rule_number", "real", 1, "rule"))
    return found + [
        Field(f"stimulus_{name}", "category", len(values) + 2, "stimulus") for name, values in reversed(schema.features)
    ]


def _write_embedding(schema: Schema, two: bool, tokens: Tokens) -> dict[str, Array]:
    """The end of the rule is an operator of its own; that of the stimulus the last value of every feature."""
    rule, end = tokens.rule, end_column(len(schema.features))
    count, cells, features = tokens.grid.shape
    inputs: dict[str, Array] = {
        "rule_operator": (rule[:, :, 0] + (schema.highest_code + 1) * rule[:, :, end]).astype(np.uint8)
    }
    for name, column, _ in _named_fields(schema, two):
        inputs[name] = rule[:, :, column].astype(np.uint8)
    if schema.numbers:
        inputs["rule_number"] = rule[:, :, end + 1, None].astype(np.float32)
    for feature in reversed(range(features)):
        values = np.empty((count, cells + 1), np.uint8)
        values[:, :cells] = tokens.grid[:, :, feature]
        values[:, cells] = schema.sizes[feature] + 1
        inputs[f"stimulus_{schema.features[feature][0]}"] = values
    return inputs


def _read_embedding(schema: Schema, inputs: Inputs) -> Tokens:
    operator, features = inputs["rule_operator"].astype(np.int64), len(schema.features)
    rule = np.zeros((*operator.shape, rule_width(schema)), np.int64)
    ended = operator == schema.highest_code + 1
    rule[:, :, 0] = np.where(ended, 0, operator)
    rule[:, :, end_column(features)] = ended
    two = f"rule_{schema.features[0][0]}_2" in inputs
    for name, column, _ in _named_fields(schema, two):
        rule[:, :, column] = inputs[name]
    for number in range(1 + two):
        start = 1 + number * (features + 1)
        rule[:, :, start + features] = rule[:, :, start : start + features].any(axis=2) * TIME
    if schema.numbers:
        rule[:, :, end_column(features) + 1] = inputs["rule_number"][:, :, 0]
    grid = np.stack([inputs[f"stimulus_{name}"][:, :-1] for name, _ in schema.features], axis=2)
    return Tokens(rule, grid)


CODINGS: dict[CodingName, Coding] = {
    "integer": Coding(_integer_fields, _write_integer, _read_integer),
    "onehot": Coding(_onehot_fields, _write_onehot, _read_onehot),
    "embedding": Coding(_embedding_fields, _write_embedding, _read_embedding),
}
