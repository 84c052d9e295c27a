"""Tokens: the published layout, the three codings, and the way back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.gcog_cases import (
    PAPER,
    PUBLISHED,
    SCHEMAS,
    clean,
    get_code,
    list_queries,
    make_plan,
    questions,
    read_published_objects,
    read_published_tree,
    released,
)
from unseen.tasks.gcog.encode import (
    CODINGS,
    GcogTokens,
    encode_tokens,
    get_rule_length,
    get_rule_width,
    read_objects,
    read_tree,
)
from unseen.tasks.gcog.schema import Schema
from unseen.tasks.gcog.tree import Conditional, Tree, get_query, list_levels, measure_depth

WITH_TOKENS = [sample for sample in PUBLISHED if "rule_tokens" in sample]


def slow_rule(schema: Schema, tree: Tree, unnamed: int) -> list[list[int]]:
    """Rule tokens written down node by node."""
    rows, blank = [], [0] * get_rule_width(schema)
    features, end = len(schema.features), 1 + 2 * (len(schema.features) + 1)
    for level in list_levels(tree):
        for query in map(get_query, level):
            row = [schema.operators[query.operator].code, *blank[1:]]
            for number, named in enumerate(query.objects):
                start = 1 + number * (features + 1)
                for feature, value in enumerate(named):
                    row[start + feature] = unnamed if value is None else get_code(schema, feature, value)
                row[start + features] = 1
            if query.number is not None:
                row[end + 1] = query.number
            rows.append(row)
        rows += [[9, *blank[1:]] for node in level if isinstance(node, Conditional)]
    return [*rows, [1 if column == end else 0 for column in range(len(blank))]]


def grid_of(sample: dict[str, list[list[int]]]) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    grid = np.zeros((100, 2), np.uint8)
    for place, color, shape, end in sample["stimulus_tokens"]:
        if not end:
            grid[place] = shape, color
    return grid


@pytest.mark.parametrize("sample", WITH_TOKENS, ids=range(len(WITH_TOKENS)))
def test_published_tokens_are_read_and_written(sample: dict[str, list[list[int]]]) -> None:
    tree = read_published_tree(sample["tree"])
    assert read_tree(PAPER, sample["rule_tokens"]) == tree
    assert slow_rule(PAPER, tree, unnamed=1) == sample["rule_tokens"]
    grid = grid_of(sample)
    assert read_objects(PAPER, grid) == sorted(read_published_objects(sample["objects"]), key=lambda t: (t.x, t.y))
    inputs = CODINGS["integer"].write(PAPER, True, GcogTokens(np.array([sample["rule_tokens"]]), grid[None]))
    assert inputs["rule"][0].tolist() == sample["rule_tokens"]
    there = np.flatnonzero(inputs["stimulus"][0].any(axis=1))
    assert [[p, *inputs["stimulus"][0, p].tolist()] for p in there.tolist()] == sample["stimulus_tokens"]
    assert sample["stimulus_tokens"][-1] == [100, 0, 0, 1]


@pytest.mark.parametrize(("deep", "nodes", "length"), [(1, 1, 2), (3, 4, 5), (5, 10, 11), (7, 22, 23), (9, 46, 47)])
def test_lengths(deep: int, nodes: int, length: int) -> None:
    assert get_rule_length(deep) == length == nodes + 1
    plan = make_plan(depth=deep)
    for tree, _ in questions(plan, clean(plan, 8)):
        conditionals = sum(isinstance(node, Conditional) for level in list_levels(tree) for node in level)
        assert (measure_depth(tree), len(list(list_queries(tree))) + conditionals) == (deep, nodes)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(
    name=st.sampled_from(list(SCHEMAS)),
    deep=st.sampled_from([1, 3, 5]),
    seed=st.integers(0, 10**6),
    two=st.sampled_from([0.0, 0.5]),
    unnamed=st.sampled_from([0, 1]),
)
def test_the_encoder_agrees_with_the_slow_one(name: str, deep: int, seed: int, two: float, unnamed: int) -> None:
    plan = make_plan(SCHEMAS[name], deep, two_objects=two)
    records = clean(plan, 16, seed)
    tokens = encode_tokens(plan.schema, records, deep, get_rule_length(deep) + 3, unnamed)
    for row, (tree, _) in zip(tokens.rule.tolist(), questions(plan, records), strict=True):
        expected = slow_rule(plan.schema, tree, unnamed)
        assert row[: len(expected)] == expected
        assert not any(any(rest) for rest in row[len(expected) :])
    assert tokens.mask.tolist() == [[True] * get_rule_length(deep) + [False] * 3] * 16
    assert not tokens.rule[:, :, get_rule_width(plan.schema) - 1 - plan.schema.numbers].sum(axis=1).tolist().count(0)


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("name", SCHEMAS)
def test_codings_keep_every_token(name: str, coding: str) -> None:
    for deep in (1, 3, 5):
        plan = make_plan(SCHEMAS[name], deep, two_objects=0.5)
        tokens = encode_tokens(plan.schema, clean(plan, 64), deep, get_rule_length(deep) + 2)
        inputs = CODINGS[coding].write(plan.schema, True, tokens)
        assert [f.name for f in CODINGS[coding].fields(plan.schema, True)] == list(inputs)
        back = CODINGS[coding].read(plan.schema, inputs)
        np.testing.assert_array_equal(back.rule, tokens.rule)
        np.testing.assert_array_equal(back.grid, tokens.grid)
        np.testing.assert_array_equal(back.mask, tokens.mask)


@pytest.mark.parametrize("coding", CODINGS)
def test_codings_keep_the_released_tokens(coding: str) -> None:
    plan = make_plan(depth=3, two_objects=0.5)
    tokens = encode_tokens(PAPER, released(plan, 64), 3, 5, unnamed_code=1)
    back = CODINGS[coding].read(PAPER, CODINGS[coding].write(PAPER, True, tokens))
    np.testing.assert_array_equal(back.rule, tokens.rule)


def test_widths_of_the_codings() -> None:
    widths = {coding: [(f.name, f.kind, f.width) for f in CODINGS[coding].fields(PAPER, False)] for coding in CODINGS}
    assert widths == {
        "integer": [("rule", "real", 8), ("stimulus", "real", 3)],
        "onehot": [("rule", "real", 84), ("stimulus", "real", 37)],
        "embedding": [
            ("rule_operator", "category", 11),
            ("rule_shape", "category", 27),
            ("rule_color", "category", 11),
            ("stimulus_color", "category", 12),
            ("stimulus_shape", "category", 28),
        ],
    }
    assert get_rule_width(SCHEMAS["every operator"]) == 9


def test_one_hot_rows_have_one_one_per_code() -> None:
    plan = make_plan(depth=3)
    tokens = encode_tokens(PAPER, clean(plan, 64), 3, 5)
    onehot = CODINGS["onehot"].write(PAPER, False, tokens)
    integer = CODINGS["integer"].write(PAPER, False, tokens)
    assert set(np.unique(onehot["rule"])) == set(np.unique(onehot["stimulus"])) == {0.0, 1.0}
    np.testing.assert_array_equal(onehot["stimulus"].sum(axis=2), (integer["stimulus"] > 0).sum(axis=2))
    np.testing.assert_array_equal(onehot["rule"].sum(axis=2), (integer["rule"] > 0).sum(axis=2))
