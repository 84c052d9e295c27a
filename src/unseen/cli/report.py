"""`unseen report`: write a directory's report as one page, or its figures as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unseen.errors import CheckFailed, UsageError

if TYPE_CHECKING:
    from unseen.report.data import Source


def report(
    directory: Annotated[Path, typer.Argument(help="A directory that `run` or `train` wrote.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The page (default: DIR/report.html); with --figure a file (svg, pdf, png, json or csv), or a folder."
        ),
    ] = None,
    figure: Annotated[
        list[str] | None,
        typer.Option("--figure", metavar="NAME", help="Write this figure instead of the page; may be repeated."),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option("--figures", metavar="FOLDER", help="Write every figure as SVG, PDF, PNG and CSV.")
    ] = None,
    scale: Annotated[str | None, typer.Option(help="The scale to report (default: the largest that was run).")] = None,
) -> None:
    """Write a report: one HTML file that opens offline. This also works while runs are in progress.

    Examples:

    unseen report runs/table2

    unseen report runs/table2 --out table2.html --scale mini

    unseen report runs/table2 --figure seeds --out seeds.pdf

    unseen report runs/table2 --figures figures
    """
    from unseen.report.data import Source
    from unseen.report.export import save_all
    from unseen.report.page import write_page

    if figures is not None and (figure or out is not None):
        raise UsageError("--figures FOLDER writes every figure; give it without --figure and --out")
    if figures is not None:
        files = save_all(Source.read(directory, scale), figures)
        if not files:
            raise CheckFailed(f"{directory} has nothing to draw yet")
    elif figure:
        if out is None:
            raise UsageError(f"--figure {figure[0]} needs --out FILE.svg, .pdf, .png, .json or .csv, or a folder")
        files = _save_figures(Source.read(directory, scale), figure, out)
    else:
        files = [write_page(directory, out, scale, lambda text: typer.echo(f"{text} …", err=True))]
    for file in files:
        typer.echo(file)


def _save_figures(source: Source, names: list[str], out: Path) -> list[Path]:
    """Save one figure to a file, or any number of figures to a folder."""
    from unseen.files import check_folder
    from unseen.report.export import FORMATS, check_path, publish, save
    from unseen.report.figures import figure as find_figure

    figures = [find_figure(name) for name in names]
    to_folder = out.is_dir() or not out.suffix
    if to_folder:
        check_folder(out)  # before drawing
    else:
        check_path(out, FORMATS)
    if len(figures) > 1 and not to_folder:
        raise UsageError(f"{len(figures)} figures do not fit into one file: give --out a folder")
    drawings = []
    for figure in figures:
        drawing = figure.draw(source)
        if drawing is None:
            raise CheckFailed(
                f"figure '{figure.name}' has nothing to draw: no finished run of {source.directory} provides its data"
            )
        drawings.append((figure, drawing))
    if to_folder:
        return publish(drawings, out)
    return [save(figure, drawing, out) for figure, drawing in drawings]
