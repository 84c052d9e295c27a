"""The CTL++ paper's table 1: accuracy in distribution and on unseen transitions, every seed as a dot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from unseen.report import theme
from unseen.report.figure import Drawing
from unseen.report.figures.ctl_runs import IID, NAMES, OOD, WORDS, accuracies, notes, unlearned, world_chance
from unseen.report.means import means
from unseen.report.source import Source
from unseen.studies.claims.ctl import TABLE1

TASKS = {f"ctl/{name}": f"{name}: groups {'alternate' if name == 'A' else 'repeat'}" for name in TABLE1}
PRINTED_IID = 1.0
"""Printed for all models on both tasks."""
DOTS = 2_000


def table1(source: Source) -> Drawing | None:
    """A panel for each variant and condition: dots, means with intervals, what the paper prints, and chance."""
    wide = accuracies(source, TASKS)
    kept = ["task", "model", "seed", "cell", "still_learning"]
    rows = pd.concat([wide.assign(condition=condition, value=wide[name])[[*kept, "condition", "value"]]
                      for name, condition in (("iid", IID), ("ood", OOD))], ignore_index=True)
    rows = rows[rows["value"].notna()]
    if rows.empty:
        return None
    by = ["task", "condition", "model"]
    mean = means(rows, by).rename(columns={"mean": "value"}).assign(kind="mean")
    spread = rows.groupby(by)["value"].std().rename("deviation").reset_index()
    printed = pd.DataFrame([_printed(task, condition, model) for task, condition, model in
                            mean[by].itertuples(index=False, name=None)])
    dots = rows.assign(kind="run", runs=1, still_learning=(rows["still_learning"] == 1).astype(int),
                       jitter=_jitter(rows, by))
    frame = pd.concat([mean.merge(spread, on=by), printed, *([dots] if len(dots) <= DOTS else [])], ignore_index=True)
    chance = world_chance(source, wide)
    if chance is not None:
        places = mean[["task", "condition"]].drop_duplicates()
        frame = pd.concat([frame, places.assign(kind="reference", value=chance, label="chance", runs=0)],
                          ignore_index=True)
    # Tasks and conditions stand in the order of their names: A before R, in distribution before what is unseen.
    frame = frame.assign(column=frame["task"].map(TASKS), row=frame["condition"].map(WORDS),
                         still_learning=frame["still_learning"].fillna(0)).sort_values(
        ["task", "condition"], kind="stable", ignore_index=True)
    said = [f"{text}." for text in [unlearned(wide)] if text]
    if len(dots) > DOTS:
        said.append(f"{len(dots)} dots are too many to be drawn.")
    data = frame.drop(columns=["column", "row", "jitter"], errors="ignore")
    data = data.astype({"seed": "Int64", "runs": "Int64", "still_learning": "Int64"})
    return Drawing(_chart(frame), data, (*said, *notes(source, rows.merge(wide[["cell", "task_options"]], on="cell"),
                                                       TASKS, [IID, OOD])))


def _printed(task: str, condition: str, model: str) -> dict[str, Any]:
    value, deviation = TABLE1[task.removeprefix("ctl/")][model] if condition == OOD else (PRINTED_IID, np.nan)
    return {"task": task, "condition": condition, "model": model, "kind": "printed", "value": value,
            "deviation": deviation, "runs": 0}


def _jitter(rows: pd.DataFrame, by: list[str]) -> pd.Series:
    """A place for each seed, so that equal scores stay visible."""
    groups = rows.groupby(by)
    return (groups.cumcount() + 0.5) / groups["value"].transform("size") - 0.5


def _chart(frame: pd.DataFrame) -> Any:
    alt = theme.load_altair()
    models = [model for model in NAMES if (frame["model"] == model).any()]
    scale = theme.colour_scale(models)
    low = min(0.1, float(frame["value"].min()))
    x = alt.X("value:Q", title="accuracy", scale=alt.Scale(domain=[max(0.0, low - 0.05), 1.03], nice=False),
              axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1]))
    y = alt.Y("model:N", sort=models, title=None, scale=alt.Scale(domain=models),
              axis=alt.Axis(ticks=False, domain=False, labelPadding=8))
    colour, fill = (channel("model:N", scale=scale, legend=None) for channel in (alt.Color, alt.Fill))
    base = alt.Chart()
    dots, mean, printed, chance = (base.transform_filter(f"datum.kind === '{kind}'")
                                   for kind in ("run", "mean", "printed", "reference"))
    wide = base.transform_filter("datum.kind === 'mean' && isValid(datum.low)")
    hints = [alt.Tooltip("model:N"), alt.Tooltip("value:Q", title="accuracy", format=".3f")]
    of_means = [*hints, alt.Tooltip("low:Q", title="95 % from", format=".3f"),
                alt.Tooltip("high:Q", title="to", format=".3f"),
                alt.Tooltip("deviation:Q", title="standard deviation", format=".3f"), alt.Tooltip("runs:Q"),
                alt.Tooltip("still_learning:Q", title="still learning")]
    layers = [
        chance.mark_rule(strokeDash=[5, 4], strokeWidth=1.2).encode(x=x),
        chance.mark_text(align="left", baseline="top", dx=4, dy=1, fontSize=10.5).encode(
            x=x, y=alt.value(0), text="label:N"),
        dots.mark_point(size=44, opacity=0.75, strokeWidth=1.4).encode(
            x=x, y=y, yOffset=alt.YOffset("jitter:Q", scale=alt.Scale(domain=[-1.0, 1.9])), color=colour, fill=fill,
            fillOpacity={"condition": {"test": "datum.still_learning > 0", "value": 0}, "value": 1},
            tooltip=[*hints, alt.Tooltip("seed:N"), alt.Tooltip("still_learning:Q", title="still learning")]),
        wide.mark_rule(strokeWidth=3.5, strokeCap="round", yOffset=16).encode(
            x=alt.X("low:Q", title="accuracy"), x2="high:Q", y=y, color=colour),
        mean.mark_tick(thickness=3.5, size=13, yOffset=16).encode(x=x, y=y, color=colour, tooltip=of_means),
        printed.mark_text(text="◇", fontSize=15, yOffset=16).encode(x=x, y=y, tooltip=[
            alt.Tooltip("model:N"), alt.Tooltip("value:Q", title="printed", format=".2f"),
            alt.Tooltip("deviation:Q", title="standard deviation", format=".2f")]),
    ]
    columns, rows = (list(dict.fromkeys(frame[name])) for name in ("column", "row"))
    return alt.layer(*layers, data=frame).properties(width=340, height=alt.Step(62)).facet(
        column=alt.Column("column:N", sort=columns, title=None), row=alt.Row("row:N", sort=rows, title=None),
        spacing=20)
