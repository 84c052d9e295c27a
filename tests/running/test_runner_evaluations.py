"""An evaluation that is added to ended trials: by their weights to the same bits, or by training again, which is said."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import unseen
from support.small import tables
from unseen.errors import CheckFailed
from unseen.store.checksums import write_checksums
from unseen.store.store import EVALUATED_LATER, Store
from unseen.studies.grid import Grid
from unseen.studies.study import Study
from unseen.training.trainer import Trainer

SPLITS = {"first": {"examples": 200}, "second": {"examples": 300, "splits": ["iid", "train"]}}


def study(evaluation: str, seeds: int = 3, learning_rate: float = 1e-3) -> Study:
    """Six trials of two shapes; only what is evaluated differs between the studies."""
    grid = Grid(
        axes={"variant": {name: {"model": {"name": name, "width": 8}} for name in ("lstm", "gru")}},
        base={
            "task": {"name": "retrieval/T1", "length": 3, "train_size": 300, "evaluation_size": 200},
            "recipe": {
                "steps": 30,
                "batch": 10,
                "validate_every": 10,
                "validation_examples": 50,
                "learning_rate": learning_rate,
            },
            "evaluation": SPLITS[evaluation],
        },
        seeds=range(seeds),
    )
    return Study("added", 1, "Is it the same?", {"smoke": None}, lambda scale: [grid])


def run(out: Path, evaluation: str, **options: Any) -> Path:
    options = {"executor": "inline", "progress": "none", "keep": "all", **options}
    unseen.run(study(evaluation, **({"seeds": options.pop("seeds")} if "seeds" in options else {})), out, **options)
    return out


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs that had the one or the other evaluation from the beginning."""
    folder = tmp_path_factory.mktemp("evaluations")
    return {name: run(folder / name, name) for name in SPLITS}


@pytest.fixture
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trainer, "_train_step", lambda self: pytest.fail("a step is trained"))


@pytest.mark.parametrize("stack", [1, 2, 3])
def test_kept_weights_are_evaluated_to_the_same_bits(
    stores: dict[str, Path], tmp_path: Path, no_training: None, stack: int
) -> None:
    out = Path(shutil.copytree(stores["first"], tmp_path / "r"))
    run(out, "second", stack=stack)
    assert tables(out) == tables(stores["second"])
    run(out, "first")  # and back: the records of the first evaluation are still there
    assert tables(out) == tables(stores["first"])
    with Store.read(out) as store:
        (facts, *_) = store.facts().values()
        assert next(iter(facts[EVALUATED_LATER].values()))["unseen"] == unseen.__version__
        assert EVALUATED_LATER not in store.provenance(), "the table of provenance is flat"


def test_train_evaluates_kept_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = unseen.task("retrieval/T1", length=3, train_size=300, evaluation_size=200)
    options = {"seeds": 2, "steps": 20, "batch": 10, "validate_every": 10, "validation_examples": 50}
    second = unseen.Evaluation(examples=150, splits=("iid",))
    whole = unseen.train(task, "lstm", out=tmp_path / "whole", evaluation=second, progress="none", **options)
    unseen.train(task, "lstm", out=tmp_path / "r", progress="none", **options)
    monkeypatch.setattr(Trainer, "_train_step", lambda self: pytest.fail("a step is trained"))
    added = unseen.train(task, "lstm", out=tmp_path / "r", evaluation=second, progress="none", **options)
    assert added.table.equals(whole.table)


def test_the_best_weights_are_enough_where_they_are_the_last(tmp_path: Path) -> None:
    """A trial whose last validation is its best needs one file."""
    with Store.write(tmp_path / "r") as store:
        store.add(study("first", seeds=2).entries("smoke"))
        trials = list(store.status())
        numbers = store._numbers(trials)
        for trial, best_step in zip(trials[:2], (30, 20), strict=True):
            with store._transaction():
                store._db.execute(
                    "UPDATE trials SET status = 'finished', step = 30, best_step = ? WHERE id = ?", (best_step, trial)
                )
                store._db.execute("INSERT INTO weights VALUES (?, 'best', 'weights/x', '')", (numbers[trial],))
        assert store.evaluation_weights(trials) == {trials[0]: {"last": "best", "best": "best"}}


def test_without_weights_it_says_so_and_trains_again(
    stores: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run(tmp_path / "r", "first", keep="none")
    assert capsys.readouterr().err == ""
    run(out, "second", progress="lines")
    said = capsys.readouterr().err
    assert "6 finished trials are to be evaluated" in said and "trained again" in said
    assert tables(out) == tables(stores["second"])


def test_seeds_that_are_not_asked_for_wait_for_their_evaluation(
    stores: dict[str, Path], tmp_path: Path, no_training: None
) -> None:
    out = Path(shutil.copytree(stores["first"], tmp_path / "r"))
    run(out, "second", seeds=1)
    with Store.read(out) as store:
        assert len(store.unevaluated()) == 4, "a configuration is evaluated in one way"
        assert set(store.status().values()) == {"finished"}
    run(out, "second")
    assert tables(out) == tables(stores["second"])


def test_why_a_trial_ended_stays_in_its_note(stores: dict[str, Path], tmp_path: Path, no_training: None) -> None:
    out = Path(shutil.copytree(stores["first"], tmp_path / "r"))
    note = "ended at a plateau, after 30 steps"
    with Store.write(out) as store:
        (trial, number), *_ = store._numbers(list(store.status())).items()
        with store._transaction():
            store._db.execute("UPDATE trials SET status = 'stopped', note = ? WHERE number = ?", (note, number))
            write_checksums(store._db, ("trials",), [number])
    run(out, "second")
    with Store.read(out) as store:
        rows = store.trials().set_index("trial")
        assert rows.status[trial] == "stopped" and rows.note[trial] == note and store.unevaluated() == {}


def test_damaged_weights_are_refused_or_trained_again(stores: dict[str, Path], tmp_path: Path) -> None:
    out = Path(shutil.copytree(stores["first"], tmp_path / "r"))
    damaged = sorted((out / "weights").iterdir())[0]
    damaged.write_bytes(b"no weights")
    with pytest.raises(CheckFailed, match=rf"{damaged.name} is damaged.*--discard-damaged"):
        run(out, "second")
    run(out, "second", discard_damaged=True)
    assert tables(out) == tables(stores["second"])


def test_a_failing_evaluation_leaves_the_trial_as_it_was(
    stores: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from unseen.running import chunk

    out = Path(shutil.copytree(stores["first"], tmp_path / "r"))
    evaluate = chunk.evaluate
    bad = study("first").entries("smoke")[1].trial

    def fails(stack: Any, task: Any, evaluation: Any, origin: Any) -> Any:
        if bad.seed in origin.data_seeds and len(origin.data_seeds) == 1:
            raise ValueError("made up")
        if bad.seed in origin.data_seeds:
            raise ValueError("one of these")
        return evaluate(stack, task, evaluation, origin)

    monkeypatch.setattr(chunk, "evaluate", fails)
    run(out, "second")
    with Store.read(out) as store:
        assert set(store.status().values()) == {"finished"}
        assert set(store.failures()["cause"]) == {"ValueError: made up"} and len(store.unevaluated()) == 2
    run(out, "second")  # failed ones stay so
    with Store.read(out) as store:
        assert len(store.failures()) == 2
    monkeypatch.undo()
    run(out, "second", retry_failed=True)
    assert tables(out) == tables(stores["second"])


@pytest.mark.slow
def test_worker_processes_evaluate_to_the_same_bits(stores: dict[str, Path], tmp_path: Path) -> None:
    out = Path(shutil.copytree(stores["first"], tmp_path / "r"))
    run(out, "second", executor="local", workers=2)
    assert tables(out) == tables(stores["second"])


@pytest.mark.ray
def test_ray_evaluates_to_the_same_bits(stores: dict[str, Path], tmp_path: Path) -> None:
    pytest.importorskip("ray")
    out = Path(shutil.copytree(stores["first"], tmp_path / "r"))
    run(out, "second", executor="ray", workers=2)
    assert tables(out) == tables(stores["second"])


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from running.test_runner_evaluations import run
from unseen.store.store import Store
commit, commits = Store.commit, []
def commit_and_die(*arguments):
    commit(*arguments)
    commits.append(arguments)
    if len(commits) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
Store.commit = commit_and_die
run(Path(sys.argv[1]), "second", stack=1)
"""


@pytest.mark.slow
def test_killed_while_evaluating_it_goes_on_to_the_same_bits(stores: dict[str, Path], tmp_path: Path) -> None:
    out = Path(shutil.copytree(stores["first"], tmp_path / "r"))
    child = subprocess.run([sys.executable, "-c", KILLED, str(out), str(Path(__file__).parents[1])], check=False)
    assert child.returncode == -signal.SIGKILL
    with Store.read(out) as store:
        assert len(store.unevaluated()) == 4
    run(out, "second")
    assert tables(out) == tables(stores["second"])


# -- the environment --------------------------------------------------------------------------------------------------


def test_variables_that_change_numbers_are_noted_and_a_change_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    from unseen.running.provenance import provenance

    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    provenance.cache_clear()
    out = run(tmp_path / "r", "first", seeds=1)
    with Store.read(out) as store:
        assert set(store.provenance()["ONEDNN_MAX_CPU_ISA"]) == {"AVX2"}
    run(out, "first", seeds=1)
    assert len(recwarn) == 0
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "SSE41")
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    with pytest.warns(UserWarning, match="ATEN_CPU_CAPABILITY was not set and is default; ONEDNN_MAX_CPU_ISA was AVX2"):
        run(out, "first", seeds=1)
    provenance.cache_clear()
