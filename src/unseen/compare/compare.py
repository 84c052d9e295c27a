"""Compare result directories: for every configuration that two of them share, the difference and a paired test."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from unseen.compare.run_groups import (
    GroupedRun,
    RunDirectory,
    RunGroup,
    SharedTrials,
    find_shared_trials,
    match_groups,
)
from unseen.errors import UsageError, nearest
from unseen.randomness import stream
from unseen.stats import FEWEST, Estimate, benjamini_hochberg, paired, permutation_test

METRICS = ("accuracy", "relative_loss", "loss")
"""The metric that is compared by default is the first of these that both directories have for a configuration."""
SELECTIONS = ("best", "last")
FIRST = ("pair", "a", "b", "scale_a", "scale_b")
"""The columns before the configuration (task, model and axes)."""
COLUMNS = (
    "split",
    "metric",
    "mean_a",
    "mean_b",
    "difference",
    "low",
    "high",
    "p",
    "p_adjusted",
    "test",
    "pairs",
    "runs_a",
    "runs_b",
    "alone_a",
    "alone_b",
    "lost_a",
    "lost_b",
    "not_converged_a",
    "not_converged_b",
    "indicative",
    "covers",
    "identical",
    "changed",
    "trials",
)
"""The columns after the configuration. `runs` were compared, `alone` had no partner in the other directory, `lost` have
no number; `identical` and `changed` count the pairs that are the same trial, with the same or with other numbers."""
Scores = Mapping[tuple[str, str], Mapping[tuple[str, str], float]]
"""(split, metric) → (trial, evaluation) → value."""


class Covers(StrEnum):
    """What varies between the runs compared, and is therefore covered by the interval."""

    SEEDS = "initialisation and data"
    SEEDS_ONE_DATA_SET = "initialisation, on one data set"
    TASKS = "task instance, initialisation and data"
    TASKS_ONE_DATA_SET = "task instance, initialisation, on one data set"


@dataclass(frozen=True)
class DirectoryPair:
    """A directory `b` (called by its letter) and the first one, `a`: their matched groups, for `empty` of which there
    was nothing to compare, and the trials that both hold."""

    letter: str
    a: RunDirectory
    b: RunDirectory
    groups: Sequence[tuple[RunGroup, RunGroup]]
    empty: int
    shared: SharedTrials


@dataclass(frozen=True)
class Comparison:
    """One row per pair of directories, configuration and split; `axes` are the columns that name the configuration."""

    table: pd.DataFrame
    axes: tuple[str, ...]
    directories: Mapping[str, RunDirectory]
    pairs: Sequence[DirectoryPair]
    selection: str

    @cached_property
    def heading(self) -> tuple[str, ...]:
        """A line about each directory."""
        from unseen.compare.notes import describe_directory

        return tuple(describe_directory(letter, directory) for letter, directory in self.directories.items())

    @cached_property
    def alarms(self) -> tuple[str, ...]:
        """Lines that must not be overlooked: the same trial with other numbers."""
        from unseen.compare.notes import describe_changed_trials

        return tuple(line for pair in self.pairs for line in describe_changed_trials(pair))

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Lines on what the numbers are and how the directories differ."""
        from unseen.compare.notes import describe_comparison

        return tuple(describe_comparison(self.table, self.axes, self.pairs, self.selection))


class ScoredRun(NamedTuple):
    """A run and its score."""

    run: GroupedRun
    score: float


ScoredRuns = Mapping[tuple[Any, ...], ScoredRun]
"""By the key of the run."""


def compare(
    directories: Sequence[RunDirectory], *, metric: str | None = None, split: str | None = None, selection: str = "best"
) -> Comparison:
    """Compare each directory with the first. A positive difference means that its numbers are higher."""
    if len(directories) < 2:
        raise UsageError(f"a comparison needs two directories or more, got {len(directories)}")
    if selection not in SELECTIONS:
        raise UsageError(f"unknown selection '{selection}'. {nearest(selection, SELECTIONS)}")
    letters = [chr(ord("A") + i) if i < 26 else f"D{i + 1}" for i in range(len(directories))]
    a = directories[0]
    scores_a = _collect_scores(a.records, selection)
    rows: list[dict[str, Any]] = []
    pairs = []
    for letter, b in zip(letters[1:], directories[1:], strict=True):
        scores = (scores_a, _collect_scores(b.records, selection))
        groups = list(match_groups(a, b))
        _check_request(a, b, groups, scores, metric, split)
        shared = find_shared_trials(a, b)
        empty = 0
        for group_a, group_b in groups:
            configuration = _configuration_columns(group_a, group_b)
            metrics = METRICS if metric is None else (metric,)
            group_rows = list(_compare_groups(group_a, group_b, scores, shared, metrics, split))
            empty += not group_rows
            for row in group_rows:
                rows.append({"pair": f"{letter} − A", "a": a.name, "b": b.name, **configuration, **row})
        if empty == len(groups):
            raise UsageError(
                f"nothing to compare yet: {a.name} and {b.name} share {len(groups)} configurations, but for none of "
                "them have runs of both ended with a split and a metric in common"
            )
        pairs.append(DirectoryPair(letter, a, b, groups, empty, shared))

    adjusted = benjamini_hochberg([row["p"] for row in rows])
    for row, p in zip(rows, adjusted.tolist(), strict=True):
        row["p_adjusted"] = p
    known_axes = dict.fromkeys(_axis_column(axis) for directory in directories for axis in directory.axes)
    axes = ("task", "model", *(axis for axis in known_axes if any(axis in row for row in rows)))
    columns = {}
    for name in (*FIRST, *axes, *COLUMNS):
        values = [row.get(name) for row in rows]
        # Levels of several types keep them only in a column of objects.
        mixed = len({type(value) for value in values}) > 1
        columns[name] = pd.Series(values, dtype=object if mixed else None)
    return Comparison(pd.DataFrame(columns), axes, dict(zip(letters, directories, strict=True)), pairs, selection)


def _collect_scores(records: pd.DataFrame, selection: str) -> Scores:
    overall = records[(records["selection"] == selection) & (records["factor"] == "")]
    scores: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    columns = ["trial", "evaluation_id", "split", "metric", "value"]
    for trial, evaluation, split, metric, value in overall[columns].itertuples(index=False):
        scores.setdefault((split, metric), {})[trial, evaluation] = value
    return scores


def _check_request(
    a: RunDirectory,
    b: RunDirectory,
    groups: Sequence[tuple[RunGroup, RunGroup]],
    scores: Sequence[Scores],
    metric: str | None,
    split: str | None,
) -> None:
    """Refuse directories that have nothing in common, and a split or metric that one of them does not have."""
    if not groups:
        raise UsageError(
            f"nothing to compare: no configuration is in both.\n  {a.describe()}\n  {b.describe()}\nConfigurations "
            "are matched on task, model and the levels of the axes that both directories have"
        )
    for option, value, position in (("split", split, 0), ("metric", metric, 1)):
        if value is None:
            continue
        names_a = {key[position] for key in scores[0]}
        names_b = {key[position] for key in scores[1]}
        missing = [directory.name for directory, names in ((a, names_a), (b, names_b)) if value not in names]
        if missing:
            raise UsageError(
                f"{option} '{value}' is not in {' and '.join(missing)}. {nearest(value, names_a & names_b)}"
            )


def _compare_groups(
    a: RunGroup,
    b: RunGroup,
    scores: Sequence[Scores],
    shared: SharedTrials,
    metrics: Sequence[str],
    split: str | None,
) -> Iterator[dict[str, Any]]:
    """A row for every split on which runs of both groups have a score, in the first metric that both have."""
    splits = [split] if split is not None else list(dict.fromkeys(key[0] for key in scores[0]))
    for name in splits:
        for metric in metrics:
            scored_a = _score_runs(a, scores[0].get((name, metric), {}))
            scored_b = _score_runs(b, scores[1].get((name, metric), {}))
            if scored_a and scored_b:
                yield {
                    "split": name,
                    "metric": metric,
                    "lost_a": _count_lost(a, scored_a),
                    "lost_b": _count_lost(b, scored_b),
                    **_compare_runs(scored_a, scored_b, shared),
                }
                break


def _score_runs(group: RunGroup, scores: Mapping[tuple[str, str], float]) -> ScoredRuns:
    """The runs of a group that have a finite score."""
    scored = {}
    for run in group.runs:
        score = scores.get((run.trial, run.evaluation), math.nan)
        if math.isfinite(score):
            scored[run.key] = ScoredRun(run, score)
    return scored


def _count_lost(group: RunGroup, scored: ScoredRuns) -> int:
    """The number of runs that ended without a score: they diverged, failed, or are not finite."""
    return sum(run.status != "pending" and run.key not in scored for run in group.runs)


def _compare_runs(a: ScoredRuns, b: ScoredRuns, shared: SharedTrials) -> dict[str, Any]:
    """Means, difference, interval and test of two groups: over pairs if any seed is shared, else over all runs."""
    keys = sorted(a.keys() & b.keys(), key=repr)
    runs_a = [a[key] for key in keys] or list(a.values())
    runs_b = [b[key] for key in keys] or list(b.values())
    same_trials = [a[key].run.trial for key in keys if a[key].run.is_same(b[key].run)]
    identical = sum(trial in shared.identical for trial in same_trials)
    changed = sum(trial in shared.changed for trial in same_trials)
    units_a = _average_by_unit(runs_a)
    units_b = _average_by_unit(runs_b)
    mean_a = float(np.mean(list(units_a.values())))
    mean_b = float(np.mean(list(units_b.values())))
    covers = _describe_variation([*runs_a, *runs_b])
    estimate: Estimate | None = None
    if not keys or identical < len(keys):  # a test of runs against themselves would mean nothing
        draws = stream("interval", "compare").block()
        if keys:
            estimate = paired(units_b, units_a, generator=draws, covers=covers)
        else:
            estimate = permutation_test(list(units_b.values()), list(units_a.values()), generator=draws, covers=covers)
    enough = estimate is not None and estimate.interval.fewest >= FEWEST
    if changed:
        sameness = f"same trial, other numbers: {changed} of {len(keys)}"
    elif not identical:
        sameness = ""
    else:
        sameness = "identical" if identical == len(keys) else f"identical: {identical} of {len(keys)}"
    return {
        "mean_a": mean_a,
        "mean_b": mean_b,
        "difference": mean_b - mean_a,
        "low": estimate.interval.low if estimate else math.nan,
        "high": estimate.interval.high if estimate else math.nan,
        "p": estimate.p_value if estimate and enough else math.nan,
        "test": "paired" if keys else "unpaired",
        "pairs": len(units_a) if keys else 0,
        "runs_a": len(runs_a),
        "runs_b": len(runs_b),
        "alone_a": len(a) - len(runs_a),
        "alone_b": len(b) - len(runs_b),
        "not_converged_a": sum(scored.run.not_converged is True for scored in runs_a),
        "not_converged_b": sum(scored.run.not_converged is True for scored in runs_b),
        "indicative": bool(enough and estimate and estimate.interval.indicative),
        "covers": covers,
        "identical": identical,
        "changed": changed,
        "trials": sameness,
    }


def _average_by_unit(runs: Sequence[ScoredRun]) -> dict[str, float]:
    """The scores of the units that are resampled: runs or, if there are several tasks, tasks (mean of their runs)."""
    several_tasks = len({repr(scored.run.key[0]) for scored in runs}) > 1
    scores: dict[str, list[float]] = {}
    for scored in runs:
        unit = repr(scored.run.key[0]) if several_tasks else repr(scored.run.key)
        scores.setdefault(unit, []).append(scored.score)
    return {unit: float(np.mean(values)) for unit, values in scores.items()}


def _describe_variation(runs: Sequence[ScoredRun]) -> str:
    tasks = {repr(scored.run.key[0]) for scored in runs}
    data_seeds = {scored.run.key[2] for scored in runs}
    if len(tasks) > 1:
        return (Covers.TASKS if len(data_seeds) > 1 else Covers.TASKS_ONE_DATA_SET).value
    return (Covers.SEEDS if len(data_seeds) > 1 else Covers.SEEDS_ONE_DATA_SET).value


def _configuration_columns(a: RunGroup, b: RunGroup) -> dict[str, Any]:
    """The columns that name the configuration; an axis that only one directory has keeps its level."""
    levels = {_axis_column(axis): level for axis, level in {**b.levels, **a.levels}.items()}
    models = dict.fromkeys(str(group.levels["model"]) for group in (a, b))
    return {"scale_a": a.scale, "scale_b": b.scale, **levels, "model": " | ".join(models)}


def _axis_column(axis: str) -> str:
    """The column of an axis: its name, unless the table has another column of that name."""
    return f"{axis} (axis)" if axis in (*FIRST, *COLUMNS) else axis
