"""The table of every run on a page, in columns that stay small for tens of thousands of rows."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Any

import pandas as pd

from unseen.report.charts import NOT_CONVERGED
from unseen.report.data import SCORES, Source
from unseen.report.sections.design import format_level
from unseen.store.store import ENDED

MAX_SPLITS = 12
DIGITS = 4
SELECTIONS = ("best", "last")
REASONS = {"finished": "all steps", "stopped": "plateau", "diverged": "divergence", "failed": "failure"}
"""Why a run of each status ended."""


def tabulate_runs(source: Source) -> dict[str, Any]:
    """Columns of text as levels and codes, columns of numbers as they are, and scores by split and selection.

    An axis on which all runs have the same level has no column; the design names it.
    """
    runs = source.runs
    if runs.empty:
        return {"columns": [], "rows": 0, "left_out": 0, "metrics": []}
    columns = []
    for axis in source.axes:
        if runs[axis].nunique(dropna=False) > 1:
            columns.append(_text_column(axis, runs[axis].map(partial(format_level, axis=axis))))
    columns += [_number_column("seed", runs["seed"]), _text_column("status", runs["status"])]
    scores = {selection: source.scores(selection) for selection in SELECTIONS}
    measured = [rows for rows in scores.values() if len(rows)]
    present = set(chain.from_iterable(rows["metric"] for rows in measured))
    metrics = [name for name in SCORES if name in present]
    if len(metrics) > 1:
        metric = scores["best"].drop_duplicates("trial").set_index("trial")["metric"]
        columns.append(_text_column("score", runs["trial"].map(metric).fillna("").str.replace("_", " ")))
    splits = list(dict.fromkeys(chain.from_iterable(rows["split"] for rows in measured)))
    for split in splits[:MAX_SPLITS]:
        values = {selection: _score_values(runs, rows, split) for selection, rows in scores.items()}
        columns.append({"name": split, "kind": "score", "values": values})
    not_converged = (
        runs["not_converged"].map({1: "yes", 0: "no"}).fillna("unknown").where(runs["status"].isin(ENDED), "")
    )
    columns += [_text_column(NOT_CONVERGED, not_converged), _text_column("ended by", endings(runs))]
    columns.append(_number_column("last step", runs["step"]))
    if not (runs["seed"] == runs["data_seed"]).all():
        columns.append(_number_column("data seed", runs["data_seed"]))
    columns.append({"name": "trial", "kind": "id", "values": runs["trial"].tolist()})
    return {
        "columns": columns,
        "rows": len(runs),
        "left_out": max(0, len(splits) - MAX_SPLITS),
        "metrics": [name.replace("_", " ") for name in metrics],
    }


def endings(runs: pd.DataFrame) -> pd.Series:
    """Why each run ended, in words; empty for runs that have not.

    Runs that were trained before the plateau existed were stopped by `patience`, which their recipe then names.
    """
    reasons = runs["status"].map(REASONS).fillna("")
    if "recipe.patience" in runs:
        by_patience = (runs["status"] == "stopped") & runs["recipe.patience"].notna()
        reasons = reasons.mask(by_patience, "patience")
    return reasons


def _text_column(name: str, values: pd.Series) -> dict[str, Any]:
    # Texts are embedded once, and rows refer to them by number: a tenth of the size for thousands of runs.
    codes, levels = pd.factorize(values)
    return {"name": name, "kind": "text", "levels": list(map(str, levels)), "codes": codes.tolist()}


def _number_column(name: str, values: pd.Series) -> dict[str, Any]:
    return {"name": name, "kind": "number", "values": _json_values(values)}


def _score_values(runs: pd.DataFrame, rows: pd.DataFrame, split: str) -> list[float | None]:
    if rows.empty:
        return [None] * len(runs)
    scores = rows[rows["split"] == split].drop_duplicates("trial").set_index("trial")["value"]
    return _json_values(runs["trial"].map(scores).astype(float).round(DIGITS))


def _json_values(values: pd.Series) -> list[Any]:
    return values.astype(object).where(values.notna(), None).tolist()
