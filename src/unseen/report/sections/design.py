"""The design of a study: axes, tasks with what is unseen in them, models, recipes and seeds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd

from unseen import names
from unseen.errors import UsageError
from unseen.names import find_ood
from unseen.report.baselines import describe_unseen
from unseen.report.data import Source
from unseen.report.theme import title_of
from unseen.tasks.base import Task

MAX_LEVELS = 40
MAX_ROWS = 12
"""The number of different tasks, models and recipes that are listed before the others are counted."""
MAX_SETTINGS = 3
"""The number of settings that are listed for one task."""
COUNTED_TASKS = 2
"""The number of tasks on which the parameters of a model are counted if no run has recorded them."""
UNKNOWN_TASK = "this release does not make this task in this version, so what is unseen in it is not known"


@dataclass(frozen=True)
class TableRows:
    """Rows for a table, and how many more there are."""

    rows: Sequence[dict[str, Any]]
    more: int = 0


@dataclass(frozen=True)
class DesignSection:
    """The contents of the section on the design."""

    axes: Sequence[dict[str, Any]]
    tasks: TableRows
    models: TableRows
    recipes: TableRows
    seeds: str


def describe_design(source: Source, models: Mapping[str, str], provenance: pd.DataFrame) -> DesignSection:
    """The design as far as the runs tell it.

    `models` has the identity of each trial's model, `provenance` the facts that each trial has recorded.
    """
    parameters = pd.Series(dtype=float)
    if "parameters" in provenance:
        recorded = pd.to_numeric(provenance.set_index("trial")["parameters"], errors="coerce")
        parameters = recorded.dropna()
    return DesignSection(
        _list_axes(source),
        _list_tasks(source),
        _list_models(source, models, parameters),
        _list_recipes(source),
        _describe_seeds(source.runs),
    )


def format_level(value: object, axis: str) -> str:
    """A level of an axis as text; empty if a run has no level there."""
    return title_of(names.format_level(value), axis)


def format_range(numbers: Iterable[int]) -> str:
    """Whole numbers as ranges.

    >>> format_range([0, 1, 2, 3, 7, 9]), format_range([4])
    ('0–3, 7, 9', '4')
    """
    groups: list[list[int]] = []
    for number in sorted(set(numbers)):
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    texts = []
    for group in groups:
        texts.append(f"{group[0]}–{group[-1]}" if len(group) > 2 else ", ".join(map(str, group)))
    return ", ".join(texts)


def format_count(number: float) -> str:
    """A whole number with narrow spaces between thousands.

    >>> format_count(1234567)
    '1\u202f234\u202f567'
    """
    return f"{round(number):,}".replace(",", "\u202f")


def _list_axes(source: Source) -> list[dict[str, Any]]:
    rows = []
    for axis in source.axes:
        levels = list(filter(None, (format_level(value, axis) for value in source.runs[axis].unique())))
        rows.append({"axis": axis, "levels": levels[:MAX_LEVELS], "more": max(0, len(levels) - MAX_LEVELS)})
    return rows


def _list_tasks(source: Source) -> TableRows:
    """Tasks with what is unseen in the splits on which they were tested; those with the same text share a row."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    first_runs = source.runs.drop_duplicates("task")
    for name, trial in first_runs[["task", "trial"]].head(MAX_ROWS).itertuples(index=False):
        task = source.task(trial)
        tested = []
        if len(source.records):
            tested = source.records["split"][source.records["task"] == name].unique().tolist()
        unseen = [UNKNOWN_TASK] if task is None else describe_unseen(task, tested)
        options = source.runs["task_options"][source.runs["task"] == name].unique()
        groups.setdefault(tuple(unseen), []).append(
            {
                "task": name,
                "options": [text or "defaults" for text in options[:MAX_SETTINGS]],
                "more": max(0, len(options) - MAX_SETTINGS),
                "example": "" if task is None else _describe_example(task, tested),
            }
        )
    rows = [{"tasks": tasks, "unseen": unseen} for unseen, tasks in groups.items()]
    return TableRows(rows, max(0, len(first_runs) - MAX_ROWS))


def _describe_example(task: Task, tested: Sequence[str]) -> str:
    """An example of the split that differs most from training, as text."""
    splits = [name for name in tested if name in task.splits] or [task.validation]
    split = find_ood(splits) or splits[0]
    try:
        return f"{split}\n{task.describe(task.sample(split, 1, data_seed='test'), 0)}"
    except UsageError:
        return ""  # the split has no examples, or they have no description


def _list_models(source: Source, models: Mapping[str, str], parameters: pd.Series) -> TableRows:
    columns = list(dict.fromkeys([source.series, "model", "model_options"]))
    groups = list(source.runs.groupby(columns, sort=False, dropna=False))
    rows = []
    for _, runs in groups[:MAX_ROWS]:
        counts = set(parameters[parameters.index.isin(runs["trial"])])
        if not counts:  # no run has ended, or all runs are of an older release
            for trial in runs.drop_duplicates(["task", "task_options"]).head(COUNTED_TASKS)["trial"]:
                task = source.task(trial)
                count = None if task is None else _count_parameters(task, models[trial])
                if count is not None:
                    counts.add(count)
        extremes = sorted({min(counts), max(counts)}) if counts else []
        first = runs.iloc[0]
        rows.append(
            {
                "label": format_level(first[source.series], source.series),
                "model": first["model"],
                "options": first["model_options"],
                "runs": len(runs),
                "parameters": "–".join(map(format_count, extremes)),
            }
        )
    return TableRows(rows, len(groups) - len(rows))


@cache
def _count_parameters(task: Task, identity: str) -> int | None:
    """The number of parameters of a model of this package; None for any other model.

    A model that is not part of this package would have to be imported, and looking at a store runs no code that it
    names.
    """
    from unseen.models import is_ours, options

    model = json.loads(identity)
    version = model.pop("version")
    if not is_ours(str(model["name"])):
        return None
    from unseen.models.build import build, parameter_count

    try:
        config = options(**model)
        return parameter_count(build(config, task.spec)) if config.version == version else None
    except Exception:
        return None  # it can't be built; then its runs have failed, and their errors are on the page


def _list_recipes(source: Source) -> TableRows:
    rows = []
    for (recipe, options), runs in source.runs.groupby(["recipe", "recipe_options"], sort=False):
        rows.append({"recipe": recipe, "options": options, "runs": len(runs)})
    return TableRows(rows[:MAX_ROWS], max(0, len(rows) - MAX_ROWS))


def _describe_seeds(runs: pd.DataFrame) -> str:
    if runs.empty:
        return ""
    if (runs["seed"] == runs["data_seed"]).all():
        data = "each seed has training data of its own"
    elif runs["data_seed"].nunique() == 1:
        data = f"all share the training data of data seed {format_range(runs['data_seed'])}"
    else:
        data = f"data seeds {format_range(runs['data_seed'])}"
    return f"{format_range(runs['seed'])}; {data}"
