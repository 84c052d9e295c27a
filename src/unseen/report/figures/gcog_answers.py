"""Where the models of the gCOG paper are right: by operator, and by the kind of answer, with the share of answers that
are at least of the right kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from unseen.report import theme
from unseen.report.figure import Drawing
from unseen.report.figures import gcog_runs as data
from unseen.report.figures.notes import run_notes
from unseen.report.figures.rows import GUESSED, Measure, Panel, headed, row_panels, table
from unseen.report.panels import stacked
from unseen.report.source import Source
from unseen.studies.claims import gcog_measures as measures
from unseen.studies.claims.gcog_measures import IID, OOD, OUTSIDE
from unseen.tasks.base import Task

OPERATOR, KIND, RIGHT_KIND = "operator", "answer_kind", "right_kind"
FIRST = ("boolean", "location")
"""Of all kinds of answers; the values of features follow."""
BLOCKS = 6
"""So many settings are drawn; the rest is in the records."""
CHANCE = f"'{GUESSED}' chance: a guess among the answers that are possible there."


def draw_operators(source: Source) -> Drawing | None:
    """Accuracy by the operator whose answer is asked for, on fresh and on new questions."""
    return _draw(source, OPERATOR, {"accuracy": "accuracy"})


def draw_kinds(source: Source) -> Drawing | None:
    """Accuracy by the kind of the answer, and how many answers are of the right kind."""
    return _draw(source, KIND, {"accuracy": "accuracy", RIGHT_KIND: "of the right kind"})


def _draw(source: Source, factor: str, metrics: dict[str, str]) -> Drawing | None:
    charts: list[Any] = []
    tables, meant = [], []
    shown: list[pd.DataFrame] = []
    notes: list[str] = []
    groups = settings(source)
    for heading, runs in groups:
        rows = {metric: data.last(source, runs, metric, factor) for metric in metrics}
        whole = pd.concat(rows.values(), ignore_index=True)
        if whole.empty or len(charts) == BLOCKS:
            continue
        levels = sorted(set(whole["level"]), key=lambda level: ((*FIRST, level).index(level), level))
        chance = chances(source.task(runs["cell"].iloc[0]), factor, levels)
        panels = [
            panel
            for metric, words in metrics.items()
            for panel in _panels(rows[metric], words, chance if metric == "accuracy" else None)
        ]
        models = data.order(whole["series"].tolist())
        chart = row_panels(
            panels,
            levels,
            models,
            Measure("share of answers"),
            columns=len(panels),
            width=min(300, 800 // len(panels) - 20),
        )
        charts.append(headed(chart, heading if len(models) > 1 else f"{heading} · {models[0]}"))
        tables.append(table(panels, factor, "model").assign(setting=heading))
        notes += [
            *([CHANCE] if chance is not None else []),
            *data.unseen(source, runs, data.conditions_of(whole, OUTSIDE[runs["task"].iloc[0]])),
        ]
        meant.append(runs)
        shown.append(whole)
    if not charts:
        return None
    if len(groups) > BLOCKS:
        notes.append(f"{BLOCKS} of {len(groups)} settings are drawn.")
    notes = [*run_notes(pd.concat(meant), pd.concat(shown), data.BOUND), *dict.fromkeys(notes)]
    return Drawing(stacked(charts), pd.concat(tables, ignore_index=True), tuple(notes))


def _panels(rows: pd.DataFrame, words: str, chance: pd.DataFrame | None) -> list[Panel]:
    if rows.empty:
        return []
    found = data.in_parts(rows, rows["task"].iloc[0])
    return [
        Panel(f"{part}, {words}", found[part].assign(row=found[part]["level"]), marks=chance)
        for part in (IID, OOD)
        if len(found[part])
    ]


def chances(task: Task | None, factor: str, levels: Sequence[str]) -> pd.DataFrame | None:
    """What a guess among the answers that are possible there gives: one mark for each level.

    >>> from unseen.tasks import task
    >>> chances(task("gcog/distractor"), OPERATOR, ["Exist", "GetLocation"])["value"].tolist()
    [0.5, 0.01]
    """
    kinds = None if task is None else task.answer_kinds
    operators = getattr(getattr(task, "domain", None), "operators", {})
    if kinds is None:
        return None
    sizes = pd.Series(kinds).value_counts()
    asked = [operators[level].answer if factor == OPERATOR else level for level in levels]
    return pd.DataFrame(
        {
            "row": list(levels),
            "value": [1 / sizes[kind] for kind in asked],
            "mark": GUESSED,
            "what": "chance",
            "say": "chance",
        }
    )


def settings(source: Source) -> list[tuple[str, pd.DataFrame]]:
    """The runs on tasks of the paper in groups that differ in nothing but model and seed, each with a heading."""
    runs = source.runs[source.runs["task"].isin(measures.TASKS)]
    axes = [axis for axis in source.axes if axis not in ("task", "model") and runs[axis].nunique() > 1]
    headings = [
        " · ".join([run["task"], *(f"{axis} {theme.title_of(run[axis])}" for axis in axes if pd.notna(run[axis]))])
        for run in runs.to_dict("records")
    ]
    grouped = runs.groupby(pd.Series(headings, runs.index, dtype=object), sort=False)
    return [(str(heading), found) for heading, found in grouped]
