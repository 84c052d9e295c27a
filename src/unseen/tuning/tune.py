"""Tune recipes: the same budget for every model, on tasks that are never reported; tuned beside untuned runs.

Successive halving, for each contender (a model with its options on a task):

    rung 1    every configuration for 1/16 of the steps
    rung 2    the best quarter of them for 1/4
    rung 3    the best quarter of those to the end; the best of these is the tuned recipe
    untuned   the original recipe, and
    tuned     the tuned recipe, on the tasks that are reported

Every run is a trial of a store, in a scale of that name, so tuning is stacked (members may differ in learning rate and
weight decay), killed, resumed and read like any study. Decisions:

* A run of a higher rung starts from scratch. Continuing the run of the lower rung would save a sixth of the steps, but
  would need runs that wait; so every trial is trained to its end. Its first steps equal those of the lower rung bit for
  bit, because the schedule is that of the full budget on every rung (`Recipe.decay`).
* Tuning is not a study of the catalogue: the trials of a study are a function of its scale, whereas those of higher
  rungs depend on results.
* The grid needs no sampler, because it is tried completely. Optuna proposes configurations where there are ranges
  (`search_space`); which ones continue is decided here, for all contenders by the same rule.
* The score is the best validation of a trial (accuracy, or the negative loss), averaged over tuning tasks. Tuning tasks
  have task seeds, seeds and data seeds of 1000 and above, reported ones below. A family without task seeds has one
  task: tuning uses other data seeds, but shares the validation data (never the test data).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from unseen.config import canonical
from unseen.errors import CheckFailed, UsageError
from unseen.models.foreign import check_importable
from unseen.running.chunk import check_own_models
from unseen.running.memory import check_memory
from unseen.running.runner import Settings, run_entries
from unseen.store.store import Store
from unseen.studies.grid import Grid, Level
from unseen.studies.trial import Entry, Trial
from unseen.tasks import task as make_task
from unseen.tracking import check_track
from unseen.training.recipe import Evaluation, Recipe, published_recipe
from unseen.tuning.search_space import (
    ROUND,
    Configuration,
    Range,
    ScoredConfigurations,
    Space,
    check_space,
    count_configurations,
    import_optuna,
    propose_configurations,
    standard_space,
    tuned_recipe,
)

TUNING = 1000
"""The first seed of tuning tasks; reported seeds are smaller."""
RUNGS = {"rung 1": 16, "rung 2": 4, "rung 3": 1}
"""The scales of the tuning trials: each trains for 1/16, 1/4 or all of the steps."""
REDUCTION = 4
"""One of this many configurations continues on the next rung."""
BUDGET = 80
"""Configurations per contender if the space has a range."""
REPORTED = ("untuned", "tuned")


@dataclass(frozen=True)
class TuningTrial:
    """A configuration of a contender on a rung: its score, and whether it continued (on the last rung: won)."""

    contender: int
    rung: str
    configuration: Configuration
    score: float
    selected: bool


@dataclass(frozen=True)
class TuningResult:
    """The contenders' levels, all tuning trials, and each contender's tuned recipe."""

    contenders: Sequence[Mapping[str, Level]]
    trials: Sequence[TuningTrial]
    recipes: Sequence[Recipe]

    def table(self) -> pd.DataFrame:
        """One row per contender, rung and configuration."""
        rows = []
        for trial in self.trials:
            levels = self.contenders[trial.contender]
            rows.append(
                {**levels, "rung": trial.rung, **trial.configuration, "score": trial.score, "selected": trial.selected}
            )
        return pd.DataFrame(rows)


def contenders(
    task: str,
    models: Sequence[str],
    *,
    vary: Mapping[str, Sequence[Level]] | None = None,
    recipe: str | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Entry]:
    """Models on a task, crossed with values of options (`vary={"model.gating": ["none", "joint"]}`).

    `settings` are options that all contenders share, by component. The untuned recipe is `recipe`, or the one that a
    model was published with on the task, or else `quick`.

    >>> [entry.levels for entry in contenders("retrieval/T1", ["lstm"], vary={"task.length": [5, 10]})]
    [{'model': 'lstm', 'length': 5}, {'model': 'lstm', 'length': 10}]
    """
    axes: dict[str, dict[Level, dict[str, Any]]] = {"model": {}}
    for name, given in {"model": models, **(vary or {})}.items():
        for number, value in enumerate(given):
            if value in given[:number]:
                raise UsageError(f"{name} {value} is given twice; a contender is tuned once")
    for model in models:
        recipe_name = recipe or getattr(published_recipe(task, model), "name", "quick")
        axes["model"][model] = {"model": {"name": model}, "recipe": {"name": recipe_name}}
    for path, values in (vary or {}).items():
        component, _, option = path.partition(".")
        if option in axes:
            raise UsageError(f"vary: two axes would be called '{option}'; vary one of them")
        axes[option] = {value: {component: {option: value}} for value in values}
    base = {component: dict(options) for component, options in (settings or {}).items()}
    base["task"] = {"name": task, **base.get("task", {})}
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
) -> TuningResult:
    """Tune the recipe of every contender (the trials of `entries`; their seeds do not matter) with the same budget.

    `budget` is the number of configurations per contender (default: all 80 of the grid), `tasks` the number of tuning
    tasks, `seeds` the reported runs: where a task has task seeds, each seed is a task of its own. After a crash, the
    same call continues.
    """
    steps = {entry.trial.recipe.steps for entry in entries}
    if len(steps) != 1:
        raise UsageError(
            f"the contenders train for {', '.join(map(str, sorted(steps)))} steps; a comparison gives all the same: "
            "--steps"
        )
    space = standard_space(steps.pop()) if space is None else space
    check_space(space)
    available = count_configurations(space)
    count = budget if budget is not None else available or BUDGET
    if count < 1 or (available is not None and count > available):
        limit = "" if available is None else f", at most the {available} that there are"
        raise UsageError(f"budget = {count}: give a positive number of configurations{limit}")
    if tasks < 1:
        raise UsageError(f"tasks = {tasks}: give a positive number of tuning tasks")
    if not seeds or min(seeds) < 0 or max(seeds) >= TUNING:
        raise UsageError(
            f"seeds = {list(seeds)}: reported seeds are 0 … {TUNING - 1}; those from {TUNING} on are for tuning"
        )
    names = [canonical(dict(entry.levels)) for entry in entries]
    if len(set(names)) < len(names):
        raise UsageError("two contenders have the same levels; add an axis that tells them apart")
    for axis in set(chain.from_iterable(entry.levels for entry in entries)) & {*space, "task_seed"}:
        raise UsageError(f"axis '{axis}' can't tell contenders apart: tune chooses it")
    work = {
        "study": "tune@1",
        "contenders": {name: _contender_work(entry.trial) for name, entry in zip(names, entries, strict=True)},
        "space": {name: _space_work(values) for name, values in space.items()},
        "budget": count,
        "tasks": tasks,
    }
    settings = settings or Settings(executor="local", keep="none")
    for track in settings.track:
        check_track(track, Path(out))
    if settings.executor != "inline":
        for entry in entries:
            check_importable(entry.trial.model)
    if available is None:
        import_optuna()  # a missing extra is reported before anything is trained
    check_memory((entry.trial for entry in entries), settings.device)
    check_own_models(entry.trial for entry in entries)
    with Store.write(out) as store:
        store.set_work(work)
        return _Tuning(entries, space, count, tasks, store, settings).run(seeds)


class _Tuning:
    """The state of one call of `tune`."""

    def __init__(
        self, contenders: Sequence[Entry], space: Space, count: int, tasks: int, store: Store, settings: Settings
    ) -> None:
        self._contenders = contenders
        self._space = space
        self._count = count
        self._store = store
        self._seeds = range(TUNING, TUNING + tasks)
        # The next rung needs every score: the same call tries trials that failed again.
        self._settings = replace(settings, retry_failed=True)

    def run(self, seeds: Sequence[int]) -> TuningResult:
        """Climb the rungs, then train the untuned and the tuned recipe of every contender on the reported seeds."""
        scored = self._score_first_rung()
        trials: list[TuningTrial] = []
        for rung, share in RUNGS.items():
            if rung != "rung 1":
                remaining = []
                for best in scored:
                    remaining.append([configuration for configuration, _ in best])
                scored = self._score(rung, remaining)
            survivors = []
            for contender, configurations in enumerate(scored):
                best = _select_best(configurations, 1 if share == 1 else math.ceil(len(configurations) / REDUCTION))
                survivors.append(best)
                for configuration, score in configurations:
                    selected = (configuration, score) in best
                    trials.append(TuningTrial(contender, rung, configuration, score, selected))
            scored = survivors
        recipes: list[Recipe] = []
        for entry, ((configuration, score),) in zip(self._contenders, scored, strict=True):
            if score == -math.inf:
                raise CheckFailed(f"{dict(entry.levels)}: every configuration has diverged; nothing can be tuned")
            base = entry.trial.recipe
            recipes.append(tuned_recipe(base, configuration, base.steps, base.steps))
        untuned = [entry.trial.recipe for entry in self._contenders]
        for scale, chosen in zip(REPORTED, (untuned, recipes), strict=True):
            runs = []
            for entry, recipe in zip(self._contenders, chosen, strict=True):
                runs += [_make_run(entry, {}, recipe, entry.trial.evaluation, seed) for seed in seeds]
            self._train(scale, runs)
        return TuningResult([dict(entry.levels) for entry in self._contenders], trials, recipes)

    def _score_first_rung(self) -> list[list[tuple[Configuration, float]]]:
        """Score a grid at once, and a space with ranges round by round, each proposed from the scores so far."""
        scored: list[list[tuple[Configuration, float]]] = [[] for _ in self._contenders]
        endless = count_configurations(self._space) is None
        for number in range(math.ceil(self._count / ROUND) if endless else 1):
            count = min(ROUND, self._count - number * ROUND) if endless else self._count
            scale = f"rung 1.{number + 1}" if endless else "rung 1"
            stored = self._stored_configurations(scale)
            proposed = []
            for entry, earlier in zip(self._contenders, scored, strict=True):
                configurations = stored.get(canonical(dict(entry.levels)))
                proposed.append(configurations or propose_configurations(self._space, count, earlier, number))
            for earlier, new in zip(scored, self._score(scale, proposed), strict=True):
                earlier += new
        return scored

    def _stored_configurations(self, scale: str) -> dict[str, list[Configuration]]:
        """The configurations of a round that the store has, by contender. They are used again, because another version
        of Optuna might propose others."""
        by_contender: dict[str, list[Configuration]] = {}
        entries = self._store.entries()
        for text in entries[entries.scale == scale].levels:
            levels = json.loads(text)
            configuration = {name: levels.pop(name) for name in self._space}
            levels.pop("task_seed", None)
            configurations = by_contender.setdefault(canonical(levels), [])
            if configuration not in configurations:
                configurations.append(configuration)
        return by_contender

    def _score(
        self, scale: str, configurations: Sequence[Sequence[Configuration]]
    ) -> list[list[tuple[Configuration, float]]]:
        """Train every contender's configurations for their share of the steps; each with its mean score over tasks."""
        share = RUNGS[scale.partition(".")[0]]
        runs_of: list[list[tuple[Configuration, list[Entry]]]] = []
        all_runs: list[Entry] = []
        for entry, proposed in zip(self._contenders, configurations, strict=True):
            base = entry.trial.recipe
            # Tuning trials are scored by their validations, so little is evaluated at their end.
            evaluation = Evaluation(splits=(entry.trial.task.validation,), examples=100)
            runs_of.append([])
            for configuration in proposed:
                recipe = tuned_recipe(base, configuration, max(1, base.steps // share), base.steps)
                runs = [_make_run(entry, configuration, recipe, evaluation, seed) for seed in self._seeds]
                runs_of[-1].append((configuration, runs))
                all_runs += runs
        self._train(scale, all_runs)
        # All contenders were trained together, so that the stacks are full; they are scored afterwards.
        scored: list[list[tuple[Configuration, float]]] = []
        for contender in runs_of:
            scored.append([])
            for configuration, runs in contender:
                score = math.fsum(performance(self._store, run.trial) for run in runs) / len(runs)
                scored[-1].append((configuration, score))
        return scored

    def _train(self, scale: str, entries: Sequence[Entry]) -> None:
        run_entries(entries, self._store, self._settings, f"tune, {scale}", scale)
        failures = self._store.failures()
        failed = failures[failures.trial.isin([entry.trial.id for entry in entries])]
        if len(failed):
            raise CheckFailed(
                f"{len(failed)} of {len(entries)} trials failed: {failed.cause.iloc[0]}. The same call tries them again"
            )


def performance(store: Store, trial: Trial) -> float:
    """The best validation of a trial: its accuracy or, where there is none, its negative loss; −∞ if it diverged."""
    if store.status([trial.id])[trial.id] == "diverged":
        return -math.inf
    values: dict[str, list[float]] = {}
    for _, step, split, metric, value in store.rows("curves", trial.id):
        if step and split == trial.task.validation and value is not None:
            values.setdefault(metric, []).append(value)
    return max(values.get("accuracy") or [-loss for loss in values["loss"]])


def _select_best(scored: ScoredConfigurations, count: int) -> list[tuple[Configuration, float]]:
    """The best configurations, in the order in which they were proposed; ties go to the first proposed."""
    ranking = sorted(range(len(scored)), key=lambda i: (-scored[i][1], i))
    return [scored[i] for i in sorted(ranking[:count])]


def _make_run(entry: Entry, configuration: Configuration, recipe: Recipe, evaluation: Evaluation, seed: int) -> Entry:
    """A run of a contender; its levels include the configuration and, where the task has one, the task seed."""
    task = entry.trial.task
    task_seed = {"task_seed": seed} if "task_seed" in type(task).model_fields else {}
    seeded_task = make_task(**{**task.options(), **task_seed})
    trial = Trial(seeded_task, entry.trial.model, recipe, evaluation, seed, seed)
    return Entry({**entry.levels, **configuration, **task_seed}, trial)


def _space_work(values: Sequence[Level] | Range) -> list[Level]:
    """The values of an option that is tuned, or the bounds of its range, as a store keeps them."""
    return [values.low, "…", values.high] if isinstance(values, Range) else list(values)


def _contender_work(trial: Trial) -> dict[str, Any]:
    """The identity of a contender, which includes neither its seeds nor the task's instance."""
    task = {key: value for key, value in trial.work["task"].items() if key != "task_seed"}
    return {**trial.work, "task": task}
