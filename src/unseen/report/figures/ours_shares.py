"""Shares of runs: how many solve a place, and how many reach each score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from unseen.randomness import stream
from unseen.report.figure import Drawing
from unseen.report.figures.notes import layout_notes
from unseen.report.layout import Layout, layouts
from unseen.report.panels import arranged, number, stacked, width
from unseen.report.source import Source
from unseen.report.theme import colour_scale, load_altair
from unseen.stats import profile, solve_rate

SOLVED = 0.95
STEPS, HEIGHT = 101, 240


def draw_solved(source: Source) -> Drawing | None:
    """The share of runs that reach `SOLVED`, a panel per place; None where no target can be right or wrong."""
    found = [one for one in layouts(source) if one.metric.name == "accuracy"]
    if not found:
        return None
    (layout,) = found
    rows = pd.DataFrame(
        [
            _solved(str(panel), str(series), runs["value"])
            for (panel, series), runs in layout.rows.groupby(["panel", "series"], sort=False)
        ]
    )
    told = f"Solved: an accuracy of at least {SOLVED:.0%} on {' and '.join(layout.conditions[:4])}".replace("%", " %")
    more = f" and {len(layout.conditions) - 4} more" * (len(layout.conditions) > 4)
    return Drawing(_solved_chart(layout, rows), rows, (f"{told}{more}.", *layout_notes(source, found)))


def _solved(panel: str, series: str, values: pd.Series) -> dict[str, Any]:
    rate = solve_rate(values, SOLVED, covers="runs")
    solved = round(rate.value * rate.n)
    return {
        "panel": panel,
        "series": series,
        "share": rate.value,
        "low": rate.interval.low,
        "high": rate.interval.high,
        "solved": solved,
        "runs": rate.n,
        "name": f"{solved} of {rate.n}",
    }


def _solved_chart(layout: Layout, rows: pd.DataFrame) -> Any:
    alt, labels, single = load_altair(), list(layout.series), len(layout.panels) == 1
    y = alt.Y(
        "series:N",
        title=None,
        sort=labels,
        scale=alt.Scale(domain=labels),
        axis=alt.Axis(labelFontWeight=600, ticks=False, domain=False, grid=False, labelPadding=8),
    )
    colour = alt.Color("series:N", scale=colour_scale(labels), legend=None)
    tooltip = [
        alt.Tooltip("series:N", title=layout.axis),
        *(number(name, layout.metric) for name in ("share", "low", "high")),
        "solved:Q",
        "runs:Q",
    ]

    def x(column: str) -> Any:
        return alt.X(
            f"{column}:Q",
            title="runs that solve it",
            scale=alt.Scale(domain=[0, 1]),
            axis=alt.Axis(format="%", tickCount=5 if single else 3, domain=False),
        )

    base = alt.Chart()
    layers = [
        base.mark_rule(strokeWidth=3, strokeCap="round", opacity=0.5).encode(
            x=x("low"), x2="high:Q", y=y, color=colour
        ),
        base.mark_point(size=90, filled=True, opacity=1).encode(x=x("share"), y=y, color=colour, tooltip=tooltip),
        base.mark_text(align="left", dx=10, fontSize=11, fontWeight=600).encode(
            x=alt.value(width(layout)), y=y, text="name:N", color=colour
        ),
    ]
    return arranged(layers, rows, layout, alt.Step(32), 90, 66)


def draw_profiles(source: Source) -> Drawing | None:
    """The share of runs at or above each score, all places together."""
    found = layouts(source, panels=False)
    if not found:
        return None
    tables = [_profiles(one) for one in found]
    charts = [_profile_chart(one, rows) for one, rows in zip(found, tables, strict=True)]
    places = max(one.rows["place"].nunique() for one in found)
    more = [f"Runs of all {places} places together; each place is resampled by itself."] if places > 1 else []
    return Drawing(stacked(charts), pd.concat(tables, ignore_index=True), (*more, *layout_notes(source, found)))


def _profiles(layout: Layout) -> pd.DataFrame:
    """`score` and the `share` of each series that is at least as good, with the ends of its band."""
    values, sign = layout.rows["value"], 1 if layout.metric.rising else -1
    lowest, highest = float(values.min()), float(values.max())
    begin, end = (np.floor(20 * lowest) / 20, 1.0) if layout.metric.rising else (0.0, highest)
    scores = np.linspace(begin, max(end, highest), STEPS)
    found = []
    for series, runs in layout.rows.groupby("series", sort=False):
        reached = profile(
            sign * runs["value"].to_numpy(),
            sign * scores,
            strata=runs["place"].tolist(),
            generator=stream("interval", "profile").block(),
            covers="runs",
            resamples=layout.resamples,
        )
        found.append(
            pd.DataFrame(
                {
                    "series": series,
                    "panel": "",
                    "score": scores,
                    "share": [one.value for one in reached],
                    "low": [one.interval.low for one in reached],
                    "high": [one.interval.high for one in reached],
                    "runs": len(runs),
                    "metric": layout.metric.name,
                }
            )
        )
    return pd.concat(found, ignore_index=True)


def _profile_chart(layout: Layout, rows: pd.DataFrame) -> Any:
    alt, labels = load_altair(), list(layout.series)
    x = alt.X(
        "score:Q",
        title=layout.metric.title,
        scale=alt.Scale(nice=False, zero=False),
        axis=alt.Axis(format=layout.metric.format, grid=False, domain=False, tickCount=6),
    )
    colour = alt.Color(
        "series:N",
        scale=colour_scale(labels),
        legend=alt.Legend(title=None, orient="top", symbolType="circle", symbolOpacity=1),
    )
    better = "at or above" if layout.metric.rising else "at or below"

    def y(column: str) -> Any:
        return alt.Y(
            f"{column}:Q",
            title=f"runs {better}",
            scale=alt.Scale(domain=[0, 1]),
            axis=alt.Axis(format="%", tickCount=5, domain=False, ticks=False),
        )

    base = alt.Chart()
    layers = [
        base.mark_area(opacity=0.14, interpolate="step-before").encode(x=x, y=y("low"), y2="high:Q", color=colour),
        base.mark_line(strokeWidth=2, interpolate="step-before").encode(
            x=x,
            y=y("share"),
            color=colour,
            tooltip=[
                alt.Tooltip("series:N", title=layout.axis),
                number("score", layout.metric),
                alt.Tooltip("share:Q", format=".1%"),
                alt.Tooltip("low:Q", format=".1%"),
                alt.Tooltip("high:Q", format=".1%"),
                "runs:Q",
            ],
        ),
    ]
    return arranged(layers, rows, layout, HEIGHT)
