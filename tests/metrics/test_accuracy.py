from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen.errors import UsageError
from unseen.metrics import Score, accuracy, accuracy_by, decide
from unseen.metrics.accuracy import kind_accuracy, kind_accuracy_by
from unseen.stats import proportion_error


def test_a_logit_of_zero_is_yes():
    logits = np.array([[0.0], [-0.0], [-1e-30], [5.0]])
    assert decide(logits, "binary")[:, 0].tolist() == [True, True, False, True]


def test_category_takes_the_largest_logit_along_any_shape():
    logits = np.array([[[0.0, 2.0, 1.0], [3.0, 2.0, 1.0]]])
    assert decide(logits, "category").tolist() == [[1, 0]]


def test_real_targets_have_no_accuracy():
    with pytest.raises(UsageError, match="binary or category"):
        accuracy(np.zeros((2, 1)), np.zeros((2, 1)), "real")


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.lists(st.tuples(st.floats(-3, 3), st.integers(0, 1), st.sampled_from("abc")), min_size=1))
def test_accuracy_and_its_levels_agree_with_plain_counting(rows):
    prediction = np.array([[logit] for logit, _, _ in rows])
    targets = np.array([[target] for _, target, _ in rows])
    factor = np.array([level for _, _, level in rows])
    hits = [(logit >= 0) == (target == 1) for logit, target, _ in rows]
    score = accuracy(prediction, targets, "binary")
    assert score.n == len(rows)
    share = sum(hits) / len(hits)
    assert score.value == pytest.approx(share)
    assert score.standard_error == pytest.approx(proportion_error(share, len(hits)), abs=1e-12)
    table = accuracy_by(prediction, targets, "binary", factor)
    assert table["level"].tolist() == sorted(set(factor))
    for row in table.itertuples():
        of_level = [hit for hit, (_, _, level) in zip(hits, rows, strict=True) if level == row.level]
        assert (row.n, row.value) == (len(of_level), pytest.approx(sum(of_level) / len(of_level)))
        assert row.standard_error == pytest.approx(proportion_error(row.value, row.n), abs=1e-12)


def test_several_answers_of_one_example_count_as_one():
    """Three examples of four answers, shares 1, 1/2, 0: the error is that of three numbers, not of twelve."""
    logits = np.zeros((3, 4, 2))
    logits[..., 0] = 1
    targets = np.array([[0, 0, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]])
    score = accuracy(logits, targets, "category")
    assert score == Score(0.5, pytest.approx(math.sqrt(1 / 6 / 3)), 3)


def test_no_examples_give_nan_and_no_warning():
    score = accuracy(np.zeros((0, 1)), np.zeros((0, 1)), "binary")
    assert math.isnan(score.value) and math.isnan(score.standard_error) and score.n == 0
    assert accuracy_by(np.zeros((0, 1)), np.zeros((0, 1)), "binary", np.zeros(0)).empty


def test_shapes_that_would_broadcast_are_refused():
    with pytest.raises(UsageError, match=r"\(4,\).*\(4, 1\)"):
        accuracy(np.zeros(4), np.zeros((4, 1)), "binary")
    with pytest.raises(UsageError, match="one level per example"):
        accuracy_by(np.zeros((4, 1)), np.zeros((4, 1)), "binary", np.zeros((4, 2)))


KINDS = np.array(["yes or no", "yes or no", "color", "color", "color", "place"])


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.lists(st.tuples(st.permutations(range(6)), st.integers(0, 5), st.sampled_from("abc")), min_size=1))
def test_right_kinds_and_their_levels_agree_with_plain_counting(rows):
    logits, targets = np.array([each for each, _, _ in rows], float), np.array([target for _, target, _ in rows])
    factor = np.array([level for _, _, level in rows])
    hits = [
        {0: 0, 1: 0, 2: 1, 3: 1, 4: 1, 5: 2}[each.index(5)] == {0: 0, 1: 0, 2: 1, 3: 1, 4: 1, 5: 2}[target]
        for each, target, _ in rows
    ]
    score, share = kind_accuracy(logits, targets, KINDS), sum(hits) / len(hits)
    assert (score.n, score.value) == (len(rows), pytest.approx(share))
    assert score.standard_error == pytest.approx(proportion_error(share, len(hits)), abs=1e-12)
    assert score.value >= accuracy(logits, targets, "category").value  # what is right is of the right kind
    table = kind_accuracy_by(logits, targets, KINDS, factor)
    assert table["level"].tolist() == sorted(set(factor))
    for row in table.itertuples():
        of_level = [hit for hit, (_, _, level) in zip(hits, rows, strict=True) if level == row.level]
        assert (row.n, row.value) == (len(of_level), pytest.approx(sum(of_level) / len(of_level)))
        assert row.standard_error == pytest.approx(proportion_error(row.value, row.n), abs=1e-12)


def test_kinds_that_are_all_alike_or_all_different():
    logits, targets = np.eye(6)[[0, 1, 2, 3]], np.array([0, 0, 5, 3])
    assert kind_accuracy(logits, targets, np.array(["one"] * 6)).value == 1
    assert kind_accuracy(logits, targets, np.arange(6)) == accuracy(logits, targets, "category")


def test_kinds_of_nothing_and_of_the_wrong_number_of_classes():
    assert math.isnan(kind_accuracy(np.zeros((0, 6)), np.zeros(0, int), KINDS).value)
    with pytest.raises(UsageError, match="each of 5 classes, got 6"):
        kind_accuracy(np.zeros((2, 5)), np.zeros(2, int), KINDS)
    with pytest.raises(UsageError, match="logits of one run"):
        kind_accuracy(np.zeros((2, 6)), np.zeros((2, 1), int), KINDS)
