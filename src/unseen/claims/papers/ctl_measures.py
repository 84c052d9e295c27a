"""What claims and figures of the ctl family measure, run by run: the last weights, as the paper reports them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from unseen.analysis.accuracy import CONVERGED, SOLVED
from unseen.claims.claim import Tables
from unseen.claims.papers import label_extremes, option_column, stack_metrics

FUNCTIONS = 32
"""The functions of the paper's world, for which its numbers are printed."""
PUBLISHED_IID = 0.5
"""The IID accuracy above which the authors counted a Transformer."""
SIGNIFICANT = 0.05
"""Groups are apart if shuffled groups are as far apart in fewer than this share of cases."""
IID_SPLIT, OOD_SPLIT = "iid", "ood/transition"


def columns(runs: pd.DataFrame) -> pd.DataFrame:
    """Select the runs on a sampling graph and add `functions`, their number.

    On S, `bridge_size` and `overlap` say whether the bridge and the symbols shared there are the most or the least of
    those that were run; `fewer` marks a bridge that is smaller than the largest.
    """
    runs = runs[runs["task"].isin(["ctl/A", "ctl/R", "ctl/S"])]
    runs = runs.assign(functions=option_column(runs, "task.functions"))
    runs = runs[runs["functions"].notna()].astype({"functions": int})
    for axis, name in (("bridge", "bridge_size"), ("shared", "overlap")):
        if axis in runs:
            runs[name] = label_extremes(runs[axis].astype(float), "most", "least")
    if "bridge_size" in runs:
        runs["fewer"] = np.where(runs["bridge_size"] == "most", "", "fewer")
    return runs


def last_records(records: pd.DataFrame, trials: Iterable[str], factor: str = "") -> pd.DataFrame:
    """Select the records of the last weights of some trials, overall or by a factor."""
    return records[
        (records["selection"] == "last") & (records["factor"] == factor) & records["trial"].isin(list(trials))
    ]


def accuracies(tables: Tables) -> pd.DataFrame:
    """`IID` of every run and whether it `converged`; of converged runs `OOD`, and whether it is `solved`.

    A run that has not learned its task says nothing about what it would do out of distribution. For printed numbers
    there are `IID as published`, `OOD as published` and `solved as published`: those of all Bi-LSTMs and NDRs, and of
    the Transformers with an IID accuracy above 0.5.
    """
    rows = _with_run_columns(last_records(tables.records, tables.runs["trial"]), tables.runs)
    rows = rows[rows["metric"] == "accuracy"]
    iid = rows[rows["split"] == IID_SPLIT]
    ood = rows[rows["split"] == OOD_SPLIT]
    converged = iid["trial"][iid["value"] >= CONVERGED]
    published = iid["trial"][(iid["value"] > PUBLISHED_IID) | (iid["model"] != "ctl-transformer")]
    ood_published = ood[ood["trial"].isin(published)]
    ood = ood[ood["trial"].isin(converged)]
    return stack_metrics(
        {
            "IID": iid,
            "IID as published": iid[iid["trial"].isin(published)],
            "converged": iid.assign(value=(iid["value"] >= CONVERGED).astype(float)),
            "OOD": ood,
            "solved": ood.assign(value=(ood["value"] > SOLVED).astype(float)),
            "OOD as published": ood_published,
            "solved as published": ood_published.assign(value=(ood_published["value"] > SOLVED).astype(float)),
        }
    )


def representations(tables: Tables) -> pd.DataFrame:
    """What the analysis `representation` records of converged runs.

    The `gap` is the cosine of outputs within groups minus that across groups: of all runs, of failed ones alone, and
    against OOD accuracy. Of failed runs also the `cluster gain`, the `group gain`, and how far clusters and groups
    agree; of failed and of solved runs whether the groups are `apart` beyond what shuffled groups would be.
    """
    scores = accuracies(tables)
    ood = scores[scores["metric"] == "OOD"].set_index("trial")["value"]
    rows = _with_run_columns(last_records(tables.records, ood.index), tables.runs)
    measures = {}
    for name in ("gap", "gap_p", "agreement", "cluster_gain", "group_gain"):
        measures[name] = rows[rows["metric"] == f"representation/{name}"]
    gap, apart = measures["gap"], measures["gap_p"]
    apart = apart.assign(value=(apart["value"] < SIGNIFICANT).astype(float))
    failed = rows["trial"][rows["trial"].map(ood) <= SOLVED]

    def of_failed(table: pd.DataFrame) -> pd.DataFrame:
        return table[table["trial"].isin(failed)]

    return stack_metrics(
        {
            "gap": gap,
            "gap of failed runs": of_failed(gap),
            "gap and accuracy": gap.assign(factor="OOD accuracy", level=gap["trial"].map(ood)),
            "cluster gain of failed runs": of_failed(measures["cluster_gain"]),
            "group gain of failed runs": of_failed(measures["group_gain"]),
            "agreement of failed runs": of_failed(measures["agreement"]),
            "groups apart in failed runs": of_failed(apart),
            "groups apart in solved runs": apart[~apart["trial"].isin(failed)],
        }
    )


def by_length(tables: Tables) -> pd.DataFrame:
    """`OOD by length` of converged runs: the accuracy on unseen transitions for every number of functions."""
    scores = accuracies(tables)
    converged = scores["trial"][scores["metric"] == "OOD"]
    rows = _with_run_columns(last_records(tables.records, converged, factor="length"), tables.runs)
    return stack_metrics({"OOD by length": rows[(rows["metric"] == "accuracy") & (rows["split"] == OOD_SPLIT)]})


def length_columns(runs: pd.DataFrame) -> pd.DataFrame:
    """Select the runs of the original task; if both orders of reading were run, those that read backward."""
    runs = runs[runs["task"] == "ctl/lengths"]
    return runs[runs["order"] == "backward"] if "order" in runs else runs


def longer(tables: Tables) -> pd.DataFrame:
    """`longer`: the accuracy on the longest chains, of the weights that did best on somewhat longer ones."""
    rows = tables.records
    rows = rows[
        (rows["selection"] == "best")
        & (rows["metric"] == "accuracy")
        & (rows["factor"] == "")
        & rows["split"].str.match(r"ood/length=\d+(-\d+)?$")
        & rows["trial"].isin(tables.runs["trial"])
    ]
    longest = rows["split"].str.extract(r"(\d+)$")[0].astype(float)
    return rows[longest == longest.groupby(rows["trial"]).transform("max")].assign(metric="longer")


def _with_run_columns(rows: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Add the columns of the runs that the records do not have."""
    new = [name for name in runs if name not in rows or name == "trial"]
    return rows.merge(runs[new], on="trial")
