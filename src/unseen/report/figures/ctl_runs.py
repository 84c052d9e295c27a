"""The runs behind the figures of the CTL++ paper: the last weights, and the notes under all its figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pandas as pd

from unseen.analysis.accuracy import CONVERGED
from unseen.claims.papers import option_column
from unseen.claims.papers.ctl_measures import FUNCTIONS
from unseen.report.baselines import unseen_notes
from unseen.report.data import Source
from unseen.report.figure import HOLLOW, run_notes

IID, OOD = "iid", "ood/transition"
NAMES = {"ctl-bilstm": "Bi-LSTM", "ctl-transformer": "Transformer", "ctl-ndr": "NDR"}
"""The paper's names, for text; charts have the models' registered names."""


def last_records(
    source: Source, tasks: Iterable[str], models: Iterable[str] = tuple(NAMES), factor: str = ""
) -> pd.DataFrame:
    """The records of the last weights on some tasks, of some models, overall or by a factor."""
    records = source.records
    if records.empty:
        return records.assign(task="", model="", trial="")
    rows = records[
        (records["selection"] == "last")
        & (records["factor"] == factor)
        & records["task"].isin(list(tasks))
        & records["model"].isin(list(models))
    ]
    return rows.drop_duplicates(["trial", "split", "metric", "level"])


def accuracies(source: Source, tasks: Iterable[str], models: Iterable[str] = tuple(NAMES)) -> pd.DataFrame:
    """A row per run with its `iid` and `ood` accuracy, NaN where it was not tested."""
    rows = last_records(source, tasks, models)
    rows = rows[rows["metric"] == "accuracy"]
    runs = rows.drop_duplicates("trial").drop(columns=["split", "metric", "value"])
    for column, split in (("iid", IID), ("ood", OOD)):
        values = rows[rows["split"] == split].set_index("trial")["value"]
        runs = runs.assign(**{column: runs["trial"].map(values).astype(float)})
    return runs


def notes(
    source: Source,
    drawn: pd.DataFrame,
    tasks: Iterable[str],
    models: Iterable[str] = tuple(NAMES),
    mark: str = HOLLOW,
) -> list[str]:
    """The notes under a figure of the runs in `drawn`.

    They name missing runs, runs that have not converged, a world other than the paper's, pooled axes, and what is
    unseen.
    """
    runs = source.runs[source.runs["task"].isin(list(tasks)) & source.runs["model"].isin(list(models))]
    lines = run_notes(runs, drawn, mark=mark)
    functions = sorted(set(option_column(runs, "task.functions")[runs["trial"].isin(drawn["trial"])].dropna()))
    if functions and functions != [FUNCTIONS]:
        lines.append(f"Here a world has {' or '.join(map(str, functions))} functions; the paper's has {FUNCTIONS}.")
    pooled = []
    for axis in source.axes:
        if axis not in ("task", "model", "bridge", "shared") and runs[axis].nunique(dropna=False) > 1:
            pooled.append(axis)
    if pooled:
        lines.append(f"Pooled over {', '.join(pooled)}, which the paper does not vary.")
    return [*lines, *unseen_notes(replace(source, runs=runs), [IID, OOD])]


def not_learned_notes(rows: pd.DataFrame) -> list[str]:
    """How many runs have not learned their task; empty if all have."""
    number = int((rows["iid"] < CONVERGED).sum())
    return [f"{number} of {len(rows)} runs have an accuracy below {CONVERGED} in distribution."] if number else []
