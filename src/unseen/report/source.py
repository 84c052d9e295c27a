"""What figures and pages are made from: the tables of a store, and the tasks behind its cells."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from unseen.errors import UsageError
from unseen.studies.store import ENDED, Store
from unseen.studies.study import SCALES, Study, catalogued
from unseen.studies.tables import cells_table, curves_table, labelled
from unseen.tasks import task as make_task
from unseen.tasks.base import Task

SERIES = ("variant", "gating", "model")
"""The axes that say which model it is, the most telling first."""


@dataclass(frozen=True)
class Source:
    """One scale of what a store holds (`train` has one scale, '').

    `records` is tidy, one row per number; `runs` has one row per cell with how it ended; both with a column per axis.
    `curves` reads the learning curves, which may be millions of points, when asked for. `axes` are those of the study,
    `task` and `model` among them where they vary beside the others.
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
        """What a directory holds at a scale; by default at the largest at which a run has ended."""
        path = Path(directory)
        with Store.read(path) as store:
            (records, entries), work = store.tables(), store.work
        held = sorted(set(entries["scale"]), key=lambda one: SCALES.index(one) if one in SCALES else -1)
        ended = set(entries["scale"][entries["status"].isin(ENDED)])
        if scale is not None and scale not in held:
            raise UsageError(f"{path} holds nothing at scale '{scale}'; it holds {', '.join(held) or 'nothing yet'}")
        chosen = (
            scale
            if scale is not None
            else next((one for one in reversed(held) if one in ended), held[-1] if held else "")
        )
        entries = entries[entries["scale"] == chosen].reset_index(drop=True)
        if "scale" in records:
            records = records[records["scale"] == chosen].reset_index(drop=True)
        runs = cells_table(entries)

        def curves() -> pd.DataFrame:
            with Store.read(path) as store:
                return curves_table(store.points(), entries)

        return cls(
            path,
            work,
            chosen,
            records,
            runs,
            _axes(entries, runs),
            dict(zip(entries["cell"], entries["task"], strict=True)),
            cache(curves),
        )

    @property
    def name(self) -> str:
        """The study with its version (`quickstart@1`), or the task and model of a `train`."""
        if "study" in self.work:
            return str(self.work["study"])
        return " · ".join(str(self.work[part]["name"]) for part in ("task", "model") if part in self.work)

    @property
    def study(self) -> Study | None:
        """The study, if this release has it in this version."""
        try:
            return catalogued(self.name) if "study" in self.work else None
        except UsageError:
            return None

    @property
    def selection(self) -> str:
        """Whose weights are shown: those that the paper of the study tests, else the best on validation."""
        return "best" if self.study is None else self.study.selection

    @property
    def series(self) -> str:
        """The axis that says which model it is."""
        several = [axis for axis in SERIES if axis in self.runs and self.runs[axis].nunique() > 1]
        return several[0] if several else "model"

    def task(self, cell: str) -> Task | None:
        """The task of a cell, if this release still makes it."""
        return _task(self.tasks[cell])

    def where(self, chosen: pd.Series) -> Source:
        """Only the runs for which `chosen`, a mask of `runs`, holds."""
        runs = self.runs[chosen]
        return replace(self, runs=runs, records=self.records[self.records["cell"].isin(runs["cell"])])


def _axes(entries: pd.DataFrame, runs: pd.DataFrame) -> tuple[str, ...]:
    if entries.empty:
        return ()
    axes = [axis for axis in labelled(entries)[1] if axis != "scale"]
    more = [part for part in ("task", "model") if runs[part].nunique() > 1 and not _follows(runs, part, axes)]
    return (*more, *axes)


def _follows(runs: pd.DataFrame, part: str, axes: list[str]) -> bool:
    """Whether the axes already say which task or model it is."""
    return bool(axes) and bool((runs.groupby(axes, dropna=False)[part].nunique() == 1).all())


@cache
def _task(identity: str) -> Task | None:
    options = json.loads(identity)
    version = options.pop("version")
    try:
        made = make_task(**options)
    except UsageError:
        return None
    return made if made.version == version else None
