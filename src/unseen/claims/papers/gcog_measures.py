"""What claims and figures of the gcog family measure, run by run: the last weights.

Generalization is measured for runs that have learned, with an accuracy of at least `LEARNED` on their own training
data. A run that has not says nothing about what it would do with something new.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from unseen.claims.claim import Tables
from unseen.claims.papers import label_extremes, option_column, stack_metrics
from unseen.studies.catalog.gcog import BERT, MODELS
from unseen.tasks.gcog.audit import compute_operator_chance
from unseen.tasks.gcog.schema import FEATURES, STANDARD, Schema

DISTRACTOR, OPERATORS, TREES, PRODUCTIVE = TASKS = (
    "gcog/distractor",
    "gcog/systematic-operators",
    "gcog/systematic-trees",
    "gcog/productive",
)
LEARNED = 0.90
"""Our bound; the paper's models get more than 0.92 of their training data right."""
CELLS = 100
"""The cells of the paper's grid, for which its numbers are printed."""

TRAINING, IID, OOD = "training accuracy", "IID", "OOD"
FIRST, SECOND = "OOD with the fewest distractors", "OOD with the second fewest distractors"
IMPLIED = "twice OOD minus training accuracy"
STIMULUS, TARGET = "alignment to the stimulus", "alignment to the target"
GAP, FRESH_TREES = "training accuracy minus IID", "IID of trees"

INSIDE = {DISTRACTOR: r"iid/distractors=\d+", OPERATORS: "iid", TREES: "iid/depth=3", PRODUCTIVE: "iid"}
OUTSIDE = {
    DISTRACTOR: r"ood/distractors=\d+",
    OPERATORS: "ood/operators",
    TREES: "ood/trees",
    PRODUCTIVE: r"ood/depth=\d+",
}
"""Patterns of the splits behind `IID` and `OOD`, as in the paper's figures; a range of distractors is in neither."""

MOST, FEWEST = "most", "fewest"
SMALLEST, LARGEST, FRESH = POOLS = ("smallest", "largest", "fresh")
SETTING = ("model", "preset", "distractors", "coding")
"""The columns in which runs agree that differ only in their pool."""
_RECORD = ["selection", "split", "factor", "level", "metric", "value", "standard_error", "n"]


def minus_chance(metric: str) -> str:
    """Return the name of a measure from which chance was subtracted."""
    return f"{metric} minus chance"


def at_depth(depth: float) -> str:
    """Return the name of the accuracy on questions of one depth."""
    return f"accuracy at depth {depth:g}"


# -- runs -------------------------------------------------------------------------------------------------------------


def columns(task: str, runs: pd.DataFrame) -> pd.DataFrame:
    """Select the runs of the paper's six models on a task that were trained on sound and fresh questions.

    Adds the `cells` of the grid, `chance`, the `hold_out` of operators and objects, the depths `trained_on`, and the
    kind of `positions`.
    """
    return _add_world(_select_sound(runs[(runs["task"] == task) & runs["model"].isin(MODELS)]))


def layer_columns(task: str, runs: pd.DataFrame) -> pd.DataFrame:
    """Select the runs of the BERT-like series on a task; `many_layers` and `many_heads` say which have the most or the
    fewest."""
    if not {"layers", "heads"} <= set(runs):
        return _add_world(runs.iloc[:0])
    series = runs[(runs["task"] == task) & (runs["model"] == BERT) & runs["layers"].notna()]
    series = _add_world(_select_sound(series))
    for axis in ("layers", "heads"):
        series[f"many_{axis}"] = label_extremes(series[axis].astype(float), MOST, FEWEST)
    return series


def pool_columns(runs: pd.DataFrame) -> pd.DataFrame:
    """Select the runs on trees that compare pools of questions; `pool_size` labels the smallest, largest and fresh."""
    if "pool" not in runs:
        return runs.iloc[:0]
    runs = runs[(runs["task"] == TREES) & runs["pool"].notna()]
    size = pd.to_numeric(runs["pool"], errors="coerce")
    labels = np.select([size.isna(), size == size.min(), size == size.max()], [FRESH, SMALLEST, LARGEST], "between")
    absent = {name: "" for name in SETTING if name not in runs}
    return runs.assign(pool_size=labels, **absent)


def chance_of(grid: tuple[int, int], features: Any = FEATURES) -> float:
    """Return the accuracy of guessing the answer of a known operator, of eight that are equally frequent.

    >>> round(chance_of((10, 10)), 4)
    0.3311
    """
    return compute_operator_chance(_schema(grid, features), dict.fromkeys(STANDARD, 1 / len(STANDARD)))


def _schema(grid: tuple[int, int], features: Any) -> Schema:
    return Schema(tuple((name, tuple(values)) for name, values in features), *grid)


def _add_world(runs: pd.DataFrame) -> pd.DataFrame:
    cells, chance, trained_on = [], [], []
    grids = option_column(runs, "task.grid")
    features = option_column(runs, "task.features")
    depths = option_column(runs, "task.train_depths")
    for grid, values, train_depths in zip(grids, features, depths, strict=True):
        cells.append(_schema(grid, values).cells)
        chance.append(chance_of(grid, values))
        trained_on.append(" and ".join(str(depth) for depth in train_depths or ()))
    return runs.assign(
        cells=pd.Series(cells, runs.index, dtype=int),
        chance=pd.Series(chance, runs.index, dtype=float),
        # None means that of the preset, and only runs of the preset `clean` are selected.
        hold_out=option_column(runs, "task.split", "clean"),
        trained_on=pd.Series(trained_on, runs.index, dtype=object),
        # Recurrent models have no such option: they are compared with absolute positions.
        positions=option_column(runs, "model.positions", "absolute"),
    )


def _select_sound(runs: pd.DataFrame) -> pd.DataFrame:
    """Leave out runs on a pool of questions, or made to compare pools, and those on the released code's questions."""
    if "pool" in runs:
        runs = runs[runs["pool"].isna()]
    fresh = option_column(runs, "task.pool").isna()
    clean = option_column(runs, "task.preset") == "clean"
    return runs[fresh & clean & option_column(runs, "task.grid").notna()]


# -- measures ---------------------------------------------------------------------------------------------------------


def accuracies(tables: Tables) -> pd.DataFrame:
    """`TRAINING` of every run that was tested on something new; `IID`, `OOD` and more of those that have learned.

    `IID` and `OOD` are means over the splits of the figures, `FIRST` and `SECOND` are the two smallest new numbers of
    distractors, and `at_depth` is the accuracy at each depth. What is out of distribution is also given minus chance.
    `IMPLIED` is the accuracy on half of the test if the other half is answered as well as the training data.
    """
    rows = last_records(tables, ["accuracy"])
    inside, outside = rows[_matches(rows, INSIDE)], rows[_matches(rows, OUTSIDE)]
    training = rows[(rows["split"] == "train") & rows["trial"].isin(outside["trial"])]
    inside = _select_learned(inside, training)
    outside = _select_learned(outside, training)
    overall = mean_over_splits(outside)
    measures = {TRAINING: training, IID: mean_over_splits(inside)}
    new = {OOD: overall, **_by_number(outside)}
    measures |= new
    for name, table in new.items():
        measures[minus_chance(name)] = table.assign(value=table["value"] - table["chance"])
    measures[IMPLIED] = overall.assign(value=2 * overall["value"] - _value_of(overall, training))
    return stack_metrics(measures)


def similarities(tables: Tables) -> pd.DataFrame:
    """`STIMULUS` and `TARGET`: how much closer training brought the states of learned runs to either (positive)."""
    names = {"similarity/stimulus_alignment": STIMULUS, "similarity/target_alignment": TARGET}
    rows = last_records(tables, ["accuracy", *names])
    training = rows[(rows["metric"] == "accuracy") & (rows["split"] == "train")]
    alignments = _select_learned(rows[rows["metric"].isin(names)], training)
    return alignments.assign(metric=alignments["metric"].map(names))


def gaps(tables: Tables) -> pd.DataFrame:
    """`GAP`: accuracy on the run's own training data minus that on fresh data of the same kind; and `FRESH_TREES`.

    Of all runs, learned or not, in a setting and seed whose smallest pool was learned; elsewhere there is nothing to
    compare with.
    """
    rows = last_records(tables, ["accuracy"])
    if "pool_size" not in rows:
        return rows
    training = rows[rows["split"] == "train"]
    by = [*SETTING, "seed", "data_seed"]
    learned = training[(training["pool_size"] == SMALLEST) & (training["value"] >= LEARNED)][by]
    gap = training.assign(value=training["value"] - _value_of(training, rows[rows["split"] == "iid"]))
    trees = rows[rows["split"] == "iid/depth=3"]
    return stack_metrics({GAP: gap.merge(learned, on=by), FRESH_TREES: trees.merge(learned, on=by)})


def last_records(tables: Tables, metrics: Sequence[str], factor: str = "") -> pd.DataFrame:
    """Select records of the last weights of the runs, overall or by a factor, with the columns of the runs."""
    records, runs = tables.records, tables.runs
    rows = records[(records["selection"] == "last") & (records["factor"] == factor) & records["metric"].isin(metrics)]
    runs = runs.drop(columns=[name for name in _RECORD if name in runs])
    # Sorted, so that means round alike in any order of the records.
    return runs.merge(rows[["trial", *_RECORD]], on="trial").sort_values(["trial", "split"], ignore_index=True)


def training_accuracy(records: pd.DataFrame) -> pd.Series:
    """Return the accuracy of the last weights on their own training data, by trial."""
    rows = records[
        (records["selection"] == "last")
        & (records["factor"] == "")
        & (records["metric"] == "accuracy")
        & (records["split"] == "train")
    ]
    return rows.set_index("trial")["value"]


def mean_over_splits(rows: pd.DataFrame, by: Sequence[str] = ("trial",)) -> pd.DataFrame:
    """Return one row per run (and level, if asked for): the mean over its splits."""
    columns = list(by)
    return rows.assign(value=rows.groupby(columns)["value"].transform("mean")).drop_duplicates(columns)


def _matches(rows: pd.DataFrame, patterns: Mapping[str, str]) -> Any:
    """Whether each row is on a split that the pattern of its task names."""
    pairs = zip(rows["task"], rows["split"], strict=True)
    return np.array([bool(re.fullmatch(patterns[task], split)) for task, split in pairs], np.bool_)


def _select_learned(rows: pd.DataFrame, training: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["trial"].isin(training["trial"][training["value"] >= LEARNED])]


def _value_of(rows: pd.DataFrame, others: pd.DataFrame) -> pd.Series:
    """For each row, the value that the same run has in another table."""
    return rows["trial"].map(others.set_index("trial")["value"]).astype(float)


def _by_number(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Of deeper trees every depth, of more distractors the first and the second number."""
    number = rows["split"].str.extract(r"=(\d+)$")[0].astype(float)
    deeper = rows["task"] == PRODUCTIVE
    more = rows["task"] == DISTRACTOR
    rank = number.groupby(rows["trial"]).rank()
    tables = {}
    for depth in sorted(number[deeper].unique()):
        tables[at_depth(depth)] = rows[deeper & (number == depth)]
    tables[FIRST] = rows[more & (rank == 1)]
    tables[SECOND] = rows[more & (rank == 2)]
    return tables
