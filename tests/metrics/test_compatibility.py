"""Variance explained by row labels, by plain sums of squares and by all permutations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen.errors import UsageError
from unseen.metrics import explained_gain
from unseen.randomness import stream

quick = settings(deadline=None, derandomize=True, max_examples=50)


def draws():
    return stream("test", "compatibility").block()


def share(tables, rows, columns):
    """Explained and whole sums of squares, one value at a time."""
    explained = whole = 0.0
    for table, labels in zip(tables, rows, strict=True):
        for column in set(columns):
            values = {
                (i, j): table[i][j]
                for i in range(len(labels))
                for j in range(len(columns))
                if labels[i] >= 0 and columns[j] == column and not math.isnan(table[i][j])
            }
            if values:
                mean = np.mean(list(values.values()))
                whole += sum((v - mean) ** 2 for v in values.values())
                for label in set(labels):
                    cell = [v for (i, _), v in values.items() if labels[i] == label]
                    explained += len(cell) * (np.mean(cell) - mean) ** 2 if cell else 0
    return explained / whole if whole > 1e-9 else math.nan


@st.composite
def systems(draw, missing=True):
    numbers = np.random.default_rng(draw(st.integers(0, 10**6)))
    count, rows, columns = draw(st.integers(1, 3)), draw(st.integers(2, 5)), draw(st.integers(1, 4))
    tables = numbers.integers(2, size=(count, rows, columns)).astype(float)
    labels = numbers.integers(3, size=(count, rows))
    if missing:
        tables[numbers.random(tables.shape) < 0.2] = np.nan
        labels[numbers.random(labels.shape) < 0.1] = -1
    return tables, labels, numbers.integers(2, size=columns).tolist()


@quick
@given(systems())
def test_explained_by_hand(system):
    tables, rows, columns = system
    found = explained_gain(tables, rows, columns, generator=draws(), permutations=20)
    expected = share(tables, rows.tolist(), columns)
    if math.isnan(expected):
        assert all(math.isnan(value) for value in found)
    else:
        assert found.explained == pytest.approx(expected, abs=1e-9)
        assert 0 < found.p_value <= 1 and found.gain <= found.explained + 1e-12


@quick
@given(systems(missing=False))
def test_gain_and_p_value_under_every_shuffle(system):
    """Without gaps: one permutation of the rows for all tables; drawn ones come near to all of them."""
    tables, rows, columns = system
    known = share(tables, rows.tolist(), columns)
    if math.isnan(known):
        return
    every = [share(tables, rows[:, order].tolist(), columns) for order in itertools.permutations(range(rows.shape[1]))]
    found = explained_gain(tables, rows, columns, generator=draws(), permutations=4_000)
    spread = np.std(every)
    assert found.gain == pytest.approx(known - np.mean(every), abs=1e-9 + 5 * spread / math.sqrt(4_000))
    assert found.p_value == pytest.approx(np.mean(np.array(every) >= known - 1e-9), abs=0.04)


def test_chance_in_closed_form():
    """k labels of N rows explain (k − 1) / (N − 1) of what rows explain, on average."""
    numbers = np.random.default_rng(0)
    table = numbers.integers(2, size=(12, 6)).astype(float)
    labels = np.array([0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3])
    columns = [0, 0, 0, 1, 1, 1]
    found = explained_gain([table], [labels], columns, generator=draws(), permutations=20_000)
    rows = share([table], [list(range(12))], columns)
    assert found.explained - found.gain == pytest.approx(3 / 11 * rows, abs=2e-3)


def test_labels_that_say_everything_and_nothing():
    """Two clusters: one works with both groups, one with its own only."""
    table = np.ones((16, 8))
    table[:6, 4:] = 0
    columns = ["a"] * 4 + ["b"] * 4
    clusters = np.repeat([0, 1], [6, 10])
    found = explained_gain([table], [clusters], columns, generator=draws(), permutations=999)
    assert found.explained == pytest.approx(1) and found.gain > 0.9 and found.p_value < 0.005
    found = explained_gain([table], [np.tile([0, 1], 8)], columns, generator=draws(), permutations=999)
    assert found.explained == pytest.approx(0) and found.p_value == pytest.approx(1) and found.gain < 0
    for same in (np.ones((16, 8)), np.zeros((16, 8)), np.repeat([[1.0, 0.0]], 16, axis=0).repeat(4, axis=1)):
        assert all(math.isnan(v) for v in explained_gain([same], [clusters], columns, generator=draws()))
    assert all(math.isnan(v) for v in explained_gain([table * math.nan], [clusters], columns, generator=draws()))


def test_a_table_without_a_row_shuffles_the_others_alike():
    """Rows left out of one table change nothing in another."""
    numbers = np.random.default_rng(1)
    tables = numbers.integers(2, size=(2, 6, 4)).astype(float)
    rows = np.array([[0, 0, 0, 1, 1, 1], [-1] * 6])
    whole = explained_gain(tables, rows, [0, 0, 1, 1], generator=draws())
    assert whole == explained_gain(tables[:1], rows[:1], [0, 0, 1, 1], generator=draws())
    gone = tables[:1].copy()
    gone[0, 2] = np.nan  # as if it were not among the rows
    found = explained_gain(gone, rows[:1], [0, 0, 1, 1], generator=draws())
    assert found.explained == pytest.approx(
        explained_gain(np.delete(gone, 2, 1), np.delete(rows[:1], 2, 1), [0, 0, 1, 1], generator=draws()).explained
    )


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: explained_gain(np.ones((3, 4)), [[0, 1, 1]], [0] * 4, generator=draws()), "tables"),
        (lambda: explained_gain(np.ones((1, 3, 4)), [[0, 1]], [0] * 4, generator=draws()), "tables"),
        (lambda: explained_gain(np.ones((1, 3, 4)), [["a", "b", "c"]], [0] * 4, generator=draws()), "whole numbers"),
        (lambda: explained_gain(np.ones((1, 3, 4)), [[0, 1, 1]], [0] * 3, generator=draws()), "each of 4 things"),
        (lambda: explained_gain(np.full((1, 3, 4), math.inf), [[0, 1, 1]], [0] * 4, generator=draws()), "infinity"),
    ],
)
def test_wrong_use_is_said(call, said):
    with pytest.raises(UsageError, match=said):
        call()
