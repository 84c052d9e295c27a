"""What a commit costs does not grow with what the store holds: counted, not timed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from unseen.store.schema import Finished, Outcome, Span
from unseen.store.store import Store
from unseen.studies.grid import Grid
from unseen.studies.trial import evaluation_id
from unseen.training.evaluate import Measure
from unseen.training.recipe import Evaluation
from unseen.training.trainer import Point

TRIALS = 200
PAGE = 4096


@contextmanager
def instructions(store: Store) -> Iterator[list[int]]:
    """While inside, counts what SQLite's virtual machine does: a look-up by key is one instruction, a scan many."""
    done = [0]

    def count() -> int:
        done[0] += 1
        return 0

    store._db.set_progress_handler(count, 1)
    try:
        yield done
    finally:
        store._db.set_progress_handler(None, 0)


def commit(store: Store, trial: str) -> None:
    """A stack of one that begins, and comes to its end with weights."""
    measures = [Measure("iid", "", "", "accuracy", 0.75, 0.004, 100)]
    ended = Finished(
        "finished", 2, 1, False, "", {evaluation_id(Evaluation()): {"last": measures}}, {"last": b"weights"}, {}
    )
    points = [Point(trial, step, "iid", "accuracy", 0.5) for step in (1, 2)]
    store.commit(trial, [trial], Outcome(1, b"checkpoint", points[:1], {trial: Span(0, 1, 0.5, 0.4, "here:1")}))
    store.commit(trial, [trial], Outcome(2, None, points[1:], {trial: Span(1, 2, 0.5, 0.4, "here:1")}, {trial: ended}))


def test_a_commit_does_as_much_in_a_full_store_as_in_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = Grid({}, {"task": {"name": "retrieval/T1"}, "model": {"name": "lstm"}}, range(TRIALS)).entries()
    spent, listed, look = [], [0], Path.iterdir

    def listing(folder: Path) -> Iterator[Path]:
        names = list(look(folder))
        listed.append(len(names))
        return iter(names)

    with Store.write(tmp_path / "store") as store:
        store.add(entries)
        monkeypatch.setattr(Path, "iterdir", listing)
        monkeypatch.setattr(Path, "glob", lambda *given: pytest.fail("a commit searches a folder"))
        for entry in entries:
            with instructions(store) as done:
                commit(store, entry.trial.id)
            spent.append(done[0])
    assert 100 < max(spent) < 1.02 * min(spent)  # not quite equal: at the end of a table a range is known to be over
    assert max(listed) <= 1  # the checkpoint of the stack under way, and no weights of those that have ended


def test_a_commit_writes_as_many_pages_in_a_full_store_as_in_an_empty_one(tmp_path: Path) -> None:
    """Rows of one trial lie beside those of the trial before it, wherever its id, a hash, would put them."""
    entries = Grid({}, {"task": {"name": "retrieval/T1"}, "model": {"name": "lstm"}}, range(1_000)).entries()
    journal, pages = tmp_path / "store" / "store.sqlite-wal", []
    key = evaluation_id(Evaluation())
    measure = Measure("iid", "", "", "accuracy", 0.75, 0.004, 100)
    with Store.write(tmp_path / "store") as store:
        store.add(entries)
        for start in range(0, len(entries), 10):
            store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            trials = [entry.trial.id for entry in entries[start : start + 10]]
            ended = Finished("finished", 1, 1, False, "", {key: {"last": [measure]}}, {}, {})
            store.commit(
                "stack",
                trials,
                Outcome(1, None, [], {c: Span(0, 1, 0.5, 0.4, "here:1") for c in trials}, dict.fromkeys(trials, ended)),
            )
            pages.append(journal.stat().st_size // PAGE)
    assert sum(pages[:10]) > 5 and sum(pages[-10:]) < 1.5 * sum(pages[:10])


def test_what_a_kill_left_half_written_goes_when_the_store_is_opened(tmp_path: Path) -> None:
    (entry,) = Grid({}, {"task": {"name": "retrieval/T1"}, "model": {"name": "lstm"}}, range(1)).entries()
    with Store.write(tmp_path / "store") as store:
        store.add([entry])
    left, whole = (
        tmp_path / "store" / "weights" / f"{entry.trial.id}.best.{end}"
        for end in ("safetensors.7.partial", "safetensors")
    )
    left.write_bytes(b"half")
    whole.write_bytes(b"all")
    with Store.write(tmp_path / "store"):
        assert not left.exists() and whole.exists()
