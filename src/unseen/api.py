"""The Python interface: train, evaluate, run, exam, results, compare."""

from __future__ import annotations

import math
import operator
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
from torch import nn

from unseen.config import Config
from unseen.errors import CheckFailed, UsageError, format_value, nearest
from unseen.models.build import build
from unseen.notebook import html_table
from unseen.running.chunk import Keep, check_own_models, check_trial
from unseen.running.memory import check_memory
from unseen.running.progress import Style
from unseen.running.runner import Settings, run_entries
from unseen.store.store import Store
from unseen.studies import MOST_TRIALS
from unseen.studies.trial import Entry, Trial, describe_training, format_options, model_config
from unseen.tasks import task as make_task
from unseen.tasks.base import Array, Task
from unseen.training import evaluate as evaluating
from unseen.training.batches import input_tensors
from unseen.training.checkpoint import unpack_weights
from unseen.training.preflight import check_analyses, check_answers, stack_trained
from unseen.training.process import check_device, one_thread
from unseen.training.recipe import Evaluation, Recipe, deviations
from unseen.training.recipe import recipe as make_recipe
from unseen.training.stack import Stack, load_member

if TYPE_CHECKING:
    from unseen.claims.until_decided import Decision
    from unseen.studies.study import Study
    from unseen.training.interventions import Ablation, Component

Model = str | Config | type[nn.Module]


@dataclass(frozen=True)
class CapturedActivations:
    """Activations of models on the same examples: arrays by (label, seed) and name; the examples' targets and factors."""

    activations: dict[tuple[str, int], dict[str, Array]]
    targets: Array
    factors: dict[str, Array]

    def __repr__(self) -> str:
        names = list(next(iter(self.activations.values()), {}))
        listed = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        return (
            f"CapturedActivations({len(self.activations)} models, {len(self.targets)} examples, "
            f"{len(names)} activations: {listed})"
        )

    def _repr_html_(self) -> str:
        rows = []
        for (label, seed), arrays in self.activations.items():
            for name, values in arrays.items():
                rows.append((label, seed, name, values.shape, values.dtype))
        return html_table(("model", "seed", "activation", "shape", "type"), rows, repr(self))


class Runs:
    """Finished runs of one model on one task, backed by a store.

    `table` has one row per seed, selection rule, split and metric; `curves` the learning curves; `trials` how each
    run ended; `deviations` how the recipe differs from the published one.
    """

    def __init__(self, trials: Sequence[Trial], path: Path, keep_alive: Any = None) -> None:
        self._trials = {trial.seed: trial for trial in trials}
        self._keep_alive = keep_alive  # a temporary directory, which is removed with the last reference to it
        self.path = path
        self.task = trials[0].task
        self.options = trials[0].model
        self.deviations = deviations(trials[0].recipe, self.task.name, self.options.name)
        with Store.read(path) as store:
            ids = {trial.id for trial in trials}
            self.table = _only(store.records(), ids)
            self.curves = _only(store.curves(), ids)
            self.trials = _only(store.trials(), ids)

    def __repr__(self) -> str:
        ended = self.trials["status"].value_counts()
        states = ", ".join(f"{count} {status}" for status, count in ended.items())
        return f"Runs({format_options(self.task.options())} · {format_options(self.options.options())}: {states})"

    def _repr_html_(self) -> str:
        overall = self.table[self.table["factor"] == ""]
        metric = "accuracy" if (overall["metric"] == "accuracy").any() else "loss"
        rows = []
        for (split, selection), scores in overall[overall["metric"] == metric].groupby(["split", "selection"]):
            by_seed = scores.sort_values("seed")["value"]
            seeds = " ".join(f"{value:.3f}" for value in by_seed)
            rows.append((split, selection, f"{by_seed.mean():.3f}", seeds))
        return html_table(("split", "weights", f"mean {metric}", f"seeds {self.seeds}"), rows, repr(self))

    def plot(self, figure: str = "seeds") -> Any:
        """A figure of these runs as an Altair chart, which a notebook draws: `seeds`, `splits`, `curves`, …

        `unseen report` draws all of them. Needs the extra `report`.
        """
        from unseen.report.data import Source
        from unseen.report.figures import figure as find_figure
        from unseen.report.theme import load_altair

        load_altair()
        source = Source.read(self.path)
        trials = {trial.id for trial in self._trials.values()}
        drawing = find_figure(figure).draw(source.where(source.runs["trial"].isin(trials)))
        if drawing is None:
            raise UsageError(f"figure '{figure}' has nothing to draw from these runs")
        return drawing.chart

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
                offered = _offered_activations(stack, self.task)
                for name in keep or ():
                    if name not in offered:
                        raise UsageError(f"the model captures no '{name}'. {nearest(name, offered)}")
                arrays = evaluating.predict(stack, examples, self.task.spec, offered if keep is None else list(keep))
                activations[label or self.options.name, seed] = {name: stacked[0] for name, stacked in arrays.items()}
        return CapturedActivations(activations, examples.targets, dict(examples.factors))

    def sites(self) -> dict[str, tuple[int, ...]]:
        """The activations of the model that can be captured and replaced, with their shapes for one example.

        Those that are the same for all examples, such as position embeddings, can be ablated by zero and by noise.
        """
        from unseen.training.interventions import list_shapes

        examples = evaluating.draw_examples(self.task, self.task.validation, 2, "test")
        stack = Stack([build(self.options, self.task.spec, self.seeds[0])])
        whole = stack.sites(input_tensors(examples.inputs, self.task.spec, stack.dtype, "cpu"))
        shapes = list_shapes(stack, self.task, examples)
        return {name: whole[name] if shape is None else shape for name, shape in shapes.items()}

    def probe(
        self,
        variable: str | Sequence[str],
        split: str | None = None,
        *,
        n: int = 1_000,
        sites: Sequence[str] | str = (),
        positions: Sequence[str | int] | str | int = (),
        selection: str = "best",
    ) -> pd.DataFrame:
        """Where a variable of the task can be read off the activations by a linear map: one row per seed, site and position.

        `variable` is one of `task.variables(examples)`, or several. By default all sites of states and all positions are
        probed; a position is a token, `all`, or a variable whose values are positions. See docs/inside.md.

            runs.probe("symbol[1]", "ood/transition", sites=["encoder.state"])
        """
        from unseen.training import inside

        names = [variable] if isinstance(variable, str) else list(variable)
        stack, seeds = self._stack(selection)
        with one_thread():
            table = inside.probe_table(stack, self.task, names, split, n, sites, _name_positions(positions))
        return _name_seeds(table, seeds)

    def intervene(
        self,
        variable: str,
        split: str | None = None,
        *,
        n: int = 500,
        sites: Sequence[str] | str = (),
        positions: Sequence[str | int] | str | int = (),
        dimension: int | None = None,
        selection: str = "best",
    ) -> pd.DataFrame:
        """Whether a variable is used where it is: interchange interventions, one row per seed, site and position.

        The model answers one example with the activation of another, and `accuracy` is the share of n pairs in which it
        answers as the solver does if the variable has the other's value. `dimension` exchanges a learned subspace only.
        Sites and positions are as in `probe`. See docs/inside.md.

            runs.intervene("symbol[1]", "ood/transition", positions=["token[1]"])
        """
        from unseen.training import inside

        stack, seeds = self._stack(selection)
        with one_thread():
            table = inside.interchange_table(
                stack, self.task, variable, split, n, sites, _name_positions(positions), dimension
            )
        return _name_seeds(table, seeds)

    def ablate(
        self,
        components: Component | Sequence[Component],
        split: str | None = None,
        *,
        how: Ablation = "mean",
        n: int = 1_000,
        selection: str = "best",
    ) -> pd.DataFrame:
        """How much worse the model answers without components of its activations: one row per seed and component.

        A component is set to zero, to its mean over the examples, to its value in another example (`resample`), or to
        random vectors of equal length (`noise`).

            runs.ablate([unseen.Component("gating.weights", unit=m) for m in range(8)], how="zero")
        """
        from unseen.training import inside
        from unseen.training.interventions import Component

        stack, seeds = self._stack(selection)
        with one_thread():
            chosen = [components] if isinstance(components, Component) else list(components)
            table = inside.ablation_table(stack, self.task, chosen, how, split, n)
        return _name_seeds(table, seeds)

    def cut(
        self,
        site: str,
        query: str | int = "all",
        key: str | int = "all",
        split: str | None = None,
        *,
        n: int = 1_000,
        selection: str = "best",
    ) -> pd.DataFrame:
        """How much worse the model answers if the tokens at `query` do not attend to those at `key`: one row per seed.

        `site` has the attention weights; those that are left are scaled to add up to 1 again. A position is a token,
        `all`, or a variable whose values are positions.

            runs.cut("encoder.attention", query="second_position[0]", key="first_position[0]")
        """
        from unseen.training import inside

        stack, seeds = self._stack(selection)
        with one_thread():
            table = inside.cut_table(stack, self.task, site, str(query), str(key), split, n)
        return _name_seeds(table, seeds)

    def accuracy_by_function(self, split: str | None = None, n: int = 1_000, selection: str = "best") -> pd.DataFrame:
        """Accuracy of each seed on examples whose function training has, in any form (`known`), and on the others (`new`).

        A new combination may be a function that training has in another form, as `unseen verify` reports: a model that
        has learned that function as a whole can answer it. Columns: `seed`, `function`, `accuracy`, `n`.
        """
        from unseen.training.analyses.known_functions import score_by_function

        split = split or self.task.validation
        examples = evaluating.draw_examples(self.task, split, n, "test")
        if self.task.expressions(examples[:1]) is None:
            raise UsageError(f"{self.task.name} does not say which examples compute the same")
        stack, seeds = self._stack(selection)
        with one_thread():
            predictions = evaluating.predict(stack, examples, self.task.spec)["prediction"]
        data_seeds = [self._trials[seed].data_seed for seed in seeds]
        rows = []
        for seed, scores in zip(seeds, score_by_function(self.task, examples, predictions, data_seeds), strict=True):
            rows += [(seed, *score) for score in scores]
        return pd.DataFrame(rows, columns=["seed", "function", "accuracy", "n"])

    def _stack(self, selection: str) -> tuple[Stack, list[int]]:
        """All seeds that did not diverge as one stack, and these seeds."""
        status = self.trials.set_index("seed")["status"]
        seeds = [seed for seed in self.seeds if status[seed] != "diverged"]
        if not seeds:
            raise UsageError("all runs have diverged: there is no model to look into")
        return Stack([self.model(seed, selection) for seed in seeds]), seeds


def _name_positions(positions: Sequence[str | int] | str | int) -> list[str]:
    """Positions as a list of texts; a single position need not be in a list."""
    return [str(positions)] if isinstance(positions, str | int) else [str(position) for position in positions]


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
    tried on a few examples of every split first: a model that does not fit is refused before anything is trained.
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
    check_memory(trials, device, stack, seeds=len(trials))
    notes = check_trial(trials[0], device, full=True)
    for note in notes:
        warnings.warn(f"{options.name}: {note}", stacklevel=2)
    # Removed with the result, which holds it.
    keep_alive = tempfile.TemporaryDirectory(prefix="unseen-") if out is None else None
    path = Path(keep_alive.name if keep_alive is not None else str(out))
    # Part of what the directory is for: later seeds must get their data in the same way.
    own_data = all(trial.data_seed == trial.seed for trial in trials)
    ids = {trial.id for trial in trials}
    with Store.write(path) as store:
        store.set_work({**trials[0].work, "data_seed": "own" if own_data else trials[0].data_seed})
        differences = deviations(used_recipe, task.name, options.name)
        store.describe(describe_training([trial.seed for trial in trials], differences))
        entries = [Entry({}, trial) for trial in trials]
        title = f"{format_options(task.options())} · {format_options(options.options())}"
        run_entries(entries, store, settings, title, preflight=tuple(notes))
        failures = _only(store.failures(), ids)
    if len(failures):
        others = f". The others are in {path}" if len(failures) < len(trials) else ""
        raise CheckFailed(f"{len(failures)} of {len(trials)} runs failed: {failures.cause[0]}{others}")
    return Runs(trials, path, keep_alive)


def run(
    study: Study | str | Path,
    out: str | Path,
    *,
    scale: str | None = None,
    seeds: int | Iterable[int] | None = None,
    workers: int | None = None,
    executor: Literal["inline", "local", "ray", "slurm"] = "local",
    address: str | None = None,
    keep: Keep = "none",
    retry_failed: bool = False,
    discard_damaged: bool = False,
    stack: int | None = None,
    chunk_seconds: float = 60.0,
    device: str = "cpu",
    progress: Style = "auto",
    track: str | Sequence[str] = (),
    until_decided: bool = False,
    claims: Sequence[str] = (),
    hours: float | None = None,
    on_decision: Callable[[Decision], object] = lambda decision: None,
    reuse: str | Path | Sequence[str | Path] = (),
    extend: bool = False,
    shard: tuple[int, int] | None = None,
) -> pd.DataFrame:
    """Run a study of the catalogue, or of a YAML or Python file, into a directory; returns its records.

    Trials that the directory already holds are kept: after a crash the same call resumes the study. `seeds` replaces the
    study's own, and a larger `scale` or more seeds extend what is there. `executor` is `local` (worker processes, one
    per core), `ray` (a cluster at `address`, or one it starts), `slurm` (pilot jobs as a YAML file at `address` describes
    them), or `inline` (this process). `keep` says whose weights
    are kept: none, best, all. Trials that failed stay so unless `retry_failed`; see `unseen results DIR --failures`.
    `track` is as in `train`. Trials that have ended in a directory or records file of `reuse` are taken over instead of
    trained; `extend` does so with the records that the package ships for this study and scale. A trial that has ended
    and gets a further evaluation is not trained again if its weights were kept.

    `shard=(i, n)` runs the i-th of n about equal shards, each into a directory of its own, for a scheduler that knows
    nothing of the others; `unseen merge` joins them.

    With `until_decided`, seeds and steps are added where they are most likely to decide one of the study's claims (or of
    the named `claims`) per core-hour, until all are decided or `hours` core-hours are spent, by the rates that ship with
    the package; `on_decision` is told what was decided at each look.

        unseen.run("quickstart", out="demo")
    """
    from unseen.claims.mode import MODE, Fixed, Mode, UntilDecided, mode_data, mode_key
    from unseen.claims.user_claims import check_study_claims, list_axes, remember_claims, select_claims
    from unseen.store.take_over import open_sources
    from unseen.studies.description import describe_study
    from unseen.studies.study import Study
    from unseen.studies.study import study as find_study

    if not isinstance(study, Study):
        study = find_study(str(study))
    scale = study.default_scale if scale is None else scale
    seed_list = None if seeds is None else _seed_list(seeds)
    entries = study.entries(scale, seed_list)
    axes = list_axes(entry.levels for entry in entries)
    own_claims = check_study_claims(study, axes)  # a mistake in a claim is reported before anything is written
    mode: Mode = Fixed(_count_units(entries))
    if until_decided:
        if seeds is not None:
            raise UsageError("seeds and until_decided exclude each other: the looks say how many seeds there are")
        mode = UntilDecided()
        from unseen.claims.until_decided import Course, run_until_decided

        course = Course(study, scale, select_claims(study, own_claims, claims))
    elif claims or hours is not None:
        raise UsageError("claims and hours belong to until_decided")
    if shard is not None:
        if until_decided:
            raise UsageError("shard and until_decided exclude each other: a shard alone decides nothing")
        entries = _take_shard(entries, *shard)
    if executor != "inline":
        from unseen.models.foreign import check_importable

        # Thousands of trials share a few objects of options.
        for model in {id(entry.trial.model): entry.trial.model for entry in entries}.values():
            check_importable(model)
    settings = Settings(
        executor=executor,
        workers=workers,
        address=address,
        size=stack,
        chunk_seconds=chunk_seconds,
        keep=keep,
        device=device,
        progress=progress,
        retry_failed=retry_failed,
        discard_damaged=discard_damaged,
        track=_check_tracks(track, out),
    )
    check_memory((entry.trial for entry in entries), device, stack, seeds=len(entries))
    check_own_models(entry.trial for entry in entries)
    paths = [reuse] if isinstance(reuse, str | Path) else list(reuse)
    if extend:
        from unseen.store.shipped_records import find_shipped

        paths.append(find_shipped(study.name, study.version, scale))
    identities = {}
    if paths:
        planned = course.all_entries() if until_decided else entries
        identities = {entry.trial.id: entry.trial.identity for entry in planned}
    with open_sources(paths, Path(out), identities) as sources, Store.write(out) as store:
        store.set_work(study.work)
        stored_mode = store.recall(MODE)
        status = store.status()
        if stored_mode is None and store.is_new:
            store.remember(MODE, mode_data(mode))
            remember_claims(store, study, own_claims, axes)
        elif until_decided and stored_mode != mode_data(mode):
            raise UsageError(f"{out} was begun with a fixed number of units. Give a new directory for --until-decided")
        elif stored_mode == mode_data(UntilDecided()) and not until_decided:
            raise UsageError(f"{out} is run until its claims are decided: go on with --until-decided")
        if not until_decided:
            # A further scale has a number of units of its own, unless it adds some to what was run before.
            is_new = not any(entry.trial.id in status for entry in entries)
            is_further = bool(status) and is_new and scale not in set(store.entries()["scale"])
            store.add(entries, scale)  # refuses a changed study, before anything about it is written
            if is_further:
                store.remember(mode_key(scale), mode_data(mode))
        store.describe(describe_study(study, scale, store.description))
        if until_decided:
            run_until_decided(course, store, settings, hours, on_decision, sources)
        else:
            run_entries(entries, store, settings, f"{study.name} {scale}", scale, sources=sources)
        return store.records()


def _count_units(entries: Sequence[Entry]) -> int:
    """The number of units of a study: of its tasks where they are drawn (`task_seed`), else of its seeds."""
    tasks = {entry.levels.get("task_seed") for entry in entries}
    if tasks != {None}:
        return len(tasks)
    return len({(entry.trial.seed, entry.trial.data_seed) for entry in entries})


def exam(
    model: Model,
    out: str | Path,
    *,
    scale: str = "mini",
    seeds: int | Iterable[int] | None = None,
    workers: int | None = None,
    executor: Literal["inline", "local", "ray"] = "local",
    retry_failed: bool = False,
    device: str = "cpu",
    progress: Style = "auto",
) -> pd.DataFrame:
    """Train a model on the battery from the four papers' families, and write its page, `report.html` in the directory.

    Returns a row per ability and test: the score with its interval, how many runs have learned, chance, the best
    shortcut, the oracle, and how many reference backbones the model is above, level with and below. `attrs["notes"]` of
    the table has remarks on the runs, `attrs["page"]` the path of the page. A model that does not fit every test is
    refused before anything is trained. Other arguments are those of `run`: after a crash the same call resumes the exam.

        unseen.exam("lstm", "runs/exam", scale="smoke")
    """
    from unseen.exam.exam import check_model as check_battery
    from unseen.exam.exam import exam as battery
    from unseen.report.data import Source
    from unseen.report.exam_scores import exam_table, read_exam
    from unseen.report.page import write_page
    from unseen.report.theme import load_altair

    load_altair()  # without it the page could not be written, which is better known now
    check_device(device)
    study = battery(model)
    check_battery(study, scale, device)
    run(
        study,
        out,
        scale=scale,
        seeds=seeds,
        workers=workers,
        executor=executor,
        retry_failed=retry_failed,
        device=device,
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
    device: str | None = None,
) -> pd.DataFrame:
    """Evaluate a module, trained anywhere, on the splits of a task: one row per split, factor level and metric.

    Its forward is `forward(inputs)` or `forward(inputs, ctx)`. It is evaluated on `device` (default: that of its
    parameters) and is not moved itself. An analysis that does not apply to the task, or that reads activations which the
    module does not capture, is an error that names it.

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
        stack = stack_trained(model, None if device is None else check_device(device))
        check_answers(stack, task, evaluating.evaluated_splits(task, evaluation), name)
        check_analyses(stack, task, evaluation, name)
        rows = evaluating.evaluate(stack, task, evaluation)[0]
    for row in rows:
        if row.metric == "loss" and math.isnan(row.value):
            raise UsageError(f"{name} on {task.name}: the model answers NaN on examples of split {row.split}")
    return pd.DataFrame(list(map(asdict, rows)))


def results(path: str | Path) -> pd.DataFrame:
    """The records of a directory, or of a records file, as one tidy table."""
    from unseen.store.take_over import is_records_file

    if is_records_file(path):
        from unseen.store.records import load

        return load(path).records
    with Store.read(path) as store:
        return store.records()


def claims(*paths: str | Path, names: Sequence[str] = ()) -> pd.DataFrame:
    """The verdicts on the papers' claims from directories and records files; without any, from the package's records.

    One row per claim (and scale, if there are several): its statement, its `verdict` and whether its criteria were
    `registered` before the runs, how many `criteria` it has, how many of them were `run` and `hold`, what it hangs on
    (`because`), and for an open claim what would `settle` it and the price in `core_hours`. `names` selects claims.

        unseen.claims(names=["retrieval/C5"])
    """
    from unseen.claims.judge_studies import judge_shipped, judge_store, keep_home_verdicts
    from unseen.claims.page import pair_claims
    from unseen.claims.planned import price_settling
    from unseen.claims.render import describe_needs, explain, name_paper

    if paths:
        stores = keep_home_verdicts([judge_store(Path(path), names) for path in dict.fromkeys(paths)])
        pairs = [(store, judged) for store in stores for judged in store.verdicts]
    else:
        pairs = pair_claims(judge_shipped(names))
    rows = []
    for store, judged in pairs:
        claim = judged.claim
        coverage = judged.coverage
        if names and claim.name not in names:
            continue
        rows.append(
            {
                "claim": claim.name,
                "paper": name_paper(claim),
                "statement": claim.statement,
                "verdict": judged.verdict,
                "registered": judged.registered,
                "criteria": coverage.total,
                "run": coverage.run,
                "hold": coverage.hold,
                "because": explain(judged),
                "settle": describe_needs(judged),
                "core_hours": price_settling(judged),
                "study": store.study,
                "scale": judged.scale,
                "source": store.directory,
            }
        )
    return pd.DataFrame(rows)


def compare(
    *directories: str | Path, metric: str | None = None, split: str | None = None, selection: str | None = None
) -> pd.DataFrame:
    """Compare directories, each with the first: a row per configuration and split that both have.

    `difference` is `mean_b` − `mean_a`, with its 95 % interval (`low`, `high`), `p` and `p_adjusted`; runs are paired
    by their seeds where they share some. `trials` says whether both hold the same runs, and if so whether their numbers
    are identical. `selection` are the weights, `best` on validation or `last`; by default those that the studies show.
    `attrs["notes"]` of the table has remarks on the weights, on what intervals cover, and on how the directories differ.

        unseen.compare("runs/before", "runs/after", split="ood/single")
    """
    from unseen.compare.compare import compare as compare_directories
    from unseen.compare.run_groups import RunDirectory

    opened = [RunDirectory.read(path) for path in directories]
    comparison = compare_directories(opened, metric=metric, split=split, selection=selection)
    comparison.table.attrs["notes"] = [*comparison.heading, *comparison.alarms, *comparison.notes]
    return comparison.table


def _take_shard(entries: Sequence[Entry], number: int, count: int) -> list[Entry]:
    """The number-th of `count` shards of a study. Neighbours stay together: they are often trained as one stack."""
    if not 1 <= number <= count:
        raise UsageError(f"shard {number}/{count}: give i/n with 1 ≤ i ≤ n")
    first = len(entries) * (number - 1) // count
    stop = len(entries) * number // count
    if first == stop:
        raise UsageError(f"shard {number}/{count} is empty: the study has {len(entries)} trials")
    return list(entries[first:stop])


def _seed_list(seeds: int | Iterable[int]) -> list[int]:
    numbers: list[int] = []
    with suppress(TypeError):
        if not isinstance(seeds, Iterable):
            count = operator.index(seeds)
            if count > MOST_TRIALS:
                raise UsageError(f"seeds = {format_value(count)}: at most {MOST_TRIALS:,} seeds can be run")
            seeds = range(count)
        numbers = [operator.index(seed) for seed in seeds]
    if not numbers or len(set(numbers)) != len(numbers):
        raise UsageError(f"seeds = {format_value(seeds)}: give a positive number, or different whole numbers")
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


def _name_seeds(table: pd.DataFrame, seeds: Sequence[int]) -> pd.DataFrame:
    """A table with a column `member`, the position in a stack, with a column `seed` in its place."""
    by_seed = table.assign(member=table["member"].map(dict(enumerate(seeds))))
    return by_seed.rename(columns={"member": "seed"})
