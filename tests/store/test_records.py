"""Records files: whole and exact, open with pandas alone, and refused by name when they are damaged, foreign or newer."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, Self

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unseen
from support.small import tables
from support.store_builder import build
from unseen.claims.judge import judge_tables
from unseen.claims.judge_studies import judge_store
from unseen.errors import CheckFailed, UsageError
from unseen.store import shipped_records
from unseen.store.checksums import write_checksums
from unseen.store.csv_tables import TableError, escape, read_table, unescape, write_table
from unseen.store.make_records import POINTS, check_follows, make_records, thin, write_records
from unseen.store.records import TABLES, load
from unseen.store.store import Store
from unseen.store.take_over import TAKEN_FROM
from unseen.studies.grid import Grid
from unseen.studies.study import Study
from unseen.training.trainer import Trainer

AXES = {"variant": ["=plain", "-none"], "length": [5, 10]}


def add(folder: Path, *stores: Path, partial: bool = False) -> Path:
    opened = [Store.read(path) for path in stores]
    try:
        (made,) = make_records(opened, partial)
    finally:
        for store in opened:
            store.close()
    return write_records(made, folder)


def curve(levels: Mapping[str, Any], seed: int) -> dict[tuple[int, str, str], float]:
    return {(step, "iid", metric): seed + step / 7 for step in range(0, 1001, 10) for metric in ("accuracy", "loss")}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("records") / "store"
    return build(
        path, axes=AXES, seeds=range(4), curve=curve, status=lambda levels, seed: ("finished", "diverged")[seed == 3]
    )


@pytest.fixture(scope="module")
def file(store: Path) -> Path:
    return add(store.parent, store)


# -- what is in it ----------------------------------------------------------------------------------------------------


def test_it_holds_the_tables_of_the_store(store: Path, file: Path) -> None:
    assert file.name == "made-up@1-mini.zip"
    opened = load(file)
    with Store.read(store) as source:
        records, entries = source.tables()
        points = source.points()
        facts = source.facts()
    pd.testing.assert_frame_equal(opened.entries, entries)
    pd.testing.assert_frame_equal(opened.records, records)
    pd.testing.assert_frame_equal(unseen.results(file), records)
    assert opened.study == "made-up@1" and opened.scale == "mini" and not opened.manifest.partial
    assert {trial: dict(opened.provenance[trial]) for trial in facts} == facts
    for key, rows in opened.points().groupby(["trial", "split", "metric"]):
        whole = points[(points[["trial", "split", "metric"]] == list(key)).all(axis=1)]
        assert len(whole) == 101 and len(rows) == POINTS
        assert {rows.step.iloc[0], rows.step.iloc[-1]} == {0, 1000}
        assert set(zip(rows.step, rows.value, strict=True)) <= set(zip(whole.step, whole.value, strict=True))


def test_verdicts_are_those_of_the_store(tmp_path: Path) -> None:
    axes = {"variant": ["plain", "self", "basic"], "task": ["retrieval/T6", "retrieval/T1"]}
    built = build(tmp_path / "store", study="retrieval-table2@1", axes=axes, curve=curve)
    opened = load(add(tmp_path, built, partial=True))
    judged = judge_tables(opened.records, opened.runs, (), opened.points)
    by_store = judge_store(built).verdicts
    assert [(v.claim.name, v.verdict, v.findings) for v in judged] == [
        (v.claim.name, v.verdict, v.findings) for v in by_store
    ]


def test_pandas_alone_opens_it(store: Path, file: Path, tmp_path: Path) -> None:
    script = """
import sys, zipfile
import pandas as pd
with zipfile.ZipFile(sys.argv[1]) as archive:
    records = pd.read_csv(archive.open("records.csv"))
    trials = pd.read_csv(archive.open("trials.csv"))
joined = records.merge(trials, on=["trial", "evaluation_id"])
chosen = joined[(joined.split == "ood/single") & (joined.metric == "accuracy") & (joined.selection == "best")]
print(chosen.groupby("length").value.mean().round(6).to_dict(), trials["recipe.steps"].dtype, trials["task.preset"][0])
assert "unseen" not in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", script, str(file)], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout == "{5: 0.81, 10: 0.81} int64 clean\n"


def test_the_same_records_give_the_same_bytes(store: Path, file: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(store, tmp_path / "copy"))
    assert add(tmp_path, copy).read_bytes() == file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    check_follows(load(file), [store])
    changed = build(tmp_path / "changed", axes=AXES, seeds=range(4), curve=curve)
    with pytest.raises(CheckFailed, match="does not follow"):
        check_follows(load(file), [changed])


def test_pieces_in_any_order_make_the_file_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class SameMoment(datetime):
        """When a directory was begun is part of the provenance; here all are begun at one moment."""

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls(2026, 11, 17, tzinfo=tz)

    monkeypatch.setattr("unseen.store.store.datetime", SameMoment)
    whole = build(tmp_path / "whole", axes=AXES, seeds=range(4))
    low = build(tmp_path / "low", axes=AXES, seeds=range(3))
    high = build(tmp_path / "high", axes=AXES, seeds=[2, 3])
    expected = add(tmp_path / "a", whole).read_bytes()
    assert add(tmp_path / "b", low, high).read_bytes() == expected
    assert add(tmp_path / "c", high, low).read_bytes() == expected
    with Store.write(high) as store:
        (number, *_) = store._numbers(list(store.entries().query("seed == 2").trial)).values()
        with store._transaction():
            store._db.execute("UPDATE records SET value = value + 1e-7 WHERE trial = ?", (number,))
            write_checksums(store._db, ("records", "overall"), [number])
    with pytest.raises(CheckFailed, match=r"have trial [0-9a-f]{16} with different numbers"):
        add(tmp_path / "d", low, high)
    assert not (tmp_path / "d").exists()


def test_unfinished_studies_are_refused_or_called_partial(tmp_path: Path) -> None:
    def status(levels: Mapping[str, Any], seed: int) -> str:
        return ["finished", "pending", "failed"][seed]

    begun = build(tmp_path / "begun", axes=AXES, seeds=range(3), status=status)
    with pytest.raises(UsageError, match="of 12 trials, 4 failed and 4 pending"):
        add(tmp_path, begun)
    opened = load(add(tmp_path, begun, partial=True))
    assert opened.manifest.partial and opened.runs["status"].value_counts()["failed"] == 4
    assert set(opened.evaluations_of_ended()) == set(opened.runs["trial"][opened.runs["status"] == "finished"])
    single = build(tmp_path / "single", study=None)
    with pytest.raises(UsageError, match="no study, but a single training"):
        add(tmp_path, single)
    catalogued = build(tmp_path / "catalogued", study="quickstart@2", seeds=[0])
    with pytest.raises(
        UsageError, match=r"not finished at scale mini: \d+ of the \d+ trials of the study were not entered"
    ):
        add(tmp_path, catalogued)


def test_thinning_twice_is_thinning_once() -> None:
    rows = [("a", step, "iid", "loss", step / 3) for step in range(997)]
    points = pd.DataFrame(rows, columns=["trial", "step", "split", "metric", "value"])
    once = thin(points)
    assert len(once) == POINTS and once.step.iloc[0] == 0 and once.step.iloc[-1] == 996
    pd.testing.assert_frame_equal(thin(once), once)


# -- the tables -------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"])), st.floats(), st.none() | st.integers(-9, 9)))
)
def test_every_value_survives_a_table(rows: list[tuple[str, float, int | None]]) -> None:
    columns = read_table(
        write_table(["text", "number", "count"], rows),
        {"text": "text", "number": "number", "count": "optional integer"},
    )
    expected = [(text, None if number != number else number, count) for text, number, count in rows]
    assert list(zip(*columns.values(), strict=True)) == expected


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-x", "@sum", "\tx", "'quoted", "''", ""])
def test_no_text_is_a_formula(text: str) -> None:
    assert not escape(text).startswith(("=", "+", "-", "@", "\t", "\r")) and unescape(escape(text)) == text
    assert escape("-0.5") == "-0.5", "a number stays a number"


def test_axes_that_look_like_formulas_are_escaped(file: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        trials = pd.read_csv(archive.open("trials.csv"))
    assert set(trials["variant"]) == {"'=plain", "'-none"}
    assert set(load(file).runs["variant"]) == {"=plain", "-none"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"trial\nx\n", "no column 'value'"),
        (b"trial,value\nx\n", "line 2 has 1 cells"),
        (b"trial,value\nx,much\n", "column 'value' has 'much' where a number"),
        (b"trial,value,value\nx,1,1\n", "the same name"),
        (b'trial,value\n"x,1\n', "unexpected end"),
        (b"\xff\xfe", "decode"),
    ],
)
def test_wrong_tables_are_told(data: bytes, message: str) -> None:
    with pytest.raises(TableError, match=message):
        read_table(data, {"trial": "text", "value": "number"})


# -- damaged, foreign, newer ------------------------------------------------------------------------------------------


def rewrite(file: Path, target: Path, change: Callable[[dict[str, bytes]], None], checksums: bool = True) -> Path:
    """A copy of a records file with changed members; the checksums are those of the new tables, if asked for."""
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    if checksums:
        manifest = json.loads(members["manifest.json"])
        for name in TABLES:
            manifest["files"][name]["sha256"] = hashlib.sha256(members[name]).hexdigest()
        members["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return target


def replace_in(name: str, old: bytes, new: bytes) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        assert old in members[name]
        members[name] = members[name].replace(old, new, 1)

    return change


def set_in_manifest(key: str, value: Any) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        members["manifest.json"] = json.dumps({**json.loads(members["manifest.json"]), key: value}).encode()

    return change


def change_identity(members: dict[str, bytes]) -> None:
    manifest = json.loads(members["manifest.json"])
    next(iter(manifest["trials"].values()))["recipe"]["steps"] = 1
    members["manifest.json"] = json.dumps(manifest).encode()


def repeat_row(members: dict[str, bytes]) -> None:
    lines = members["records.csv"].splitlines(keepends=True)
    members["records.csv"] = b"".join([*lines[:-1], lines[1]])


@pytest.mark.parametrize(
    ("change", "checksums", "error", "message"),
    [
        (replace_in("records.csv", b"0.9", b"0.8"), False, CheckFailed, "the contents of records.csv are not those"),
        (replace_in("records.csv", b",value,", b",worth,"), True, CheckFailed, "no column 'value'"),
        (replace_in("records.csv", b",0.9", b",good"), True, CheckFailed, "'good' where a number"),
        (replace_in("trials.csv", b"finished", b"finnished"), True, CheckFailed, "unknown status 'finnished'"),
        (lambda members: members.pop("curves.csv"), False, CheckFailed, "it has no curves.csv"),
        (lambda members: members.update({"../evil": b"x"}), True, CheckFailed, "it holds '../evil'"),
        (lambda members: members.pop("manifest.json"), False, UsageError, "not a records file: it has no manifest"),
        (set_in_manifest("format", "other"), True, UsageError, "of another program"),
        (set_in_manifest("format_version", 2), True, UsageError, "a newer release of Unseen"),
        (set_in_manifest("scale", 3), True, CheckFailed, "wrong at 'scale'"),
        (set_in_manifest("about", float("nan")), False, CheckFailed, "manifest.json can't be read"),
        (set_in_manifest("question", "\ud800"), False, CheckFailed, "manifest.json can't be read"),
        (set_in_manifest("evaluations", {}), True, CheckFailed, "has no identity"),
        (set_in_manifest("provenance", []), True, CheckFailed, "no provenance number 0"),
        (change_identity, True, CheckFailed, "the identity of [0-9a-f]{16} has the id"),
        (repeat_row, True, CheckFailed, "records.csv has a row twice"),
    ],
)
def test_what_is_not_right_is_refused_by_name(
    file: Path, tmp_path: Path, change: Any, checksums: bool, error: type[Exception], message: str
) -> None:
    spoilt = rewrite(file, tmp_path / "spoilt.zip", change, checksums)
    with pytest.raises(error, match=rf"spoilt\.zip .*{message}"):
        load(spoilt)


def test_what_is_no_zip_file_is_refused_by_name(file: Path, tmp_path: Path) -> None:
    whole = file.read_bytes()
    spoilt = tmp_path / "spoilt.zip"
    for data in (b"", b"no zip", whole[:-100], whole[: len(whole) // 2]):
        spoilt.write_bytes(data)
        with pytest.raises(CheckFailed, match=r"spoilt\.zip is not a records file, or a damaged one"):
            load(spoilt)
    for position in range(200, len(whole), len(whole) // 50):  # a changed byte anywhere is noticed, or changes nothing
        spoilt.write_bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :])
        try:
            records = load(spoilt).records
        except (CheckFailed, UsageError) as error:
            assert "spoilt.zip" in str(error)
        else:
            pd.testing.assert_frame_equal(records, load(file).records)
    with pytest.raises(UsageError, match="there is no file"):
        load(tmp_path / "nowhere.zip")
    with pytest.raises(UsageError, match="is not a regular file"):
        load(tmp_path)


def test_a_file_that_would_unpack_to_too_much_is_refused(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = rewrite(file, tmp_path / "bomb.zip", lambda members: members.update({"curves.csv": bytes(3_000_000)}))
    monkeypatch.setattr("unseen.store.records.LARGEST", 1_000_000)
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *arguments: pytest.fail("something is unpacked"))
    with pytest.raises(UsageError, match=r"bomb\.zip would unpack to \d{7} bytes"):
        load(bomb)


MARKING_CODE = "from pathlib import Path\nPath(__file__).with_name('marker').write_text('ran')\n"
MODEL = """
import unseen
from torch import nn

class Bag(unseen.Adapter):
    def core(self, width):
        return nn.Linear(width, width)
"""
FOREIGN = """
study: theirs
seeds: 2
base:
  task: {name: retrieval/T1, length: 3, train_size: 300, evaluation_size: 200}
  model: {name: 'mine:Bag', width: 8}
  recipe: {steps: 4, batch: 10, validate_every: 2, validation_examples: 50}
  evaluation: {examples: 100}
"""


@pytest.mark.slow
def test_opening_one_imports_nothing_that_it_names(tmp_path: Path) -> None:
    def python(*arguments: str) -> str:
        done = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    (tmp_path / "mine.py").write_text(MODEL)
    (tmp_path / "study.yaml").write_text(FOREIGN)
    python("-m", "unseen", "run", "study.yaml", "--out", "r", "--executor", "inline")
    (tmp_path / "mine.py").write_text(MARKING_CODE)
    python("-m", "unseen", "records", "add", "r")
    (file,) = tmp_path.glob("*.zip")
    python("-m", "unseen", "records", "list", file.name)
    python("-m", "unseen", "records", "check", file.name, "--store", "r")
    look = f"from unseen.store.records import load; f = load('{file.name}'); f.records; f.points(); f.runs"
    assert python("-c", f"import sys; sys.path.append('.'); {look}; print(f.runs['model.width'][0])") == "8\n"
    assert not (tmp_path / "marker").exists()


# -- reuse ------------------------------------------------------------------------------------------------------------


def grids(scale: str) -> list[Grid]:
    axes = {"variant": {name: {"model": {"name": name, "width": 8}} for name in ("lstm", "gru")}}
    base = {
        "task": {"name": "retrieval/T1", "length": 3, "train_size": 300, "evaluation_size": 200},
        "recipe": {"steps": 30, "batch": 10, "validate_every": 10, "validation_examples": 50},
        "evaluation": {"examples": 200},
    }
    return [Grid(axes, base, range(3))]


def other_grids(scale: str) -> list[Grid]:
    """The same trainings, evaluated in another way."""
    (grid,) = grids(scale)
    base = {**grid.base, "evaluation": {"examples": 150, "splits": ["iid"]}}
    return [Grid(grid.axes, base, grid.seeds)]


STUDY = Study("first", 1, "Which?", {"smoke": None}, grids)
OTHER = Study("second", 1, "Why?", {"smoke": None}, other_grids)


def run(study: Study, out: Path, **options: Any) -> Path:
    unseen.run(study, out, executor="inline", **{"progress": "none", **options})
    return out


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reuse")
    paths = {"all": run(STUDY, folder / "all", keep="all"), "other": run(OTHER, folder / "other")}
    return {**paths, "file": add(folder, paths["all"])}


def no_step(self: Trainer) -> bool:
    pytest.fail("a step is trained")


@pytest.mark.parametrize("source", ["all", "file"])
def test_finished_trials_are_taken_over(
    trained: dict[str, Path],
    tmp_path: Path,
    source: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Trainer, "_train_step", no_step)
    out = run(STUDY, tmp_path / "r", reuse=trained[source], progress="lines")
    assert f"6 finished trials taken over from {trained[source]}" in capsys.readouterr().err
    assert tables(out) == tables(trained["all"])
    with Store.read(out) as store, Store.read(trained["all"]) as original:
        assert store.spans().empty, "nothing was computed here"
        expected = {key: {**facts, TAKEN_FROM: trained[source].name} for key, facts in original.facts().items()}
        assert store.facts() == expected
    monkeypatch.undo()
    second = load(add(tmp_path, out))
    assert second.manifest.cost["taken_over"] == 6 and second.manifest.trials == load(trained["file"]).manifest.trials


def test_only_what_is_missing_is_trained(trained: dict[str, Path], tmp_path: Path) -> None:
    part = run(STUDY, tmp_path / "part", seeds=[1])
    out = run(STUDY, tmp_path / "r", reuse=[part, add(tmp_path, part, partial=True)])
    assert tables(out) == tables(trained["all"])
    with Store.read(out) as store:
        assert len(set(store.spans().trial)) == 4


def test_another_study_evaluates_the_weights_of_the_same_trainings(
    trained: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Trainer, "_train_step", no_step)
    out = run(OTHER, tmp_path / "r", reuse=trained["all"], progress="lines")
    assert "6 of them are evaluated by their weights" in capsys.readouterr().err
    assert tables(out) == tables(trained["other"])
    monkeypatch.undo()
    out = run(OTHER, tmp_path / "trained", reuse=trained["file"], progress="lines")
    assert "6 trials of" in (said := capsys.readouterr().err) and "no weights there, so they are trained here" in said
    assert tables(out) == tables(trained["other"])


def test_bad_sources_are_refused_before_anything_is_written(trained: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "foreign.zip").write_bytes(b"no zip")
    (tmp_path / "empty").mkdir()
    weights = Path(shutil.copytree(trained["all"], tmp_path / "weights"))
    next((weights / "weights").iterdir()).write_bytes(b"x")
    for source, error in [
        ("foreign.zip", CheckFailed),
        ("empty", UsageError),
        ("weights", CheckFailed),
        ("no", UsageError),
    ]:
        with pytest.raises(error, match=source):
            run(STUDY, tmp_path / "r", reuse=[trained["all"], tmp_path / source])
        assert not (tmp_path / "r").exists()
    with pytest.raises(UsageError, match="is the directory that is written"):
        run(STUDY, trained["all"], reuse=trained["all"])


def test_extending_begins_from_the_shipped_records(
    trained: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped_records, "FOLDER", tmp_path / "shipped")
    shutil.copytree(trained["file"].parent, tmp_path / "shipped", ignore=shutil.ignore_patterns("all", "other"))
    shipped_records.write_index(tmp_path / "shipped")
    assert shipped_records.check_index() == []
    out = run(STUDY, tmp_path / "r", extend=True)
    with Store.read(out) as store:
        assert store.spans().empty
    with pytest.raises(UsageError, match=r"ships no records of second@1 at scale smoke \(it has first@1 smoke\)"):
        run(OTHER, tmp_path / "never", extend=True)
    assert not (tmp_path / "never").exists()


def test_the_index_of_the_package_is_right() -> None:
    assert shipped_records.check_index() == []
