"""The runs that a claim needs, and their price in core-hours by the rates that ship with the package."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pandas as pd

from unseen.claims.claim import Claim, JudgedClaim
from unseen.claims.criterion import Criterion, Need, Obstacle, Role, Verdict
from unseen.claims.evidence import Evidence
from unseen.claims.judge import key_columns, select_setting
from unseen.errors import UsageError
from unseen.store.tables import all_options
from unseen.studies.study import find_catalogued
from unseen.studies.trial import Entry

SMOKE = "smoke"
"""The scale that tries whether everything runs; nothing is judged from it."""
OPEN: tuple[Verdict, ...] = ("undecided", "not reached", "in progress")
"""The verdicts on claims that have runs and are not decided."""
LONGER = 2
"""Runs that had not converged are trained again with this many times as many steps."""


# -- which runs a claim needs -----------------------------------------------------------------------------------------


def planned_runs(entries: Sequence[Entry], scale: str) -> pd.DataFrame:
    """Entries of a study as the table of their runs would have them; `trial` is the place of each in the list."""
    rows = []
    for number, entry in enumerate(entries):
        trial = entry.trial
        seeds = {"seed": trial.seed, "data_seed": trial.data_seed}
        row: dict[str, Any] = {**entry.levels, "scale": scale, **seeds, "trial": str(number)}
        for component, config in (("task", trial.task), ("model", trial.model), ("recipe", trial.recipe)):
            identity = config.identity()
            row[component] = identity["name"]
            for option, value in all_options(component, identity).items():
                row[f"{component}.{option}"] = value
        rows.append(row)
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class NeededRuns:
    """The numbers (in a list of entries) of the runs that criteria of a claim are about, and the criteria that have all
    their runs."""

    numbers: frozenset[int]
    runnable: tuple[Criterion, ...]

    def count(self, role: Role) -> int:
        """How many of the criteria of a role have all their runs."""
        return sum(criterion.role == role for criterion in self.runnable)


def select_needed(claim: Claim, planned: pd.DataFrame) -> NeededRuns:
    """Select what a claim needs of these runs."""
    runs, _, printed_for = select_setting(claim, planned)
    evidence = Evidence(pd.DataFrame(), runs, key_columns(claim), claim.design)
    needed: set[int] = set()
    runnable: list[Criterion] = []
    for criterion in claim.criteria:
        groups = criterion.quantity.groups
        if (criterion.printed and printed_for) or any(evidence.find_absent(group) for group in groups):
            continue
        runnable.append(criterion)
        for group in groups:
            needed.update(runs["trial"][group.selects(runs)].astype(int))
    return NeededRuns(frozenset(needed), tuple(runnable))


def scale_for(claim: Claim, tried: Collection[str] = ()) -> str:
    """Return the smallest scale that can decide a claim: with all its headline criteria, and half of its details.

    If there is none, it is the one with the most headline criteria (of these the one with the most details); empty if no
    criterion has runs. A scale of which the study says that it cannot decide the claim is not considered.

    >>> from unseen.claims import CLAIMS
    >>> scale_for(CLAIMS.load("gcog/distractors")), scale_for(CLAIMS.load("retrieval/table2"))
    ('mini', 'small')
    """
    study = find_catalogued(claim.study)
    headlines = sum(criterion.role == "headline" for criterion in claim.criteria)
    details = len(claim.criteria) - headlines
    best_scale = ""
    most = (0, 0)
    for scale in study.scales:
        unreachable = scale == study.default_scale and claim.name in study.unreachable
        if scale == SMOKE or scale in tried or unreachable:
            continue
        needed = select_needed(claim, catalogued_runs(claim.study, scale))
        runnable = needed.count("headline"), needed.count("detail")
        if runnable[0] == headlines and 2 * runnable[1] >= details:
            return scale
        if runnable > most:
            best_scale = scale
            most = runnable
    return best_scale


@lru_cache(maxsize=16)
def catalogued_runs(name: str, scale: str) -> pd.DataFrame:
    """One row per configuration of a study of the catalogue, for one seed."""
    return planned_runs(find_catalogued(name).entries(scale, seeds=[0]), scale)


# -- what they cost ---------------------------------------------------------------------------------------------------


def price_entries(entries: Iterable[Entry]) -> float:
    """Core-hours of these trainings, each counted once."""
    from unseen.running.timing import Timing  # loads torch

    timing = Timing()
    trials = {entry.trial.id: entry.trial for entry in entries}
    return sum(timing.seconds(trial) for trial in trials.values()) / 3600


@lru_cache(maxsize=64)
def price_study(name: str, scale: str) -> float:
    """Core-hours of a whole study of the catalogue, as `unseen run` runs it."""
    return price_entries(find_catalogued(name).entries(scale))


def price_unit(claim: Claim, scale: str) -> float | None:
    """Core-hours of one further unit (seed or task) of all configurations of a claim; None outside the catalogue."""
    needed = _needed_entries(claim, scale)
    cluster = claim.design.cluster
    units = {entry.levels.get(cluster) if cluster else (entry.trial.seed, entry.trial.data_seed) for entry in needed}
    return price_entries(needed) / len(units) if needed else None


def _needed_entries(claim: Claim, scale: str) -> list[Entry]:
    """What a study of the catalogue runs for a claim at a scale; nothing outside the catalogue."""
    try:
        study = find_catalogued(claim.study)
        entries = study.entries(scale) if scale in study.scales else []
    except UsageError:
        return []
    if not entries:
        return []
    return [entries[number] for number in sorted(select_needed(claim, planned_runs(entries, scale)).numbers)]


@dataclass(frozen=True)
class MainNeed:
    """What would settle an open claim first, and how many of it (None: not known).

    `usable` is the number of units that there are.
    """

    kind: Need
    count: int | None = None
    usable: int = 0


def find_main_need(judged: JudgedClaim) -> MainNeed:
    """Return what would settle an open claim first.

    Steps come before seeds, since more seeds of unfinished training say nothing.
    """
    waiting = [finding.waiting for finding in judged.compared if finding.waiting is not None]
    needs: tuple[Need, ...] = ("steps", "seeds", "tasks", "runs")
    for need in needs:
        alike = [entry for entry in waiting if entry.kind == need]
        if alike:
            usable = max(entry.usable for entry in alike)
            counts = [
                entry.count for entry in alike if entry.count is not None and entry.reason is not Obstacle.TOO_FEW
            ]
            # One criterion whose count is not known leaves that of the claim open.
            return MainNeed(need, max(counts) if len(counts) == len(alike) else None, usable)
    return MainNeed("nothing")


def price_settling(judged: JudgedClaim) -> float | None:
    """Core-hours of what would settle an open claim first; None for a decided one, or where that cannot be told.

    More units cost what those of the claim's configurations cost. For more steps they are trained again: as much longer
    as it takes, at least `LONGER` times. Runs that are missing cost what the command that runs them costs.
    """
    if judged.verdict not in OPEN:
        return None
    need = find_main_need(judged)
    if need.kind == "runs":
        return _price_missing(judged)
    price = price_unit(judged.claim, judged.scale)
    if price is None:
        return None
    if need.kind == "steps":
        steps = max(entry.trial.recipe.steps for entry in _needed_entries(judged.claim, judged.scale))
        return max(LONGER, 1 + (need.count or 0) / steps) * max(need.usable, 1) * price
    return max(need.count - need.usable, 0) * price if need.count is not None else None


def _price_missing(judged: JudgedClaim) -> float | None:
    try:
        scale = scale_for(judged.claim, {judged.scale})
    except UsageError:  # a study that is not in the catalogue
        return None
    return price_study(judged.claim.study, scale) if scale else None
