"""`unseen exam`: what a model can do that it was not trained for, on one page."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unseen.cli.settings import settings
from unseen.cli.train import seed_numbers
from unseen.errors import CheckFailed

if TYPE_CHECKING:
    from unseen.report.exam_scores import Exam


def exam(
    model: Annotated[str, typer.Argument(help="A class of yours, module:Class, or a model's name (`unseen models`).")],
    out: Annotated[Path, typer.Option(help="Directory of runs and page; what is there already is not run again.")],
    scale: Annotated[str, typer.Option(help="smoke (does it run?), mini or full (the papers' worlds).")] = "mini",
    seeds: Annotated[str | None, typer.Option(help="How many seeds, or which (0,3,7), instead of the exam's.")] = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes (default: one per core).")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try runs again that have failed.")] = False,
    set: Annotated[list[str] | None, typer.Option("--set", help="An option of the model as key=value, e.g. "
                                                                "--set width=64.")] = None,
) -> None:
    """Train a model on a battery from all four families and say what it can do beside what it was taught.

    Examples:

    unseen exam mine:Model --out runs/exam

    unseen exam lstm --set width=64 --scale smoke --out runs/try
    """
    from unseen.api import run
    from unseen.models import options
    from unseen.models.foreign import named, own_options
    from unseen.report.theme import load_altair
    from unseen.studies.exam import check_fit
    from unseen.studies.exam import exam as study_of
    from unseen.studies.run import Interrupted

    load_altair()  # without it the page could not be written, which is better known now
    given = settings(set or [], {"model": own_options(named(model))})["model"]
    study, numbers = study_of(options(model, **given)), None if seeds is None else seed_numbers(seeds)
    check_fit(study, scale)
    try:
        run(study, out, scale=scale, seeds=numbers, workers=workers, retry_failed=retry_failed)
    except Interrupted as stopped:
        typer.echo(f"{stopped}.", err=True)
        raise typer.Exit(130) from None
    failed = _report(out, scale)
    if failed:
        raise CheckFailed(f"{failed} runs failed; `unseen results {out} --failures` says why, --retry-failed tries "
                          "them again")


def _report(out: Path, scale: str) -> int:
    """Print the table, write the page; how many runs have failed."""
    from unseen.report.exam_scores import read
    from unseen.report.page import write_page
    from unseen.report.source import Source

    source = Source.read(out, scale)
    found = read(source)
    if found is not None:
        typer.echo(_text(found))
        for note in found.notes:
            typer.echo(note, err=True)
    path = write_page(out, scale=scale, say=lambda text: typer.echo(f"{text} …", err=True))
    typer.echo(f"page: {path}", err=True)
    return int((source.runs["status"] == "failed").sum())


def _text(found: Exam) -> str:
    """The abilities of every model as a table."""
    from unseen.report.exam_scores import table

    lines = []
    for model, rows in table(found).groupby("model", sort=False):
        cells = [["ability", "test", "score", "95 % interval", "learned", "chance", "shortcut", "oracle", "place"]]
        cells += [_cells(row) for row in rows.to_dict("records")]
        cells += [[ability, "", f"needs a trace `{trace}`: the model keeps none"]
                  for (name, ability), trace in found.untraced.items() if name == model]
        widths = [max(len(row[place]) for row in cells if len(row) == len(cells[0])) for place in range(len(cells[0]))]
        widths[0] = max(len(row[0]) for row in cells)
        lines += [str(model), *("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=False)).rstrip()
                                for row in cells), ""]
    return "\n".join(lines)


def _cells(row: dict[Hashable, Any]) -> list[str]:
    score = f"{row['score']:.3f}" if row["score"] == row["score"] else "not learned"
    interval = f"{row['low']:.3f}–{row['high']:.3f}" if row["low"] == row["low"] else ""
    ceiling = f"{row['ceiling']:.3f}" if row["ceiling"] == row["ceiling"] else ""
    return [row["ability"], row["test"], score, interval, f"{row['learned']} of {row['runs']}", f"{row['chance']:.3f}",
            ceiling, f"{row['oracle']:.3f}", row["place"]]
