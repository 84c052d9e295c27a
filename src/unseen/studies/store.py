"""The store: one SQLite file, with weights and checkpoints as safetensors beside it.

    DIR/store.sqlite                what is known: cells, curves, records, failures, provenance
    DIR/store.lock, store.owner     held by the one writer; its process and host
    DIR/checkpoints/HASH.safetensors
    DIR/weights/CELL.SELECTION.safetensors

A file is written under a temporary name, synced and renamed before the one transaction that names it, so whatever the
database names is whole.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pandas as pd
from filelock import FileLock

from unseen.config import canonical
from unseen.errors import CheckFailed, UsageError
from unseen.studies.blobs import get, put, sha
from unseen.studies.cell import PARTS, difference
from unseen.studies.database import FILE, FOLDERS, open_to_read, open_to_write, said_plainly
from unseen.studies.directory import check_directory, ours
from unseen.studies.lock import take_lock
from unseen.studies.seals import KEY, Columns, broken, frame, pieces, seal
from unseen.studies.tables import curves_table, records_table

if TYPE_CHECKING:  # to read a store is not to load torch
    from unseen.studies.slice import Finished, Outcome
    from unseen.studies.study import Entry

_OF_A_CELL = ("curves", "records", "spans", "failures", "weights", "provenance")
ENDED = ("finished", "stopped", "diverged")


@dataclass(frozen=True)
class Place:
    """What a place of a study is about: its work, and the (seed, data seed) pairs there."""

    work: Mapping[str, Any]
    seeds: set[tuple[int, int]]

    def conflict(self, other: Place) -> str:
        """Why two can't be the same place, in words; empty if they can."""
        if self.work != other.work:
            return difference(self.work, other.work)
        seeds = self.seeds | other.seeds
        own, one = all(seed == data for seed, data in seeds), len({data for _, data in seeds}) == 1
        return "" if own or one else "each seed has its own data in one and all share a data seed in the other"


class Store:
    """A directory of records: `with Store.read(path) as store` to look, `with Store.write(path) as store` to add."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: FileLock | None) -> None:
        self.path, self._db, self._lock = path, connection, lock
        connection.row_factory = sqlite3.Row

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Open an existing store for reading; it may be written by another process at the same time."""
        return cls(Path(path), open_to_read(Path(path)), None)

    @classmethod
    def write(cls, path: str | Path) -> Self:
        """Open a store for writing, or make one in a new or empty directory; refused while somebody else writes."""
        path = Path(path)
        try:
            check_directory(path)
            for folder in ("", *FOLDERS):
                (path / folder).mkdir(parents=True, exist_ok=True)
            lock = take_lock(path)
        except OSError as error:
            raise UsageError(f"{path} can't be written: {error.strerror}") from error
        try:
            store = cls(path, open_to_write(path), lock)
            for file in ours(path, "weights"):  # here, since there may be thousands
                if file.suffix == ".partial":  # a kill left it
                    file.unlink()
            return store
        except BaseException:
            lock.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
            raise UsageError(
                f"{self.path} holds other work: {difference(held, asked)}. "
                "Give a new directory, or the options it was made with"
            )

    def add(self, entries: Sequence[Entry], scale: str = "") -> None:
        """Enter cells that are not there yet, as pending, with their place in the study.

        More seeds are welcome. A place that is held by other work, or is no longer in the study, is refused.
        """
        self.check("cells", "entries")
        asked: dict[str, Place] = {}
        for entry in entries:
            place = asked.setdefault(canonical(dict(entry.levels)), Place(entry.cell.work, set()))
            place.seeds.add((entry.cell.seed, entry.cell.data_seed))
        for (held_scale, levels), held in self.places().items():
            if held_scale == scale and levels not in asked:
                raise UsageError(
                    f"{self.path} holds other work: {levels} is not in the study as it is now. Give a new directory"
                )
            if held_scale == scale and held.conflict(asked[levels]):
                raise UsageError(
                    f"{self.path} holds other work at {levels}: {held.conflict(asked[levels])}. Give a new directory"
                )
        position = {levels: i for i, levels in enumerate(asked)}
        with self._transaction():
            self._db.executemany(
                "INSERT OR IGNORE INTO cells (id, identity, seed, data_seed) VALUES (?, ?, ?, ?)",
                ((e.cell.id, e.cell.identity, e.cell.seed, e.cell.data_seed) for e in entries),
            )
            numbers = self._numbers([e.cell.id for e in entries])
            self._db.executemany(
                "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)",
                (
                    (
                        numbers[e.cell.id],
                        scale,
                        position[canonical(dict(e.levels))],
                        json.dumps(dict(e.levels), ensure_ascii=False),
                    )
                    for e in entries
                ),
            )
            seal(self._db, ("cells", "entries"), numbers.values())

    def commit(self, stack: str, cells: Sequence[str], outcome: Outcome) -> None:
        """One slice's outcome, in one transaction: the new checkpoint (None: the stack is done), curves, records.

        A cell that has ended keeps what it left the first time.
        """
        with said_plainly(self.path):
            pending = self._numbers([cell for cell, status in self.status(cells).items() if status == "pending"])
            finished = {c: f for c, f in (outcome.finished or {}).items() if c in pending}
            files = {
                (cell, selection): put(self.path, "weights", f"{cell}.{selection}.safetensors", data)
                for cell, done in finished.items()
                for selection, data in done.weights.items()
            }
            checkpoints = {} if outcome.checkpoint is None else {stack: (cells, outcome.checkpoint)}
            with self._replacing(stack, checkpoints):
                spans = {c: s for c, s in (outcome.spans or {}).items() if c in pending}
                self._db.executemany(
                    "UPDATE cells SET step = ? WHERE number = ?", [(s.end, pending[c]) for c, s in spans.items()]
                )
                self._db.executemany(
                    "INSERT INTO spans VALUES (?, ?, ?, ?, ?, ?)",
                    [(pending[c], s.begin, s.end, s.seconds, s.cpu_seconds, s.worker) for c, s in spans.items()],
                )
                self._db.executemany(
                    "INSERT OR REPLACE INTO curves VALUES (?, ?, ?, ?, ?)",
                    [
                        (pending[p.key], p.step, p.condition, p.metric, p.value)
                        for p in outcome.points
                        if p.key in pending
                    ],
                )
                for cell, done in finished.items():
                    self._finish(pending[cell], done)
                self._db.executemany(
                    "INSERT OR REPLACE INTO weights VALUES (?, ?, ?, ?)",
                    [(pending[cell], selection, *file) for (cell, selection), file in files.items()],
                )
                seal(self._db, ("cells", "curves", "records", "overall"), pending.values())

    def _finish(self, number: int, done: Finished) -> None:
        self._db.execute(
            "UPDATE cells SET status = ?, step = ?, best_step = ?, still_learning = ?, note = ? WHERE number = ?",
            (done.status, done.step, done.best_step, done.still_learning, done.note, number),
        )
        self._db.executemany(
            "INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (number, selection, m.condition, m.factor, m.level, m.metric, m.value, m.standard_error, m.n)
                for selection, measures in done.measures.items()
                for m in measures
            ],
        )
        self._db.execute("INSERT OR REPLACE INTO provenance VALUES (?, ?)", (number, canonical(done.provenance)))

    def split(self, stack: str, parts: Mapping[str, tuple[Sequence[str], bytes]]) -> None:
        """Replace a stack's checkpoint by checkpoints of its parts: {name: (cells, checkpoint)}."""
        with said_plainly(self.path), self._replacing(stack, parts):
            pass

    def fail(self, cell: str, cause: str, traceback: str = "") -> None:
        """A cell that can't be brought to its end, with what is known about why; its checkpoint stays."""
        with self._transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO failures SELECT number, step, ?, ? FROM cells WHERE id = ?",
                (cause, traceback, cell),
            )
            self._db.execute("UPDATE cells SET status = 'failed' WHERE id = ?", (cell,))
            seal(self._db, ("cells",), self._numbers([cell]).values())

    def retry(self, cells: Sequence[str]) -> None:
        """Let those of the cells that have failed go on from where they were."""
        failed = self._numbers([cell for cell, status in self.status(cells).items() if status == "failed"]).values()
        with self._transaction():
            self._db.executemany("DELETE FROM failures WHERE cell = ?", [(number,) for number in failed])
            self._db.executemany(
                "UPDATE cells SET status = 'pending' WHERE number = ?", [(number,) for number in failed]
            )
            seal(self._db, ("cells",), failed)

    def take(self, source: Store, cells: Sequence[str], placed: Sequence[str]) -> None:
        """Take over ended cells of another store of the same work, with records, curves and weights; and the places in
        the study of these and of others that are here already.
        """
        with said_plainly(self.path):
            for row in (row for cell in cells for row in source.rows("weights", cell)):
                put(self.path, "weights", Path(row[2]).name, source.weights(row[0], row[1])[1])
            with self._transaction():
                # Begun here and ended there: they stand alone by now (see `merge`).
                self._db.executemany("DELETE FROM checkpoints WHERE cells = ?", [(canonical([c]),) for c in cells])
                self._db.executemany(
                    "INSERT OR IGNORE INTO cells (id, identity, seed, data_seed) VALUES (?, '', 0, 0)",
                    [(c,) for c in cells],
                )
                here, places = self._numbers(cells), self._numbers(placed)
                for table in ("cells", *_OF_A_CELL):
                    self._db.executemany(
                        f"DELETE FROM {table} WHERE {KEY.get(table, 'cell')} = ?",
                        [(number,) for number in here.values()],
                    )
                    for cell, number in here.items():
                        for _, *values in source.rows(table, cell):
                            self._db.execute(
                                f"INSERT INTO {table} VALUES (?, {', '.join('?' * len(values))})", (number, *values)
                            )
                self._db.executemany(
                    "INSERT OR IGNORE INTO entries VALUES (?, ?, ?, ?)",
                    [
                        (number, *values)
                        for cell, number in places.items()
                        for _, *values in source.rows("entries", cell)
                    ],
                )
                seal(self._db, ("cells", "curves", "records", "overall"), here.values())
                seal(self._db, ("entries",), places.values())
            self._sweep()

    def discard(self, stack: str) -> None:
        """Give up a stack's checkpoint: its cells will be trained from step 0, to the same bits."""
        (row,) = self._rows("SELECT cells FROM checkpoints WHERE stack = ?", stack)
        numbers = self._numbers(json.loads(row["cells"])).values()
        with said_plainly(self.path), self._replacing(stack, {}):
            self._db.executemany("UPDATE cells SET step = 0 WHERE number = ?", [(number,) for number in numbers])
            for table in ("spans", "curves"):
                self._db.executemany(f"DELETE FROM {table} WHERE cell = ?", [(number,) for number in numbers])
            seal(self._db, ("cells", "curves"), numbers)

    @contextmanager
    def _replacing(self, stack: str, checkpoints: Mapping[str, tuple[Sequence[str], bytes]]) -> Iterator[None]:
        """A transaction in which a stack's checkpoint gives way to others; files that nothing names go afterwards."""
        named = {
            name: (canonical(list(cells)), *put(self.path, "checkpoints", f"{sha(data)[:16]}.safetensors", data))
            for name, (cells, data) in checkpoints.items()
        }
        with self._transaction():
            yield
            self._db.execute("DELETE FROM checkpoints WHERE stack = ?", (stack,))
            self._db.executemany(
                "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)",
                [(name, *rest) for name, rest in named.items()],
            )
        self._sweep()

    def _sweep(self) -> None:
        """Remove checkpoints that nothing names any more: there are never more than stacks under way. A file that is
        not called as ours are is another's, and stays.
        """
        named = {row["file"] for row in self._rows("SELECT file FROM checkpoints")}
        for file in ours(self.path, "checkpoints"):
            if f"checkpoints/{file.name}" not in named:
                file.unlink()

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def work(self) -> dict[str, Any]:
        """What this directory is for: `{"study": "name@version"}`, or the parts of a single `train`."""
        rows = self._rows("SELECT value FROM meta WHERE key = 'work'")
        with said_plainly(self.path):
            found: dict[str, Any] = json.loads(rows[0]["value"]) if rows else {}
        return found

    def places(self) -> dict[tuple[str, str], Place]:
        """What is held at each place of the study, by (scale, levels as canonical JSON)."""
        found: dict[tuple[str, str], Place] = {}
        with said_plainly(self.path):
            for row in self._db.execute(
                "SELECT scale, levels, identity, seed, data_seed FROM entries JOIN cells ON "
                "cell = number GROUP BY scale, levels, seed, data_seed"
            ):
                key = (row["scale"], canonical(json.loads(row["levels"])))
                if key not in found:
                    said = json.loads(row["identity"])
                    found[key] = Place({part: said[part] for part in PARTS}, set())
                found[key].seeds.add((row["seed"], row["data_seed"]))
        return found

    def status(self, cells: Sequence[str] | None = None) -> dict[str, str]:
        """The status of every cell, or of some, by id: pending, finished, stopped, diverged or failed."""
        rows = (
            self._rows("SELECT id, status FROM cells")
            if cells is None
            else [row for cell in cells for row in self._rows("SELECT id, status FROM cells WHERE id = ?", cell)]
        )
        return {row["id"]: row["status"] for row in rows}

    def rows(self, table: str, cell: str) -> list[tuple[Any, ...]]:
        """All that one table holds of one cell, with the id of the cell in place of its number."""
        found = self._rows(
            f"SELECT * FROM {table} WHERE {KEY.get(table, 'cell')} = (SELECT number FROM cells WHERE id = ?)", cell
        )
        return [(cell, *tuple(row)[1:]) for row in found]

    def _numbers(self, cells: Sequence[str]) -> dict[str, int]:
        """The numbers of cells, in the order of these: each store counts its own."""
        rows = self._rows(
            "SELECT id, number FROM cells WHERE id IN (SELECT value FROM json_each(?))", json.dumps(cells)
        )
        found = {row["id"]: row["number"] for row in rows}
        return {cell: found[cell] for cell in cells if cell in found}

    def check(self, *tables: str) -> None:
        """Whether tables hold what was written into them; one that does not is named, never read as data."""
        for table in tables:
            with self._snapshot(), said_plainly(self.path):
                self._check(table, pieces(self._db, f"SELECT * FROM {table}"))

    def checkpoints(self) -> Iterator[tuple[str, list[str], bytes]]:
        """(stack, cells, bytes) of every unfinished stack; a damaged file is named, never read as data."""
        for row in self._rows("SELECT * FROM checkpoints ORDER BY stack"):
            yield row["stack"], json.loads(row["cells"]), get(self.path, row["file"], row["sha256"])

    def damaged(self) -> dict[str, str]:
        """The stacks whose checkpoints can't be read, and why."""
        found = {}
        for row in self._rows("SELECT * FROM checkpoints ORDER BY stack"):
            try:
                get(self.path, row["file"], row["sha256"])
            except CheckFailed as error:
                found[row["stack"]] = str(error)
        return found

    def weights(self, cell: str, selection: str) -> tuple[str, bytes]:
        """(path, bytes) of a finished cell's weights."""
        rows = self._rows(
            "SELECT weights.* FROM weights JOIN cells ON cell = number WHERE id = ? AND selection = ?", cell, selection
        )
        if not rows:
            raise UsageError(f"{self.path} has no weights '{selection}' for cell {cell}")
        return str(self.path / rows[0]["file"]), get(self.path, rows[0]["file"], rows[0]["sha256"])

    def records(self) -> pd.DataFrame:
        """One tidy row per (scale and place in the study, cell, selection, condition, factor level, metric)."""
        return self.tables()[0]

    def tables(self, overall: bool = False) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Records and entries of one moment; `overall` leaves out the records of single levels of factors."""
        with self._snapshot():
            records = self._sealed(
                "overall" if overall else "records", "cell, selection, condition, factor, level, metric"
            )
            entries = self.entries()
        return records_table(records, entries), entries

    def entries(self) -> pd.DataFrame:
        """One row per cell and scale: its place in the study, what it is, how far it is, how it ended."""
        with self._snapshot():
            self.check("cells", "entries")
            return self._frame("""SELECT scale, levels, json_extract(identity, '$.task') AS task,
                json_extract(identity, '$.model') AS model, json_extract(identity, '$.recipe') AS recipe,
                id AS cell, seed, data_seed, status, cells.step, best_step, still_learning, note, cause
                FROM entries JOIN cells ON entries.cell = number LEFT JOIN failures ON failures.cell = number
                ORDER BY scale, position, seed, data_seed, id""")

    def cells(self) -> pd.DataFrame:
        """One row per cell: how far it is, how it ended."""
        with self._snapshot():
            self.check("cells")
            return self._frame(
                "SELECT id AS cell, seed, data_seed, status, step, best_step, still_learning, note "
                "FROM cells ORDER BY seed, data_seed, id"
            )

    def curves(self) -> pd.DataFrame:
        """One row per point of a learning curve, with the place of its cell in the study."""
        with self._snapshot():
            return curves_table(self.points(), self.entries())

    def points(self) -> pd.DataFrame:
        """The same points by the id of their cell alone, for those who know its place: a study may have millions."""
        return self._sealed("curves", "cell, step, condition, metric")

    def spans(self) -> pd.DataFrame:
        """One row per cell and slice: the steps done in it, what they took, and where."""
        return self._named(self._frame("SELECT * FROM spans ORDER BY cell, begin"))

    def failures(self) -> pd.DataFrame:
        """One row per failed cell, with its traceback."""
        return self._named(self._frame("SELECT * FROM failures"))

    def provenance(self) -> pd.DataFrame:
        """One row per cell that has ended: versions, machine, device, seconds and commit behind its records."""
        rows = self._named(self._frame("SELECT cell, facts FROM provenance"))
        facts = pd.DataFrame([json.loads(text) for text in rows.facts], index=rows.index)
        return pd.concat([rows[["cell"]], facts], axis=1)

    def _rows(self, query: str, *values: str | int) -> list[sqlite3.Row]:
        with said_plainly(self.path):
            return self._db.execute(query, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with said_plainly(self.path), self._db:
            yield

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """While inside, all queries see one moment, whatever a writer commits meanwhile."""
        if self._db.in_transaction:
            yield
            return
        with said_plainly(self.path):
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._db.rollback()

    def _sealed(self, table: str, order: str) -> pd.DataFrame:
        """All rows of a table, if they are what was written."""
        with self._snapshot(), said_plainly(self.path):
            found = frame(self._db, f"SELECT * FROM {table} ORDER BY {order}")
            self._check(table, [found])
            return self._named(found)

    def _named(self, found: pd.DataFrame) -> pd.DataFrame:
        """Rows with the ids of their cells in place of the numbers, in the order of the ids: a table of the same
        records is the same, in whatever order its cells were entered.
        """
        self.check("cells")
        # From the table that was checked, not from the index of its ids.
        ids = self._frame("SELECT number, id FROM cells NOT INDEXED").sort_values("id").set_index("number").id
        place = ids.index.get_indexer(pd.Index(found.cell))
        if (place < 0).any():
            raise CheckFailed(f"{self.path / FILE} is damaged: it has rows of a cell that it does not have")
        return found.assign(cell=ids.to_numpy()[place]).iloc[place.argsort(kind="stable")].reset_index(drop=True)

    def _check(self, table: str, parts: Iterable[Columns]) -> None:
        wrong = broken(self._db, table, parts)
        if wrong:
            known = self._rows("SELECT id FROM cells WHERE number = ?", wrong[0])
            cell = known[0]["id"] if known else f"number {wrong[0]}"
            raise CheckFailed(
                f"{self.path / FILE} is damaged: in its {table}, what it holds of cell {cell} is not "
                "what was written. Go back to a copy of it, or run into a new directory"
            )

    def _frame(self, query: str) -> pd.DataFrame:
        with said_plainly(self.path):
            return frame(self._db, query)
