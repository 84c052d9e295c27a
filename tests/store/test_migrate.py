"""Migration: a store that was made before schema 5 holds the same numbers, under ids without the evaluation."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import unseen
from unseen.config import canonical, digest
from unseen.errors import CheckFailed, UsageError
from unseen.store import migrate
from unseen.store.load_model import load_trained
from unseen.store.schema import SCHEMA
from unseen.store.store import Store
from unseen.studies.grid import Grid
from unseen.studies.study import Study

FIXTURES = Path(__file__).parent / "fixtures"
OLD = FIXTURES / "schema4"
"""Made by `make_schema4.py` with the code of schema 4: 3 seeds (the last one unfinished) × 2 widths × 2 evaluations."""


def study(seeds: int = 2) -> Study:
    """The study of the fixture."""

    def grids(scale: str) -> list[Grid]:
        few = {"evaluation": {"splits": ["iid"], "examples": 40}}
        return [
            Grid(
                axes={
                    "tested": {"few": few, "many": {"evaluation": {"examples": 60}}},
                    "width": {4: {"model": {"width": 4}}, 6: {"model": {"width": 6}}},
                },
                base={
                    "task": {"name": "retrieval/T1", "length": 5, "train_size": 100, "evaluation_size": 60},
                    "model": {"name": "lstm"},
                    "recipe": {"steps": 12, "batch": 5, "validate_every": 4, "validation_examples": 40},
                },
                seeds=range(seeds),
            )
        ]

    return Study("old-study", 1, "Does a migrated store hold what the old one held?", {"mini": None}, grids)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OLD, tmp_path / "store"))


def old_cells() -> list[dict[str, Any]]:
    with sqlite3.connect(f"{(OLD / 'store.sqlite').as_uri()}?mode=ro&immutable=1", uri=True) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM cells")]


def old_records() -> pd.DataFrame:
    """The records as the old code printed them, with the names of columns as they are now."""
    table = pd.read_csv(FIXTURES / "schema4.csv", keep_default_na=False, na_values={"value": "", "standard_error": ""})
    return table.rename(columns={"condition": "split", "still_learning": "not_converged"})


KEY = ["tested", "width", "seed", "selection", "split", "factor", "level", "metric"]


def numbers(records: pd.DataFrame) -> list[tuple[Any, ...]]:
    rows = records[[*KEY, "value", "standard_error", "n"]].astype(object).where(records.notna(), None)
    return sorted((tuple(map(str, row[:8])) + tuple(row[8:]) for row in rows.itertuples(index=False)), key=str)


def test_a_new_id_is_the_old_identity_without_the_evaluation() -> None:
    for cell in old_cells():
        identity = json.loads(cell["identity"])
        assert cell["id"] == hashlib.sha256(canonical(identity).encode()).hexdigest()[:16]
        del identity["evaluation"]
        same = [e.trial for e in study(3).entries("mini") if e.trial.identity == canonical(identity)]
        assert len(same) == 2 and {trial.id for trial in same} == {digest(identity)}


def test_every_record_is_there_once_under_its_levels(old: Path) -> None:
    with Store.write(old) as store:
        records = store.records()
        trials = store.trials()
    assert numbers(records) == numbers(old_records())
    assert len(trials) == 6 and set(trials.status) == {"finished", "pending", "failed"}
    assert (trials.status == "finished").sum() == 4
    assert set(trials[trials.status != "finished"].step) == {0}


def test_the_old_database_stays_beside_the_new_one(old: Path) -> None:
    before = (old / "store.sqlite").read_bytes()
    Store.write(old).close()
    assert (old / "store.sqlite.schema4").read_bytes() == before
    with sqlite3.connect(old / "store.sqlite") as database:
        assert database.execute("PRAGMA user_version").fetchone() == (SCHEMA,)
    assert not list(old.glob("*.migrating"))


def test_reading_writes_nothing_into_the_directory(old: Path) -> None:
    before = {file: file.read_bytes() for file in old.rglob("*") if file.is_file()}
    assert numbers(unseen.results(old)) == numbers(old_records())
    assert {file: file.read_bytes() for file in old.rglob("*") if file.is_file()} == before


def test_a_migrated_study_continues_to_the_numbers_of_a_new_one(old: Path, tmp_path: Path) -> None:
    continued = unseen.run(study(), old, seeds=3, executor="inline", progress="none", retry_failed=True)
    new = unseen.run(study(), tmp_path / "new", seeds=3, executor="inline", progress="none")
    # Not the seeds that ended before: the fixture was made without the settings of MKL that the tests have.
    assert numbers(continued[continued.seed == 2]) == numbers(new[new.seed == 2])
    with Store.read(old) as store:
        assert set(store.status().values()) == {"finished"} and len(store.status()) == 6
        finished = store.trials().trial[0]
        assert load_trained(old, trial=finished).module is not None


@pytest.mark.parametrize("moment", ["copyfile", "fsync", "replace"])
def test_a_kill_during_the_migration_loses_nothing(old: Path, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def die(*arguments: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        if moment == "replace":
            patch.setattr(Path, "replace", die)
        else:
            patch.setattr(shutil if moment == "copyfile" else os, moment, die)
        with pytest.raises(Killed):
            Store.write(old)
    with Store.write(old) as store:
        assert numbers(store.records()) == numbers(old_records())


def test_the_new_database_is_synced_before_it_takes_the_place(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    fsync = os.fsync
    replace = Path.replace

    def recorded(descriptor: int) -> None:
        events.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    def renamed(self: Path, target: Path) -> Path:
        events.append(f"rename {self.name}")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", recorded)
    monkeypatch.setattr(Path, "replace", renamed)
    migrate.migrate_file(old)
    assert events == [
        "store.sqlite.schema4",
        "store.sqlite.migrating",
        "store",
        "rename store.sqlite.migrating",
        "store",
    ]


@pytest.mark.parametrize("change", ["UPDATE records SET value = 0.123", "UPDATE cells SET step = 7"])
def test_a_damaged_old_store_is_not_migrated(old: Path, change: str) -> None:
    with sqlite3.connect(old / "store.sqlite") as database:
        database.execute(change)
    for opened in (Store.read, Store.write):
        with pytest.raises(CheckFailed, match="is damaged"):
            opened(old)
    assert not (old / "store.sqlite.schema4").exists()


@pytest.mark.parametrize(("version", "age"), [(SCHEMA + 1, "a newer"), (3, "an older")])
def test_other_schemas_are_refused(old: Path, version: int, age: str) -> None:
    with sqlite3.connect(old / "store.sqlite") as database:
        database.execute(f"PRAGMA user_version = {version}")
    for opened in (Store.read, Store.write):
        with pytest.raises(UsageError, match=f"written by {age} release"):
            opened(old)
