"""The battery of a study: valid at every scale, planned, and two cells of its smallest scale run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from unseen.errors import CheckFailed
from unseen.kit.verdict import Verdict, tried
from unseen.studies.catalog import STUDIES
from unseen.studies.claims import CLAIMS
from unseen.studies.grid import Entry
from unseen.studies.plan import plan
from unseen.studies.slice import Slice, Worker
from unseen.studies.study import Study, study

_SCALE = "smoke"
_WORKERS = 2


def checks(name: str) -> Iterator[tuple[str, Verdict]]:
    """Every check of a study; after one that failed, those that build on it are not made."""
    battery: dict[str, Callable[[], Verdict]] = {
        "loads": lambda: _loads(name),
        "claims": lambda: _claims(study(name)),
        "cells": lambda: _cells(study(name)),
        "plan": lambda: _plan(study(name)),
        "runs": lambda: _runs(study(name)),
    }
    for check, judge in battery.items():
        verdict = tried(judge)
        yield check, verdict
        if verdict[0] == "FAIL" and check != "claims":
            return


def _loads(name: str) -> Verdict:
    found = STUDIES.load(name)
    if not isinstance(found, Study):
        raise CheckFailed(f"the entry point is a {type(found).__name__}; expected a Study")
    if found.name != name:
        raise CheckFailed(f"it is registered as '{name}' and calls itself '{found.name}'")
    if _SCALE not in found.scales:
        raise CheckFailed(
            f"it has no scale {_SCALE}, which shows within a minute or so that all of it works; "
            f"it has {', '.join(found.scales)}"
        )
    return "ok", f"{found.name}@{found.version}, scales {', '.join(found.scales)}"


def _claims(found: Study) -> Verdict:
    for claim in found.claims:
        CLAIMS.entry(claim)
    return "ok", f"{len(found.claims) or 'none'} named"


def _cells(found: Study) -> Verdict:
    """`entries` refuses two places with one run and two runs at one place; equal ones are merged."""
    counts = {scale: len({entry.cell.id for entry in found.entries(scale)}) for scale in found.scales}
    return "ok", "each with an id of its own: " + ", ".join(f"{scale} {count}" for scale, count in counts.items())


def _plan(found: Study) -> Verdict:
    planned = plan(found.entries(_SCALE), _WORKERS)
    return "ok", (
        f"{_SCALE}: {planned.whole.cells} cells in {planned.stacks} stacks, {planned.whole.steps} steps, "
        f"{planned.whole.flops:.2g} FLOPs"
    )


def _runs(found: Study) -> Verdict:
    chosen = _two(found.entries(_SCALE))
    for entry in chosen:
        place = " ".join(f"{axis}={level}" for axis, level in entry.levels.items())
        outcome = Worker().do(Slice(0, (entry.cell,), None, math.inf))
        if outcome.error:
            raise CheckFailed(f"the cell at {place} failed: {outcome.error.strip().splitlines()[-1]}")
        (ended,) = (outcome.finished or {}).values()
        if ended.status == "diverged" or not all(ended.measures.values()):
            raise CheckFailed(f"the cell at {place} {ended.status} after {ended.step} steps and left no measures")
    return "ok", f"{len(chosen)} cells of {_SCALE} to their end, with measures"


def _two(entries: list[Entry]) -> list[Entry]:
    """The first cell, and one that differs from it in as many levels as any does."""
    first = entries[0]
    other = max(entries, key=lambda e: sum(e.levels[a] != v for a, v in first.levels.items() if a in e.levels))
    return [first] if other is first else [first, other]
