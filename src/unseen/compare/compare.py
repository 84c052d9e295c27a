"""Compare result directories: for every configuration that two of them share, the difference and a paired test."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import chain
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
from unseen.stats import FEWEST, Estimate, benjamini_hochberg, compare_means

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
    """The sources of variation between the runs compared, which the interval covers."""

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

        return tuple(chain.from_iterable(map(describe_changed_trials, self.pairs)))

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Lines on what the numbers are and how the directories differ."""
        from unseen.compare.notes import describe_comparison

        return tuple(describe_comparison(self.table, self.axes, self.pairs, self.selection))


def pair_title(letter: str) -> str:
    """The value of the column `pair` for the directory of this letter: the difference that its rows are about."""
    return f"{letter} − A"


class ScoredRun(NamedTuple):
    """A run and its score."""

    run: GroupedRun
    score: float


ScoredRuns = Mapping[tuple[Any, ...], ScoredRun]
"""By the key of the run."""


def compare(
    directories: Sequence[RunDirectory],
    *,
    metric: str | None = None,
    split: str | None = None,
    selection: str | None = None,
) -> Comparison:
    """Compare each directory with the first. A positive difference means that its numbers are higher.

    `selection` are the weights, best on validation or last; by default those that the studies show, and the best ones
    if the studies do not agree.
    """
    if len(directories) < 2:
        raise UsageError(f"a comparison needs two directories or more, got {len(directories)}")
    if selection is None:
        selections = {directory.selection for directory in directories}
        selection = selections.pop() if len(selections) == 1 else "best"
    if selection not in SELECTIONS:
        raise UsageError(f"unknown selection '{selection}'. {nearest(selection, SELECTIONS)}")
    letters = []
    for number in range(len(directories)):
        # The alphabet has 26 letters; directories beyond it are numbered.
        letters.append(chr(ord("A") + number) if number < 26 else f"D{number + 1}")
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
                rows.append({"pair": pair_title(letter), "a": a.name, "b": b.name, **configuration, **row})
        if empty == len(groups):
            plural = "s" * (len(groups) > 1)
            raise UsageError(
                f"nothing to compare yet: {a.name} and {b.name} share {len(groups)} configuration{plural}, but for none "
                "of them have runs of both ended with a split and a metric in common"
            )
        pairs.append(DirectoryPair(letter, a, b, groups, empty, shared))

    adjusted = benjamini_hochberg([row["p"] for row in rows])
    for row, p in zip(rows, adjusted.tolist(), strict=True):
        row["p_adjusted"] = p
    used_columns = set(chain.from_iterable(rows))
    axes = ["task", "model"]
    for axis in dict.fromkeys(chain.from_iterable(directory.axes for directory in directories)):
        if _axis_column(axis) in used_columns and _axis_column(axis) not in axes:
            axes.append(_axis_column(axis))
    columns = {}
    for name in (*FIRST, *axes, *COLUMNS):
        values = [row.get(name) for row in rows]
        # Levels of several types keep them only in a column of objects.
        mixed = len({type(value) for value in values}) > 1
        columns[name] = pd.Series(values, dtype=object if mixed else None)
    return Comparison(
        pd.DataFrame(columns), tuple(axes), dict(zip(letters, directories, strict=True)), pairs, selection
    )


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
    for position, (option, value) in enumerate((("split", split), ("metric", metric))):
        if value is None:
            continue
        names_a = {key[position] for key in scores[0]}
        names_b = {key[position] for key in scores[1]}
        missing = []
        if value not in names_a:
            missing.append(a.name)
        if value not in names_b:
            missing.append(b.name)
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
    """The number of runs that ended without a finite score: they failed, diverged, or have NaN or infinity."""
    return sum(run.status != "pending" and run.key not in scored for run in group.runs)


def _compare_runs(a: ScoredRuns, b: ScoredRuns, shared: SharedTrials) -> dict[str, Any]:
    """Means, difference, interval and test of two groups: over pairs if any seed is shared, else over all runs."""
    keys = sorted(a.keys() & b.keys(), key=repr)
    runs_a = []
    runs_b = []
    identical = 0
    changed = 0
    for key in keys:
        runs_a.append(a[key])
        runs_b.append(b[key])
        if a[key].run.is_same(b[key].run):
            identical += a[key].run.trial in shared.identical
            changed += a[key].run.trial in shared.changed
    if not keys:
        runs_a = list(a.values())
        runs_b = list(b.values())
    units_a = _average_by_unit(runs_a)
    units_b = _average_by_unit(runs_b)
    mean_a = float(np.mean(list(units_a.values())))
    mean_b = float(np.mean(list(units_b.values())))
    covers = _describe_variation([*runs_a, *runs_b])
    estimate: Estimate | None = None
    if not keys or identical < len(keys):  # there is nothing to test between runs and themselves
        estimate = compare_means(units_b, units_a, covers=covers, paired=bool(keys))
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
        "p": math.nan if estimate is None or estimate.p_value is None else estimate.p_value,
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
    """The scores of the units of a comparison: runs or, if there are several tasks, tasks (mean of their runs)."""
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
