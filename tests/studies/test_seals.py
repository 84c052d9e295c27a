"""Seals: the quick way to their numbers against pandas, and what is held in memory to find them."""

from __future__ import annotations

import hashlib
import sqlite3
from typing import Any

import numpy as np
import pandas as pd
import pytest

from unseen.studies import seals
from unseen.studies.seals import broken, frame, pieces, seal

NAMES = ["cell", "condition", "metric", "value", "n"]
NUMBERS = {"cell", "value", "n"}
ROWS: list[tuple[Any, ...]] = [
    (i * i % 7, ["iid", "ood/größer", ""][i % 3], f"metric {i % 5}", None if i % 11 == 0 else i / 7, i % 4)
    for i in range(500)
]


def by_pandas(rows: pd.DataFrame) -> dict[int, int]:
    """The same numbers with the means of pandas; stores that exist have them."""
    odd, words = np.uint64(0x9E3779B97F4A7C15), np.zeros(len(rows), np.uint64)
    for column in rows:
        if column in NUMBERS:
            bits = rows[column].to_numpy(np.float64, na_value=np.nan).view(np.uint64)
        else:
            places, texts = pd.factorize(rows[column], use_na_sentinel=False)
            hashes = [hashlib.blake2b(repr(text).encode(), digest_size=8).digest() for text in texts]
            bits = np.array([int.from_bytes(h, "little") for h in hashes], np.uint64)[places]
        words = (words ^ bits) * odd
        words ^= words >> np.uint64(32)
    of, cells = pd.factorize(rows.iloc[:, 0])
    sums = np.zeros(len(cells), np.uint64)
    np.add.at(sums, of, words)
    return dict(zip(cells, sums.tolist(), strict=True))


@pytest.fixture
def database() -> sqlite3.Connection:
    found = sqlite3.connect(":memory:")
    found.execute("CREATE TABLE records (cell INTEGER, condition TEXT, metric TEXT, value REAL, n INTEGER)")
    found.execute("CREATE TABLE seals (cell INTEGER, of TEXT, sum TEXT, PRIMARY KEY (cell, of))")
    found.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?)", ROWS)
    return found


def sealed(database: sqlite3.Connection) -> dict[int, int]:
    return {cell: int(total, 16) for cell, total in database.execute("SELECT cell, sum FROM seals")}


def test_the_numbers_are_those_of_pandas(database: sqlite3.Connection) -> None:
    seal(database, ("records",), sorted({row[0] for row in ROWS}))
    assert sealed(database) == by_pandas(pd.DataFrame(ROWS, columns=NAMES))


def test_a_cell_without_rows_is_sealed_too(database: sqlite3.Connection) -> None:
    seal(database, ("records",), [99])
    assert sealed(database) == {99: 0}


@pytest.mark.parametrize("at_once", [1, 3, 499, 500])
def test_the_parts_in_which_rows_come_do_not_matter(
    database: sqlite3.Connection, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "AT_ONCE", at_once)
    monkeypatch.setattr(seals, "CELLS", at_once)
    seal(database, ("records",), sorted({row[0] for row in ROWS}))
    assert sealed(database) == by_pandas(pd.DataFrame(ROWS, columns=NAMES))
    parts = list(pieces(database, "SELECT * FROM records"))
    sizes = [len(part["cell"]) for part in parts]
    assert max(sizes) == at_once and sum(sizes) == 500
    for some in (parts, [frame(database, "SELECT * FROM records")]):
        assert broken(database, "records", some) == []


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE records SET value = value + 1e-12 WHERE rowid = 7",
        "UPDATE records SET metric = 'x' WHERE rowid = 7",
        "DELETE FROM records WHERE rowid = 7",
        "INSERT INTO records VALUES (1, '', '', 0, 0)",
        "UPDATE records SET value = NULL WHERE rowid = 7",
    ],
)
def test_a_change_breaks_the_seal_of_its_cell(database: sqlite3.Connection, change: str) -> None:
    seal(database, ("records",), sorted({row[0] for row in ROWS}))
    assert database.execute("SELECT cell FROM records WHERE rowid = 7").fetchone() == (1,)
    database.execute(change)
    for parts in (pieces(database, "SELECT * FROM records"), [frame(database, "SELECT * FROM records")]):
        assert broken(database, "records", parts) == [1]
