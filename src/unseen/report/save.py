"""Figures as files for publication: SVG, PDF, PNG, Vega-Lite with its data, and the data alone. Needs `report`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from unseen.errors import UsageError, nearest
from unseen.report import theme
from unseen.report.figure import Drawing, Figure
from unseen.report.figures import figures_of
from unseen.report.source import Source

PICTURES = (".svg", ".pdf", ".png", ".json")
FORMATS, PUBLISHED = (*PICTURES, ".csv"), (".svg", ".pdf", ".png", ".csv")
PADDING = 20


def save(figure: Figure, drawing: Drawing, path: str | Path, subtitle: Sequence[str] = ()) -> Path:
    """Write a figure on light paper, its title and `subtitle` lines on top, in the format its ending says."""
    path = Path(path)
    suffix = check_path(path, FORMATS)
    if suffix == ".csv":
        return written(path, lambda file: drawing.data.to_csv(file, index=False))
    return save_chart(drawing.chart, path, figure.title, subtitle)


def save_all(source: Source, folder: str | Path) -> list[Path]:
    """SVG, PDF, PNG and CSV of every figure that has something to draw, in a folder that is made if needed."""
    drawn = [(figure, figure.draw(source)) for figure in figures_of(source)]
    return publish([(figure, drawing) for figure, drawing in drawn if drawing is not None], folder)


def publish(drawn: Sequence[tuple[Figure, Drawing]], folder: str | Path) -> list[Path]:
    """SVG, PDF, PNG and CSV of each of these, in a folder that is made if needed."""
    folder = Path(folder)
    try:
        if drawn:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} can't be made: {error.strerror}. Give a folder") from error
    return [
        save(figure, drawing, folder / f"{figure.file}{suffix}") for figure, drawing in drawn for suffix in PUBLISHED
    ]


def save_chart(chart: Any, path: Path, title: str, subtitle: Sequence[str] = ()) -> Path:
    """Write a chart that has no ink, title or configuration of its own, dressed for light paper."""
    alt = theme.load_altair()
    heading = alt.Title(title, subtitle=list(subtitle)) if subtitle else alt.Title(title)
    dressed = chart.properties(title=heading, padding=PADDING).configure(**theme.config("light"))

    kind = path.suffix.lower().removeprefix(".")
    scale = {"scale_factor": 2.0} if kind == "png" else {}  # the others have no pixels

    def write(file: Path) -> None:
        with alt.data_transformers.enable("default", max_rows=None):  # else more than 5 000 rows are refused
            dressed.save(str(file), format=kind, **scale)

    return written(path, write)


def check_path(path: Path, formats: Sequence[str]) -> str:
    """The ending of a figure's file, if it can be written."""
    suffix = path.suffix.lower()
    if suffix not in formats:
        raise UsageError(f"{path}: a figure is written as {', '.join(formats)}. {nearest(suffix, formats)}")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path} can't be written: there is no directory {path.parent}")
    return suffix


def written(path: Path, write: Callable[[Path], None]) -> Path:
    """The file after `write` has made it whole: under another name first, so that a kill leaves the old one."""
    temporary = path.with_name(f".{path.name}.partial")
    try:
        write(temporary)
        temporary.replace(path)
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)
    return path
