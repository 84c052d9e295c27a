"""Where a command's result goes: the terminal, or a file."""

from __future__ import annotations

from pathlib import Path

import typer

from unseen.errors import UsageError


def write(result: str | bytes, out: Path | None) -> None:
    """Print text, or write text or bytes to a file."""
    if out is None:
        typer.echo(result, nl=not str(result).endswith("\n"))
        return
    try:
        out.write_bytes(result if isinstance(result, bytes) else (result.rstrip("\n") + "\n").encode())
    except OSError as error:
        raise UsageError(f"{out} can't be written: {error.strerror}") from error


def check_folder(out: Path | None) -> None:
    """Refuse a file whose folder does not exist, before long work is done for it."""
    if out is not None and not out.absolute().parent.is_dir():
        raise UsageError(f"{out} can't be written: there is no folder {out.absolute().parent}")
