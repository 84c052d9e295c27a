"""`unseen exam`: what a model can do that it was not trained for, on one page."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unseen.cli.run import check_failures
from unseen.cli.settings import settings
from unseen.cli.train import seed_numbers

if TYPE_CHECKING:
    import pandas as pd


def exam(
    model: Annotated[str, typer.Argument(help="A class of yours, module:Class, or a model's name (`unseen models`).")],
    out: Annotated[Path, typer.Option(help="Directory of runs and page; what is there already is not run again.")],
    scale: Annotated[str, typer.Option(help="smoke (does it run?), mini or full (the papers' worlds).")] = "mini",
    seeds: Annotated[str | None, typer.Option(help="How many seeds, or which (0,3,7), instead of the exam's.")] = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes (default: one per core).")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try runs again that have failed.")] = False,
    set: Annotated[
        list[str] | None, typer.Option("--set", help="An option of the model as key=value, e.g. --set width=64.")
    ] = None,
) -> None:
    """Train a model on a battery from all four families and say what it can do beside what it was taught.

    Examples:

    unseen exam mine:Model --out runs/exam

    unseen exam lstm --set width=64 --scale smoke --out runs/try
    """
    from unseen.api import exam as examine
    from unseen.models import options
    from unseen.models.foreign import named, own_options
    from unseen.studies.exam import exam as battery
    from unseen.studies.run import Interrupted

    chosen = options(model, **settings(set or [], {"model": own_options(named(model))})["model"])
    numbers = None if seeds is None else seed_numbers(seeds)
    try:
        table = examine(chosen, out, scale=scale, seeds=numbers, workers=workers, retry_failed=retry_failed)
    except Interrupted as stopped:
        typer.echo(f"{stopped}.", err=True)
        raise typer.Exit(130) from None
    typer.echo(_text(table))
    for note in table.attrs["notes"]:
        typer.echo(note, err=True)
    typer.echo(f"page: {table.attrs['page']}", err=True)
    check_failures(out, battery(chosen).entries(scale, numbers))


def _text(table: pd.DataFrame) -> str:
    """The abilities of every model, in columns."""
    lines = []
    for model, rows in table.groupby("model", sort=False):
        cells = [["ability", "test", "score", "95 % interval", "learned", "chance", "shortcut", "oracle", "place"]]
        cells += [_cells(row) for row in rows.to_dict("records")]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines += [
            str(model),
            *("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells),
            "",
        ]
    return "\n".join(lines)


def _cells(row: dict[Hashable, Any]) -> list[str]:
    score = f"{row['score']:.3f}" if row["score"] == row["score"] else "not learned"
    interval = f"{row['low']:.3f}–{row['high']:.3f}" if row["low"] == row["low"] else ""
    ceiling = f"{row['ceiling']:.3f}" if row["ceiling"] == row["ceiling"] else ""
    return [
        row["ability"],
        row["test"],
        score,
        interval,
        f"{row['learned']} of {row['runs']}",
        f"{row['chance']:.3f}",
        ceiling,
        f"{row['oracle']:.3f}",
        row["place"],
    ]
