"""The results of an exam: scores by ability, the bounds between which they lie, and the reference beside them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from unseen.exam import reference as exam_reference
from unseen.exam.exam import ABILITIES, IID, INSIDE, LEARNED, METRICS, compute_digest, readings
from unseen.names import bare_name
from unseen.report.baselines import CHANCE, ORACLE, shortcut_accuracies, task_baselines
from unseen.report.data import Source, means
from unseen.stats import FEWEST
from unseen.stats.ranking import Relation, pooled_deviation, relate, smallest_difference
from unseen.tasks.base import Task

STUDIES = ("exam", "exam-zoo")
COLUMNS = [
    *["model", "ability", "test", "task", "split", "metric", "seed", "value"],
    *["learned", "not_converged", "scale", "digest", "trial"],
]
REFERENCE = "reference"


@dataclass(frozen=True)
class ExamResults:
    """The results of an exam.

    `scores` has a line per run and ability with `COLUMNS`, `reference` the same for the shipped backbones on equal
    tests. `bounds` has a line per ability and test with `chance`, the best `shortcut` and its accuracy (`ceiling`), and
    the `oracle`. `untraced` maps (model, ability) to the activations that the model does not report.
    """

    scores: pd.DataFrame
    reference: pd.DataFrame
    bounds: pd.DataFrame
    untraced: dict[tuple[str, str], str]
    notes: tuple[str, ...]

    @property
    def counted(self) -> pd.DataFrame:
        """The scores that count, with the column `group`, `exam` or `reference`.

        In distribution these are the scores of all runs, elsewhere those of the runs that have learned in distribution.
        """
        groups = [self.scores.assign(group="exam"), self.reference.assign(group=REFERENCE)]
        scores = pd.concat(groups, ignore_index=True)
        return scores[(scores["ability"] == INSIDE) | (scores["learned"] == 1)]


def is_exam(source: Source) -> bool:
    """Whether a directory holds an exam."""
    return bare_name(source.name) in STUDIES


def read_exam(source: Source, reference: pd.DataFrame | None = None) -> ExamResults | None:
    """The results of the exam in a directory; None if it holds no exam, or if none of its runs has ended."""
    if not is_exam(source):
        return None
    scores = _read_scores(source)
    if scores.empty:
        return None
    shipped = exam_reference.read() if reference is None else reference
    # The zoo is the reference itself: it is not drawn beside itself.
    comparable = shipped[:0]
    reference_notes: list[str] = []
    if bare_name(source.name) != "exam-zoo":
        comparable, reference_notes = exam_reference.comparable(shipped, scores)
    untraced = _find_untraced(source, scores)
    inside = scores[scores["ability"] == INSIDE]
    notes = [
        f"{int(inside['learned'].sum())} of {len(inside)} runs have learned in distribution ({100 * LEARNED:.0f} % of the "
        "way from chance to the oracle, and no worse than any shortcut); scores out of distribution are of these alone."
    ]
    not_converged = int(inside["not_converged"].sum())
    if not_converged:
        notes.append(f"{not_converged} of {len(inside)} runs had not converged when training ended.")
    notes += reference_notes
    for (model, ability), activations in untraced.items():
        notes.append(f"{ability} needs the activations {activations}, which {model} does not report.")
    reference_scores = comparable.rename(columns={"backbone": "model"})
    return ExamResults(scores, reference_scores, _compute_bounds(source, scores), untraced, tuple(notes))


def normalise_scores(rows: pd.DataFrame, bounds: pd.DataFrame) -> pd.DataFrame:
    """Rows whose `value` is rescaled, from 0 at chance to 1 at the oracle."""
    joined = rows.merge(bounds[["ability", "test", CHANCE, ORACLE]], on=["ability", "test"])
    return joined.assign(value=(joined["value"] - joined[CHANCE]) / (joined[ORACLE] - joined[CHANCE]))


def exam_table(results: ExamResults) -> pd.DataFrame:
    """A line per model, ability and test.

    Columns: `score` with its interval (`low`, `high`), the number of `runs` and of those that have `learned`, the
    bounds, and the comparison with the reference backbones: how many of them the model is `above`, `level` with and
    `below` (Welch's test, 5 %, Holm over the backbones), the number of `references` compared, the same in words
    (`standing`), and the smallest difference that this many seeds can show (`smallest_difference`). The last is known
    before a run, because its spread is that of the reference.
    """
    by = ["model", "ability", "test"]
    counted = results.counted
    mean = means(counted[counted["group"] == "exam"], by).rename(columns={"mean": "score"})
    runs = results.scores.groupby(by, sort=False).agg(runs=("seed", "size"), learned=("learned", "sum")).reset_index()
    table = runs.merge(mean.drop(columns="runs"), on=by, how="left").merge(results.bounds, on=["ability", "test"])
    standings = []
    for row in table[[*by, "runs"]].to_dict("records"):
        scores = counted[(counted["ability"] == row["ability"]) & (counted["test"] == row["test"])]
        of_model = scores["value"][(scores["group"] == "exam") & (scores["model"] == row["model"])]
        references = scores[scores["group"] == REFERENCE]
        standings.append(_compare_with_references(of_model, references, row["runs"]))
    table = pd.concat([table, pd.DataFrame(standings, table.index)], axis=1)
    table = table.assign(_order=table["ability"].map(ABILITIES.index))
    return table.sort_values(["model", "_order"], kind="stable", ignore_index=True).drop(columns="_order")


def _compare_with_references(scores: pd.Series, references: pd.DataFrame, seeds: int) -> dict[str, Any]:
    """Compare a model's scores with those of the reference backbones: counts, the same in words, and the smallest
    difference that shows."""
    values = {str(name): rows.to_list() for name, rows in references.groupby("model")["value"]}
    values = {name: numbers for name, numbers in values.items() if len(numbers) >= FEWEST}
    difference = np.nan
    if values:
        fewest = min(map(len, values.values()))
        difference = smallest_difference(seeds, fewest, spread=pooled_deviation(values.values()))
    counts = dict.fromkeys(Relation, 0)
    if values and len(scores) >= FEWEST:
        relations = relate({**values, "": scores.to_list()}, [("", name) for name in values])
        for relation in relations.values():
            counts[relation] += 1
    compared = sum(counts.values())
    standing = ", ".join(f"{relation.value} {count}" for relation, count in counts.items() if count)
    return {
        "standing": standing,
        "above": counts[Relation.ABOVE],
        "level": counts[Relation.LEVEL],
        "below": counts[Relation.BELOW],
        "references": compared,
        "smallest_difference": difference,
    }


def _read_scores(source: Source) -> pd.DataFrame:
    records = source.records[(source.records["selection"] == "best") & (source.records["factor"] == "")]
    levels = {test: _learning_level(_first_task(source, runs)) for test, runs in source.runs.groupby("test")}
    inside = records[(records["split"] == IID) & (records["metric"] == "accuracy")].set_index("trial")["value"]
    tables = []
    for reading in readings(source.scale):
        metric = METRICS[reading.metric]
        rows = records[
            (records["test"] == reading.test)
            & (records["split"] == reading.split)
            & (records["metric"] == metric.record)
        ]
        if rows.empty:
            continue
        digests = []
        for trial, recipe, options in zip(rows["trial"], rows["recipe"], rows["recipe_options"], strict=True):
            digests.append(compute_digest(json.loads(source.tasks[trial]), f"{recipe} {options}", reading))
        scores = rows.assign(
            ability=reading.ability,
            metric=reading.metric,
            value=1 - rows["value"] if metric.missing else rows["value"],
            digest=digests,
            learned=(rows["trial"].map(inside) >= levels[reading.test]).astype(int),
            not_converged=(rows["not_converged"] == 1).astype(int),
            scale=source.scale,
        )
        tables.append(scores[COLUMNS])
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=COLUMNS)


def _first_task(source: Source, rows: pd.DataFrame) -> Task | None:
    return source.task(rows["trial"].iloc[0])


def _learning_level(task: Task | None) -> float:
    """The accuracy on `iid` from which on a run has learned; infinite if this release has another task."""
    if task is None:
        return float("inf")
    baselines = task_baselines(task, IID)
    level = baselines[CHANCE] + LEARNED * (1 - baselines[CHANCE])
    return max([level, *shortcut_accuracies(baselines).values()])


def _compute_bounds(source: Source, scores: pd.DataFrame) -> pd.DataFrame:
    """Chance, the best shortcut baseline and the oracle of each ability and test."""
    bounds = []
    for reading in readings(source.scale):
        rows = scores[(scores["ability"] == reading.ability) & (scores["test"] == reading.test)]
        task = _first_task(source, rows) if len(rows) else None
        if task is None:
            continue
        metric = METRICS[reading.metric]
        if metric.chance is not None:
            bounds.append([reading.ability, reading.test, metric.chance, "", np.nan, 1.0])
            continue
        baselines = task_baselines(task, reading.split)
        shortcuts = shortcut_accuracies(baselines)
        best = max(shortcuts, key=shortcuts.__getitem__, default="")
        ceiling = shortcuts.get(best, np.nan)
        bounds.append([reading.ability, reading.test, baselines[CHANCE], best, ceiling, baselines[ORACLE]])
    return pd.DataFrame(bounds, columns=["ability", "test", CHANCE, "shortcut", "ceiling", ORACLE])


def _find_untraced(source: Source, scores: pd.DataFrame) -> dict[tuple[str, str], str]:
    """The models whose test of an ability has ended without a score, because they do not report its activations."""
    untraced: dict[tuple[str, str], str] = {}
    for reading in readings(source.scale):
        activations = METRICS[reading.metric].activation
        if not activations:
            continue
        tested = scores[scores["test"] == reading.test]
        scored = set(tested["model"][tested["ability"] == reading.ability])
        for model in sorted(set(tested["model"]) - scored):
            untraced[model, reading.ability] = activations
    return untraced
