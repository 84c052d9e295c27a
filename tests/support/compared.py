"""Stores for comparisons: written through the store's own API with made-up numbers, nothing is trained."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from unseen.config import canonical
from unseen.models import options
from unseen.store.schema import Finished, Outcome, Span
from unseen.store.store import Store
from unseen.studies.trial import Entry, Trial, evaluation_id
from unseen.tasks import task
from unseen.training.evaluate import Measure
from unseen.training.recipe import Evaluation, recipe

Levels = Mapping[str, Any]
FACTS = {"unseen": "0.1.0", "torch": "2.13.0", "cpu": "made up", "seconds": 1.0, "cpu_seconds": 1.0}


def build(
    path: Path,
    values: Callable[[Levels, int], Any],
    *,
    configurations: Sequence[Levels] = ({},),
    seeds: Sequence[int] = range(5),
    data_seed: int | None = None,
    study: str = "made-up@1",
    scale: str = "mini",
    metric: str = "accuracy",
    splits: Sequence[str] = ("iid",),
    last: float = 0.0,
    status: Callable[[Levels, int], str] = lambda levels, seed: "finished",
    still: Callable[[Levels, int], bool | None] = lambda levels, seed: False,
    step: int = 100,
    extra: Sequence[tuple[str, Measure]] = (),
    facts: Mapping[str, Any] = FACTS,
    evaluation: Callable[[Levels], Evaluation] = lambda levels: Evaluation(),
    **recipe_options: Any,
) -> Path:
    """A store with a run for every configuration and seed, whose best weights have `values(levels, seed)` as their metric
    and whose last ones `last` more. Equal configurations and options are equal trials in every store; `extra` are more
    measures of every run, with their selection. With a `learning_rate`, configurations that differ in nothing but the
    evaluation share their trials."""
    entries = []
    for levels in configurations:
        # Configurations differ in a rate that nobody sees.
        rate = 1e-3 + 1e-9 * (zlib.crc32(canonical(dict(levels)).encode()) % 100_000)
        parts = (
            task(levels.get("task", "retrieval/T6"), length=5),
            options(levels.get("model", "lstm")),
            recipe("quick", **{"learning_rate": rate, **recipe_options}),
            evaluation(levels),
        )
        entries += [Entry(levels, Trial(*parts, seed, seed if data_seed is None else data_seed)) for seed in seeds]
    finished: dict[str, Finished] = {}
    for entry in entries:
        how, levels, seed = status(entry.levels, entry.trial.seed), entry.levels, entry.trial.seed
        measures = {
            selection: [
                *(Measure(split, "", "", metric, values(levels, seed) + more, 0.01, 1000) for split in splits),
                *(one for which, one in extra if which == selection),
            ]
            for selection, more in (("best", 0.0), ("last", last))
        }
        if how not in ("pending", "failed"):
            by_evaluation = finished[entry.trial.id].measures if entry.trial.id in finished else {}
            finished[entry.trial.id] = Finished(
                how,
                step,
                step,
                still(levels, seed) if how != "diverged" else None,
                "",
                {} if how == "diverged" else {**by_evaluation, evaluation_id(entry.trial.evaluation): measures},
                {},
                facts,
            )
    with Store.write(path) as store:
        store.set_work({"study": study})
        store.add(entries, scale)
        spans = {trial: Span(0, step, 1.0, 1.0, "here:1") for trial in finished}
        if finished:
            store.commit("all", list(finished), Outcome(0, None, (), spans, finished))
        for entry in entries:
            if status(entry.levels, entry.trial.seed) == "failed":
                store.fail(entry.trial.id, "ValueError: made up")
    return path
