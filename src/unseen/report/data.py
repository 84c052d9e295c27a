"""The tables of a store from which figures and pages are made, and means of runs with intervals."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unseen.claims.judge_studies import find_first_run, find_taken_over
from unseen.errors import UsageError
from unseen.stats import mean_intervals
from unseen.store.store import ENDED, Store, remembered_notes
from unseen.store.tables import curves_table, identifying_axes, label_entries, runs_table
from unseen.studies.description import StudyDescription, find_description
from unseen.studies.study import SCALES
from unseen.tasks import recorded_task
from unseen.tasks.base import Task

SERIES = ("variant", "gating", "model")
"""The axes that identify a model, the most specific first."""
SCORES = ("accuracy", "relative_loss", "loss")
"""The metrics by which a run is judged: the first one that it has."""
RESAMPLES = 2_000
"""Enough for figures: the error of an interval's bounds is about a hundredth of its width."""


@dataclass(frozen=True)
class Source:
    """One scale of the runs in a store (`unseen train` has a single scale, '').

    `records` is tidy, with one row per number; `runs` has one row per trial with its status and one typed column per
    option (`task.length`, `recipe.batch`). Both have a column per axis. `curves` reads the learning curves on demand,
    because they may have millions of points. `axes` are those of the study, with `task` and `model` among them where
    they vary independently. `tasks` maps each trial to the identity of its task, as JSON.
    """

    directory: Path
    work: Mapping[str, Any]
    scale: str
    records: pd.DataFrame
    runs: pd.DataFrame
    axes: tuple[str, ...]
    tasks: Mapping[str, str]
    curves: Callable[[], pd.DataFrame]
    description: StudyDescription | None = None
    """The description of the study that is in its store, or else the one in this release."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """The notes of the store: the mode in which claims are judged, and the claims that it registered itself."""
    first_run: datetime | None = None
    """When the first run began, if that was noted."""
    with_weights: frozenset[str] = frozenset()
    """The trials of which weights are stored."""
    taken_over: frozenset[str] = frozenset()
    """The trials that other stores or records files had before."""

    @classmethod
    def read(cls, directory: str | Path, scale: str | None = None) -> Source:
        """Read one scale of a directory; by default the largest at which a run has ended."""
        path = Path(directory)
        with Store.read(path) as store:
            records, entries = store.tables()
            work = store.work
            notes = remembered_notes(store.notes())
            first_run = find_first_run(store)
            with_weights = frozenset(store.trials_with_weights())
            taken_over = find_taken_over(store)
            description = find_description(work, store.description)
        available = sorted(set(entries["scale"]), key=lambda name: SCALES.index(name) if name in SCALES else -1)
        if scale is None:
            ended = set(entries["scale"][entries["status"].isin(ENDED)])
            candidates = [name for name in available if name in ended] or available
            scale = candidates[-1] if candidates else ""
        elif scale not in available:
            raise UsageError(
                f"{path} holds nothing at scale '{scale}'; it holds {', '.join(available) or 'nothing yet'}"
            )
        entries = entries[entries["scale"] == scale].reset_index(drop=True)
        if "scale" in records:
            records = records[records["scale"] == scale].reset_index(drop=True)
        runs = runs_table(entries)

        def curves() -> pd.DataFrame:
            with Store.read(path) as store:
                return curves_table(store.points(), entries)

        tasks = dict(zip(entries["trial"], entries["task"], strict=True))
        axes = varied_axes(entries, runs)
        return cls(
            path,
            work,
            scale,
            records,
            runs,
            axes,
            tasks,
            cache(curves),
            description,
            notes,
            first_run,
            with_weights,
            taken_over,
        )

    @property
    def name(self) -> str:
        """The study with its version (`quickstart@2`), or the task and model of a single training."""
        if "study" in self.work:
            return str(self.work["study"])
        names = []
        for component in ("task", "model"):
            if component in self.work:
                names.append(str(self.work[component]["name"]))
        return " · ".join(names)

    @property
    def selection(self) -> str:
        """The weights that are shown: those that the study names, otherwise the best on validation."""
        return "best" if self.description is None else self.description.selection

    @property
    def series(self) -> str:
        """The axis that identifies the model."""
        for axis in SERIES:
            if axis in self.runs and self.runs[axis].nunique() > 1:
                return axis
        return "model"

    def task(self, trial: str) -> Task | None:
        """The task of a trial, if this release still makes it in that version."""
        return _make_task(self.tasks[trial])

    def where(self, selected: pd.Series) -> Source:
        """The same source with only those runs for which `selected`, a mask over `runs`, is true."""
        runs = self.runs[selected]
        return replace(self, runs=runs, records=self.records[self.records["trial"].isin(runs["trial"])])

    def scores(self, selection: str) -> pd.DataFrame:
        """One row per run and split: the metric by which the run is judged, over all examples of the split."""
        rows = self.records
        if rows.empty:
            return rows.assign(score="")
        rows = rows[(rows["factor"] == "") & (rows["selection"] == selection) & rows["metric"].isin(SCORES)]
        rank = rows["metric"].map(SCORES.index)
        return rows[rank == rank.groupby(rows["trial"]).transform("min")]


def varied_axes(entries: pd.DataFrame, runs: pd.DataFrame) -> tuple[str, ...]:
    """The axes that tell the configurations of a study apart; see `identifying_axes`."""
    if entries.empty:
        return ()
    return tuple(identifying_axes(runs, [axis for axis in label_entries(entries)[1] if axis != "scale"]))


@cache
def _make_task(identity: str) -> Task | None:
    options = json.loads(identity)
    version = options.pop("version")
    try:
        task = recorded_task(**options)
    except UsageError:
        return None
    return task if task.version == version else None


# -- means of runs ----------------------------------------------------------------------------------------------------


def means(rows: pd.DataFrame, by: Sequence[str], clusters: str | None = None) -> pd.DataFrame:
    """Means of groups of runs with 95 % intervals (Student's t, see `unseen.stats`), for thousands of groups at once.

    `rows` has one row per run and group with its `value`. The result has one row per group: the columns `by`, `mean`,
    the bounds `low` and `high` (NaN below three runs), the number of `runs`, and how many were `not_converged`. If
    `clusters` names a column (the task seed), these are the units: the mean is that of their means, and the bounds are
    NaN below three of them.

    >>> rows = pd.DataFrame({"model": ["a"] * 4, "value": [0.7, 0.8, 0.9, 0.8], "not_converged": [0, 1, 0, None]})
    >>> means(rows, ["model"]).round(2).to_dict("records")
    [{'model': 'a', 'mean': 0.8, 'low': 0.54, 'high': 0.93, 'runs': 4, 'not_converged': 1}]
    """
    measured = rows[rows["value"].notna()]
    by = list(by)
    grouped = measured.groupby(by, sort=False, dropna=False)
    # Groups are numbered in the order of their first rows, which is the order of the result.
    group = grouped.ngroup().to_numpy()
    runs = np.bincount(group)
    first = np.unique(group, return_index=True)[1]
    units = pd.DataFrame({"group": group, "value": measured["value"].to_numpy(float)})
    if clusters:
        units = units.assign(cluster=measured[clusters].to_numpy()).groupby(["group", "cluster"], as_index=False).mean()
    units = units.sort_values(["group", "value"])
    values = units["value"].to_numpy()
    sizes = np.bincount(units["group"], minlength=len(first))
    start = np.cumsum(sizes) - sizes
    mean, low, high = np.full((3, len(first)), np.nan)
    # Groups of one size are one table.
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        table = values[start[members][:, None] + np.arange(size)]
        mean[members] = table.mean(axis=1)
        low[members], high[members] = mean_intervals(table)
    # Accuracies end at 0 and 1; errors in percent that were made from them do not.
    if "metric" in measured and measured["metric"].eq("accuracy").all() and (values <= 1).all():
        low = np.maximum(low, 0)
        high = np.minimum(high, 1)
    not_converged = np.zeros(len(measured), bool)
    if "not_converged" in measured:
        not_converged = measured["not_converged"].eq(1).to_numpy()
    return (
        measured[by]
        .iloc[first]
        .reset_index(drop=True)
        .assign(
            mean=mean,
            low=low,
            high=high,
            runs=runs,
            not_converged=np.bincount(group, not_converged, len(first)).astype(int),
        )
    )
