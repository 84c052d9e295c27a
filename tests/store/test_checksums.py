"""Checksums: the quick computation against pandas, piece by piece, and every change is noticed."""

from __future__ import annotations

import hashlib
import sqlite3
from typing import Any

import numpy as np
import pandas as pd
import pytest

from unseen.store import checksums
from unseen.store.checksums import find_damaged, frame, pieces, write_checksums

NAMES = ["trial", "split", "metric", "value", "n"]
NUMBERS = {"trial", "value", "n"}
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
    of, trials = pd.factorize(rows.iloc[:, 0])
    sums = np.zeros(len(trials), np.uint64)
    np.add.at(sums, of, words)
    return dict(zip(trials, sums.tolist(), strict=True))


@pytest.fixture
def database() -> sqlite3.Connection:
    found = sqlite3.connect(":memory:")
    found.execute("CREATE TABLE records (trial INTEGER, split TEXT, metric TEXT, value REAL, n INTEGER)")
    found.execute("CREATE TABLE checksums (trial INTEGER, source TEXT, sum TEXT, PRIMARY KEY (trial, source))")
    found.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?)", ROWS)
    return found


def stored(database: sqlite3.Connection) -> dict[int, int]:
    return {trial: int(total, 16) for trial, total in database.execute("SELECT trial, sum FROM checksums")}


def test_the_numbers_are_those_of_pandas(database: sqlite3.Connection) -> None:
    write_checksums(database, ("records",), sorted({row[0] for row in ROWS}))
    assert stored(database) == by_pandas(pd.DataFrame(ROWS, columns=NAMES))


def test_trial_without_rows_has_a_checksum(database: sqlite3.Connection) -> None:
    write_checksums(database, ("records",), [99])
    assert stored(database) == {99: 0}


@pytest.mark.parametrize("at_once", [1, 3, 499, 500])
def test_pieces_of_rows_do_not_matter(
    database: sqlite3.Connection, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checksums, "ROWS_AT_ONCE", at_once)
    monkeypatch.setattr(checksums, "TRIALS_AT_ONCE", at_once)
    write_checksums(database, ("records",), sorted({row[0] for row in ROWS}))
    assert stored(database) == by_pandas(pd.DataFrame(ROWS, columns=NAMES))
    parts = list(pieces(database, "SELECT * FROM records"))
    sizes = [len(part["trial"]) for part in parts]
    assert max(sizes) == at_once and sum(sizes) == 500
    for some in (parts, [frame(database, "SELECT * FROM records")]):
        assert find_damaged(database, "records", some) == []


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
def test_every_change_breaks_the_checksum_of_its_trial(database: sqlite3.Connection, change: str) -> None:
    write_checksums(database, ("records",), sorted({row[0] for row in ROWS}))
    assert database.execute("SELECT trial FROM records WHERE rowid = 7").fetchone() == (1,)
    database.execute(change)
    for parts in (pieces(database, "SELECT * FROM records"), [frame(database, "SELECT * FROM records")]):
        assert find_damaged(database, "records", parts) == [1]
