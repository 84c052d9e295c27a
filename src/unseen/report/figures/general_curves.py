"""Learning curves of any study: the mean of each series, the band that contains its runs, and the end of each run."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unseen.claims.papers import option_column
from unseen.report.baselines import REFERENCE, baseline_rows, best_and_oracle
from unseen.report.charts import (
    ENDED,
    MAX_DOTS,
    NOT_CONVERGED,
    colour_channel,
    facet_panels,
    fill_by_state,
    fill_channel,
    filter_rows,
    metric_tooltip,
    stack_charts,
)
from unseen.report.data import Source
from unseen.report.figure import HOLLOW, Drawing, layout_notes
from unseen.report.layout import METRICS, SPLIT, ChartLayout, arrange
from unseen.report.theme import load_altair

MAX_POINTS = 200
FULL_BAND_RUNS = 20
"""Up to this many runs, a band contains all of them; beyond, the middle 95 %."""


def draw_curves(source: Source) -> Drawing | None:
    """Curves on the validation split, with a panel per configuration; unfinished runs as far as they have come."""
    points = source.curves()
    points = _validation_points(source, points[(points[SPLIT] != "train") & points["value"].notna()])
    not_converged = source.runs.drop_duplicates("trial").set_index("trial")["not_converged"]
    arranged = []
    tables = []
    charts = []
    # Each run is shown by the metric on which it was selected: accuracy, or the loss of a real-valued target.
    for metric in METRICS:
        curves = points[points["metric"] == metric.name]
        if curves.empty:
            continue
        points = points[~points["trial"].isin(curves["trial"].unique())]
        last = curves.drop_duplicates("trial", keep="last")  # points of a trial are in the order of their steps
        last = last.assign(not_converged=last["trial"].map(not_converged))
        layout = arrange(source, metric, last, tuple(last[SPLIT].unique()), every_split=True)
        table = _curves_table(source, layout, curves)
        arranged.append(layout)
        tables.append(table)
        charts.append(_curves_chart(layout, table))
    if not arranged:
        return None
    splits = dict.fromkeys(chain.from_iterable(layout.splits for layout in arranged))
    notes = [f"Score on {' and '.join(splits)}."]
    if (source.runs["status"] == "stopped").any():
        notes.append("A run that stopped early keeps its last value in the mean.")
    mark = HOLLOW if all(len(layout.rows) <= MAX_DOTS for layout in arranged) else ""
    data = pd.concat(tables, ignore_index=True)
    return Drawing(stack_charts(charts), data, (*notes, *layout_notes(source, arranged, mark)))


def _validation_points(source: Source, points: pd.DataFrame) -> pd.DataFrame:
    """The points on the split on which each run was validated; other splits on its curve are for claims."""
    splits = points[["trial", SPLIT]].drop_duplicates()
    if not splits["trial"].duplicated().any():
        return points
    validated = {}
    for trial in splits["trial"].unique():
        task = source.task(trial)
        # A task that this release does not know: the split with the most points.
        validated[trial] = points[SPLIT][points["trial"] == trial].mode()[0] if task is None else task.validation
    return points[points[SPLIT] == points["trial"].map(validated)]


def _curves_table(source: Source, layout: ChartLayout, points: pd.DataFrame) -> pd.DataFrame:
    """`kind` mean: a step of a series with its band; run: the last point of a run; reference: a dashed line."""
    runs = source.runs.drop_duplicates("trial").set_index("trial")
    labels = layout.rows.set_index("trial")[["panel", "series"]]
    # Trials are numbered, because numbers are compared faster than ids.
    numbers, trials = pd.factorize(points["trial"])
    batches = option_column(runs, "recipe.batch")[trials].to_numpy()
    stopped = (runs["status"][trials] == "stopped").to_numpy()
    group = labels.groupby(["panel", "series"], sort=False).ngroup()[trials].to_numpy()
    curves = pd.DataFrame({"run": numbers, "step": points["step"].to_numpy(), "value": points["value"].to_numpy()})
    means = []
    for _, group_curves in curves.groupby(group[numbers], sort=False):
        members = group_curves["run"].unique()
        panel, series = labels.loc[trials[members[0]]]
        sizes = set(batches[members]) - {None}
        mean = _mean_curve(group_curves, stopped).assign(panel=panel, series=series, kind="mean")
        # Samples are known only if all runs of the series have the same batch size.
        means.append(mean.assign(samples=mean["step"] * (sizes.pop() if len(sizes) == 1 else np.nan)))
    tables = [pd.concat(means, ignore_index=True)]
    if len(layout.rows) <= MAX_DOTS:
        last_step = points.groupby("trial", sort=False)["step"].max()
        ends = layout.rows[["panel", "series", "seed", "value", "trial"]]
        state = np.where(layout.rows["not_converged"], NOT_CONVERGED, ENDED)
        tables.append(ends.assign(kind="run", step=ends["trial"].map(last_step), state=state))
    references = best_and_oracle(baseline_rows(source, layout))
    if len(references):
        tables.append(references)
    return pd.concat(tables, ignore_index=True).assign(metric=layout.metric.name)


def _mean_curve(curves: pd.DataFrame, stopped: NDArray[np.bool_]) -> pd.DataFrame:
    """`step`, `value`, `low`, `high` and `runs` at up to `MAX_POINTS` steps.

    Runs may be validated at different steps: between two validations a run keeps the value of the first. After its last
    point a run has no value, unless it was stopped early.
    """
    wide = curves.pivot(index="run", columns="step", values="value")
    filled = wide.ffill(axis=1).to_numpy(copy=True)
    # The number of missing values after the last point: where the reversed row has its first value.
    trailing_gaps = wide.notna().to_numpy()[:, ::-1].argmax(axis=1)
    beyond_end = np.arange(wide.shape[1]) >= wide.shape[1] - trailing_gaps[:, None]
    filled[beyond_end & ~stopped[wide.index][:, None]] = np.nan
    shown = np.unique(np.linspace(0, wide.shape[1] - 1, min(MAX_POINTS, wide.shape[1])).round().astype(int))
    values = filled[:, shown]
    band = (0.0, 1.0) if len(values) <= FULL_BAND_RUNS else (0.025, 0.975)
    low, high = np.nanquantile(values, band, axis=0)
    return pd.DataFrame(
        {
            "step": wide.columns.to_numpy()[shown],
            "value": np.nanmean(values, axis=0),
            "low": low,
            "high": high,
            "runs": np.isfinite(values).sum(axis=0),
        }
    )


def _curves_chart(layout: ChartLayout, table: pd.DataFrame) -> Any:
    alt = load_altair()
    series = list(layout.series)
    metric = layout.metric
    step_format = "~s" if table["step"].max() >= 10_000 else ",d"
    x_axis = alt.Axis(format=step_format, grid=False, tickCount=4, domain=False)
    x = alt.X("step:Q", title="steps", scale=alt.Scale(nice=False), axis=x_axis)
    y_axis = alt.Axis(format=metric.format, tickCount=5, domain=False, ticks=False)
    y_scale = alt.Scale(zero=not metric.rising, nice=True)
    colour = colour_channel(series, "circle")
    series_tooltip = alt.Tooltip("series:N", title=layout.axis)
    value_tooltip = metric_tooltip("value", metric)

    def y(column: str) -> Any:
        return alt.Y(f"{column}:Q", title=metric.title, scale=y_scale, axis=y_axis)

    layers = []
    if (table["kind"] == REFERENCE).any():
        lines = filter_rows(kind=REFERENCE).mark_rule(strokeDash=[5, 4], strokeWidth=1.2)
        layers.append(lines.encode(y=y("value"), tooltip=["name:N", value_tooltip]))
    means = filter_rows(kind="mean")
    tooltip = [
        series_tooltip,
        "step:Q",
        alt.Tooltip("samples:Q", format=","),
        metric_tooltip("value", metric, "mean"),
        metric_tooltip("low", metric),
        metric_tooltip("high", metric),
        "runs:Q",
    ]
    layers += [
        means.mark_area(opacity=0.16).encode(x=x, y=y("low"), y2="high:Q", color=colour),
        means.mark_line(strokeWidth=2).encode(x=x, y=y("value"), color=colour, tooltip=tooltip),
    ]
    if (table["kind"] == "run").any():
        ends = filter_rows(kind="run").mark_point(size=34, strokeWidth=1.4, opacity=0.9)
        layers.append(
            ends.encode(
                x=x,
                y=y("value"),
                color=colour,
                fill=fill_channel(series),
                fillOpacity=fill_by_state(),
                tooltip=[series_tooltip, "seed:Q", "step:Q", value_tooltip, "state:N", "trial:N"],
            )
        )
    return facet_panels(layers, table, layout, 170, 78, 34, independent=["x"])
