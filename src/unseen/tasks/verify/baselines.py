"""Shortcut baselines: how far one gets without doing the task.

Each is fitted on the first half of the examples and scored on the second. There a rule has its true accuracy,
give or take a standard error, however many rules it was chosen from: the choice never saw the second half. So
`MARGIN` standard errors are enough: a rule no better than allowed exceeds them once in 30 000 times.

The margin is 2 points for 20 000 examples, and a leak of 5 points exceeds it by 6 standard errors. For that it
must also be chosen, and it is: the best of 1 000 worthless columns reaches about 2 points on the first half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unseen.spec import Spec
from unseen.tasks.base import Array, Examples
from unseen.tasks.verify.columns import Columns, Matrix, columns

MARGIN = 4.0
_QUANTILES = np.arange(1, 16) / 16
RIDGE = 1.0

Classes = NDArray[np.int64]


@dataclass(frozen=True)
class Score:
    """Accuracy (of a real target: the share of its variance explained), its standard error, what was looked at."""

    accuracy: float
    error: float
    note: str = ""


@dataclass(frozen=True)
class Problem:
    """One output to be guessed: the truth of the first answers, and how many come after."""

    spec: Spec
    examples: Examples
    truth: Classes
    classes: int
    rest: int


Guess = tuple[Classes, str]
"""Classes for the rest of a problem, and what they are guessed from."""


def score(right: Array, note: str = "") -> Score:
    """The score of answers, (B, …) right or wrong. Answers to one example are not independent: examples are."""
    shares = right.reshape(len(right), -1).mean(1)
    return Score(float(shares.mean()), float(shares.std() / np.sqrt(len(shares))), note)


def baselines(spec: Spec, examples: Examples) -> Iterator[tuple[str, Score]]:
    """The scores of the four generic baselines, weakest first. The target must be binary or a category."""
    examples = enough(spec, examples)
    outputs, classes = (spec.target.width, 2) if spec.target.kind == "binary" else (1, spec.target.width)
    truth = examples.targets.reshape(-1, outputs).astype(np.int64)
    half = len(examples) // 2
    first = half * (len(truth) // len(examples))
    problems = [Problem(spec, examples, column[:first], classes, len(truth) - first) for column in truth.T]
    for name, baseline in BASELINES.items():
        guesses = [baseline(problem) for problem in problems]
        right = np.stack([classes for classes, _ in guesses], axis=1) == truth[first:]
        yield name, score(right.reshape(len(examples) - half, -1), guesses[0][1])


def enough(spec: Spec, examples: Examples) -> Examples:
    """Where there is an answer per place, fewer examples give as many answers."""
    return examples if spec.target.along is None else examples[: max(200, len(examples) // examples.targets.shape[1])]


def combinations(spec: Spec, examples: Examples) -> Classes | None:
    """Which combination of what is given once each answer has; None where that would be everything, or nothing."""
    once = [c.values for c in columns(spec, examples) if c.origin == "once"]
    return np.unique(np.hstack(once), axis=0, return_inverse=True)[1].reshape(-1) if spec.streams and once else None


def bag(spec: Spec, examples: Examples, first: int) -> NDArray[np.float64]:
    """Sums over each stream and what is given once, (answers, columns), standardised by the first answers."""
    groups = columns(spec, examples)
    values = np.hstack([c.values for c in groups if c.origin in ("once", "pooled")]).astype(np.float64)
    spread = values[:first].std(0)
    standard: NDArray[np.float64] = (values - values[:first].mean(0)) / np.where(spread > 0, spread, 1)
    return standard


def _majority(problem: Problem) -> Guess:
    commonest = int(np.bincount(problem.truth, minlength=problem.classes).argmax())
    return np.full(problem.rest, commonest), f"always {commonest}"


def _input_blind(problem: Problem) -> Guess:
    """The commonest answer to each combination of what is given once; without streams that would be all."""
    code = combinations(problem.spec, problem.examples)
    if code is None:
        return _majority(problem)
    first, shape = len(problem.truth), (int(code.max()) + 1, problem.classes)
    joint = np.ravel_multi_index((code[:first], problem.truth), shape)
    counts = np.bincount(joint, minlength=shape[0] * shape[1]).reshape(shape)
    counts[counts.sum(1) == 0] = counts.sum(0)  # a combination not met before
    return counts.argmax(1)[code[first:]], f"given {', '.join(f.name for f in problem.spec.along(None))}"


def _single_feature(problem: Problem) -> Guess:
    """The best rule of the form: one class if a column exceeds a threshold, another if not."""
    first, hot = len(problem.truth), np.eye(problem.classes, dtype=np.float32)[problem.truth]
    total = hot.sum(0)
    best, guess = 0.0, _majority(problem)
    for group in columns(problem.spec, problem.examples):
        for tried in thresholds(group):
            above = (group.values[:first] > tried).astype(np.float32).T @ hot
            below = total - above
            hits = above.max(1) + below.max(1)
            column = int(hits.argmax())
            if hits[column] > best:
                best, threshold = float(hits[column]), tried[column]
                exceeds = group.values[first:, column] > threshold
                classes = np.where(exceeds, above[column].argmax(), below[column].argmax())
                guess = classes, f"{group.name}, column {column}, above {threshold:.4g}"
    return guess


def thresholds(group: Columns) -> Matrix:
    """Thresholds to try, (tries, columns): the lower value where there are only two, else 15 quantiles."""
    some = group.values[:2000]
    low: Matrix = some.min(0)
    if ((some == low) | (some == some.max(0))).all():
        return low[None]
    tried: Matrix = np.quantile(some, _QUANTILES, axis=0, method="lower").astype(np.float32)
    return np.unique(tried, axis=0)


def _bag_of_tokens(problem: Problem) -> Guess:
    """Ridge regression on sums over each stream and on what is given once: blind to order and combination."""
    first, hot = len(problem.truth), np.eye(problem.classes)[problem.truth]
    values = bag(problem.spec, problem.examples, first)
    fit, mean = values[:first], hot.mean(0)
    weights = np.linalg.solve(fit.T @ fit + RIDGE * np.eye(fit.shape[1]), fit.T @ (hot - mean))
    return (values[first:] @ weights + mean).argmax(1), f"ridge regression on {values.shape[1]} columns"


BASELINES: dict[str, Callable[[Problem], Guess]] = {
    "majority": _majority,
    "input-blind": _input_blind,
    "single-feature": _single_feature,
    "bag-of-tokens": _bag_of_tokens,
}
