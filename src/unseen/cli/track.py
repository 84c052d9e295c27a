"""`unseen track`: write the results of a directory for an experiment tracker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

HELP = (
    "Also log to tensorboard, mlflow or wandb (offline): TOOL, or TOOL:DIR (default: DIR/tracking/TOOL). "
    "May be repeated."
)

Tool = Literal["tensorboard", "mlflow", "wandb"]


def track(
    directory: Annotated[Path, typer.Argument(help="A directory that `train`, `run` or `tune` wrote or is writing.")],
    to: Annotated[Tool, typer.Option(help="The tracker; wandb is written offline, and only runs that have ended.")],
    out: Annotated[Path, typer.Option(help="Directory of the logs; a second call adds what is new.")],
) -> None:
    """Write learning curves and results for TensorBoard, MLflow or Weights & Biases. No data leave this machine.

    Examples:

    unseen track runs/t1 --to tensorboard --out logs
    """
    from unseen.cli.output import count_of
    from unseen.store.store import Store
    from unseen.tracking import check_installed
    from unseen.tracking.follow import LogWriter

    check_installed(to)
    with Store.read(directory) as store:  # a wrong directory or a damaged store is refused before the logs are created
        _ = store.work, store.entries()
    with LogWriter(directory, to, out) as writer:
        count = writer.update()
    typer.echo(f"{count_of(count, 'run')} written to {out}" if count else f"{out} was up to date")
