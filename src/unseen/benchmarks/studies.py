"""How well a study runs: what a second worker gains, and what running it costs besides training.

Real runs of worker processes into temporary directories, timed by the wall: on a busy machine the figures say little.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unseen.studies.rates import Rates
from unseen.studies.run import Settings, run_entries
from unseen.studies.slice import Outcome
from unseen.studies.store import Store
from unseen.studies.study import Entry, Grid


def workers(quick: bool = False) -> Iterator[dict[str, object]]:
    """Rows (stacks, S, seconds of both, ratios), a pass each: the same equal stacks with one worker and with two.

    *Steady* is from the beginning of the first slice to the last outcome in the store; the others are of the whole
    run, with the workers' start. `machine_ratio` is twice the time inside slices with one worker over that with two:
    what the machine itself gives two processes that share its caches and memory, and no runner could exceed.
    """
    stacks, members, steps, examples = (8, 1, 2, 50) if quick else (8, 10, 800, 1_000)
    grid = Grid(axes={}, base={"task": {"name": "retrieval/T6", "train_size": 2_000},
                               "model": {"name": "retrieval-transformer"},
                               "recipe": {"steps": steps, "batch": 10, "validation_examples": examples},
                               "evaluation": {"examples": examples}}, seeds=range(stacks * members))
    with _rates_of_its_own():
        Rates.measure([entry.cell for entry in grid.entries()])
        for _ in range(1 if quick else 2):
            one, two = (_timed(grid.entries(), count, members) for count in (1, 2))
            yield {"stacks": stacks, "S": members, "one_steady_seconds": round(one.steady, 2),
                   "two_steady_seconds": round(two.steady, 2), "one_seconds": round(one.wall, 2),
                   "two_seconds": round(two.wall, 2), "machine_ratio": round(2 * one.busy / two.busy, 2),
                   "steady_ratio": round(one.steady / two.steady, 2), "ratio": round(one.wall / two.wall, 2)}


def orchestration(quick: bool = False) -> Iterator[dict[str, object]]:
    """Rows (cells, workers, S, seconds by what they went for, shares): a study of many small cells, each trained.

    Orchestration is the workers' time that is not inside slices (setting up a stack, training, validating,
    evaluating), and the runner's own CPU time while they work: it takes that from them where there are as many workers
    as cores. The start (probes of the rates, workers importing torch) is counted in `share` and not in `steady_share`.
    S = 1 is the worst case: every cell is a slice of its own.
    """
    seeds = 1 if quick else 50
    for count, members, steps in ((1, 4, 4),) if quick else ((1, 10, 140), (2, 10, 140), (2, 1, 35)):
        entries = _small(steps, range(seeds)).entries()
        with _rates_of_its_own():
            began = time.perf_counter()
            Rates.measure([entry.cell for entry in entries])
            probes = time.perf_counter() - began
            run = _timed(entries, count, members)
        idle, steady = count * (probes + run.wall) - run.busy, count * run.steady
        yield {"cells": len(entries), "workers": count, "S": members, "training_seconds": round(run.training, 2),
               "slice_seconds": round(run.busy, 2), "probe_seconds": round(probes, 2),
               "start_seconds": round(run.start, 2), "runner_cpu_seconds": round(run.runner_cpu, 2),
               "commit_seconds": round(run.commits, 2), "seconds": round(probes + run.wall, 2),
               "steady_share": round((steady - run.busy + run.runner_cpu) / steady, 4),
               "share": round((idle + run.runner_cpu) / (count * (probes + run.wall)), 4)}


def _small(steps: int, seeds: Sequence[int]) -> Grid:
    """Tasks × models × learning rates × seeds: 20 cells for each seed, in ten shapes."""
    models = {"transformer": {"name": "retrieval-transformer", "positions": "none"},
              "lstm": {"name": "retrieval-lstm", "form": "basic"}}
    return Grid(
        axes={"task": {f"retrieval/T{i}": {"task": {"name": f"retrieval/T{i}"}} for i in (1, 2, 3, 4, 6)},
              "variant": {name: {"model": model} for name, model in models.items()},
              "rate": {0.001: {}, 0.003: {"recipe": {"learning_rate": 0.003}}}},
        base={"task": {"length": 5, "train_size": 1_000, "evaluation_size": 500},
              "recipe": {"steps": steps, "batch": 10, "validate_every": max(1, steps // 4),
                         "validation_examples": 250},
              "evaluation": {"examples": 500}}, seeds=seeds)


@dataclass(frozen=True)
class _Run:
    """Seconds: of the whole run, before its first slice, from there to its last outcome in the store; inside slices,
    of training in them, of writing, and of the runner's CPU from the first outcome on."""

    wall: float
    start: float
    steady: float
    busy: float
    training: float
    commits: float
    runner_cpu: float


def _timed(entries: Sequence[Entry], workers: int, members: int) -> _Run:
    """Run cells to their end in stacks of so many, into a directory that goes afterwards."""
    with tempfile.TemporaryDirectory(prefix="unseen-") as folder:
        began = time.perf_counter()
        with _Watched.write(Path(folder, "store")) as store:
            run_entries(entries, store, Settings("local", workers, size=members, keep="none", progress="none"), "")
            wall = time.perf_counter() - began
            unfinished = {status for status in store.status().values() if status != "finished"}
            training = float(store.spans().seconds.sum())
        if unfinished:
            raise RuntimeError(f"cells of the benchmark are {', '.join(unfinished)}")
        first, last = min(w.came - w.seconds for w in store.watched), max(w.written for w in store.watched)
        return _Run(wall, first - began, last - first, sum(w.seconds for w in store.watched), training,
                    sum(w.written - w.came for w in store.watched),
                    store.watched[-1].cpu_after - store.watched[0].cpu_before)


@dataclass(frozen=True)
class _Commit:
    """When an outcome came and was written, what its slice took, and the runner's CPU time before and after."""

    came: float
    written: float
    seconds: float
    cpu_before: float
    cpu_after: float


class _Watched(Store):
    """A store that notes its commits."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.watched: list[_Commit] = []

    def commit(self, stack: str, cells: Sequence[str], outcome: Outcome) -> None:
        """Write, and note it."""
        came, cpu = time.perf_counter(), time.process_time()
        super().commit(stack, cells, outcome)
        self.watched.append(_Commit(came, time.perf_counter(), outcome.seconds, cpu, time.process_time()))


@contextmanager
def _rates_of_its_own() -> Iterator[None]:
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
