"""Files written whole or not at all: the one place of the package that writes atomically.

A file is written under a temporary name, synced, renamed, and its folder is synced: after a power cut there is either
the old file or the whole new one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from unseen.errors import UsageError

PARTIAL = ".partial"
"""The ending of temporary names; a kill may leave such a file behind, and nothing ever reads one."""
_STORE_FILES = re.compile(r"store\.(sqlite.*|lock|owner)")
"""The names of a store's own files (`unseen.store.directory`); its other files lie in these folders."""
_STORE_FOLDERS = ("checkpoints", "weights")


def write_atomically(path: Path, data: bytes | str) -> None:
    """Write a file so that other processes, and a machine after a power cut, see all of it or nothing.

    Text is written as UTF-8.
    """
    with replace_atomically(path) as temporary:
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)


def check_writable(path: Path) -> None:
    """Refuse a file that can't be written, before any long work: only a new file, or a regular one, is written.

    A symbolic link or a device would be replaced by the rename. A file of a store is never replaced by something printed
    from it.
    """
    folder = path.absolute().parent
    try:
        if _STORE_FILES.fullmatch(path.name) or (
            folder.name in _STORE_FOLDERS and (folder / "../store.sqlite").exists()
        ):
            raise UsageError(f"{path} belongs to a results directory and would be destroyed; give another file")
        if not folder.is_dir():
            raise UsageError(f"{path} can't be written: there is no directory {folder}")
        if path.is_symlink():
            raise UsageError(f"{path} is a symbolic link, which would be replaced; give the file that it leads to")
        if path.is_dir():
            raise UsageError(f"{path} is a directory; give a file")
        if path.exists() and not path.is_file():
            raise UsageError(f"{path} is not a regular file; give a new one, or leave out --out to print")
        if path.exists() and not os.access(path, os.W_OK):
            raise UsageError(f"{path} can't be written: permission denied, or the disk is read-only")
        # Whether a file can be made is only known by making one: permissions say nothing about /proc, or about root.
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}") from error


def check_folder(path: Path) -> None:
    """Refuse a folder that can't be made or written to, before any long work."""
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.is_symlink() or folder.exists())
    try:
        if not existing.is_dir():
            raise UsageError(f"{path} can't be made: {existing} is not a folder. Give a folder")
        with TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise UsageError(f"{path} can't be written to: {error.strerror}. Give a folder") from error


def read_at_most(path: Path, most: int) -> bytes:
    """The bytes of a file; one of more than `most` bytes, or that never ends, is refused before memory runs out."""
    try:
        if path.is_char_device() or path.is_block_device():  # /dev/zero has no end
            raise UsageError(f"{path} is a device; give a file")
        with path.open("rb") as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > most:
        raise UsageError(f"{path} is too large: more than {most / 1e6:,.0f} MB are not read")
    return data


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
        temporary.replace(path)  # atomic: readers see the old file or the new one
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
