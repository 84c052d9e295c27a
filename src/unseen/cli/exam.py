"""`unseen exam`: test a model's out-of-distribution abilities on the four papers' families."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unseen.cli.output import align_columns, exit_when_interrupted, parse_seeds
from unseen.cli.run import check_failures
from unseen.cli.settings import parse_settings

if TYPE_CHECKING:
    import pandas as pd


def exam(
    model: Annotated[str, typer.Argument(help="Your own class as module:Class, or a model's name (`unseen models`).")],
    out: Annotated[Path, typer.Option(help="Directory of the runs and the report; finished runs are not repeated.")],
    scale: Annotated[str, typer.Option(help="smoke (does it run?), mini, or full (the papers' worlds).")] = "mini",
    seeds: Annotated[
        str | None, typer.Option(help="Number of seeds (5), a list (0,3,7), or one (7,), if not the exam's.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes (default: one per core).")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Train failed runs again.")] = False,
    device: Annotated[str, typer.Option(help="cpu, or another torch device.")] = "cpu",
    set: Annotated[
        list[str] | None, typer.Option("--set", help="An option of the model as key=value, e.g. --set width=64.")
    ] = None,
) -> None:
    """Benchmark a model on the four papers' families and report its out-of-distribution abilities.

    Examples:

    unseen exam mine:Model --out runs/exam

    unseen exam lstm --set width=64 --scale smoke --out runs/try
    """
    from unseen.api import exam as run_exam
    from unseen.exam.exam import exam as exam_study
    from unseen.models import options
    from unseen.models.foreign import load_class, options_class

    settings = parse_settings(set or [], {"model": options_class(load_class(model))})
    model_options = options(model, **settings["model"])
    seed_list = None if seeds is None else parse_seeds(seeds)
    with exit_when_interrupted():
        table = run_exam(
            model_options,
            out,
            scale=scale,
            seeds=seed_list,
            workers=workers,
            retry_failed=retry_failed,
            device=device,
        )
    typer.echo(_format_abilities(table))
    for note in table.attrs["notes"]:
        typer.echo(note, err=True)
    typer.echo(f"page: {table.attrs['page']}", err=True)
    check_failures(out, exam_study(model_options).entries(scale, seed_list))


def _format_abilities(table: pd.DataFrame) -> str:
    """A table of abilities for every model."""
    lines = []
    for model, abilities in table.groupby("model", sort=False):
        rows = [
            [
                "ability",
                "test",
                "score",
                "95 % interval",
                "learned",
                "chance",
                "shortcut",
                "oracle",
                "reference",
                "shows",
            ]
        ]
        rows += [_format_ability(ability) for ability in abilities.to_dict("records")]
        lines += [str(model), *align_columns(rows), ""]
    return "\n".join(lines)


def _format_ability(row: dict[Hashable, Any]) -> list[str]:
    # A number that is missing is NaN, the only value that differs from itself.
    score = f"{row['score']:.3f}" if row["score"] == row["score"] else "not learned"
    interval = f"{row['low']:.3f}–{row['high']:.3f}" if row["low"] == row["low"] else ""
    ceiling = f"{row['ceiling']:.3f}" if row["ceiling"] == row["ceiling"] else ""
    difference = row["smallest_difference"]
    return [
        row["ability"],
        row["test"],
        score,
        interval,
        f"{row['learned']} of {row['runs']}",
        f"{row['chance']:.3f}",
        ceiling,
        f"{row['oracle']:.3f}",
        row["standing"],
        f"≥ {difference:.3f}" if difference == difference else "",
    ]
