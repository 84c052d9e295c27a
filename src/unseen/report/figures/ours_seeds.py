"""Every seed as a dot, the mean with its interval below, and what can be had without doing the task drawn in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from unseen.report.figure import Drawing
from unseen.report.figures.notes import HOLLOW, layout_notes
from unseen.report.layout import Layout, layouts
from unseen.report.panels import ENDED, STILL, arranged, hollow, number, only, said, stacked, width
from unseen.report.reference_lines import KIND, reference_lines, reference_rows, sides
from unseen.report.source import Source
from unseen.report.theme import colour_scale, load_altair

DOTS = 2_000
"""More than these are a smear: then means and intervals alone are drawn."""


def draw(source: Source) -> Drawing | None:
    """Runs by series, a panel per place."""
    found = layouts(source)
    if not found:
        return None
    tables = [table(source, one) for one in found]
    charts = [chart(one, rows) for one, rows in zip(found, tables, strict=True)]
    smeared = sum(len(one.rows) > DOTS for one in found)
    more = [f"More than {DOTS} runs: means and intervals, without the single runs."] if smeared else []
    return Drawing(
        stacked(charts),
        pd.concat(tables, ignore_index=True),
        (*more, *layout_notes(source, found, "" if smeared else HOLLOW)),
    )


def table(source: Source, layout: Layout) -> pd.DataFrame:
    """What is drawn, a row per mark: `kind` run (a dot), mean (with its interval) or reference (a dashed line)."""
    rows = layout.rows
    mean = layout.means("panel", "series").rename(columns={"mean": "value"}).assign(kind="mean")
    parts = [mean.assign(name=[said(value, layout.metric) for value in mean["value"]])]
    if len(rows) <= DOTS:
        group = rows.groupby(["panel", "series"], sort=False)
        count = group["seed"].transform("count")
        parts.insert(
            0,
            rows[["panel", "series", "condition", "seed", "value", "cell"]].assign(
                kind="run",
                state=np.where(rows["still_learning"], STILL, ENDED),
                jitter=(group.cumcount() - (count - 1) / 2) / count,
            ),
        )  # each its own place, so that equal scores show
    # In a single panel there is room for more.
    lines = reference_rows(source, layout, shortcuts=3 if len(layout.panels) == 1 else 1)
    drawn = pd.concat([*parts, lines] if len(lines) else parts, ignore_index=True)
    return drawn.assign(metric=layout.metric.name, side=sides(drawn["value"], domain(drawn, layout)))


def domain(drawn: pd.DataFrame, layout: Layout) -> tuple[float, float]:
    """From a little below all there is to a perfect score; of a loss from 0 to a little above."""
    lowest, highest = float(drawn["value"].min()), float(drawn["value"].max())
    if layout.metric.rising:
        return max(0.0, lowest - 0.05 * (1 - lowest) - 0.01), max(1.0, highest)
    return 0.0, 1.05 * highest or 1.0


def chart(layout: Layout, drawn: pd.DataFrame) -> Any:
    """The dots, bars and lines of a table."""
    alt, single = load_altair(), len(layout.panels) == 1
    dotted = (drawn["kind"] == "run").any()
    step, below, thick = (78, 16, 4) if single else (46, 11, 3)
    step, below, size = (step, below, below) if dotted else (30, 0, 12)
    between, labels = domain(drawn, layout), list(layout.series)
    scale = alt.Scale(domain=list(between), nice=False, zero=False)
    axis = alt.Axis(format=layout.metric.format, grid=False, tickCount=6 if single else 3, domain=False)
    y = alt.Y(
        "series:N",
        title=None,
        sort=labels,
        scale=alt.Scale(domain=labels),
        axis=alt.Axis(
            labelFontSize=14 if single else 12,
            labelFontWeight=600,
            ticks=False,
            domain=False,
            grid=False,
            labelPadding=12 if single else 8,
        ),
    )
    colour = alt.Color("series:N", scale=colour_scale(labels), legend=None)
    series = alt.Tooltip("series:N", title=layout.axis)

    def x(column: str) -> Any:
        return alt.X(f"{column}:Q", title=layout.metric.title, scale=scale, axis=axis)

    dots = (
        only(kind="run")
        .mark_point(size=110 if single else 60, strokeWidth=1.6, opacity=0.85)
        .encode(
            x=x("value"),
            y=y,
            yOffset=alt.YOffset("jitter:Q", scale=alt.Scale(domain=[-0.9, 1.9])),
            color=colour,
            fill=alt.Fill("series:N", scale=colour_scale(labels), legend=None),
            fillOpacity=hollow(),
            tooltip=[series, "condition:N", "seed:Q", number("value", layout.metric), "state:N", "cell:N"],
        )
    )
    base = only(kind="mean")
    bars = base.mark_rule(strokeWidth=thick, strokeCap="round", yOffset=below).encode(
        x=x("low"), x2="high:Q", y=y, color=colour
    )
    ticks = base.mark_tick(opacity=1, thickness=thick, size=size, yOffset=below).encode(
        x=x("value"),
        y=y,
        color=colour,
        tooltip=[
            series,
            number("value", layout.metric, "mean"),
            number("low", layout.metric),
            number("high", layout.metric),
            "runs:Q",
            alt.Tooltip("still_learning:Q", title="still learning"),
        ],
    )
    # Beside its bar, or where panels are narrow in a column of its own, so that no line runs through a number.
    words = base.mark_text(align="left", dx=9, yOffset=below, fontSize=13 if single else 11, fontWeight=600).encode(
        x=x("end") if single else alt.value(width(layout)), y=y, text="name:N", color=colour
    )
    shown = drawn.assign(end=drawn["high"].fillna(drawn["value"]))
    lines = reference_lines(alt, layout, x("value")) if (drawn["kind"] == KIND).any() else []
    layers = [*lines, *([dots] if dotted else []), bars, ticks, words]
    return arranged(layers, shown, layout, alt.Step(step), 104 if lines else 74, 62, 14 if lines else 0)
