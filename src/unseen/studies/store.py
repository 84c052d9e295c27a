"""The store: one SQLite file, with weights and checkpoints as safetensors beside it.

    DIR/store.sqlite                what is known: cells, curves, records, provenance
    DIR/store.lock, store.owner     held by the one writer; its process and host
    DIR/checkpoints/HASH.safetensors
    DIR/weights/CELL.SELECTION.safetensors

A file is written under a temporary name, synced and renamed before the one transaction that names it, so whatever the
database names is whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pandas as pd
from filelock import FileLock

from unseen.config import canonical
from unseen.engine.evaluate import Measure
from unseen.engine.train import Point
from unseen.errors import CheckFailed, UsageError
from unseen.studies.cell import Cell, difference, words
from unseen.studies.lock import take_lock

SCHEMA = 1
_OURS = {"checkpoints", "weights", "store.lock", "store.owner"}
"""What a kill may have left of a store before there was a database."""
_RECORD = ["seed", "data_seed", "status", "step", "still_learning", "selection", "condition", "factor", "level",
           "metric", "value", "standard_error", "n", "cell"]
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE cells (id TEXT PRIMARY KEY, identity TEXT NOT NULL, model TEXT NOT NULL, seed INTEGER NOT NULL,
    data_seed INTEGER NOT NULL, status TEXT NOT NULL DEFAULT 'pending', step INTEGER NOT NULL DEFAULT 0,
    best_step INTEGER, still_learning INTEGER, note TEXT NOT NULL DEFAULT '');
CREATE TABLE curves (cell TEXT NOT NULL REFERENCES cells, step INTEGER NOT NULL, condition TEXT NOT NULL,
    metric TEXT NOT NULL, value REAL, PRIMARY KEY (cell, step, condition, metric)) WITHOUT ROWID;
CREATE TABLE records (cell TEXT NOT NULL REFERENCES cells, selection TEXT NOT NULL, condition TEXT NOT NULL,
    factor TEXT NOT NULL, level TEXT NOT NULL, metric TEXT NOT NULL, value REAL, standard_error REAL,
    n INTEGER NOT NULL, PRIMARY KEY (cell, selection, condition, factor, level, metric)) WITHOUT ROWID;
CREATE TABLE weights (cell TEXT NOT NULL REFERENCES cells, selection TEXT NOT NULL, file TEXT NOT NULL,
    sha256 TEXT NOT NULL, PRIMARY KEY (cell, selection)) WITHOUT ROWID;
CREATE TABLE checkpoints (stack TEXT PRIMARY KEY, file TEXT NOT NULL, sha256 TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE provenance (cell TEXT PRIMARY KEY REFERENCES cells, facts TEXT NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Finished:
    """What an ended cell leaves behind; `measures` and `weights` by selection rule."""

    status: str
    step: int
    best_step: int
    still_learning: bool | None
    note: str
    measures: Mapping[str, Sequence[Measure]]
    weights: Mapping[str, bytes]
    provenance: Mapping[str, Any]


class Store:
    """A directory of records: `with Store.read(path) as store` to look, `with Store.write(path) as store` to add."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: FileLock | None) -> None:
        self.path, self._db, self._lock = path, connection, lock

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Open an existing store for reading; it may be written by another process at the same time."""
        path = Path(path)
        if not (path / "store.sqlite").is_file():
            raise UsageError(f"{path} holds no results: there is no store.sqlite in it")
        address = (path / "store.sqlite").resolve().as_uri()
        # A database in WAL mode can't be opened on a read-only disk, unless it is declared to lie still.
        still = not os.access(path, os.W_OK) and not (path / "store.sqlite-wal").exists()
        with _said_plainly(path):
            connection = sqlite3.connect(f"{address}?{'immutable=1' if still else 'mode=ro'}", uri=True)
            return cls._checked(path, connection, None)

    @classmethod
    def write(cls, path: str | Path) -> Self:
        """Open a store for writing, or make one in a new or empty directory; refused while somebody else writes."""
        path = Path(path)
        if path.exists() and not path.is_dir():
            raise UsageError(f"{path} is a file; give a directory")
        if path.is_dir() and {f.name for f in path.iterdir()} - _OURS and not (path / "store.sqlite").is_file():
            raise UsageError(f"{path} holds other work (it is not empty and has no store.sqlite); "
                             "give a new directory")
        try:
            for folder in (path, path / "checkpoints", path / "weights"):
                folder.mkdir(parents=True, exist_ok=True)
            lock = take_lock(path)
        except OSError as error:
            raise UsageError(f"{path} can't be written: {error.strerror}") from error
        try:
            with _said_plainly(path):
                return cls._checked(path, sqlite3.connect(path / "store.sqlite"), lock)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def _checked(cls, path: Path, connection: sqlite3.Connection, lock: FileLock | None) -> Self:
        connection.row_factory = sqlite3.Row
        if lock is not None:
            connection.execute("PRAGMA journal_mode = WAL")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and lock is not None and not connection.execute("SELECT * FROM sqlite_master").fetchall():
            connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {SCHEMA}; COMMIT;")
            version = SCHEMA
        if version != SCHEMA:
            raise UsageError(f"{path} has schema {version}, this release of Unseen reads schema {SCHEMA}")
        return cls(path, connection, lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the database and give up the lock."""
        self._db.close()
        if self._lock is not None:
            self._lock.release()

    # -- writing ------------------------------------------------------------------------------------------------

    def claim(self, work: Mapping[str, Any]) -> None:
        """Say what this directory is for; a directory that holds other work is refused."""
        held, asked = self.work, json.loads(canonical(work))
        if not held:
            with self._transaction():
                self._db.execute("INSERT INTO meta VALUES ('work', ?)", (canonical(work),))
        elif held != asked:
            raise UsageError(f"{self.path} holds other work: {difference(held, asked)}. "
                             "Give a new directory, or the options it was made with")

    def add(self, cells: Sequence[Cell]) -> None:
        """Enter cells that are not there yet, as pending."""
        with self._transaction():
            self._db.executemany(
                "INSERT OR IGNORE INTO cells (id, identity, model, seed, data_seed) VALUES (?, ?, ?, ?, ?)",
                [(c.id, canonical(c.identity), c.model.name, c.seed, c.data_seed) for c in cells])

    def commit(self, stack: str, checkpoint: bytes | None, points: Iterable[Point], finished: Mapping[str, Finished],
               steps: Mapping[str, int] | None = None) -> None:
        """One slice's outcome, in one transaction: the new checkpoint (None: the stack is done), curves, records.

        `steps` says how far cells are that go on. A cell that has ended keeps what it left the first time.
        """
        with _said_plainly(self.path):
            ended = {cell for cell, status in self.status().items() if status != "pending"}
            self._commit(stack, checkpoint, points, {c: f for c, f in finished.items() if c not in ended}, steps or {})

    def _commit(self, stack: str, checkpoint: bytes | None, points: Iterable[Point], finished: Mapping[str, Finished],
                steps: Mapping[str, int]) -> None:
        files = {(cell, selection): self._put("weights", f"{cell}.{selection}.safetensors", data)
                 for cell, done in finished.items() for selection, data in done.weights.items()}
        named = None
        if checkpoint is not None:
            named = self._put("checkpoints", f"{hashlib.sha256(checkpoint).hexdigest()[:16]}.safetensors", checkpoint)
        with self._transaction():
            self._db.executemany("UPDATE cells SET step = ? WHERE id = ?", [(step, c) for c, step in steps.items()])
            self._db.executemany("INSERT OR REPLACE INTO curves VALUES (?, ?, ?, ?, ?)",
                                 [(p.key, p.step, p.condition, p.metric, p.value) for p in points])
            for cell, done in finished.items():
                self._finish(cell, done)
            self._db.executemany("INSERT OR REPLACE INTO weights VALUES (?, ?, ?, ?)",
                                 [(*key, *file) for key, file in files.items()])
            self._db.execute("DELETE FROM checkpoints WHERE stack = ?", (stack,))
            if named is not None:
                self._db.execute("INSERT INTO checkpoints VALUES (?, ?, ?)", (stack, *named))
        self._sweep()

    def _finish(self, cell: str, done: Finished) -> None:
        self._db.execute(
            "UPDATE cells SET status = ?, step = ?, best_step = ?, still_learning = ?, note = ? WHERE id = ?",
            (done.status, done.step, done.best_step, done.still_learning, done.note, cell))
        self._db.executemany(
            "INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(cell, selection, m.condition, m.factor, m.level, m.metric, m.value, m.standard_error, m.n)
             for selection, measures in done.measures.items() for m in measures])
        self._db.execute("INSERT OR REPLACE INTO provenance VALUES (?, ?)", (cell, canonical(done.provenance)))

    def _put(self, folder: str, name: str, data: bytes) -> tuple[str, str]:
        target = self.path / folder / name
        temporary = target.with_suffix(".partial")
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
        return f"{folder}/{name}", hashlib.sha256(data).hexdigest()

    def _sweep(self) -> None:
        """Remove checkpoints that nothing names any more, and what a kill left half written."""
        named = {row["file"] for row in self._rows("SELECT file FROM checkpoints")}
        for file in (self.path / "checkpoints").iterdir():
            if f"checkpoints/{file.name}" not in named:
                file.unlink()
        for file in (self.path / "weights").glob("*.partial"):
            file.unlink()

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def work(self) -> dict[str, Any]:
        """What this directory is for."""
        rows = self._rows("SELECT value FROM meta WHERE key = 'work'")
        found: dict[str, Any] = json.loads(rows[0]["value"]) if rows else {}
        return found

    def status(self) -> dict[str, str]:
        """The status of every cell, by id."""
        return {row["id"]: row["status"] for row in self._rows("SELECT id, status FROM cells")}

    def seeds(self) -> dict[str, tuple[int, int]]:
        """(seed, data seed) of every cell, by id."""
        rows = self._rows("SELECT id, seed, data_seed FROM cells")
        return {row["id"]: (row["seed"], row["data_seed"]) for row in rows}

    def checkpoints(self) -> Iterator[tuple[str, str, bytes]]:
        """(stack, path, bytes) of every unfinished stack; a damaged file is named, never read as data."""
        for row in self._rows("SELECT * FROM checkpoints"):
            yield row["stack"], *self._get(row)

    def weights(self, cell: str, selection: str) -> tuple[str, bytes]:
        """(path, bytes) of a finished cell's weights."""
        rows = self._rows("SELECT * FROM weights WHERE cell = ? AND selection = ?", cell, selection)
        if not rows:
            raise UsageError(f"{self.path} has no weights '{selection}' for cell {cell}")
        return self._get(rows[0])

    def _get(self, row: sqlite3.Row) -> tuple[str, bytes]:
        path = self.path / row["file"]
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise CheckFailed(f"{path} is missing, though the store names it; train into a new directory") from None
        if hashlib.sha256(data).hexdigest() != row["sha256"]:
            raise CheckFailed(f"{path} is damaged: its contents are not what the store recorded; train into a new "
                              "directory")
        return str(path), data

    def records(self) -> pd.DataFrame:
        """One tidy row per (cell, selection, condition, factor level, metric)."""
        rows = self._rows("""SELECT identity, cell, seed, data_seed, status, step, still_learning, selection, condition,
            factor, level, metric, value, standard_error, n FROM records JOIN cells ON records.cell = cells.id
            ORDER BY model, seed, data_seed, cell, selection, condition, factor, level, metric""")
        parts = {row["identity"]: _parts(json.loads(row["identity"])) for row in rows}
        columns = ["task", "task_options", "model", "model_options", "recipe", "recipe_options", *_RECORD]
        return pd.DataFrame([(*parts[row["identity"]], *(row[c] for c in _RECORD)) for row in rows], columns=columns)

    def cells(self) -> pd.DataFrame:
        """One row per cell: what it is, how far it is, how it ended."""
        return self._frame("SELECT id AS cell, model, seed, data_seed, status, step, best_step, still_learning, note "
                           "FROM cells ORDER BY seed, id")

    def curves(self) -> pd.DataFrame:
        """One row per point of a learning curve."""
        return self._frame("SELECT seed, data_seed, model, curves.step, condition, metric, value, cell FROM curves "
                           "JOIN cells ON curves.cell = cells.id ORDER BY seed, cell, curves.step, condition, metric")

    def provenance(self, cell: str) -> dict[str, Any]:
        """Versions, machine, times and commit behind a record."""
        rows = self._rows("SELECT facts FROM provenance WHERE cell = ?", cell)
        found: dict[str, Any] = json.loads(rows[0]["facts"]) if rows else {}
        return found

    def _rows(self, query: str, *values: str) -> list[sqlite3.Row]:
        with _said_plainly(self.path):
            return self._db.execute(query, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with _said_plainly(self.path), self._db:
            yield

    def _frame(self, query: str) -> pd.DataFrame:
        with _said_plainly(self.path):
            cursor = self._db.execute(query)
            rows = [tuple(row) for row in cursor.fetchall()]
        return pd.DataFrame(rows, columns=[c[0] for c in cursor.description])


@contextmanager
def _said_plainly(path: Path) -> Iterator[None]:
    """A full disk or a damaged database as one line that names the store."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise CheckFailed(f"{path}: the store can't be used now: {error}. What it held before is sound") from error
    except sqlite3.DatabaseError as error:
        raise CheckFailed(f"{path / 'store.sqlite'} is damaged: {error}") from error
    except OSError as error:
        raise CheckFailed(f"{path} can't be written: {error.strerror}. What it held before is sound") from error


def _parts(identity: Mapping[str, Any]) -> list[str]:
    """Name and differing options of task, model and recipe."""
    found = [words(identity[part]).partition(" ") for part in ("task", "model", "recipe")]
    return [text for name, _, rest in found for text in (name, rest)]
