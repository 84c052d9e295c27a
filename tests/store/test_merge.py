"""Stores of one study, filled in several places, become one: the table of one run over all."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
from pathlib import Path

import pytest

import unseen
from support.faulty import study
from support.small import tables
from unseen.cli.main import main
from unseen.errors import CheckFailed, UsageError
from unseen.running.runner import Interrupted
from unseen.store.checksums import write_checksums
from unseen.store.merge import Merged, merge, merge_paths
from unseen.store.store import Store
from unseen.studies.grid import Grid
from unseen.studies.study import Study
from unseen.training.checkpoint import unpack
from unseen.training.trainer import Trainer

STUDY = study(seeds=range(4))


def run(out: Path, seeds: list[int], what: Study = STUDY, **given: object) -> Path:
    unseen.run(what, out, seeds=seeds, executor="inline", progress="none", stack=2, **given)
    return out


def merged(target: Path, *sources: Path) -> list[Merged]:
    with Store.write(target) as store:
        found = []
        for path in sources:
            with Store.read(path) as source:
                found.append(merge(store, source))
    return found


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One run over all seeds, and parts of it that were run elsewhere."""
    place = tmp_path_factory.mktemp("merge")
    seeds = {"all": [0, 1, 2, 3], "low": [0, 1], "high": [2, 3], "odd": [1, 3]}
    return {name: run(place / name, chosen, keep="all") for name, chosen in seeds.items()}


def test_disjoint_seeds_make_the_table_of_one_run(places: dict[str, Path], tmp_path: Path) -> None:
    found = merged(tmp_path / "r", places["high"], places["low"])
    assert found == [Merged(taken_over=2, same=0, different=0)] * 2
    assert tables(tmp_path / "r") == tables(places["all"])
    run(tmp_path / "r", [0, 1, 2, 3])  # and it is a store like any other
    assert tables(tmp_path / "r") == tables(places["all"])


def test_overlapping_seeds_are_counted_once(places: dict[str, Path], tmp_path: Path) -> None:
    target = Path(shutil.copytree(places["low"], tmp_path / "r"))
    assert merged(target, places["odd"]) == [Merged(taken_over=1, same=1, different=0)]
    assert merged(target, places["odd"], places["low"]) == [Merged(0, 2, 0), Merged(0, 2, 0)]
    assert merged(target, places["high"]) == [Merged(taken_over=1, same=1, different=0)]
    assert tables(target) == tables(places["all"])
    assert {p.name for p in places["low"].iterdir()} >= {"store.sqlite"}, "the sources stay where they are"


def test_weights_travel(places: dict[str, Path], tmp_path: Path) -> None:
    merged(tmp_path / "r", places["low"], places["high"])
    with Store.read(tmp_path / "r") as store, Store.read(places["all"]) as whole:
        for trial in store.status():
            for selection in ("best", "last"):
                assert store.weights(trial, selection)[1] == whole.weights(trial, selection)[1]
            assert store.provenance().set_index("trial").device[trial] == "cpu"


def test_weights_are_named_after_trial_and_selection_whatever_the_source_calls_them(
    places: dict[str, Path], tmp_path: Path
) -> None:
    source = Path(shutil.copytree(places["low"], tmp_path / "low"))
    with sqlite3.connect(source / "store.sqlite") as database:
        files = [file for (file,) in database.execute("SELECT file FROM weights ORDER BY file")]
        for number, file in enumerate(files):
            # All have the same file name, in folders of their own.
            (source / "weights" / str(number)).mkdir()
            (source / file).rename(source / "weights" / str(number) / "model.safetensors")
            renamed = f"weights/{number}/model.safetensors"
            database.execute("UPDATE weights SET file = ? WHERE file = ?", (renamed, file))
    merged(tmp_path / "r", source)
    assert sorted(f"weights/{file.name}" for file in (tmp_path / "r" / "weights").iterdir()) == files
    with Store.read(tmp_path / "r") as store, Store.read(places["low"]) as original:
        for trial in store.status():
            for selection in ("best", "last"):
                assert store.weights(trial, selection) == (
                    str(tmp_path / "r" / "weights" / f"{trial}.{selection}.safetensors"),
                    original.weights(trial, selection)[1],
                )


def test_a_source_cannot_have_weights_written_outside_the_target(places: dict[str, Path], tmp_path: Path) -> None:
    source = Path(shutil.copytree(places["low"], tmp_path / "low"))
    with sqlite3.connect(source / "store.sqlite") as database:
        database.execute("UPDATE weights SET selection = '/../../../outside' WHERE selection = 'best'")
    with pytest.raises(CheckFailed, match="can't have a file called"):
        merged(tmp_path / "r", source)
    assert not list(tmp_path.rglob("outside*"))


def test_other_numbers_are_told_and_the_targets_stay(places: dict[str, Path], tmp_path: Path) -> None:
    """As if a run of the source had been made on another kind of machine."""
    other = Path(shutil.copytree(places["low"], tmp_path / "other"))
    with Store.write(other) as store:
        (number, *_) = store._numbers(list(store.status())).values()
        with store._transaction():
            store._db.execute("UPDATE records SET value = value + 1e-7 WHERE trial = ?", (number,))
            write_checksums(store._db, ("records",), [number])
    target = Path(shutil.copytree(places["low"], tmp_path / "r"))
    assert merged(target, other) == [Merged(taken_over=0, same=1, different=1)]
    assert tables(target) == tables(places["low"])


def test_different_studies_are_refused(places: dict[str, Path], tmp_path: Path) -> None:
    named = run(tmp_path / "named", [0], study(seeds=range(4), name="else"))
    changed = run(tmp_path / "changed", [0], study(seeds=range(4), learning_rate=0.01))
    target = Path(shutil.copytree(places["low"], tmp_path / "r"))
    before = tables(target)
    with pytest.raises(UsageError, match="different work: study is faulty@1 there and else@1 here"):
        merged(target, named)
    with pytest.raises(UsageError, match=r"plain.*recipe learning_rate is the default there and 0\.01 here"):
        merged(target, changed)
    Store.write(tmp_path / "empty").close()
    with pytest.raises(UsageError, match="holds nothing yet"):
        merged(target, tmp_path / "empty")
    assert tables(target) == before


def test_a_damaged_source_is_refused(places: dict[str, Path], tmp_path: Path) -> None:
    spoilt = Path(shutil.copytree(places["high"], tmp_path / "spoilt"))
    with sqlite3.connect(spoilt / "store.sqlite") as database:
        database.execute("UPDATE records SET value = 1.0 WHERE metric = 'accuracy'")
    target = Path(shutil.copytree(places["low"], tmp_path / "r"))
    with pytest.raises(CheckFailed, match=r"spoilt/store\.sqlite is damaged: in its records"):
        merged(target, spoilt)
    spoilt = Path(shutil.copytree(places["high"], tmp_path / "bad weights"))
    next(iter((spoilt / "weights").iterdir())).write_bytes(b"no weights")
    with pytest.raises(CheckFailed, match=r"bad weights/weights/.* is damaged"):
        merged(target, spoilt)
    assert tables(target) == tables(places["low"])


def test_a_begun_stack_gives_way_to_trials_that_ended_elsewhere(
    places: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_step = Trainer._train_step

    def interrupted(self: Trainer) -> bool:
        if self.step == 17:
            os.kill(os.getpid(), signal.SIGINT)
        return train_step(self)

    monkeypatch.setattr(Trainer, "_train_step", interrupted)
    with pytest.raises(Interrupted):
        run(tmp_path / "r", [0, 1], keep="all")
    monkeypatch.undo()
    # Seed 1 of the stack 0, 1 has ended elsewhere; what the source has only begun stays there.
    assert merged(tmp_path / "r", places["odd"]) == [Merged(taken_over=2, same=0, different=0)]
    with Store.read(tmp_path / "r") as store:
        assert dict(zip(store.trials().seed, store.trials().status, strict=True)) == {
            0: "pending",
            1: "finished",
            3: "finished",
        }
        ((_, begun, data),) = store.checkpoints()
        assert begun == [store.trials().trial[0]] and unpack("", data).step == 18, "the other goes on from where it is"
    run(tmp_path / "r", [0, 1, 2, 3], keep="all")
    assert tables(tmp_path / "r") == tables(places["all"])


def test_a_trial_of_two_scales_keeps_both_places(tmp_path: Path) -> None:
    """The same trials stand in `smoke` and in `mini`; each store has run one of the scales."""
    whole = study(seeds=range(2))

    def grids(scale: str) -> list[Grid]:
        return list(whole.grids("smoke"))

    two = Study("two", 1, "", {"smoke": None, "mini": None}, grids)
    for name, scales in {"smoke": ["smoke"], "mini": ["mini"], "both": ["smoke", "mini"]}.items():
        for scale in scales:
            unseen.run(two, tmp_path / name, scale=scale, executor="inline", progress="none")
    assert merged(tmp_path / "r", tmp_path / "smoke", tmp_path / "mini") == [Merged(2, 0, 0), Merged(0, 2, 0)]
    assert tables(tmp_path / "r") == tables(tmp_path / "both")


def test_the_command(places: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def command(*arguments: object) -> tuple[int, str, str]:
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
            patch.setattr(sys, "argv", ["unseen", "merge", *map(str, arguments)])
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    code, out, _ = command(places["low"], places["odd"], places["high"], "--into", tmp_path / "r")
    assert code == 0 and [line.partition(": ")[2] for line in out.splitlines()] == [
        "2 runs added",
        "1 run added, 1 already there",
        "1 run added, 1 already there",
    ]
    assert tables(tmp_path / "r") == tables(places["all"])
    code, _, said = command(places["low"], tmp_path / "nowhere", "--into", tmp_path / "never")
    assert code == 2 and "nowhere holds no results" in said and not (tmp_path / "never").exists()


def test_stores_that_do_not_fit_leave_nothing_behind(
    places: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first fits and the second does not: nothing of the first may be taken over."""
    changed = run(tmp_path / "changed", [0], study(seeds=range(4), learning_rate=0.01))
    spoilt = Path(shutil.copytree(places["high"], tmp_path / "spoilt"))
    with sqlite3.connect(spoilt / "store.sqlite") as database:
        database.execute("UPDATE records SET value = 1.0 WHERE metric = 'accuracy'")
    existing = Path(shutil.copytree(places["low"], tmp_path / "existing"))
    before = tables(existing)
    for wrong, message in ((changed, "hold different work at"), (spoilt, "is damaged")):
        for into in (tmp_path / "never", existing):
            with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
                patch.setattr(sys, "argv", ["unseen", "merge", str(places["odd"]), str(wrong), "--into", str(into)])
                main()
            assert ended.value.code in (1, 2) and message in capsys.readouterr().err
    assert not (tmp_path / "never").exists() and tables(existing) == before


def test_no_folder_is_made_on_the_way_to_a_target_that_is_refused(places: dict[str, Path], tmp_path: Path) -> None:
    """`sub` is not there, so that `sub/..` would be made before the file at the end is noticed."""
    (tmp_path / "notes.txt").write_text("mine")
    inside = Path(shutil.copytree(places["low"], tmp_path / "store"))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match=r"notes\.txt is a file; give a directory"):
        merge_paths([places["high"]], inside / "sub" / ".." / ".." / "notes.txt")
    assert sorted(tmp_path.rglob("*")) == before
