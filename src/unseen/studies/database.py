"""The database of a store: its tables, its version, and what its complaints mean."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unseen.errors import CheckFailed, UsageError

SCHEMA = 4
FILE = "store.sqlite"
FOLDERS = ("checkpoints", "weights")
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE cells (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, identity TEXT NOT NULL, seed INTEGER NOT NULL,
    data_seed INTEGER NOT NULL, status TEXT NOT NULL DEFAULT 'pending', step INTEGER NOT NULL DEFAULT 0,
    best_step INTEGER, still_learning INTEGER, note TEXT NOT NULL DEFAULT '');
CREATE TABLE entries (cell INTEGER NOT NULL REFERENCES cells, scale TEXT NOT NULL, position INTEGER NOT NULL,
    levels TEXT NOT NULL, PRIMARY KEY (cell, scale)) WITHOUT ROWID;
CREATE TABLE curves (cell INTEGER NOT NULL REFERENCES cells, step INTEGER NOT NULL, condition TEXT NOT NULL,
    metric TEXT NOT NULL, value REAL, PRIMARY KEY (cell, step, condition, metric)) WITHOUT ROWID;
CREATE TABLE records (cell INTEGER NOT NULL REFERENCES cells, selection TEXT NOT NULL, condition TEXT NOT NULL,
    factor TEXT NOT NULL, level TEXT NOT NULL, metric TEXT NOT NULL, value REAL, standard_error REAL,
    n INTEGER NOT NULL, PRIMARY KEY (cell, selection, condition, factor, level, metric)) WITHOUT ROWID;
CREATE TABLE spans (cell INTEGER NOT NULL REFERENCES cells, begin INTEGER NOT NULL, end INTEGER NOT NULL,
    seconds REAL NOT NULL, cpu_seconds REAL NOT NULL, worker TEXT NOT NULL, PRIMARY KEY (cell, begin)) WITHOUT ROWID;
CREATE TABLE failures (cell INTEGER PRIMARY KEY REFERENCES cells, step INTEGER NOT NULL, cause TEXT NOT NULL,
    traceback TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE weights (cell INTEGER NOT NULL REFERENCES cells, selection TEXT NOT NULL, file TEXT NOT NULL,
    sha256 TEXT NOT NULL, PRIMARY KEY (cell, selection)) WITHOUT ROWID;
CREATE TABLE checkpoints (stack TEXT PRIMARY KEY, cells TEXT NOT NULL, file TEXT NOT NULL, sha256 TEXT NOT NULL)
    WITHOUT ROWID;
CREATE TABLE provenance (cell INTEGER PRIMARY KEY REFERENCES cells, facts TEXT NOT NULL) WITHOUT ROWID;
CREATE VIEW overall AS SELECT * FROM records WHERE factor = '';
CREATE TABLE seals (cell INTEGER NOT NULL REFERENCES cells, of TEXT NOT NULL, sum TEXT NOT NULL,
    PRIMARY KEY (cell, of)) WITHOUT ROWID;
"""
"""Rows name their cell by its number, in the order in which cells were entered. So what is written together lies
together, and a commit touches as few pages of a large store as of a small one; by their ids, which are hashes, the rows
of every cell would lie on pages of their own.
"""


def open_to_read(path: Path) -> sqlite3.Connection:
    """The database of an existing store; it may be written by another process at the same time."""
    try:
        if not (path / FILE).is_file():
            why = f"there is no {FILE} in it" if path.is_dir() else "there is no such directory"
            raise UsageError(f"{path} holds no results: {why}. Give a directory that `run` or `train` wrote")
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from error
    # A database in WAL mode can't be opened on a read-only disk, unless it is declared to lie still.
    still = not os.access(path, os.W_OK) and not (path / f"{FILE}-wal").exists()
    with said_plainly(path):
        address = (path / FILE).resolve().as_uri()
        connection = sqlite3.connect(f"{address}?{'immutable=1' if still else 'mode=ro'}", uri=True)
        if is_empty(connection):
            raise UsageError(f"{path} holds no results: its {FILE} is empty")
        check_version(path, connection)
        return connection


def open_to_write(path: Path) -> sqlite3.Connection:
    """The database of a store, made if there is none; a damaged one is noticed before anything is done with it."""
    with said_plainly(path):
        connection = sqlite3.connect(path / FILE)
        empty = is_empty(connection)
        if not empty:
            check_version(path, connection)
        connection.execute("PRAGMA journal_mode = WAL")
        if empty:
            connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {SCHEMA}; COMMIT;")
        found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]  # with the index of ids
        if found != "ok":
            raise CheckFailed(f"{path / FILE} is damaged: {found}")
        return connection


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether a database has no tables yet."""
    return not connection.execute("SELECT 1 FROM sqlite_master").fetchall()


def check_version(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse the database of another release."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA:
        age = "a newer" if version > SCHEMA else "an older"
        raise UsageError(
            f"{path} was written by {age} release of Unseen (its schema is {version}, this release reads "
            f"schema {SCHEMA}); open it with that release"
        )


@contextmanager
def said_plainly(path: Path) -> Iterator[None]:
    """A full disk or a damaged database as one line that names the store."""
    try:
        yield
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CheckFailed(f"{path / FILE} is damaged: {error}") from error
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
        raise  # a mistake of ours, not of the disk
    except sqlite3.OperationalError as error:
        if "decode" in str(error):
            raise CheckFailed(f"{path / FILE} is damaged: {error}") from error
        raise CheckFailed(f"{path}: the store can't be used now: {error}. What it held before is sound") from error
    except sqlite3.DatabaseError as error:
        raise CheckFailed(f"{path / FILE} is damaged: {error}") from error
    except OSError as error:
        raise CheckFailed(f"{path} can't be written: {error.strerror}. What it held before is sound") from error
