"""The table of every run on a page: one row per run, in columns that stay small for tens of thousands of rows."""

from __future__ import annotations

from typing import Any

import pandas as pd

from unseen.report.design import level
from unseen.report.overview import SCORES, scores
from unseen.report.source import Source
from unseen.studies.store import ENDED

CONDITIONS = 12
"""How many conditions have a column."""
DIGITS = 4
SELECTIONS = ("best", "last")
_STILL = {1: "yes", 0: "no"}


def runs_table(source: Source) -> dict[str, Any]:
    """Columns of text as levels and codes, columns of numbers as they are; scores by condition and by whose weights.

    An axis on which all runs have the same level has no column: the design says it.
    """
    runs = source.runs
    if runs.empty:
        return {"columns": [], "rows": 0, "left_out": 0, "metrics": []}
    columns = [_text(axis, runs[axis].map(level)) for axis in source.axes if runs[axis].nunique(dropna=False) > 1]
    columns += [_number("seed", runs["seed"]), _text("status", runs["status"])]
    measured = {selection: scores(source, selection) for selection in SELECTIONS}
    metrics = [one for one in SCORES if any((rows["metric"] == one).any() for rows in measured.values() if len(rows))]
    if len(metrics) > 1:
        metric = measured["best"].drop_duplicates("cell").set_index("cell")["metric"]
        columns.append(_text("score", runs["cell"].map(metric).fillna("").str.replace("_", " ")))
    conditions = list(dict.fromkeys(name for rows in measured.values() if len(rows) for name in rows["condition"]))
    for condition in conditions[:CONDITIONS]:
        by = {selection: _values(runs, rows, condition) for selection, rows in measured.items()}
        columns.append({"name": condition, "kind": "score", "values": by})
    still = runs["still_learning"].map(_STILL).where(runs["status"].isin(ENDED)).fillna("")
    columns += [_text("still learning", still), _number("step", runs["step"])]
    columns += [] if (runs["seed"] == runs["data_seed"]).all() else [_number("data seed", runs["data_seed"])]
    columns.append({"name": "cell", "kind": "id", "values": runs["cell"].tolist()})
    return {
        "columns": columns,
        "rows": len(runs),
        "left_out": max(0, len(conditions) - CONDITIONS),
        "metrics": [one.replace("_", " ") for one in metrics],
    }


def _text(name: str, values: pd.Series) -> dict[str, Any]:
    codes, levels = pd.factorize(values)
    return {"name": name, "kind": "text", "levels": [str(one) for one in levels], "codes": codes.tolist()}


def _number(name: str, values: pd.Series) -> dict[str, Any]:
    return {"name": name, "kind": "number", "values": _plain(values)}


def _values(runs: pd.DataFrame, rows: pd.DataFrame, condition: str) -> list[float | None]:
    if rows.empty:
        return [None] * len(runs)
    found = rows[rows["condition"] == condition].drop_duplicates("cell").set_index("cell")["value"]
    return _plain(runs["cell"].map(found).astype(float).round(DIGITS))


def _plain(values: pd.Series) -> list[Any]:
    return values.astype(object).where(values.notna(), None).tolist()
