"""What an exam has found: scores by ability, what they lie between, and the reference beside them."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd

from unseen.report.means import means
from unseen.report.references import ORACLE, references
from unseen.report.source import Source
from unseen.studies import exam_reference
from unseen.studies.exam import ABILITIES, IID, INSIDE, LEARNED, METRICS, Reading, digest_of, readings
from unseen.tasks.base import Task

STUDIES = ("exam", "exam-zoo")
COLUMNS = [
    "model",
    "ability",
    "test",
    "task",
    "condition",
    "metric",
    "seed",
    "value",
    "learned",
    "still_learning",
    "scale",
    "digest",
    "cell",
]
CHANCE = "chance"
REFERENCE = "reference"


@dataclass(frozen=True)
class Exam:
    """`scores` has a line per run and ability with `COLUMNS`; `reference` the same of the shipped backbones, where the
    tests are the same; `bounds` a line per ability and test with `chance`, the best `shortcut` there is and its
    `ceiling`, and the `oracle`; `untraced` the models that lack the trace of an ability, with its name; `notes` what to
    say."""

    scores: pd.DataFrame
    reference: pd.DataFrame
    bounds: pd.DataFrame
    untraced: dict[tuple[str, str], str]
    notes: tuple[str, ...]

    @property
    def counted(self) -> pd.DataFrame:
        """The scores that count, with the column `group`, `exam` or `reference`: within the training distribution those
        of all runs, elsewhere those of the runs that have learned within."""
        both = pd.concat([self.scores.assign(group="exam"), self.reference.assign(group=REFERENCE)], ignore_index=True)
        return both[(both["ability"] == INSIDE) | (both["learned"] == 1)]


def is_exam(source: Source) -> bool:
    """Whether a directory holds an exam."""
    return source.name.partition("@")[0] in STUDIES


def read(source: Source, reference: pd.DataFrame | None = None) -> Exam | None:
    """The exam that a directory holds; None where it holds none, or none of its runs has ended."""
    if not is_exam(source):
        return None
    scores = _scores(source)
    if scores.empty:
        return None
    shipped = exam_reference.read() if reference is None else reference
    # The zoo is the reference: to draw it beside itself would say everything twice.
    own = source.name.startswith("exam-zoo")
    same, said = exam_reference.comparable(shipped, scores) if not own else (shipped[:0], [])
    untraced = _untraced(source, scores)
    notes = [
        *_learned_notes(scores),
        *said,
        *(f"{ability} needs a trace `{trace}`: {model} keeps none." for (model, ability), trace in untraced.items()),
    ]
    return Exam(scores, same.rename(columns={"backbone": "model"}), _bounds(source, scores), untraced, tuple(notes))


def normalised(rows: pd.DataFrame, bounds: pd.DataFrame) -> pd.DataFrame:
    """Scores from 0 at chance to 1 at the oracle, in the column `value`."""
    joined = rows.merge(bounds[["ability", "test", CHANCE, ORACLE]], on=["ability", "test"])
    return joined.assign(value=(joined["value"] - joined[CHANCE]) / (joined[ORACLE] - joined[CHANCE]))


def table(found: Exam) -> pd.DataFrame:
    """A line per model, ability and test: `score` with its interval (`low`, `high`), of how many `runs`, how many have
    `learned`, what it lies between, and its `place` among the references (1 of 9: better than all eight)."""
    by = ["model", "ability", "test"]
    mean = means(found.counted[found.counted["group"] == "exam"], by).rename(columns={"mean": "score"})
    runs = found.scores.groupby(by, sort=False).agg(runs=("seed", "size"), learned=("learned", "sum")).reset_index()
    whole = runs.merge(mean.drop(columns="runs"), on=by, how="left").merge(found.bounds, on=["ability", "test"])
    others = means(found.counted[found.counted["group"] == REFERENCE], by)
    places = []
    for ability, test, score in zip(whole["ability"], whole["test"], whole["score"], strict=True):
        theirs = others["mean"][(others["ability"] == ability) & (others["test"] == test)]
        known = len(theirs) > 0 and pd.notna(score)
        places.append(f"{1 + int((theirs > score).sum())} of {len(theirs) + 1}" if known else "")
    whole = whole.assign(place=places, _order=whole["ability"].map(ABILITIES.index))
    return whole.sort_values(["model", "_order"], kind="stable", ignore_index=True).drop(columns="_order")


# -- reading ----------------------------------------------------------------------------------------------------------


def _scores(source: Source) -> pd.DataFrame:
    records = source.records[(source.records["selection"] == "best") & (source.records["factor"] == "")]
    bounds = {test: _bound(_task(source, runs)) for test, runs in source.runs.groupby("test")}
    inside = records[(records["condition"] == IID) & (records["metric"] == "accuracy")].set_index("cell")["value"]
    found = []
    for reading in readings(source.scale):
        metric = METRICS[reading.metric]
        rows = records[
            (records["test"] == reading.test)
            & (records["condition"] == reading.condition)
            & (records["metric"] == metric.record)
        ]
        if rows.empty:
            continue
        value = 1 - rows["value"] if metric.missing else rows["value"]
        recipe = rows["recipe"] + " " + rows["recipe_options"]
        digests = [
            digest_of(json.loads(source.tasks[cell]), words, reading)
            for cell, words in zip(rows["cell"], recipe, strict=True)
        ]
        found.append(
            rows.assign(
                ability=reading.ability,
                metric=reading.metric,
                value=value,
                digest=digests,
                learned=(rows["cell"].map(inside) >= bounds[reading.test]).astype(int),
                still_learning=(rows["still_learning"] == 1).astype(int),
                scale=source.scale,
            )[COLUMNS]
        )
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=COLUMNS)


def _bound(task: Task | None) -> float:
    """The accuracy on `iid` from which on a run has learned; none is enough where this release has another task."""
    if task is None:
        return float("inf")
    known = references(task, IID)
    return max(
        [
            known[CHANCE] + LEARNED * (1 - known[CHANCE]),
            *(value for name, value in known.items() if name not in (CHANCE, ORACLE)),
        ]
    )


def _task(source: Source, runs: pd.DataFrame) -> Task | None:
    return source.task(runs["cell"].iloc[0])


def _bounds(source: Source, scores: pd.DataFrame) -> pd.DataFrame:
    found = []
    for reading in readings(source.scale):
        rows = scores[(scores["ability"] == reading.ability) & (scores["test"] == reading.test)]
        task = _task(source, rows) if len(rows) else None
        if task is not None:
            found.append({"ability": reading.ability, "test": reading.test, **_between(task, reading)})
    return pd.DataFrame(found, columns=["ability", "test", CHANCE, "shortcut", "ceiling", ORACLE])


def _between(task: Task, reading: Reading) -> dict[str, object]:
    """Chance, the best that can be had without doing the task, and the oracle."""
    metric = METRICS[reading.metric]
    if metric.chance is not None:
        return {CHANCE: metric.chance, "shortcut": "", "ceiling": np.nan, ORACLE: 1.0}
    known = references(task, reading.condition)
    shortcuts = {name: value for name, value in known.items() if name not in (CHANCE, ORACLE)}
    best = max(shortcuts, key=shortcuts.__getitem__, default="")
    return {CHANCE: known[CHANCE], "shortcut": best, "ceiling": shortcuts.get(best, np.nan), ORACLE: known[ORACLE]}


def _untraced(source: Source, scores: pd.DataFrame) -> dict[tuple[str, str], str]:
    """The models of which an ability's test has ended and left nothing, because of a trace that they do not keep."""
    found: dict[tuple[str, str], str] = {}
    for reading in readings(source.scale):
        trace = METRICS[reading.metric].trace
        tested = set(scores["model"][scores["test"] == reading.test])
        have = set(scores["model"][(scores["test"] == reading.test) & (scores["ability"] == reading.ability)])
        found |= {(model, reading.ability): trace for model in sorted(tested - have) if trace}
    return found


def _learned_notes(scores: pd.DataFrame) -> list[str]:
    inside = scores[scores["ability"] == INSIDE]
    learned, still = int(inside["learned"].sum()), int(inside["still_learning"].sum())
    said = [
        f"{learned} of {len(inside)} runs have learned in distribution ({100 * LEARNED:.0f} % of the way from "
        "chance to the oracle, and no worse than any shortcut); scores out of distribution are read from these "
        "alone."
    ]
    if still:
        said.append(f"{still} of {len(inside)} runs were still learning when training ended.")
    return said
