"""The tables of a store from which figures and pages are made, and means of runs with bootstrap intervals."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unseen.errors import UsageError
from unseen.randomness import Floats, Ints, stream
from unseen.stats import mean_intervals
from unseen.stats.resampling import resampled_counts
from unseen.store.store import ENDED, Store
from unseen.store.tables import curves_table, label_entries, runs_table
from unseen.studies.study import SCALES, Study, catalogued
from unseen.tasks import task as make_task
from unseen.tasks.base import Task

SERIES = ("variant", "gating", "model")
"""The axes that identify a model, the most specific first."""
SCORES = ("accuracy", "relative_loss", "loss")
"""The metrics by which a run is judged: the first one that it has."""
RESAMPLES = 2_000
"""Enough for figures: the error of an interval's bounds is about a hundredth of its width."""
CACHED_RUNS = 200
"""Resamples of groups up to this many runs are cached, because most figures ask for the same ones."""


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

    @classmethod
    def read(cls, directory: str | Path, scale: str | None = None) -> Source:
        """Read one scale of a directory; by default the largest at which a run has ended."""
        path = Path(directory)
        with Store.read(path) as store:
            records, entries = store.tables()
            work = store.work
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
        return cls(path, work, scale, records, runs, varied_axes(entries, runs), tasks, cache(curves))

    @property
    def name(self) -> str:
        """The study with its version (`quickstart@1`), or the task and model of a single training."""
        if "study" in self.work:
            return str(self.work["study"])
        return " · ".join(
            str(self.work[component]["name"]) for component in ("task", "model") if component in self.work
        )

    @property
    def study(self) -> Study | None:
        """The study, if this release has it in this version."""
        try:
            return catalogued(self.name) if "study" in self.work else None
        except UsageError:
            return None

    @property
    def selection(self) -> str:
        """The weights that are shown: those that the paper of the study tests, otherwise the best on validation."""
        return "best" if self.study is None else self.study.selection

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
    """The axes of a study, preceded by `task` and `model` where these vary and do not follow from the axes."""
    if entries.empty:
        return ()
    axes = [axis for axis in label_entries(entries)[1] if axis != "scale"]
    independent = []
    for component in ("task", "model"):
        follows = bool(axes) and bool((runs.groupby(axes, dropna=False)[component].nunique() == 1).all())
        if runs[component].nunique() > 1 and not follows:
            independent.append(component)
    return (*independent, *axes)


def option_column(runs: pd.DataFrame, name: str) -> pd.Series:
    """A typed option column of runs, such as `recipe.batch`; empty if no run has this option in its version."""
    return runs[name] if name in runs else pd.Series(None, runs.index, dtype=object)


@cache
def _make_task(identity: str) -> Task | None:
    options = json.loads(identity)
    version = options.pop("version")
    try:
        task = make_task(**options)
    except UsageError:
        return None
    return task if task.version == version else None


# -- means of runs ----------------------------------------------------------------------------------------------------


def means(
    rows: pd.DataFrame, by: Sequence[str], clusters: str | None = None, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Means of groups of runs with 95 % bootstrap intervals, for thousands of groups at once.

    `rows` has one row per run and group with its `value`. The result has one row per group: the columns `by`, `mean`,
    the bounds `low` and `high` (NaN below three runs), the number of `runs`, and how many were `not_converged`. If
    `clusters` names a column (the task seed), the choice of clusters counts as chance, and the bounds are NaN below
    three clusters.

    >>> rows = pd.DataFrame({"model": ["a"] * 4, "value": [0.7, 0.8, 0.9, 0.8], "not_converged": [0, 1, 0, None]})
    >>> means(rows, ["model"]).round(1).to_dict("records")
    [{'model': 'a', 'mean': 0.8, 'low': 0.7, 'high': 0.9, 'runs': 4, 'not_converged': 1}]
    """
    measured = rows[rows["value"].notna()]
    # Groups are numbered in the order of their first rows, which is the order of the result.
    group = measured.groupby(list(by), sort=False, dropna=False).ngroup().to_numpy()
    first = np.unique(group, return_index=True)[1]
    if clusters:
        cluster, cluster_count = _encode_labels(measured[clusters])
    else:
        cluster, cluster_count = np.zeros(len(measured), np.int64), 1
    values = measured["value"].to_numpy(float)
    # Sorted within clusters, so that the interval does not depend on the order of the rows.
    ordered = values[np.lexsort((values, cluster, group))]
    runs = np.bincount(group, minlength=len(first))
    start = np.cumsum(runs) - runs
    # One number for each pair of group and cluster gives the sizes of all clusters in one pass.
    sizes = np.bincount(group * cluster_count + cluster, minlength=len(first) * cluster_count)
    # Groups with clusters of equal sizes share one set of resamples: this makes thousands of groups fast.
    groups_by_sizes: dict[tuple[int, ...], list[int]] = {}
    for number, row in enumerate(sizes.reshape(len(first), cluster_count).tolist()):
        groups_by_sizes.setdefault(tuple(filter(None, row)), []).append(number)
    mean, low, high = np.full((3, len(first)), np.nan)
    for cluster_sizes, members in groups_by_sizes.items():
        table = ordered[start[members][:, None] + np.arange(sum(cluster_sizes))]
        mean[members] = table.mean(axis=1)
        counts = shared_resamples(cluster_sizes, resamples, clusters is not None)
        low[members], high[members] = mean_intervals(table, cluster_sizes, counts, clusters=clusters is not None)
    not_converged = np.zeros(len(measured), bool)
    if "not_converged" in measured:
        not_converged = measured["not_converged"].eq(1).to_numpy()
    return (
        measured[list(by)]
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


def shared_resamples(sizes: tuple[int, ...], resamples: int, clusters: bool) -> Iterator[Floats]:
    """The resamples of all groups of these sizes, as `mean_intervals` takes them: the same for every figure."""
    if sum(sizes) <= CACHED_RUNS:
        yield from _cached_resamples(sizes, resamples, clusters)
    else:
        yield from _draw_resamples(sizes, resamples, clusters)


@lru_cache(maxsize=32)
def _cached_resamples(sizes: tuple[int, ...], resamples: int, clusters: bool) -> tuple[Floats, ...]:
    return tuple(_draw_resamples(sizes, resamples, clusters))


def _draw_resamples(sizes: tuple[int, ...], resamples: int, clusters: bool) -> Iterator[Floats]:
    return resampled_counts(sizes, stream("interval", "figure").block(), resamples, clusters=clusters)


def _encode_labels(labels: pd.Series) -> tuple[Ints, int]:
    """Labels as numbers in the order that `unseen.stats` gives to clusters, and how many there are."""
    ordered = sorted(set(labels.tolist()), key=repr)
    codes = {label: code for code, label in enumerate(ordered)}
    return labels.map(codes).to_numpy(np.int64), len(ordered)
