"""A look inside the best and the worst run of each series, where a store keeps weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from unseen.report.activation import activation_cells, activation_chart, outside
from unseen.report.attention import DECODER, attention_chart, decoder_cells
from unseen.report.figure import Drawing
from unseen.report.figures.inside import look_inside
from unseen.report.layout import Layout, layouts
from unseen.report.panels import said
from unseen.report.references import unseen_notes
from unseen.report.source import Source
from unseen.report.theme import load_altair

EXAMPLES, SHOWN = 4_000, 12
"""Examples behind an activation matrix; examples whose attention is shown."""
SERIES, ACROSS = 4, 2
SELECTIONS = ("best", "last")
"""Whose weights, the wanted first; a store may keep others only."""

Look = Callable[[Any, Any], tuple[Any, pd.DataFrame, str] | None]
"""From a stack and its task to a chart, its data and what it says; None where there is nothing to see."""


def draw_activation(source: Source) -> Drawing | None:
    """The activation matrices of rules models."""
    return _drawn(source, "rules/", _activation)


def draw_attention(source: Source) -> Drawing | None:
    """Where retrieval models look."""
    return _drawn(source, "retrieval/", _attention)


def _activation(stack: Any, task: Any) -> tuple[Any, pd.DataFrame, str] | None:
    from unseen.engine import look

    if look.no_activation(stack, task):
        return None
    matrix = look.activation(stack, task, EXAMPLES)
    cells = activation_cells(matrix, task.pi)
    return activation_chart(cells), cells, f"{100 * outside(matrix, task.pi):.1f} % outside the best assignment"


def _attention(stack: Any, task: Any) -> tuple[Any, pd.DataFrame, str] | None:
    from unseen.engine import look

    found = look.attention(stack, task, None, SHOWN)
    if DECODER not in found.maps:
        return None
    factors = found.examples.factors
    return (
        attention_chart(found.maps, found.right, factors),
        decoder_cells(found.maps[DECODER], found.right, factors),
        f"{int((found.right == 1).sum())} of {len(found.right)} shown are right",
    )


def _drawn(source: Source, family: str, look: Look) -> Drawing | None:
    """The best and the worst run of each series at the first place that has weights."""
    names = [name for name in source.runs["task"].unique() if str(name).startswith(family)]
    runs = source.runs[source.runs["task"].isin(names)]
    kept = {file.name.partition(".")[0] for file in (source.directory / "weights").glob("*.safetensors")}
    if not kept & set(runs["cell"]):
        return None
    panels, tables, chosen = [], [], 0
    for layout in layouts(source, panels=False):
        rows = layout.rows[layout.rows["cell"].isin(kept & set(runs["cell"]))]
        for which, run in _best_and_worst(layout, rows[rows["place"] == rows["place"].min()]):
            found = look_inside(source, str(run["cell"]), SELECTIONS, look)
            chosen += 1
            if found is not None:
                (chart, data, words), selection = found
                title = f"{run['series']}, {which} of {run['runs']}: {said(run['value'], layout.metric)}"
                panels.append(_titled(chart, title, f"seed {run['seed']}, {words}"))
                tables.append(
                    data.assign(
                        series=run["series"],
                        which=which,
                        runs=run["runs"],
                        seed=run["seed"],
                        selection=selection,
                        cell=run["cell"],
                        metric=layout.metric.name,
                        score=run["value"],
                    )
                )
        if panels:
            break
    if not panels:
        return None
    data = pd.concat(tables, ignore_index=True)
    place = source.where(source.runs["cell"].isin(data["cell"]))
    task = source.task(str(data["cell"].iloc[0]))
    notes = [
        f"On {' '.join(place.runs[['task', 'task_options']].iloc[0]).strip()}.",
        *unseen_notes(place, [] if task is None else [task.validation]),
    ]
    if len(panels) < chosen:
        notes.append(f"{chosen - len(panels)} of {chosen} runs keep nothing to look at.")
    last = data["cell"][data["selection"] == "last"].nunique()
    if last:
        notes.append(f"Of {last} of {len(panels)} runs only the last weights are kept, and shown.")
    return Drawing(load_altair().concat(*panels, columns=ACROSS, spacing=36), data, tuple(notes))


def _best_and_worst(layout: Layout, rows: pd.DataFrame) -> list[tuple[str, pd.Series]]:
    found = []
    for _, runs in list(rows.groupby("series", sort=False))[:SERIES]:
        ranked = runs.sort_values("value", ascending=not layout.metric.rising, kind="stable").assign(runs=len(runs))
        found += [("best", ranked.iloc[0]), ("worst", ranked.iloc[-1])][: len(ranked)]
    return found


def _titled(chart: Any, title: str, subtitle: str) -> Any:
    alt = load_altair()
    return chart.properties(title=alt.Title(title, subtitle=subtitle, fontSize=13, subtitleFontSize=11, offset=8))
