"""Another stack size, another grouping, another executor, resumed or not: identical records."""

from __future__ import annotations

from pathlib import Path

import pytest

import unseen
from support.small import STUDY, tables
from unseen.running.runner import Settings, run_entries
from unseen.store.store import Store

QUIET = {"progress": "none"}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "undisturbed"
    unseen.run(STUDY, path, scale="smoke", executor="inline", **QUIET)
    return path


@pytest.mark.parametrize("size", [1, 3, 8])
def test_any_stack_size(undisturbed: Path, tmp_path: Path, size: int) -> None:
    unseen.run(STUDY, tmp_path / "r", scale="smoke", executor="inline", stack=size, **QUIET)
    assert tables(tmp_path / "r") == tables(undisturbed)


def test_any_grouping_and_order(undisturbed: Path, tmp_path: Path) -> None:
    """Trials entered in several goes, in another order, so that other trials meet in a stack."""
    entries = STUDY.entries("smoke")
    parts = [entries[1::3], entries[2::3], entries]
    with Store.write(tmp_path / "r") as store:
        store.set_work({"study": "small@1"})
        store.add(entries, "smoke")
        for part in parts:
            pending = [e for e in reversed(part) if store.status()[e.trial.id] == "pending"]
            run_entries(pending, _Any(store), Settings(size=5, progress="none"), "", "smoke")
    assert tables(tmp_path / "r") == tables(undisturbed)


class _Any:
    """A store whose entries are all there already: part of a study may be run alone."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, entries: object, scale: str) -> None:
        """Nothing to enter."""

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


def test_local_workers_with_many_short_chunks(undisturbed: Path, tmp_path: Path) -> None:
    unseen.run(STUDY, tmp_path / "r", scale="smoke", workers=2, chunk_seconds=0.05, stack=3, **QUIET)
    assert tables(tmp_path / "r") == tables(undisturbed)
    with Store.read(tmp_path / "r") as store:
        assert store.spans().groupby("trial").size().max() > 1


def test_begun_in_this_process_and_ended_in_others(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, commits = Store.commit, 0

    def third_fails(self: Store, *given: object) -> None:
        nonlocal commits
        commits += 1
        if commits == 3:
            raise KeyboardInterrupt
        commit(self, *given)

    monkeypatch.setattr(Store, "commit", third_fails)
    with pytest.raises(KeyboardInterrupt):
        unseen.run(STUDY, tmp_path / "r", scale="smoke", executor="inline", chunk_seconds=0.02, stack=4, **QUIET)
    monkeypatch.undo()
    with Store.read(tmp_path / "r") as store:
        assert len(list(store.checkpoints())) > 0
    unseen.run(STUDY, tmp_path / "r", scale="smoke", workers=2, **QUIET)
    assert tables(tmp_path / "r") == tables(undisturbed)
