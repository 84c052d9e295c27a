"""Whether trials cost more the more of them a study has: real runs of 10 to 10 000, each trial so small that what is left
is the runner and its store.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.rows import Asked, Row
from benchmarks.scaling_fit import exponents
from benchmarks.studies import Commit, Watched, check_finished, rates_of_its_own
from benchmarks.subprocesses import in_child
from benchmarks.timing import Timed
from unseen.running.runner import Settings, run_entries
from unseen.running.timing import Timing
from unseen.studies.study import Grid
from unseen.studies.trial import Entry

SEEDS = STACK = 10
"""Trials at each place of the study, and in each stack."""
_SETTINGS = Settings("local", 1, size=STACK, keep="none", progress="none")
UNITS = {
    "time per trial": "ms",
    "runner's CPU per trial": "ms",
    "runner's CPU before the first trial, per trial": "ms",
    "runner's peak": "MB",
    "grown by": "MB",
    "writing per record, first tenth": "µs",
    "writing per record, last tenth": "µs",
    "waiting per record, first tenth": "µs",
    "waiting per record, last tenth": "µs",
    "finding all done, CPU per trial": "ms",
    "finding all done, peak": "MB",
}
"""What is measured. *Time* is by the clock, from the beginning of the first chunk, in which the worker sets itself up,
to the last outcome in the store. *Writing* is CPU time of commits, *waiting* what they took by the clock beyond it (for
the disk, mostly), medians over commits. *Grown by* is since the runner had imported everything."""
FITTED = (
    "time per trial",
    "runner's CPU per trial",
    "runner's peak",
    "writing per record, last tenth",
    "finding all done, CPU per trial",
)


def trials(asked: Asked) -> Iterator[Row]:
    """Each size in runners of their own, with one worker process: a run from the start, and one that finds all done.

    The runner's CPU time and memory are without the worker's. What does not grow has an exponent of 0.
    """
    curves: dict[str, dict[int, float]] = defaultdict(dict)
    with rates_of_its_own():
        Timing.measure([entry.trial for entry in tiny(100)])
        for count in asked.among((10, 40) if asked.quick else (10, 100, 1_000, 10_000), lambda n: f"trials={n}"):
            for figure, values in _measured(count).items():
                found = Timed.of(values)
                curves[figure][count] = found.seconds
                yield Row(
                    f"trials={count}", figure, found.seconds, UNITS[figure], "less", found.low, found.high, found.rounds
                )
    for figure in FITTED:
        if len(curves[figure]) > 1:
            yield from exponents(f"{figure} over trials", curves[figure])


def tiny(count: int) -> list[Entry]:
    """Trials of one shape, ten seeds at each learning rate: one step of training, a few examples to evaluate."""
    places = count // SEEDS
    return Grid(
        axes={"rate": {i: {"recipe": {"learning_rate": 1e-3 * (i + 1) / places}} for i in range(places)}},
        base={
            "task": {"name": "rules/mlp", "rules": 2},
            "model": {"name": "rules-mlp", "width": 8, "gating": "none"},
            "recipe": {"steps": 1, "batch": 8, "validate_every": 1, "validation_examples": 16},
            "evaluation": {"examples": 16},
        },
        seeds=range(SEEDS),
    ).entries()


def _measured(count: int) -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory(prefix="unseen-") as folder:
        given = (count, str(Path(folder, "store")), os.environ["XDG_CACHE_HOME"])
        return {**in_child(run, *given), **in_child(run_again, *given)}


def run(count: int, store: str, cache: str) -> dict[str, list[float]]:
    """The figures of a run from the start."""
    os.environ["XDG_CACHE_HOME"] = cache  # the process may be forked from one that is older than the cache
    idle, began = _peak(), time.process_time()
    entries = tiny(count)
    with Watched.write(store) as opened:
        run_entries(entries, opened, _SETTINGS, "")
        ended, peak = time.process_time(), _peak()
        check_finished(opened)
        records = STACK * len(opened.rows("records", entries[0].trial.id))
    seen = opened.commits
    whole = {
        "time per trial": 1e3 * (seen[-1].written - seen[0].came + seen[0].seconds) / count,
        "runner's CPU per trial": 1e3 * (ended - seen[0].cpu_before) / count,
        "runner's CPU before the first trial, per trial": 1e3 * (seen[0].cpu_before - began) / count,
        "runner's peak": peak,
        "grown by": peak - idle,
    }
    return {**{figure: [value] for figure, value in whole.items()}, **written(seen, records)}


def run_again(count: int, store: str, cache: str) -> dict[str, list[float]]:
    """The figures of a run that finds everything done."""
    os.environ["XDG_CACHE_HOME"] = cache
    began, entries = time.process_time(), tiny(count)
    with Watched.write(store) as opened:
        run_entries(entries, opened, _SETTINGS, "")
    if opened.commits:
        raise RuntimeError("trials of the benchmark were trained again")
    return {
        "finding all done, CPU per trial": [1e3 * (time.process_time() - began) / count],
        "finding all done, peak": [_peak()],
    }


def written(seen: Sequence[Commit], records: int) -> dict[str, list[float]]:
    """Microseconds of CPU and of waiting for each of so many records, of every commit in the first tenth and the last
    (with few, of the first and the last)."""
    some, each = max(1, len(seen) // 10), 1e6 / records
    found: dict[str, list[float]] = {}
    for which, commits in (("first", seen[:some]), ("last", seen[-some:])):
        spent = [(c.cpu_after - c.cpu_before, c.written - c.came) for c in commits]
        found[f"writing per record, {which} tenth"] = [each * cpu for cpu, _ in spent]
        found[f"waiting per record, {which} tenth"] = [each * (wall - cpu) for cpu, wall in spent]
    return found


def _peak() -> float:
    """The most memory this process has held, in MB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1e6 if sys.platform == "darwin" else 1e6 / 1024)
