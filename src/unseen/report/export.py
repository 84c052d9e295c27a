"""Figures as files for publication: SVG, PDF, PNG, Vega-Lite with its data, and the data alone. Needs `report`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from unseen.errors import UsageError, nearest
from unseen.files import check_folder, check_writable, replace_atomically
from unseen.report import theme
from unseen.report.data import Source
from unseen.report.figure import Drawing, Figure
from unseen.report.figures import figures_of

PICTURES = (".svg", ".pdf", ".png", ".json")
FORMATS = (*PICTURES, ".csv")
PUBLISHED = (".svg", ".pdf", ".png", ".csv")
PADDING = 20


def save(figure: Figure, drawing: Drawing, path: str | Path, subtitle: Sequence[str] = ()) -> Path:
    """Write a figure with its title and `subtitle` lines, on a white ground, in the format of the suffix."""
    path = Path(path)
    if check_path(path, FORMATS) == ".csv":
        return write_file(path, lambda file: drawing.data.to_csv(file, index=False))
    return save_chart(drawing.chart, path, figure.title, subtitle)


def save_all(source: Source, folder: str | Path) -> list[Path]:
    """Write SVG, PDF, PNG and CSV of every figure that has something to draw to a folder."""
    check_folder(Path(folder))
    drawings = []
    for figure in figures_of(source):
        drawing = figure.draw(source)
        if drawing is not None:
            drawings.append((figure, drawing))
    return publish(drawings, folder)


def publish(drawings: Sequence[tuple[Figure, Drawing]], folder: str | Path) -> list[Path]:
    """Write SVG, PDF, PNG and CSV of these figures to a folder, which is created if needed."""
    folder = Path(folder)
    try:
        if drawings:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} can't be made: {error.strerror}. Give a folder") from error
    files = []
    for figure, drawing in drawings:
        for suffix in PUBLISHED:
            files.append(save(figure, drawing, folder / f"{figure.file}{suffix}"))
    return files


def save_chart(chart: Any, path: Path, title: str, subtitle: Sequence[str] = ()) -> Path:
    """Write a chart without title and configuration, with this title and the light theme."""
    alt = theme.load_altair()
    heading = alt.Title(title, subtitle=list(subtitle)) if subtitle else alt.Title(title)
    styled = chart.properties(title=heading, padding=PADDING).configure(**theme.config("light"))
    format = path.suffix.lower().removeprefix(".")
    options = {"scale_factor": 2.0} if format == "png" else {}  # the other formats have no pixels

    def write(file: Path) -> None:
        with alt.data_transformers.enable("default", max_rows=None):  # otherwise 5 000 rows are the limit
            styled.save(str(file), format=format, **options)

    return write_file(path, write)


def check_path(path: Path, formats: Sequence[str]) -> str:
    """The suffix of the file of a figure; an error if it is not among the formats or if the folder does not exist."""
    suffix = path.suffix.lower()
    if suffix not in formats:
        raise UsageError(f"{path}: a figure is written as {', '.join(formats)}. {nearest(suffix, formats)}")
    check_writable(path)
    return suffix


def write_file(path: Path, content: str | Callable[[Path], None]) -> Path:
    """Write a file whole or not at all: a text, or what a function writes to the temporary path that it is given."""
    check_writable(path)
    try:
        with replace_atomically(path) as temporary:
            if isinstance(content, str):
                temporary.write_text(content, encoding="utf-8", newline="\n")
            else:
                content(temporary)
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror or error}") from error
    return path
