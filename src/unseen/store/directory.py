"""The directory of a store: what may lie in it, which files may be removed (never a user's own), the writer's lock, and
its files of weights and checkpoints, whose SHA-256 is noted when they are written and checked on reading."""

from __future__ import annotations

import hashlib
import os
import re
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from filelock import FileLock, Timeout

from unseen.errors import CheckFailed, UsageError
from unseen.files import write_atomically
from unseen.store.schema import FILE, FOLDERS, OLDEST, SCHEMA, check_version, explain_errors, is_empty

_JOURNALS = (f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal")
_MIGRATION = (f"{FILE}.migrating", f"{FILE}.schema{OLDEST}")
_BEFORE_DATABASE = {"store.lock": re.compile(rb""), "store.owner": re.compile(rb"(process \d+ on .*)?", re.DOTALL)}
"""The files that a kill leaves before there is a database, and their contents."""
_PARTIAL = r"(\.safetensors(\.\d+\.partial)?|\.partial)"
_NAMES = {
    "checkpoints": re.compile(r"[0-9a-f]{16}" + _PARTIAL),
    "weights": re.compile(r"[0-9a-f]{16}\.(best|last)" + _PARTIAL),
}
_PAGE = 4096
"""A database of one page has no tables yet."""


def take_lock(path: Path) -> FileLock:
    """The lock of a store's directory, or an error that names its owner. It is given up with the process."""
    lock = FileLock(path / "store.lock")
    owner = path / "store.owner"
    try:
        lock.acquire(blocking=False)
    except Timeout:
        writer = owner.read_text() if owner.is_file() else "another process"
        raise UsageError(f"{path} is being written by {writer}; wait for it, or stop it") from None
    # In a file of its own: a lock file that is locked can't be read on every system.
    owner.write_text(f"process {os.getpid()} on {socket.gethostname()}")
    return lock


def check_directory(path: Path) -> None:
    """Refuse a directory that is neither a store's nor the remains of one that was being made when it was killed.

    Nothing is written here, and nothing may be written before.
    """
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file; give a directory")
    if path.is_symlink() and not path.exists():
        raise UsageError(f"{path} is a symbolic link that leads nowhere; give a directory")
    for name in (*FOLDERS, FILE, *_JOURNALS, *_MIGRATION, *_BEFORE_DATABASE):
        if (path / name).is_symlink():
            raise UsageError(
                f"{path / name} is a symbolic link, whose target may not belong to this store; "
                "give a new directory, or put the real file or folder in its place"
            )
        if (path / name).exists() and (path / name).is_dir() != (name in FOLDERS):
            raise UsageError(f"{path / name} is not a {'folder' if name in FOLDERS else 'file'}; give a new directory")
    if not path.is_dir() or _holds_store(path):
        return
    foreign = next(_foreign_files(path), None)
    if foreign is None:
        return
    if (path / FILE).is_file() and any(list(own_files(path, folder)) for folder in FOLDERS):
        raise CheckFailed(f"{path / FILE} is damaged: it is empty, but weights or checkpoints are beside it")
    raise UsageError(
        f"{path} holds other work: {foreign} is not of a store (there is no {FILE} that knows it); "
        "give a new directory, or move it away"
    )


def own_files(path: Path, folder: str) -> Iterator[Path]:
    """The files of a folder whose names only a store gives."""
    if (path / folder).is_dir():
        for file in (path / folder).iterdir():
            if _NAMES[folder].fullmatch(file.name) and file.is_file() and not file.is_symlink():
                yield file


def hash_bytes(data: bytes) -> str:
    """The hash that a store notes of a file."""
    return hashlib.sha256(data).hexdigest()


def weights_name(trial: str, selection: str) -> str:
    """The name of the file with a trial's weights."""
    return f"{trial}.{selection}.safetensors"


def write_file(store: Path, folder: str, name: str, data: bytes) -> tuple[str, str]:
    """Write a file of a store; returns its path inside the store, and its hash."""
    if Path(name).name != name:  # a database that is merged may come from anywhere
        raise CheckFailed(f"a store can't have a file called '{name}'")
    write_atomically(store / folder / name, data)
    return f"{folder}/{name}", hash_bytes(data)


def read_file(store: Path, file: str, sha256: str) -> bytes:
    """The bytes of a file, if they are those that were written."""
    path = store / file
    first, *others = Path(file).parts or ("",)
    if first not in FOLDERS or ".." in others or path.is_symlink() or path.is_fifo():
        # A store may come from anywhere; no file outside of it is opened.
        raise CheckFailed(f"{store / FILE} is damaged: it names {file}, which is not a file of a store")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise CheckFailed(f"{path} is missing, though the store names it") from None
    except OSError as error:
        raise CheckFailed(f"{path} can't be read: {error.strerror}") from error
    if hash_bytes(data) != sha256:
        raise CheckFailed(f"{path} is damaged: its contents are not what the store recorded")
    return data


def _holds_store(path: Path) -> bool:
    """Whether there is a database with tables; that of another release or program, or a damaged one, is an error."""
    file = path / FILE
    journals = [name for name in _JOURNALS if (path / name).exists()]
    if not file.exists() or (file.stat().st_size <= _PAGE and f"{FILE}-journal" in journals):
        return False  # the second: a kill while its first page was written, which the next writer rolls back
    # Declared not to change where there is no journal: otherwise reading it would make files beside it.
    mode = "mode=ro" if journals else "mode=ro&immutable=1"
    with (
        explain_errors(path),
        closing(sqlite3.connect(f"{file.resolve().as_uri()}?{mode}", uri=True)) as connection,
    ):
        if is_empty(connection):
            return False
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if not names >= {"meta", "checkpoints"} or not names & {"trials", "cells"}:
            raise UsageError(f"{file} is the database of another program; give a new directory")
        return check_version(path, connection) <= SCHEMA


def _foreign_files(path: Path) -> Iterator[Path]:
    """Files in a directory without a database that no kill of ours can have left."""
    database_files = {FILE, *_JOURNALS} if (path / FILE).exists() else set()
    for file in sorted(path.iterdir()):
        if file.name in FOLDERS:
            yield from sorted(file.iterdir())
        elif file.name in _BEFORE_DATABASE:
            if not _BEFORE_DATABASE[file.name].fullmatch(file.read_bytes()):
                yield file
        elif file.name not in database_files:
            yield file
