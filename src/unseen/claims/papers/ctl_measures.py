"""What claims and figures of the ctl family measure, run by run: the last weights, as the paper reports them."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from unseen.analysis.accuracy import CONVERGED, SOLVED
from unseen.claims.claim import Tables
from unseen.claims.papers import Sizes, is_reduced, label_extremes, option_column, stack_metrics
from unseen.names import SplitKind, parse_split
from unseen.studies.catalog.ctl import BILSTM, NDR, TRANSFORMER

FUNCTIONS = 32
"""The functions of the paper's world, for which its numbers are printed."""
PUBLISHED_IID = 0.5
"""The IID accuracy above which the authors counted a Transformer."""
PUBLISHED_SEEDS = 25
"""How many Transformers they counted; they trained 50."""
IID = "IID"
"""The measure by which a run has learned its task or not."""
SIGNIFICANT = 0.05
"""Groups are apart if shuffled groups are as far apart in fewer than this share of cases."""
IID_SPLIT, OOD_SPLIT = "iid", "ood/transition"
SIZES: Sizes = {
    "task.symbols": 8,
    "task.functions": FUNCTIONS,
    "task.max_length": 6,
    "task.train_size": 300_000,
    "model.embedding": {BILSTM: 256},
    "model.width": {BILSTM: 128, TRANSFORMER: 128, NDR: 256},
    "model.feedforward": {TRANSFORMER: 256, NDR: 512},
    "model.layers": {TRANSFORMER: 8, NDR: 8},
}
"""The paper's world and models for A, R and S."""
LENGTHS_SIZES: Sizes = {
    "task.symbols": 8,
    "task.composed": 9,
    "task.max_length": 5,
    "model.embedding": {BILSTM: 16},
    "model.width": {BILSTM: 200, TRANSFORMER: 128, NDR: 256},
    "model.feedforward": {TRANSFORMER: 256, NDR: 512},
    "model.layers": {TRANSFORMER: 11, NDR: 14},
}
"""The world and the models published for the original task; a training set of unnamed size is the published one."""


def columns(runs: pd.DataFrame) -> pd.DataFrame:
    """Select the runs on a sampling graph; add `functions`, their number, and whether a run is `reduced`.

    On S, `bridge_size` and `overlap` say whether the bridge and the symbols shared there are the most or the least of
    those that were run; `fewer` marks a bridge that is smaller than the largest.
    """
    runs = runs[runs["task"].isin(["ctl/A", "ctl/R", "ctl/S"])]
    runs = runs.assign(functions=option_column(runs, "task.functions"))
    runs = runs[runs["functions"].notna()].astype({"functions": int})
    runs = runs.assign(reduced=is_reduced(runs, SIZES))
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
    the first 25 Transformers, in the order of their seeds, with an IID accuracy above 0.5.
    """
    rows = _with_run_columns(last_records(tables.records, tables.runs["trial"]), tables.runs)
    rows = rows[rows["metric"] == "accuracy"]
    iid = rows[rows["split"] == IID_SPLIT]
    ood = rows[rows["split"] == OOD_SPLIT]
    converged = iid["trial"][iid["value"] >= CONVERGED]
    published = _counted_in_paper(iid)
    ood_published = ood[ood["trial"].isin(published)]
    ood = ood[ood["trial"].isin(converged)]
    return stack_metrics(
        {
            IID: iid,
            "IID as published": iid[iid["trial"].isin(published)],
            "converged": iid.assign(value=(iid["value"] >= CONVERGED).astype(float)),
            "OOD": ood,
            "solved": ood.assign(value=(ood["value"] > SOLVED).astype(float)),
            "OOD as published": ood_published,
            "solved as published": ood_published.assign(value=(ood_published["value"] > SOLVED).astype(float)),
        }
    )


def _counted_in_paper(iid: pd.DataFrame) -> pd.Series:
    """The trials that the paper would count, of the IID accuracies of all."""
    transformers = iid[(iid["model"] == TRANSFORMER) & (iid["value"] > PUBLISHED_IID)]
    configuration = [name for name in ("task", "bridge", "shared") if name in iid]
    first = transformers.sort_values(["seed", "data_seed"]).groupby(configuration, dropna=False).head(PUBLISHED_SEEDS)
    others = iid[iid["model"] != TRANSFORMER]
    return pd.concat([others, first])["trial"]


def representations(tables: Tables) -> pd.DataFrame:
    """What the analysis `representation` records of converged runs; and `IID` of all runs.

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
    gap = measures["gap"]
    apart = measures["gap_p"].assign(value=(measures["gap_p"]["value"] < SIGNIFICANT).astype(float))
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
            IID: scores[scores["metric"] == IID],
        }
    )


def by_length(tables: Tables) -> pd.DataFrame:
    """`OOD by length` of converged runs: the accuracy on unseen transitions for every number of functions; and `IID`."""
    scores = accuracies(tables)
    converged = scores["trial"][scores["metric"] == "OOD"]
    rows = _with_run_columns(last_records(tables.records, converged, factor="length"), tables.runs)
    rows = rows[(rows["metric"] == "accuracy") & (rows["split"] == OOD_SPLIT)]
    return stack_metrics({"OOD by length": rows, IID: scores[scores["metric"] == IID]})


def length_columns(runs: pd.DataFrame) -> pd.DataFrame:
    """Select the runs of the original task; if both orders of reading were run, those that read backward.

    `reduced` says whether a run is smaller than the published ones.
    """
    runs = runs[runs["task"] == "ctl/lengths"]
    runs = runs[runs["order"] == "backward"] if "order" in runs else runs
    return runs.assign(reduced=is_reduced(runs, LENGTHS_SIZES))


def longer(tables: Tables) -> pd.DataFrame:
    """`longer`: the accuracy on the longest chains, of the weights that did best on somewhat longer ones; and `IID`."""
    rows = tables.records
    rows = rows[
        (rows["selection"] == "best")
        & (rows["metric"] == "accuracy")
        & (rows["factor"] == "")
        & rows["trial"].isin(tables.runs["trial"])
    ]
    length = rows["split"].map(_longest_length).astype(float)
    long = rows[length.notna() & (length == length.groupby(rows["trial"]).transform("max"))]
    return stack_metrics({"longer": long, IID: rows[rows["split"] == IID_SPLIT]})


def _longest_length(split: str) -> float:
    """The most functions of the chains of a split by length alone (`ood/length=9-10`); NaN for other splits."""
    name = parse_split(split)
    if name.kind != SplitKind.OOD or [factor for factor, _ in name.values] != ["length"]:
        return math.nan
    return float(name.values[0][1].rpartition("-")[2])


def _with_run_columns(rows: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Add the columns of the runs that the records do not have."""
    new = [name for name in runs if name not in rows or name == "trial"]
    return rows.merge(runs[new], on="trial")
