"""`unseen track`: the records of a directory for the tool one is used to."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

HELP = (
    "Also log to tensorboard, mlflow or wandb (offline): the tool, or tool:DIR (default: DIR/tracking/…). "
    "May be repeated."
)


class Tool(StrEnum):
    """For which tool to write."""

    tensorboard = "tensorboard"
    mlflow = "mlflow"
    wandb = "wandb"


def track(
    directory: Annotated[Path, typer.Argument(help="A directory that `train`, `run` or `tune` wrote or is writing.")],
    to: Annotated[Tool, typer.Option(help="tensorboard, mlflow or wandb (offline; runs that have ended).")],
    out: Annotated[Path, typer.Option(help="Where its files go; a second call adds what is new.")],
) -> None:
    """Write learning curves and records for TensorBoard, MLflow or Weights & Biases. Nothing leaves this machine.

    Examples:

    unseen track runs/t1 --to tensorboard --out logs
    """
    from unseen.studies.sinks.feed import Feed
    from unseen.studies.store import Store

    with Store.read(directory):
        pass  # a wrong directory leaves no logs behind
    with Feed(directory, to.value, out) as feed:
        written = feed.update()
    typer.echo(f"{written} runs written to {out}" if written else f"{out} was up to date")
