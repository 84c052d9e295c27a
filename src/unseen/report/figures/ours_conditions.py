"""Means by condition: from what training had to what it never had."""

from __future__ import annotations

from typing import Any

import pandas as pd

from unseen.report.figure import Drawing
from unseen.report.figures.notes import layout_notes
from unseen.report.layout import CONDITION, Layout, layouts
from unseen.report.panels import arranged, number, only, stacked
from unseen.report.reference_lines import KIND, bounds, reference_rows
from unseen.report.references import ORACLE
from unseen.report.source import Source
from unseen.report.theme import GREY, colour_scale, load_altair

HEIGHT = 190
FEW = 6
"""Panels up to which references are measured at every condition."""


def draw(source: Source) -> Drawing | None:
    """A line per series over the conditions, a panel per place; None where all runs have one condition."""
    found = [one for one in layouts(source, every_condition=True) if len(one.conditions) > 1]
    if not found:
        return None
    tables = [_table(source, one) for one in found]
    charts = [_chart(one, rows) for one, rows in zip(found, tables, strict=True)]
    return Drawing(stacked(charts), pd.concat(tables, ignore_index=True), layout_notes(source, found))


def _table(source: Source, layout: Layout) -> pd.DataFrame:
    """A row per series and condition of a panel, and two per condition for what needs no learning: the best without
    doing the task, and the oracle."""
    mean = layout.means("panel", "series", CONDITION).rename(columns={"mean": "value"}).assign(kind="mean")
    by = ["panel", CONDITION]
    lines = bounds(reference_rows(source, layout, by), by) if len(layout.panels) <= FEW else mean[:0]
    lines = lines.assign(line=lines["name"].eq(ORACLE).astype(int)) if len(lines) else lines
    whole = pd.concat([mean, lines] if len(lines) else [mean], ignore_index=True)
    return whole.assign(metric=layout.metric.name)


def _chart(layout: Layout, rows: pd.DataFrame) -> Any:
    alt, labels = load_altair(), list(layout.series)
    x = alt.X(
        f"{CONDITION}:N",
        sort=list(layout.conditions),
        title=None,
        axis=alt.Axis(labelAngle=-40, grid=False, domain=False, ticks=False, labelPadding=6, labelLimit=200),
        scale=alt.Scale(type="point", padding=0.4),
    )
    scale = alt.Scale(zero=not layout.metric.rising, nice=True)
    axis = alt.Axis(format=layout.metric.format, tickCount=5, domain=False, ticks=False)
    colour = alt.Color(
        "series:N",
        scale=colour_scale(labels),
        legend=alt.Legend(title=None, orient="top", symbolType="circle", symbolOpacity=1),
    )
    tooltip = [
        alt.Tooltip("series:N", title=layout.axis),
        f"{CONDITION}:N",
        number("value", layout.metric, "mean"),
        number("low", layout.metric),
        number("high", layout.metric),
        "runs:Q",
        alt.Tooltip("still_learning:Q", title="still learning"),
    ]

    def y(column: str) -> Any:
        return alt.Y(f"{column}:Q", title=layout.metric.title, scale=scale, axis=axis)

    lines, base = only(kind=KIND), only(kind="mean")
    layers = [
        lines.mark_line(strokeDash=[5, 4], strokeWidth=1.2, color=GREY).encode(x=x, y=y("value"), detail="line:N"),
        lines.mark_point(size=60, opacity=0).encode(
            x=x, y=y("value"), tooltip=["name:N", number("value", layout.metric)]
        ),
        base.mark_line(strokeWidth=1.5, opacity=0.45).encode(x=x, y=y("value"), color=colour),
        base.mark_rule(strokeWidth=2).encode(x=x, y=y("low"), y2="high:Q", color=colour),
        base.mark_point(size=50, filled=True, opacity=1).encode(x=x, y=y("value"), color=colour, tooltip=tooltip),
    ]
    longest = max(map(len, layout.conditions))
    if not (rows["kind"] == KIND).any():
        layers = layers[2:]
    return arranged(layers, rows, layout, HEIGHT, 50 + min(130, int(4.5 * longest)), 34, independent=["x"])
