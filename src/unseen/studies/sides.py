"""The sides of a comparison: what each directory holds, and which places of two of them stand beside each other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from unseen.config import canonical
from unseen.errors import UsageError
from unseen.studies.cell import words
from unseen.studies.grid import Level
from unseen.studies.store import ENDED, Store
from unseen.studies.study import SCALES

REPLICATES = "task_seed"
"""The axis whose levels are draws of one task: like seeds, they are what a place is repeated over."""
_MOST = 6
"""So many levels are listed of an axis."""


@dataclass(frozen=True)
class Run:
    """One cell at a place; runs with the same `key` (task seed, seed, data seed) are a pair."""

    cell: str
    key: tuple[Level | None, int, int]
    status: str
    still_learning: bool | None


@dataclass(frozen=True)
class Place:
    """The runs that differ in nothing but their seeds, with what they do, by task seed."""

    scale: str
    levels: Mapping[str, Level | None]
    runs: tuple[Run, ...]
    works: Mapping[Level | None, Mapping[str, Any]]


@dataclass(frozen=True)
class Side:
    """What one directory holds, as tables; `works` says what is done at (scale, levels as canonical JSON)."""

    name: str
    work: Mapping[str, Any]
    works: Mapping[tuple[str, str], Mapping[str, Any]]
    entries: pd.DataFrame
    records: pd.DataFrame
    provenance: pd.DataFrame

    @classmethod
    def read(cls, directory: str | Path) -> Side:
        """Everything a comparison needs of a directory; it may be written to meanwhile."""
        with Store.read(directory) as store:
            records, entries = store.tables()
            works = {key: place.work for key, place in store.places().items()}
            return cls(str(directory), store.work, works, entries, records, store.provenance())

    @property
    def title(self) -> str:
        """The study with its version, or the task and model of a `train`."""
        if "study" in self.work:
            return str(self.work["study"])
        return " · ".join(words(self.work[part]) for part in ("task", "model") if part in self.work) or "nothing yet"

    @cached_property
    def ended(self) -> pd.DataFrame:
        """The entries of the runs that have ended."""
        return self.entries[self.entries["status"].isin(ENDED)]

    @cached_property
    def scales(self) -> list[str]:
        """The scales at which a run has ended, the smallest first."""
        return sorted(set(self.ended["scale"]), key=lambda one: SCALES.index(one) if one in SCALES else -1)

    @cached_property
    def axes(self) -> list[str]:
        """The axes of the study; `task` and `model` are part of every place anyway."""
        found = (axis for levels in self.entries["levels"].unique() for axis in json.loads(levels))
        return [axis for axis in dict.fromkeys(found) if axis not in ("task", "model")]

    @cached_property
    def models(self) -> set[str]:
        """The names of the models."""
        return {json.loads(text)["name"] for text in self.entries["model"].unique()}

    def places(self, scale: str, fold: bool) -> list[Place]:
        """The places of a scale in the order of the study; `fold`: all task seeds are one place."""
        runs: dict[str, tuple[dict[str, Level | None], list[Run], dict[Level | None, Mapping[str, Any]]]] = {}
        columns = ["levels", "task", "model", "cell", "seed", "data_seed", "status", "still_learning"]
        chosen = self.entries[self.entries["scale"] == scale]
        for text, task, model, cell, seed, data_seed, status, still in chosen[columns].itertuples(index=False):
            levels = json.loads(text)
            key = levels.get(REPLICATES) if fold else None
            at: dict[str, Level | None] = {
                axis: levels.get(axis) for axis in self.axes if not fold or axis != REPLICATES
            }
            at |= {"task": json.loads(task)["name"], "model": json.loads(model)["name"]}
            _, found, works = runs.setdefault(canonical(at), (at, [], {}))
            found.append(
                Run(
                    cell,
                    (key, int(seed), int(data_seed)),
                    status,
                    None if still != still or still is None else bool(still),
                )
            )
            works.setdefault(key, self.works.get((scale, canonical(levels)), {}))
        return [Place(scale, at, tuple(found), works) for at, found, works in runs.values()]

    def holds(self) -> str:
        """What there is to compare, in words: scales, tasks, models, the levels of each axis."""
        tasks = sorted({json.loads(text)["name"] for text in self.entries["task"].unique()})
        listed: dict[str, list[object]] = {"task": [*tasks], "model": [*sorted(self.models)]}
        for axis in self.axes:
            found = (json.loads(text).get(axis) for text in self.entries["levels"].unique())
            listed[axis] = [level for level in dict.fromkeys(found) if level is not None]
        said = [
            f"{axis} {', '.join(map(str, levels[:_MOST]))}{', …' if len(levels) > _MOST else ''}"
            for axis, levels in listed.items()
        ]
        scales = f" at {', '.join(self.scales)}" if any(self.scales) else ""
        return f"{self.name} holds {self.title}{scales}: {'; '.join(said)}"


def scales_of(a: Side, b: Side) -> list[tuple[str, str]]:
    """The scales that are compared: those that both have, else the largest of each."""
    common = [(scale, scale) for scale in a.scales if scale in b.scales]
    return common or [(a.scales[-1], b.scales[-1])]


def folded(a: Side, b: Side) -> bool:
    """Whether runs on several task seeds stand at one place: they do where both sides have that axis."""
    return REPLICATES in a.axes and REPLICATES in b.axes


def matched(a: Side, b: Side) -> Iterator[tuple[Place, Place]]:
    """The places of two sides that agree in task, model and their level on every axis that both have.

    A place of one side stands beside several of the other that differ in an axis the first does not have. Where each
    side has one model only, the models need not agree: then they are what is compared.
    """
    for side in (a, b):
        if side.ended.empty:
            raise UsageError(f"{side.name} has nothing to compare yet: none of its {len(side.entries)} runs has ended")
    by = [axis for axis in a.axes if axis in b.axes and axis != REPLICATES]
    by += ["task"] if len(a.models) == len(b.models) == 1 else ["task", "model"]
    for scale_a, scale_b in scales_of(a, b):
        others: dict[tuple[object, ...], list[Place]] = {}
        for place in b.places(scale_b, folded(a, b)):
            others.setdefault(_key(place, by), []).append(place)
        for place in a.places(scale_a, folded(a, b)):
            yield from ((place, other) for other in others.get(_key(place, by), []))


def _key(place: Place, by: list[str]) -> tuple[object, ...]:
    """The levels that must agree; 1 and 1.0 do, 1 and true do not."""
    return tuple((isinstance(place.levels[axis], bool), place.levels[axis]) for axis in by)
