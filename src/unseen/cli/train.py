"""`unseen train`: many seeds of one model on one task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unseen.cli.settings import HELP, settings
from unseen.cli.track import HELP as TRACK
from unseen.errors import UsageError


def train(
    task: Annotated[str, typer.Argument(help="A task, e.g. retrieval/T6.")],
    model: Annotated[
        str, typer.Argument(help="A model, e.g. retrieval-transformer, or a class of yours: module:Class.")
    ],
    out: Annotated[Path, typer.Option(help="Where the records go; the same work is continued.")],
    seeds: Annotated[str, typer.Option(help="How many seeds, or which: 5, or 0,3,7.")] = "5",
    steps: Annotated[int | None, typer.Option(help="Training steps (default: the recipe's).")] = None,
    recipe: Annotated[str, typer.Option(help="quick, or a published one: retrieval-paper, ctl-ndr-paper, …")] = "quick",
    data_seed: Annotated[int | None, typer.Option(help="One data set for all seeds (default: each its own).")] = None,
    stack: Annotated[int | None, typer.Option(help="Seeds trained as one (default: found by a probe).")] = None,
    device: Annotated[str, typer.Option(help="cpu, or another torch device.")] = "cpu",
    discard_damaged: Annotated[
        bool, typer.Option("--discard-damaged", help="Train seeds again whose checkpoint is damaged.")
    ] = False,
    track: Annotated[list[str] | None, typer.Option(help=TRACK)] = None,
    set: Annotated[list[str] | None, typer.Option("--set", help=HELP)] = None,
) -> None:
    """Train a model on a task and leave records in a directory; run it again to continue or to add seeds.

    Examples:

    unseen train retrieval/T1 retrieval-transformer --set length=5 --steps 2000 --out runs/t1

    unseen train retrieval/T6 retrieval-lstm --set form=basic --seeds 10 --out runs/t6

    unseen train ctl/A mine:Model --steps 5000 --out runs/mine
    """
    from unseen.config import Config
    from unseen.engine.recipe import Recipe
    from unseen.engine.recipe import recipe as make_recipe
    from unseen.models import options as make_model
    from unseen.models.foreign import named, own_options
    from unseen.tasks import TASKS
    from unseen.tasks import task as make_task

    parts: dict[str, type[Config]] = {"task": TASKS.load(task), "model": own_options(named(model)), "recipe": Recipe}
    given = settings(set or [], parts)
    if steps is not None and "steps" in given["recipe"]:
        raise UsageError("--steps and --set steps=… say the same thing; give one of them")
    if steps is not None:
        given["recipe"]["steps"] = steps
    found, options = make_task(task, **given["task"]), make_model(model, **given["model"])
    used, numbers = make_recipe(recipe, **given["recipe"]), seed_numbers(seeds)

    from unseen.api import train as run
    from unseen.studies.run import Interrupted

    try:
        runs = run(
            found,
            options,
            seeds=numbers,
            recipe=used,
            data_seed=data_seed,
            out=out,
            stack=stack,
            device=device,
            discard_damaged=discard_damaged,
            track=track or (),
        )
    except Interrupted as stopped:
        typer.echo(f"{stopped}.", err=True)
        raise typer.Exit(130) from None

    from unseen.cli.summary import summary

    typer.echo(summary(out))
    if runs.deviations:
        typer.echo("deviates from the published recipe: " + "; ".join(runs.deviations), err=True)
    typer.echo(f"all records: unseen results {out}", err=True)


def seed_numbers(text: str) -> list[int]:
    """The seeds behind `--seeds 5` or `--seeds 0,3,7`."""
    try:
        if "," in text:
            return [int(part) for part in text.removesuffix(",").split(",")]
        count = int(text)
    except ValueError:
        raise UsageError(f"--seeds {text}: expected a number like 5 or a list like 0,3,7") from None
    if count < 1:
        raise UsageError(f"--seeds {text}: give a positive number of seeds, or a list like 0,3,7")
    return list(range(count))
