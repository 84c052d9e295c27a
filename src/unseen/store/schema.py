"""The database of a store: its tables, the values that are written into them, and opening it.

Schema 5. A database of schema 4 is migrated (`migrate`): for good when it is opened for writing, in memory when it is
only read. A newer schema is refused.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unseen.errors import CheckFailed, UsageError

if TYPE_CHECKING:  # reading a store does not load torch
    from unseen.training.evaluate import Measure
    from unseen.training.trainer import Point

SCHEMA = 5
OLDEST = 4
"""The oldest schema that can be migrated."""
FILE = "store.sqlite"
FOLDERS = ("checkpoints", "weights")
TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE trials (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, identity TEXT NOT NULL, seed INTEGER NOT NULL,
    data_seed INTEGER NOT NULL, status TEXT NOT NULL DEFAULT 'pending', step INTEGER NOT NULL DEFAULT 0,
    best_step INTEGER, not_converged INTEGER, note TEXT NOT NULL DEFAULT '');
CREATE TABLE evaluations (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, identity TEXT NOT NULL);
CREATE TABLE entries (trial INTEGER NOT NULL REFERENCES trials, scale TEXT NOT NULL,
    evaluation INTEGER NOT NULL REFERENCES evaluations, position INTEGER NOT NULL, levels TEXT NOT NULL,
    PRIMARY KEY (trial, scale, evaluation)) WITHOUT ROWID;
CREATE TABLE curves (trial INTEGER NOT NULL REFERENCES trials, step INTEGER NOT NULL, split TEXT NOT NULL,
    metric TEXT NOT NULL, value REAL, PRIMARY KEY (trial, step, split, metric)) WITHOUT ROWID;
CREATE TABLE records (trial INTEGER NOT NULL REFERENCES trials, evaluation INTEGER NOT NULL REFERENCES evaluations,
    selection TEXT NOT NULL, split TEXT NOT NULL, factor TEXT NOT NULL, level TEXT NOT NULL, metric TEXT NOT NULL,
    value REAL, standard_error REAL, n INTEGER NOT NULL,
    PRIMARY KEY (trial, evaluation, selection, split, factor, level, metric)) WITHOUT ROWID;
CREATE TABLE chunks (trial INTEGER NOT NULL REFERENCES trials, begin INTEGER NOT NULL, end INTEGER NOT NULL,
    seconds REAL NOT NULL, cpu_seconds REAL NOT NULL, worker TEXT NOT NULL, PRIMARY KEY (trial, begin)) WITHOUT ROWID;
CREATE TABLE failures (trial INTEGER PRIMARY KEY REFERENCES trials, step INTEGER NOT NULL, cause TEXT NOT NULL,
    traceback TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE weights (trial INTEGER NOT NULL REFERENCES trials, selection TEXT NOT NULL, file TEXT NOT NULL,
    sha256 TEXT NOT NULL, PRIMARY KEY (trial, selection)) WITHOUT ROWID;
CREATE TABLE checkpoints (stack TEXT PRIMARY KEY, trials TEXT NOT NULL, file TEXT NOT NULL, sha256 TEXT NOT NULL)
    WITHOUT ROWID;
CREATE TABLE provenance (trial INTEGER PRIMARY KEY REFERENCES trials, facts TEXT NOT NULL) WITHOUT ROWID;
CREATE VIEW overall AS SELECT * FROM records WHERE factor = '';
CREATE TABLE checksums (trial INTEGER NOT NULL REFERENCES trials, source TEXT NOT NULL, sum TEXT NOT NULL,
    PRIMARY KEY (trial, source)) WITHOUT ROWID;
"""
"""Rows name their trial by its number, in the order in which trials were entered. So rows that are written together lie
together, and a commit touches as few pages of a large store as of a small one; by their ids, which are hashes, the rows
of every trial would lie on pages of their own.
"""
CHECKED = ("trials", "entries", "curves", "records", "overall")
"""The tables (and the view) of which `checksums` are kept."""


# -- the values that a chunk of training leaves -----------------------------------------------------------------------


@dataclass(frozen=True)
class Span:
    """The steps of one trial that a chunk has done, and the time they took."""

    begin: int
    end: int
    seconds: float
    cpu_seconds: float
    worker: str


@dataclass(frozen=True)
class Finished:
    """The results that are stored when a trial ends: `measures` by evaluation id and selection, `weights` by selection."""

    status: str
    step: int
    best_step: int
    not_converged: bool | None
    note: str
    measures: Mapping[str, Mapping[str, Sequence[Measure]]]
    weights: Mapping[str, bytes]
    provenance: Mapping[str, Any]


@dataclass(frozen=True)
class Evaluated:
    """The results that are added to a trial that had ended, when its kept weights are evaluated in further ways.

    `measures` are by evaluation id and selection, `note` is that of all its evaluations, `provenance` is about the
    process that evaluated.
    """

    note: str
    measures: Mapping[str, Mapping[str, Sequence[Measure]]]
    provenance: Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """The result of a chunk. Without a checkpoint the stack is done; with an `error` nothing was done.

    `seconds` is the whole time where it was computed: setting up, training, evaluating, packing. `preflight` are the
    notes of the dry run, if the chunk included one. `timing` are the times that a probe has measured, as plain values; they
    are not stored.
    """

    ticket: int
    checkpoint: bytes | None = None
    points: Sequence[Point] = ()
    spans: Mapping[str, Span] | None = None
    finished: Mapping[str, Finished] | None = None
    error: str = ""
    seconds: float = 0.0
    preflight: tuple[str, ...] | None = None
    evaluated: Mapping[str, Evaluated] | None = None
    timing: Mapping[str, Any] | None = None


# -- opening ----------------------------------------------------------------------------------------------------------


def open_to_read(path: Path) -> sqlite3.Connection:
    """The database of an existing store; it may be written by another process at the same time."""
    try:
        if not (path / FILE).is_file():
            why = f"there is no {FILE} in it" if path.is_dir() else "there is no such directory"
            raise UsageError(f"{path} holds no results: {why}. Give a directory that `run` or `train` wrote")
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from error
    # A database in WAL mode can't be opened on a read-only disk, unless it is declared not to change.
    still = not os.access(path, os.W_OK) and not (path / f"{FILE}-wal").exists()
    with explain_errors(path):
        address = (path / FILE).resolve().as_uri()
        connection = sqlite3.connect(f"{address}?{'immutable=1' if still else 'mode=ro'}", uri=True)
        if is_empty(connection):
            raise UsageError(f"{path} holds no results: its {FILE} is empty")
        if check_version(path, connection) < SCHEMA:
            from unseen.store.migrate import migrate_in_memory

            return migrate_in_memory(path, connection)
        return connection


def open_to_write(path: Path) -> sqlite3.Connection:
    """The database of a store, made if there is none; a damaged one is noticed before anything is done with it."""
    with explain_errors(path):
        connection = sqlite3.connect(path / FILE)
        # Asked before anything is written: a kill between opening and creating leaves an empty file, which is a new
        # store.
        empty = is_empty(connection)
        if not empty and check_version(path, connection) < SCHEMA:
            from unseen.store.migrate import migrate_file

            connection.close()  # the file is about to be replaced, and SQLite would keep writing to the old one
            migrate_file(path)
            connection = sqlite3.connect(path / FILE)
        # A write-ahead log lets others read while the one writer commits.
        connection.execute("PRAGMA journal_mode = WAL")
        if empty:
            create_tables(connection)
        answer = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]  # with the index of ids
        if answer != "ok":
            raise CheckFailed(f"{path / FILE} is damaged: {answer}")
        checkpoint_log(connection)
        return connection


def checkpoint_log(connection: sqlite3.Connection) -> None:
    """Copy what is only in the write-ahead log into the main file, as far as readers allow.

    Otherwise a small store that is killed would live in its log alone, and a copy of the main file would be empty. It
    is no error if it can't be done now: what was committed is safe in the log.
    """
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of this schema in an empty database."""
    # One transaction: after a kill there are all of the tables or none, and a file without tables is a new store.
    connection.executescript(f"BEGIN; {TABLES} PRAGMA user_version = {SCHEMA}; COMMIT;")


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether a database has no tables yet."""
    return not connection.execute("SELECT 1 FROM sqlite_master").fetchall()


def check_version(path: Path, connection: sqlite3.Connection) -> int:
    """The schema of a database; one that this release can't read is refused."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if not OLDEST <= version <= SCHEMA:
        age = "a newer" if version > SCHEMA else "an older"
        raise UsageError(
            f"{path} was written by {age} release of Unseen (its schema is {version}, this release reads "
            f"schema {OLDEST} and {SCHEMA}); open it with that release"
        )
    return version


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """A full disk or a damaged database as one line that names the store."""
    try:
        yield
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CheckFailed(f"{path / FILE} is damaged: {error}") from error
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
        raise  # a mistake of ours, not of the disk
    except sqlite3.OperationalError as error:
        if "decode" in str(error) or "no such" in str(error):  # a table or a column is missing
            raise CheckFailed(f"{path / FILE} is damaged: {error}") from error
        raise CheckFailed(f"{path}: the store can't be used now: {error}. What it held before is sound") from error
    except sqlite3.DatabaseError as error:
        raise CheckFailed(f"{path / FILE} is damaged: {error}") from error
    except OSError as error:
        raise CheckFailed(f"{path} can't be written: {error.strerror}. What it held before is sound") from error
