"""The CTL++ paper's table 1: accuracy in distribution and on unseen transitions, every seed as a dot."""

from __future__ import annotations

from itertools import product

import pandas as pd

from unseen.report.figure import Drawing
from unseen.report.figures.ctl_runs import IID, NAMES, OOD, WORDS, accuracies, notes, unlearned
from unseen.report.figures.rows import LEARNING, PRINTED, Measure, Panel, row_panels, table
from unseen.report.panels import ENDED
from unseen.report.references import drawn, measured
from unseen.report.source import Source
from unseen.studies.claims.ctl import TABLE1

TASKS = {f"ctl/{name}": f"{name}, groups {'alternate' if name == 'A' else 'repeat'}" for name in TABLE1}
PRINTED_IID = (1.0, 0.0)
"""Printed for all models on both tasks, but for a deviation of 0.01 of the NDR on R."""
MEASURE = Measure("accuracy", (0.0, 1.0))


def table1(source: Source) -> Drawing | None:
    """A panel for each variant and condition: dots, means with intervals, what the paper prints, chance and oracle."""
    wide = accuracies(source, TASKS)
    wide = wide.assign(
        series=wide["model"], row=wide["model"], state=wide["still_learning"].eq(1).map({True: LEARNING, False: ENDED})
    )
    panels, tables = [], []
    for (task, words), (name, condition) in product(TASKS.items(), (("iid", IID), ("ood", OOD))):
        rows = wide.assign(value=wide[name])[(wide["task"] == task) & wide[name].notna()]
        if len(rows):
            lines = drawn(measured(source, rows["cell"], [condition]))
            panels.append(
                Panel(
                    f"{words}: {WORDS[condition].lower()}", rows, lines, _printed(task, condition, set(rows["model"]))
                )
            )
            told = table(panels[-1:]).assign(task=task, condition=condition)
            spread = told["model"].map(rows.groupby("model")["value"].std())
            tables.append(told.assign(deviation=spread.where(told["what"] == "mean")))
    if not panels:
        return None
    models = [model for model in NAMES if (wide["model"] == model).any()]
    said = [f"{text}." for text in [unlearned(wide)] if text]
    return Drawing(
        row_panels(panels, models, models, MEASURE, columns=2, width=320),
        pd.concat(tables, ignore_index=True),
        (*said, *notes(source, wide, TASKS, [IID, OOD])),
    )


def _printed(task: str, condition: str, models: set[str]) -> pd.DataFrame:
    """The paper's numbers as marks."""
    found = {model: TABLE1[task.removeprefix("ctl/")][model] if condition == OOD else PRINTED_IID for model in models}
    return pd.DataFrame(
        [
            {
                "row": model,
                "value": value,
                "low": value - spread,
                "high": min(1.0, value + spread),
                "mark": PRINTED,
                "what": "printed",
                "say": "printed mean",
            }
            for model, (value, spread) in found.items()
        ]
    )
