"""The Python face: train, evaluate, run, exam, results, compare."""

from __future__ import annotations

import math
import operator
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
from torch import nn

from unseen.config import Config
from unseen.errors import CheckFailed, UsageError, nearest
from unseen.models.build import build
from unseen.running.chunk import Keep, check_trial
from unseen.running.progress import Style
from unseen.running.runner import Settings, run_entries
from unseen.store.store import Store
from unseen.studies.trial import Entry, Trial, format_options, model_config
from unseen.tasks import task as make_task
from unseen.tasks.base import Array, Task
from unseen.training import evaluate as evaluating
from unseen.training.batches import input_tensors
from unseen.training.checkpoint import unpack_weights
from unseen.training.preflight import check_activations, check_answers, stack_trained
from unseen.training.process import one_thread
from unseen.training.recipe import Evaluation, Recipe, deviations
from unseen.training.recipe import recipe as make_recipe
from unseen.training.stack import Stack, load_member

if TYPE_CHECKING:
    from unseen.studies.study import Study

Model = str | Config | type[nn.Module]


@dataclass(frozen=True)
class CapturedActivations:
    """Activations of models on the same examples: arrays by (label, seed) and name; the examples' targets and factors."""

    activations: dict[tuple[str, int], dict[str, Array]]
    targets: Array
    factors: dict[str, Array]


class Runs:
    """Finished runs of one model on one task, backed by a store.

    `table` has one row per seed, selection rule, split and metric; `curves` the learning curves; `trials` how each
    run ended; `deviations` how the recipe differs from the published one.
    """

    def __init__(self, trials: Sequence[Trial], path: Path, keep_alive: Any = None) -> None:
        self._trials = {trial.seed: trial for trial in trials}
        self._keep_alive = keep_alive
        self.path = path
        self.task = trials[0].task
        self.options = trials[0].model
        self.deviations = deviations(trials[0].recipe, self.task.name, self.options.name)
        with Store.read(path) as store:
            ids = {c.id for c in trials}
            self.table = _only(store.records(), ids)
            self.curves = _only(store.curves(), ids)
            self.trials = _only(store.trials(), ids)

    @property
    def seeds(self) -> list[int]:
        """The seeds, in order."""
        return sorted(self._trials)

    def accuracy(self, split: str | None = None, selection: str = "best") -> pd.Series:
        """Accuracy by seed on a split (default: the one on which models are selected)."""
        split = split or self.task.validation
        self.task.get_split(split)
        check_selection(selection)
        table = self.table
        chosen = (table["split"] == split) & (table["selection"] == selection) & (table["factor"] == "")
        rows = table[chosen & (table["metric"] == "accuracy")]
        return rows.set_index("seed")["value"].sort_index()

    def model(self, seed: int, selection: str = "best") -> nn.Module:
        """The trained module of a seed: `best` on validation, or `last`."""
        if seed not in self._trials:
            raise UsageError(f"seed {seed} was not trained. Known: {', '.join(map(str, self.seeds))}")
        check_selection(selection)
        trial = self._trials[seed]
        module = build(trial.model, self.task.spec, seed)
        with Store.read(self.path) as store:
            return load_member(module, unpack_weights(*store.weights(trial.id, selection)))

    def activations(
        self,
        split: str | None = None,
        n: int = 1_000,
        keep: Sequence[str] | None = None,
        selection: str = "best",
        label: str | None = None,
    ) -> CapturedActivations:
        """Predictions and captured activations (default: all that the model offers) on n test examples of a split."""
        if n < 1:
            raise UsageError(f"n = {n}: give a positive number of examples")
        examples = evaluating.draw_examples(self.task, split or self.task.validation, n, "test")
        status = self.trials.set_index("seed")["status"]
        activations = {}
        with one_thread():
            for seed in self.seeds:
                if status[seed] == "diverged":
                    continue
                stack = Stack([self.model(seed, selection)])
                names = _offered_activations(stack, self.task) if keep is None else list(keep)
                for name in keep or ():
                    offered = _offered_activations(stack, self.task)
                    if name not in offered:
                        raise UsageError(f"the model captures no '{name}'. {nearest(name, offered)}")
                arrays = evaluating.predict(stack, examples, self.task.spec, names)
                activations[(label or self.options.name, seed)] = {name: v[0] for name, v in arrays.items()}
        return CapturedActivations(activations, examples.targets, dict(examples.factors))


def train(
    task: Task | str,
    model: Model,
    *,
    seeds: int | Iterable[int] = 5,
    recipe: str | Recipe = "quick",
    evaluation: Evaluation | None = None,
    data_seed: int | None = None,
    out: str | Path | None = None,
    stack: int | None = None,
    device: str = "cpu",
    discard_damaged: bool = False,
    progress: Style = "auto",
    track: str | Sequence[str] = (),
    **recipe_options: Any,
) -> Runs:
    """Train a model on a task, many seeds as one; continues what `out` already holds of the same work.

    `model` is a registered name, options from `unseen.model`, an `nn.Module` class or the text `module:Class`. It is
    tried on a few examples of every split first: whatever does not fit is refused before anything is trained.
    `seeds` is a number (0 … n − 1) or the seeds themselves. `recipe` is a name, with single options as keywords
    (`steps=2000`, `learning_rate=1e-3`), or a `Recipe`. `data_seed` fixes the training data of all seeds; by default
    each seed has its own. Without `out` the records live as long as the result. `track` keeps a tool's logs beside
    them: `tensorboard`, `mlflow` or `wandb` (offline), in a directory of your choice with `tensorboard:DIR`.

        runs = unseen.train("retrieval/T1", "retrieval-transformer", seeds=3, steps=2000)
        runs.accuracy()
    """
    task = make_task(task) if isinstance(task, str) else task
    options = model_config(model)
    if isinstance(recipe, str):
        used_recipe = make_recipe(recipe, **recipe_options)
    else:
        used_recipe = Recipe.parse({**recipe.model_dump(), **recipe_options})
    evaluation = evaluation or Evaluation()
    trials = []
    for seed in _seed_list(seeds):
        trials.append(Trial(task, options, used_recipe, evaluation, seed, seed if data_seed is None else data_seed))
    settings = Settings(
        size=stack,
        device=device,
        progress=progress,
        retry_failed=True,
        discard_damaged=discard_damaged,
        track=_check_tracks(track, out),
    )
    # Everything that can be refused is refused before anything is written.
    notes = check_trial(trials[0], device, full=True)
    for note in notes:
        warnings.warn(f"{options.name}: {note}", stacklevel=2)
    keep_alive = tempfile.TemporaryDirectory(prefix="unseen-") if out is None else None
    path = Path(keep_alive.name if keep_alive is not None else str(out))
    own_data = all(trial.data_seed == trial.seed for trial in trials)
    ids = {trial.id for trial in trials}
    with Store.write(path) as store:
        store.claim({**trials[0].work, "data_seed": "own" if own_data else trials[0].data_seed})
        entries = [Entry({}, trial) for trial in trials]
        title = f"{format_options(task.options())} · {format_options(options.options())}"
        run_entries(entries, store, settings, title, preflight=tuple(notes))
        failures = _only(store.failures(), ids)
    if len(failures):
        raise CheckFailed(
            f"{len(failures)} of {len(trials)} runs failed: {failures.cause[0]}. The others are in {path}"
        )
    return Runs(trials, path, keep_alive)


def run(
    study: Study | str | Path,
    out: str | Path,
    *,
    scale: str | None = None,
    seeds: int | Iterable[int] | None = None,
    workers: int | None = None,
    executor: Literal["inline", "local", "ray"] = "local",
    address: str | None = None,
    keep: Keep = "none",
    retry_failed: bool = False,
    discard_damaged: bool = False,
    stack: int | None = None,
    chunk_seconds: float = 60.0,
    device: str = "cpu",
    progress: Style = "auto",
    track: str | Sequence[str] = (),
) -> pd.DataFrame:
    """Run a study of the catalogue, or of a YAML or Python file, into a directory; returns its records.

    What the directory already holds of it is kept: after any crash the same call goes on. `seeds` replaces the
    study's own, and a larger `scale` or more seeds extend what is there. `executor` is `local` (worker processes, one
    per core), `ray` (a cluster at `address`, or one it starts), or `inline` (this process). `keep` says whose weights
    are kept: none, best, all. Trials that failed stay so unless `retry_failed`; see `unseen results DIR --failures`.
    `track` is as in `train`.

        unseen.run("quickstart", out="demo")
    """
    from unseen.studies.study import Study
    from unseen.studies.study import study as find_study

    if not isinstance(study, Study):
        study = find_study(str(study))
    scale = study.default_scale if scale is None else scale
    entries = study.entries(scale, None if seeds is None else _seed_list(seeds))
    if executor != "inline":
        from unseen.models.foreign import check_importable

        for model in {id(entry.trial.model): entry.trial.model for entry in entries}.values():
            check_importable(model)
    settings = Settings(
        executor,
        workers,
        address,
        stack,
        chunk_seconds,
        keep,
        device,
        progress,
        retry_failed,
        discard_damaged,
        _check_tracks(track, out),
    )
    with Store.write(out) as store:
        store.claim({"study": f"{study.name}@{study.version}"})
        run_entries(entries, store, settings, f"{study.name} {scale}", scale)
        return store.records()


def exam(
    model: Model,
    out: str | Path,
    *,
    scale: str = "mini",
    seeds: int | Iterable[int] | None = None,
    workers: int | None = None,
    executor: Literal["inline", "local", "ray"] = "local",
    retry_failed: bool = False,
    progress: Style = "auto",
) -> pd.DataFrame:
    """Train a model on the battery of all four families, and write its page, `report.html` in the directory.

    Returns a row per ability and test: the score with its interval, how many runs have learned, chance, the best
    shortcut, the oracle, the place among the reference backbones. `attrs["notes"]` of the table says the rest,
    `attrs["page"]` where the page is. A model that does not fit every test is refused before anything is
    trained. The rest is as in `run`: after any crash the same call goes on.

        unseen.exam("lstm", "runs/exam", scale="smoke")
    """
    from unseen.exam.exam import check_model as check_battery
    from unseen.exam.exam import exam as battery
    from unseen.report.data import Source
    from unseen.report.exam_scores import exam_table, read_exam
    from unseen.report.page import write_page
    from unseen.report.theme import load_altair

    load_altair()  # without it the page could not be written, which is better known now
    study = battery(model)
    check_battery(study, scale)
    run(
        study,
        out,
        scale=scale,
        seeds=seeds,
        workers=workers,
        executor=executor,
        retry_failed=retry_failed,
        progress=progress,
    )
    page = write_page(out, scale=scale)
    grades = read_exam(Source.read(out, scale))
    if grades is None:
        raise CheckFailed(f"every run of the exam has failed; `unseen results {out} --failures` says why")
    scores = exam_table(grades)
    scores.attrs["notes"] = list(grades.notes)
    scores.attrs["page"] = str(page)
    return scores


def evaluate(
    model: nn.Module,
    task: Task | str,
    *,
    splits: Sequence[str] = (),
    examples: int = 10_000,
    analyses: Sequence[str] = (),
) -> pd.DataFrame:
    """How good a module, trained anywhere, is on a task's splits: one row per split, factor level and metric.

    Its forward is `forward(inputs)` or `forward(inputs, ctx)`. An analysis that reads activations that the module does not capture
    is an error that names it.

        unseen.evaluate(module, "ctl/A")
    """
    if not isinstance(model, nn.Module):
        raise UsageError(
            f"model = {model!r}: evaluate needs a module, trained or not: an instance of an nn.Module "
            "class. `unseen.train` takes classes and names"
        )
    task = make_task(task) if isinstance(task, str) else task
    evaluation = Evaluation.parse({"splits": tuple(splits), "examples": examples, "analyses": tuple(analyses)})
    name = type(model).__name__
    with one_thread():
        stack = stack_trained(model)
        check_answers(stack, task, evaluating.evaluated_splits(task, evaluation), name)
        check_activations(stack, task, evaluation, name)
        rows = evaluating.evaluate(stack, task, evaluation)[0]
    for row in rows:
        if row.metric == "loss" and math.isnan(row.value):
            raise UsageError(f"{name} on {task.name}: the model answers NaN on examples of split {row.split}")
    return pd.DataFrame([asdict(r) for r in rows])


def results(path: str | Path) -> pd.DataFrame:
    """The records of a directory as one tidy table."""
    with Store.read(path) as store:
        return store.records()


def compare(
    *directories: str | Path, metric: str | None = None, split: str | None = None, selection: str = "best"
) -> pd.DataFrame:
    """Directories side by side, each with the first: a row per place and split that both have.

    `difference` is `mean_b` − `mean_a`, with its 95 % interval (`low`, `high`), `p` and `p_adjusted`; runs are paired
    by their seeds where they share some. `trials` says whether both hold the same runs, and if so whether their numbers
    are identical. `attrs["notes"]` of the table says the rest: what intervals cover, how the directories differ.

        unseen.compare("runs/before", "runs/after", split="ood/single")
    """
    from unseen.compare.compare import compare as compare_sides
    from unseen.compare.run_groups import RunDirectory

    sides = [RunDirectory.read(path) for path in directories]
    comparison = compare_sides(sides, metric=metric, split=split, selection=selection)
    comparison.table.attrs["notes"] = [*comparison.heading, *comparison.alarms, *comparison.notes]
    return comparison.table


def _seed_list(seeds: int | Iterable[int]) -> list[int]:
    try:
        numbers = [operator.index(s) for s in (seeds if isinstance(seeds, Iterable) else range(operator.index(seeds)))]
    except TypeError:
        numbers = []
    if not numbers or len(set(numbers)) != len(numbers):
        raise UsageError(f"seeds = {seeds!r}: give a positive number, or different whole numbers")
    return numbers


def _check_tracks(track: str | Sequence[str], out: str | Path | None) -> tuple[str, ...]:
    """The tracking tools of a run; wrong ones are refused before anything is made."""
    tracks = (track,) if isinstance(track, str) else tuple(track)
    if tracks:
        from unseen.tracking import check_track

        for name in tracks:
            check_track(name, None if out is None else Path(out))
    return tracks


def check_selection(selection: str) -> None:
    """Refuse an unknown rule for selecting weights."""
    if selection not in ("best", "last"):
        raise UsageError(f"unknown selection '{selection}'. {nearest(selection, ['best', 'last'])}")


def _offered_activations(stack: Stack, task: Task) -> list[str]:
    """The names of the activations that a model offers to capture."""
    if not stack.takes_context:
        return []
    examples = task.sample(task.validation, 1, data_seed="test")
    return stack.names(input_tensors(examples.inputs, task.spec, stack.dtype, "cpu"))


def _only(table: pd.DataFrame, ids: set[str]) -> pd.DataFrame:
    return table[table["trial"].isin(ids)].reset_index(drop=True)
