"""The Python face: train, evaluate, run, exam, results, compare."""

from __future__ import annotations

import math
import operator
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from torch import nn

from unseen.config import Config
from unseen.engine import evaluate as evaluating
from unseen.engine import predict as predicting
from unseen.engine.checkpoint import unpack_weights
from unseen.engine.feed import tensors
from unseen.engine.fit import check_answers, check_traces, measured
from unseen.engine.recipe import Evaluation, Recipe, deviations
from unseen.engine.recipe import recipe as make_recipe
from unseen.engine.stack import Stack, load_member
from unseen.engine.threads import one_thread
from unseen.errors import CheckFailed, UsageError, nearest
from unseen.models.foreign import check_importable
from unseen.studies.cell import Cell, build_model, model_config, words
from unseen.studies.compare import compare as compare_sides
from unseen.studies.fit import check_cell
from unseen.studies.progress import Style
from unseen.studies.run import Settings, run_entries
from unseen.studies.sides import Side
from unseen.studies.sinks import check as check_track
from unseen.studies.slice import Keep
from unseen.studies.store import Store
from unseen.studies.study import Entry, Study
from unseen.studies.study import study as find_study
from unseen.tasks import task as make_task
from unseen.tasks.base import Array, Task

Model = str | Config | type[nn.Module]


@dataclass(frozen=True)
class Traces:
    """What models did on the same examples: arrays by (label, seed) and name; the examples' targets and factors."""

    traces: dict[tuple[str, int], dict[str, Array]]
    targets: Array
    factors: dict[str, Array]


class Runs:
    """Finished runs of one model on one task, backed by a store.

    `table` has one row per seed, selection rule, condition and metric; `curves` the learning curves; `cells` how each
    run ended; `deviations` how the recipe differs from the published one.
    """

    def __init__(self, cells: Sequence[Cell], path: Path, keep_alive: Any = None) -> None:
        self._cells, self._keep_alive = {c.seed: c for c in cells}, keep_alive
        self.path = path
        self.task, self.options = cells[0].task, cells[0].model
        self.deviations = deviations(cells[0].recipe, self.task.name, self.options.name)
        with Store.read(path) as store:
            ids = {c.id for c in cells}
            self.table = _only(store.records(), ids)
            self.curves = _only(store.curves(), ids)
            self.cells = _only(store.cells(), ids)

    @property
    def seeds(self) -> list[int]:
        """The seeds, in order."""
        return sorted(self._cells)

    def accuracy(self, condition: str | None = None, selection: str = "best") -> pd.Series:
        """Accuracy by seed on a condition (default: the one on which models are selected)."""
        condition = condition or self.task.validation
        self.task.condition(condition)
        check_selection(selection)
        rows = self.table.query(
            "condition == @condition and selection == @selection and factor == '' and metric == 'accuracy'"
        )
        return rows.set_index("seed")["value"].sort_index()

    def model(self, seed: int, selection: str = "best") -> nn.Module:
        """The trained module of a seed: `best` on validation, or `last`."""
        if seed not in self._cells:
            raise UsageError(f"seed {seed} was not trained. Known: {', '.join(map(str, self.seeds))}")
        check_selection(selection)
        cell = self._cells[seed]
        module: nn.Module = build_model(cell.model, self.task.spec, seed)
        with Store.read(self.path) as store:
            return load_member(module, unpack_weights(*store.weights(cell.id, selection)))

    def trace(
        self,
        condition: str | None = None,
        n: int = 1_000,
        keep: Sequence[str] | None = None,
        selection: str = "best",
        label: str | None = None,
    ) -> Traces:
        """Predictions and kept intermediates (default: all the model offers) on n test examples of a condition."""
        if n < 1:
            raise UsageError(f"n = {n}: give a positive number of examples")
        examples = predicting.draw(self.task, condition or self.task.validation, n, "test")
        alive = [s for s in self.seeds if self._status(s) != "diverged"]
        found = {}
        with one_thread():
            for seed in alive:
                stack = Stack([self.model(seed, selection)])
                wanted = _offered(stack, self.task, keep)
                arrays = predicting.predictions(stack, examples, self.task.spec, wanted)
                found[(label or self.options.name, seed)] = {k: v[0] for k, v in arrays.items()}
        return Traces(found, examples.targets, dict(examples.factors))

    def _status(self, seed: int) -> str:
        return str(self.cells.set_index("seed").loc[seed, "status"])


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
    tried on a few examples of every condition first: whatever does not fit is refused before anything is trained.
    `seeds` is a number (0 … n − 1) or the seeds themselves. `recipe` is a name, with single options as keywords
    (`steps=2000`, `learning_rate=1e-3`), or a `Recipe`. `data_seed` fixes the training data of all seeds; by default
    each seed has its own. Without `out` the records live as long as the result. `track` keeps a tool's logs beside
    them: `tensorboard`, `mlflow` or `wandb` (offline), in a directory of your choice with `tensorboard:DIR`.

        runs = unseen.train("retrieval/T1", "retrieval-transformer", seeds=3, steps=2000)
        runs.accuracy()
    """
    task = make_task(task) if isinstance(task, str) else task
    options = model_config(model)
    used = (
        make_recipe(recipe, **recipe_options)
        if isinstance(recipe, str)
        else Recipe.parse({**recipe.model_dump(), **recipe_options})
    )
    numbers = _seeds(seeds)
    evaluation = evaluation or Evaluation()
    cells = [Cell(task, options, used, evaluation, s, s if data_seed is None else data_seed) for s in numbers]
    settings = Settings(
        size=stack,
        device=device,
        progress=progress,
        retry_failed=True,
        discard_damaged=discard_damaged,
        track=_tracks(track, out),
    )
    # Whatever can be refused is refused before anything is written.
    _check(cells[0], device)
    keep_alive = tempfile.TemporaryDirectory(prefix="unseen-") if out is None else None
    path = Path(keep_alive.name if keep_alive is not None else str(out))
    own_data = all(c.data_seed == c.seed for c in cells)
    with Store.write(path) as store:
        store.claim({**cells[0].work, "data_seed": "own" if own_data else cells[0].data_seed})
        run_entries(
            [Entry({}, c) for c in cells],
            store,
            settings,
            title=f"{words(task.options())} · {words(options.options())}",
        )
        failed = _only(store.failures(), {c.id for c in cells})
    if len(failed):
        raise CheckFailed(f"{len(failed)} of {len(cells)} runs failed: {failed.cause[0]}. The others are in {path}")
    return Runs(cells, path, keep_alive)


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
    slice_seconds: float = 60.0,
    device: str = "cpu",
    progress: Style = "auto",
    track: str | Sequence[str] = (),
) -> pd.DataFrame:
    """Run a study of the catalogue, or of a YAML or Python file, into a directory; returns its records.

    What the directory already holds of it is kept: after any crash the same call goes on. `seeds` replaces the
    study's own, and a larger `scale` or more seeds extend what is there. `executor` is `local` (worker processes, one
    per core), `ray` (a cluster at `address`, or one it starts), or `inline` (this process). `keep` says whose weights
    are kept: none, best, all. Cells that failed stay so unless `retry_failed`; see `unseen results DIR --failures`.
    `track` is as in `train`.

        unseen.run("quickstart", out="demo")
    """
    found = study if isinstance(study, Study) else find_study(str(study))
    chosen = found.default_scale if scale is None else scale
    entries = found.entries(chosen, None if seeds is None else _seeds(seeds))
    if executor != "inline":
        for model in {id(entry.cell.model): entry.cell.model for entry in entries}.values():
            check_importable(model)
    settings = Settings(
        executor,
        workers,
        address,
        stack,
        slice_seconds,
        keep,
        device,
        progress,
        retry_failed,
        discard_damaged,
        _tracks(track, out),
    )
    with Store.write(out) as store:
        store.claim({"study": f"{found.name}@{found.version}"})
        run_entries(entries, store, settings, f"{found.name} {chosen}", chosen)
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
    from unseen.report.exam_scores import read, table
    from unseen.report.page import write_page
    from unseen.report.source import Source
    from unseen.report.theme import load_altair
    from unseen.studies.exam import check_fit as check_battery
    from unseen.studies.exam import exam as battery

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
    page, found = write_page(out, scale=scale), read(Source.read(out, scale))
    if found is None:
        raise CheckFailed(f"every run of the exam has failed; `unseen results {out} --failures` says why")
    scores = table(found)
    scores.attrs["notes"], scores.attrs["page"] = list(found.notes), str(page)
    return scores


def evaluate(
    model: nn.Module,
    task: Task | str,
    *,
    conditions: Sequence[str] = (),
    examples: int = 10_000,
    analyses: Sequence[str] = (),
) -> pd.DataFrame:
    """How good a module, trained anywhere, is on a task's conditions: one row per condition, factor level and metric.

    Its forward is `forward(inputs)` or `forward(inputs, tape)`. An analysis that reads a trace the module does not keep
    is an error that names it.

        unseen.evaluate(module, "ctl/A")
    """
    if not isinstance(model, nn.Module):
        raise UsageError(
            f"model = {model!r}: evaluate needs a module, trained or not: an instance of an nn.Module "
            "class. `unseen.train` takes classes and names"
        )
    task = make_task(task) if isinstance(task, str) else task
    asked = Evaluation.parse({"conditions": tuple(conditions), "examples": examples, "analyses": tuple(analyses)})
    with one_thread():
        stack = measured(model)
        check_answers(stack, task, evaluating.conditions(task, asked), type(model).__name__)
        check_traces(stack, task, asked, type(model).__name__)
        rows = evaluating.evaluate(stack, task, asked)[0]
    for row in rows:
        if row.metric == "loss" and math.isnan(row.value):
            raise UsageError(
                f"{type(model).__name__} on {task.name}: the model answers NaN on examples of condition {row.condition}"
            )
    return pd.DataFrame([asdict(r) for r in rows])


def results(path: str | Path) -> pd.DataFrame:
    """The records of a directory as one tidy table."""
    with Store.read(path) as store:
        return store.records()


def compare(
    *directories: str | Path, metric: str | None = None, condition: str | None = None, selection: str = "best"
) -> pd.DataFrame:
    """Directories side by side, each with the first: a row per place and condition that both have.

    `difference` is `mean_b` − `mean_a`, with its 95 % interval (`low`, `high`), `p` and `p_adjusted`; runs are paired
    by their seeds where they share some. `cells` says whether both hold the same runs, and if so whether their numbers
    are identical. `attrs["notes"]` of the table says the rest: what intervals cover, how the directories differ.

        unseen.compare("runs/before", "runs/after", condition="ood/single")
    """
    found = compare_sides(
        [Side.read(path) for path in directories], metric=metric, condition=condition, selection=selection
    )
    found.table.attrs["notes"] = [*found.heading, *found.alarms, *found.notes]
    return found.table


def _seeds(seeds: int | Iterable[int]) -> list[int]:
    try:
        given = seeds if isinstance(seeds, Iterable) else range(operator.index(seeds))
        numbers = [operator.index(s) for s in given]
    except TypeError:
        numbers = []
    if not numbers or len(set(numbers)) != len(numbers):
        raise UsageError(f"seeds = {seeds!r}: give a positive number, or different whole numbers")
    return numbers


def _tracks(track: str | Sequence[str], out: str | Path | None) -> tuple[str, ...]:
    """The tools to keep up with a run; wrong ones are refused before anything is made."""
    tracks = (track,) if isinstance(track, str) else tuple(track)
    for one in tracks:
        check_track(one, None if out is None else Path(out))
    return tracks


def check_selection(selection: str) -> None:
    """Refuse what is no rule for choosing weights."""
    if selection not in ("best", "last"):
        raise UsageError(f"unknown selection '{selection}'. {nearest(selection, ['best', 'last'])}")


def _check(cell: Cell, device: str) -> None:
    """Refuse a cell that can't be trained, or analyses that its model can't serve; warn of what is odd about it."""
    odd = check_cell(cell, device)
    module = build_model(cell.model, cell.task.spec, cell.seed)
    with one_thread():
        check_traces(Stack([module]), cell.task, cell.evaluation, type(module).__name__)
    for note in odd:
        warnings.warn(f"{cell.model.name}: {note}", stacklevel=3)


def _offered(stack: Stack, task: Task, keep: Sequence[str] | None) -> list[str]:
    one = task.sample(task.validation, 1, data_seed="test")
    offered = stack.names(tensors(one.inputs, task.spec, stack.dtype, "cpu")) if stack.takes_tape else []
    for name in keep or ():
        if name not in offered:
            raise UsageError(f"the model keeps no '{name}'. {nearest(name, offered)}")
    return offered if keep is None else list(keep)


def _only(table: pd.DataFrame, ids: set[str]) -> pd.DataFrame:
    return table[table["cell"].isin(ids)].reset_index(drop=True)
