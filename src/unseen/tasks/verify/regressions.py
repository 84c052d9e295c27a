"""The shortcut baselines of a real target: how much of its variance one explains without doing the task.

As with classes, each is fitted on the first half of the examples and scored on the second. All outputs are fitted at
once, and each has its own rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from unseen.randomness import Floats
from unseen.spec import Spec
from unseen.tasks.base import Array, Examples
from unseen.tasks.verify.baselines import RIDGE, Score, bag, combinations, enough, thresholds
from unseen.tasks.verify.columns import columns


@dataclass(frozen=True)
class Problem:
    """Outputs to be guessed: the truth of the first answers, (answers, outputs), as deviations from their mean."""

    spec: Spec
    examples: Examples
    truth: Floats
    rest: int


Guess = tuple[Floats, str]
"""Deviations for the rest of a problem, (answers, outputs), and what they are guessed from."""


def regressions(spec: Spec, examples: Examples) -> Iterator[tuple[str, Score]]:
    """The scores of the generic baselines for a real target, weakest first; by definition its mean explains nothing."""
    examples = enough(spec, examples)
    truth = examples.targets.reshape(-1, spec.target.width).astype(np.float64)
    half = len(examples) // 2
    first = half * (len(truth) // len(examples))
    deviations = truth - truth[:first].mean(0)
    problem = Problem(spec, examples, deviations[:first], len(truth) - first)
    for name, baseline in REGRESSIONS.items():
        guess, note = baseline(problem)
        yield (
            name,
            share(
                (deviations[first:] - guess).reshape(len(examples) - half, -1),
                deviations[first:].reshape(len(examples) - half, -1),
                note,
            ),
        )


def share(errors: Array, deviations: Array, note: str = "") -> Score:
    """The share of the variance that is explained, and its standard error, from (examples, answers) of each.

    >>> share(np.array([[1.0], [1.0]]), np.array([[2.0], [-2.0]]))
    Score(accuracy=0.75, error=0.0, note='')
    """
    variance = (deviations**2).sum(1)
    explained = variance - (errors**2).sum(1)
    total = float(variance.sum()) or 1.0
    found = float(explained.sum()) / total
    # Of a ratio of two sums: the spread of what each example adds beyond its due.
    error = float(np.sqrt(((explained - found * variance) ** 2).sum()) / total)
    return Score(found, error, note)


def _input_blind(problem: Problem) -> Guess:
    """The mean answer to each combination of what is given once; one that was not met before gets the overall mean."""
    code = combinations(problem.spec, problem.examples)
    if code is None:
        return np.zeros((problem.rest, problem.truth.shape[1])), "always the mean"
    first = len(problem.truth)
    count = np.bincount(code[:first], minlength=int(code.max()) + 1)
    sums = np.zeros((len(count), problem.truth.shape[1]))
    np.add.at(sums, code[:first], problem.truth)
    means = sums / np.maximum(count, 1)[:, None]
    return means[code[first:]], f"given {', '.join(f.name for f in problem.spec.along(None))}"


def _single_feature(problem: Problem) -> Guess:
    """The best rule of the form: one value if a column exceeds a threshold, another if not."""
    first, outputs = problem.truth.shape
    guess, best, note = np.zeros((problem.rest, outputs)), np.zeros(outputs), "always the mean"
    for group in columns(problem.spec, problem.examples):
        for tried in thresholds(group):
            exceeds = group.values[:first] > tried
            above = np.maximum(exceeds.sum(0), 1)[:, None]
            below = np.maximum(first - exceeds.sum(0), 1)[:, None]
            sums = exceeds.astype(np.float64).T @ problem.truth
            gains = sums**2 * (1 / above + 1 / below)  # deviations add up to 0, so the sums below mirror those above
            chosen = gains.argmax(0)
            for output in np.flatnonzero(gains.max(0) > best).tolist():
                column = int(chosen[output])
                best[output] = gains[column, output]
                levels = sums[column, output] / above[column, 0], -sums[column, output] / below[column, 0]
                guess[:, output] = np.where(group.values[first:, column] > tried[column], *levels)
                if output == 0:
                    note = f"{group.name}, column {column}, above {tried[column]:.4g}"
    return guess, note


def _bag_of_tokens(problem: Problem) -> Guess:
    """Ridge regression on sums over each stream and on what is given once: blind to order and combination."""
    first = len(problem.truth)
    values = bag(problem.spec, problem.examples, first)
    fit = values[:first]
    weights = np.linalg.solve(fit.T @ fit + RIDGE * np.eye(fit.shape[1]), fit.T @ problem.truth)
    return values[first:] @ weights, f"ridge regression on {values.shape[1]} columns"


REGRESSIONS: dict[str, Callable[[Problem], Guess]] = {
    "input-blind": _input_blind,
    "single-feature": _single_feature,
    "bag-of-tokens": _bag_of_tokens,
}
