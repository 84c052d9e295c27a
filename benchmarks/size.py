"""How large a study may grow: the time to count it, to enter it in a store, and to list what a store holds of it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from benchmarks.rows import Asked, Row
from benchmarks.timing import timed
from unseen.api import results
from unseen.store.schema import Finished, Outcome, Span
from unseen.store.store import Store
from unseen.studies.study import study
from unseen.studies.trial import Entry, evaluation_id
from unseen.training.evaluate import Measure

SEEDS, STACK = 10, 500
"""Of every combination of levels; trials that are written in one transaction."""
_STUDY: dict[str, Any] = {
    "study": "many-trials",
    "seeds": SEEDS,
    "base": {"model": {"name": "retrieval-transformer"}},
    "axes": {
        "task": [f"retrieval/T{i}" for i in (1, 2, 3, 4, 6)],
        "task.length": [5, 10, 20, 30],
        "recipe.batch": [10, 20, 30, 50, 100],
        "recipe.learning_rate": [1e-4, 2e-4, 3e-4, 5e-4, 1e-3, 2e-3, 3e-3, 5e-3, 1e-2, 2e-2],
    },
}
"""20 tasks × 50 recipes."""


def size(asked: Asked) -> Iterator[Row]:
    """Seconds to look at a study of 10 000 trials that were never trained, with 20 records each.

    What begins with `unseen` is a command in a process of its own, from its start to its end.
    """
    with tempfile.TemporaryDirectory(prefix="unseen-") as folder:
        file, directory = Path(folder, "many.yaml"), Path(folder, "store")
        file.write_text(
            yaml.safe_dump(_STUDY | {"axes": _STUDY["axes"] | {"task": ["retrieval/T1"]}} if asked.quick else _STUDY)
        )
        entries = study(str(file)).entries("full")
        ways: dict[str, Callable[[], object]] = {
            "unseen plan FILE --no-probe": partial(_unseen, "plan", file, "--no-probe"),
            "enter all trials": partial(_enter, entries, folder),
            "unseen results DIR": partial(_unseen, "results", directory),
            "unseen results DIR --trials --format csv": partial(
                _unseen, "results", directory, "--trials", "--format", "csv"
            ),
            "unseen.results(DIR)": partial(results, directory),
        }
        _fill(entries, directory)
        for case in asked.among(list(ways)):
            found = timed({case: ways[case]}, 1 if asked.quick else 5)[case]
            yield Row(case, f"trials={len(entries)}", found.seconds, "s", "less", found.low, found.high, found.rounds)


def _unseen(*arguments: object) -> None:
    subprocess.run([sys.executable, "-m", "unseen", *map(str, arguments)], stdout=subprocess.DEVNULL, check=True)


def _enter(entries: Sequence[Entry], folder: str) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as directory, Store.write(directory) as store:
        store.add(entries, "full")


def _fill(entries: Sequence[Entry], directory: Path) -> None:
    """A finished store, as if all had been trained."""
    with Store.write(directory) as store:
        store.set_work({"study": "many-trials@1"})
        store.add(entries, "full")
        for start in range(0, len(entries), STACK):
            finished = {
                e.trial.id: _finished(start + i, evaluation_id(e.trial.evaluation))
                for i, e in enumerate(entries[start : start + STACK])
            }
            spans = {trial: Span(0, done.step, 1.0, 1.0, "host:1") for trial, done in finished.items()}
            store.commit(f"stack {start}", list(finished), Outcome(0, spans=spans, finished=finished))


def _finished(number: int, evaluation: str) -> Finished:
    value = number % 997 / 997
    measures = [
        Measure(split, "" if level == "" else "scenario", level, metric, value, 0.01, 1_000)
        for split in ("iid", "ood/single")
        for level, metric in [
            ("", "loss"),
            ("", "accuracy"),
            ("none", "accuracy"),
            ("first", "accuracy"),
            ("both", "accuracy"),
        ]
    ]
    return Finished(
        "finished", 10_000, 9_000, False, "", {evaluation: {"best": measures, "last": measures}}, {}, {"seconds": 1.0}
    )
