"""Line plots: learning curves against samples seen, and scores against a number that was varied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from unseen.report.charts import MAX_DOTS, NOT_LEARNED, colour_channel, mean_tooltips
from unseen.report.data import means
from unseen.report.dot_plot import ACCURACY, ValueAxis, panel_title, reference_layers, run_dots
from unseen.report.theme import load_altair

HEIGHT = 190


@dataclass(frozen=True)
class NumberPanel:
    """A panel of values against a number.

    `runs` has a line per run and `number`, with `series`, `seed`, `value` and `state`. `references` are the values of
    dashed lines by name. `boundary` is the number from which on values are new to the model.
    """

    title: str
    runs: pd.DataFrame
    references: Mapping[str, float] = field(default_factory=dict)
    boundary: float | None = None

    @cached_property
    def averages(self) -> pd.DataFrame:
        """Means of the runs that have learned at each number, with intervals."""
        return means(self.runs[self.runs["state"] != NOT_LEARNED], ["series", "number"])


def number_chart(
    panel: NumberPanel, series: Sequence[str], number_title: str, axis: ValueAxis = ACCURACY, *, width: int = 240
) -> Any:
    """Every run as a dot, and means with intervals, joined by lines."""
    alt = load_altair()
    averages = panel.averages
    numbers = sorted(set(panel.runs["number"]))
    extent = max(numbers) - min(numbers)
    margin = 0.06 * extent or 1.0
    colour = legend_channel(series)
    x_scale = alt.Scale(domain=[min(numbers) - margin, max(numbers) + margin], nice=False)
    x_axis = alt.Axis(values=numbers, grid=False, format="~r", labelOverlap=False)
    x = alt.X("number:Q", title=number_title, scale=x_scale, axis=x_axis)

    def y(column: str) -> Any:
        ticks = alt.Axis(title=axis.title, format=axis.tick_format, tickCount=5, domain=False)
        return alt.Y(f"{column}:Q", scale=axis.scale(), axis=ticks)

    tooltip = [
        alt.Tooltip("series:N", title=" "),
        alt.Tooltip("number:Q", title=number_title),
        *mean_tooltips(axis.format),
    ]
    layers = reference_layers(panel.references, axis, width, vertical=False)
    if panel.boundary is not None:
        boundary = pd.DataFrame({"number": [panel.boundary]})
        layers.append(alt.Chart(boundary).mark_rule(strokeWidth=1).encode(x=x))
        layers.append(
            alt.Chart(boundary.assign(text="new →"))
            .mark_text(fontSize=10, align="left", baseline="bottom", dx=3)
            .encode(x=x, y=alt.YValue(HEIGHT - 3), text=alt.Text("text:N"))
        )
    layers += [
        alt.Chart(averages).mark_line(strokeWidth=2).encode(x=x, y=y("mean"), color=colour),
        alt.Chart(averages[averages["low"].notna()])
        .mark_rule(strokeWidth=3, opacity=0.45, clip=True)
        .encode(x=x, y=y("low"), y2=alt.Y2("high:Q"), color=colour, tooltip=tooltip),
        alt.Chart(averages)
        .mark_tick(thickness=2.5, size=11, orient="horizontal")
        .encode(x=x, y=y("mean"), color=colour, tooltip=tooltip),
    ]
    if len(panel.runs) <= MAX_DOTS:
        # Dots of each series are a little beside their number, so that they do not hide each other.
        shifts = {label: position - (len(series) - 1) / 2 for position, label in enumerate(series)}
        shift = panel.runs["series"].map(shifts).astype(float) * (0.02 * extent) / max(1, len(series))
        dots = run_dots(panel.runs.assign(beside=panel.runs["number"] + shift), series, axis.format)
        x_beside = alt.X("beside:Q", scale=x_scale, title=number_title)
        layers.append(dots.encode(x=x_beside, y=y("value"), color=colour))
    return alt.layer(*layers, panel_title(panel.title, 1), width=width, height=HEIGHT)


def number_table(panel: NumberPanel, series: str, number: str) -> pd.DataFrame:
    """The data of a panel: a line per run, and one per mean with its number of `runs`."""
    runs = panel.runs[["series", "number", "seed", "value", "state"]].assign(what="run")
    averages = panel.averages.rename(columns={"mean": "value"}).assign(what="mean")
    table = pd.concat([runs, averages], ignore_index=True)
    return table.rename(columns={"series": series, "number": number}).assign(panel=panel.title)


def curve_chart(
    title: str,
    points: pd.DataFrame,
    series: Sequence[str],
    axis: ValueAxis,
    *,
    log: bool = False,
    references: Mapping[str, float] | None = None,
    width: int = 240,
) -> Any:
    """Learning curves: a faint line per run, and the mean of a series wherever all its runs have a point.

    `points` has `series`, `trial`, `seed`, `samples` and `value`. With `log`, values are on a logarithmic axis and
    means are left out, because they would be dominated by the worst run.
    """
    alt = load_altair()
    colour = legend_channel(series)
    scale = alt.Scale(type="log", nice=False) if log else axis.scale()
    y_axis = alt.Axis(title=axis.title, format="~g" if log else axis.tick_format, tickCount=5, domain=False)
    x = alt.X("samples:Q", title="samples seen", axis=alt.Axis(format="~s", tickCount=5, grid=False))

    def y(column: str) -> Any:
        return alt.Y(f"{column}:Q", scale=scale, axis=y_axis)

    tooltip = [alt.Tooltip("series:N", title=" "), alt.Tooltip("samples:Q", format=",")]
    layers = []
    if not log:
        layers += reference_layers(references or {}, axis, width, vertical=False, side="right")
    layers.append(
        alt.Chart(points)
        .mark_line(strokeWidth=1, opacity=0.6 if log else 0.3)
        .encode(
            x=x,
            y=y("value"),
            color=colour,
            detail=alt.Detail("trial:N"),
            tooltip=[*tooltip, alt.Tooltip("seed:N"), alt.Tooltip("value:Q")],
        )
    )
    if not log:
        mean_tooltip = [*tooltip, alt.Tooltip("mean:Q"), alt.Tooltip("runs:Q")]
        mean_line = alt.Chart(mean_curves(points)).mark_line(strokeWidth=2)
        layers.append(mean_line.encode(x=x, y=y("mean"), color=colour, tooltip=mean_tooltip))
    return alt.layer(*layers, panel_title(title, 1), width=width, height=HEIGHT)


def mean_curves(points: pd.DataFrame) -> pd.DataFrame:
    """The mean of a series at each number of samples at which all its runs have a point, with the number of runs.

    >>> points = pd.DataFrame({"series": "a", "trial": list("xyx"), "samples": [1, 1, 2], "value": [0.0, 1.0, 3.0]})
    >>> mean_curves(points).to_dict("records")
    [{'series': 'a', 'samples': 1, 'mean': 0.5, 'runs': 2}]
    """
    measured = points[points["value"].notna()]
    groups = measured.groupby(["series", "samples"], sort=False)["value"]
    averages = groups.agg(mean="mean", runs="size").reset_index()
    return averages[averages["runs"] == averages["series"].map(measured.groupby("series")["trial"].nunique())]


def legend_channel(series: Sequence[str]) -> Any:
    """The colours of models with a horizontal legend of strokes."""
    columns = min(6, len(series))
    return colour_channel(series, "stroke", direction="horizontal", columns=columns, symbolStrokeWidth=3)
