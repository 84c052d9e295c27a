"""Seals: a checksum of what the rows of each cell said when they were written. SQLite notices a page that is no page
any more, but not a number that has become another one.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

KEY = {"cells": "number"}
"""The column with the number of the cell, where it is not `cell`; it is always the first."""
_NUMBERS = {
    "cell",
    "number",
    "seed",
    "data_seed",
    "step",
    "best_step",
    "still_learning",
    "position",
    "value",
    "standard_error",
    "n",
}
AT_ONCE, CELLS = 5_000, 500
"""Rows that are held in memory where a table is checked, and cells where many are sealed."""
_ODD = np.uint64(0x9E3779B97F4A7C15)


Columns = pd.DataFrame | Mapping[str, Sequence[Any]]
"""Rows of a table, by column. pandas is quick with many of them, and takes a millisecond a column for a few."""


def frame(database: sqlite3.Connection, query: str) -> pd.DataFrame:
    """All that a query finds."""
    cursor = _ask(database, query)
    return pd.DataFrame(cursor.fetchall(), columns=[c[0] for c in cursor.description])


def pieces(database: sqlite3.Connection, query: str, *values: str) -> Iterator[dict[str, tuple[Any, ...]]]:
    """What a query finds, some rows at a time."""
    cursor = _ask(database, query, *values)
    while rows := cursor.fetchmany(AT_ONCE):
        yield dict(zip([c[0] for c in cursor.description], zip(*rows, strict=True), strict=True))


def _ask(database: sqlite3.Connection, query: str, *values: str) -> sqlite3.Cursor:
    cursor = database.cursor()
    cursor.row_factory = None  # plain tuples: what both take fastest
    return cursor.execute(query, values)


def seal(database: sqlite3.Connection, tables: Sequence[str], cells: Collection[int]) -> None:
    """Note what tables hold of these cells, given by their numbers; part of the transaction that wrote it."""
    every = list(cells)
    for some in (every[start : start + CELLS] for start in range(0, len(every), CELLS)):
        for table in tables:
            query = f"SELECT * FROM {table} WHERE {KEY.get(table, 'cell')} IN (SELECT value FROM json_each(?))"
            found = dict.fromkeys(some, 0) | _sums(pieces(database, query, json.dumps(some)))
            database.executemany(
                "INSERT OR REPLACE INTO seals VALUES (?, ?, ?)",
                [(cell, table, _text(total)) for cell, total in found.items()],
            )


def broken(database: sqlite3.Connection, table: str, parts: Iterable[Columns]) -> list[int]:
    """The numbers of the cells whose rows in a table, all of it in parts, are not those that were sealed; both seen at
    one moment.
    """
    held = dict(_ask(database, "SELECT cell, sum FROM seals WHERE of = ?", table))
    found = _sums(parts)
    return sorted(cell for cell in {*held, *found} if held.get(cell) != _text(found.get(cell, 0)))


def _sums(parts: Iterable[Columns]) -> dict[int, int]:
    """A number for each cell, which a change of any of its values changes: the sum of one for each of its rows."""
    found: dict[int, int] = {}
    for part in parts:
        for cell, total in _added(part):
            found[cell] = (found.get(cell, 0) + total) % 2**64
    return found


def _added(part: Columns) -> Iterator[tuple[int, int]]:
    """What some rows add to the number of each cell that they are of."""
    columns = dict(part.items())
    first = next(iter(columns.values()))
    words = np.zeros(len(first), np.uint64)
    for name, column in columns.items():
        words = (words ^ _words(column, name in _NUMBERS)) * _ODD
        words ^= words >> np.uint64(32)
    places, cells = _places(first)
    sums = np.zeros(len(cells), np.uint64)
    np.add.at(sums, places, words)
    return zip(map(int, cells), sums.tolist(), strict=True)


def _text(total: int) -> str:
    return f"{total:016x}"  # SQLite's whole numbers have a sign


def _words(column: Collection[Any], number: bool) -> NDArray[np.uint64]:
    """64 bits for each value: those of a number, a hash of a text."""
    if number:
        return np.asarray(column, np.float64).view(np.uint64)
    places, texts = _places(column)
    hashes = [hashlib.blake2b(repr(text).encode(), digest_size=8).digest() for text in texts]
    return np.array([int.from_bytes(h, "little") for h in hashes], np.uint64)[places]


def _places(column: Collection[Any]) -> tuple[NDArray[np.int64], Collection[Any]]:
    """The different values, and where among them each one is."""
    if isinstance(column, pd.Series):
        return pd.factorize(column, use_na_sentinel=False)
    place = {text: i for i, text in enumerate(dict.fromkeys(column))}
    return np.fromiter(map(place.__getitem__, column), np.int64, len(column)), place
