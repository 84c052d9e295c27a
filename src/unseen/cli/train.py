"""`unseen train`: train several seeds of one model on one task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unseen.cli.complete import complete_model, complete_setting, complete_task
from unseen.cli.output import exit_when_interrupted, load_task, parse_seeds
from unseen.cli.settings import HELP, add_steps, parse_settings
from unseen.cli.track import HELP as TRACK


def train(
    task: Annotated[str, typer.Argument(help="A task, e.g. retrieval/T6.", autocompletion=complete_task)],
    model: Annotated[
        str,
        typer.Argument(
            help="A model, e.g. retrieval-transformer, or your own class as module:Class.",
            autocompletion=complete_model,
        ),
    ],
    out: Annotated[Path, typer.Option(help="Results directory; the same training there is continued.")],
    seeds: Annotated[str, typer.Option(help="Number of seeds (5), a list (0,3,7), or one (7,).")] = "5",
    steps: Annotated[int | None, typer.Option(help="Training steps (default: the recipe's).")] = None,
    recipe: Annotated[str, typer.Option(help="quick, or a published one: retrieval-paper, ctl-ndr-paper, …")] = "quick",
    data_seed: Annotated[
        int | None, typer.Option(help="Train all seeds on this data set (default: one data set per seed).")
    ] = None,
    stack: Annotated[int | None, typer.Option(help="Seeds trained as one stack (default: chosen by a probe).")] = None,
    device: Annotated[str, typer.Option(help="cpu, or another torch device.")] = "cpu",
    discard_damaged: Annotated[
        bool, typer.Option("--discard-damaged", help="Retrain seeds whose checkpoint is damaged.")
    ] = False,
    track: Annotated[list[str] | None, typer.Option(help=TRACK)] = None,
    set: Annotated[list[str] | None, typer.Option("--set", help=HELP, autocompletion=complete_setting)] = None,
) -> None:
    """Train a model on a task and store its results. Run the command again to continue or to add seeds.

    Examples:

    unseen train retrieval/T1 retrieval-transformer --set length=5 --set features=8 --steps 2000 --out runs/t1

    unseen train retrieval/T6 retrieval-lstm --set form=basic --seeds 10 --out runs/t6

    unseen train rules/mlp rules-mlp --set gating=joint --set analyses=specialization --out runs/modules

    unseen train ctl/A mine:Model --steps 5000 --out runs/mine
    """
    from unseen.config import Config
    from unseen.models import options as make_model
    from unseen.models.foreign import load_class, options_class
    from unseen.tasks import task as make_task
    from unseen.training.recipe import Evaluation, Recipe
    from unseen.training.recipe import recipe as make_recipe

    components: dict[str, type[Config]] = {
        "task": load_task(task),
        "model": options_class(load_class(model)),
        "recipe": Recipe,
        "evaluation": Evaluation,
    }
    settings = parse_settings(set or [], components)
    add_steps(settings, steps)
    made_task = make_task(task, **settings["task"])
    model_options = make_model(model, **settings["model"])
    used_recipe = make_recipe(recipe, **settings["recipe"])
    seed_list = parse_seeds(seeds)

    from unseen.api import train as run_training
    from unseen.cli.option_text import wrap
    from unseen.cli.summary import summarize

    with exit_when_interrupted():
        runs = run_training(
            made_task,
            model_options,
            seeds=seed_list,
            recipe=used_recipe,
            evaluation=Evaluation.parse(settings["evaluation"]),
            data_seed=data_seed,
            out=out,
            stack=stack,
            device=device,
            discard_damaged=discard_damaged,
            track=track or (),
        )
    typer.echo(summarize(out))
    if runs.deviations:
        typer.echo("\n".join(wrap(f"differs from the published recipe: {'; '.join(runs.deviations)}")), err=True)
    typer.echo(f"all records: unseen results {out}   page: unseen report {out}", err=True)
