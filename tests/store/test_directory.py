"""A store's directory: what a kill left of one goes on, what is somebody else's is refused and never removed."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import unseen
from support.finished_store import fill_store
from support.program import inside
from support.small import STUDY
from support.small_trials import enter, finished, trial
from unseen.errors import CheckFailed, UsageError
from unseen.store.schema import Outcome
from unseen.store.store import Store

HEX = "0123456789abcdef"
SMALL = {"seeds": 1, "steps": 4, "batch": 4, "validate_every": 2, "validation_examples": 20, "progress": "none"}


def contents(place: Path) -> dict[str, str | bytes]:
    """Everything under a directory: bytes of files, targets of links, '' for folders."""
    return {
        str(one.relative_to(place)): str(one.readlink())
        if one.is_symlink()
        else one.read_bytes()
        if one.is_file()
        else ""
        for one in sorted(place.rglob("*"))
    }


def train(out: Path) -> None:
    unseen.train(unseen.task("retrieval/T1", length=3), unseen.model("lstm", width=4), out=out, **SMALL)


def folders(out: Path) -> None:
    for name in ("checkpoints", "weights"):
        (out / name).mkdir(parents=True)


def file(name: str, text: str = "dear") -> Callable[[Path], None]:
    def put(out: Path) -> None:
        folders(out)
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text(text)

    return put


def link(name: str, full: bool) -> Callable[[Path], None]:
    def put(out: Path) -> None:
        target = out.parent / "target"
        if full:
            target.mkdir()
            (target / "epoch_90.pt").write_text("dear")
            (target / f"{HEX}.safetensors").write_text("dear")
        out.mkdir(exist_ok=True)
        shutil.rmtree(out / name, ignore_errors=True)
        (out / name).symlink_to(target)

    return put


def other_database(version: int) -> Callable[[Path], None]:
    def put(out: Path) -> None:
        out.mkdir()
        database = sqlite3.connect(out / "store.sqlite")
        database.executescript(f"CREATE TABLE shop (price REAL); PRAGMA user_version = {version};")
        database.close()

    return put


REFUSED = {
    "a checkpoint of theirs": (file("checkpoints/epoch_90.pt"), "checkpoints/epoch_90.pt"),
    "a checkpoint called as ours, without a database": (
        file(f"checkpoints/{HEX}.safetensors"),
        f"checkpoints/{HEX}.safetensors",
    ),
    "weights of theirs": (file("weights/model.partial"), "weights/model.partial"),
    "a folder of theirs": (file("checkpoints/run/epoch_90.pt"), "checkpoints/run"),
    "a file beside": (file("thesis.tex"), "thesis.tex"),
    "a lock of theirs": (file("store.lock"), "store.lock"),
    "an owner of theirs": (file("store.owner"), "store.owner"),
    "a log without its database": (file("store.sqlite-wal"), "store.sqlite-wal"),
    "checkpoints is a file": (lambda out: (out.mkdir(), (out / "checkpoints").write_text("dear")), "checkpoints"),
    "checkpoints is a link": (link("checkpoints", True), "checkpoints is a symbolic link"),
    "weights is a link": (link("weights", True), "weights is a symbolic link"),
    "checkpoints is a link to nothing": (link("checkpoints", False), "checkpoints is a symbolic link"),
    "store.sqlite is a link": (link("store.sqlite", False), "store.sqlite is a symbolic link"),
    "store.lock is a link": (link("store.lock", False), "store.lock is a symbolic link"),
    "store.owner is a link": (link("store.owner", False), "store.owner is a symbolic link"),
    "the copy of an older store is a link": (
        link("store.sqlite.schema4", False),
        "store.sqlite.schema4 is a symbolic link",
    ),
    "another program's database": (other_database(0), "store.sqlite is the database of another program"),
    "another program's with our number": (other_database(4), "store.sqlite is the database of another program"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_somebody_elses_is_refused_and_left_as_it_was(case: str, tmp_path: Path) -> None:
    make, said = REFUSED[case]
    out = tmp_path / "out"
    make(out)
    before = contents(tmp_path)
    for call in (train, lambda out: unseen.run("quickstart", out, scale="smoke", progress="none"), Store.write):
        with pytest.raises(UsageError) as caught:
            call(out)
        assert f"{out}/{said}" in str(caught.value) and "\n" not in str(caught.value)
        assert "give a new directory" in str(caught.value)
        assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["checkpoints", "weights", "store.sqlite"])
def test_a_link_in_a_store_is_refused_too(name: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    train(out)
    (out / name).rename(tmp_path / "target")
    (out / name).symlink_to(tmp_path / "target")
    before = contents(tmp_path)
    with pytest.raises(UsageError, match=f"{name} is a symbolic link"):
        train(out)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("command", ["train retrieval/T1 lstm", "run quickstart --scale smoke"])
def test_the_commands_end_with_2_and_one_line(command: str, tmp_path: Path) -> None:
    file("checkpoints/epoch_90.pt")(tmp_path / "out")
    before = contents(tmp_path)
    words = [sys.executable, "-m", "unseen", *command.split(), "--out", "out"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "out/checkpoints/epoch_90.pt" in done.stderr
    assert contents(tmp_path) == before


def test_a_link_to_the_whole_directory_is_fine(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk")
    train(tmp_path / "out")
    train(tmp_path / "out")
    assert (tmp_path / "disk" / "store.sqlite").is_file()


def test_a_foreign_file_in_a_store_outlives_everything(tmp_path: Path) -> None:
    one, out = trial(), tmp_path / "s"
    theirs = [
        "checkpoints/epoch_90.pt",
        "checkpoints/epoch_90.partial",
        "checkpoints/.gitkeep",
        f"checkpoints/{HEX}.best.safetensors",
        f"checkpoints/{HEX.upper()}.safetensors",
        "weights/model.partial",
        f"weights/{HEX}.partial",
    ]
    with Store.write(out) as store:
        enter(store, one)
    for name in theirs:
        (out / name).write_text("dear")
    (out / "checkpoints" / f"{HEX[::-1]}.safetensors").mkdir()  # a folder, whatever it is called
    with Store.write(out) as store:
        store.commit("stack", [one.id], Outcome(1, b"first"))
        store.commit("stack", [one.id], Outcome(2, b"second"))
        assert list(store.checkpoints()) == [("stack", [one.id], b"second")]
        store.discard("stack")
        store.commit("stack", [one.id], Outcome(3, finished={one.id: finished()}))
    assert [(out / name).read_text() for name in theirs] == ["dear"] * len(theirs)
    assert len(list((out / "checkpoints").iterdir())) == 6, "ours are gone"


def test_what_a_kill_left_in_a_store_is_cleaned(tmp_path: Path) -> None:
    one, out = trial(), tmp_path / "s"
    with Store.write(out) as store:
        enter(store, one)
        store.commit("stack", [one.id], Outcome(1, b"first"))
        store._announce_checkpoints([HEX])  # and then it was killed
    left = [
        f"checkpoints/{HEX}.safetensors",
        f"checkpoints/{HEX}.safetensors.7.partial",
        f"weights/{one.id}.best.safetensors.7.partial",
    ]
    theirs = [f"checkpoints/{HEX[::-1]}.safetensors", f"weights/{HEX}.best.safetensors.7.partial"]
    for name in [*left, *theirs]:
        (out / name).write_text("half")
    with Store.write(out) as store:
        assert list(store.checkpoints()) == [("stack", [one.id], b"first")]
        store.commit("stack", [one.id], Outcome(2, b"second"))
        store.commit("stack", [one.id], Outcome(3, b"third"))
        assert len(store.recall("checkpoint files")) == 2, "the list does not grow with the run"
    assert not any((out / name).exists() for name in left)
    assert all((out / name).exists() for name in theirs), "the database never named them"
    assert len(list((out / "checkpoints").iterdir())) == 2


def test_a_kill_before_there_was_a_database_is_gone_on_from(tmp_path: Path) -> None:
    script = """
import os, sys
from pathlib import Path
steps, out = int(sys.argv[1]), Path(sys.argv[2])
def spied(name, *rest):
    global steps
    if name in ("os.mkdir", "open", "sqlite3.connect") and str(out) in str(rest[0][0]):
        steps -= 1
        if steps < 0:
            os._exit(9)
from unseen.store.store import Store
sys.addaudithook(spied)
Store.write(out)
os._exit(0)
"""
    states = set()
    for steps in range(50):
        out = tmp_path / str(steps)
        done = subprocess.run([sys.executable, "-c", script, str(steps), str(out)])
        states.add(frozenset(contents(out)))
        Store.write(out).close()
        if not done.returncode:
            break
    assert not done.returncode and len(states) > 4


@pytest.mark.parametrize("left", ["nothing", "an empty file", "no tables yet", "only in the log", "a journal"])
def test_a_kill_while_the_database_was_made_is_gone_on_from(left: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    folders(out)
    (out / "store.lock").touch()
    (out / "store.owner").write_text("process 7 on a-machine")
    script = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute("PRAGMA journal_mode = WAL")
if sys.argv[2] == "only in the log":
    from unseen.store.schema import SCHEMA, TABLES
    database.executescript(f"BEGIN; {TABLES} PRAGMA user_version = {SCHEMA}; COMMIT;")
os._exit(0)
"""
    if left in ("no tables yet", "only in the log", "a journal"):
        subprocess.run([sys.executable, "-c", script, str(out / "store.sqlite"), left], check=True)
    if left == "only in the log":
        assert (out / "store.sqlite-wal").stat().st_size > 0
    if left == "a journal":
        (out / "store.sqlite-journal").write_bytes(bytes(512))
    if left == "an empty file":
        (out / "store.sqlite").touch()
    train(out)
    assert unseen.results(out)["seed"].unique().tolist() == [0]


def test_an_emptied_database_beside_checkpoints_is_damaged(tmp_path: Path) -> None:
    file(f"checkpoints/{HEX}.safetensors")(tmp_path / "out")
    (tmp_path / "out" / "store.sqlite").touch()
    before = contents(tmp_path)
    with pytest.raises(CheckFailed, match=r"store\.sqlite is damaged: it is empty"):
        train(tmp_path / "out")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "secret", "weights/../../secret", "weights/link"])
def test_a_store_that_names_a_file_outside_of_itself_is_damaged(name: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"checkpoint")
    one, out = trial(), tmp_path / "s"
    with Store.write(out) as store:
        enter(store, one)
        store.commit("stack", [one.id], Outcome(1, b"checkpoint"))
        (out / "weights" / "link").symlink_to(tmp_path / "secret")
        store._db.execute("UPDATE checkpoints SET file = ?", (name,))
        with pytest.raises(CheckFailed, match="which is not a file of a store"):
            list(store.checkpoints())


# -- files that commands write beside stores ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filled") / "store"
    fill_store(STUDY.entries("smoke"), path)
    return path


NEVER_REPLACED = {
    "results": "results store --out store/store.sqlite",
    "results as CSV": "results store --format csv --out store/store.sqlite",
    "results to the log": "results store --out store/store.sqlite-wal",
    "results to the lock": "results store --out store/store.lock",
    "results to a checkpoint": "results store --out store/checkpoints/mine",
    "results to weights": "results store --format json --out store/weights/mine.json",
    "results to a study": "results store --out study.yaml",
    "claims": "claims store --out store/store.sqlite",
    "compare": "compare store store --out store/store.sqlite",
    "report": "report store --out store/store.owner",
    "show": "show retrieval/T1 -n 1 --out store/store.sqlite",
    "records: another file of that name": "records add store --out zip",
    "records: a link of that name": "records add store --out link",
    "track: another state file": "track store --to tensorboard --out logs",
    "track: a link": "track store --to tensorboard --out linked",
    "new claim": "new claim mine --out study.yaml",
    "new model": "new model reader --out logs",
    "export": "export retrieval/T1 --format jsonl -n 3 --out logs",
    "merge": "merge store --into logs",
}


@pytest.mark.parametrize("case", NEVER_REPLACED)
def test_a_command_replaces_no_store_and_nothing_of_somebody_else(case: str, store: Path, tmp_path: Path) -> None:
    if case.startswith("track"):
        pytest.importorskip("tensorboard")
    shutil.copytree(store, tmp_path / "store")
    (tmp_path / "study.yaml").write_text("study: mine")
    for folder in ("zip", "link", "logs", "linked"):
        (tmp_path / folder).mkdir()
    records = "many-trials@1-full.zip"
    (tmp_path / "zip" / records).write_text("dear")
    (tmp_path / "link" / records).symlink_to("../study.yaml")
    (tmp_path / "logs" / "unseen.json").write_text('{"mine": 1}')
    (tmp_path / "linked" / "unseen.json").symlink_to("../study.yaml")
    before = contents(tmp_path)
    done = inside(*NEVER_REPLACED[case].split(), cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert {name: data for name, data in contents(tmp_path).items() if not name.endswith(("-wal", "-shm"))} == before


def test_an_index_of_somebody_else_stays_and_records_lose_no_trials(store: Path, tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text('{"mine": 1}')
    assert not inside("records", "add", str(store), "--out", str(tmp_path), cwd=tmp_path).returncode
    assert (tmp_path / "index.json").read_text() == '{"mine": 1}'
    (file,) = tmp_path.glob("*.zip")
    whole = file.read_bytes()
    assert not inside("records", "add", str(store), "--out", str(tmp_path), cwd=tmp_path).returncode, "the same again"
    fill_store(STUDY.entries("smoke")[:1], tmp_path / "fewer")
    done = inside("records", "add", "fewer", "--partial", "--out", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 2 and "would be lost" in done.stderr
    assert file.read_bytes() == whole
