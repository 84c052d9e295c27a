"""Chance, shortcuts and always answering 0, as dashed lines in the panels of a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from unseen.report.layout import Layout
from unseen.report.panels import number, only
from unseen.report.references import ORACLE, references
from unseen.report.source import Source

TASKS = 3
"""Tasks of a panel that are measured: to measure all of them would take longer than the rest of a figure."""
CHANCE, ALWAYS_0 = "chance", "always 0"
KIND = "reference"


def reference_rows(source: Source, layout: Layout) -> pd.DataFrame:
    """One row per line: `panel`, `name`, `value` and the `row` its name stands in, so that neighbours do not touch.

    Chance and the best shortcut; in a single panel, where there is room, the three best.
    """
    kept = 3 if len(layout.panels) == 1 else 1
    found = []
    for panel, runs in layout.rows.groupby("panel", sort=False):
        values = _values(source, layout, runs)
        shortcuts = sorted((name for name in values if name not in (CHANCE, ORACLE, ALWAYS_0)), key=values.__getitem__)
        shown = sorted((name for name in (CHANCE, ALWAYS_0, *shortcuts[-kept:]) if name in values),
                       key=values.__getitem__)
        found += [{"kind": KIND, "panel": panel, "name": name, "value": values[name], "row": place % 2}
                  for place, name in enumerate(shown)]
    return pd.DataFrame(found, columns=["kind", "panel", "name", "value", "row"])


def best_rows(source: Source, layout: Layout, by: Sequence[str] = ("panel",)) -> pd.DataFrame:
    """The best that can be had without doing the task, in each group of runs: one row with its `name` and `value`."""
    found = []
    for levels, runs in layout.rows.groupby(list(by), sort=False):
        values = {name: value for name, value in _values(source, layout, runs).items() if name != ORACLE}
        if values:
            best = max(values, key=values.__getitem__)
            found.append([KIND, *levels, best, values[best]])
    return pd.DataFrame(found, columns=["kind", *by, "name", "value"])


def _values(source: Source, layout: Layout, runs: pd.DataFrame) -> dict[str, float]:
    """Means over the tasks and conditions of runs, of the references that all of them have."""
    if layout.metric.name == "relative_loss":
        return {ALWAYS_0: 1.0}
    if layout.metric.name != "accuracy":
        return {}
    cells = {source.tasks[cell]: cell for cell in runs["cell"].unique()}
    conditions = layout.conditions if layout.averaged else tuple(runs["condition"].unique())
    found = []
    for cell in list(cells.values())[:TASKS]:
        task = source.task(cell)
        found += [references(task, name) for name in conditions if name in task.conditions] if task is not None else []
    shared = [name for name in found[0] if all(name in one for one in found)] if found else []
    return {name: float(np.mean([one[name] for one in found])) for name in shared}


def reference_lines(alt: Any, layout: Layout, x: Any) -> list[Any]:
    """The dashed lines of a table's rows of that kind, with their names above the panel in two rows.

    A name near an edge grows inwards, so that it stays over its panel: column `side` says which way.
    """
    lines = [only(kind=KIND).mark_rule(strokeDash=[5, 4], strokeWidth=1.2).encode(
        x=x, tooltip=[alt.Tooltip("name:N"), number("value", layout.metric)])]
    aligned = {"left": ("left", -3), "middle": ("center", 0), "right": ("right", 3)}
    return lines + [
        only(kind=KIND, row=row, side=side).mark_text(
            baseline="bottom", align=align, dx=dx, dy=-4 - 14 * row, fontSize=11, opacity=0.75, limit=190,
        ).encode(x=x, y=alt.value(0), text="name:N")
        for row in (0, 1) for side, (align, dx) in aligned.items()]


def sides(values: pd.Series, domain: tuple[float, float]) -> Any:
    """Which way a name beside a value grows."""
    share = (values - domain[0]) / (domain[1] - domain[0])
    return np.select([share < 0.3, share > 0.7], ["left", "right"], "middle")
