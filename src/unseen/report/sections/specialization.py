"""The results of the analysis `specialization`: how modules share out the rules of a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from unseen.report.data import Source, means
from unseen.report.layout import INSTANCES
from unseen.report.sections.design import format_level
from unseen.report.sections.scores import format_extremes

METRICS = {
    "collapse_avg": "Collapse-Avg",
    "collapse_worst": "Collapse-Worst",
    "alignment": "Alignment",
    "adaptation": "Adaptation",
    "inverse_mutual_information": "Inverse mutual information",
}
"""The metrics with their titles, in the order of the paper. Lower is better for all of them."""
MAX_ROWS = 24
"""More configurations than this are shown by the figures alone."""


@dataclass(frozen=True)
class SpecializationRow:
    """One configuration: its levels on the axes, its mean of each metric as text, and the number of runs."""

    levels: Mapping[str, str]
    scores: Mapping[str, str]
    values: Mapping[str, float]
    runs: int


@dataclass(frozen=True)
class SpecializationTable:
    """A row per configuration with modules; `metrics` maps those that were measured to their titles."""

    axes: Sequence[str]
    metrics: Mapping[str, str]
    rows: Sequence[SpecializationRow]


def tabulate_specialization(source: Source) -> SpecializationTable | None:
    """The means over runs with their intervals; None if nothing was measured, or in too many configurations."""
    records = source.records
    if records.empty:
        return None
    of_modules = records["metric"].str.startswith("specialization/") & (records["factor"] == "")
    rows = records[of_modules & (records["selection"] == source.selection) & records["value"].notna()]
    rows = rows.assign(quantity=rows["metric"].str.removeprefix("specialization/"))
    rows = rows[rows["quantity"].isin(METRICS)]
    if rows.empty:
        return None
    axes = [axis for axis in source.axes if axis not in INSTANCES and rows[axis].nunique(dropna=False) > 1]
    if axes and len(rows[axes].drop_duplicates()) > MAX_ROWS:
        return None
    measured = {name: title for name, title in METRICS.items() if (rows["quantity"] == name).any()}
    groups = rows.groupby(axes, sort=False, dropna=False) if axes else [((), rows)]
    table = []
    for levels, group in groups:
        level_texts = {axis: format_level(level, axis) for axis, level in zip(axes, levels, strict=True)}
        table.append(_summarize(group, level_texts))
    return SpecializationTable(axes, measured, table)


def _summarize(rows: pd.DataFrame, levels: Mapping[str, str]) -> SpecializationRow:
    scores = {}
    values = {}
    for row in means(rows, ["quantity"]).to_dict("records"):
        interval = f" [{row['low']:.3f}, {row['high']:.3f}]" if row["low"] == row["low"] else ""
        scores[str(row["quantity"])] = f"{row['mean']:.3f}{interval}"
        values[str(row["quantity"])] = float(row["mean"])
    return SpecializationRow(levels, scores, values, rows["trial"].nunique())


def describe_specialization(table: SpecializationTable) -> str:
    """How the modules share out the rules, in two sentences."""
    phrases = []
    for name, title in table.metrics.items():
        values = [row.values[name] for row in table.rows if name in row.values]
        phrases.append(f"{title} {format_extremes(values)}")
    runs = sum(row.runs for row in table.rows)
    return (
        f"How the modules share out the rules (means of {runs} run{'' if runs == 1 else 's'}): {'; '.join(phrases)}. "
        "Alignment is 0 where every rule has a module of its own, and 1 − 1/modules where all rules are treated alike; "
        "both collapses are 0 where modules are used evenly."
    )
