"""Chance, shortcuts and the oracle, as dashed lines in the panels of a figure that fits any study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from unseen.report.layout import Layout
from unseen.report.panels import number, only
from unseen.report.references import ORACLE, drawn, measured
from unseen.report.source import Source

ALWAYS_0 = "always 0"
KIND = "reference"


def reference_rows(source: Source, layout: Layout, by: Sequence[str] = ("panel",), shortcuts: int = 1) -> pd.DataFrame:
    """One row per line of each group of runs: `by`, `name`, `value` and the `row` its name stands in, so that
    neighbours do not touch."""
    found = []
    for levels, runs in layout.rows.groupby(list(by), sort=False):
        shown = _values(source, layout, runs, shortcuts)
        found += [
            [KIND, *levels, name, shown[name], place % 2 if len(shown) > 2 else 0]
            for place, name in enumerate(sorted(shown, key=shown.__getitem__))
        ]
    return pd.DataFrame(found, columns=["kind", *by, "name", "value", "row"])


def bounds(rows: pd.DataFrame, by: Sequence[str] = ("panel",)) -> pd.DataFrame:
    """Of the lines of each group the two that matter most: the best without doing the task, and the oracle."""
    other = rows[rows["name"] != ORACLE]
    best = other.loc[other.groupby(list(by), sort=False)["value"].idxmax()]
    return pd.concat([best, rows[rows["name"] == ORACLE]], ignore_index=True)


def _values(source: Source, layout: Layout, runs: pd.DataFrame, shortcuts: int) -> dict[str, float]:
    if layout.metric.name == "relative_loss":
        return {ALWAYS_0: 1.0, ORACLE: 0.0}
    if layout.metric.name != "accuracy":
        return {}
    conditions = layout.conditions if layout.averaged else tuple(runs["condition"].unique())
    return drawn(measured(source, runs["cell"].unique(), conditions), shortcuts)


def reference_lines(alt: Any, layout: Layout, x: Any) -> list[Any]:
    """The dashed lines of a table's rows of that kind, with their names above the panel in two rows.

    A name near an edge grows inwards, so that it stays over its panel: column `side` says which way.
    """
    lines = [
        only(kind=KIND)
        .mark_rule(strokeDash=[5, 4], strokeWidth=1.2)
        .encode(x=x, tooltip=[alt.Tooltip("name:N"), number("value", layout.metric)])
    ]
    aligned = {"left": ("left", -3), "middle": ("center", 0), "right": ("right", 3)}
    return lines + [
        only(kind=KIND, row=row, side=side)
        .mark_text(
            baseline="bottom",
            align=align,
            dx=dx,
            dy=-4 - 14 * row,
            fontSize=11,
            opacity=0.75,
            limit=190,
        )
        .encode(x=x, y=alt.value(0), text="name:N")
        for row in (0, 1)
        for side, (align, dx) in aligned.items()
    ]


def sides(values: pd.Series, domain: tuple[float, float]) -> Any:
    """Which way a name beside a value grows."""
    share = (values - domain[0]) / (domain[1] - domain[0])
    return np.select([share < 0.3, share > 0.7], ["left", "right"], "middle")
