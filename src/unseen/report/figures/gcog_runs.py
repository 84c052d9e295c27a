"""The runs behind the figures of the gCOG paper: the last weights of all runs, whether or not they have learned.

Splits, models and the bound for learning are those of the claims of the family (`unseen.claims.papers.gcog_measures`),
which leave out the runs that are drawn as diamonds here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from unseen.claims.papers import gcog_measures as measures
from unseen.claims.papers import option_column
from unseen.claims.papers.gcog_measures import IID, INSIDE, LEARNED, OOD, OUTSIDE, TRAINING, split_numbers
from unseen.names import SplitGroup, is_ood, parse_split
from unseen.report.baselines import CHANCE, mean_baselines, select_baselines, unseen_notes
from unseen.report.charts import ENDED, NOT_CONVERGED, NOT_LEARNED
from unseen.report.data import Source
from unseen.report.theme import title_of
from unseen.studies.catalog.gcog import BERT, MODELS
from unseen.tasks.gcog.audit import compute_operator_chance
from unseen.tasks.gcog.schema import STANDARD

BOUND = f" (less than {100 * LEARNED:.0f} % of the training data right)"


def sort_models(models: Iterable[str]) -> list[str]:
    """Distinct models in the order of the paper, others after them."""
    paper = (*MODELS, BERT)
    present = dict.fromkeys(models)
    return [*(model for model in paper if model in present), *(model for model in present if model not in paper)]


def last_scores(source: Source, runs: pd.DataFrame, metric: str = "accuracy", factor: str = "") -> pd.DataFrame:
    """A metric of the last weights, overall or by the levels of a factor, joined to the runs.

    Adds `series`, the title of the model, and `state`, the state of the run.
    """
    if runs.empty:
        return runs
    records = source.records
    rows = records[(records["selection"] == "last") & (records["factor"] == factor) & (records["metric"] == metric)]
    described = runs.assign(series=runs["model"].map(title_of), state=run_states(source, runs))
    described = described.drop(columns=[name for name in ("split", "level", "value") if name in described])
    return described.merge(rows[["trial", "split", "level", "value"]], on="trial")


def run_states(source: Source, runs: pd.DataFrame) -> pd.Series:
    """The states of runs. A run whose training accuracy was not measured counts as not learned."""
    records = source.records
    training = records[
        (records["selection"] == "last")
        & (records["factor"] == "")
        & (records["metric"] == "accuracy")
        & (records["split"] == "train")
    ].set_index("trial")["value"]
    learned = runs["trial"].map(training).astype(float) >= LEARNED
    states = np.select([~learned, runs["not_converged"] == 1], [NOT_LEARNED, NOT_CONVERGED], ENDED)
    return pd.Series(states, runs.index)


def by_distribution(rows: pd.DataFrame, task: str) -> dict[str, pd.DataFrame]:
    """The rows under the names that the claims use, `TRAINING`, `IID` and `OOD`: means over splits, run by run."""
    groups = {TRAINING: SplitGroup(("train",)), IID: INSIDE[task], OOD: OUTSIDE[task]}
    tables = {}
    for name, splits in groups.items():
        tables[name] = mean_over_splits(rows[[split in splits for split in rows["split"]]])
    return tables


def mean_over_splits(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per run (and level): the mean over its splits."""
    by = ["trial", "level"]
    ordered = rows.sort_values(["trial", "split"], kind="stable")  # so that means do not depend on the order of records
    return ordered.assign(value=ordered.groupby(by)["value"].transform("mean")).drop_duplicates(by).sort_index()


def select_numbered(rows: pd.DataFrame, factor: str) -> pd.DataFrame:
    """The rows on splits with one number of a factor (`iid/distractors=5`), with that `number`."""
    number = split_numbers(rows["split"], factor)
    return rows[number.notna()].assign(number=number.dropna())


def curve_points(source: Source, runs: pd.DataFrame, split: str, metric: str) -> pd.DataFrame:
    """Points of learning curves with the number of `samples` seen: steps times the batch size of the recipe."""
    curves = source.curves()
    points = curves[(curves["split"] == split) & (curves["metric"] == metric) & curves["value"].notna()]
    described = pd.DataFrame(
        {
            "trial": runs["trial"],
            "series": runs["model"].map(title_of),
            "seed": runs["seed"],
            "batch": option_column(runs, "recipe.batch"),
        }
    )
    points = described.merge(points[["trial", "step", "value"]], on="trial")
    return points.assign(samples=points["step"] * points["batch"])


def references(source: Source, runs: pd.DataFrame, splits: Sequence[str]) -> dict[str, float]:
    """Chance as the paper counts it, the best shortcut if it is clearly above, and the oracle, averaged over splits.

    Chance is the accuracy of guessing the answer of a known operator, one of eight that are equally frequent.
    """
    trials = runs["trial"].head(1)
    values = mean_baselines(source, trials, splits)
    if not values:
        return {}
    schema = source.task(trials.iloc[0]).domain  # type: ignore[union-attr]
    chance = compute_operator_chance(schema, dict.fromkeys(STANDARD, 1 / len(STANDARD)))
    return select_baselines(values | {CHANCE: chance})


def describe_unseen(source: Source, runs: pd.DataFrame, splits: Iterable[str]) -> list[str]:
    """Notes on what is unseen in the splits of some runs; splits by number of distractors share one sentence."""
    others = []
    distractors = []
    for name in splits:
        number = parse_split(name).number("distractors")
        if number is not None and is_ood(name):
            distractors.append(number)
        else:
            others.append(name)
    notes = unseen_notes(source.where(source.runs["trial"].isin(runs["trial"])), others)
    if distractors:
        numbers = ", ".join(map(str, sorted(distractors)))
        notes.append(f"ood/distractors={numbers}: nothing is unseen, only the number of distractors shifts")
    return notes


def matching_splits(rows: pd.DataFrame, group: SplitGroup) -> list[str]:
    """The splits of a group that have a record."""
    return [name for name in dict.fromkeys(rows["split"]) if name in group]


def has_paper_grid(runs: pd.DataFrame) -> bool:
    """Whether all runs have a grid of as many cells as the paper's, for which its numbers are printed."""
    return bool(len(runs)) and bool((runs["cells"] == measures.CELLS).all())
