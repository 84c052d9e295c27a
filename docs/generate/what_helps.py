"""What helps specialization and what helps performance: tables for the studies of routers and of finite data.

Each level of the axis in question is compared with a reference level, paired by task. Runs are averaged within a task, and
intervals are over tasks. Where learning rates are an axis, the rate with the least mean error in distribution counts for
each configuration, as for the claims.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from writing import table, unfold

from unseen.report.module_scores import (
    ALIGNMENT,
    BEYOND,
    COLLAPSE,
    ERROR,
    GAP,
    TRAINED,
    measure_modules,
    select_learning_rate,
)
from unseen.stats import mean_interval
from unseen.stats.confidence_intervals import Estimate, compare_means
from unseen.stats.tests import holm
from unseen.store.records import RecordsFile

TIME = "steps to the best weights"
MEASURES = (ALIGNMENT, COLLAPSE, ERROR, BEYOND, TRAINED, GAP, TIME)
_NOT_COMPARED = ("task_seed", "learning_rate", "architecture", "width")
_LEVEL = 0.05


@dataclass(frozen=True)
class Question:
    """Which axis is asked about, by its reference level, and what is compared along it."""

    axis: str
    reference: str
    measures: tuple[str, ...]
    without: str | None = None
    across: tuple[str, str, str] | None = None
    """An axis and two of its levels: is the difference larger at the first than at the second?"""


QUESTIONS = {
    "rules-routers": (Question("routing", "softmax", (ALIGNMENT, COLLAPSE, ERROR, BEYOND)),),
    "rules-data": (
        Question("gating", "none", (ERROR, BEYOND, GAP), across=("train_size", "256", "endless")),
        Question("train_size", "endless", (ALIGNMENT, COLLAPSE), without="truth"),
    ),
}


def describe_what_helps(file: RecordsFile) -> str:
    """Sentences and tables; empty for a study that does not ask."""
    if file.manifest.study not in QUESTIONS:
        return ""
    runs = measure_modules(file.records, file.manifest.selection)
    if TRAINED in runs:
        runs[TIME] = runs.index.map(file.entries.drop_duplicates("trial").set_index("trial")["best_step"])
    axes = [axis for axis in file.manifest.axes if axis not in _NOT_COMPARED]
    if "learning_rate" in runs:
        runs = select_learning_rate(runs, axes)
    parts = [_introduce(file, runs)]
    for question in QUESTIONS[file.manifest.study]:
        parts += _compare(runs, axes, question)
    return "\n\n".join([*parts, unfold("All values, means over tasks", _list_values(runs, axes))])


def _introduce(file: RecordsFile, runs: pd.DataFrame) -> str:
    unfinished = int((runs["not_converged"] == 1).sum())
    tuned = ", each configuration at its best learning rate in distribution" if "learning_rate" in runs else ""
    return (
        f"Of the {file.manifest.selection} weights{tuned}: {len(runs)} runs, of which {unfinished} had not converged. An error is "
        "the share of wrong answers or, in regression, the loss in units of always predicting zero; a gap is the error in "
        "distribution minus that on training data. Relative alignment is "
        "that of the modules divided by that of uniform weights: 0 for a module per rule, 1 for no specialization. "
        f"Intervals are 95 %, Student's t over {runs['task_seed'].nunique()} tasks (longer towards the middle of the scale for means close to 0 or 1: "
        "[statistics](../statistics.md)), and not corrected for how many there are; what is "
        "said to differ also differs after Holm's correction over all comparisons of that measure. That a "
        "difference was not shown does not mean that there is none."
    )


def _compare(runs: pd.DataFrame, axes: Sequence[str], question: Question) -> list[str]:
    """Sentences about what differs from the reference level, and a table of all differences."""
    fixed = [axis for axis in axes if axis != question.axis]
    if question.without is not None:
        runs = runs[runs["gating"] != question.without]
    estimates: dict[str, dict[tuple[str, ...], Estimate]] = {measure: {} for measure in question.measures}
    for key, group in runs.groupby(fixed, sort=False):
        reference = group[group[question.axis].astype(str) == question.reference]
        for level, others in group.groupby(question.axis, sort=False):
            if str(level) == question.reference:
                continue
            name = (*map(str, key), str(level))
            for measure in question.measures:
                ours, theirs = _by_task(others, measure), _by_task(reference, measure)
                if ours and theirs:
                    estimates[measure][name] = compare_means(ours, theirs, covers="tasks")
    parts = _tabulate(f"Compared with {question.axis} {question.reference}", estimates, [*fixed, question.axis])
    if question.across is not None:
        parts += _compare_across(runs, axes, question)
    return parts


def _compare_across(runs: pd.DataFrame, axes: Sequence[str], question: Question) -> list[str]:
    """The same differences at one level of an axis minus those at another, paired by task."""
    assert question.across is not None
    axis, first, second = question.across
    fixed = [name for name in axes if name not in (question.axis, axis)]
    estimates: dict[str, dict[tuple[str, ...], Estimate]] = {measure: {} for measure in question.measures}
    for key, group in runs.groupby(fixed, sort=False):
        for level in dict.fromkeys(group[question.axis].astype(str)):
            if level == question.reference:
                continue
            name = (*map(str, key), level)
            for measure in question.measures:
                differences = [
                    _differ_by_task(group[group[axis].astype(str) == size], measure, question, level)
                    for size in (first, second)
                ]
                estimates[measure][name] = compare_means(*differences, covers="tasks")
    title = f"The difference from {question.axis} {question.reference} at {axis} {first} minus that at {second}"
    return _tabulate(title, estimates, [*fixed, question.axis])


def _differ_by_task(runs: pd.DataFrame, measure: str, question: Question, level: str) -> dict[str, float]:
    """The measure at a level minus that at the reference level, for each task that has both."""
    levels = runs[question.axis].astype(str)
    ours, theirs = _by_task(runs[levels == level], measure), _by_task(runs[levels == question.reference], measure)
    return {task: ours[task] - theirs[task] for task in ours.keys() & theirs.keys()}


def _tabulate(title: str, estimates: dict[str, dict[tuple[str, ...], Estimate]], labels: Sequence[str]) -> list[str]:
    """What differs in sentences, and all differences as a table that opens at a click."""
    lines = [f"**{title}** (below 0 is better; named by {', '.join(labels)}):", ""]
    for measure, found in estimates.items():
        lines += [f"* {sentence}" for sentence in _say_what_differs(measure, found)]
    names = dict.fromkeys(name for found in estimates.values() for name in found)
    rows = []
    for name in names:
        rows.append([*name, *(_write(found.get(name)) for found in estimates.values())])
    return ["\n".join(lines), unfold(f"All differences: {len(rows)}", table([*labels, *estimates], rows))]


def _by_task(runs: pd.DataFrame, measure: str) -> dict[str, float]:
    values = runs[runs[measure].notna()].groupby("task_seed")[measure].mean()
    return {str(task): float(value) for task, value in values.items()}


def _say_what_differs(measure: str, estimates: dict[tuple[str, ...], Estimate]) -> Iterable[str]:
    adjusted = holm([np.nan if e.p_value is None else e.p_value for e in estimates.values()])
    differing = [(name, e) for (name, e), p in zip(estimates.items(), adjusted, strict=True) if p < _LEVEL]
    for direction, sign in (("lower", -1), ("higher", 1)):
        names = [", ".join(name) for name, estimate in differing if np.sign(estimate.value) == sign]
        listed = "; ".join(names) if names else "nowhere"
        yield f"{measure} is {direction}, of {len(estimates)} comparisons: {listed}."


def _list_values(runs: pd.DataFrame, axes: Sequence[str]) -> str:
    """A row per configuration with the means over tasks and their intervals."""
    rated = "learning_rate" in runs
    measures = [measure for measure in MEASURES if measure in runs]
    rows = []
    for key, group in runs.groupby(list(axes), sort=False):
        cells = []
        for measure in measures:
            values = list(_by_task(group, measure).values())
            digits = 0 if measure == TIME else 3
            bounds = mean_interval(values).within(*_limits(measure, group)) if values else None
            interval = ""
            if bounds is not None and bounds.low == bounds.low:
                interval = f" [{bounds.low:.{digits}f}, {bounds.high:.{digits}f}]"
            cells.append(f"{np.mean(values):.{digits}f}{interval}" if values else "")
        learning_rate = [f"{group['learning_rate'].iloc[0]:g}"] if rated else []
        rows.append([*map(str, key), *learning_rate, *cells, str(len(group))])
    head = [*axes, *(["learning rate"] if rated else []), *measures, "runs"]
    return table(head, rows)


def _limits(measure: str, runs: pd.DataFrame) -> tuple[float, float]:
    """The least and the largest value that a measure can have in these runs."""
    if measure == TIME:
        return 0.0, math.inf
    regression = "setting" in runs and bool((runs["setting"] == "regression").all())
    unbounded = regression and measure in (ERROR, BEYOND, TRAINED, GAP)
    # A loss in units of that of predicting zero can be above one. Only a gap may be negative.
    high = math.inf if unbounded else 1.0
    return (-high if measure == GAP else 0.0), high


def _write(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    low, high = estimate.interval.low, estimate.interval.high
    interval = f" [{low:+.3f}, {high:+.3f}]" if low == low else ""
    return f"{estimate.value:+.3f}{interval}"
