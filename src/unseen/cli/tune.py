"""`unseen tune`: tune the recipe of every model with equal budgets, and compare tuned with untuned runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unseen.cli.output import exit_when_interrupted, load_task, parse_seeds
from unseen.cli.run import Executor
from unseen.cli.settings import HELP, add_steps, parse_settings
from unseen.cli.track import HELP as TRACK
from unseen.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from unseen.config import Config
    from unseen.studies.grid import Level
    from unseen.tuning.tune import TuningResult


def tune(
    task: Annotated[str, typer.Argument(help="A task, e.g. rules/mlp.")],
    models: Annotated[
        list[str], typer.Argument(help="Models to compare, e.g. rules-mlp, or your own classes as module:Class.")
    ],
    out: Annotated[Path, typer.Option(help="Results directory; the same tuning there is continued.")],
    steps: Annotated[int | None, typer.Option(help="Training steps of a full run (default: the recipe's).")] = None,
    recipe: Annotated[
        str | None, typer.Option(help="The untuned recipe (default: the published one, or quick).")
    ] = None,
    vary: Annotated[list[str] | None, typer.Option(help="Also compare values of an option: gating=none,joint.")] = None,
    budget: Annotated[int | None, typer.Option(help="Configurations per model (default: the grid of 80).")] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(help="A search space instead of the grid: learning_rate=1e-5..1e-2, batch=64,256."),
    ] = None,
    tasks: Annotated[int, typer.Option(help="Number of tuning tasks; none of them is reported.")] = 1,
    seeds: Annotated[str, typer.Option(help="Reported seeds: a number (5), a list (0,3,7), or one (7,).")] = "5",
    workers: Annotated[int | None, typer.Option(help="Worker processes (default: one per core).")] = None,
    executor: Annotated[
        Executor, typer.Option(help="local: processes on this machine; ray: a Ray cluster; inline: this process.")
    ] = "local",
    address: Annotated[str | None, typer.Option(help="Address of the Ray cluster (default: start one here).")] = None,
    device: Annotated[str, typer.Option(help="cpu, or another torch device.")] = "cpu",
    track: Annotated[list[str] | None, typer.Option(help=TRACK)] = None,
    set: Annotated[list[str] | None, typer.Option("--set", help=HELP)] = None,
) -> None:
    """Tune recipes by successive halving, with equal budgets on separate tuning tasks; report tuned and untuned runs.

    Examples:

    unseen tune rules/mlp rules-mlp --vary gating=none,joint,operation,truth --set rules=2 --steps 5000 --out tuned

    unseen tune ctl/A lstm transformer --steps 4000 --budget 16 --out runs/tuned

    unseen tune retrieval/T1 lstm --search learning_rate=1e-4..1e-2 --search batch=32,64 --budget 40 --out runs/t1
    """
    from unseen.models.foreign import load_class, options_class
    from unseen.running.runner import Settings
    from unseen.store.store import Store
    from unseen.training.recipe import Recipe
    from unseen.tuning.search_space import parse_space
    from unseen.tuning.tune import contenders
    from unseen.tuning.tune import tune as run_tuning

    components: dict[str, type[Config]] = {
        "task": load_task(task),
        "model": options_class(load_class(models[0])),
        "recipe": Recipe,
    }
    settings = parse_settings(set or [], components)
    if "task_seed" in settings["task"]:
        raise UsageError("--set task_seed=…: tune chooses the task seeds itself; tuning tasks have 1000 and above")
    add_steps(settings, steps)
    entries = contenders(task, models, vary=_parse_vary(vary or [], components), recipe=recipe, settings=settings)
    run_settings = Settings(
        executor=executor, workers=workers, address=address, keep="none", device=device, track=tuple(track or ())
    )
    with exit_when_interrupted():
        result = run_tuning(
            entries,
            out,
            space=parse_space(search) if search else None,
            budget=budget,
            tasks=tasks,
            seeds=parse_seeds(seeds),
            settings=run_settings,
        )
    with Store.read(out) as store:
        typer.echo(_format_result(result, store.records()))
    typer.echo(f"all records, including the tuning trials: unseen results {out} --format csv", err=True)


def _parse_vary(assignments: list[str], components: dict[str, type[Config]]) -> dict[str, list[Level]]:
    """`gating=none,joint` as {"model.gating": ["none", "joint"]}."""
    levels: dict[str, list[Any]] = {}
    for assignment in assignments:
        key, equals, values = assignment.partition("=")
        for value in values.split(","):
            settings = parse_settings([f"{key}{equals}{value}"], components, "--vary")
            for component, options in settings.items():
                for option, level in options.items():
                    levels.setdefault(f"{component}.{option}", []).append(level)
    return levels


def _format_result(result: TuningResult, records: pd.DataFrame) -> str:
    """Every contender's tuned recipe and its untuned and tuned scores on each split; then both rankings."""
    from unseen.tuning.tune import REPORTED

    metric = "accuracy" if (records.metric == "accuracy").any() else "loss"
    reported = records[
        records.scale.isin(REPORTED)
        & (records.metric == metric)
        & (records.factor == "")
        & (records.selection == "best")
    ]
    lines = []
    means: dict[tuple[str, str], dict[str, float]] = {}
    for levels, recipe in zip(result.contenders, result.recipes, strict=True):
        name = " ".join(map(str, levels.values()))
        rows = reported
        for axis, level in levels.items():
            rows = rows[rows[axis] == level]
        changed = [f"{key}={value}" for key, value in recipe.options().items() if key != "name"]
        lines.append(f"{name}: tuned to {recipe.name} {' '.join(changed)}")
        for split in rows.split.unique():
            texts = []
            for scale in REPORTED:
                values = rows[(rows.scale == scale) & (rows.split == split)].value
                means.setdefault((split, scale), {})[name] = float(values.mean())
                spread = f" ± {values.std():.3f}" if len(values) > 1 else ""
                texts.append(f"{scale} {values.mean():.3f}{spread} ({len(values)})")
            lines.append(f"  {split} {metric}: {', '.join(texts)}")
    if len(result.contenders) > 1:
        lines += ["", "best first:"]
        for (split, scale), by_name in means.items():
            ranking = sorted(by_name, key=lambda name: by_name[name], reverse=metric == "accuracy")
            lines.append(f"  {split}, {scale}: {', '.join(ranking)}")
    lines += [
        "",
        f"{metric} of the best weights on validation: mean ± one standard deviation over reported runs, which share "
        "no task or training data with tuning",
    ]
    return "\n".join(lines)
