"""The claims of the four papers, and what they measure. Here: what the measures of all papers share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from unseen.training.recipe import published_recipe


def option_column(runs: pd.DataFrame, name: str, default: Any = None) -> pd.Series:
    """Return an option of the runs (`task.length`), with a default where their task or model does not have it."""
    values = runs[name] if name in runs else pd.Series(None, runs.index, dtype=object)
    return values.where(values.notna(), default)


def label_extremes(numbers: pd.Series, highest: str, lowest: str) -> Any:
    """Label each number as the highest, the lowest or between.

    >>> label_extremes(pd.Series([4, 8, 16]), "most", "least").tolist()
    ['least', 'between', 'most']
    """
    return np.select([numbers == numbers.max(), numbers == numbers.min()], [highest, lowest], "between")


def stack_metrics(tables: Mapping[str, pd.DataFrame], columns: Sequence[str] = ()) -> pd.DataFrame:
    """Put tables below each other, each under the name of its metric; without any, an empty one with `columns`."""
    named = [rows.assign(metric=name) for name, rows in tables.items()]
    return pd.concat(named, ignore_index=True) if named else pd.DataFrame(columns=list(columns))


# -- runs that are smaller than the paper's -----------------------------------------------------------------------------

Sizes = Mapping[str, float | Mapping[str, float]]
"""Columns of the runs with the paper's value, e.g. {"task.length": 10}; or with its value by name of the model."""


def is_reduced(runs: pd.DataFrame, sizes: Sizes) -> pd.Series:
    """Return for each run whether it is smaller than the paper's: fewer training examples, or below one of `sizes`.

    Where the table of runs does not have an option, or a model or task does not, the run counts as the paper's.
    """
    reduced = trained_on_less(runs)
    models = option_column(runs, "model", "")
    for column, paper in sizes.items():
        published_size = models.map(paper).astype(float) if isinstance(paper, Mapping) else paper
        # A comparison with a missing value is false.
        reduced |= _numbers(runs, column) < published_size
    return reduced


def trained_on_less(runs: pd.DataFrame) -> pd.Series:
    """Return for each run whether it saw fewer examples (steps × batch) than the published recipe of its task and model.

    A run that was stopped early saw only those until then. Where no recipe was published, there is nothing to compare.
    """
    steps = _numbers(runs, "recipe.steps")
    if "status" in runs:
        steps = steps.where(runs["status"] != "stopped", _numbers(runs, "step"))
    examples = steps * _numbers(runs, "recipe.batch")
    pairs = zip(option_column(runs, "task", ""), option_column(runs, "model", ""), strict=True)
    published_examples = [_published_examples(task, model) for task, model in pairs]
    return examples < pd.Series(published_examples, runs.index, dtype=float)


@cache
def _published_examples(task: str, model: str) -> float:
    """The examples that a model was published to be trained on; NaN if there is no published recipe."""
    recipe = published_recipe(task, model)
    return float(recipe.steps * recipe.batch) if recipe else math.nan


def _numbers(runs: pd.DataFrame, column: str) -> pd.Series:
    """An option as numbers; NaN where it is missing or no number."""
    return pd.to_numeric(option_column(runs, column), errors="coerce").astype(float)


# -- printed numbers ----------------------------------------------------------------------------------------------------

POINT = 0.01
"""One point: a hundredth of an accuracy, a share, or another measure on a scale of one."""
STEADY = 2 * POINT
"""The largest printed standard deviation of a number that is compared to within three points."""
PRINTED_ERRORS = 3
"""Two means with the same standard error agree, at 90 %, within 2.4 (many seeds) to 2.6 (five seeds) of these errors.
So a printed number is only good to three of its own, and no number of our seeds could show a closer agreement."""


def agreement_tolerance(spread: float, seeds: int) -> float:
    """Return how far a mean may be from a printed one: three points, five where seeds differ by more than two points.

    Where three standard errors of the printed mean are more than that, it is these.

    >>> agreement_tolerance(0.02, 5), agreement_tolerance(0.028, 5), agreement_tolerance(0.27, 25)
    (0.03, 0.05, 0.162)
    """
    points = 3 * POINT if spread <= STEADY else 5 * POINT
    return round(max(points, PRINTED_ERRORS * spread / math.sqrt(seeds)), 3)
