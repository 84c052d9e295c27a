"""Files written whole or not at all: the one place of the package that writes atomically.

A file is written under a temporary name, synced, renamed, and its folder is synced: after a power cut there is either
the old file or the whole new one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PARTIAL = ".partial"
"""The ending of temporary names; a kill may leave such a file behind, and nothing ever reads one."""


def write_atomically(path: Path, data: bytes | str) -> None:
    """Write a file so that other processes, and a machine after a power cut, see all of it or nothing.

    Text is written as UTF-8.
    """
    with replace_atomically(path) as temporary:
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)


@contextmanager
def replace_atomically(path: Path) -> Iterator[Path]:
    """A temporary path to write to, for libraries that write files themselves; at the end it takes the place of `path`.

    The temporary file lies beside the target, because a rename is atomic only within one file system; it is removed if
    anything fails.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}{PARTIAL}")
    try:
        yield temporary
        sync(temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)  # on a full disk every byte counts
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Sync a file or a folder: a new name in a folder may be gone after a power cut although the file's bytes are safe."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
