"""Scores without learning the task: chance, shortcut baselines and the oracle; and what is unseen in a split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from unseen.names import is_ood
from unseen.report.charts import filter_rows, metric_tooltip
from unseen.report.data import Source
from unseen.report.layout import ChartLayout
from unseen.report.theme import load_altair
from unseen.tasks.base import Task
from unseen.tasks.verify.equivalence import TRAINING, describe_other_forms, read_functions

EXAMPLES = 4_000
EQUIVALENCE_EXAMPLES = 1_000
"""The test examples that are compared with training, as on the pages of the tasks."""
GLANCE = 2_000
"""The training examples that show whether a task has several forms of a function at all."""
CHANCE = "chance"
ORACLE = "oracle"
ALWAYS_0 = "always 0"
REFERENCE = "reference"
"""The `kind` of the rows of baselines in the data of a figure."""
MAX_TASKS = 3
"""Tasks that are measured behind one line: hundreds would take longer than the rest of a figure."""
CLEARLY_ABOVE = 0.02
"""A shortcut is drawn beside chance only if it exceeds chance by more than this."""


@cache
def task_baselines(task: Task, split: str) -> dict[str, float]:
    """Accuracies by name: chance, the task's shortcuts measured on the test data, and the oracle (the solver).

    Empty for a real-valued target.

    >>> from unseen.tasks import task
    >>> baselines = task_baselines(task("retrieval/T6", length=5), "ood/single")
    >>> baselines["chance"], baselines["oracle"], len(baselines) > 2
    (0.5, 1.0, True)
    """
    if task.spec.target.kind == "real":
        return {}
    accuracies = {CHANCE: task.spec.target.chance}
    shortcuts = task.shortcuts(split)
    if shortcuts:
        size = task.size(split)
        examples = task.sample(split, EXAMPLES if size is None else min(size, EXAMPLES), data_seed="test")
        for shortcut in shortcuts:
            accuracies[shortcut.name] = float(np.mean(shortcut.answer(examples) == examples.targets))
    return accuracies | {ORACLE: 1.0}


def shortcut_accuracies(baselines: Mapping[str, float]) -> dict[str, float]:
    """The baselines without chance and oracle."""
    return {name: value for name, value in baselines.items() if name not in (CHANCE, ORACLE)}


def mean_baselines(source: Source, trials: Iterable[str], splits: Iterable[str]) -> dict[str, float]:
    """Means over the tasks of some trials and over splits, of the baselines that all of them have."""
    first_trials = {source.tasks[trial]: trial for trial in trials}
    tasks = [source.task(trial) for trial in list(first_trials.values())[:MAX_TASKS]]
    names = list(splits)
    tables = []
    for task in tasks:
        if task is not None:
            tables += [task_baselines(task, split) for split in names if split in task.splits]
    if not tables:
        return {}
    means = {}
    for name in tables[0]:
        if all(name in table for table in tables):
            means[name] = float(np.mean([table[name] for table in tables]))
    return means


def select_baselines(values: Mapping[str, float], shortcuts: int = 1) -> dict[str, float]:
    """The baselines that a figure draws: chance, the best shortcuts from the lowest to the highest, and the oracle.

    >>> select_baselines({"chance": 0.5, "majority": 0.51, "one feature": 0.88, "bag": 0.7, "oracle": 1.0})
    {'chance': 0.5, 'one feature': 0.88, 'oracle': 1.0}
    """
    clear = [name for name in shortcut_accuracies(values) if values[name] > values[CHANCE] + CLEARLY_ABOVE]
    best = sorted(clear, key=lambda name: values[name])[-shortcuts:]
    return {name: values[name] for name in (CHANCE, *best, ORACLE) if name in values}


# -- dashed lines in the panels of a layout ---------------------------------------------------------------------------


def baseline_rows(
    source: Source, layout: ChartLayout, by: Sequence[str] = ("panel",), shortcuts: int = 1
) -> pd.DataFrame:
    """One row per dashed line of each group of runs: `by`, `name`, `value`, and the `row` in which its name is written.

    Names alternate between two rows, so that neighbours do not overlap.
    """
    rows = []
    for levels, runs in layout.rows.groupby(list(by), sort=False):
        if layout.metric.name == "accuracy":
            splits = layout.splits if layout.averaged else tuple(runs["split"].unique())
            values = select_baselines(mean_baselines(source, runs["trial"].unique(), splits), shortcuts)
        else:
            values = {ALWAYS_0: 1.0, ORACLE: 0.0} if layout.metric.name == "relative_loss" else {}
        for position, name in enumerate(sorted(values, key=values.__getitem__)):
            rows.append([REFERENCE, *levels, name, values[name], position % 2 if len(values) > 2 else 0])
    return pd.DataFrame(rows, columns=["kind", *by, "name", "value", "row"])


def best_and_oracle(rows: pd.DataFrame, by: Sequence[str] = ("panel",)) -> pd.DataFrame:
    """Of the lines of each group the two most important ones: the best shortcut baseline and the oracle."""
    others = rows[rows["name"] != ORACLE]
    best = others.loc[others.groupby(list(by), sort=False)["value"].idxmax()]
    return pd.concat([best, rows[rows["name"] == ORACLE]], ignore_index=True)


def baseline_layers(layout: ChartLayout, x: Any) -> list[Any]:
    """Vertical dashed lines of the rows of kind `REFERENCE`, with their names above the panel in two rows.

    The column `side` (`text_sides`) says in which direction a name extends, so that it stays above its panel.
    """
    alt = load_altair()
    tooltip = [alt.Tooltip("name:N"), metric_tooltip("value", layout.metric)]
    layers = [filter_rows(kind=REFERENCE).mark_rule(strokeDash=[5, 4], strokeWidth=1.2).encode(x=x, tooltip=tooltip)]
    alignments = {"left": ("left", -3), "middle": ("center", 0), "right": ("right", 3)}
    for row in (0, 1):
        for direction, (align, dx) in alignments.items():
            names = filter_rows(kind=REFERENCE, row=row, side=direction).mark_text(
                baseline="bottom", align=align, dx=dx, dy=-4 - 14 * row, fontSize=11, opacity=0.75, limit=190
            )
            layers.append(names.encode(x=x, y=alt.value(0), text="name:N"))
    return layers


def text_sides(values: pd.Series, domain: tuple[float, float]) -> Any:
    """The direction in which the text beside a value extends: away from the nearer edge of the panel."""
    share = (values - domain[0]) / (domain[1] - domain[0])
    return np.select([share < 0.3, share > 0.7], ["left", "right"], "middle")


# -- what is unseen ---------------------------------------------------------------------------------------------------


def describe_unseen(task: Task, splits: Iterable[str]) -> list[str]:
    """For each split a sentence on what training never contained, and on what it has in another form.

    >>> from unseen.tasks import task
    >>> describe_unseen(task("retrieval/T6", length=5), ["iid"])
    ['iid: nothing is unseen but the examples']
    """
    sentences = []
    for name in dict.fromkeys(splits):
        if name not in task.splits:
            continue
        split = task.splits[name]
        if split.unseen:
            text = f"unseen: {' with '.join(split.unseen)} ({split.summary})"
        elif name in ("iid", "train"):
            text = "nothing is unseen but the examples"
        else:
            text = f"no value is unseen ({split.summary})"
        sentences.append(f"{split.name}: {text}{_describe_other_forms(task, split.name)}")
    return sentences


@cache
def _describe_other_forms(task: Task, split: str) -> str:
    """How many examples out of distribution compute what training has in another form; empty if none of them do."""
    if not is_ood(split):
        return ""
    size = task.size(split)
    examples = task.sample(
        split, EQUIVALENCE_EXAMPLES if size is None else min(EQUIVALENCE_EXAMPLES, size), data_seed="test"
    )
    # A glance at a little of training first: of most tasks all forms differ in what they compute.
    expressions = task.expressions(examples)
    glance = None if expressions is None else _read_functions(task, GLANCE)
    if expressions is None or glance is None or not glance.compare(expressions).equivalent:
        return ""
    functions = _read_functions(task, TRAINING)
    assert functions is not None
    return f"; {describe_other_forms(functions.compare(expressions))}"


_read_functions = cache(read_functions)


def unseen_notes(source: Source, splits: Iterable[str]) -> list[str]:
    """The sentences of `describe_unseen` for all tasks of a source, each once."""
    names = list(splits)
    notes: dict[str, None] = {}
    for trial in source.runs.drop_duplicates("task")["trial"]:
        task = source.task(trial)
        if task is not None:
            notes |= dict.fromkeys(describe_unseen(task, names))
    return list(notes)
