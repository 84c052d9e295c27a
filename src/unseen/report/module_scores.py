"""What routers, biases and finite data do to modules: specialization and errors of every run, on one scale each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

ALIGNMENT, COLLAPSE = "relative alignment", "collapse"
ERROR, BEYOND = "error", "error out of distribution"
TRAINED, GAP = "error on training data", "gap to training data"
_MODULES = {"specialization/alignment_normalised": ALIGNMENT, "specialization/collapse_avg": COLLAPSE}


def measure_modules(records: pd.DataFrame, selection: str) -> pd.DataFrame:
    """A row per trial with a column for each measure that the records have, besides the columns of the trial itself.

    An error is the share of wrong answers or, in regression, the loss in units of always predicting zero. Relative alignment
    is that of the modules divided by that of uniform weights: 0 for a module per rule, 1 for no specialization. A gap is the
    error in distribution minus that on training data.
    """
    rows = records[(records["selection"] == selection) & (records["factor"] == "") & records["value"].notna()]
    accuracy = rows["metric"] == "accuracy"
    rows = rows.assign(value=np.where(accuracy, 1 - rows["value"], rows["value"]), measure=rows["metric"].map(_MODULES))
    is_error = accuracy | (rows["metric"] == "relative_loss")
    by_split = np.where(
        rows["split"].str.startswith("ood"), BEYOND, rows["split"].map({"iid": ERROR, "train": TRAINED})
    )
    rows["measure"] = rows["measure"].where(~is_error, by_split)
    rows = rows[rows["measure"].notna()]
    values = rows.pivot_table(index="trial", columns="measure", values="value")
    if TRAINED in values:
        values[GAP] = values[ERROR] - values[TRAINED]
    # In the order of the study, which the first rows of the trials have.
    return rows.drop_duplicates("trial").set_index("trial").drop(columns=["measure", "value"]).join(values)


def select_learning_rate(runs: pd.DataFrame, axes: Sequence[str]) -> pd.DataFrame:
    """The runs with the learning rate whose mean error in distribution is the least; of equal ones the smallest rate."""
    means = runs.groupby([*axes, "learning_rate"])[ERROR].mean().reset_index()
    best = means.sort_values([ERROR, "learning_rate"], kind="stable").drop_duplicates(list(axes))
    return runs.reset_index().merge(best[[*axes, "learning_rate"]], on=[*axes, "learning_rate"]).set_index("trial")
