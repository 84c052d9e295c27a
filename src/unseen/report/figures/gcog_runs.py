"""What figures of the gcog family show, run by run: the last weights' numbers of all runs, learned or not.

The same conditions, models and bound as the claims of the family (`studies/claims/gcog_measures.py`), which leave out
what is drawn hollow here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from unseen.report.figures.rows import LEARNING, UNLEARNED
from unseen.report.layout import batch_of
from unseen.report.panels import ENDED
from unseen.report.references import CHANCE, drawn, measured, unseen_notes
from unseen.report.source import Source
from unseen.report.theme import title_of
from unseen.studies.catalog.gcog import BERT, MODELS
from unseen.studies.claims import gcog_measures as measures
from unseen.studies.claims.gcog_measures import IID, INSIDE, LEARNED, OOD, OUTSIDE, TRAINING

BOUND = f" (less than {100 * LEARNED:.0f} % of the training data right)"
PARTS = {TRAINING: "training", IID: "IID", OOD: "OOD"}


def order(models: Sequence[str]) -> list[str]:
    """Models in the order of the paper, others after them."""
    known = [model for model in (*MODELS, BERT) if model in set(models)]
    return [*known, *(model for model in dict.fromkeys(models) if model not in known)]


def last(source: Source, runs: pd.DataFrame, metric: str = "accuracy", factor: str = "") -> pd.DataFrame:
    """A metric of the last weights of some runs, overall or by the levels of a factor, beside what the runs are; with
    `series`, what people call the model, and `state`, what became of the run."""
    records = source.records
    rows = records[(records["selection"] == "last") & (records["factor"] == factor) & (records["metric"] == metric)]
    told = runs.assign(series=runs["model"].map(title_of), state=states(source, runs))
    kept = ["cell", "condition", "level", "value"]
    return told.drop(columns=[name for name in kept[1:] if name in told]).merge(rows[kept], on="cell")


def states(source: Source, runs: pd.DataFrame) -> pd.Series:
    """What became of runs. One whose training accuracy was not measured is not known to have learned."""
    records = source.records
    training = records[
        (records["selection"] == "last")
        & (records["factor"] == "")
        & (records["metric"] == "accuracy")
        & (records["condition"] == "train")
    ].set_index("cell")["value"]
    learned = runs["cell"].map(training).astype(float) >= LEARNED
    return pd.Series(np.select([~learned, runs["still_learning"] == 1], [UNLEARNED, LEARNING], ENDED), runs.index)


def in_parts(rows: pd.DataFrame, task: str) -> dict[str, pd.DataFrame]:
    """The rows by what the claims call them, `TRAINING`, `IID` and `OOD`: of several conditions their mean, run by run
    (and level by level)."""
    patterns = {TRAINING: "train", IID: INSIDE[task], OOD: OUTSIDE[task]}
    return {part: mean_of(rows[rows["condition"].str.fullmatch(pattern)]) for part, pattern in patterns.items()}


def mean_of(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per run (and level): the mean over its conditions."""
    by = ["cell", "level"]
    ordered = rows.sort_values(["cell", "condition"], kind="stable")  # means round alike in any order of the records
    return ordered.assign(value=ordered.groupby(by)["value"].transform("mean")).drop_duplicates(by).sort_index()


def numbered(rows: pd.DataFrame, pattern: str) -> pd.DataFrame:
    """The rows on conditions that end in one number (`iid/distractors=5`), with that `number`."""
    number = rows["condition"].str.extract(pattern)[0]
    return rows[number.notna()].assign(number=number.dropna().astype(float))


def curve_points(source: Source, runs: pd.DataFrame, condition: str, metric: str) -> pd.DataFrame:
    """Points of learning curves with the `samples` that were seen: steps times the batch of the recipe."""
    curves = source.curves()
    points = curves[(curves["condition"] == condition) & (curves["metric"] == metric)]
    told = pd.DataFrame(
        {
            "cell": runs["cell"],
            "series": runs["model"].map(title_of),
            "seed": runs["seed"],
            "batch": runs["recipe_options"].map(batch_of),
        }
    )
    found = told.merge(points[["cell", "step", "value"]], on="cell")
    return found.assign(samples=found["step"] * found["batch"])


def shortcut_lines(source: Source, runs: pd.DataFrame, conditions: Sequence[str]) -> dict[str, float]:
    """What can be had without the task, on average over some conditions: chance as the paper counts it, the best
    shortcut where that is clearly more, and the oracle."""
    values = measured(source, runs["cell"].head(1), conditions)
    return (
        drawn(values | {CHANCE: measures.chance_of(measures.read_options(runs["task_options"].iloc[0]))})
        if values
        else {}
    )


def unseen(source: Source, runs: pd.DataFrame, conditions: Iterable[str]) -> list[str]:
    """What is unseen in the conditions of some runs; numbers of distractors, none of which is, in one sentence."""
    wanted = list(conditions)
    crowded = [name for name in wanted if re.fullmatch(OUTSIDE[measures.DISTRACTOR], name)]
    found = unseen_notes(
        source.where(source.runs["cell"].isin(runs["cell"])), [name for name in wanted if name not in crowded]
    )
    numbers = ", ".join(map(str, sorted(int(name.rpartition("=")[2]) for name in crowded)))
    return [
        *found,
        *([f"ood/distractors={numbers}: nothing is unseen, only the number of distractors shifts"] if crowded else []),
    ]


def conditions_of(rows: pd.DataFrame, pattern: str) -> list[str]:
    """The conditions with a record that a pattern names."""
    return [name for name in dict.fromkeys(rows["condition"]) if re.fullmatch(pattern, name)]


def papers_world(runs: pd.DataFrame) -> bool:
    """Whether all these runs are about a grid of as many cells as the paper's, for which its numbers are printed."""
    return bool(len(runs)) and bool((runs["cells"] == measures.CELLS).all())
