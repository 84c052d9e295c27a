"""`unseen run`: run a study, and resume it after any interruption."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from unseen.cli.output import exit_when_interrupted, parse_seeds
from unseen.cli.track import HELP as TRACK
from unseen.errors import CheckFailed

if TYPE_CHECKING:
    from unseen.studies.trial import Entry

Executor = Literal["local", "ray", "inline"]
Weights = Literal["none", "best", "all"]


def run(
    study: Annotated[str, typer.Argument(help="A study's name (see `unseen studies`), or a YAML or Python file.")],
    out: Annotated[Path, typer.Option(help="Results directory; the same study there is resumed or extended.")],
    scale: Annotated[str | None, typer.Option(help="smoke, mini, small, medium or full (default: mini).")] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Number of seeds (5) or a list (0,3,7), if not the study's.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes (default: one per core).")] = None,
    executor: Annotated[
        Executor, typer.Option(help="local: processes on this machine; ray: a Ray cluster; inline: this process.")
    ] = "local",
    address: Annotated[str | None, typer.Option(help="Address of the Ray cluster (default: start one here).")] = None,
    weights: Annotated[
        Weights, typer.Option(help="Which checkpoints to keep for trials that finish from now on.")
    ] = "none",
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Train failed trials again.")] = False,
    discard_damaged: Annotated[
        bool, typer.Option("--discard-damaged", help="Retrain trials whose checkpoint is damaged.")
    ] = False,
    stack: Annotated[int | None, typer.Option(help="Trials trained as one stack (default: chosen by a probe).")] = None,
    chunk_seconds: Annotated[float, typer.Option(help="Seconds of training between two checkpoints.")] = 60.0,
    device: Annotated[str, typer.Option(help="cpu, or another torch device.")] = "cpu",
    track: Annotated[list[str] | None, typer.Option(help=TRACK)] = None,
) -> None:
    """Run a study and store its results. It can be stopped or killed at any time and resumed with the same command.

    An interrupted and resumed study ends with the same numbers as an undisturbed one.

    Examples:

    unseen run quickstart --out demo

    unseen run retrieval-table2 --scale mini --out runs/table2

    unseen run my_study.yaml --out runs/mine --executor ray --address auto
    """
    from unseen.api import run as run_study
    from unseen.cli.summary import summarize
    from unseen.studies.study import study as find_study

    chosen_study = find_study(study)
    chosen_scale = scale or chosen_study.default_scale
    seed_list = None if seeds is None else parse_seeds(seeds)
    with exit_when_interrupted():
        run_study(
            chosen_study,
            out,
            scale=chosen_scale,
            seeds=seed_list,
            workers=workers,
            device=device,
            executor=executor,
            address=address,
            keep=weights,
            retry_failed=retry_failed,
            discard_damaged=discard_damaged,
            stack=stack,
            chunk_seconds=chunk_seconds,
            track=track or (),
        )
    typer.echo(summarize(out))
    deviations = chosen_study.deviations(chosen_scale, seed_list)
    if deviations:
        typer.echo("\ndiffers from the paper: " + "; ".join(deviations), err=True)
    typer.echo(f"all records: unseen results {out}   verdicts: unseen claims {out}", err=True)
    check_failures(out, chosen_study.entries(chosen_scale, seed_list))


def check_failures(out: Path, entries: Sequence[Entry]) -> None:
    """End with exit code 1 if any of these trials has failed."""
    from unseen.store.store import Store

    with Store.read(out) as store:
        failed = {entry.trial.id for entry in entries} & set(store.failures().trial)
    if failed:
        raise CheckFailed(
            f"{len(failed)} trials failed. `unseen results {out} --failures` shows why; --retry-failed trains them again"
        )
