"""Figures of associative recall: accuracy against the size of the state that a backbone carries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from unseen.errors import UsageError
from unseen.names import family_of
from unseen.report.charts import ENDED, NOT_CONVERGED, stack_charts
from unseen.report.data import Source, means
from unseen.report.dot_plot import panel_title
from unseen.report.figure import Drawing, Figure, run_notes
from unseen.report.line_plot import HEIGHT, legend_channel
from unseen.report.theme import load_altair

STATE = "state"
"""The column with the numbers of state that a run's model carries."""


def state_sizes(source: Source) -> pd.Series:
    """The numbers of state that the model of each trial carries; missing where this release does not count them."""
    runs = source.runs.drop_duplicates("trial").set_index("trial")
    sizes = [
        _count_state(source, str(trial), row) for trial, row in zip(runs.index, runs.to_dict("records"), strict=True)
    ]
    return pd.Series(sizes, runs.index, dtype="Int64", name=STATE)


def _count_state(source: Source, trial: str, row: dict[Any, Any]) -> int | None:
    from unseen.models import BACKBONES, options
    from unseen.models.backbones.options import BackboneOptions
    from unseen.models.matching import count_state

    task = source.task(trial)
    if task is None or row["model"] not in BACKBONES:
        return None
    values = {}
    for option in type(options(row["model"])).model_fields:
        value = row.get(f"model.{option}")
        if (
            option not in ("name", "matched") and value is not None and value == value
        ):  # options of other models are NaN
            values[option] = value
    try:
        model = options(row["model"], **values)
    except UsageError:
        return None  # stored by another version of the model
    assert isinstance(model, BackboneOptions)
    return count_state(model, task.spec)


def draw_states(source: Source) -> Drawing | None:
    """A panel per split: accuracy against the size of the state, a line per backbone."""
    rows = source.scores(source.selection)
    rows = rows[rows["task"].map(family_of).eq("recall") & rows["value"].notna()] if len(rows) else rows
    if rows.empty:
        return None
    rows = rows.assign(**{STATE: rows["trial"].map(state_sizes(source))})
    rows = rows[rows[STATE].notna()]
    if rows.empty:
        return None
    runs = source.runs.drop_duplicates("trial").set_index("trial")
    series = "backbone" if "backbone" in rows else source.series
    run_state = np.where(rows["trial"].map(runs["not_converged"]).eq(1), NOT_CONVERGED, ENDED)
    rows = rows.assign(series=rows[series].astype(str), state=rows[STATE].astype(int), run_state=run_state)
    labels = list(rows["series"].drop_duplicates())
    charts = []
    tables = []
    for split, of_split in rows.groupby("split", sort=False):
        averages = means(of_split, ["series", STATE])
        charts.append(_draw_panel(str(split), of_split, averages, labels))
        dots = of_split[["series", STATE, "seed", "value"]].assign(what="run")
        averages = averages.rename(columns={"mean": "value"}).assign(what="mean")
        tables.append(pd.concat([dots, averages], ignore_index=True).assign(split=split))
    table = pd.concat(tables, ignore_index=True).rename(columns={"series": series})
    notes = run_notes(source.runs, rows.assign(state=rows["run_state"]))
    return Drawing(stack_charts(charts), table, tuple(notes))


def _draw_panel(title: str, rows: pd.DataFrame, averages: pd.DataFrame, labels: list[str]) -> Any:
    alt = load_altair()
    colour = legend_channel(labels)
    x = alt.X(
        f"{STATE}:Q", title="numbers of state", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s", tickCount=4)
    )

    def y(column: str) -> Any:
        return alt.Y(f"{column}:Q", title="accuracy", scale=alt.Scale(domain=[0, 1]))

    tooltip = ["series:N", f"{STATE}:Q"]
    layers = [
        alt.Chart(averages).mark_line(strokeWidth=2).encode(x=x, y=y("mean"), color=colour),
        alt.Chart(averages[averages["low"].notna()])
        .mark_rule(strokeWidth=3, opacity=0.45)
        .encode(x=x, y=y("low"), y2=alt.Y2("high:Q"), color=colour, tooltip=[*tooltip, "mean:Q", "low:Q", "high:Q"]),
        alt.Chart(rows[["series", STATE, "seed", "value"]])
        .mark_circle(size=26, opacity=0.7)
        .encode(x=x, y=y("value"), color=colour, tooltip=[*tooltip, "seed:N", "value:Q"]),
    ]
    return alt.layer(*layers, panel_title(title, 1), width=240, height=HEIGHT)


FIGURES = (
    Figure(
        "recall/states",
        "Recall by size of state",
        "ours",
        "Accuracy against the numbers of state that a backbone carries from token to token (for a Transformer: a vector per "
        "token). Dots: runs; lines and bars: means with 95 % intervals.",
        draw_states,
    ),
)
