"""The modularity paper's figure 7: how fast families learn, averaged over all that was run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from unseen.metrics.votes import SCORES
from unseen.randomness import Floats
from unseen.report import theme
from unseen.report.figure import Drawing
from unseen.report.figures.rules_runs import FAMILIES, Runs, read
from unseen.report.means import intervals
from unseen.report.source import Source
from unseen.studies.claims.evidence import ENDED

POINTS, RESAMPLES = 60, 500
"""Steps that are drawn at most; resamples of whole curves, enough for a band."""
PANELS = {
    "classification": "Classification: error %",
    "regression": "Regression: loss",
    "": "Both averaged, as in the paper",
}

_THOUSANDS = "datum.value < 1000 ? format(datum.value, '~g') : format(datum.value / 1000, '~g') + ' k'"


def curves(source: Source) -> Drawing | None:
    """A panel for each setting and one for both together; a line per family with its 95 % band."""
    study = read(source)
    if study is None:
        return None
    runs = study.runs[study.runs["status"].isin(ENDED)].drop_duplicates("cell")
    wide = _logged(study, runs)
    if wide.empty:
        return None
    runs = runs.set_index("cell").loc[wide.index].assign(family=lambda one: one["gating"].map(theme.title_of))
    parts = []
    for setting, title in PANELS.items():
        if setting == "" and runs["setting"].nunique() < 2:
            continue
        for family in FAMILIES:
            own = runs[(runs["family"] == family) & (runs["setting"].eq(setting) | (setting == ""))]
            if len(own):
                parts.append(_band(wide.loc[own.index], own).assign(column=title, family=family))
    frame = pd.concat(parts, ignore_index=True)
    return Drawing(_chart(frame), frame, study.notes(runs.reset_index(), mark="Hollow ends: "))


def _logged(study: Runs, runs: pd.DataFrame) -> pd.DataFrame:
    """Performance in distribution, a row per run and a column per step: what was logged last by then, so that runs that
    are trained for fewer steps keep their last value."""
    points = study.source.curves()
    if points.empty or runs.empty:
        return pd.DataFrame()
    points = points[(points["condition"] == "iid") & points["cell"].isin(runs["cell"])]
    setting = points["cell"].map(runs.set_index("cell")["setting"])
    points = points[points["metric"] == setting.map({name: metric for name, (metric, _) in SCORES.items()})]
    points = points.drop_duplicates(["cell", "step"], keep="last")
    wide = points.pivot(index="cell", columns="step", values="value").sort_index(axis=1).ffill(axis=1).bfill(axis=1)
    steps = wide.columns[np.unique(np.linspace(0, len(wide.columns) - 1, POINTS).round().astype(int))]
    wide = wide[steps]
    wrong = runs.set_index("cell")["setting"].loc[wide.index].eq("classification").to_numpy()
    wide[wrong] = 100 * (1 - wide[wrong])
    return wide


def _band(values: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """The mean curve and its interval, which counts the choice of tasks as chance: whole curves are drawn again."""
    runs = runs.sort_values("task_seed", kind="stable")
    each: Floats = values.loc[runs.index].to_numpy(float)
    sizes = runs["task_seed"].value_counts(sort=False).sort_index().tolist()
    low, high = intervals(each.T, tuple(sizes), RESAMPLES)
    return pd.DataFrame(
        {
            "step": values.columns.astype(int),
            "value": each.mean(axis=0),
            "low": low,
            "high": high,
            "runs": len(runs),
            "still_learning": int((runs["still_learning"] == 1).sum()),
        }
    )


def _chart(frame: pd.DataFrame) -> Any:
    alt = theme.load_altair()
    families = [family for family in FAMILIES if (frame["family"] == family).any()]
    panels = [title for title in PANELS.values() if (frame["column"] == title).any()]
    scale = theme.colour_scale(families)
    last = int(frame["step"].max())
    x = alt.X(
        "step:Q",
        title="step",
        axis=alt.Axis(labelExpr=_THOUSANDS, tickCount=5, grid=False),
        scale=alt.Scale(domain=[0, last], nice=False),
    )
    y = alt.Y("value:Q", title=None, scale=alt.Scale(type="sqrt", zero=True), axis=alt.Axis(tickCount=5))
    colour = alt.Color(
        "family:N",
        scale=scale,
        sort=families,
        title=None,
        legend=alt.Legend(orient="top", symbolType="stroke", symbolStrokeWidth=3, symbolOpacity=1),
    )
    hints = [
        alt.Tooltip("family:N", title="model"),
        alt.Tooltip("step:Q", title="step", format=",d"),
        alt.Tooltip("value:Q", title="mean", format=".4g"),
        alt.Tooltip("runs:Q", title="runs"),
        alt.Tooltip("still_learning:Q", title="still learning"),
    ]
    base = alt.Chart()
    layers = [
        base.transform_filter("isValid(datum.low)")
        .mark_area(opacity=0.07)
        .encode(x=x, y=alt.Y("low:Q", title=None), y2="high:Q", color=colour),
        base.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour),
        base.mark_point(size=120, opacity=0).encode(x=x, y=y, tooltip=hints),  # something to point at
        base.transform_filter(f"datum.step === {last} && datum.still_learning > 0")
        .mark_point(size=46, strokeWidth=1.8, fillOpacity=0)
        .encode(x=x, y=y, color=colour, tooltip=hints),
    ]
    return (
        alt.layer(*layers, data=frame)
        .properties(width=270, height=200)
        .facet(column=alt.Column("column:N", sort=panels, title=None), spacing=22)
        .resolve_scale(y="independent")
    )
