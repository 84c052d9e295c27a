"""What several commands share: writing a result, aligning a table, reading `--seeds`, and stopping on Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from unseen.errors import UsageError

if TYPE_CHECKING:
    from unseen.registry import Registry

INTERRUPTED = 130
"""The exit code of a command that was stopped by Ctrl-C, as in a shell: 128 + SIGINT."""


def write_output(result: str | bytes, out: Path | None) -> None:
    """Print text, or write text or bytes to the file `out`."""
    if out is None:
        typer.echo(result, nl=not str(result).endswith("\n"))
        return
    try:
        out.write_bytes(result if isinstance(result, bytes) else (result.rstrip("\n") + "\n").encode())
    except OSError as error:
        raise UsageError(f"{out} can't be written: {error.strerror}") from error


def check_folder(out: Path | None) -> None:
    """Refuse an output file whose folder does not exist, before any long computation starts."""
    if out is not None and not out.absolute().parent.is_dir():
        raise UsageError(f"{out} can't be written: there is no folder {out.absolute().parent}")


def print_registry(registry: Registry[Any], hint: str) -> None:
    """Print the names and summaries of a registry in two columns, and a hint on what to do next."""
    entries = sorted(registry, key=lambda entry: entry.name)
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        typer.echo(f"{entry.name:<{width}}  {entry.summary}")
    typer.echo(f"\n{hint}", err=True)


def align_columns(rows: Sequence[Sequence[str]], right: bool = False) -> list[str]:
    """Rows of text as lines with aligned columns; all columns but the first are right-aligned if `right`.

    >>> align_columns([["model", "ms"], ["lstm", "1.25"]], right=True)
    ['model    ms', 'lstm   1.25']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        texts = [row[0].ljust(widths[0])]
        for text, width in zip(row[1:], widths[1:], strict=True):
            texts.append(text.rjust(width) if right else text.ljust(width))
        lines.append("  ".join(texts).rstrip())
    return lines


def format_level(level: Any) -> str:
    """A level of an axis as text; empty where a trial has no level on the axis (None or NaN)."""
    return "" if level is None or level != level else str(level)


def parse_seeds(text: str) -> list[int]:
    """The seeds that `--seeds 5` or `--seeds 0,3,7` stands for."""
    try:
        if "," in text:
            return [int(number) for number in text.removesuffix(",").split(",")]
        count = int(text)
    except ValueError:
        raise UsageError(f"--seeds {text}: expected a number like 5 or a list like 0,3,7") from None
    if count < 1:
        raise UsageError(f"--seeds {text}: give a positive number of seeds, or a list like 0,3,7")
    return list(range(count))


@contextmanager
def exit_when_interrupted() -> Iterator[None]:
    """Turn a stopped run into its message and the exit code 130."""
    from unseen.running.runner import Interrupted

    try:
        yield
    except Interrupted as stopped:
        typer.echo(f"{stopped}.", err=True)
        raise typer.Exit(INTERRUPTED) from None
