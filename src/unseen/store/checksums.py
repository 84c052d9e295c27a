"""Checksums of the rows of each trial. SQLite notices a broken page, but not a number that has become another one."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

KEY = {"trials": "number"}
"""The column with the number of the trial, where it is not `trial`; it is always the first."""
_NUMERIC = {
    *("trial", "number", "evaluation", "position", "seed", "data_seed", "step", "best_step", "not_converged"),
    *("value", "standard_error", "n"),
}
ROWS_AT_ONCE = 5_000
"""How many rows are in memory while a table is checked."""
TRIALS_AT_ONCE = 500
"""Of how many trials the rows are in memory while checksums are written."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""An odd factor, so that multiplying by it (modulo 2^64) loses no bits: 2^64 divided by the golden ratio."""


class NotANumber(ValueError):
    """A column of numbers holds something else: SQLite accepts a text or a blob in any column."""

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column


Columns = pd.DataFrame | Mapping[str, Sequence[Any]]
"""Rows of a table, by column. pandas is quick with many of them, and takes a millisecond a column for a few."""


def frame(database: sqlite3.Connection, query: str) -> pd.DataFrame:
    """The result of a query as a table."""
    cursor = _ask(database, query)
    return pd.DataFrame(cursor.fetchall(), columns=[column[0] for column in cursor.description])


def pieces(database: sqlite3.Connection, query: str, *values: str) -> Iterator[dict[str, tuple[Any, ...]]]:
    """The result of a query by column, some rows at a time."""
    cursor = _ask(database, query, *values)
    names = [column[0] for column in cursor.description]
    while rows := cursor.fetchmany(ROWS_AT_ONCE):
        yield dict(zip(names, zip(*rows, strict=True), strict=True))


def _ask(database: sqlite3.Connection, query: str, *values: str) -> sqlite3.Cursor:
    cursor = database.cursor()
    cursor.row_factory = None  # plain tuples are fastest
    return cursor.execute(query, values)


def write_checksums(database: sqlite3.Connection, tables: Sequence[str], trials: Collection[int]) -> None:
    """Write the checksums of these trials, given by their numbers; part of the transaction that wrote their rows."""
    numbers = list(trials)
    for start in range(0, len(numbers), TRIALS_AT_ONCE):
        some = numbers[start : start + TRIALS_AT_ONCE]
        for table in tables:
            query = f"SELECT * FROM {table} WHERE {KEY.get(table, 'trial')} IN (SELECT value FROM json_each(?))"
            # A trial without rows has the checksum 0, so that rows which appear in it later are noticed.
            sums = dict.fromkeys(some, 0) | row_sums(pieces(database, query, json.dumps(some)))
            database.executemany(
                "INSERT OR REPLACE INTO checksums VALUES (?, ?, ?)",
                [(trial, table, _format(total)) for trial, total in sums.items()],
            )


def find_damaged(database: sqlite3.Connection, table: str, rows: Iterable[Columns]) -> list[int]:
    """The numbers of the trials whose rows in a table (all of it, in pieces) do not have the checksum that was written.

    The caller's transaction makes sure that both are of one moment.
    """
    expected = dict(_ask(database, "SELECT trial, sum FROM checksums WHERE source = ?", table))
    sums = row_sums(rows)
    damaged = [trial for trial in {*expected, *sums} if expected.get(trial) != _format(sums.get(trial, 0))]
    # In a damaged database the number of a trial may be anything, a text or bytes too.
    return sorted(damaged, key=lambda trial: (isinstance(trial, int), trial if isinstance(trial, int) else repr(trial)))


def row_sums(pieces_of_rows: Iterable[Columns]) -> dict[int, int]:
    """A number for each trial that changes with any of its values: the sum, modulo 2^64, of one hash per row."""
    sums: dict[int, int] = {}
    for columns in pieces_of_rows:
        by_name = dict(columns.items())
        first = next(iter(by_name.values()))
        hashes = np.zeros(len(first), np.uint64)
        for name, column in by_name.items():
            # Multiply and fold, so that every column, its position included, has an effect on all bits.
            try:
                bits = _bits(column, name in _NUMERIC)
            except (ValueError, TypeError, OverflowError) as error:
                raise NotANumber(str(name)) from error
            hashes = (hashes ^ bits) * _ODD
            hashes ^= hashes >> np.uint64(32)
        positions, trials = _factorize(first)
        totals = np.zeros(len(trials), np.uint64)
        # A sum does not depend on the order of the rows, in which SQLite may return them as it likes.
        np.add.at(totals, positions, hashes)
        for trial, total in zip(map(int, trials), totals.tolist(), strict=True):
            sums[trial] = (sums.get(trial, 0) + total) % 2**64
    return sums


def _format(total: int) -> str:
    return f"{total:016x}"  # as text: SQLite's whole numbers have a sign


def _bits(column: Collection[Any], numeric: bool) -> NDArray[np.uint64]:
    """64 bits for each value: those of a number, a hash of a text."""
    if numeric:
        # As floats throughout: SQLite returns a whole REAL as a float and an INTEGER as an int. Seeds beyond 2^53 lose
        # their last bits here, but they are in the identity as text.
        return np.asarray(column, np.float64).view(np.uint64)
    positions, texts = _factorize(column)
    # `repr` tells None from the text "None", and 1 from "1".
    digests = [hashlib.blake2b(repr(text).encode(), digest_size=8).digest() for text in texts]
    return np.array([int.from_bytes(digest, "little") for digest in digests], np.uint64)[positions]


def _factorize(column: Collection[Any]) -> tuple[NDArray[np.int64], Collection[Any]]:
    """The position of each value among the different values, and these."""
    if isinstance(column, pd.Series):
        return pd.factorize(column, use_na_sentinel=False)
    position = {value: i for i, value in enumerate(dict.fromkeys(column))}
    return np.fromiter(map(position.__getitem__, column), np.int64, len(column)), position
