from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen.errors import UsageError
from unseen.stats import Votes, votes

cell = st.one_of(st.integers(0, 3).map(float), st.just(math.nan))
tables = st.integers(1, 4).flatmap(lambda k: st.lists(st.lists(cell, min_size=k, max_size=k), min_size=1, max_size=9))
quick = settings(deadline=None, derandomize=True, max_examples=100)


def by_hand(scores):
    total, counted = [0.0] * len(scores[0]), 0
    for row in scores:
        ran = [score for score in row if not math.isnan(score)]
        winners = [k for k, score in enumerate(row) if ran and score == max(ran)]
        counted += bool(winners)
        for k in winners:
            total[k] += 1 / len(winners)
    return total, counted


@quick
@given(tables)
def test_votes_by_hand(scores):
    found = votes(scores)
    assert (list(found.votes), found.n) == (pytest.approx(by_hand(scores)[0]), by_hand(scores)[1])
    assert sum(found.votes) == pytest.approx(found.n)
    assert sum(found.shares) == pytest.approx(1) if found.n else all(map(math.isnan, found.shares))


@quick
@given(tables)
def test_contestants_and_experiments_may_change_places(scores):
    found = votes(scores)
    assert votes(scores[::-1]).votes == pytest.approx(found.votes)
    assert votes([row[::-1] for row in scores]).votes == pytest.approx(found.votes[::-1])


def test_shares():
    assert votes([[1, 2], [3, 3], [0, 1], [5, math.nan]]) == Votes((1.5, 2.5), 4)
    assert votes([[1, 2], [3, 3], [0, 1], [5, math.nan]]).shares == (0.375, 0.625)
    assert votes(np.empty((0, 2))) == Votes((0.0, 0.0), 0)


@pytest.mark.parametrize("wrong", [[1.0, 2.0], [[[1.0]]], [[1.0, math.inf]]])
def test_wrong_layouts_are_answered(wrong):
    with pytest.raises(UsageError, match="experiments, contestants"):
        votes(wrong)
