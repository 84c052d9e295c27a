"""Accuracy by how many different questions a model was trained on (the study `gcog-pool`)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from unseen.report.figure import Drawing
from unseen.report.figures import gcog_runs as data
from unseen.report.figures.notes import run_notes
from unseen.report.figures.rows import Panel, headed, row_panels, table
from unseen.report.panels import stacked
from unseen.report.source import Source
from unseen.studies.claims import gcog_measures as measures
from unseen.studies.claims.gcog_measures import SETTING, TRAINING

CONDITIONS = {TRAINING: "train", "IID, all questions": "iid", "IID, trees": "iid/depth=3", "OOD, trees": "ood/trees"}


def draw_pool(source: Source) -> Drawing | None:
    """A line of panels for each setting: pools in rows, models by colour. All runs count in all means: what is compared
    is what a pool leaves of one budget."""
    runs = measures.pool_columns(source.runs)
    rows = data.last(source, runs) if len(runs) else runs
    if rows.empty:
        return None
    charts, tables = [], []
    alone = runs["model"].nunique() == 1  # then it has no legend, and stands in the heading
    varied = [name for name in SETTING if (alone if name == "model" else runs[name].nunique() > 1)]
    pools, models = order(runs["pool"].tolist()), data.order(rows["series"].tolist())
    for heading, found in rows.groupby(_headings(rows, varied), sort=False):
        own = runs[runs["cell"].isin(found["cell"])]
        panels = [
            Panel(
                name, of.assign(row=of["pool"].astype(str)), data.shortcut_lines(source, own, [condition]), every=True
            )
            for name, condition in CONDITIONS.items()
            if len(of := found[found["condition"] == condition])
        ]
        if not panels:
            continue
        rows_shown = [pool for pool in pools if pool in set(own["pool"].astype(str))]
        chart = row_panels(panels, rows_shown, models, columns=len(panels), width=160)
        charts.append(headed(chart, heading))
        tables.append(table(panels, "pool", "model").assign(setting=heading))
    if not charts:
        return None
    notes = [*run_notes(runs, rows, data.BOUND, counted=True), *data.unseen(source, runs, ["ood/trees"])]
    return Drawing(stacked(charts), pd.concat(tables, ignore_index=True), tuple(notes))


def order(pools: Sequence[object]) -> list[str]:
    """Pools from the smallest to the largest, then fresh questions.

    >>> order(["fresh", "20000", "2000"])
    ['2000', '20000', 'fresh']
    """
    size = {str(pool): float(str(pool)) if str(pool).isdigit() else float("inf") for pool in pools}
    return sorted(size, key=lambda pool: (size[pool], pool))


def _headings(rows: pd.DataFrame, varied: Sequence[str]) -> pd.Series:
    told = [
        " · ".join(str(run[name]) if name == "model" else f"{name} {run[name]}" for name in varied)
        for run in rows[list(varied)].to_dict("records")
    ]
    return pd.Series(told or [""] * len(rows), rows.index, dtype=object)
