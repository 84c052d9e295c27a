"""An export is there whole or not at all."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from unseen.errors import UsageError
from unseen.export.folder import new_folder
from unseen.export.formats import Npz
from unseen.export.write import write_export
from unseen.tasks import task

MLP = task("rules/mlp")


def test_a_folder_that_holds_something_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("keep me")
    with pytest.raises(UsageError, match=r"out is not empty \(it holds notes\.txt\); name a new folder"):
        write_export(MLP, tmp_path / "out", "npz", ["iid"], 5)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "notes.txt").read_text() == "keep me"


def test_an_empty_folder_will_do_and_parents_are_made(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_export(MLP, tmp_path / "empty", "npz", ["iid"], 5)
    write_export(MLP, tmp_path / "one" / "two", "npz", ["iid"], 5)
    assert (tmp_path / "empty" / "iid.npz").exists() and (tmp_path / "one" / "two" / "export.json").exists()
    plain = tmp_path / "plain"
    plain.mkdir()
    assert (tmp_path / "one" / "two").stat().st_mode == plain.stat().st_mode  # others may read it as any folder


def test_a_file_a_dangling_link_and_the_current_folder_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        write_export(MLP, tmp_path / "file", "npz", ["iid"], 5)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(UsageError, match="is the current folder"):
        write_export(MLP, ".", "npz", ["iid"], 5)


@pytest.mark.parametrize(
    "fault", [OSError(errno.ENOSPC, "No space left on device"), ValueError("broken"), KeyboardInterrupt()]
)
def test_whatever_goes_wrong_nothing_is_left(
    tmp_path: Path, fault: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Npz) -> None:
        assert (self.folder / "iid.npz").exists()
        raise fault

    monkeypatch.setattr(Npz, "close", fail)
    expected = UsageError if isinstance(fault, OSError) else type(fault)
    with pytest.raises(expected, match="can't be written: No space left" if isinstance(fault, OSError) else None):
        write_export(MLP, tmp_path / "out", "npz", ["iid"], 5)
    assert list(tmp_path.iterdir()) == []


def test_what_was_put_there_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not empty"), new_folder(tmp_path / "out") as folder:
        (folder / "ours").write_text("x")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "theirs").write_text("y")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["theirs"]


def test_a_killed_export_does_not_look_complete(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "unseen",
        "export",
        "rules/rnn",
        "--split",
        "train",
        "-n",
        "5000000",
        "--format",
        "jsonl",
        "--out",
        "out",
    ]
    child = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.monotonic() + 600
    while not list(tmp_path.glob(".out.*.partial/train.jsonl")):
        assert child.poll() is None and time.monotonic() < end
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    assert not (tmp_path / "out").exists()
    write_export(MLP, tmp_path / "out", "npz", ["iid"], 5)
    assert (tmp_path / "out" / "export.json").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="can't be written"):
        write_export(MLP, tmp_path / "out", "npz", ["iid"], 5)


def test_files_and_folders_are_on_the_disk_before_the_folder_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file and every folder is synced, and only then renamed; the new name is synced with the folder it is in."""
    synced: set[int] = set()
    synced_at_rename: set[int] = set()
    rename = Path.rename

    def record_sync(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)

    def record_rename(path: Path, target: Path) -> Path:
        synced_at_rename.update(synced)
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(Path, "rename", record_rename)
    out = tmp_path / "out"
    with new_folder(out) as folder:
        (folder / "inner").mkdir()
        (folder / "inner" / "data").write_text("x")
        (folder / "manifest").write_text("y")
    assert {path.stat().st_ino for path in [out, *out.rglob("*")]} == synced_at_rename
    assert synced - synced_at_rename == {tmp_path.stat().st_ino}
