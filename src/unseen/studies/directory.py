"""What may lie in the directory of a store, and which of its files may be removed: a user's own never is."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from unseen.errors import CheckFailed, UsageError
from unseen.studies.database import FILE, FOLDERS, check_version, is_empty, said_plainly

_SIDES = (f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal")
_BEFORE = {"store.lock": re.compile(rb""), "store.owner": re.compile(rb"(process \d+ on .*)?", re.DOTALL)}
"""The files that a kill leaves before there is a database, and what is in them."""
_NAMES = {
    "checkpoints": re.compile(r"[0-9a-f]{16}\.(safetensors|partial)"),
    "weights": re.compile(r"[0-9a-f]{16}\.(best|last)\.(safetensors|partial)"),
}
_TABLES = {"meta", "cells", "checkpoints"}
_PAGE = 4096
"""A database of one page has no tables yet."""


def check_directory(path: Path) -> None:
    """Refuse a directory that is not a store's, nor what a kill has left of one that was being made. Nothing is written
    here, and nothing may be before.
    """
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file; give a directory")
    for name in (*FOLDERS, FILE, *_SIDES, *_BEFORE):
        if (path / name).is_symlink():
            raise UsageError(
                f"{path / name} is a symbolic link, and what it leads to may be somebody else's; "
                "give a new directory, or put the real one in its place"
            )
        if (path / name).exists() and (path / name).is_dir() != (name in FOLDERS):
            raise UsageError(f"{path / name} is no {'folder' if name in FOLDERS else 'file'}; give a new directory")
    if path.is_dir() and not _holds_store(path):
        foreign = next(_foreign(path), None)
        if foreign is None:
            return
        if (path / FILE).is_file() and any(True for folder in FOLDERS for _ in ours(path, folder)):
            raise CheckFailed(f"{path / FILE} is damaged: it is empty, but weights or checkpoints are beside it")
        raise UsageError(
            f"{path} holds other work: {foreign} is not of a store (there is no {FILE} that knows it); "
            "give a new directory, or move it away"
        )


def ours(path: Path, folder: str) -> Iterator[Path]:
    """The files of a folder that are called as only a store calls them."""
    if (path / folder).is_dir():
        for file in (path / folder).iterdir():
            if _NAMES[folder].fullmatch(file.name) and file.is_file() and not file.is_symlink():
                yield file


def _holds_store(path: Path) -> bool:
    """Whether there is a database with tables; of another release, of somebody else or damaged it is an error."""
    file, sides = path / FILE, [side for side in _SIDES if (path / side).exists()]
    if not file.exists() or (file.stat().st_size <= _PAGE and f"{FILE}-journal" in sides):
        return False  # the second: a kill while its first page was written, which the next writer takes back
    # Declared to lie still where it does, or else even to look would make files beside it.
    with said_plainly(path):
        address = file.resolve().as_uri()
        with closing(sqlite3.connect(f"{address}?mode=ro{'' if sides else '&immutable=1'}", uri=True)) as connection:
            if is_empty(connection):
                return False
            if not {name for (name,) in connection.execute("SELECT name FROM sqlite_master")} >= _TABLES:
                raise UsageError(f"{file} is the database of another program; give a new directory")
            check_version(path, connection)
            return True


def _foreign(path: Path) -> Iterator[Path]:
    """What lies in a directory without a database that no kill of ours can have left."""
    made = {FILE, *_SIDES} if (path / FILE).exists() else set()
    for found in sorted(path.iterdir()):
        if found.name in FOLDERS:
            yield from sorted(found.iterdir())
        elif not (found.name in made or (found.name in _BEFORE and _BEFORE[found.name].fullmatch(found.read_bytes()))):
            yield found
