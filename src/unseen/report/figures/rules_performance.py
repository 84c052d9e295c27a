"""Errors and losses of the modularity paper: against capacity (figures 9, 10, …), rules (4) and training steps (7)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from unseen.analysis.votes import SCORES, SPLITS
from unseen.claims.evidence import ENDED
from unseen.randomness import Floats
from unseen.report.charts import count_tooltips
from unseen.report.data import Source
from unseen.report.figure import Drawing
from unseen.report.figures.rules_runs import (
    FAMILIES,
    HOLLOW_FILL,
    INTERVAL,
    MEAN,
    RUN,
    RulesRuns,
    count_parameters,
    facet_rows_and_columns,
    family_channels,
    interval_tooltips,
    means_and_runs,
    performance,
    read_runs,
    run_tooltips,
    stroke_legend,
    with_integers,
)
from unseen.report.theme import load_altair, title_of
from unseen.stats import mean_intervals

CHANCE_ERROR = 50.0
"""The error of guessing, in percent: classes are balanced."""
NAMES = {"mlp": "MLP", "mha": "MHA", "rnn": "RNN"}
CURVE_POINTS = 60
CURVE_PANELS = {
    "classification": "Classification: error %",
    "regression": "Regression: loss",
    "": "Both averaged, as in the paper",
}
_NEAR_REFERENCE = 0.6
"""A reference is drawn if the largest value reaches this share of it; otherwise it would compress all else."""
_DODGE = {family: 0.13 * (position - 1.5) for position, family in enumerate(FAMILIES)}
"""The horizontal shift of each family in doublings, so that equal values do not hide each other."""
_REFERENCE = "datum.kind === 'reference'"


def draw_capacity(source: Source, architecture: str, setting: str, split: str) -> Drawing | None:
    """Performance against the width of the encoder: a panel for each number of rules, a row for each search."""
    study = read_runs(source, architecture, setting)
    if study is None:
        return None
    rows = performance(study.scores[study.scores["split"] == split])
    rows = rows.sort_values(["search", "rules", "width"])
    if rows.empty:
        return None
    columns = rows["rules"].map(lambda number: f"{number} rule{'s' if number != 1 else ''}")
    rows = rows.assign(row=rows["search"], column=columns)
    by = ["row", "column", "unit", "search", "rules", "width", "family", "gating"]
    table, run_note = _performance_table(rows, by)
    table = table.assign(architecture=architecture, setting=setting, options=rows["options"].iloc[0])
    table = table.assign(parameters=count_parameters(table))
    chart, data, reference_notes = _draw_lines(table, rows, "width", "encoder width (log)", rows["unit"].iloc[0])
    return Drawing(chart, data, (*run_note, *reference_notes, *study.notes(rows, [split])))


def draw_overview(source: Source) -> Drawing | None:
    """Figure 4: rows of architectures, columns of settings in and out of distribution, against the rules."""
    study = read_runs(source)
    if study is None:
        return None
    tested: set[str] = set()
    for by_architecture in SPLITS.values():
        tested.update(by_architecture.values())
    scores = performance(study.scores[study.scores["split"].isin(tested)])
    tables = []
    for distribution, label in (("id", "ID"), ("ood", "OoD")):
        selected = scores[scores["split"] == scores["architecture"].map(SPLITS[distribution])]
        column = selected["setting"].str.capitalize() + " " + label + ": " + selected["unit"]
        tables.append(selected.assign(column=column, where=distribution, row=selected["architecture"].map(NAMES)))
    rows = pd.concat(tables, ignore_index=True)
    if rows.empty:
        return None
    rank = {name: number for number, name in enumerate(NAMES.values())}
    rows = rows.assign(rank_=rows["row"].map(rank))
    rows = rows.sort_values(["rank_", "setting", "where", "rules"], kind="stable").drop(columns="rank_")
    table, run_note = _performance_table(rows, ["row", "column", "unit", "rules", "family"])
    chart, data, reference_notes = _draw_lines(table, rows, "rules", "rules (log)", None)
    return Drawing(chart, data, (*run_note, *reference_notes, *study.notes(rows, dict.fromkeys(rows["split"]))))


def _performance_table(rows: pd.DataFrame, by: list[str]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Means and runs, each with the mean `relative` loss of its group."""
    table, note = means_and_runs(rows, by)
    relative = rows.groupby(by, dropna=False, sort=False)["relative"].mean().rename("relative").reset_index()
    return table.merge(relative, on=by, how="left"), note


def _draw_lines(
    table: pd.DataFrame, rows: pd.DataFrame, column: str, title: str, value_title: str | None
) -> tuple[Any, pd.DataFrame, tuple[str, ...]]:
    """The chart of a table of means and runs, its data with the references, and notes on references left out."""
    references, notes = _references(table, rows)
    # The axis is logarithmic, so a shift by a part of a doubling is a factor.
    dodged = table[column].astype(float) * 2.0 ** table["family"].map(_DODGE).fillna(0.0)
    table = pd.concat([table.assign(dodged=dodged), references], ignore_index=True)
    # Panels in the order of the rows, families in that of the paper.
    for name in ("row", "column"):
        table[name] = pd.Categorical(table[name], list(dict.fromkeys(rows[name])), ordered=True)
    table["family"] = pd.Categorical(table["family"], FAMILIES, ordered=True)
    table = table.sort_values(["row", "column", "kind", "family"], kind="stable", ignore_index=True)
    table = table.astype({"row": object, "column": object, "family": object})
    chart = _line_chart(table, column, title, value_title)
    internal = ["dodged", "gating", "architecture", "setting", "options"]
    return chart, with_integers(table).drop(columns=internal, errors="ignore"), notes


def _references(table: pd.DataFrame, rows: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Chance, or the mean loss of the zero predictor, in panels with a value close to it; and notes on the others."""
    panel = ["row", "column"]
    # The loss of the zero predictor follows from a loss and its relative value.
    zero = np.where(rows["setting"] == "classification", CHANCE_ERROR, rows["value"] / rows["relative"])
    references = rows.assign(zero=zero).groupby([*panel, "unit"], sort=False)["zero"].mean().reset_index()
    largest = table.groupby(panel, sort=False)["value"].max().rename("largest").reset_index()
    references = references.merge(largest, on=panel)
    near = references["largest"] >= _NEAR_REFERENCE * references["zero"]
    drawn = references[near].rename(columns={"zero": "value"}).drop(columns="largest")
    label = drawn["unit"].map({"error %": "chance", "loss": "zero predictor"})
    drawn = drawn.assign(kind="reference", runs=0, not_converged=0, label=label)
    far_units = set(references["unit"][~near & references["zero"].notna()])
    notes = []
    if "error %" in far_units:
        notes.append(f"Chance is an error of {CHANCE_ERROR:.0f} %, above the panels that do not show it.")
    if "loss" in far_units:
        notes.append(
            "The zero predictor's loss is above the panels that do not show it; relative losses are in the data."
        )
    return drawn, tuple(notes)


def _line_chart(table: pd.DataFrame, column: str, title: str, value_title: str | None) -> Any:
    """Panels of lines over the doublings of a column: every run, means with intervals, and a named reference."""
    alt = load_altair()
    levels = sorted(map(int, table[column].dropna().unique()))
    x = alt.X(
        "dodged:Q",
        title=title,
        axis=alt.Axis(values=levels, format="d", grid=False, labelOverlap=True),
        scale=alt.Scale(type="log", base=2, nice=False, domain=[levels[0] / 1.45, levels[-1] * 1.45]),
    )
    y = alt.Y("value:Q", title=value_title, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5))
    colour, fill = family_channels(table, **stroke_legend(columns=5))
    tooltip = [
        alt.Tooltip("family:N", title="model"),
        alt.Tooltip("rules:Q"),
        alt.Tooltip("value:Q", format=".4g"),
    ]
    if "parameters" in table:
        tooltip += [alt.Tooltip("width:Q"), alt.Tooltip("parameters:Q", format=",.0f")]
    if table["relative"].notna().any():
        tooltip.append(alt.Tooltip("relative:Q", title="relative to the zero predictor", format=".3f"))
    base = alt.Chart()
    references = base.transform_filter(_REFERENCE)
    runs = base.transform_filter(RUN)
    means = base.transform_filter(MEAN)
    intervals = base.transform_filter(INTERVAL)
    layers = [
        references.mark_rule(strokeDash=[5, 4], strokeWidth=1.2).encode(y=y),
        references.mark_text(align="left", baseline="bottom", dx=3, dy=-2, fontSize=10.5).encode(
            x=alt.value(0), y=y, text="label:N"
        ),
        runs.mark_point(size=16, opacity=0.5, strokeWidth=1).encode(
            x=x, y=y, color=colour, fill=fill, fillOpacity=HOLLOW_FILL, tooltip=[*tooltip, *run_tooltips()]
        ),
        means.mark_line(strokeWidth=1.8).encode(x=x, y=y, color=colour),
        intervals.mark_rule(strokeWidth=1.6).encode(
            x=x, y=alt.Y("low:Q", title=value_title), y2="high:Q", color=colour
        ),
        means.mark_point(size=52, strokeWidth=1.8, opacity=1).encode(
            x=x, y=y, color=colour, fill=fill, fillOpacity=HOLLOW_FILL, tooltip=[*tooltip, *interval_tooltips()]
        ),
    ]
    return facet_rows_and_columns(alt.layer(*layers), table).resolve_scale(y="independent")


# -- figure 7: learning curves ----------------------------------------------------------------------------------------


def draw_curves(source: Source) -> Drawing | None:
    """A panel for each setting and one for both together; a line per family with its 95 % band."""
    study = read_runs(source)
    if study is None:
        return None
    runs = study.runs[study.runs["status"].isin(ENDED)].drop_duplicates("trial")
    curves = _wide_curves(study, runs)
    if curves.empty:
        return None
    runs = runs.set_index("trial").loc[curves.index]
    runs = runs.assign(family=runs["gating"].map(title_of))
    tables = []
    for setting, title in CURVE_PANELS.items():
        if setting == "" and runs["setting"].nunique() < 2:
            continue
        for family in FAMILIES:
            group = runs[(runs["family"] == family) & (runs["setting"].eq(setting) | (setting == ""))]
            if len(group):
                tables.append(_mean_curve(curves.loc[group.index], group).assign(column=title, family=family))
    table = pd.concat(tables, ignore_index=True)
    return Drawing(_curve_chart(table), table, study.notes(runs.reset_index(), mark="Hollow ends: "))


def _wide_curves(study: RulesRuns, runs: pd.DataFrame) -> pd.DataFrame:
    """Performance in distribution, a row per run and a column per step.

    A step has the value that was logged last, so that runs that are trained for fewer steps keep their last value.
    """
    points = study.source.curves()
    if points.empty or runs.empty:
        return pd.DataFrame()
    setting_of_trial = runs.set_index("trial")["setting"]
    points = points[(points["split"] == "iid") & points["trial"].isin(runs["trial"])]
    metrics = {setting: metric for setting, (metric, _) in SCORES.items()}
    points = points[points["metric"] == points["trial"].map(setting_of_trial).map(metrics)]
    points = points.drop_duplicates(["trial", "step"], keep="last")
    wide = points.pivot(index="trial", columns="step", values="value").sort_index(axis=1).ffill(axis=1).bfill(axis=1)
    shown = np.unique(np.linspace(0, len(wide.columns) - 1, CURVE_POINTS).round().astype(int))
    wide = wide[wide.columns[shown]]
    classified = setting_of_trial.loc[wide.index].eq("classification").to_numpy()
    # Accuracies become errors in percent.
    wide[classified] = 100 * (1 - wide[classified])
    return wide


def _mean_curve(curves: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """The mean curve over tasks and its band, point by point; the units are the tasks."""
    by_task = curves.loc[runs.index].groupby(runs["task_seed"].to_numpy()).mean()
    values: Floats = by_task.to_numpy(float)
    low, high = mean_intervals(values.T)
    return pd.DataFrame(
        {
            "step": curves.columns.astype(int),
            "value": values.mean(axis=0),
            "low": low,
            "high": high,
            "runs": len(runs),
            "not_converged": int((runs["not_converged"] == 1).sum()),
        }
    )


def _curve_chart(table: pd.DataFrame) -> Any:
    alt = load_altair()
    panels = [title for title in CURVE_PANELS.values() if (table["column"] == title).any()]
    last = int(table["step"].max())
    thousands = "datum.value < 1000 ? format(datum.value, '~g') : format(datum.value / 1000, '~g') + ' k'"
    x = alt.X(
        "step:Q",
        title="step",
        axis=alt.Axis(labelExpr=thousands, tickCount=5, grid=False),
        scale=alt.Scale(domain=[0, last], nice=False),
    )
    y = alt.Y("value:Q", title=None, scale=alt.Scale(type="sqrt", zero=True), axis=alt.Axis(tickCount=5))
    colour, _ = family_channels(table, **stroke_legend())
    tooltip = [
        alt.Tooltip("family:N", title="model"),
        alt.Tooltip("step:Q", format=",d"),
        alt.Tooltip("value:Q", title="mean", format=".4g"),
        *count_tooltips(),
    ]
    base = alt.Chart()
    bands = base.transform_filter("isValid(datum.low)")
    hollow_ends = base.transform_filter(f"datum.step === {last} && datum.not_converged > 0")
    layers = [
        bands.mark_area(opacity=0.07).encode(x=x, y=alt.Y("low:Q", title=None), y2="high:Q", color=colour),
        base.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour),
        # Invisible points, which are easier to hit than the line.
        base.mark_point(size=120, opacity=0).encode(x=x, y=y, tooltip=tooltip),
        hollow_ends.mark_point(size=46, strokeWidth=1.8, fillOpacity=0).encode(x=x, y=y, color=colour, tooltip=tooltip),
    ]
    faceted = alt.layer(*layers, data=table).properties(width=270, height=200)
    column = alt.Column("column:N", sort=panels, title=None)
    return faceted.facet(column=column, spacing=22).resolve_scale(y="independent")
