"""Plans: what a study costs before it runs: trials, steps, FLOPs and time per level."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from unseen.errors import UsageError
from unseen.running.stacks import collect_evaluations, divide_into_stacks, makespan
from unseen.studies.trial import Entry, format_options

if TYPE_CHECKING:
    from unseen.running.timing import Timing
    from unseen.store.store import Store
    from unseen.studies.grid import Level

START = 5.0
"""Seconds in which a run and its workers, all at once, have imported torch, and the last results are summed up."""


@dataclass(frozen=True)
class WorkTotals:
    """Some trials of a study, how many of them have ended, and what remains: training steps of all members, their
    FLOPs, core seconds (None: not estimated).
    """

    trials: int
    ended: int
    steps: int
    flops: float
    seconds: float | None


@dataclass(frozen=True)
class Plan:
    """A study at one scale: what remains of it in all and at each level of each axis, in how many stacks.

    `parameters` are the fewest and the most that a model of the study trains; `memory` are the bytes that the largest
    stack needs, so a worker (0 where nothing is left to do); `wall_seconds` is the time from start to
    end with this many workers (None: not estimated), an upper bound if members may stop early (`at_most`).
    """

    whole: WorkTotals
    levels: Mapping[str, Mapping[Level, WorkTotals]]
    stacks: int
    parameters: tuple[int, int]
    memory: float
    workers: int
    wall_seconds: float | None
    at_most: bool


class _Remaining(NamedTuple):
    """The remaining work of one trial."""

    share: float
    steps: int
    flops: float
    seconds: float


def plan(
    entries: Sequence[Entry], workers: int, timing: Timing | None = None, done: Mapping[str, float] | None = None
) -> Plan:
    """Count what remains of a study, and estimate its time where there is timing. `done` is the share of each trial, by
    id, that has been done (see `shares_done`). A trial with several evaluations is counted once, and at all its levels.
    """
    from unseen.running.flops import step_cost  # loads torch
    from unseen.running.memory import stack_memory

    trials = {entry.trial.id: entry.trial for entry in entries}
    shares = {trial: 1 - (done or {}).get(trial, 0.0) for trial in trials}
    pending = [trial for trial in trials.values() if shares[trial.id]]
    stacks = divide_into_stacks(pending, workers, timing, evaluations=collect_evaluations(entries))
    seconds: dict[str, float] = {}
    if timing is not None:
        for stack in stacks:
            per_member = timing.stack_seconds(stack) / len(stack)
            for trial in stack:
                seconds[trial.id] = per_member * shares[trial.id]
    remaining: dict[str, _Remaining] = {}
    parameters = []
    for trial in trials.values():
        cost = step_cost(trial)
        share = shares[trial.id]
        steps = trial.recipe.steps
        parameters.append(cost.parameters)
        remaining[trial.id] = _Remaining(
            share, round(share * steps), share * steps * cost.flops, seconds.get(trial.id, 0.0)
        )
    by_level: dict[str, dict[Level, list[_Remaining]]] = defaultdict(lambda: defaultdict(list))
    for entry in entries:
        for axis, level in entry.levels.items():
            by_level[axis][level].append(remaining[entry.trial.id])
    timed = timing is not None
    levels: dict[str, dict[Level, WorkTotals]] = {}
    for axis, by_axis in by_level.items():
        levels[axis] = {level: _add_up(rows, timed) for level, rows in by_axis.items()}
    stack_times = []
    if timed:
        for stack in stacks:
            stack_times.append(sum(seconds[trial.id] for trial in stack))
    wall_seconds = START + makespan(stack_times, workers) if stack_times else 0.0
    return Plan(
        whole=_add_up(list(remaining.values()), timed),
        levels=levels,
        stacks=len(stacks),
        parameters=(min(parameters), max(parameters)),
        memory=stack_memory(stacks),
        workers=workers,
        wall_seconds=wall_seconds if timed else None,
        at_most=any(trial.recipe.plateau is not None for trial in pending),
    )


def check_entries(entries: Iterable[Entry], *, runnable: bool = True) -> None:
    """Refuse models that can't be built and, if they are to be `runnable` here, those that do not fit this machine's
    memory."""
    from unseen.running.flops import step_cost  # loads torch
    from unseen.running.memory import check_memory

    trials = {entry.trial.id: entry.trial for entry in entries}.values()
    if runnable:
        check_memory(trials)
    for trial in trials:
        cost = step_cost(trial)
        if cost.error:
            check_memory([trial])  # says how much is needed, where the allocator only says that it is too much
            names = f"{format_options(trial.model.options())} on {format_options(trial.task.options())}"
            raise UsageError(f"{names} can't be used: {cost.error}")


def shares_done(store: Store, entries: Iterable[Entry]) -> dict[str, float]:
    """The share of each trial, by id, that a store has: all of it once it has ended, in whichever way."""
    rows = store.trials().set_index("trial")
    shares = {}
    for trial in (entry.trial for entry in entries):
        if trial.id in rows.index:
            status = rows.status[trial.id]
            shares[trial.id] = float(rows.step[trial.id] / trial.recipe.steps) if status == "pending" else 1.0
    return shares


def _add_up(rows: Sequence[_Remaining], timed: bool) -> WorkTotals:
    return WorkTotals(
        len(rows),
        sum(row.share == 0 for row in rows),
        sum(row.steps for row in rows),
        math.fsum(row.flops for row in rows),
        math.fsum(row.seconds for row in rows) if timed else None,
    )
