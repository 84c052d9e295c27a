"""Learning curves: the mean of each series over training, the band its runs lie in, and where each run ended."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unseen.report.figure import Drawing
from unseen.report.figures.notes import HOLLOW, layout_notes
from unseen.report.layout import CONDITION, METRICS, Layout, batch_of, lay_out
from unseen.report.panels import ENDED, STILL, arranged, hollow, number, only, stacked
from unseen.report.reference_lines import KIND, bounds, reference_rows
from unseen.report.source import Source
from unseen.report.theme import colour_scale, load_altair

POINTS, ENDS, HEIGHT = 200, 2_000, 170
MANY, MIDDLE = 20, (0.025, 0.975)
"""Up to so many runs a band holds all of them, beyond that the middle 95 %."""


def draw(source: Source) -> Drawing | None:
    """Curves on the condition on which models are selected, a panel per place; those of unfinished runs as far as
    they are."""
    found = [(layout, _table(source, layout, points)) for layout, points in _judged(source)]
    if not found:
        return None
    layouts = [layout for layout, _ in found]
    said = [f"Score on {' and '.join(dict.fromkeys(name for one in layouts for name in one.conditions))}."]
    if (source.runs["status"] == "stopped").any():
        said.append("A run that stopped early keeps its last value in the mean.")
    mark = HOLLOW if all(len(one.rows) <= ENDS for one in layouts) else ""
    return Drawing(
        stacked([_chart(*one) for one in found]),
        pd.concat([rows for _, rows in found], ignore_index=True),
        (*said, *layout_notes(source, layouts, mark)),
    )


def _judged(source: Source) -> list[tuple[Layout, pd.DataFrame]]:
    """The points of each run on what it was selected by: accuracy, or the loss where the target is real."""
    points = source.curves()
    points = points[(points[CONDITION] != "train") & points["value"].notna()]
    found = []
    for metric in METRICS:
        own = points[points["metric"] == metric.name]
        if len(own):
            points = points[~points["cell"].isin(own["cell"].unique())]
            ends = own.drop_duplicates("cell", keep="last")  # the points of a cell are in the order of their steps
            known = source.runs.drop_duplicates("cell").set_index("cell")["still_learning"]
            layout = lay_out(
                source,
                metric,
                ends.assign(still_learning=ends["cell"].map(known)),
                tuple(ends[CONDITION].unique()),
                every_condition=True,
            )
            found.append((layout, own))
    return found


def _table(source: Source, layout: Layout, points: pd.DataFrame) -> pd.DataFrame:
    """`kind` mean: a step of a series with its band; `kind` run: where a run ended; `kind` reference: a line."""
    place = layout.rows.set_index("cell")[["panel", "series"]]
    stopped = set(source.runs["cell"][source.runs["status"] == "stopped"])
    batches = source.runs.drop_duplicates("cell").set_index("cell")["recipe_options"].map(batch_of)
    numbers, cells = pd.factorize(points["cell"])  # numbers are compared faster than ids
    held, ended = batches[cells].to_numpy(), pd.Index(cells).isin(list(stopped))
    group = place.groupby(["panel", "series"], sort=False).ngroup()[cells].to_numpy()
    placed = pd.DataFrame({"run": numbers, "step": points["step"].to_numpy(), "value": points["value"].to_numpy()})
    parts = []
    for _, one in placed.groupby(group[numbers], sort=False):
        runs = one["run"].unique()
        panel, series = place.loc[cells[runs[0]]]
        sizes = np.unique(held[runs])
        parts.append(
            _mean(one, ended).assign(panel=panel, series=series, batch=sizes[0] if len(sizes) == 1 else np.nan)
        )
    mean = pd.concat(parts, ignore_index=True)
    mean = mean.assign(kind="mean", samples=mean["step"] * mean.pop("batch"))
    found = [mean]
    if len(layout.rows) <= ENDS:
        last = points.groupby("cell", sort=False)["step"].max()
        ends = layout.rows[["panel", "series", "seed", "value", "cell"]]
        found.append(
            ends.assign(
                kind="run", step=ends["cell"].map(last), state=np.where(layout.rows["still_learning"], STILL, ENDED)
            )
        )
    lines = bounds(reference_rows(source, layout))
    found += [lines] if len(lines) else []
    return pd.concat(found, ignore_index=True).assign(metric=layout.metric.name)


def _mean(points: pd.DataFrame, stopped: NDArray[np.bool_]) -> pd.DataFrame:
    """`step`, `value`, `low`, `high` and `runs` at up to `POINTS` steps, of runs that may be validated at different
    ones: between two validations a run has the value of the first."""
    wide = points.pivot(index="run", columns="step", values="value")
    last = wide.notna().to_numpy()[:, ::-1].argmax(axis=1)
    filled = wide.ffill(axis=1).to_numpy(copy=True)
    beyond = np.arange(wide.shape[1]) >= wide.shape[1] - last[:, None]
    filled[beyond & ~stopped[wide.index][:, None]] = np.nan
    kept = np.unique(np.linspace(0, wide.shape[1] - 1, min(POINTS, wide.shape[1])).round().astype(int))
    values = filled[:, kept]
    ends = (0.0, 1.0) if len(values) <= MANY else MIDDLE
    low, high = np.nanquantile(values, ends, axis=0)
    return pd.DataFrame(
        {
            "step": wide.columns.to_numpy()[kept],
            "value": np.nanmean(values, axis=0),
            "low": low,
            "high": high,
            "runs": np.isfinite(values).sum(axis=0),
        }
    )


def _chart(layout: Layout, rows: pd.DataFrame) -> Any:
    alt, labels, metric = load_altair(), list(layout.series), layout.metric
    written = "~s" if rows["step"].max() >= 10_000 else ",d"
    x = alt.X(
        "step:Q",
        title="steps",
        scale=alt.Scale(nice=False),
        axis=alt.Axis(format=written, grid=False, tickCount=4, domain=False),
    )
    colour = alt.Color(
        "series:N",
        scale=colour_scale(labels),
        legend=alt.Legend(title=None, orient="top", symbolType="circle", symbolOpacity=1),
    )
    series = alt.Tooltip("series:N", title=layout.axis)

    def y(column: str) -> Any:
        return alt.Y(
            f"{column}:Q",
            title=metric.title,
            scale=alt.Scale(zero=not metric.rising, nice=True),
            axis=alt.Axis(format=metric.format, tickCount=5, domain=False, ticks=False),
        )

    base, ends, lines = only(kind="mean"), only(kind="run"), only(kind=KIND)
    layers = [
        base.mark_area(opacity=0.16).encode(x=x, y=y("low"), y2="high:Q", color=colour),
        base.mark_line(strokeWidth=2).encode(
            x=x,
            y=y("value"),
            color=colour,
            tooltip=[
                series,
                "step:Q",
                alt.Tooltip("samples:Q", format=","),
                number("value", metric, "mean"),
                number("low", metric),
                number("high", metric),
                "runs:Q",
            ],
        ),
    ]
    if (rows["kind"] == KIND).any():
        layers.insert(
            0,
            lines.mark_rule(strokeDash=[5, 4], strokeWidth=1.2).encode(
                y=y("value"), tooltip=["name:N", number("value", metric)]
            ),
        )
    if (rows["kind"] == "run").any():
        layers.append(
            ends.mark_point(size=34, strokeWidth=1.4, opacity=0.9).encode(
                x=x,
                y=y("value"),
                color=colour,
                fill=alt.Fill("series:N", scale=colour_scale(labels), legend=None),
                fillOpacity=hollow(),
                tooltip=[series, "seed:Q", "step:Q", number("value", metric), "state:N", "cell:N"],
            )
        )
    return arranged(layers, rows, layout, HEIGHT, 78, 34, independent=["x"])
