"""Tuning: the same budget for every model, on tasks that are never reported; tuned and untuned side by side.

Successive halving, for each contender (a model, with its options, on a task):

    rung 1    every configuration for 1/16 of the steps
    rung 2    the best quarter of them for 1/4
    rung 3    the best quarter of those to the end; the best of these is the tuned recipe
    untuned   the recipe as it was, and
    tuned     the tuned one, on the tasks that are reported

Every trial is a cell of a store, in a scale of that name, so tuning is stacked (members may differ in learning rate and
weight decay), killed, resumed and read like any study. Decisions:

* A trial of a higher rung begins anew. Going on with the run of the lower rung would save a sixth of the steps, but
  would need runs that wait; so a cell stays one that is trained to its end. Its steps are those of the lower rung, bit
  for bit, as the schedule is that of the whole budget on every rung (`Recipe.decay`), so nothing else is changed.
* This is no study of the catalogue: the cells of a study are a function of its scale, those of higher rungs are one of
  results.
* The grid needs no sampler: it is tried whole. Optuna proposes configurations where there are ranges (`tune_space`);
  what is pruned is decided here, for all contenders by the same rule.
* Performance is the best validation of a trial (accuracy, or the negative loss), averaged over tuning tasks. Tuning
  tasks have task seeds, seeds and data seeds of 1000 and more, reported ones smaller. A family without task seeds has
  one task: its tuning data are of other data seeds, its validation data (never its test data) are shared.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from unseen.config import canonical
from unseen.engine.recipe import Evaluation, Recipe, published
from unseen.errors import CheckFailed, UsageError
from unseen.models.foreign import check_importable
from unseen.studies.cell import Cell
from unseen.studies.grid import Entry, Grid, Level
from unseen.studies.run import Settings, run_entries
from unseen.studies.sinks import check as check_track
from unseen.studies.store import Store
from unseen.studies.tune_space import ROUND, Configuration, Space, check, propose, recipe_of, size, standard
from unseen.tasks import task as make_task
from unseen.tasks.base import Task

TUNING = 1000
"""The first seed of tuning tasks; reported ones are smaller."""
RUNGS = {"rung 1": 16, "rung 2": 4, "rung 3": 1}
"""The scales of trials, with the part of the budget that each gets."""
KEPT = 4
"""The best one of so many goes on."""
BUDGET = 80
"""Configurations of each contender, where the space has endlessly many."""
REPORTED = ("untuned", "tuned")


@dataclass(frozen=True)
class Trial:
    """A configuration of a contender on a rung: its performance, and whether it went on (on the last: it won)."""

    contender: int
    rung: str
    configuration: Configuration
    score: float
    kept: bool


@dataclass(frozen=True)
class Tuned:
    """What tuning has found: the contenders' places, all trials, and each contender's recipe."""

    contenders: Sequence[Mapping[str, Level]]
    trials: Sequence[Trial]
    recipes: Sequence[Recipe]

    def table(self) -> pd.DataFrame:
        """One row per contender, rung and configuration."""
        return pd.DataFrame(
            [
                {**self.contenders[t.contender], "rung": t.rung, **t.configuration, "score": t.score, "kept": t.kept}
                for t in self.trials
            ]
        )


def contenders(
    task: str,
    models: Sequence[str],
    *,
    vary: Mapping[str, Sequence[Level]] | None = None,
    recipe: str | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Entry]:
    """Models on a task, crossed with values of options (`vary={"model.gating": ["none", "joint"]}`), as places.

    `settings` are options that all share, by part. Untuned is `recipe`, or the one a model was published with on the
    task, or else `quick`.

    >>> [entry.levels for entry in contenders("retrieval/T1", ["lstm"], vary={"task.length": [5, 10]})]
    [{'model': 'lstm', 'length': 5}, {'model': 'lstm', 'length': 10}]
    """
    shared = {part: dict(options) for part, options in (settings or {}).items()}
    known = {model: recipe or getattr(published(task, model), "name", "quick") for model in models}
    axes: dict[str, dict[Level, dict[str, Any]]] = {
        "model": {model: {"model": {"name": model}, "recipe": {"name": known[model]}} for model in models}
    }
    for path, values in (vary or {}).items():
        part, _, option = path.partition(".")
        if option in axes:
            raise UsageError(f"vary: two axes would be called '{option}'; vary one of them")
        axes[option] = {value: {part: {option: value}} for value in values}
    base = {**shared, "task": {"name": task, **shared.get("task", {})}}
    return Grid(axes=axes, base=base, seeds=(0,)).entries()


def tune(
    entries: Sequence[Entry],
    out: str | Path,
    *,
    space: Space | None = None,
    budget: int | None = None,
    tasks: int = 1,
    seeds: Sequence[int] = range(5),
    settings: Settings | None = None,
) -> Tuned:
    """Tune the recipe of every contender (the cells of `entries`, whatever their seeds) with the same budget.

    `budget` is the number of configurations of each (default: all 80 of the grid), `tasks` that of tuning tasks,
    `seeds` the reported runs: where a task has task seeds, each seed is a task of its own. The same call goes on after
    any crash.
    """
    whole = _whole(entries)
    space = standard(whole) if space is None else space
    count = _budget(space, budget)
    if tasks < 1:
        raise UsageError(f"tasks = {tasks}: give a positive number of tuning tasks")
    if not seeds or min(seeds) < 0 or max(seeds) >= TUNING:
        raise UsageError(
            f"seeds = {list(seeds)}: reported seeds are 0 … {TUNING - 1}; those from {TUNING} on are for tuning"
        )
    places = [canonical(dict(entry.levels)) for entry in entries]
    if len(set(places)) < len(places):
        raise UsageError("two contenders stand at the same place; add an axis that tells them apart")
    for axis in {axis for entry in entries for axis in entry.levels} & {*space, "task_seed"}:
        raise UsageError(f"axis '{axis}' can't tell contenders apart: tune chooses it")
    work = {
        "study": "tune@1",
        "contenders": {p: _asked(e.cell) for p, e in zip(places, entries, strict=True)},
        "space": {k: list(v) if isinstance(v, Sequence) else [v.low, "…", v.high] for k, v in space.items()},
        "budget": count,
        "tasks": tasks,
    }
    settings = settings or Settings(executor="local", keep="none")
    for track in settings.track:
        check_track(track, Path(out))
    if settings.executor != "inline":
        for entry in entries:
            check_importable(entry.cell.model)
    with Store.write(out) as store:
        store.claim(work)
        return _Tuning(entries, space, count, tasks, store, settings).run(seeds)


class _Tuning:
    """One call of `tune`, on its way."""

    def __init__(
        self, contenders: Sequence[Entry], space: Space, count: int, tasks: int, store: Store, settings: Settings
    ) -> None:
        self._contenders, self._space, self._count, self._store = contenders, space, count, store
        self._seeds = range(TUNING, TUNING + tasks)
        self._settings = replace(settings, retry_failed=True)

    def run(self, seeds: Sequence[int]) -> Tuned:
        scores, trials = self._first(), list[Trial]()
        recipes: list[Recipe] = []
        for rung in RUNGS:
            if rung != "rung 1":
                scores = self._scored(rung, [[c for c, _ in found] for found in scores])
            best = [_best(found, 1 if RUNGS[rung] == 1 else math.ceil(len(found) / KEPT)) for found in scores]
            trials += [
                Trial(i, rung, configuration, score, (configuration, score) in best[i])
                for i, found in enumerate(scores)
                for configuration, score in found
            ]
            scores = best
        for entry, ((configuration, score),) in zip(self._contenders, scores, strict=True):
            if score == -math.inf:
                raise CheckFailed(f"{dict(entry.levels)}: every configuration has diverged; nothing can be tuned")
            recipes.append(
                recipe_of(entry.cell.recipe, configuration, entry.cell.recipe.steps, entry.cell.recipe.steps)
            )
        for scale, chosen in zip(REPORTED, ([e.cell.recipe for e in self._contenders], recipes), strict=True):
            self._run(
                scale,
                [
                    _placed(e, {}, recipe, e.cell.evaluation, seed)
                    for e, recipe in zip(self._contenders, chosen, strict=True)
                    for seed in seeds
                ],
            )
        return Tuned([dict(e.levels) for e in self._contenders], trials, recipes)

    def _first(self) -> list[list[tuple[Configuration, float]]]:
        """The first rung: a grid at once, a search round by round, each proposed from what the former have shown."""
        told: list[list[tuple[Configuration, float]]] = [[] for _ in self._contenders]
        endless = size(self._space) is None
        for number in range(math.ceil(self._count / ROUND) if endless else 1):
            count = min(ROUND, self._count - number * ROUND) if endless else self._count
            scale = f"rung 1.{number + 1}" if endless else "rung 1"
            held = self._held(scale)
            proposed = [
                held.get(canonical(dict(entry.levels))) or propose(self._space, count, known, number)
                for entry, known in zip(self._contenders, told, strict=True)
            ]
            for known, found in zip(told, self._scored(scale, proposed), strict=True):
                known += found
        return told

    def _held(self, scale: str) -> dict[str, list[Configuration]]:
        """The configurations that the store has of a round, by contender: Optuna may change, what was begun may not."""
        found: dict[str, list[Configuration]] = {}
        entries = self._store.entries()
        for text in entries[entries.scale == scale].levels:
            levels = json.loads(text)
            configuration = {name: levels.pop(name) for name in self._space}
            levels.pop("task_seed", None)
            mine = found.setdefault(canonical(levels), [])
            if configuration not in mine:
                mine.append(configuration)
        return found

    def _scored(
        self,
        scale: str,
        configurations: Sequence[Sequence[Configuration]],
    ) -> list[list[tuple[Configuration, float]]]:
        """Train every contender's configurations for their share of its budget; each with its performance."""
        share = RUNGS[scale.partition(".")[0]]
        trials = []
        for entry, mine in zip(self._contenders, configurations, strict=True):
            base, evaluation = entry.cell.recipe, _quick(entry.cell.task)
            recipes = [recipe_of(base, one, max(1, base.steps // share), base.steps) for one in mine]
            trials.append(
                [
                    (one, [_placed(entry, one, recipe, evaluation, seed) for seed in self._seeds])
                    for one, recipe in zip(mine, recipes, strict=True)
                ]
            )
        self._run(scale, [e for mine in trials for _, placed in mine for e in placed])
        return [
            [
                (configuration, math.fsum(performance(self._store, e.cell) for e in placed) / len(placed))
                for configuration, placed in mine
            ]
            for mine in trials
        ]

    def _run(self, scale: str, entries: Sequence[Entry]) -> None:
        run_entries(entries, self._store, self._settings, f"tune, {scale}", scale)
        failures = self._store.failures()
        failed = failures[failures.cell.isin([e.cell.id for e in entries])]
        if len(failed):
            raise CheckFailed(
                f"{len(failed)} of {len(entries)} trials failed: {failed.cause.iloc[0]}. The same call tries them again"
            )


def performance(store: Store, cell: Cell) -> float:
    """The best validation of a trial: its accuracy or, where there is none, its negative loss; −∞ if it diverged."""
    if store.status([cell.id])[cell.id] == "diverged":
        return -math.inf
    found: dict[str, list[float]] = {}
    for _, step, condition, metric, value in store.rows("curves", cell.id):
        if step and condition == cell.task.validation and value is not None:
            found.setdefault(metric, []).append(value)
    return max(found.get("accuracy") or [-loss for loss in found["loss"]])


def _quick(task: Task) -> Evaluation:
    """Trials are judged by their validations, so little is evaluated."""
    return Evaluation(conditions=(task.validation,), examples=100)


def _best(found: Sequence[tuple[Configuration, float]], count: int) -> list[tuple[Configuration, float]]:
    """The best so many, in the order they were proposed; of equals the first."""
    ranked = sorted(range(len(found)), key=lambda i: (-found[i][1], i))
    return [found[i] for i in sorted(ranked[:count])]


def _placed(entry: Entry, configuration: Configuration, recipe: Recipe, evaluation: Evaluation, seed: int) -> Entry:
    """A run of a contender: its place says the configuration and, where the task has one, the task seed."""
    own = {"task_seed": seed} if _has_task_seeds(entry.cell.task) else {}
    task = make_task(**{**entry.cell.task.options(), **own})
    return Entry({**entry.levels, **configuration, **own}, Cell(task, entry.cell.model, recipe, evaluation, seed, seed))


def _has_task_seeds(task: Task) -> bool:
    return "task_seed" in type(task).model_fields


def _asked(cell: Cell) -> dict[str, Any]:
    """What makes a contender what it is: neither seeds nor the task's instance."""
    return {**cell.work, "task": {k: v for k, v in cell.work["task"].items() if k != "task_seed"}}


def _whole(entries: Sequence[Entry]) -> int:
    budgets = {entry.cell.recipe.steps for entry in entries}
    if len(budgets) != 1:
        raise UsageError(
            f"the contenders train for {', '.join(map(str, sorted(budgets)))} steps; a comparison gives "
            "all the same: --steps"
        )
    return budgets.pop()


def _budget(space: Space, budget: int | None) -> int:
    check(space)
    whole = size(space)
    count = budget if budget is not None else whole or BUDGET
    if count < 1 or (whole is not None and count > whole):
        raise UsageError(
            f"budget = {count}: give a positive number of configurations"
            + (f", at most the {whole} that there are" if whole is not None else "")
        )
    return count
