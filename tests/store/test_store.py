"""The store: what it accepts, what it refuses, what it notices."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from support.small_trials import enter, finished, trial
from unseen.config import canonical, digest
from unseen.errors import CheckFailed, UsageError
from unseen.store.schema import Outcome, Span
from unseen.store.store import Store
from unseen.training.trainer import Point


def span(begin: int, end: int) -> Span:
    return Span(begin, end, 0.5, 0.4, "here:1")


def test_ids_are_made_of_what_differs_from_the_defaults() -> None:
    assert trial().id == trial().id
    assert trial().work["recipe"] == {"name": "quick", "version": 1}
    said = json.loads(trial().identity)
    assert trial().id == digest(said) and canonical(said) == trial().identity
    assert len({trial().id, trial(1).id, trial(steps=5).id}) == 3
    assert trial().id == "693971cee90b1962"


def test_what_is_committed_is_read_back(tmp_path: Path) -> None:
    one = trial()
    with Store.write(tmp_path / "s") as store:
        store.set_work(one.work)
        enter(store, one)
        first, last = [Point(one.id, step, "train", "loss", 2.5 / step) for step in (5, 10)]
        store.commit("stack", [one.id], Outcome(1, b"checkpoint", [first], {one.id: span(0, 5)}))
        assert list(store.checkpoints()) == [("stack", [one.id], b"checkpoint")]
        store.commit("stack", [one.id], Outcome(2, None, [last], {one.id: span(5, 10)}, {one.id: finished()}))
        assert list((tmp_path / "s" / "checkpoints").iterdir()) == []
    with Store.read(tmp_path / "s") as store:
        assert store.status() == {one.id: "finished"}
        assert store.curves().value.tolist() == [0.5, 0.25]
        assert store.spans()[["begin", "end"]].to_numpy().tolist() == [[0, 5], [5, 10]]
        records = store.records()
        assert records.selection.tolist() == ["best", "last"]
        assert set(records.task) == {"retrieval/T1"}
        assert store.weights(one.id, "last")[1] == b"weights"
        with pytest.raises(UsageError, match="no weights 'best'"):
            store.weights(one.id, "best")


def test_a_directory_with_other_work_is_refused(tmp_path: Path) -> None:
    with Store.write(tmp_path / "s") as store:
        store.set_work(trial().work)
    said = "recipe steps is the default there and 5"
    with Store.write(tmp_path / "s") as store, pytest.raises(UsageError, match=said):
        store.set_work(trial(steps=5).work)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("dear")
    with pytest.raises(UsageError, match="holds other work"):
        Store.write(tmp_path / "full")
    assert (tmp_path / "full" / "thesis.tex").read_text() == "dear"
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        Store.write(tmp_path / "file")


def test_a_second_writer_is_refused_with_the_owner(tmp_path: Path) -> None:
    import os

    with Store.write(tmp_path / "s"), pytest.raises(UsageError, match=f"process {os.getpid()} on "):
        Store.write(tmp_path / "s")
    Store.write(tmp_path / "s").close()  # the lock is given up


def test_reading_goes_on_while_somebody_writes(tmp_path: Path) -> None:
    with Store.write(tmp_path / "s") as store:
        enter(store, trial())
        with Store.read(tmp_path / "s") as reader:
            assert list(reader.status().values()) == ["pending"]


def test_damage_is_noticed_and_named(tmp_path: Path) -> None:
    with Store.write(tmp_path / "s") as store:
        enter(store, trial())
        store.commit("stack", [trial().id], Outcome(1, b"checkpoint"))
        (file,) = (tmp_path / "s" / "checkpoints").iterdir()
        file.write_bytes(b"check")
        with pytest.raises(CheckFailed, match=f"{file.name} is damaged"):
            list(store.checkpoints())
        file.unlink()
        with pytest.raises(CheckFailed, match="is missing"):
            list(store.checkpoints())
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "store.sqlite").write_bytes(b"this is not a database, not at all" * 100)
    with pytest.raises(CheckFailed, match="damaged"):
        Store.write(tmp_path / "bad")
    with pytest.raises(CheckFailed, match="damaged"):
        Store.read(tmp_path / "bad")


def test_a_store_of_another_schema_is_refused(tmp_path: Path) -> None:
    Store.write(tmp_path / "s").close()
    connection = sqlite3.connect(tmp_path / "s" / "store.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(UsageError, match=r"newer release of Unseen \(its schema is 99"):
        Store.read(tmp_path / "s")


def test_an_empty_place_holds_no_results(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no results"):
        Store.read(tmp_path / "nothing")


def test_odd_names_stay_in_their_place(tmp_path: Path) -> None:
    for name in ("a#b", "a%20b", "a?b", "ä b"):
        Store.write(tmp_path / name).close()
        Store.read(tmp_path / name).close()
    assert {f.name for f in tmp_path.iterdir()} == {"a#b", "a%20b", "a?b", "ä b"}


def test_a_store_killed_while_being_made_is_made_again(tmp_path: Path) -> None:
    Store.write(tmp_path / "s").close()
    for file in (tmp_path / "s").glob("store.sqlite*"):
        file.unlink()
    with Store.write(tmp_path / "s") as store:
        assert store.status() == {}


def test_a_damaged_page_is_one_line(tmp_path: Path) -> None:
    with Store.write(tmp_path / "s") as store:
        store.set_work(trial().work)
        enter(store, *(trial(s) for s in range(50)))
    file = tmp_path / "s" / "store.sqlite"
    data = bytearray(file.read_bytes())
    for page in range(1, len(data) // 4096):
        data[page * 4096 : page * 4096 + 512] = b"\xff" * 512
    file.write_bytes(bytes(data))
    with Store.read(tmp_path / "s") as store, pytest.raises(CheckFailed, match="damaged"):
        store.trials()


def test_what_ended_is_not_written_again(tmp_path: Path) -> None:
    from dataclasses import replace

    one = trial()
    with Store.write(tmp_path / "s") as store:
        enter(store, one)
        other = replace(finished(), step=99, weights={"last": b"others"})
        store.commit("stack", [one.id], Outcome(1, finished={one.id: finished()}))
        store.commit("stack", [one.id], Outcome(2, spans={one.id: span(0, 99)}, finished={one.id: other}))
        assert store.trials().step.tolist() == [10]
        assert store.weights(one.id, "last")[1] == b"weights"


def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path: Path) -> None:
    """In a process whose files may not grow beyond 200 kB: the commit fails, what was there stays."""

    with Store.write(tmp_path / "s") as store:
        enter(store, trial())
    script = """
import resource, signal, sys
from unseen.store.schema import Outcome
from unseen.store.store import Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
with Store.write(sys.argv[1]) as store:
    store.commit("stack", list(store.status()), Outcome(1, b"x" * 1_000_000))
"""
    # -B: under the limit CPython would leave truncated bytecode, which every later import would stumble on.
    done = subprocess.run([sys.executable, "-B", "-c", script, str(tmp_path / "s")], capture_output=True, text=True)
    assert "CheckFailed" in done.stderr.splitlines()[-1] and "can't be written: File too large" in done.stderr
    with Store.read(tmp_path / "s") as store:
        assert list(store.status().values()) == ["pending"] and list(store.checkpoints()) == []


KILLED = """
import os, signal, sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from store.test_store import Outcome, Point, Store, enter, finished, span, trial
store = Store.write(Path(sys.argv[1]))
store.set_work({"study": "small@1"})
enter(store, trial())
enter(store, trial(1))
store.remember("key", "value")
store.commit("one", [trial().id], Outcome(1, finished={trial().id: finished()}))
store.commit("two", [trial(1).id], Outcome(1, b"checkpoint", [Point(trial(1).id, 5, "train", "loss", 0.5)]))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_store_lives_in_its_main_file(tmp_path: Path) -> None:
    """A copy of the one file, without the write-ahead log beside it, has everything that was committed."""
    tests = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "r"), str(tests)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "r" / "store.sqlite-wal").exists()
    (tmp_path / "copy").mkdir()
    shutil.copyfile(tmp_path / "r" / "store.sqlite", tmp_path / "copy" / "store.sqlite")
    with Store.read(tmp_path / "copy") as store:
        assert store.status() == {trial().id: "finished", trial(1).id: "pending"}
        assert store.recall("key") == "value"
        assert len(store.records()) == 2
        assert store.curves().value.tolist() == [0.5]
    contents = []
    for name in ("r", "copy"):
        with sqlite3.connect(tmp_path / name / "store.sqlite") as database:
            contents.append(list(database.iterdump()))
    assert contents[0] == contents[1]
