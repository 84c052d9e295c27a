"""How well a study runs: what a second worker gains, and what running it costs besides training.

Real runs of worker processes into temporary directories, timed by the wall: on a busy machine the figures say little.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.rows import Asked, Better, Row
from benchmarks.timing import Timed
from unseen.running.runner import Settings, run_entries
from unseen.running.timing import Timing
from unseen.store.schema import Outcome
from unseen.store.store import Store
from unseen.studies.study import Grid
from unseen.studies.trial import Entry

Figure = tuple[float, str, Better]
"""A number, its unit, and which way it is better."""
HOUR = 3600.0


def workers(asked: Asked) -> Iterator[Row]:
    """The same equal stacks with one worker and with two, in passes; medians over passes.

    *Steady* is from the beginning of the first chunk to the last outcome in the store; the others are of the whole run,
    with the workers' start. The machine's ratio is twice the time inside chunks with one worker over that with two:
    what the machine itself gives two processes that share its caches and memory, and no runner could exceed.
    """
    stacks, members, steps, examples = (8, 1, 2, 50) if asked.quick else (8, 10, 800, 1_000)
    case = f"retrieval-transformer stacks={stacks} S={members}"
    if not asked.wants(case):
        return
    grid = Grid(
        axes={},
        base={
            "task": {"name": "retrieval/T6", "train_size": 2_000},
            "model": {"name": "retrieval-transformer"},
            "recipe": {"steps": steps, "batch": 10, "validation_examples": examples},
            "evaluation": {"examples": examples},
        },
        seeds=range(stacks * members),
    )
    with rates_of_its_own():
        Timing.measure([entry.trial for entry in grid.entries()])
        passes = [
            _gained(*(watched(grid.entries(), count, members) for count in (1, 2)))
            for _ in range(1 if asked.quick or asked.patterns else 2)
        ]
    yield from _rows(case, passes)


def orchestration(asked: Asked) -> Iterator[Row]:
    """A study of many small trials, each trained: seconds by what they went for, and the share that is not training.

    Orchestration is the workers' time that is not inside chunks (setting up a stack, training, validating,
    evaluating), and the runner's own CPU time while they work: it takes that from them where there are as many workers
    as cores. The start (probes of the rates, workers importing torch) is in `share` and not in `steady share`.
    S = 1 is the worst case: every trial is a chunk of its own.
    """
    seeds = 1 if asked.quick else 50
    for count, members, steps in ((1, 4, 4),) if asked.quick else ((1, 10, 140), (2, 10, 140), (2, 1, 35)):
        entries = small(steps, range(seeds)).entries()
        case = f"trials={len(entries)} workers={count} S={members}"
        if asked.wants(case):
            with rates_of_its_own():
                began = time.perf_counter()
                Timing.measure([entry.trial for entry in entries])
                probes = time.perf_counter() - began
                yield from _rows(case, [_spent(watched(entries, count, members), probes)])


@dataclass(frozen=True)
class Run:
    """Seconds: of the whole run, before its first chunk, from there to its last outcome in the store; inside chunks,
    of training in them, of writing, and of the runner's CPU from the first outcome on."""

    workers: int
    trials: int
    wall: float
    start: float
    steady: float
    busy: float
    training: float
    commits: float
    runner_cpu: float


def _gained(one: Run, two: Run) -> dict[str, Figure]:
    return {
        **{
            f"workers={run.workers}, {what}": (seconds, "s", "less")
            for run in (one, two)
            for what, seconds in (("steady", run.steady), ("whole", run.wall))
        },
        **{
            f"workers={run.workers}, trials per hour": (HOUR * run.trials / run.wall, "/h", "more")
            for run in (one, two)
        },
        "ratio, steady": (one.steady / two.steady, "×", "more"),
        "ratio, whole": (one.wall / two.wall, "×", "more"),
        "machine's ratio": (2 * one.busy / two.busy, "×", "neither"),
    }


def _spent(run: Run, probes: float) -> dict[str, Figure]:
    whole, steady = run.workers * (probes + run.wall), run.workers * run.steady
    return {
        "training": (run.training, "s", "neither"),
        "inside chunks": (run.busy, "s", "neither"),
        "probes": (probes, "s", "less"),
        "start": (run.start, "s", "less"),
        "runner's CPU": (run.runner_cpu, "s", "less"),
        "writing": (run.commits, "s", "less"),
        "whole": (probes + run.wall, "s", "less"),
        "trials per hour": (HOUR * run.trials / (probes + run.wall), "/h", "more"),
        "steady share": ((steady - run.busy + run.runner_cpu) / steady, "", "less"),
        "share": ((whole - run.busy + run.runner_cpu) / whole, "", "less"),
    }


def _rows(case: str, passes: Sequence[Mapping[str, Figure]]) -> Iterator[Row]:
    for figure, (_, unit, better) in passes[0].items():
        found = Timed.of([one[figure][0] for one in passes])
        yield Row(case, figure, found.seconds, unit, better, found.low, found.high, found.rounds)


def small(steps: int, seeds: Sequence[int]) -> Grid:
    """Tasks × models × learning rates × seeds: 20 trials for each seed, in ten shapes."""
    models = {
        "transformer": {"name": "retrieval-transformer", "positions": "none"},
        "lstm": {"name": "retrieval-lstm", "form": "basic"},
    }
    return Grid(
        axes={
            "task": {f"retrieval/T{i}": {"task": {"name": f"retrieval/T{i}"}} for i in (1, 2, 3, 4, 6)},
            "variant": {name: {"model": model} for name, model in models.items()},
            "rate": {0.001: {}, 0.003: {"recipe": {"learning_rate": 0.003}}},
        },
        base={
            "task": {"length": 5, "train_size": 1_000, "evaluation_size": 500},
            "recipe": {"steps": steps, "batch": 10, "validate_every": max(1, steps // 4), "validation_examples": 250},
            "evaluation": {"examples": 500},
        },
        seeds=seeds,
    )


def watched(entries: Sequence[Entry], workers: int, members: int) -> Run:
    """Run trials to their end in stacks of so many, into a directory that goes afterwards."""
    with tempfile.TemporaryDirectory(prefix="unseen-") as folder:
        began = time.perf_counter()
        with Watched.write(Path(folder, "store")) as store:
            run_entries(entries, store, Settings("local", workers, size=members, keep="none", progress="none"), "")
            wall = time.perf_counter() - began
            check_finished(store)
            training = float(store.spans().seconds.sum())
        seen = store.commits
        first, last = min(c.came - c.seconds for c in seen), max(c.written for c in seen)
        return Run(
            workers,
            len(entries),
            wall,
            first - began,
            last - first,
            sum(c.seconds for c in seen),
            training,
            sum(c.written - c.came for c in seen),
            seen[-1].cpu_after - seen[0].cpu_before,
        )


def check_finished(store: Store) -> None:
    """Refuse to have measured a run that did not come to its end."""
    unfinished = {status for status in store.status().values() if status != "finished"}
    if unfinished:
        raise RuntimeError(f"trials of the benchmark are {', '.join(unfinished)}")


@dataclass(frozen=True)
class Commit:
    """When an outcome came and was written, what its chunk took, and the runner's CPU time before and after."""

    came: float
    written: float
    seconds: float
    cpu_before: float
    cpu_after: float


class Watched(Store):
    """A store that notes its commits."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.commits: list[Commit] = []

    def commit(self, stack: str, trials: Sequence[str], outcome: Outcome) -> None:
        """Write, and note it."""
        came, cpu = time.perf_counter(), time.process_time()
        super().commit(stack, trials, outcome)
        self.commits.append(Commit(came, time.perf_counter(), outcome.seconds, cpu, time.process_time()))


@contextmanager
def rates_of_its_own() -> Iterator[None]:
    """While inside, no rate is known but those measured there; the user's are left as they are."""
    before = os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory(prefix="unseen-") as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["XDG_CACHE_HOME"]
            else:
                os.environ["XDG_CACHE_HOME"] = before
