"""Means by level: against loops, and errors against the spread over data sets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen.errors import UsageError
from unseen.metrics.error import absolute_error_by, relative_error_by
from unseen.metrics.levels import by_level


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.integers(0, 12), st.integers(1, 4), st.integers(1, 5), st.booleans(), st.integers(0, 10**6))
def test_by_loops(examples: int, tokens: int, levels: int, by_token: bool, seed: int) -> None:
    numbers = np.random.default_rng(seed)
    values = numbers.normal(size=(examples, tokens, 2))
    factor = numbers.integers(levels, size=(examples, tokens) if by_token else examples)
    found = by_level(values, factor).set_index("level")
    assert found.index.tolist() == sorted(set(factor.ravel().tolist()))
    for level, row in found.iterrows():
        mine = [
            values[i, j].mean() if by_token else values[i].mean()
            for i in range(examples)
            for j in range(tokens if by_token else 1)
            if (factor[i, j] if by_token else factor[i]) == level
        ]
        assert (row.value, row.n) == (pytest.approx(np.mean(mine)), len(mine))
        if not by_token:
            assert row.standard_error == pytest.approx(np.std(mine) / math.sqrt(len(mine)), abs=1e-12)


def test_tokens_of_one_example_are_taken_together() -> None:
    """The same token ten times: no more is known than from one; in other data sets means spread as far as they say."""
    numbers = np.random.default_rng(0)
    means, errors = [], []
    for _ in range(300):
        alike, factor = numbers.normal(size=(200, 1)), numbers.integers(3, size=(200, 5))
        found = by_level(np.repeat(alike, 5, axis=1) + 0.3 * numbers.normal(size=(200, 5)), factor)
        means.append(found["value"].to_numpy())
        errors.append(found["standard_error"].to_numpy())
    assert np.std(means, axis=0) == pytest.approx(np.mean(errors, axis=0), rel=0.15)
    one = by_level(alike, factor[:, :1])
    ten = by_level(np.repeat(alike, 10, axis=1), np.repeat(factor[:, :1], 10, axis=1))
    assert ten[["value", "standard_error"]].to_numpy() == pytest.approx(one[["value", "standard_error"]].to_numpy())


def test_errors_by_level() -> None:
    answers, targets = np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([[2.0, 2.0], [3.0, 1.0]])
    rule = np.array([[0, 1], [1, 1]])
    assert absolute_error_by(answers, targets, rule)["value"].tolist() == [1.0, pytest.approx(4 / 3)]
    assert relative_error_by(answers, targets, rule)["value"].tolist() == [0.5, pytest.approx(4 / 6)]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 4, 1, 1)])
def test_factors_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="one level per example or per token"):
        by_level(np.zeros((2, 4, 1)), np.zeros(shape))
