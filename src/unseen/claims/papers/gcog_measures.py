"""What claims and figures of the gcog family measure, run by run: the last weights.

Generalization is measured for runs that have learned, with an accuracy of at least `LEARNED` on their own training
data. A run that has not says nothing about what it would do with something new.

The paper's text has questions drawn on the fly, its released code a fixed pool of them. Runs on fresh, sound questions
show in which direction models differ; numbers that the paper prints are compared with runs in its own setting alone:
preset `released` with its own distractors, its pool, width, coding and number of samples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from unseen.claims.claim import Tables
from unseen.claims.papers import label_extremes, option_column, stack_metrics
from unseen.names import SplitGroup, SplitKind, parse_split
from unseen.studies.catalog import gcog as catalog
from unseen.studies.catalog.gcog import BERT, MODELS, RECURRENT
from unseen.tasks.gcog.audit import compute_operator_chance
from unseen.tasks.gcog.schema import FEATURES, PRESETS, STANDARD, Schema
from unseen.training.recipe import published_recipe

DISTRACTOR, OPERATORS, TREES, PRODUCTIVE = TASKS = catalog.TASKS
LEARNED = 0.90
"""Our bound; the paper's models get more than 0.92 of their training data right."""
CELLS = 100
"""The cells of the paper's grid, for which its numbers are printed."""
OBJECTS = 260
"""The paper's objects: 26 shapes in 10 colours."""
TRAINING_DISTRACTORS = 5
"""The most distractors of the paper's training."""
RECURRENT_WIDTH, WIDTH = 512, 256
HIDDEN, BERT_HIDDEN = 512, 1024
"""The sizes of the paper's models: of states, or of tokens, and of hidden layers."""
CODING = "integer"
SAME_AMOUNT = 0.01
"""Numbers of training samples that differ by less are equal: how many fill the last batch depends on its size."""
FRESH_QUESTIONS = catalog.FRESH
AS_PUBLISHED = catalog.AS_PUBLISHED
"""Levels of `questions`: the questions that a run was trained on."""

TRAINING, IID, OOD = "training accuracy", "IID", "OOD"
FIRST, SECOND = "OOD with the fewest distractors", "OOD with the second fewest distractors"
IMPLIED = "twice OOD minus training accuracy"
STIMULUS, TARGET = "alignment to the stimulus", "alignment to the target"
GAP, FRESH_TREES = "training accuracy minus IID", "IID of trees"

INSIDE = {
    DISTRACTOR: SplitGroup(numbered=((SplitKind.IID, "distractors"),)),
    OPERATORS: SplitGroup(("iid",)),
    TREES: SplitGroup(("iid/depth=3",)),
    PRODUCTIVE: SplitGroup(("iid",)),
}
OUTSIDE = {
    DISTRACTOR: SplitGroup(numbered=((SplitKind.OOD, "distractors"),)),
    OPERATORS: SplitGroup(("ood/operators",)),
    TREES: SplitGroup(("ood/trees",)),
    PRODUCTIVE: SplitGroup(numbered=((SplitKind.OOD, "depth"),)),
}
"""The splits behind `IID` and `OOD`, as in the paper's figures; a range of distractors is in neither."""

MOST, FEWEST = "most", "fewest"
SMALLEST, LARGEST, FRESH = POOLS = ("smallest", "largest", "fresh")
SETTING = ("model", "preset", "distractors", "coding")
"""The columns in which runs agree that differ only in their pool."""
_MEASURED = ["trial", "selection", "split", "factor", "level", "metric"]
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


def claim_columns(task: str, runs: pd.DataFrame) -> pd.DataFrame:
    """Select the runs of `columns`, and beside them those in the paper's own setting (`questions` tells them apart).

    `published_setting` says whether there are such runs: printed numbers are then compared with them. `reduced` says
    whether a run has fewer training samples, a narrower model or a smaller world than the paper's.
    """
    return _add_setting(runs[(runs["task"] == task) & runs["model"].isin(MODELS)])


def layer_columns(task: str, runs: pd.DataFrame) -> pd.DataFrame:
    """Select the runs of the BERT-like series on a task that were trained on sound and fresh questions.

    `many_layers` and `many_heads` say which have the most or the fewest.
    """
    series = _select_series(task, runs)
    return _label_series(_add_world(_select_sound(series)))


def claim_layer_columns(task: str, runs: pd.DataFrame) -> pd.DataFrame:
    """Select the runs of `layer_columns`, and those in the paper's own setting, as `claim_columns` does."""
    return _label_series(_add_setting(_select_series(task, runs)))


def _select_series(task: str, runs: pd.DataFrame) -> pd.DataFrame:
    if not {"layers", "heads"} <= set(runs):
        return runs.iloc[:0].assign(layers=None, heads=None)
    return runs[(runs["task"] == task) & (runs["model"] == BERT) & runs["layers"].notna()]


def _label_series(series: pd.DataFrame) -> pd.DataFrame:
    labels = {}
    for axis in ("layers", "heads"):
        labels[f"many_{axis}"] = label_extremes(series[axis].astype(float), MOST, FEWEST)
    return series.assign(**labels)


def pool_columns(runs: pd.DataFrame) -> pd.DataFrame:
    """Select the runs on trees that compare pools of questions; `pool_size` labels the smallest, largest and fresh."""
    if "pool" not in runs:
        return runs.iloc[:0]
    runs = runs[(runs["task"] == TREES) & runs["pool"].notna()]
    size = pd.to_numeric(runs["pool"], errors="coerce")
    labels = np.select([size.isna(), size == size.min(), size == size.max()], [FRESH, SMALLEST, LARGEST], "between")
    absent = {name: "" for name in SETTING if name not in runs}
    return runs.assign(pool_size=labels, reduced=is_reduced(runs), **absent)


def chance_of(grid: tuple[int, int], features: Any = FEATURES) -> float:
    """Return the accuracy of guessing the answer of a known operator, of eight that are equally frequent.

    >>> round(chance_of((10, 10)), 4)
    0.3311
    """
    return compute_operator_chance(_schema(grid, features), dict.fromkeys(STANDARD, 1 / len(STANDARD)))


def _schema(grid: tuple[int, int], features: Any) -> Schema:
    return Schema(tuple((name, tuple(values)) for name, values in features), *grid)


def _add_world(runs: pd.DataFrame) -> pd.DataFrame:
    cells = []
    chance = []
    trained_on = []
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
        hold_out=_hold_outs(runs),
        trained_on=pd.Series(trained_on, runs.index, dtype=object),
        # Recurrent models have no such option: they are compared with absolute positions.
        positions=option_column(runs, "model.positions", "absolute"),
    )


def _hold_outs(runs: pd.DataFrame) -> pd.Series:
    """The hold-out of operators and objects; None means that of the preset."""
    by_preset = {name: preset.hold_out for name, preset in PRESETS.items()}
    chosen = option_column(runs, "task.split")
    return chosen.where(chosen.notna(), option_column(runs, "task.preset", "clean").map(by_preset))


def _select_sound(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[_is_sound(runs)]


def _is_sound(runs: pd.DataFrame) -> pd.Series:
    """Not on a pool of questions, nor made to compare pools, nor on the released code's questions."""
    fresh = option_column(runs, "task.pool").isna()
    clean = option_column(runs, "task.preset") == "clean"
    sound: pd.Series = fresh & clean & option_column(runs, "task.grid").notna()
    return sound & runs["pool"].isna() if "pool" in runs else sound


def _add_setting(runs: pd.DataFrame) -> pd.DataFrame:
    """Select sound runs and those in the paper's own setting, and add all columns of a claim."""
    if "trial" in runs:
        # A run that was evaluated for two studies is in the table twice.
        runs = runs.drop_duplicates("trial")
    as_published = is_published(runs)
    selected = _is_sound(runs) | as_published
    questions = np.where(as_published, AS_PUBLISHED, FRESH_QUESTIONS)
    runs = runs.assign(questions=pd.Series(questions, runs.index, dtype=object))[selected]
    published_setting = pd.Series([bool(as_published.any())] * len(runs), runs.index, dtype=object)
    return _add_world(runs).assign(published_setting=published_setting, reduced=is_reduced(runs))


# -- the paper's own setting ------------------------------------------------------------------------------------------


def is_published(runs: pd.DataFrame) -> pd.Series:
    """Whether runs have the paper's pool of questions, width, coding and number of samples, as its code had them."""
    released = option_column(runs, "task.preset") == "released"
    as_preset = pd.Series(True, runs.index)
    for option in ("task.distractors", "task.task_shapes", "task.train_size"):
        as_preset &= option_column(runs, option).isna()
    pool = _numbers(option_column(runs, "task.pool")) == runs["task"].map(catalog.RELEASED_POOLS)
    coding = option_column(runs, "task.coding") == CODING
    width = _numbers(option_column(runs, "model.width")) == _paper_widths(runs)
    recurrent = runs["model"].isin(RECURRENT)
    hidden = recurrent | (_numbers(option_column(runs, "model.hidden")) == _paper_hidden(runs))
    amount = (_relative_samples(runs) - 1).abs() <= SAME_AMOUNT
    return released & as_preset & pool & coding & width & hidden & amount


def is_reduced(runs: pd.DataFrame) -> pd.Series:
    """Whether runs have fewer training samples, a narrower model or a smaller world than the paper's.

    A world is smaller with fewer cells or objects, or with fewer distractors in training. What is not known of a run
    does not count.
    """
    smaller = []
    worlds = zip(
        option_column(runs, "task.grid"),
        option_column(runs, "task.features"),
        option_column(runs, "task.distractors"),
        strict=True,
    )
    for grid, features, distractors in worlds:
        cells = CELLS if grid is None else math.prod(grid)
        objects = OBJECTS if features is None else math.prod(len(values) for _, values in features)
        most = TRAINING_DISTRACTORS if distractors is None else max(distractors)
        smaller.append(cells < CELLS or objects < OBJECTS or most < TRAINING_DISTRACTORS)
    narrower = _numbers(option_column(runs, "model.width")) < _paper_widths(runs)
    narrower |= _numbers(option_column(runs, "model.hidden")) < _paper_hidden(runs)
    fewer = _relative_samples(runs) < 1 - SAME_AMOUNT
    return pd.Series(smaller, runs.index, dtype=bool) | narrower | fewer


def _paper_widths(runs: pd.DataFrame) -> pd.Series:
    return pd.Series(np.where(runs["model"].isin(RECURRENT), RECURRENT_WIDTH, WIDTH), runs.index)


def _paper_hidden(runs: pd.DataFrame) -> pd.Series:
    return pd.Series(np.where(runs["model"] == BERT, BERT_HIDDEN, HIDDEN), runs.index)


def _relative_samples(runs: pd.DataFrame) -> pd.Series:
    """The number of training samples in units of the paper's; missing where the recipe is not known."""
    samples = _numbers(option_column(runs, "recipe.steps")) * _numbers(option_column(runs, "recipe.batch"))
    of_paper = {}
    for task, model in set(zip(runs["task"], runs["model"], strict=True)):
        recipe = published_recipe(task, model)
        of_paper[task, model] = math.nan if recipe is None else float(recipe.steps * recipe.batch)
    pairs = zip(runs["task"], runs["model"], strict=True)
    return samples / pd.Series([of_paper[pair] for pair in pairs], runs.index, dtype=float)


def _numbers(values: pd.Series) -> pd.Series:
    return pd.to_numeric(values, errors="coerce")


# -- measures ---------------------------------------------------------------------------------------------------------


def accuracies(tables: Tables) -> pd.DataFrame:
    """`TRAINING` of every run that was tested on something new; `IID`, `OOD` and more of those that have learned.

    `IID` and `OOD` are means over the splits of the figures, `FIRST` and `SECOND` are the two smallest new numbers of
    distractors, and `at_depth` is the accuracy at each depth. What is out of distribution is also given minus chance.
    `IMPLIED` is the accuracy on half of the test if the other half is answered as well as the training data.
    """
    rows = last_records(tables, ["accuracy"])
    inside = rows[_matches(rows, INSIDE)]
    outside = rows[_matches(rows, OUTSIDE)]
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
    """`STIMULUS` and `TARGET`: how much closer training brought the states of learned runs to either (positive).

    `TRAINING` is that of every run whose states were compared, learned or not.
    """
    names = {"similarity/stimulus_alignment": STIMULUS, "similarity/target_alignment": TARGET}
    rows = last_records(tables, ["accuracy", *names])
    training = rows[(rows["metric"] == "accuracy") & (rows["split"] == "train")]
    alignments = rows[rows["metric"].isin(names)]
    training = training[training["trial"].isin(alignments["trial"])]
    alignments = _select_learned(alignments, training)
    alignments = alignments.assign(metric=alignments["metric"].map(names))
    return pd.concat([training.assign(metric=TRAINING), alignments], ignore_index=True)


def gaps(tables: Tables) -> pd.DataFrame:
    """`GAP`: accuracy on the run's own training data minus that on fresh data of the same kind; and `FRESH_TREES`.

    Of all runs, learned or not, in a setting and seed whose smallest pool was learned; elsewhere there is nothing to
    compare with. `TRAINING` is that of all runs: with fresh questions the gap of a run that learned nothing is none.
    """
    rows = last_records(tables, ["accuracy"])
    if "pool_size" not in rows:
        return rows
    training = rows[rows["split"] == "train"]
    by = [*SETTING, "seed", "data_seed"]
    learned = training[(training["pool_size"] == SMALLEST) & (training["value"] >= LEARNED)][by]
    gap = training.assign(value=training["value"] - _value_of(training, rows[rows["split"] == "iid"]))
    trees = rows[rows["split"] == "iid/depth=3"]
    return stack_metrics({TRAINING: training, GAP: gap.merge(learned, on=by), FRESH_TREES: trees.merge(learned, on=by)})


def last_records(tables: Tables, metrics: Sequence[str], factor: str = "") -> pd.DataFrame:
    """Select records of the last weights of the runs, overall or by a factor, with the columns of the runs."""
    records = tables.records
    runs = tables.runs
    rows = records[(records["selection"] == "last") & (records["factor"] == factor) & records["metric"].isin(metrics)]
    runs = runs.drop(columns=[name for name in _RECORD if name in runs])
    # Sorted, so that means round alike in any order of the records; and once, where a run was evaluated twice.
    rows = rows[["trial", *_RECORD]].sort_values(["trial", "split", "n"]).drop_duplicates(_MEASURED)
    return runs.merge(rows, on="trial").sort_values(["trial", "split"], ignore_index=True)


def mean_over_splits(rows: pd.DataFrame, by: Sequence[str] = ("trial",)) -> pd.DataFrame:
    """Return one row per run (and level, if asked for): the mean over its splits."""
    columns = list(by)
    return rows.assign(value=rows.groupby(columns)["value"].transform("mean")).drop_duplicates(columns)


def split_numbers(splits: pd.Series, factor: str) -> pd.Series:
    """Return the number that each split has of a factor, such as 5 in `ood/depth=5`; NaN where it has none."""
    numbers = {split: parse_split(split).number(factor) for split in splits.unique()}
    return splits.map(numbers).astype(float)


def _matches(rows: pd.DataFrame, groups: Mapping[str, SplitGroup]) -> Any:
    """Whether each row is on a split of the group of its task."""
    pairs = zip(rows["task"], rows["split"], strict=True)
    return np.array([split in groups[task] for task, split in pairs], np.bool_)


def _select_learned(rows: pd.DataFrame, training: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["trial"].isin(training["trial"][training["value"] >= LEARNED])]


def _value_of(rows: pd.DataFrame, others: pd.DataFrame) -> pd.Series:
    """For each row, the value that the same run has in another table."""
    return rows["trial"].map(others.set_index("trial")["value"]).astype(float)


def _by_number(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Of deeper trees every depth, of more distractors the first and the second number."""
    deeper = rows["task"] == PRODUCTIVE
    more = rows["task"] == DISTRACTOR
    number = split_numbers(rows["split"], "depth").where(deeper, split_numbers(rows["split"], "distractors"))
    rank = number.groupby(rows["trial"]).rank()
    tables = {}
    for depth in sorted(number[deeper].unique()):
        tables[at_depth(depth)] = rows[deeper & (number == depth)]
    tables[FIRST] = rows[more & (rank == 1)]
    tables[SECOND] = rows[more & (rank == 2)]
    return tables
