"""Seals: a checksum of what the rows of each cell said when they were written. SQLite notices a page that is no page
any more, but not a number that has become another one.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Collection, Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

KEY = {"cells": "id"}
"""The column that names the cell, where it is not `cell`; it is always the first."""
_NUMBERS = {"seed", "data_seed", "step", "best_step", "still_learning", "position", "value", "standard_error", "n"}
_ODD = np.uint64(0x9E3779B97F4A7C15)


def seal(database: sqlite3.Connection, tables: Iterable[str], cells: Collection[str]) -> None:
    """Note what tables hold of these cells; part of the transaction that wrote it."""
    for table in tables:
        query = f"SELECT * FROM {table} WHERE {KEY.get(table, 'cell')} IN (SELECT value FROM json_each(?))"
        found = dict.fromkeys(cells, 0) | _sums(frame(database, query, json.dumps(list(cells))))
        database.executemany("INSERT OR REPLACE INTO seals VALUES (?, ?, ?)",
                             [(table, cell, _text(number)) for cell, number in found.items()])


def broken(database: sqlite3.Connection, table: str, rows: pd.DataFrame) -> list[str]:
    """The cells whose rows in a table are not those that were sealed; both seen at one moment."""
    held = dict(database.execute("SELECT cell, sum FROM seals WHERE of = ?", (table,)))
    found = _sums(rows)
    return sorted(cell for cell in {*held, *found} if held.get(cell) != _text(found.get(cell, 0)))


def frame(database: sqlite3.Connection, query: str, *values: str) -> pd.DataFrame:
    """What a query finds."""
    cursor = database.cursor()
    cursor.row_factory = None  # plain tuples: what pandas takes fastest
    rows = cursor.execute(query, values).fetchall()
    return pd.DataFrame(rows, columns=[c[0] for c in cursor.description])


def _sums(rows: pd.DataFrame) -> dict[str, int]:
    """A number for each cell, which a change of any of its values changes."""
    words = np.zeros(len(rows), np.uint64)
    for column in rows:
        words = (words ^ _words(rows[column], column in _NUMBERS)) * _ODD
        words ^= words >> np.uint64(32)
    places, cells = pd.factorize(rows.iloc[:, 0])
    sums = np.zeros(len(cells), np.uint64)
    np.add.at(sums, places, words)
    return dict(zip(cells, sums.tolist(), strict=True))


def _text(number: int) -> str:
    return f"{number:016x}"  # SQLite's whole numbers have a sign


def _words(column: pd.Series, number: bool) -> NDArray[np.uint64]:
    """64 bits for each value: those of a number, a hash of a text."""
    if number:
        return column.to_numpy(np.float64, na_value=np.nan).view(np.uint64)
    places, texts = pd.factorize(column, use_na_sentinel=False)
    hashes = [hashlib.blake2b(repr(text).encode(), digest_size=8).digest() for text in texts]
    return np.array([int.from_bytes(h, "little") for h in hashes], np.uint64)[places]
