"""`unseen records`, and `unseen run` with --reuse and --extend: what they print, and their exit codes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.store_builder import build
from unseen.cli.main import main
from unseen.store import shipped_records

STUDY = """
study: mine
question: Which one?
seeds: 2
base:
  task: {name: retrieval/T1, length: 3, train_size: 300, evaluation_size: 200}
  model: {name: lstm, width: 8}
  recipe: {steps: 4, batch: 10, validate_every: 2, validation_examples: 50}
  evaluation: {examples: 100}
"""


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["unseen", *map(str, arguments)])
        main()
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


def test_files_are_made_listed_and_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    low = build(tmp_path / "low", axes={"length": [5, 10]}, seeds=[0, 1])
    high = build(tmp_path / "high", axes={"length": [5, 10]}, seeds=[2])
    assert command(capsys, "records", "add", low, high, "--out", "files")[:2] == (
        0,
        f"files/made-up@1-mini.zip: 6 trials, {Path('files/made-up@1-mini.zip').stat().st_size} bytes\n",
    )
    code, out, _ = command(capsys, "records", "list", "files")
    assert code == 0 and out.splitlines()[1].split() == [
        "files/made-up@1-mini.zip",
        "made-up@1",
        "mini",
        "6",
        "48",
        "6",
        "s",
    ]
    code, out, _ = command(capsys, "records", "check", "files", "--store", low, "--store", high)
    assert code == 0 and "6 trials and 48 records are whole" in out and f"it follows from {low}, {high}" in out
    code, _, said = command(capsys, "records", "check", "files", "--store", low)
    assert code == 1 and "does not follow from" in said and said.count("\n") == 1
    Path("files/renamed.zip").write_bytes(Path("files/made-up@1-mini.zip").read_bytes())
    code, _, said = command(capsys, "records", "check", "files/renamed.zip")
    assert code == 1 and "should be called made-up@1-mini.zip" in said


def test_refusals_leave_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    begun = build(tmp_path / "begun", status=lambda levels, seed: "finished" if seed else "pending")
    other = build(tmp_path / "other", study="else@1")
    (tmp_path / "file").write_text("")
    for arguments, message in [
        ([begun, "--out", "files"], "is not finished at scale mini: of 5 trials, 1 pending"),
        ([begun, other, "--out", "files"], "hold different work"),
        ([tmp_path / "nowhere", "--out", "files"], "there is no such directory"),
        ([begun, "--partial", "--out", "file"], "file is a file; give a folder"),
    ]:
        code, out, said = command(capsys, "records", "add", *arguments)
        assert (code, out) == (2, "") and message in said and said.count("\n") == 1
    assert not (tmp_path / "files").exists()
    assert command(capsys, "records", "list", tmp_path)[0] == 2
    assert command(capsys, "records", "check", "nothing.zip")[2] == "error: there is no file nothing.zip\n"


def test_the_index_of_a_folder_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped_records, "FOLDER", tmp_path / "shipped")
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped" / "index.json").write_text("{}")
    assert command(capsys, "records", "list")[1] == "there are no records files in this release\n"
    command(capsys, "records", "add", build(tmp_path / "store"), "--out", tmp_path / "shipped")
    code, out, _ = command(capsys, "records", "check")
    assert code == 0 and "5 trials" in out and len(shipped_records.read_index()) == 1
    (tmp_path / "shipped" / "made-up@1-mini.zip").unlink()
    code, _, said = command(capsys, "records", "check")
    assert code == 1 and "is in index.json, but not there" in said


def test_a_run_takes_over_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("study.yaml").write_text(STUDY)
    run = ["run", "study.yaml", "--executor", "inline"]
    assert command(capsys, *run, "--out", "first")[0] == 0
    assert command(capsys, "records", "add", "first")[0] == 0
    (file,) = tmp_path.glob("*.zip")
    code, _, said = command(capsys, *run, "--out", "second", "--seeds", 3, "--reuse", file.name)
    assert code == 0 and f"2 finished trials taken over from {file.name}" in said
    code, _, said = command(capsys, *run, "--out", "third", "--extend")
    assert code == 2 and "this release ships no records of mine@1" in said and not Path("third").exists()
    code, out, _ = command(capsys, "results", "second", "--provenance")
    assert code == 0 and "taken_from" in out
