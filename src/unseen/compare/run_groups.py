"""The contents of result directories: runs grouped by configuration, matched between directories, and shared trials."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unseen.config import canonical
from unseen.errors import UsageError
from unseen.store.store import ENDED, Store
from unseen.studies.description import find_description
from unseen.studies.grid import Level
from unseen.studies.study import SCALES
from unseen.studies.trial import format_options

REPLICATES = "task_seed"
"""The axis whose levels are draws of one task: a configuration is repeated over them, as it is over seeds."""
_MOST_LEVELS = 6
"""The number of levels of an axis that a message lists."""
_EVALUATED = ["trial", "evaluation_id"]
_RECORD_KEY = [*_EVALUATED, "selection", "split", "factor", "level", "metric"]
_NUMBERS = ["value", "standard_error", "n"]
_ENDING = ["status", "step", "best_step", "not_converged"]
_COSTS = ("trial", "started", "seconds", "cpu_seconds", "parameters")
"""Columns of the provenance that differ between any two runs of a trial, or say nothing about where it was run."""


@dataclass(frozen=True)
class GroupedRun:
    """One trial of a group. Runs with the same `key` (task seed, seed, data seed) form a pair."""

    trial: str
    evaluation: str
    key: tuple[Level | None, int, int]
    status: str
    not_converged: bool | None

    def is_same(self, other: GroupedRun) -> bool:
        """Whether it is the same trial, evaluated in the same way: then its numbers must be the same."""
        return (self.trial, self.evaluation) == (other.trial, other.evaluation)


@dataclass(frozen=True)
class RunGroup:
    """The runs of one configuration, which differ only in their seeds; `works` are their options by task seed."""

    scale: str
    levels: Mapping[str, Level | None]
    runs: list[GroupedRun] = field(default_factory=list)
    works: dict[Level | None, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class RunDirectory:
    """The tables of one results directory; `works` has the options of (scale, levels as canonical JSON).

    `records` has every number once, by trial and evaluation: a trial may belong to several scales, and be evaluated in
    several ways.
    """

    name: str
    work: Mapping[str, Any]
    works: Mapping[tuple[str, str], Mapping[str, Any]]
    entries: pd.DataFrame
    records: pd.DataFrame
    provenance: pd.DataFrame
    selection: str = "best"
    """The weights that the study of this directory shows."""

    @classmethod
    def read(cls, directory: str | Path) -> RunDirectory:
        """Read everything that a comparison needs; runs may be in progress."""
        with Store.read(directory) as store:
            records, entries = store.measures()
            evaluated = entries[_EVALUATED].drop_duplicates()
            records = evaluated.merge(records, on=_EVALUATED, sort=False)  # in the order of the study
            works = {key: stored.work for key, stored in store.configurations().items()}
            description = find_description(store.work, store.description)
            selection = "best" if description is None else description.selection
            return cls(str(directory), store.work, works, entries, records, store.provenance(), selection)

    @property
    def title(self) -> str:
        """The study with its version, or the task and model of a `train`."""
        if "study" in self.work:
            return str(self.work["study"])
        components = [format_options(self.work[component]) for component in ("task", "model") if component in self.work]
        return " · ".join(components) or "nothing yet"

    @cached_property
    def ended(self) -> pd.DataFrame:
        """The entries of the runs that have ended."""
        return self.entries[self.entries["status"].isin(ENDED)]

    @cached_property
    def scales(self) -> list[str]:
        """The scales at which a run has ended, the smallest first."""
        return sorted(set(self.ended["scale"]), key=lambda scale: SCALES.index(scale) if scale in SCALES else -1)

    @cached_property
    def axes(self) -> list[str]:
        """The axes of the study without `task` and `model`, which are part of every configuration."""
        axes: dict[str, None] = {}
        for levels in self.entries["levels"].unique():
            axes |= dict.fromkeys(json.loads(levels))
        return [axis for axis in axes if axis not in ("task", "model")]

    @cached_property
    def models(self) -> set[str]:
        """The names of the models."""
        return {json.loads(text)["name"] for text in self.entries["model"].unique()}

    def groups(self, scale: str, fold: bool) -> list[RunGroup]:
        """The groups of a scale, in the order of the study; with `fold`, all task seeds are one group."""
        groups: dict[str, RunGroup] = {}
        axes = [axis for axis in self.axes if not fold or axis != REPLICATES]
        for row in self.entries[self.entries["scale"] == scale].to_dict("records"):
            entry_levels = json.loads(row["levels"])
            levels: dict[str, Level | None] = {axis: entry_levels.get(axis) for axis in axes}
            levels["task"] = json.loads(row["task"])["name"]
            levels["model"] = json.loads(row["model"])["name"]
            group = groups.setdefault(canonical(levels), RunGroup(scale, levels))
            task_seed = entry_levels.get(REPLICATES) if fold else None
            mark = row["not_converged"]
            unknown = mark is None or mark != mark  # NULL in the store may arrive as NaN
            group.runs.append(
                GroupedRun(
                    row["trial"],
                    row["evaluation_id"],
                    (task_seed, int(row["seed"]), int(row["data_seed"])),
                    row["status"],
                    None if unknown else bool(mark),
                )
            )
            group.works.setdefault(task_seed, self.works.get((scale, canonical(entry_levels)), {}))
        return list(groups.values())

    def describe(self) -> str:
        """The scales, tasks, models and levels of the directory as a sentence, for error messages."""
        listed: dict[str, list[object]] = {
            "task": [*sorted({json.loads(text)["name"] for text in self.entries["task"].unique()})],
            "model": [*sorted(self.models)],
        }
        for axis in self.axes:
            levels = dict.fromkeys(json.loads(text).get(axis) for text in self.entries["levels"].unique())
            listed[axis] = [level for level in levels if level is not None]
        texts = []
        for axis, axis_levels in listed.items():
            more = ", …" if len(axis_levels) > _MOST_LEVELS else ""
            texts.append(f"{axis} {', '.join(map(str, axis_levels[:_MOST_LEVELS]))}{more}")
        scales = f" at {', '.join(self.scales)}" if any(self.scales) else ""
        return f"{self.name} holds {self.title}{scales}: {'; '.join(texts)}"

    def facts(self, trials: Collection[str]) -> dict[str, str]:
        """Versions and machines behind these trials: every fact with its values as text."""
        rows = self.provenance[self.provenance["trial"].isin(trials)]
        facts = {}
        for name in rows:
            values = sorted({str(value) for value in rows[name].dropna()})
            if values and name not in _COSTS:
                facts[str(name)] = " or ".join(values)
        return facts


def folds_task_seeds(a: RunDirectory, b: RunDirectory) -> bool:
    """Whether runs on several task seeds form one group: they do if both directories have that axis."""
    return REPLICATES in a.axes and REPLICATES in b.axes


def match_groups(a: RunDirectory, b: RunDirectory) -> Iterator[tuple[RunGroup, RunGroup]]:
    """Pairs of groups that agree in task, model and their level on every axis that both directories have.

    A group is matched with several groups of the other directory if these differ in an axis that the first does not
    have. Where each directory has only one model, the models need not agree: then the models are compared. Scales that
    both directories have are compared; if there is none, the largest of each.
    """
    for directory in (a, b):
        if directory.ended.empty:
            raise UsageError(
                f"{directory.name} has nothing to compare yet: none of its {len(directory.entries)} runs has ended"
            )
    axes = [axis for axis in a.axes if axis in b.axes and axis != REPLICATES]
    axes += ["task"] if len(a.models) == len(b.models) == 1 else ["task", "model"]
    fold = folds_task_seeds(a, b)
    common = [(scale, scale) for scale in a.scales if scale in b.scales]
    for scale_a, scale_b in common or [(a.scales[-1], b.scales[-1])]:
        candidates: dict[tuple[object, ...], list[RunGroup]] = {}
        for group in b.groups(scale_b, fold):
            candidates.setdefault(_match_key(group, axes), []).append(group)
        for group in a.groups(scale_a, fold):
            for candidate in candidates.get(_match_key(group, axes), []):
                yield group, candidate


def _match_key(group: RunGroup, axes: list[str]) -> tuple[object, ...]:
    """The levels that must agree. 1 and 1.0 agree; 1 and True do not, although they are equal in Python."""
    return tuple((isinstance(group.levels[axis], bool), group.levels[axis]) for axis in axes)


@dataclass(frozen=True)
class SharedTrials:
    """Trials that have ended in both directories: with identical numbers, or with changed ones.

    `different_records` counts the records that differ, `largest` is the largest difference between two values (NaN if
    there is none), `unshared_records` counts the records of these trials that only one directory has.
    """

    identical: frozenset[str]
    changed: frozenset[str]
    different_records: int
    largest: float
    unshared_records: int


def find_shared_trials(a: RunDirectory, b: RunDirectory) -> SharedTrials:
    """Compare, bit by bit, every record and the ending of the trials that have ended in both directories.

    Records of a trial are compared if they are of the same evaluation.
    """
    shared = set(a.ended["trial"]) & set(b.ended["trial"])
    records_a = a.records[a.records["trial"].isin(shared)]
    records_b = b.records[b.records["trial"].isin(shared)]
    merged = records_a.merge(records_b, on=_RECORD_KEY, how="outer", suffixes=("_a", "_b"), indicator="_origin")
    paired = merged[merged["_origin"] == "both"]
    different = _rows_that_differ(paired, _NUMBERS)
    gaps = (paired["value_a"] - paired["value_b"]).abs()[different]
    endings_a = a.ended[["trial", *_ENDING]].drop_duplicates("trial")
    endings_b = b.ended[["trial", *_ENDING]].drop_duplicates("trial")
    endings = endings_a.merge(endings_b, on="trial", suffixes=("_a", "_b"))
    changed = frozenset(paired["trial"][different]) | frozenset(endings["trial"][_rows_that_differ(endings, _ENDING)])
    return SharedTrials(
        identical=frozenset(shared) - changed,
        changed=changed,
        different_records=int(different.sum()),
        largest=float(gaps.max()) if gaps.notna().any() else np.nan,
        unshared_records=len(merged) - len(paired),
    )


def _rows_that_differ(merged: pd.DataFrame, columns: list[str]) -> pd.Series:
    """Where a column differs between the directories; values that are missing in both agree."""
    different = pd.Series(False, index=merged.index)
    for column in columns:
        x, y = merged[f"{column}_a"], merged[f"{column}_b"]
        different |= (x != y) & ~(x.isna() & y.isna())
    return different
