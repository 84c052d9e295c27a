"""Migration of a store from schema 4, in which a trial (then: a cell) had its evaluation in its id.

Cells that differ only in their evaluation become one trial with several evaluations. A trial has ended if all its cells
had. One that had not is trained again from step 0, to the same bits: its checkpoints name members by the old ids and are
not carried over. Records of cells that had ended are kept in any case.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any

from unseen.config import canonical, digest
from unseen.errors import CheckFailed
from unseen.files import sync
from unseen.store.checksums import row_sums, write_checksums
from unseen.store.schema import CHECKED, FILE, OLDEST, create_tables

_ENDED = ("finished", "stopped", "diverged")
_COLUMNS = {"cell": "trial", "condition": "split", "still_learning": "not_converged"}
_OLD_TABLES = ("cells", "entries", "curves", "records")


def migrate_in_memory(path: Path, old: sqlite3.Connection) -> sqlite3.Connection:
    """The migrated database of a store that is only read: nothing is written into its directory."""
    new = sqlite3.connect(":memory:")
    _copy(path, old, new)
    old.close()
    return new


def migrate_file(path: Path) -> None:
    """Replace the database of a store by its migrated one; the old one stays beside it (`store.sqlite.schema4`).

    Safe against a kill at any moment: until the last rename the old database is in place, and the next writer begins
    again. The caller holds the store's lock.
    """
    file = path / FILE
    old = sqlite3.connect(file)
    # Everything into the one file: a write-ahead log left behind would be applied to the new database.
    old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    old.execute("PRAGMA journal_mode = DELETE")
    temporary = path / f"{FILE}.migrating"
    temporary.unlink(missing_ok=True)
    new = sqlite3.connect(temporary)
    _copy(path, old, new)
    new.close()
    old.close()
    backup = path / f"{FILE}.schema{OLDEST}"
    # Copied, not renamed: at every moment there is a whole database under the store's name.
    shutil.copyfile(file, backup)
    sync(backup)
    sync(temporary)
    sync(path)
    temporary.replace(file)
    sync(path)


def _copy(path: Path, old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    """Fill an empty database with the contents of one of schema 4."""
    old.row_factory = sqlite3.Row
    _check_old(path, old)
    create_tables(new)
    cells = list(map(dict, old.execute("SELECT * FROM cells ORDER BY number")))
    by_trial: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for cell in cells:
        identity = json.loads(cell["identity"])
        cell["evaluation"] = canonical(_new_evaluation(identity.pop("evaluation")))
        cell["identity"] = canonical(identity)
        by_trial[digest(identity)].append(cell)
    evaluations: dict[str, int] = {}
    for cell in cells:
        evaluations.setdefault(cell["evaluation"], len(evaluations) + 1)
    with new:
        for key, value in old.execute("SELECT key, value FROM meta"):
            new.execute("INSERT INTO meta VALUES (?, ?)", (key, _new_work(value) if key == "work" else value))
        for text, number in evaluations.items():
            new.execute("INSERT INTO evaluations VALUES (?, ?, ?)", (number, digest(json.loads(text)), text))
        for number, (trial, same) in enumerate(by_trial.items(), 1):
            _copy_trial(old, new, number, trial, same, evaluations)
        write_checksums(new, CHECKED, range(1, len(by_trial) + 1))


def _copy_trial(
    old: sqlite3.Connection,
    new: sqlite3.Connection,
    number: int,
    trial: str,
    cells: list[dict[str, Any]],
    evaluations: dict[str, int],
) -> None:
    ended = all(cell["status"] in _ENDED for cell in cells)
    failed = [cell for cell in cells if cell["status"] == "failed"]
    first = (failed or cells)[0]
    columns = ("identity", "seed", "data_seed", "status", "step", "best_step", "still_learning", "note")
    values = [first[column] for column in columns]
    if not ended:  # trained again from step 0: see above
        values[3:] = ["failed" if failed else "pending", 0, None, None, ""]
    new.execute("INSERT INTO trials VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (number, trial, *values))
    # Two cells of one trial were trained twice, to the same bits: everything but the records is taken from the first.
    tables = {"curves": "curves", "spans": "chunks", "weights": "weights", "provenance": "provenance"}
    for old_table, table in tables.items() if ended else ():
        _copy_rows(old, new, old_table, table, first["number"], (number,))
    if failed:
        _copy_rows(old, new, "failures", "failures", first["number"], (number,))
    for cell in cells:
        evaluation = evaluations[cell["evaluation"]]
        _copy_rows(old, new, "records", "records", cell["number"], (number, evaluation))
        rows = old.execute("SELECT scale, position, levels FROM entries WHERE cell = ?", (cell["number"],)).fetchall()
        new.executemany(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?)",
            [(number, scale, evaluation, position, levels) for scale, position, levels in rows],
        )


def _copy_rows(
    old: sqlite3.Connection, new: sqlite3.Connection, source: str, target: str, cell: int, key: tuple[int, ...]
) -> None:
    """The rows of a cell, with the new key in place of the number of the cell."""
    rows = [(*key, *tuple(row)[1:]) for row in old.execute(f"SELECT * FROM {source} WHERE cell = ?", (cell,))]
    if rows:
        new.executemany(f"INSERT INTO {target} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def _new_evaluation(identity: dict[str, Any]) -> dict[str, Any]:
    """The identity of an evaluation as it is now: its option `conditions` is called `splits`."""
    return {"splits" if key == "conditions" else key: value for key, value in identity.items()}


def _new_work(text: str) -> str:
    work = json.loads(text)
    if "evaluation" in work:
        work["evaluation"] = _new_evaluation(work["evaluation"])
    return canonical(work)


def _check_old(path: Path, old: sqlite3.Connection) -> None:
    """Refuse a damaged database: its checksums would be written anew, and the damage would never be noticed."""
    for table in _OLD_TABLES:
        cursor = old.execute(f"SELECT * FROM {table}")
        names = [_COLUMNS.get(column[0], column[0]) for column in cursor.description]
        rows = list(map(tuple, cursor))
        sums = row_sums([dict(zip(names, zip(*rows, strict=True), strict=True))]) if rows else {}
        expected = {row["cell"]: row["sum"] for row in old.execute("SELECT * FROM seals WHERE of = ?", (table,))}
        for cell in sorted({*sums, *expected}):
            if expected.get(cell) != f"{sums.get(cell, 0):016x}":
                raise CheckFailed(
                    f"{path / FILE} is damaged: in its {table}, the rows of run number {cell} are not those that were "
                    "written. Go back to a copy of it, or run into a new directory"
                )
