"""`unseen run`: a study, to its end, through any crash."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unseen.cli.track import HELP
from unseen.cli.train import seed_numbers
from unseen.errors import CheckFailed

if TYPE_CHECKING:
    from unseen.studies.grid import Entry


class Executor(StrEnum):
    """Where slices are computed."""

    local = "local"
    ray = "ray"
    inline = "inline"


class Weights(StrEnum):
    """Whose weights are kept."""

    none = "none"
    best = "best"
    all = "all"


def run(
    study: Annotated[str, typer.Argument(help="A study's name (see `unseen studies`), or a YAML or Python file.")],
    out: Annotated[Path, typer.Option(help="Directory of the results; the same study there is resumed or extended.")],
    scale: Annotated[str | None, typer.Option(help="smoke, mini, small, medium or full (default: mini).")] = None,
    seeds: Annotated[str | None, typer.Option(help="How many seeds, or which (0,3,7), instead of the study's.")] = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes (default: one per core).")] = None,
    executor: Annotated[Executor, typer.Option(help="Processes here, a Ray cluster, this process.")] = Executor.local,
    address: Annotated[str | None, typer.Option(help="The Ray cluster (default: one is started here).")] = None,
    weights: Annotated[Weights, typer.Option(help="Keep weights, too, of cells that end from now on.")] = Weights.none,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try cells again that have failed.")] = False,
    discard_damaged: Annotated[
        bool, typer.Option("--discard-damaged", help="Train cells again whose checkpoint is damaged.")
    ] = False,
    stack: Annotated[int | None, typer.Option(help="Cells trained as one (default: found by a probe).")] = None,
    slice_seconds: Annotated[float, typer.Option(help="Seconds of work between two checkpoints.")] = 60.0,
    device: Annotated[str, typer.Option(help="cpu, or another torch device.")] = "cpu",
    track: Annotated[list[str] | None, typer.Option(help=HELP)] = None,
) -> None:
    """Run a study into a directory. Stop it, kill it, run it again: it goes on, and the table is the same.

    Examples:

    unseen run quickstart --out demo

    unseen run retrieval-table2 --scale mini --out runs/table2

    unseen run my_study.yaml --out runs/mine --executor ray --address auto
    """
    from unseen.api import run as run_study
    from unseen.studies.run import Interrupted
    from unseen.studies.study import study as find

    found = find(study)
    chosen = scale or found.default_scale
    numbers = None if seeds is None else seed_numbers(seeds)
    try:
        run_study(
            found,
            out,
            scale=chosen,
            seeds=numbers,
            workers=workers,
            device=device,
            executor=executor.value,
            address=address,
            keep=weights.value,
            retry_failed=retry_failed,
            discard_damaged=discard_damaged,
            stack=stack,
            slice_seconds=slice_seconds,
            track=track or (),
        )
    except Interrupted as stopped:
        typer.echo(f"{stopped}.", err=True)
        raise typer.Exit(130) from None

    from unseen.cli.summary import summary

    typer.echo(summary(out))
    deviations = found.deviations(chosen, numbers)
    if deviations:
        typer.echo("\ndeviates from the paper: " + "; ".join(deviations), err=True)
    typer.echo(f"all records: unseen results {out}   verdicts: unseen claims {out}", err=True)
    check_failures(out, found.entries(chosen, numbers))


def check_failures(out: Path, entries: Sequence[Entry]) -> None:
    """Say so, at the end, if any of these have failed."""
    from unseen.studies.store import Store

    with Store.read(out) as store:
        failed = len({entry.cell.id for entry in entries} & set(store.failures().cell))
    if failed:
        raise CheckFailed(
            f"{failed} cells failed; `unseen results {out} --failures` says why, --retry-failed tries them again"
        )
