"""Real stores with made-up numbers: written through the store's own API, nothing is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from unseen.models import options
from unseen.store.schema import Finished, Outcome, Span
from unseen.store.store import Store
from unseen.studies.trial import Entry, Trial, evaluation_id
from unseen.tasks import task as make_task
from unseen.tasks.base import Task
from unseen.training.evaluate import Measure
from unseen.training.recipe import Evaluation, recipe
from unseen.training.trainer import Point

Levels = Mapping[str, Any]
Key = tuple[str, str] | tuple[str, str, str, str]
"""(split, metric), or (split, metric, factor, level)."""
T6 = {"length": 5, "train_size": 200, "evaluation_size": 100}


def accuracies(levels: Levels, seed: int) -> dict[Key, float]:
    """0.9 inside and 0.8 outside the training distribution, a point more per seed."""
    return {
        ("iid", "accuracy"): 0.9 + 0.01 * seed,
        ("ood/single", "accuracy"): 0.8 + 0.01 * seed,
        ("iid", "loss"): 0.2,
        ("ood/single", "loss"): 0.4,
    }


def named_task(levels: Levels) -> Task:
    """The task of the axis `task`; without one retrieval/T6 at length 5."""
    name = levels.get("task", "retrieval/T6")
    return make_task(name, **(T6 if name.startswith("retrieval/") else {}))


def named_model(levels: Levels) -> Any:
    """The model of the axis `model`; without one the retrieval paper's Transformer."""
    return options(levels.get("model", "retrieval-transformer"))


def build(
    path: Path,
    *,
    study: str | None = "made-up@1",
    axes: Mapping[str, Sequence[Any]] | None = None,
    metrics: Callable[[Levels, int], Mapping[Key, float]] = accuracies,
    last: Callable[[Levels, int], Mapping[Key, float]] | None = None,
    seeds: Sequence[int] | Callable[[Levels], Sequence[int]] = range(5),
    status: Callable[[Levels, int], str] = lambda levels, seed: "finished",
    not_converged: Callable[[Levels, int], bool | None] = lambda levels, seed: False,
    curve: Callable[[Levels, int], Mapping[tuple[int, str, str], float]] = lambda levels, seed: {},
    task: Callable[[Levels], Task] = named_task,
    model: Callable[[Levels], Any] = named_model,
    without: Callable[[Levels], bool] = lambda levels: False,
    scale: str = "mini",
    weights: Callable[[Trial], Mapping[str, bytes]] = lambda trial: {},
    steps: int = 1000,
    started: str | None = None,
) -> Path:
    """A store of every combination of levels (but those `without`) and seed; returns its path.

    `metrics` are the numbers of a run's best weights, `last` of its last ones (default: the same); `curve` its points,
    (step, split, metric) → value. Runs `pending` have at most a curve, `failed` ones a
    traceback, `diverged` ones no numbers; `started` is when they began, if that was noted. Without a `study` it is what `train` leaves: one place, scale ''.
    """
    grid = axes or {}
    places = [dict(zip(grid, chosen, strict=True)) for chosen in product(*grid.values())]
    places = [levels for levels in places if not without(levels)]
    entries = []
    for number, levels in enumerate(places):
        # Places are told apart by a rate that nobody sees; what a level means is the caller's affair.
        used = recipe("quick", steps=steps, learning_rate=1e-3 + 1e-8 * number)
        parts = (task(levels), model(levels), used, Evaluation())
        entries += [Entry(levels, Trial(*parts, seed, seed)) for seed in (seeds(levels) if callable(seeds) else seeds)]
    with Store.write(path) as store:
        store.set_work({"study": study} if study is not None else {**entries[0].trial.work, "data_seed": "own"})
        store.add(entries, scale if study is not None else "")
        ended = {e.trial.id: e for e in entries if status(e.levels, e.trial.seed) not in ("pending", "failed")}
        finished, points = {}, []
        for trial, entry in ended.items():
            levels, seed = entry.levels, entry.trial.seed
            best = _measures(metrics(levels, seed))
            last_measures = best if last is None else _measures(last(levels, seed))
            diverged = status(levels, seed) == "diverged"
            finished[trial] = Finished(
                status(levels, seed),
                steps,
                steps,
                None if diverged else not_converged(levels, seed),
                "",
                {} if diverged else {evaluation_id(entry.trial.evaluation): {"best": best, "last": last_measures}},
                weights(entry.trial),
                {"seconds": 1.0, "cpu_seconds": 1.0, "device": "cpu"} | ({"started": started} if started else {}),
            )
            points += [Point(trial, *where, value) for where, value in curve(levels, seed).items()]
        begun = [e for e in entries if status(e.levels, e.trial.seed) == "pending" and curve(e.levels, e.trial.seed)]
        points += [
            Point(e.trial.id, *where, value) for e in begun for where, value in curve(e.levels, e.trial.seed).items()
        ]
        spans = {trial: Span(0, steps, 1.0, 1.0, "here:1") for trial in ended}
        if ended or begun:
            trials = [*ended, *(e.trial.id for e in begun)]
            store.commit("made-up", trials, Outcome(0, None, points, spans, finished))
        for entry in entries:
            if status(entry.levels, entry.trial.seed) == "failed":
                store.fail(entry.trial.id, "ValueError: <b>made up</b>", "Traceback …\nValueError: <b>made up</b>")
    return path


def _measures(numbers: Mapping[Key, float]) -> list[Measure]:
    return [Measure(key[0], *(key[2:] or ("", "")), key[1], value, 0.001, 1000) for key, value in numbers.items()]
