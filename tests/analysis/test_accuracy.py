"""Scores against plain loops, clustered standard errors against simulation, success rates against counts."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen.analysis import Score, accuracy, accuracy_by, decide
from unseen.analysis.accuracy import (
    absolute_error_by,
    kind_accuracy,
    kind_accuracy_by,
    mean_by_level,
    relative_error_by,
    success_table,
)
from unseen.errors import UsageError
from unseen.stats import proportion_error, wilson


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


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.integers(0, 12), st.integers(1, 4), st.integers(1, 5), st.booleans(), st.integers(0, 10**6))
def test_by_loops(examples: int, tokens: int, levels: int, by_token: bool, seed: int) -> None:
    numbers = np.random.default_rng(seed)
    values = numbers.normal(size=(examples, tokens, 2))
    factor = numbers.integers(levels, size=(examples, tokens) if by_token else examples)
    found = mean_by_level(values, factor).set_index("level")
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
        found = mean_by_level(np.repeat(alike, 5, axis=1) + 0.3 * numbers.normal(size=(200, 5)), factor)
        means.append(found["value"].to_numpy())
        errors.append(found["standard_error"].to_numpy())
    assert np.std(means, axis=0) == pytest.approx(np.mean(errors, axis=0), rel=0.15)
    one = mean_by_level(alike, factor[:, :1])
    ten = mean_by_level(np.repeat(alike, 10, axis=1), np.repeat(factor[:, :1], 10, axis=1))
    assert ten[["value", "standard_error"]].to_numpy() == pytest.approx(one[["value", "standard_error"]].to_numpy())


def test_errors_by_level() -> None:
    answers, targets = np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([[2.0, 2.0], [3.0, 1.0]])
    rule = np.array([[0, 1], [1, 1]])
    assert absolute_error_by(answers, targets, rule)["value"].tolist() == [1.0, pytest.approx(4 / 3)]
    assert relative_error_by(answers, targets, rule)["value"].tolist() == [0.5, pytest.approx(4 / 6)]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 4, 1, 1)])
def test_factors_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="one level per example or per token"):
        mean_by_level(np.zeros((2, 4, 1)), np.zeros(shape))


def records(seed: int = 0) -> pd.DataFrame:
    draws = np.random.default_rng(seed)
    found = []
    for model in ("a", "b"):
        for run in range(12):
            inside = float(draws.choice([0.5, 0.95, 1.0]))
            for split, value in (("iid", inside), ("ood/x", draws.random()), ("ood/y", draws.choice([0.95, 0.99]))):
                for selection in ("best", "last"):
                    found.append(
                        {
                            "model": model,
                            "trial": f"{model}{run}",
                            "selection": selection,
                            "factor": "",
                            "level": "",
                            "metric": "accuracy",
                            "split": split,
                            "value": float(value) if selection == "last" else 0.0,
                        }
                    )
    table = pd.DataFrame(found)
    return pd.concat([table, table.assign(metric="loss", value=9.0), table.assign(factor="length", level="2")])


def test_counts_and_means_are_those_of_a_plain_loop() -> None:
    given = records()
    table = success_table(given, ["model"]).set_index(["model", "split"])
    assert len(table) == 4
    whole = given[(given.selection == "last") & (given.metric == "accuracy") & (given.factor == "")]
    for (model, split), row in table.iterrows():
        runs = {
            trial: dict(zip(part.split, part.value, strict=True))
            for trial, part in whole[whole.model == model].groupby("trial")
        }
        learned = [run[split] for run in runs.values() if run["iid"] >= 0.95]
        solved = [value for value in learned if value > 0.95]
        assert (row.runs, row.converged, row.solved) == (12, len(learned), len(solved))
        assert 0 < len(learned) < 12
        assert row.accuracy == pytest.approx(np.mean([run[split] for run in runs.values()]))
        assert row.accuracy_converged == pytest.approx(np.mean(learned))
        assert row.accuracy_converged_spread == pytest.approx(np.std(learned, ddof=1))
        expected = wilson(len(solved), len(learned), covers="seeds")
        assert (row.solved_low, row.solved_high) == (expected.low, expected.high)


def test_exactly_at_the_bound_a_run_has_converged_but_not_solved() -> None:
    rows = [(trial, split, 0.95) for trial in range(3) for split in ("iid", "ood/x")]
    given = pd.DataFrame(rows, columns=["trial", "split", "value"]).assign(
        model="m", selection="last", factor="", metric="accuracy"
    )
    (row,) = success_table(given, ["model"]).to_dict("records")
    assert (row["converged"], row["solved"]) == (3, 0)


def test_without_a_converged_run_there_is_no_conditional_mean() -> None:
    given = records()
    given = given.assign(value=given.value.where(given.split != "iid", 0.1))
    table = success_table(given, ["model"])
    assert set(table.converged) == {0}
    assert all(math.isnan(value) for value in table.accuracy_converged)
    assert all(math.isnan(value) for value in table.solved_low)
    assert success_table(given[given.split != "iid"], ["model"]).empty


def test_runs_that_diverged_have_not_converged() -> None:
    given = records()
    lost = pd.DataFrame({"model": ["b", "b", "elsewhere"]})
    plain, table = (
        success_table(given, ["model"], diverged=frame).set_index(["model", "split"]) for frame in (None, lost)
    )
    assert (table.loc["a"] == plain.loc["a"]).all(axis=None)
    for split in ("ood/x", "ood/y"):
        row, before = table.loc[("b", split)], plain.loc[("b", split)]
        assert (row.runs, row.diverged, row.converged) == (14, 2, before.converged)
        expected = wilson(int(row.converged), 14, covers="seeds")
        assert (row.converged_low, row.converged_high) == (expected.low, expected.high)
        assert row.accuracy == before.accuracy
