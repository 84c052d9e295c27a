"""The runs behind the figures of the CTL++ paper, and what must stand under them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pandas as pd

from unseen.metrics.success import CONVERGED
from unseen.report.figures.notes import HOLLOW, run_notes
from unseen.report.references import unseen_notes
from unseen.report.source import Source
from unseen.studies.claims.ctl_measures import FUNCTIONS, functions_of

IID, OOD = "iid", "ood/transition"
WORDS = {IID: "In distribution", OOD: "Unseen transitions"}
NAMES = {"ctl-bilstm": "Bi-LSTM", "ctl-transformer": "Transformer", "ctl-ndr": "NDR"}
"""The paper's names, for prose; charts have the models' own."""


def measured(
    source: Source, tasks: Iterable[str], models: Iterable[str] = tuple(NAMES), factor: str = ""
) -> pd.DataFrame:
    """The records of the last weights on some tasks, of some models, overall or by a factor."""
    records = source.records
    if not len(records):
        return records.assign(task="", model="", cell="")
    rows = records[
        (records["selection"] == "last")
        & (records["factor"] == factor)
        & records["task"].isin(list(tasks))
        & records["model"].isin(list(models))
    ]
    return rows.drop_duplicates(["cell", "condition", "metric", "level"])


def accuracies(source: Source, tasks: Iterable[str], models: Iterable[str] = tuple(NAMES)) -> pd.DataFrame:
    """A row per run with `iid` and `ood` accuracy, NaN where it was not tested."""
    rows = measured(source, tasks, models)
    rows = rows[rows["metric"] == "accuracy"]
    found = rows.drop_duplicates("cell").drop(columns=["condition", "metric", "value"])
    by_condition = {
        name: rows[rows["condition"] == condition].set_index("cell")["value"]
        for name, condition in (("iid", IID), ("ood", OOD))
    }
    return found.assign(**{name: found["cell"].map(values).astype(float) for name, values in by_condition.items()})


def notes(
    source: Source,
    drawn: pd.DataFrame,
    tasks: Iterable[str],
    conditions: Iterable[str],
    models: Iterable[str] = tuple(NAMES),
    mark: str = HOLLOW,
) -> list[str]:
    """What to say under a figure for which the runs in `drawn` were used: missing, still learning, another world than
    the paper's, axes that it pools, and what is unseen."""
    here = source.runs["task"].isin(list(tasks)) & source.runs["model"].isin(list(models))
    wanted = source.runs[here]
    said = run_notes(wanted, drawn, mark=mark)
    worlds = sorted({functions_of(text) for text in drawn["task_options"]})
    if worlds != [FUNCTIONS]:
        said.append(f"Here a world has {' or '.join(map(str, worlds))} functions; the paper's has {FUNCTIONS}.")
    pooled = [
        axis
        for axis in source.axes
        if axis not in ("task", "model", "bridge", "shared") and wanted[axis].nunique(dropna=False) > 1
    ]
    said += [f"Pooled over {', '.join(pooled)}, which the paper does not vary."] if pooled else []
    return [*said, *unseen_notes(replace(source, runs=wanted), conditions)]


def unlearned(rows: pd.DataFrame) -> str:
    """How many runs have not learned their task; '' if all have."""
    number = int((rows["iid"] < CONVERGED).sum())
    return f"{number} of {len(rows)} runs have an accuracy below {CONVERGED} in distribution" if number else ""
