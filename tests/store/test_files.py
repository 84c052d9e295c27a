"""Atomic writing: the bytes and the new name are synced, in this order, before anything else relies on them."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from support.small_trials import enter, finished, trial
from unseen.files import replace_atomically, write_atomically
from unseen.store.schema import Outcome
from unseen.store.store import Store


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is synced and renamed from now on, in order."""
    log: list[str] = []
    fsync = os.fsync
    replace = Path.replace

    def recorded(descriptor: int) -> None:
        log.append(f"sync {Path(f'/proc/self/fd/{descriptor}').readlink().name}")
        fsync(descriptor)

    def renamed(self: Path, target: Path) -> Path:
        log.append(f"rename {self.name} to {target.name}")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", recorded)
    monkeypatch.setattr(Path, "replace", renamed)
    return log


def test_the_file_is_synced_then_renamed_then_its_folder_is_synced(tmp_path: Path, events: list[str]) -> None:
    write_atomically(tmp_path / "table.json", "größer")
    temporary = f"table.json.{os.getpid()}.partial"
    assert events == [f"sync {temporary}", f"rename {temporary} to table.json", f"sync {tmp_path.name}"]
    assert (tmp_path / "table.json").read_bytes() == "größer".encode()
    assert [file.name for file in tmp_path.iterdir()] == ["table.json"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_atomically(tmp_path / "table.json", b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(tmp_path / "table.json", b"new")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("table.json", b"old")]


def test_what_a_library_writes_is_synced_and_renamed_too_and_an_interrupt_leaves_the_old_file(
    tmp_path: Path, events: list[str]
) -> None:
    path = tmp_path / "figure.svg"
    with replace_atomically(path) as temporary:
        temporary.write_text("old")
    assert [event.split()[0] for event in events] == ["sync", "rename", "sync"]
    with pytest.raises(KeyboardInterrupt), replace_atomically(path) as temporary:
        temporary.write_text("half of the n")
        raise KeyboardInterrupt
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("figure.svg", "old")]


def test_a_commit_names_weights_and_checkpoints_only_after_they_were_synced(tmp_path: Path, events: list[str]) -> None:
    class Recording(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            return super().execute(sql, *values)

        def __exit__(self, *error: Any) -> Any:
            events.append("commit")
            return super().__exit__(*error)

    one = trial()
    with Store.write(tmp_path / "s") as store:
        enter(store, one)
        store._db.close()
        store._db = sqlite3.connect(tmp_path / "s" / "store.sqlite", factory=Recording)
        store._db.row_factory = sqlite3.Row
        events.clear()
        store.commit("stack", [one.id], Outcome(1, b"checkpoint", finished={one.id: finished()}))
    kinds = [event.split()[0] for event in events]
    # Weights and checkpoint: the file, its name, its folder; then the one transaction that names both. That a checkpoint
    # will be written is announced before, so that one which a kill leaves behind is known to be ours.
    assert kinds == ["sync", "rename", "sync", "commit", "sync", "rename", "sync", "commit"]
    assert [event for event in events if event.startswith("sync") and "partial" not in event] == [
        "sync weights",
        "sync checkpoints",
    ]
