"""What a study costs, before it runs: its cells as stacks, and counts, operations and time per axis level."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from unseen.config import Config
from unseen.engine.recipe import PER_MEMBER
from unseen.studies.cell import Cell
from unseen.studies.cost import cost, counts
from unseen.studies.grid import Entry, Level

if TYPE_CHECKING:
    from unseen.studies.rates import Rates
    from unseen.studies.store import Store

Stack = tuple[Cell, ...]
SIZE = 10
"""How many cells to stack where nothing has been measured."""
START = 5.0
"""Seconds in which a run and its workers, all at once, have imported torch, and the last results are summed up."""


@dataclass(frozen=True)
class Tally:
    """Some cells of a study, how many of them have ended, and what is left to do: training steps of all members,
    their FLOPs, core seconds (None: not estimated).
    """

    cells: int
    ended: int
    steps: int
    flops: float
    seconds: float | None


@dataclass(frozen=True)
class Plan:
    """A study at one scale: what is left of it in all and at each level of each axis, in how many stacks.

    `parameters` are the fewest and the most that a model of the study trains; `wall_seconds` is the time from start to
    end with so many workers (None: not estimated), and the most it can be if members may stop early (`at_most`).
    """

    whole: Tally
    levels: Mapping[str, Mapping[Level, Tally]]
    stacks: int
    parameters: tuple[int, int]
    workers: int
    wall_seconds: float | None
    at_most: bool


class _Row(NamedTuple):
    """What is left of one cell."""

    share: float
    steps: int
    flops: float
    seconds: float


def plan(
    entries: Sequence[Entry], workers: int, rates: Rates | None = None, done: Mapping[str, float] | None = None
) -> Plan:
    """Count what is left of a study, and estimate its time where there are rates. `done` is the share of each cell,
    by id, that has been done (see `shares_done`).
    """
    left = {e.cell.id: 1 - (done or {}).get(e.cell.id, 0.0) for e in entries}
    stacks = arrange([e.cell for e in entries if left[e.cell.id]], workers, rates)
    seconds: dict[str, float] = {}
    if rates is not None:
        for stack in stacks:
            each = rates.stack_seconds(stack) / len(stack)
            seconds |= {cell.id: each * left[cell.id] for cell in stack}
    costs = [cost(entry.cell) for entry in entries]
    counts().save()
    rows: list[_Row] = []
    by_level: dict[str, dict[Level, list[_Row]]] = defaultdict(lambda: defaultdict(list))
    for entry, found in zip(entries, costs, strict=True):
        share, steps = left[entry.cell.id], entry.cell.recipe.steps
        row = _Row(share, round(share * steps), share * steps * found.flops, seconds.get(entry.cell.id, 0.0))
        rows.append(row)
        for axis, level in entry.levels.items():
            by_level[axis][level].append(row)
    timed = rates is not None
    return Plan(
        whole=_tally(rows, timed),
        levels={
            axis: {level: _tally(some, timed) for level, some in levels.items()} for axis, levels in by_level.items()
        },
        stacks=len(stacks),
        parameters=(min(c.parameters for c in costs), max(c.parameters for c in costs)),
        workers=workers,
        wall_seconds=_wall([sum(seconds[c.id] for c in stack) for stack in stacks], workers) if timed else None,
        at_most=any(e.cell.recipe.patience is not None for e in entries if left[e.cell.id]),
    )


def shares_done(store: Store, entries: Iterable[Entry]) -> dict[str, float]:
    """How much of each cell, by id, a store has: all of it once it has ended, in whatever way."""
    cells = store.cells()
    reached = dict(zip(cells.cell, zip(cells.status, cells.step, strict=True), strict=True))
    found = {}
    for cell in (entry.cell for entry in entries):
        if cell.id in reached:
            status, step = reached[cell.id]
            found[cell.id] = step / cell.recipe.steps if status == "pending" else 1.0
    return found


def shape(cell: Cell) -> str:
    """Cells of equal shape can be one stack: all but seeds, the instance of the task, and the options of a recipe that
    are each member's own."""
    return "\n".join(
        [
            _shared(cell.task, frozenset(cell.task.instance)),
            cell.model.as_json,
            cell.evaluation.as_json,
            _shared(cell.recipe, PER_MEMBER),
        ]
    )


_SHARED: dict[tuple[str, frozenset[str]], str] = {}


def _shared(part: Config, own: frozenset[str]) -> str:
    """The options of a part that the members of a stack share, as JSON, written once for each."""
    key = (part.as_json, own)
    if key not in _SHARED:
        _SHARED[key] = part.model_dump_json(exclude=set(own))
    return _SHARED[key]


def arrange(cells: Iterable[Cell], workers: int, rates: Rates | None = None, size: int | None = None) -> list[Stack]:
    """Every cell in one stack of its shape, the longest stack first.

    A stack is as large as pays by `rates`, or as `size` says, and smaller where a worker would have none, or where all
    would be done clearly sooner.
    """
    groups: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[shape(cell)].append(cell)
    price = _guess if rates is None else rates.stack_seconds
    fewest = {
        key: math.ceil(len(group) / (size or (SIZE if rates is None else rates.size(group[0]))))
        for key, group in groups.items()
    }
    total = {key: sum(map(price, _cut(group, fewest[key]))) for key, group in groups.items()}
    ideal = sum(total.values()) / workers
    wanted = min(workers, sum(map(len, groups.values())))
    best: list[tuple[float, Stack]] = []
    soonest = limit = math.inf
    # As large as pays first; then none may take longer than an ideally balanced worker, than half of that, a quarter.
    while len(best) < wanted or (size is None and soonest > 1.05 * ideal and limit >= ideal / 4):
        found = [
            (price(stack), stack)
            for key, group in groups.items()
            for stack in _cut(group, max(fewest[key], math.ceil(total[key] / limit - 1e-9)))
        ]
        end = makespan([seconds for seconds, _ in found], workers)
        if len(best) < wanted or end < 0.95 * soonest:
            best, soonest = found, end
        limit = min(limit / 2, ideal)
    return [stack for _, stack in sorted(best, key=lambda pair: pair[0], reverse=True)]


def makespan(times: Iterable[float], workers: int) -> float:
    """When the last is done, if a worker that is free always takes the longest that waits.

    >>> makespan([3, 3, 2, 2, 2], workers=2)
    7.0
    """
    busy = [0.0] * workers
    for seconds in sorted(times, reverse=True):
        heapq.heapreplace(busy, busy[0] + seconds)
    return max(busy)


def _wall(times: Sequence[float], workers: int) -> float:
    return START + makespan(times, workers) if times else 0.0


def _cut(group: Sequence[Cell], count: int) -> list[Stack]:
    """So many stacks, or as many as there are cells, as equal as they can be."""
    count = min(count, len(group))
    cuts = [len(group) * i // count for i in range(count + 1)]
    return [tuple(group[begin:end]) for begin, end in pairwise(cuts)]


def _guess(stack: Stack) -> float:
    """What a stack costs where nothing has been measured: as if a step's overhead were one more member's work."""
    return max(cost(stack[0]).flops, 1.0) * stack[0].recipe.steps * (1 + len(stack))


def _tally(rows: Sequence[_Row], timed: bool) -> Tally:
    return Tally(
        len(rows),
        sum(row.share == 0 for row in rows),
        sum(row.steps for row in rows),
        math.fsum(row.flops for row in rows),
        math.fsum(row.seconds for row in rows) if timed else None,
    )
