"""What a study varies and what it holds fixed: axes, tasks with what is unseen, models, recipes, seeds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd

from unseen.errors import UsageError
from unseen.report.references import unseen_in
from unseen.report.source import Source
from unseen.report.theme import title_of
from unseen.tasks.base import Task

LEVELS = 40
"""How many levels of an axis are listed before the rest is counted."""
SHOWN = 12
"""How many different tasks, models and recipes are listed before the rest is counted."""
OPTIONS = 3
"""How many settings of one task are told."""
UNKNOWN = "this release does not make this task in this version: what is unseen in it can't be said"
TRIED = 2
"""On how many tasks the parameters of a model are counted where no run has recorded them."""


@dataclass(frozen=True)
class Listed:
    """Rows for a table, and how many more there are."""

    rows: Sequence[dict[str, Any]]
    more: int = 0


@dataclass(frozen=True)
class Design:
    """What the page says about the design."""

    axes: Sequence[dict[str, Any]]
    tasks: Listed
    models: Listed
    recipes: Listed
    seeds: str


def design(source: Source, models: Mapping[str, str], provenance: pd.DataFrame) -> Design:
    """The design as far as the runs tell it; `models` has the identity of each cell's model."""
    counted = _counted(provenance)
    return Design(
        _axes(source), _tasks(source), _models(source, models, counted), _recipes(source), _seeds(source.runs)
    )


def level(value: object) -> str:
    """A level as text: nothing where a run has no level on the axis."""
    return "" if value is None or value != value else title_of(value)


def span(numbers: Iterable[int]) -> str:
    """Whole numbers in few words.

    >>> span([0, 1, 2, 3, 7, 9]), span([4])
    ('0–3, 7, 9', '4')
    """
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return ", ".join(f"{group[0]}–{group[-1]}" if len(group) > 2 else ", ".join(map(str, group)) for group in found)


def _axes(source: Source) -> list[dict[str, Any]]:
    rows = []
    for axis in source.axes:
        levels = [level(value) for value in source.runs[axis].unique() if level(value)]
        rows.append({"axis": axis, "levels": levels[:LEVELS], "more": max(0, len(levels) - LEVELS)})
    return rows


def _tasks(source: Source) -> Listed:
    """Tasks with what is unseen in the conditions they were tested on, those with the same together."""
    alike: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    chosen = source.runs.drop_duplicates("task")
    for one in chosen.head(SHOWN).to_dict("records"):
        name, task = one["task"], source.task(one["cell"])
        tested = source.records["condition"][source.records["task"] == name].unique() if len(source.records) else []
        unseen = [UNKNOWN] if task is None else unseen_in(task, tested)
        options = source.runs["task_options"][source.runs["task"] == name].unique()
        alike.setdefault(tuple(unseen), []).append(
            {
                "task": name,
                "options": [text or "defaults" for text in options[:OPTIONS]],
                "more": max(0, len(options) - OPTIONS),
                "example": "" if task is None else _example(task, list(tested)),
            }
        )
    rows = [{"tasks": tasks, "unseen": unseen} for unseen, tasks in alike.items()]
    return Listed(rows, max(0, len(chosen) - SHOWN))


def _example(task: Task, tested: Sequence[str]) -> str:
    """One example of the condition that is most unlike training, in words."""
    known = [name for name in tested if name in task.conditions] or [task.validation]
    condition = next((name for name in known if name.startswith("ood")), known[0])
    try:
        return f"{condition}\n{task.describe(task.sample(condition, 1, data_seed='test'), 0)}"
    except UsageError:
        return ""  # there are no such examples, or none that could be told in words


def _counted(provenance: pd.DataFrame) -> pd.Series:
    """How many numbers each cell has trained, as far as it was recorded."""
    if "parameters" not in provenance:
        return pd.Series(dtype=float)
    return pd.to_numeric(provenance.set_index("cell")["parameters"], errors="coerce").dropna()


def _models(source: Source, models: Mapping[str, str], counted: pd.Series) -> Listed:
    runs, series = source.runs, source.series
    names = list(dict.fromkeys([series, "model", "model_options"]))
    groups = list(runs.groupby(names, sort=False, dropna=False))
    rows = []
    for _, mine in groups[:SHOWN]:
        one = mine.iloc[0]
        found = set(counted[counted.index.isin(mine["cell"])])
        if not found:  # none has ended, or all are of an older release
            few = mine.drop_duplicates(["task", "task_options"]).head(TRIED)["cell"]
            tasks = {cell: task for cell in few if (task := source.task(cell)) is not None}
            found = {count for cell, task in tasks.items() if (count := _parameters(task, models[cell])) is not None}
        rows.append(
            {
                "label": level(one[series]),
                "model": one["model"],
                "options": one["model_options"],
                "runs": len(mine),
                "parameters": "–".join(map(thousands, sorted({min(found), max(found)} if found else ()))),
            }
        )
    return Listed(rows, len(groups) - len(rows))


@cache
def _parameters(task: Task, model: str) -> int | None:
    """How many numbers a model of ours trains; None of any other, which would have to be imported, and if this release
    does not make it."""
    from unseen.models import is_ours, options

    given = json.loads(model)
    version = given.pop("version")
    if not is_ours(str(given["name"])):
        return None
    from unseen.models.build import build, parameter_count

    try:
        found = options(**given)
        return parameter_count(build(found, task.spec)) if found.version == version else None
    except Exception:
        return None  # it can't be built: then its runs have failed, and say why


def thousands(number: float) -> str:
    """A whole number for people.

    >>> thousands(1234567)
    '1\u202f234\u202f567'
    """
    return f"{round(number):,}".replace(",", "\u202f")


def _recipes(source: Source) -> Listed:
    grouped = source.runs.groupby(["recipe", "recipe_options"], sort=False).size().reset_index(name="runs")
    rows = [
        {"recipe": one["recipe"], "options": one["recipe_options"], "runs": int(one["runs"])}
        for one in grouped.to_dict("records")
    ]
    return Listed(rows[:SHOWN], max(0, len(rows) - SHOWN))


def _seeds(runs: pd.DataFrame) -> str:
    if runs.empty:
        return ""
    own = bool((runs["seed"] == runs["data_seed"]).all())
    data = (
        "each seed has training data of its own"
        if own
        else (
            f"all share the training data of data seed {span(runs['data_seed'])}"
            if runs["data_seed"].nunique() == 1
            else f"data seeds {span(runs['data_seed'])}"
        )
    )
    return f"{span(runs['seed'])}; {data}"
