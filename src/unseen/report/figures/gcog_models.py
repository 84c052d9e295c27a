"""Figures 2F, 6 and 7 of the gCOG paper: sizes of models, layers and heads, and similarity of states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from unseen.claims.papers import gcog_measures as measures
from unseen.claims.papers.gcog_measures import DISTRACTOR, IID, OOD, OUTSIDE, STIMULUS, TARGET, TASKS
from unseen.errors import UsageError
from unseen.models import options as model_options
from unseen.report.charts import NOT_LEARNED, add_heading, colour_channel, heat_scale, mean_tooltips, stack_charts
from unseen.report.data import Source, means
from unseen.report.dot_plot import DotPanel, ValueAxis, dot_panels, panel_table, panel_title
from unseen.report.figure import Drawing, run_notes
from unseen.report.figures import gcog_runs as data
from unseen.report.theme import load_altair, title_of
from unseen.spec import Spec
from unseen.studies.catalog.gcog import BERT, MODELS

ALIGNMENTS = {STIMULUS: "similarity/stimulus_alignment", TARGET: "similarity/target_alignment"}
_DARK, _BRIGHT = "#10131A", "#FFFFFF"
"""The colours of numbers in cells of a heat map."""


# -- figure 2F: sizes of models ---------------------------------------------------------------------------------------


def draw_sizes(source: Source) -> Drawing | None:
    """Trained parameters of the models of the paper that were run."""
    runs = source.runs[source.runs["model"].isin([*MODELS, BERT])]
    counts: dict[tuple[str, str, int], int] = {}
    options: dict[str, list[Mapping[str, Any]]] = {}
    options_of_row = []
    for (model, text, _), group in runs.groupby(["model", "model_options", "task_options"], sort=False):
        task = source.task(group["trial"].iloc[0])
        model_values = _typed_model_options(str(model), group)
        parameters = None if task is None else count_parameters(str(model), model_values, task.spec)
        if parameters is None:
            continue
        key = (str(model), str(text), parameters)
        if key not in counts:
            options.setdefault(str(model), []).append(model_values)
            options_of_row.append(model_values)
        counts[key] = counts.get(key, 0) + len(group)
    if not counts:
        return None
    rows = []
    for ((model, text, parameters), run_count), model_values in zip(counts.items(), options_of_row, strict=True):
        label = title_of(model)
        if len(options[model]) > 1:
            label += f" · {_describe_differences(model_values, options[model])}"
        rows.append([model, text, parameters, run_count, label])
    table = pd.DataFrame(rows, columns=["model", "options", "parameters", "runs", "label"])
    rank = {model: position for position, model in enumerate(data.sort_models(table["model"]))}
    table = table.sort_values("model", key=lambda column: column.map(rank), kind="stable", ignore_index=True)
    return Drawing(_sizes_chart(table.assign(series=table["model"].map(title_of))), table)


def _typed_model_options(model: str, runs: pd.DataFrame) -> dict[str, Any]:
    """The options of the model of the first run, from its typed columns."""
    run = runs.iloc[:1].to_dict("records")[0]
    names = type(model_options(model)).model_fields
    return {name: run[f"model.{name}"] for name in names if f"model.{name}" in run}


def count_parameters(model: str, options: Mapping[str, Any], spec: Spec) -> int | None:
    """The number of trained parameters of a model of this package; None if this release does not make it."""
    from unseen.models.build import build, parameter_count  # loads torch

    try:
        return parameter_count(build(model_options(model, **options), spec))
    except UsageError:
        return None


def _describe_differences(values: Mapping[str, Any], others: list[Mapping[str, Any]]) -> str:
    """The options in which models of one name differ, with their values."""
    phrases = []
    for name, value in values.items():
        if len({other[name] for other in others}) > 1:
            phrases.append(f"{name} {value}")
    return ", ".join(phrases)


def _sizes_chart(table: pd.DataFrame) -> Any:
    alt = load_altair()
    y_axis = alt.Axis(ticks=False, domain=False, labelPadding=8, labelLimit=420)
    y = alt.Y("label:N", sort=table["label"].tolist(), title=None, axis=y_axis)
    x_axis = alt.Axis(format="~s", tickCount=5, domain=False)
    x = alt.X("parameters:Q", title="trained parameters", axis=x_axis)
    tooltip = [
        alt.Tooltip("label:N", title=" "),
        alt.Tooltip("parameters:Q", format=","),
        alt.Tooltip("options:N"),
        alt.Tooltip("runs:Q"),
    ]
    base = alt.Chart(table).encode(x=x, y=y)
    bars = base.mark_bar(cornerRadiusEnd=3, height=16).encode(color=colour_channel(table["series"]), tooltip=tooltip)
    numbers = base.mark_text(align="left", dx=6, fontSize=11).encode(text=alt.Text("parameters:Q", format=","))
    return alt.layer(bars, numbers).properties(width=480, height=28 * len(table))


# -- figure 6: layers and heads ---------------------------------------------------------------------------------------


def draw_layers(source: Source) -> Drawing | None:
    """A line for each task: heat maps of layers × heads, then OOD accuracy by layers and by heads."""
    alt = load_altair()
    charts = []
    tables: list[pd.DataFrame] = []
    all_runs = []
    all_rows = []
    unseen: list[str] = []
    for task in TASKS:
        runs = measures.layer_columns(task, source.runs)
        rows = data.last_scores(source, runs)
        if rows.empty:
            continue
        distributions = data.by_distribution(rows, task)
        outside = data.matching_splits(rows, OUTSIDE[task])
        levels = {}
        for axis in ("layers", "heads"):
            levels[axis] = [f"{level:g}" for level in sorted(set(runs[axis].astype(float)))]
        blocks = []
        for name in (IID, OOD):
            scores = distributions[name]
            if scores.empty:
                continue
            scores = scores.assign(layers=scores["layers"].map(_format_level), heads=scores["heads"].map(_format_level))
            cells = means(scores[scores["state"] != NOT_LEARNED], ["layers", "heads"])
            blocks.append(_layers_heat_map(name, cells, levels))
            tables.append(cells.rename(columns={"mean": "value"}).assign(panel=name, what="mean", task=task))
        scores = distributions[OOD]
        if len(scores):
            references = data.references(source, runs, outside)
            for axis in ("layers", "heads"):
                panel_rows = scores.assign(row=scores[axis].map(_format_level), series=BERT)
                panel = DotPanel(f"OOD, by {axis}", panel_rows, references)
                blocks.append(dot_panels([panel], levels[axis], [BERT], columns=1, width=170))
                tables.append(panel_table([panel], axis).assign(task=task))
        line = alt.hconcat(*blocks, spacing=28).resolve_scale(
            color="independent", fill="independent", shape="independent"
        )
        charts.append(add_heading(line, task))
        unseen += data.describe_unseen(source, runs, outside)
        all_runs.append(runs)
        all_rows.append(rows)
    if not charts:
        return None
    notes = [*run_notes(pd.concat(all_runs), pd.concat(all_rows), data.BOUND), *unseen]
    return Drawing(stack_charts(charts), pd.concat(tables, ignore_index=True), tuple(dict.fromkeys(notes)))


def _format_level(level: object) -> str:
    return f"{float(str(level)):g}"


def _layers_heat_map(title: str, cells: pd.DataFrame, levels: Mapping[str, list[str]]) -> Any:
    alt = load_altair()
    layers, heads = levels["layers"], levels["heads"]
    x_axis = alt.Axis(labelAngle=0, ticks=False, domain=False)
    x = alt.X("heads:O", sort=heads, scale=alt.Scale(domain=heads), axis=x_axis)
    y_axis = alt.Axis(ticks=False, domain=False)
    y = alt.Y("layers:O", sort=layers, scale=alt.Scale(domain=layers), axis=y_axis)
    tooltip = [alt.Tooltip("layers:O"), alt.Tooltip("heads:O"), *mean_tooltips(".1%")]
    colour = alt.Color("mean:Q", scale=heat_scale(), legend=None)
    marks = [alt.Chart(cells).mark_rect(cornerRadius=3).encode(x=x, y=y, tooltip=tooltip, color=colour)]
    for selected, ink in ((cells["mean"] > 0.6, _DARK), (cells["mean"] <= 0.6, _BRIGHT)):
        numbers = alt.Chart(cells[selected]).mark_text(fontSize=11, color=ink)
        marks.append(numbers.encode(x=x, y=y, text=alt.Text("mean:Q", format=".0%")))
    layered = alt.layer(*marks, panel_title(f"{title}, accuracy"))
    return layered.properties(width=48 * len(heads), height=34 * len(layers))


# -- figure 7: similarity of states -----------------------------------------------------------------------------------


def draw_alignment(source: Source) -> Drawing | None:
    """How much closer training brought the states to the stimuli and to the targets."""
    runs = measures.columns(DISTRACTOR, source.runs)
    panels = []
    tables = []
    for title, metric in ALIGNMENTS.items():
        rows = data.last_scores(source, runs, metric)
        rows = rows[rows["value"].notna()] if len(rows) else rows
        if len(rows):
            panels.append(DotPanel(title, rows.assign(row=rows["series"]), {"no change": 0.0}))
            tables.append(rows)
    if not panels:
        return None
    shown = pd.concat(tables, ignore_index=True)
    models = data.sort_models(shown["series"])
    low = min(0.0, float(shown["value"].min()))
    high = max(0.0, float(shown["value"].max()))
    margin = 0.08 * (high - low) or 1.0
    axis = ValueAxis("distance before − after", (low - margin, high + margin), ".3~r")
    chart = dot_panels(panels, models, models, axis, columns=2, width=320)
    notes = run_notes(runs, shown, data.BOUND)
    notes += data.describe_unseen(source, runs, dict.fromkeys(shown["split"]))
    return Drawing(chart, panel_table(panels), tuple(notes))
