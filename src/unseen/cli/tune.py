"""`unseen tune`: every model with a recipe found for it, beside the one it had; the same budget for all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unseen.cli.run import Executor
from unseen.cli.settings import HELP, settings
from unseen.cli.track import HELP as TRACK
from unseen.cli.train import seed_numbers
from unseen.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from unseen.config import Config
    from unseen.studies.grid import Level
    from unseen.studies.tune import Tuned


def tune(
    task: Annotated[str, typer.Argument(help="A task, e.g. rules/mlp.")],
    models: Annotated[list[str], typer.Argument(help="Models to compare, e.g. rules-mlp, or classes of yours.")],
    out: Annotated[Path, typer.Option(help="Where the records go; the same work is continued.")],
    steps: Annotated[int | None, typer.Option(help="Training steps of a whole run (default: the recipe's).")] = None,
    recipe: Annotated[str | None, typer.Option(help="The untuned recipe (default: as published, or quick).")] = None,
    vary: Annotated[list[str] | None, typer.Option(help="Also compare values of an option: gating=none,joint.")] = None,
    budget: Annotated[int | None, typer.Option(help="Configurations for each model (default: the grid of 80).")] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(help="A space of your own instead of the grid: learning_rate=1e-5..1e-2, batch=64,256."),
    ] = None,
    tasks: Annotated[int, typer.Option(help="Tuning tasks; none of them is reported.")] = 1,
    seeds: Annotated[str, typer.Option(help="Reported seeds: how many, or which (0,3,7).")] = "5",
    workers: Annotated[int | None, typer.Option(help="Worker processes (default: one per core).")] = None,
    executor: Annotated[Executor, typer.Option(help="Processes here, a Ray cluster, this process.")] = Executor.local,
    address: Annotated[str | None, typer.Option(help="The Ray cluster (default: one is started here).")] = None,
    track: Annotated[list[str] | None, typer.Option(help=TRACK)] = None,
    set: Annotated[list[str] | None, typer.Option("--set", help=HELP)] = None,
) -> None:
    """Tune recipes by successive halving, with equal budgets and on tasks of their own; report tuned and untuned runs.

    Examples:

    unseen tune rules/mlp rules-mlp --vary gating=none,joint,operation,truth --set rules=2 --steps 5000 --out tuned

    unseen tune ctl/A lstm transformer --steps 4000 --budget 16 --out runs/tuned

    unseen tune retrieval/T1 lstm --search learning_rate=1e-4..1e-2 --search batch=32,64 --budget 40 --out runs/t1
    """
    from unseen.engine.recipe import Recipe
    from unseen.models.foreign import named, own_options
    from unseen.studies.run import Interrupted, Settings
    from unseen.studies.tune import contenders
    from unseen.studies.tune import tune as run
    from unseen.studies.tune_space import parse
    from unseen.tasks import TASKS

    parts: dict[str, type[Config]] = {
        "task": TASKS.load(task),
        "model": own_options(named(models[0])),
        "recipe": Recipe,
    }
    given = settings(set or [], parts)
    if "task_seed" in given["task"]:
        raise UsageError("--set task_seed=…: tune chooses task seeds itself, those of 1000 and more to tune on")
    if steps is not None and "steps" in given["recipe"]:
        raise UsageError("--steps and --set steps=… say the same thing; give one of them")
    if steps is not None:
        given["recipe"]["steps"] = steps
    entries = contenders(task, models, vary=_varied(vary or [], parts), recipe=recipe, settings=given)
    try:
        found = run(
            entries,
            out,
            space=parse(search) if search else None,
            budget=budget,
            tasks=tasks,
            seeds=seed_numbers(seeds),
            settings=Settings(
                executor=executor.value, workers=workers, address=address, keep="none", track=tuple(track or ())
            ),
        )
    except Interrupted as stopped:
        typer.echo(f"{stopped}.", err=True)
        raise typer.Exit(130) from None

    from unseen.studies.store import Store

    with Store.read(out) as store:
        typer.echo(side_by_side(found, store.records()))
    typer.echo(f"all records, trials too: unseen results {out} --format csv", err=True)


def side_by_side(found: Tuned, records: pd.DataFrame) -> str:
    """Each contender's recipe, untuned and tuned scores on every condition, and the order of contenders under both."""
    from unseen.studies.tune import REPORTED

    metric = "accuracy" if (records.metric == "accuracy").any() else "loss"
    rows = records[
        records.scale.isin(REPORTED)
        & (records.metric == metric)
        & (records.factor == "")
        & (records.selection == "best")
    ]
    lines, means = [], dict[tuple[str, str], dict[str, float]]()
    for place, recipe in zip(found.contenders, found.recipes, strict=True):
        mine, name = rows, " ".join(str(level) for level in place.values())
        for axis, level in place.items():
            mine = mine[mine[axis] == level]
        changed = [f"{key}={value}" for key, value in recipe.options().items() if key != "name"]
        lines += [f"{name}: tuned to {recipe.name} {' '.join(changed)}"]
        for condition in mine.condition.unique():
            scores = {scale: mine[(mine.scale == scale) & (mine.condition == condition)].value for scale in REPORTED}
            lines.append(f"  {condition} {metric}: " + ", ".join(f"{k} {_score(v)}" for k, v in scores.items()))
            for scale, values in scores.items():
                means.setdefault((condition, scale), {})[name] = float(values.mean())
    if len(found.contenders) > 1:
        lines += ["", "best first:"]
        for (condition, scale), named in means.items():
            order = sorted(named, key=lambda name: named[name], reverse=metric == "accuracy")
            lines.append(f"  {condition}, {scale}: " + ", ".join(order))
    lines += [
        "",
        f"{metric} of the best weights on validation: mean ± one standard deviation over reported runs, "
        "which share no task or training data with tuning",
    ]
    return "\n".join(lines)


def _score(values: pd.Series) -> str:
    spread = f" ± {values.std():.3f}" if len(values) > 1 else ""
    return f"{values.mean():.3f}{spread} ({len(values)})"


def _varied(given: list[str], parts: dict[str, type[Config]]) -> dict[str, list[Level]]:
    """`gating=none,joint` as values of the option of the part that knows it."""
    found: dict[str, list[Any]] = {}
    for text in given:
        key, equals, values = text.partition("=")
        for value in values.split(","):
            for part, options in settings([f"{key}{equals}{value}"], parts, "--vary").items():
                for option, one in options.items():
                    found.setdefault(f"{part}.{option}", []).append(one)
    return found
