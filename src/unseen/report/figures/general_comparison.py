"""Comparisons of models in any study: the share of runs that solve a task, score profiles, and who beats whom."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from unseen.randomness import stream
from unseen.report.charts import (
    colour_channel,
    facet_panels,
    metric_tooltip,
    number_tooltips,
    panel_width,
    stack_charts,
)
from unseen.report.data import Source
from unseen.report.figure import Drawing, layout_notes
from unseen.report.layout import ChartLayout, layouts
from unseen.report.theme import load_altair
from unseen.stats import probability_of_improvement, profile, solve_rate

SOLVED = 0.95
PROFILE_SCORES = 101
MAX_SERIES = 12
"""The largest matrix that can be read."""
CELL_WIDTH = 62
DIVERGING = ("#B35806", "#F7F7F7", "#542788")
"""Orange to purple over nearly white, a colour-blind safe diverging scale."""


# -- share of runs that solve the task --------------------------------------------------------------------------------


def draw_solved(source: Source) -> Drawing | None:
    """The share of runs that reach `SOLVED`, with a panel per configuration; None if there is no accuracy."""
    arranged = [layout for layout in layouts(source) if layout.metric.name == "accuracy"]
    if not arranged:
        return None
    (layout,) = arranged
    rows = []
    for (panel, series), runs in layout.rows.groupby(["panel", "series"], sort=False):
        rate = solve_rate(runs["value"], SOLVED, covers="runs")
        solved = round(rate.value * rate.n)
        rows.append(
            {
                "panel": str(panel),
                "series": str(series),
                "share": rate.value,
                "low": rate.interval.low,
                "high": rate.interval.high,
                "solved": solved,
                "runs": rate.n,
                "name": f"{solved} of {rate.n}",
            }
        )
    table = pd.DataFrame(rows)
    splits = " and ".join(layout.splits[:4])
    if len(layout.splits) > 4:
        splits += f" and {len(layout.splits) - 4} more"
    note = f"Solved: an accuracy of at least {100 * SOLVED:.0f} % on {splits}."
    return Drawing(_solved_chart(layout, table), table, (note, *layout_notes(source, arranged)))


def _solved_chart(layout: ChartLayout, table: pd.DataFrame) -> Any:
    alt = load_altair()
    series = list(layout.series)
    y_axis = alt.Axis(labelFontWeight=600, ticks=False, domain=False, grid=False, labelPadding=8)
    y = alt.Y("series:N", title=None, sort=series, scale=alt.Scale(domain=series), axis=y_axis)
    x_axis = alt.Axis(format="%", tickCount=5 if len(layout.panels) == 1 else 3, domain=False)
    colour = colour_channel(series)
    tooltip = [alt.Tooltip("series:N", title=layout.axis)]
    tooltip += [metric_tooltip(name, layout.metric) for name in ("share", "low", "high")]
    tooltip += ["solved:Q", "runs:Q"]

    def x(column: str) -> Any:
        return alt.X(f"{column}:Q", title="runs that solve it", scale=alt.Scale(domain=[0, 1]), axis=x_axis)

    base = alt.Chart()
    layers = [
        base.mark_rule(strokeWidth=3, strokeCap="round", opacity=0.5).encode(
            x=x("low"), x2="high:Q", y=y, color=colour
        ),
        base.mark_point(size=90, filled=True, opacity=1).encode(x=x("share"), y=y, color=colour, tooltip=tooltip),
        base.mark_text(align="left", dx=10, fontSize=11, fontWeight=600).encode(
            x=alt.value(panel_width(layout)), y=y, text="name:N", color=colour
        ),
    ]
    return facet_panels(layers, table, layout, alt.Step(32), 90, 66)


# -- score profiles ---------------------------------------------------------------------------------------------------


def draw_profiles(source: Source) -> Drawing | None:
    """The share of runs at or above each score, all configurations together."""
    arranged = layouts(source, panels=False)
    if not arranged:
        return None
    tables = []
    charts = []
    for layout in arranged:
        table = _profile_table(layout)
        tables.append(table)
        charts.append(_profile_chart(layout, table))
    notes = []
    configurations = max(layout.rows["configuration"].nunique() for layout in arranged)
    if configurations > 1:
        notes.append(f"Runs of all {configurations} configurations together; each is resampled by itself.")
    data = pd.concat(tables, ignore_index=True)
    return Drawing(stack_charts(charts), data, (*notes, *layout_notes(source, arranged)))


def _profile_table(layout: ChartLayout) -> pd.DataFrame:
    """`score` and the `share` of each series that is at least as good, with the bounds of its band."""
    values = layout.rows["value"]
    lowest = float(values.min())
    highest = float(values.max())
    # `profile` counts values at or above a score, so losses are compared with their signs reversed.
    if layout.metric.rising:
        sign, first, last = 1, np.floor(20 * lowest) / 20, max(1.0, highest)
    else:
        sign, first, last = -1, 0.0, highest
    scores = np.linspace(first, last, PROFILE_SCORES)
    tables = []
    for series, runs in layout.rows.groupby("series", sort=False):
        shares = profile(
            sign * runs["value"].to_numpy(),
            sign * scores,
            strata=runs["configuration"].tolist(),
            generator=stream("interval", "profile").block(),
            covers="runs",
            resamples=layout.resamples,
        )
        columns = {
            "series": series,
            "panel": "",
            "score": scores,
            "share": [share.value for share in shares],
            "low": [share.interval.low for share in shares],
            "high": [share.interval.high for share in shares],
            "runs": len(runs),
            "metric": layout.metric.name,
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def _profile_chart(layout: ChartLayout, table: pd.DataFrame) -> Any:
    alt = load_altair()
    metric = layout.metric
    x = alt.X(
        "score:Q",
        title=metric.title,
        scale=alt.Scale(nice=False, zero=False),
        axis=alt.Axis(format=metric.format, grid=False, domain=False, tickCount=6),
    )
    colour = colour_channel(list(layout.series), "circle")
    y_title = "runs at or above" if metric.rising else "runs at or below"
    y_axis = alt.Axis(format="%", tickCount=5, domain=False, ticks=False)

    def y(column: str) -> Any:
        return alt.Y(f"{column}:Q", title=y_title, scale=alt.Scale(domain=[0, 1]), axis=y_axis)

    tooltip = [
        alt.Tooltip("series:N", title=layout.axis),
        metric_tooltip("score", metric),
        *number_tooltips(".1%", "share", "low", "high"),
        "runs:Q",
    ]
    base = alt.Chart()
    layers = [
        base.mark_area(opacity=0.14, interpolate="step-before").encode(x=x, y=y("low"), y2="high:Q", color=colour),
        base.mark_line(strokeWidth=2, interpolate="step-before").encode(
            x=x, y=y("share"), color=colour, tooltip=tooltip
        ),
    ]
    return facet_panels(layers, table, layout, 240)


# -- probability of improvement ---------------------------------------------------------------------------------------


def draw_improvement(source: Source) -> Drawing | None:
    """A matrix of series against series; None if no two share a configuration and a seed."""
    compared = []
    tables = []
    charts = []
    notes: dict[str, None] = {}
    for layout in layouts(source, panels=False):
        table = _improvement_table(layout)
        if table.empty:
            continue
        compared.append(layout)
        tables.append(table)
        charts.append(_improvement_chart(layout, table))
        if len(layout.series) > MAX_SERIES:
            notes[f"The first {MAX_SERIES} of {len(layout.series)} are compared."] = None
    if not compared:
        return None
    data = pd.concat(tables, ignore_index=True)
    return Drawing(stack_charts(charts), data, (*notes, *layout_notes(source, compared)))


def _improvement_table(layout: ChartLayout) -> pd.DataFrame:
    """The `probability` that a run of `better` beats one of `worse`, in both directions.

    Only configurations and seeds that both series have are compared.
    """
    sign = 1 if layout.metric.rising else -1
    scores: dict[Any, dict[tuple[int, tuple[int, int]], float]] = {}
    for series, rows in layout.rows.groupby("series", sort=False):
        repeats = zip(rows["instance"], rows["seed"], strict=True)
        keys = zip(rows["configuration"], repeats, strict=True)
        scores[series] = dict(zip(keys, (sign * rows["value"]).tolist(), strict=True))
    rows_of_table = []
    for first, second in combinations(layout.series[:MAX_SERIES], 2):
        shared = scores[first].keys() & scores[second].keys()
        if not shared:
            continue
        estimate = probability_of_improvement(
            {key: scores[first][key] for key in shared},
            {key: scores[second][key] for key in shared},
            generator=stream("interval", "improvement").block(),
            covers="runs",
            resamples=layout.resamples,
        )
        low = estimate.interval.low
        high = estimate.interval.high
        counts = [len(shared), len({configuration for configuration, _ in shared})]
        rows_of_table.append([first, second, estimate.value, low, high, *counts])
        # The other direction follows: ties count one half in both.
        rows_of_table.append([second, first, 1 - estimate.value, 1 - high, 1 - low, *counts])
    columns = ["better", "worse", "probability", "low", "high", "runs", "configurations"]
    return pd.DataFrame(rows_of_table, columns=columns).assign(metric=layout.metric.name)


def _improvement_chart(layout: ChartLayout, table: pd.DataFrame) -> Any:
    alt = load_altair()
    labels = [label for label in layout.series if label in set(table["better"])]
    # Labels that are wider than a cell are slanted.
    angle = 0 if max(map(len, labels)) * 7 < CELL_WIDTH else -35
    x = alt.X(
        "worse:N",
        sort=labels,
        title=f"… is better than one of these ({layout.metric.short_title})",
        axis=alt.Axis(orient="top", labelAngle=angle, ticks=False, domain=False, grid=False, titlePadding=10),
    )
    y_axis = alt.Axis(ticks=False, domain=False, grid=False, titlePadding=10)
    y = alt.Y("better:N", sort=labels, title="a run of …", axis=y_axis)
    colour = alt.Color("probability:Q", scale=alt.Scale(domain=[0, 0.5, 1], range=list(DIVERGING)), legend=None)
    tooltip = ["better:N", "worse:N", *number_tooltips(".3f", "probability", "low", "high")]
    tooltip += ["runs:Q", "configurations:Q"]
    base = alt.Chart(table)
    squares = base.mark_rect(cornerRadius=3).encode(x=x, y=y, color=colour, tooltip=tooltip)
    # The middle of this scale is bright and its ends are dark, on light and dark pages alike.
    ink = alt.condition("abs(datum.probability - 0.5) > 0.33", alt.value("#FFFFFF"), alt.value("#22262E"))
    numbers = base.mark_text(fontSize=13, fontWeight=600).encode(
        x=x, y=y, text=alt.Text("probability:Q", format=".2f"), color=ink
    )
    return alt.layer(squares, numbers).properties(width=alt.Step(CELL_WIDTH), height=alt.Step(40))
