"""Figures 2F, 6 and 7 of the gCOG paper: how large the models are, how much layers and heads matter, and what the
states of trained models are like."""

from __future__ import annotations

from ast import literal_eval
from typing import Any

import pandas as pd

from unseen.errors import UsageError
from unseen.models import options as model_options
from unseen.report import theme
from unseen.report.figure import Drawing
from unseen.report.figures import gcog_runs as data
from unseen.report.figures.notes import run_notes
from unseen.report.figures.rows import UNLEARNED, Measure, Panel, headed, panel_title, row_panels, table
from unseen.report.means import means
from unseen.report.panels import stacked
from unseen.report.source import Source
from unseen.spec import Spec
from unseen.studies.catalog.gcog import BERT, MODELS
from unseen.studies.claims import gcog_measures as measures
from unseen.studies.claims.gcog_measures import DISTRACTOR, IID, OOD, OUTSIDE, STIMULUS, TARGET, TASKS

ALIGNED = {STIMULUS: "similarity/stimulus_alignment", TARGET: "similarity/target_alignment"}
_DARK, _BRIGHT = "#10131A", "#FFFFFF"
"""The ink of numbers on coloured cells, which are the same on light and dark paper."""


# -- figure 2F --------------------------------------------------------------------------------------------------------


def draw_sizes(source: Source) -> Drawing | None:
    """Trained parameters of the models of the paper that were run."""
    runs = source.runs[source.runs["model"].isin([*MODELS, BERT])]
    counted: dict[tuple[str, str, int], int] = {}
    for (model, text, _), found in runs.groupby(["model", "model_options", "task_options"], sort=False):
        made = source.task(found["cell"].iloc[0])
        number = None if made is None else count_parameters(str(model), str(text), made.spec)
        if number is not None:
            key = (str(model), str(text), number)
            counted[key] = counted.get(key, 0) + len(found)
    if not counted:
        return None
    frame = pd.DataFrame(
        [[*key, number] for key, number in counted.items()], columns=["model", "options", "parameters", "runs"]
    )
    several = frame.groupby("model")["options"].transform("size") > 1
    frame["series"] = frame["model"].map(theme.title_of)
    frame["label"] = frame["series"].where(~several, frame["series"] + " · " + _varied(frame))
    rank = {model: place for place, model in enumerate(data.order(frame["model"].tolist()))}
    frame = frame.sort_values("model", key=lambda column: column.map(rank), kind="stable", ignore_index=True)
    alt = theme.load_altair()
    y = alt.Y(
        "label:N",
        sort=frame["label"].tolist(),
        title=None,
        axis=alt.Axis(ticks=False, domain=False, labelPadding=8, labelLimit=420),
    )
    x = alt.X("parameters:Q", title="trained parameters", axis=alt.Axis(format="~s", tickCount=5, domain=False))
    tip = [
        alt.Tooltip("label:N", title=" "),
        alt.Tooltip("parameters:Q", format=","),
        alt.Tooltip("options:N"),
        alt.Tooltip("runs:Q"),
    ]
    colour = alt.Color("series:N", legend=None, scale=theme.colour_scale(frame["series"]))
    bars = alt.Chart(frame).mark_bar(cornerRadiusEnd=3, height=16).encode(x=x, y=y, color=colour, tooltip=tip)
    texts = (
        alt.Chart(frame)
        .mark_text(align="left", dx=6, fontSize=11)
        .encode(x=x, y=y, text=alt.Text("parameters:Q", format=","))
    )
    return Drawing(alt.layer(bars, texts).properties(width=480, height=28 * len(frame)), frame.drop(columns="series"))


def count_parameters(model: str, text: str, spec: Spec) -> int | None:
    """How many numbers a model with these options, as a table prints them, trains; None where it can't be made."""
    from unseen.models.build import build, parameter_count  # loads torch

    try:
        given = {name: _value(value) for name, value in measures.read_options(text).items()}
        return parameter_count(build(model_options(model, **given), spec))
    except UsageError:
        return None


def _value(text: str) -> Any:
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _varied(frame: pd.DataFrame) -> pd.Series:
    """The options in which models of one name differ."""
    told = [measures.read_options(text) for text in frame["options"]]
    words = []
    for model, own in zip(frame["model"], told, strict=True):
        others = [one for other, one in zip(frame["model"], told, strict=True) if other == model]
        names = [
            name
            for name in dict.fromkeys(key for one in others for key in one)
            if len({one.get(name) for one in others}) > 1
        ]
        usual = model_options(model)
        words.append(", ".join(f"{name} {own.get(name, getattr(usual, name, ''))}" for name in names))
    return pd.Series(words, frame.index)


# -- figure 6 ---------------------------------------------------------------------------------------------------------


def draw_series(source: Source) -> Drawing | None:
    """A line for each task: heat maps of layers × heads, then what is new by layers and by heads."""
    alt = theme.load_altair()
    charts, tables, meant, shown = [], [], [], []
    notes: list[str] = []
    for task in TASKS:
        runs = measures.layer_columns(task, source.runs)
        rows = data.last(source, runs) if len(runs) else runs
        if rows.empty:
            continue
        found = {part: rows_ for part, rows_ in data.in_parts(rows, task).items() if part in (IID, OOD) and len(rows_)}
        maps = {part: _configurations(of) for part, of in found.items()}
        panels = (
            []
            if OOD not in found
            else [
                Panel(
                    f"OOD, by {axis}",
                    found[OOD].assign(row=found[OOD][axis].map(_number), series=BERT),
                    data.shortcut_lines(source, runs, data.conditions_of(rows, OUTSIDE[task])),
                )
                for axis in ("layers", "heads")
            ]
        )
        levels = [_levels(runs, axis) for axis in ("layers", "heads")]
        parts = [_heat(alt, part, of, *levels) for part, of in maps.items()]
        parts += [
            row_panels([panel], names, [BERT], Measure(), columns=1, width=170)
            for panel, names in zip(panels, levels, strict=False)
        ]
        charts.append(
            headed(
                alt.hconcat(*parts, spacing=28).resolve_scale(
                    color="independent", fill="independent", shape="independent"
                ),
                task,
            )
        )
        tables += [
            of.rename(columns={"mean": "value"}).assign(panel=part, what="mean", task=task) for part, of in maps.items()
        ]
        tables += [
            table([panel], axis).assign(task=task) for panel, axis in zip(panels, ("layers", "heads"), strict=False)
        ]
        notes += data.unseen(source, runs, data.conditions_of(rows, OUTSIDE[task]))
        meant.append(runs)
        shown.append(rows)
    if not charts:
        return None
    notes = [*run_notes(pd.concat(meant), pd.concat(shown), data.BOUND), *notes]
    return Drawing(stacked(charts), pd.concat(tables, ignore_index=True), tuple(dict.fromkeys(notes)))


def _number(level: object) -> str:
    return f"{float(str(level)):g}"


def _levels(runs: pd.DataFrame, axis: str) -> list[str]:
    return [f"{number:g}" for number in sorted(set(runs[axis].astype(float)))]


def _configurations(rows: pd.DataFrame) -> pd.DataFrame:
    """The mean of the runs that have learned, for each number of layers and heads."""
    placed = rows.assign(layers=rows["layers"].map(_number), heads=rows["heads"].map(_number))
    return means(placed[placed["state"] != UNLEARNED], ["layers", "heads"])


def _heat(alt: Any, title: str, cells: pd.DataFrame, layers: list[str], heads: list[str]) -> Any:
    x = alt.X(
        "heads:O", sort=heads, scale=alt.Scale(domain=heads), axis=alt.Axis(labelAngle=0, ticks=False, domain=False)
    )
    y = alt.Y("layers:O", sort=layers, scale=alt.Scale(domain=layers), axis=alt.Axis(ticks=False, domain=False))
    tip = [
        alt.Tooltip("layers:O"),
        alt.Tooltip("heads:O"),
        *(alt.Tooltip(f"{name}:Q", format=".1%") for name in ("mean", "low", "high")),
        alt.Tooltip("runs:Q"),
        alt.Tooltip("still_learning:Q", title="still learning"),
    ]
    boxes = (
        alt.Chart(cells)
        .mark_rect(cornerRadius=3)
        .encode(
            x=x,
            y=y,
            tooltip=tip,
            color=alt.Color("mean:Q", scale=alt.Scale(domain=[0, 1], scheme="viridis"), legend=None),
        )
    )
    texts = [
        alt.Chart(chosen).mark_text(fontSize=11, color=ink).encode(x=x, y=y, text=alt.Text("mean:Q", format=".0%"))
        for chosen, ink in ((cells[cells["mean"] > 0.6], _DARK), (cells[cells["mean"] <= 0.6], _BRIGHT))
    ]
    return alt.layer(boxes, *texts, panel_title(alt, f"{title}, accuracy")).properties(
        width=48 * len(heads), height=34 * len(layers)
    )


# -- figure 7 ---------------------------------------------------------------------------------------------------------


def draw_alignment(source: Source) -> Drawing | None:
    """How much closer training brought the states to the stimuli and to the targets."""
    runs = measures.columns(DISTRACTOR, source.runs)
    found = {name: data.last(source, runs, metric) for name, metric in ALIGNED.items()}
    found = {name: rows[rows["value"].notna()] for name, rows in found.items()}
    found = {name: rows for name, rows in found.items() if len(rows)}
    if not found:
        return None
    shown = pd.concat(found.values(), ignore_index=True)
    panels = [Panel(name, rows.assign(row=rows["series"]), {"no change": 0.0}) for name, rows in found.items()]
    models = data.order(shown["series"].tolist())
    low, high = min(0.0, float(shown["value"].min())), max(0.0, float(shown["value"].max()))
    margin = 0.08 * (high - low) or 1.0
    measure = Measure("distance before − after", (low - margin, high + margin), ".3~r")
    chart = row_panels(panels, models, models, measure, columns=2, width=320)
    unseen = data.unseen(source, runs, dict.fromkeys(shown["condition"]))
    return Drawing(chart, table(panels), (*run_notes(runs, shown, data.BOUND), *unseen))
