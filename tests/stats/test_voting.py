from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from unseen.errors import UsageError
from unseen.stats import Votes, benjamini_hochberg, significant_votes, votes

cell = st.one_of(st.integers(0, 3).map(float), st.just(math.nan))
tables = st.integers(1, 4).flatmap(lambda k: st.lists(st.lists(cell, min_size=k, max_size=k), min_size=1, max_size=9))
quick = settings(deadline=None, derandomize=True, max_examples=100)


def by_hand(scores):
    total, counted, ties = [0.0] * len(scores[0]), 0, 0
    for row in scores:
        ran = [score for score in row if not math.isnan(score)]
        winners = [k for k, score in enumerate(row) if ran and score == max(ran)]
        counted += bool(winners)
        ties += len(winners) > 1
        for k in winners:
            total[k] += 1 / len(winners)
    return total, counted, ties


@quick
@given(tables)
def test_votes_by_hand(scores):
    found = votes(scores)
    total, counted, ties = by_hand(scores)
    assert (list(found.votes), found.n, found.ties) == (pytest.approx(total), counted, ties)
    assert found.undecided == 0
    assert sum(found.votes) == pytest.approx(found.n)
    assert sum(found.shares) == pytest.approx(1) if found.n else all(map(math.isnan, found.shares))


@quick
@given(tables)
def test_contestants_and_experiments_may_change_places(scores):
    found = votes(scores)
    assert votes(scores[::-1]).votes == pytest.approx(found.votes)
    assert votes([row[::-1] for row in scores]).votes == pytest.approx(found.votes[::-1])


def test_shares():
    assert votes([[1, 2], [3, 3], [0, 1], [5, math.nan]]) == Votes((1.5, 2.5), 4, 1)
    assert votes([[1, 2], [3, 3], [0, 1], [5, math.nan]]).shares == (0.375, 0.625)
    assert votes(np.empty((0, 2))) == Votes((0.0, 0.0), 0)


@pytest.mark.parametrize("wrong", [[1.0, 2.0], [[[1.0]]], [[1.0, math.inf]]])
def test_wrong_layouts_are_answered(wrong):
    with pytest.raises(UsageError, match="experiments, contestants"):
        votes(wrong)


@pytest.mark.parametrize(
    ("experiments", "contestants", "seeds", "gap"), [(12, 2, 5, 5.0), (20, 4, 6, 9.0), (9, 3, 3, 20.0)]
)
def test_significant_votes_by_scipy(experiments, contestants, seeds, gap):
    numbers = np.random.default_rng(experiments)
    strength = gap * numbers.uniform(size=(experiments, contestants, 1))
    scores = numbers.normal(size=(experiments, contestants, seeds)) + strength
    scores[0, 1, 0] = scores[1, 0, -1] = np.nan
    p_values, winners = [], []
    for runs in scores:
        runs = runs[:, ~np.isnan(runs).any(axis=0)]
        best = int(runs.mean(axis=1).argmax())
        others = [k for k in range(contestants) if k != best]
        enough = runs.shape[1] >= 3
        p_values.append(max(ttest_rel(runs[best], runs[k]).pvalue for k in others) if enough else math.nan)
        winners.append(best)
    clear = benjamini_hochberg(p_values) <= 0.05
    found = significant_votes(scores)
    assert list(found.votes) == np.bincount(np.array(winners)[clear], minlength=contestants).tolist()
    assert 0 < sum(found.votes) < experiments
    assert (found.n, found.undecided) == (experiments, experiments - clear.sum())


def test_noise_alone_gives_few_significant_votes():
    """With no difference at all, the share of runs of 40 experiments with any such vote is within 5 %."""
    numbers = np.random.default_rng(0)
    for contestants in (2, 4):
        found = [sum(significant_votes(numbers.normal(size=(40, contestants, 5))).votes) > 0 for _ in range(300)]
        assert np.mean(found) < 0.09


def test_differences_without_spread():
    certain, tie, short = [[0.75] * 4, [0.5] * 4], [[0.5] * 4, [0.5] * 4], [[0.9, 0.8, math.nan, math.nan], [0.1] * 4]
    found = significant_votes([certain, tie, short, [[math.nan] * 4] * 2])
    assert (found.votes, found.n, found.undecided) == ((1.0, 0.0), 3, 2)
    assert significant_votes(np.empty((0, 3, 5))) == Votes((0.0, 0.0, 0.0), 0)


@pytest.mark.parametrize("wrong", [[[1.0, 2.0]], [[[math.inf]]]])
def test_wrong_layouts_of_runs_are_answered(wrong):
    with pytest.raises(UsageError, match="experiments, contestants, seeds"):
        significant_votes(wrong)
