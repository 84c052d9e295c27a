"""Real stores with made-up numbers: written through the store's own API, nothing is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from unseen.engine.measure import Measure
from unseen.engine.recipe import Evaluation, recipe
from unseen.engine.train import Point
from unseen.models import options
from unseen.studies.cell import Cell
from unseen.studies.grid import Entry
from unseen.studies.slice import Finished, Outcome, Span
from unseen.studies.store import Store
from unseen.tasks import task as make_task
from unseen.tasks.base import Task

Levels = Mapping[str, Any]
Key = tuple[str, str] | tuple[str, str, str, str]
"""(condition, metric), or (condition, metric, factor, level)."""
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
    still_learning: Callable[[Levels, int], bool | None] = lambda levels, seed: False,
    curve: Callable[[Levels, int], Mapping[tuple[int, str, str], float]] = lambda levels, seed: {},
    task: Callable[[Levels], Task] = named_task,
    model: Callable[[Levels], Any] = named_model,
    without: Callable[[Levels], bool] = lambda levels: False,
    scale: str = "mini",
    weights: Callable[[Cell], Mapping[str, bytes]] = lambda cell: {},
    steps: int = 1000,
) -> Path:
    """A store of every combination of levels (but those `without`) and seed; returns its path.

    `metrics` are the numbers of a run's best weights, `last` of its last ones (default: the same); `curve` its points,
    (step, condition, metric) → value. Runs `pending` have at most a curve, `failed` ones a
    traceback, `diverged` ones no numbers. Without a `study` it is what `train` leaves: one place, scale ''.
    """
    grid = axes or {}
    places = [dict(zip(grid, chosen, strict=True)) for chosen in product(*grid.values())]
    places = [levels for levels in places if not without(levels)]
    entries = []
    for number, levels in enumerate(places):
        # Places are told apart by a rate that nobody sees; what a level means is the caller's affair.
        used = recipe("quick", steps=steps, learning_rate=1e-3 + 1e-8 * number)
        parts = (task(levels), model(levels), used, Evaluation())
        entries += [Entry(levels, Cell(*parts, seed, seed)) for seed in (seeds(levels) if callable(seeds) else seeds)]
    with Store.write(path) as store:
        store.claim({"study": study} if study is not None else {**entries[0].cell.work, "data_seed": "own"})
        store.add(entries, scale if study is not None else "")
        ended = {e.cell.id: e for e in entries if status(e.levels, e.cell.seed) not in ("pending", "failed")}
        finished, points = {}, []
        for cell, entry in ended.items():
            levels, seed = entry.levels, entry.cell.seed
            best = _measures(metrics(levels, seed))
            diverged = status(levels, seed) == "diverged"
            finished[cell] = Finished(
                status(levels, seed),
                steps,
                steps,
                None if diverged else still_learning(levels, seed),
                "",
                {} if diverged else {"best": best, "last": best if last is None else _measures(last(levels, seed))},
                weights(entry.cell),
                {"seconds": 1.0, "cpu_seconds": 1.0, "device": "cpu"},
            )
            points += [Point(cell, *where, value) for where, value in curve(levels, seed).items()]
        begun = [e for e in entries if status(e.levels, e.cell.seed) == "pending" and curve(e.levels, e.cell.seed)]
        points += [
            Point(e.cell.id, *where, value) for e in begun for where, value in curve(e.levels, e.cell.seed).items()
        ]
        spans = {cell: Span(0, steps, 1.0, 1.0, "here:1") for cell in ended}
        if ended or begun:
            cells = [*ended, *(e.cell.id for e in begun)]
            store.commit("made-up", cells, Outcome(0, None, points, spans, finished))
        for entry in entries:
            if status(entry.levels, entry.cell.seed) == "failed":
                store.fail(entry.cell.id, "ValueError: <b>made up</b>", "Traceback …\nValueError: <b>made up</b>")
    return path


def _measures(numbers: Mapping[Key, float]) -> list[Measure]:
    return [Measure(key[0], *(key[2:] or ("", "")), key[1], value, 0.001, 1000) for key, value in numbers.items()]
