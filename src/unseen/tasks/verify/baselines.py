"""Shortcut baselines: what can be predicted without doing the task.

Each baseline is fitted on the first half of the examples and scored on the second. The choice among many rules never
sees the second half, so a rule has its true score there, up to a standard error. `MARGIN` standard errors suffice: a
rule that is no better than allowed exceeds them once in 30 000 times.

The margin is 2 points for 20 000 examples, and a leak of 5 points exceeds it by 6 standard errors. The leak must also be
chosen, and it is: the best of 1 000 worthless columns reaches about 2 points on the first half.

The score of a binary or categorical target is accuracy. That of a real target is the share of its variance that is
explained; its mean explains nothing by definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unseen.randomness import Floats, Ints
from unseen.spec import Field, Spec
from unseen.tasks.base import Array, Examples

MARGIN = 4.0
_QUANTILES = np.arange(1, 16) / 16
_RIDGE = 1.0

BASELINES = ("majority", "input-blind", "single-feature", "bag-of-tokens")
"""The generic baselines, weakest first; a real target has no majority."""

Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class BaselineScore:
    """Accuracy (for a real target, the explained share of its variance), its standard error and the rule's inputs."""

    accuracy: float
    error: float
    note: str = ""


@dataclass(frozen=True)
class ColumnGroup:
    """Columns of one origin: a field given once, a field at one position of its stream, or a sum over positions.

    `values` is (answers, columns). There is one answer per example or, for a target along a stream, per position.
    """

    origin: Literal["once", "position", "pooled", "total"]
    name: str
    values: Matrix


@dataclass(frozen=True)
class _Problem:
    """A prediction problem: `truth` holds the first answers, and `later` counts those to be predicted.

    Classes: one output, (answers,). Real targets: all outputs, (answers, outputs), as deviations from their means.
    """

    spec: Spec
    examples: Examples
    truth: Array
    later: int
    classes: int = 0


_Prediction = tuple[Array, str]
"""Predictions of the later answers, and what they are based on."""


def score_baselines(spec: Spec, examples: Examples) -> Iterator[tuple[str, BaselineScore]]:
    """Yield the name and the score of each generic baseline, weakest first."""
    if spec.target.along is not None:
        # Every example has an answer per position, so fewer examples give as many answers.
        examples = examples[: max(200, len(examples) // examples.targets.shape[1])]
    half = len(examples) // 2
    scored = len(examples) - half
    if spec.target.kind == "real":
        values = examples.targets.reshape(-1, spec.target.width).astype(np.float64)
        first = half * (len(values) // len(examples))
        deviations = values - values[:first].mean(0)
        problem = _Problem(spec, examples, deviations[:first], len(values) - first)
        later_deviations = deviations[first:].reshape(scored, -1)
        for name, predict_values in _REGRESSIONS.items():
            prediction, note = predict_values(problem)
            errors = (deviations[first:] - prediction).reshape(scored, -1)
            yield name, score_variance(errors, later_deviations, note)
        return
    binary = spec.target.kind == "binary"
    outputs, classes = (spec.target.width, 2) if binary else (1, spec.target.width)
    truth = examples.targets.reshape(-1, outputs).astype(np.int64)
    first = half * (len(truth) // len(examples))
    problems = [_Problem(spec, examples, output[:first], len(truth) - first, classes) for output in truth.T]
    for name, predict_classes in _CLASSIFIERS.items():
        predictions = [predict_classes(problem) for problem in problems]
        correct = np.stack([classes for classes, _ in predictions], axis=1) == truth[first:]
        yield name, score_answers(correct.reshape(scored, -1), predictions[0][1])


def score_answers(correct: Array, note: str = "") -> BaselineScore:
    """Return the accuracy of answers, (B, …). The unit is the example, because its answers are not independent."""
    shares = correct.reshape(len(correct), -1).mean(1)
    return BaselineScore(float(shares.mean()), float(shares.std() / np.sqrt(len(shares))), note)


def score_variance(errors: Array, deviations: Array, note: str = "") -> BaselineScore:
    """Return the explained share of the variance, from (examples, answers) of prediction errors and of deviations.

    >>> score_variance(np.array([[1.0], [1.0]]), np.array([[2.0], [-2.0]]))
    BaselineScore(accuracy=0.75, error=0.0, note='')
    """
    variance = (deviations**2).sum(1)
    explained = variance - (errors**2).sum(1)
    total = float(variance.sum()) or 1.0
    share = float(explained.sum()) / total
    # The standard error of a ratio of two sums, by linearisation.
    error = float(np.sqrt(((explained - share * variance) ** 2).sum()) / total)
    return BaselineScore(share, error, note)


# ------------------------------------------------------------------------------------------------------ inputs as columns


def extract_columns(spec: Spec, examples: Examples) -> Iterator[ColumnGroup]:
    """Yield every column of every field: at each position, pooled over its stream, and the total of the field.

    A category becomes one column per value; padded positions count as zeros. For an answer at one position of a stream,
    the fields along that stream are taken at that position alone.
    """
    along = spec.target.along
    answers = 1 if along is None else examples.targets.shape[1]

    def repeat(values: Matrix) -> Matrix:
        return np.repeat(values, answers, axis=0) if answers > 1 else values

    for field in spec.inputs:
        positions = _extract_positions(spec, field, examples)
        if field.along is None:
            pooled = next(positions)
            yield ColumnGroup("once", field.name, repeat(pooled))
        elif field.along == along:
            values = np.stack(list(positions), axis=1)
            pooled = values.sum(1)
            yield ColumnGroup("position", f"{field.name} at its position", values.reshape(-1, values.shape[-1]))
        else:
            pooled = np.zeros((len(examples), 1 if field.kind == "mask" else field.width), np.float32)
            for position, values in enumerate(positions):
                pooled += values
                yield ColumnGroup("position", f"{field.name} at {position}", repeat(values))
        if field.along is not None:
            yield ColumnGroup("pooled", f"{field.name} summed over {field.along}", repeat(pooled))
        if field.kind in ("real", "bits") and field.width > 1:
            yield ColumnGroup("total", f"total of {field.name}", repeat(pooled.sum(1, keepdims=True)))
    if along is not None:
        own_position = np.tile(np.eye(answers, dtype=np.float32), (len(examples), 1))
        yield ColumnGroup("position", f"position in {along}", own_position)


def _extract_positions(spec: Spec, field: Field, examples: Examples) -> Iterator[Matrix]:
    """Yield the numbers of a field, (B, columns), at each position of its stream, or once."""

    def to_numbers(values: Array) -> Matrix:
        if field.kind == "category":
            return np.eye(field.width, dtype=np.float32)[values]
        return values.reshape(len(values), 1 if field.kind == "mask" else field.width).astype(np.float32)

    values = examples.inputs[field.name]
    if field.along is None:
        yield to_numbers(values)
        return
    masks = [examples.inputs[other.name] for other in spec.along(field.along) if other.kind == "mask"]
    for position in range(values.shape[1]):
        numbers = to_numbers(values[:, position])
        for mask in masks:
            numbers *= mask[:, position, None]
        yield numbers


def _number_combinations(problem: _Problem) -> tuple[Ints | None, str]:
    """Return the number of the combination of fields given once that each answer has, and the names of the fields.

    None if there are no such fields, or no streams: the fields would then be the whole input.
    """
    spec = problem.spec
    once = [group.values for group in extract_columns(spec, problem.examples) if group.origin == "once"]
    if not spec.streams or not once:
        return None, ""
    names = ", ".join(field.name for field in spec.along(None))
    # Equal rows are one combination. (NumPy 2.0 returned the inverse with the axes of its input.)
    return np.unique(np.hstack(once), axis=0, return_inverse=True)[1].reshape(-1), f"given {names}"


def _list_thresholds(group: ColumnGroup) -> Matrix:
    """Return thresholds to try, (tries, columns): the lower value of two-valued columns, else 15 quantiles."""
    sample = group.values[:2000]
    low: Matrix = sample.min(0)
    if ((sample == low) | (sample == sample.max(0))).all():
        return low[None]
    quantiles: Matrix = np.quantile(sample, _QUANTILES, axis=0, method="lower").astype(np.float32)
    return np.unique(quantiles, axis=0)


def _fit_ridge(problem: _Problem, truth: Floats) -> tuple[Floats, str]:
    """Return the predictions of ridge regression on a bag of tokens: blind to order and combination.

    The columns are the sums over each stream and the fields given once, standardised by the first answers.
    """
    first = len(truth)
    groups = extract_columns(problem.spec, problem.examples)
    values = np.hstack([group.values for group in groups if group.origin in ("once", "pooled")]).astype(np.float64)
    spread = values[:first].std(0)
    values = (values - values[:first].mean(0)) / np.where(spread > 0, spread, 1)
    fit = values[:first]
    weights = np.linalg.solve(fit.T @ fit + _RIDGE * np.eye(fit.shape[1]), fit.T @ truth)
    return values[first:] @ weights, f"ridge regression on {values.shape[1]} columns"


# ---------------------------------------------------------------------------------------------------------------- classes


def _predict_majority(problem: _Problem) -> _Prediction:
    commonest = int(np.bincount(problem.truth, minlength=problem.classes).argmax())
    return np.full(problem.later, commonest), f"always {commonest}"


def _predict_class_blindly(problem: _Problem) -> _Prediction:
    """Predict the commonest answer to each combination of the fields given once."""
    combination, note = _number_combinations(problem)
    if combination is None:
        return _predict_majority(problem)
    first = len(problem.truth)
    shape = (int(combination.max()) + 1, problem.classes)
    joint = np.ravel_multi_index((combination[:first], problem.truth), shape)
    counts = np.bincount(joint, minlength=shape[0] * shape[1]).reshape(shape)
    counts[counts.sum(1) == 0] = counts.sum(0)  # a combination that the first answers do not have
    return counts.argmax(1)[combination[first:]], note


def _predict_class_by_threshold(problem: _Problem) -> _Prediction:
    """Predict with the best rule of the form: one class if a column exceeds a threshold, another if not."""
    first = len(problem.truth)
    onehot = np.eye(problem.classes, dtype=np.float32)[problem.truth]
    total = onehot.sum(0)
    most_hits = 0.0
    prediction = _predict_majority(problem)
    for group in extract_columns(problem.spec, problem.examples):
        for thresholds in _list_thresholds(group):
            # One product counts, for all columns, how often each class occurs above the threshold.
            above = (group.values[:first] > thresholds).astype(np.float32).T @ onehot
            below = total - above
            hits = above.max(1) + below.max(1)
            column = int(hits.argmax())
            if hits[column] > most_hits:
                most_hits = float(hits[column])
                exceeds = group.values[first:, column] > thresholds[column]
                classes = np.where(exceeds, above[column].argmax(), below[column].argmax())
                prediction = classes, f"{group.name}, column {column}, above {thresholds[column]:.4g}"
    return prediction


def _predict_class_from_bag(problem: _Problem) -> _Prediction:
    onehot = np.eye(problem.classes)[problem.truth]
    mean = onehot.mean(0)
    values, note = _fit_ridge(problem, onehot - mean)
    return (values + mean).argmax(1), note


_CLASSIFIERS: dict[str, Callable[[_Problem], _Prediction]] = {
    "majority": _predict_majority,
    "input-blind": _predict_class_blindly,
    "single-feature": _predict_class_by_threshold,
    "bag-of-tokens": _predict_class_from_bag,
}

# ----------------------------------------------------------------------------------------------------------- real targets


def _predict_value_blindly(problem: _Problem) -> _Prediction:
    """Predict the mean answer to each combination of the fields given once, and the overall mean for a new one."""
    combination, note = _number_combinations(problem)
    first, outputs = problem.truth.shape
    if combination is None:
        return np.zeros((problem.later, outputs)), "always the mean"
    count = np.bincount(combination[:first], minlength=int(combination.max()) + 1)
    sums = np.zeros((len(count), outputs))
    np.add.at(sums, combination[:first], problem.truth)
    means = sums / np.maximum(count, 1)[:, None]
    return means[combination[first:]], note


def _predict_value_by_threshold(problem: _Problem) -> _Prediction:
    """Predict with the best rule, per output, of the form: one value if a column exceeds a threshold, another if not."""
    first, outputs = problem.truth.shape
    prediction = np.zeros((problem.later, outputs))
    best_gain = np.zeros(outputs)
    note = "always the mean"
    for group in extract_columns(problem.spec, problem.examples):
        for thresholds in _list_thresholds(group):
            exceeds = group.values[:first] > thresholds
            above = np.maximum(exceeds.sum(0), 1)[:, None]
            below = np.maximum(first - exceeds.sum(0), 1)[:, None]
            sums = exceeds.astype(np.float64).T @ problem.truth
            # Deviations add up to 0, so the sums below the threshold are minus those above it.
            gains = sums**2 * (1 / above + 1 / below)
            best_columns = gains.argmax(0)
            for output in np.flatnonzero(gains.max(0) > best_gain).tolist():
                column = int(best_columns[output])
                best_gain[output] = gains[column, output]
                high = sums[column, output] / above[column, 0]
                low = -sums[column, output] / below[column, 0]
                prediction[:, output] = np.where(group.values[first:, column] > thresholds[column], high, low)
                if output == 0:
                    note = f"{group.name}, column {column}, above {thresholds[column]:.4g}"
    return prediction, note


def _predict_value_from_bag(problem: _Problem) -> _Prediction:
    return _fit_ridge(problem, problem.truth)


_REGRESSIONS: dict[str, Callable[[_Problem], _Prediction]] = {
    "input-blind": _predict_value_blindly,
    "single-feature": _predict_value_by_threshold,
    "bag-of-tokens": _predict_value_from_bag,
}


# ------------------------------------------------------------------------------------------------------- expected scores


@cache
def expect_commonest(values: int, draws: int) -> float:
    """The expected share of the most frequent of `values` equally probable values in `draws` independent draws.

    Independent Poisson counts of mean `draws / values`, given that their sum is `draws`, are the counts of such draws. So the
    probability that none exceeds m is that of v counts up to m which sum to `draws`, divided by that of any such sum.
    (Factorials would overflow from 171 draws on.)

    >>> round(expect_commonest(2, 2), 12)
    0.75
    """
    from scipy.stats import poisson  # imported late, because that takes longer than making a task

    counts = np.arange(draws + 1)
    count_probabilities = poisson.pmf(counts, draws / values)
    sum_probability = poisson.pmf(draws, draws)
    at_most = []
    for most in range(draws + 1):
        one_value = np.where(counts <= most, count_probabilities, 0.0)
        all_values = np.zeros(draws + 1)
        all_values[0] = 1.0
        for _ in range(values):
            all_values = np.convolve(all_values, one_value)[: draws + 1]
        at_most.append(all_values[draws] / sum_probability)
    # The mean of a count is the sum over m of the probability that it exceeds m.
    expected = sum(1 - probability for probability in at_most[:-1])
    return float(expected / draws)
