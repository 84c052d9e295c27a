"""What the claims of the gcog family measure, run by run, from the tables of a store: the last weights'.

Generalization is measured of runs that have learned: with at least `LEARNED` of their own training data right. A run
that has not says nothing of what it would do with something new.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from unseen.studies.catalog.gcog import BERT, MODELS
from unseen.studies.claims.claim import Tables
from unseen.tasks.gcog.ceilings import operator_chance
from unseen.tasks.gcog.operators import STANDARD
from unseen.tasks.gcog.schema import FEATURES, Schema

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
"""The conditions behind `IID` and `OOD`, as in the paper's figures: a range of distractors is in none."""

MOST, FEWEST = "most", "fewest"
SMALLEST, LARGEST, FRESH = POOLS = ("smallest", "largest", "fresh")
SETTING = ("model", "preset", "distractors", "coding")
"""In what runs agree that differ in their pool alone."""
_MEASURED = ["selection", "condition", "factor", "level", "metric", "value", "standard_error", "n"]


def minus_chance(metric: str) -> str:
    """The name of a measure from which chance was taken away."""
    return f"{metric} minus chance"


def at_depth(depth: float) -> str:
    """The name of the accuracy on questions of one depth."""
    return f"accuracy at depth {depth:g}"


# -- runs -------------------------------------------------------------------------------------------------------------


def columns(task: str, runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of the paper's six models on one of the tasks, trained on sound and fresh questions, with the `cells` of
    the grid, `chance`, the `split` of operators and objects, the depths `trained_on`, and the kind of `positions`."""
    return _sound(_world(runs[(runs["task"] == task) & runs["model"].isin(MODELS)]))


def layer_columns(task: str, runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of the BERT-like series on one of the tasks, with the place of their numbers of layers and heads among
    those that were run (`many_layers`, `many_heads`)."""
    if not {"layers", "heads"} <= set(runs):
        return _world(runs.iloc[:0])
    found = _sound(_world(runs[(runs["task"] == task) & (runs["model"] == BERT) & runs["layers"].notna()]))
    for axis in ("layers", "heads"):
        number = found[axis].astype(float)
        found[f"many_{axis}"] = np.select([number == number.max(), number == number.min()], [MOST, FEWEST], "between")
    return found


def pool_columns(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs on trees that were made to compare pools of questions, with the place of theirs among the pools."""
    if "pool" not in runs:
        return runs.iloc[:0]
    runs = runs[(runs["task"] == TREES) & runs["pool"].notna()]
    size = pd.to_numeric(runs["pool"], errors="coerce")
    place = np.select([size.isna(), size == size.min(), size == size.max()], [FRESH, SMALLEST, LARGEST], "between")
    return runs.assign(pool_size=place, **{name: "" for name in SETTING if name not in runs})


def _world(runs: pd.DataFrame) -> pd.DataFrame:
    options = runs["task_options"].map(read_options)
    return runs.assign(
        cells=options.map(lambda one: schema_of(one).cells).astype(int),
        chance=options.map(chance_of).astype(float),
        split=options.map(lambda one: one.get("split", "clean")),
        trained_on=options.map(lambda one: " and ".join(map(str, literal_eval(one.get("train_depths", "[1, 3]"))))),
        positions=runs["model_options"].map(lambda text: read_options(text).get("positions", "absolute")),
    )


def _sound(runs: pd.DataFrame) -> pd.DataFrame:
    """Without runs on a pool of questions, or made to compare pools, and without those on what the released code makes."""
    if "pool" in runs:
        runs = runs[runs["pool"].isna()]
    options = runs["task_options"].map(read_options)
    return runs[options.map(lambda one: "pool" not in one and one.get("preset", "clean") == "clean").astype(bool)]


def read_options(text: str) -> dict[str, str]:
    """Options that differ from their defaults, as a table prints them.

    >>> read_options("coding=embedding distractors=[1, 3] grid=[5, 5]")
    {'coding': 'embedding', 'distractors': '[1, 3]', 'grid': '[5, 5]'}
    """
    return dict(re.findall(r"(\w+)=(.*?)(?= \w+=|$)", text))


def schema_of(options: Mapping[str, str]) -> Schema:
    """The features and the grid behind the options.

    >>> schema_of({"grid": "[5, 4]"}).cells, schema_of({}).cells
    (20, 100)
    """
    columns, rows = literal_eval(options.get("grid", "[10, 10]"))
    features = literal_eval(options["features"]) if "features" in options else FEATURES
    return Schema(tuple((name, tuple(values)) for name, values in features), columns, rows)


def chance_of(options: Mapping[str, str]) -> float:
    """What one reaches who knows the operator, one of eight that are equally frequent, and guesses its answer.

    >>> round(chance_of({}), 4)
    0.3311
    """
    return operator_chance(schema_of(options), dict.fromkeys(STANDARD, 1 / len(STANDARD)))


# -- measures ---------------------------------------------------------------------------------------------------------


def accuracies(tables: Tables) -> pd.DataFrame:
    """`TRAINING` of every run that was asked something new; of those that have learned `IID`, `OOD` (means over the
    conditions of the figures), `FIRST` and `SECOND` (the two smallest new numbers of distractors), and `at_depth` each
    depth; what is out of distribution also minus chance.

    `IMPLIED` is the accuracy on one half of the test if the other half is answered as well as the training data.
    """
    rows = _last(tables, ["accuracy"])
    inside, outside = _at(rows, INSIDE), _at(rows, OUTSIDE)
    training = rows[(rows["condition"] == "train") & rows["cell"].isin(outside["cell"])]
    inside, outside = (_learned(found, training) for found in (inside, outside))
    overall = _mean(outside)
    trained = _of(overall, training)
    new = {OOD: overall, **_by_number(outside)}
    lifted = {minus_chance(name): found.assign(value=found["value"] - found["chance"]) for name, found in new.items()}
    return _stacked(
        {
            TRAINING: training,
            IID: _mean(inside),
            **new,
            **lifted,
            IMPLIED: overall.assign(value=2 * overall["value"] - trained),
        }
    )


def similarities(tables: Tables) -> pd.DataFrame:
    """`STIMULUS` and `TARGET`: how much closer training brought the states of learned runs to either (positive)."""
    names = {"similarity/stimulus_alignment": STIMULUS, "similarity/target_alignment": TARGET}
    rows = _last(tables, ["accuracy", *names])
    found = _learned(
        rows[rows["metric"].isin(names)], rows[(rows["metric"] == "accuracy") & (rows["condition"] == "train")]
    )
    return found.assign(metric=found["metric"].map(names))


def gaps(tables: Tables) -> pd.DataFrame:
    """`GAP`: accuracy on the run's own training data minus that on fresh data of the same kind; and `FRESH_TREES`.

    Of all runs, learned or not, of a setting and seed whose smallest pool was learned: elsewhere there is nothing to
    compare with.
    """
    rows = _last(tables, ["accuracy"])
    if "pool_size" not in rows:
        return rows
    training, inside, trees = (rows[rows["condition"] == name] for name in ("train", "iid", "iid/depth=3"))
    by = [*SETTING, "seed", "data_seed"]
    learned = training[(training["pool_size"] == SMALLEST) & (training["value"] >= LEARNED)][by]
    gap = training.assign(value=training["value"] - _of(training, inside))
    return _stacked({GAP: gap.merge(learned, on=by), FRESH_TREES: trees.merge(learned, on=by)})


def _last(tables: Tables, metrics: Sequence[str]) -> pd.DataFrame:
    """Overall records of the last weights of the runs, with the columns of these."""
    records, runs = tables.records, tables.runs
    rows = records[(records["selection"] == "last") & (records["factor"] == "") & records["metric"].isin(metrics)]
    placed = runs.drop(columns=[name for name in _MEASURED if name in runs])
    # Sorted: means round alike whatever the order of the records.
    return placed.merge(rows[["cell", *_MEASURED]], on="cell").sort_values(["cell", "condition"], ignore_index=True)


def _at(rows: pd.DataFrame, conditions: Mapping[str, str]) -> pd.DataFrame:
    """The rows on the conditions that a pattern names for their task."""
    pairs = zip(rows["task"], rows["condition"], strict=True)
    return rows[np.array([bool(re.fullmatch(conditions[task], name)) for task, name in pairs], np.bool_)]


def _learned(rows: pd.DataFrame, training: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["cell"].isin(training["cell"][training["value"] >= LEARNED])]


def _of(rows: pd.DataFrame, others: pd.DataFrame) -> pd.Series:
    """For each row the value that the same run has in another table."""
    return rows["cell"].map(others.set_index("cell")["value"]).astype(float)


def _mean(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per run: the mean over its conditions."""
    return rows.assign(value=rows.groupby("cell")["value"].transform("mean")).drop_duplicates("cell")


def _by_number(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Of deeper trees each depth, of more distractors the first and the second number."""
    number = rows["condition"].str.extract(r"=(\d+)$")[0].astype(float)
    deeper, place = rows["task"] == PRODUCTIVE, number.groupby(rows["cell"]).rank()
    more = rows["task"] == DISTRACTOR
    return {
        **{at_depth(depth): rows[deeper & (number == depth)] for depth in sorted(number[deeper].unique())},
        FIRST: rows[more & (place == 1)],
        SECOND: rows[more & (place == 2)],
    }


def _stacked(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Tables under the names of their metrics, one below the other."""
    return pd.concat([rows.assign(metric=name) for name, rows in tables.items()], ignore_index=True)
