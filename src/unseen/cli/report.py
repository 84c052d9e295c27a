"""`unseen report`: a page about a directory, or its figures as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unseen.errors import CheckFailed, UsageError

if TYPE_CHECKING:
    from unseen.report.source import Source


def report(
    directory: Annotated[Path, typer.Argument(help="A directory that `run` or `train` wrote.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The page (default: DIR/report.html); with --figure a file whose "
            "ending says the format (svg, pdf, png, json, csv), or a folder."
        ),
    ] = None,
    figure: Annotated[
        list[str] | None,
        typer.Option("--figure", metavar="NAME", help="Write this figure instead of the page; repeatable."),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option("--figures", metavar="FOLDER", help="Write every figure as SVG, PDF, PNG and CSV.")
    ] = None,
    scale: Annotated[str | None, typer.Option(help="Of which scale (default: the largest that was run).")] = None,
) -> None:
    """Write one HTML file that says what was asked, answered and run; it opens offline. Works on unfinished runs, too.

    Examples:

    unseen report runs/table2

    unseen report runs/table2 --out table2.html --scale mini

    unseen report runs/table2 --figure seeds --out seeds.pdf

    unseen report runs/table2 --figures figures
    """
    from unseen.report.page import write_page
    from unseen.report.save import save_all
    from unseen.report.source import Source

    if figures is not None and (figure or out is not None):
        raise UsageError("--figures FOLDER writes every figure; give it without --figure and --out")
    if figures is not None:
        written = save_all(Source.read(directory, scale), figures)
        if not written:
            raise CheckFailed(f"{directory} has nothing to draw yet")
    elif figure:
        if out is None:
            raise UsageError(f"--figure {figure[0]} needs --out FILE.svg, .pdf, .png, .json or .csv, or a folder")
        written = _chosen(Source.read(directory, scale), figure, out)
    else:
        written = [write_page(directory, out, scale, lambda text: typer.echo(f"{text} …", err=True))]
    for path in written:
        typer.echo(path)


def _chosen(source: Source, names: list[str], out: Path) -> list[Path]:
    """Some figures: one to a file, any number to a folder."""
    from unseen.report.figures import figure as find
    from unseen.report.save import publish, save

    chosen, folder = [find(name) for name in names], out.is_dir() or not out.suffix
    if len(chosen) > 1 and not folder:
        raise UsageError(f"{len(chosen)} figures do not fit into one file: give --out a folder")
    drawings = []
    for one in chosen:
        drawing = one.draw(source)
        if drawing is None:
            raise CheckFailed(
                f"figure '{one.name}' has nothing to draw: what it shows is not among the runs of "
                f"{source.directory} that have ended"
            )
        drawings.append((one, drawing))
    return publish(drawings, out) if folder else [save(one, drawing, out) for one, drawing in drawings]
