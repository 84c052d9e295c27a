"""What helps modules: specialization and errors along the axis that a study asks about, routers or training data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pandas as pd

from unseen.names import is_ood
from unseen.report.baselines import unseen_notes
from unseen.report.charts import ENDED, NOT_CONVERGED, stack_charts
from unseen.report.data import Source
from unseen.report.dot_plot import RUN_COLUMNS, DotPanel, ValueAxis, dot_panels, panel_table
from unseen.report.figure import WEIGHTS_NOTES, Drawing, Figure, run_notes
from unseen.report.module_scores import (
    ALIGNMENT,
    BEYOND,
    COLLAPSE,
    ERROR,
    measure_modules,
    select_learning_rate,
)
from unseen.report.theme import title_of

_SERIES = "gating"
_PANEL_AXES = ("setting", "rules")
"""Their levels have panels of their own."""


def draw_helps(source: Source, axis: str) -> Drawing | None:
    """A row of panels per measure, with a line per level of the axis and the gatings as colours.

    A gating that does not vary along the axis (no modules and true gates have no router) is a dashed line.
    """
    if axis not in source.axes or _SERIES not in source.axes or source.records.empty:
        return None
    runs = measure_modules(source.records, source.selection)
    axes = [name for name in (*_PANEL_AXES, _SERIES, axis) if name in runs]
    measures = [name for name in (ALIGNMENT, COLLAPSE, ERROR, BEYOND) if name in runs]
    if runs.empty or ERROR not in measures:
        return None
    if "learning_rate" in source.axes:
        runs = select_learning_rate(runs, axes)
    runs = runs.assign(
        row=runs[axis].astype(str),
        series=runs[_SERIES].map(title_of),
        state=np.where(runs["not_converged"] == 1, NOT_CONVERGED, ENDED),
    )
    varied = runs.groupby("series", sort=False)["row"].nunique() > 1
    series = [str(name) for name in varied.index[varied]] or list(runs["series"].unique())
    levels = list(dict.fromkeys(runs["row"]))
    charts = []
    tables = []
    for measure in measures:
        panels = [_make_panel(measure, name, group, series) for name, group in _split_panels(runs)]
        panels = [panel for panel in panels if len(panel.runs)]
        if not panels:
            continue
        highest = max(max(panel.runs["value"].max(), *panel.references.values(), 0.0) for panel in panels)
        scale = ValueAxis(measure, (0.0, 1.0 if measure in (ALIGNMENT, COLLAPSE) else float(highest)), ".3f")
        charts.append(dot_panels(panels, levels, series, scale, columns=2, width=230))
        tables.append(panel_table(panels, axis, _SERIES).assign(measure=measure))
    notes = [WEIGHTS_NOTES[source.selection], *run_notes(source.runs, runs.reset_index())]
    if "learning_rate" in source.axes:
        notes.append("Each configuration at the learning rate with the least mean error in distribution.")
    beyond = [split for split in source.records["split"].unique() if is_ood(split)]
    notes += unseen_notes(source, beyond)
    return Drawing(stack_charts(charts), pd.concat(tables, ignore_index=True), tuple(notes))


def _split_panels(runs: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The runs of each panel with its name."""
    axes = [name for name in _PANEL_AXES if name in runs and runs[name].nunique() > 1]
    if not axes:
        yield "", runs
        return
    for levels, group in runs.groupby(axes, sort=False):
        names = [f"{level} rules" if axis == "rules" else str(level) for axis, level in zip(axes, levels, strict=True)]
        yield ", ".join(names), group


def _make_panel(measure: str, name: str, runs: pd.DataFrame, series: Sequence[str]) -> DotPanel:
    """One measure of some runs; gatings that are no series are lines at their mean."""
    measured = runs.assign(value=runs[measure])
    measured = measured[measured["value"].notna()]
    drawn = measured["series"].isin(series)
    means = measured[~drawn].groupby("series", sort=False)["value"].mean()
    references = {str(label): float(value) for label, value in means.items()}
    return DotPanel(f"{measure}, {name}".removesuffix(", "), measured.loc[drawn, RUN_COLUMNS], references)


_CAPTION = (
    "Relative alignment is 0 where every rule has a module of its own and 1 where modules do not tell rules apart; collapse is 0 "
    "where modules are used evenly. An error is the share of wrong answers or, in regression, the loss divided by that of always "
    "predicting 0. Lower is better everywhere. Dots: runs; ticks: means with 95 % intervals over them, each run on a task of its own; intervals end at the edge of a panel."
)
FIGURES = (
    Figure(
        "rules/routers",
        "What routers and biases do to specialization and errors",
        "ours",
        f"{_CAPTION} Dashed: no modules, and gates that are given the rule.",
        partial(draw_helps, axis="routing"),
    ),
    Figure(
        "rules/data",
        "What finite training data do to specialization and errors",
        "ours",
        _CAPTION,
        partial(draw_helps, axis="train_size"),
    ),
)
