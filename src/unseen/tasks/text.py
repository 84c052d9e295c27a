"""Lines of a text file from outside."""

from __future__ import annotations

from pathlib import Path

from unseen.errors import UsageError


def read_lines(path: Path) -> list[bytes]:
    """The lines of a file without their ends; a file that cannot be read is wrong use."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    lines = data.replace(b"\r\n", b"\n").split(b"\n")
    return lines[:-1] if not lines[-1] else lines
