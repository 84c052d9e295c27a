"""Trackers: what TensorBoard, MLflow and W&B read back is what the store holds, once, whatever was killed."""

from __future__ import annotations

import json
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import unseen
from unseen import tracking
from unseen.cli.main import app
from unseen.errors import UsageError
from unseen.store.store import Store
from unseen.tracking import RunUpdate, TrackedRun, follow
from unseen.tracking.follow import STATE_FILE, LogWriter

TASK = {"length": 3, "train_size": 500, "evaluation_size": 300}
RECIPE = {"steps": 60, "batch": 10, "validate_every": 20, "validation_examples": 100, "progress": "none"}
BLOCK = 32768
Values = dict[str, dict[str, list[tuple[int, float]]]]
"""By trial and name: (step, value) in the order of the files, doubles included."""


def train(out: Path, seeds: int = 2, **given: object) -> unseen.Runs:
    return unseen.train(
        unseen.task("retrieval/T1", **TASK), "retrieval-transformer", seeds=seeds, out=out, **{**RECIPE, **given}
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tracking") / "store"
    train(path)
    return path


def held(path: Path) -> Values:
    """What a store holds, by plain queries of its tables."""
    found: Values = {}
    with Store.read(path) as opened:
        trials, curves, records = opened.trials().set_index("trial"), opened.curves(), opened.records()
    for row in curves.itertuples():
        found.setdefault(row.trial, {}).setdefault(f"{row.split}/{row.metric}", []).append((row.step, row.value))
    for row in records[records.factor == ""].itertuples():
        name = f"{row.selection}/{row.split}/{row.metric}"
        found[row.trial][f"summary/{name}"] = [(trials.step[row.trial], row.value)]
    return found


def same(read: Values, expected: Values) -> None:
    assert read.keys() == expected.keys()
    for trial, names in expected.items():
        assert read[trial].keys() == names.keys()
        for name, points in names.items():
            assert [step for step, _ in read[trial][name]] == [step for step, _ in points], name
            assert [v for _, v in read[trial][name]] == pytest.approx([v for _, v in points], rel=1e-6, nan_ok=True)


def from_tensorboard(logs: Path) -> Values:
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found: Values = {}
    for folder in (f for f in logs.iterdir() if f.is_dir()):
        reader = accumulators.EventAccumulator(str(folder), size_guidance={"scalars": 0})
        reader.Reload()
        trial = folder.name[-16:]
        assert trial not in found
        found[trial] = {tag: [(e.step, e.value) for e in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}
    return found


def from_mlflow(logs: Path) -> Values:
    mlflow_tracking = pytest.importorskip("mlflow.tracking")
    client, found = mlflow_tracking.MlflowClient(tracking_uri=f"sqlite:///{logs}/mlflow.db"), Values()
    experiments = [e.experiment_id for e in client.search_experiments() if e.name != "Default"]
    for run in client.search_runs(experiments):
        trial = run.data.tags["unseen.trial"]
        assert trial not in found and run.info.status == "FINISHED"
        assert run.data.params["task"] == "retrieval/T1" and run.data.params["recipe.steps"] == "60"
        found[trial] = {
            key: [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, key)]
            for key in run.data.metrics
        }
    return found


def framed(data: bytes) -> Iterator[bytes]:
    """The records of a W&B file: a header of 7 bytes, then LevelDB's log format (wandb has no reader in Python)."""
    assert data[:4] == b":W&B"
    at, whole = 7, b""
    while at + 7 <= len(data):
        if BLOCK - at % BLOCK < 7:
            at += BLOCK - at % BLOCK
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # full, or the last piece
            yield whole
            whole = b""


def from_wandb(logs: Path) -> Values:
    """Offline files, their records parsed by wandb."""
    wandb_internal_pb2 = pytest.importorskip("wandb.proto.wandb_internal_pb2")

    found: Values = {}
    for file in (logs / "wandb").glob("offline-run-*/*.wandb"):
        trial = file.stem.removeprefix("run-")
        assert trial not in found
        names = found.setdefault(trial, {})
        summary: dict[str, object] = {}
        for data in framed(file.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            if record.WhichOneof("record_type") == "history":
                items = {".".join(i.nested_key) or i.key: json.loads(i.value_json) for i in record.history.item}
                for name, value in items.items():
                    if not name.startswith("_"):
                        names.setdefault(name, []).append((items["_step"], value))
            elif record.WhichOneof("record_type") == "summary":
                summary |= {".".join(i.nested_key) or i.key: json.loads(i.value_json) for i in record.summary.update}
        with_ending = {k: v for k, v in summary.items() if k.startswith(("best/", "last/")) or k == "ending"}
        assert with_ending.pop("ending") == "finished"
        names |= {f"summary/{name}": [(60, float(str(value)))] for name, value in with_ending.items()}
    return found


READERS: dict[str, Callable[[Path], Values]] = {
    "tensorboard": from_tensorboard,
    "mlflow": from_mlflow,
    "wandb": from_wandb,
}


def write(store: Path, tool: str, logs: Path) -> int:
    pytest.importorskip(tool)
    with LogWriter(store, tool, logs) as writer:
        return writer.update()


@pytest.mark.parametrize("tool", READERS)
def test_what_the_tool_reads_is_what_the_store_holds(tool: str, store: Path, tmp_path: Path) -> None:
    assert write(store, tool, tmp_path / "logs") == 2
    same(READERS[tool](tmp_path / "logs"), held(store))
    assert write(store, tool, tmp_path / "logs") == 0  # a second look finds nothing new
    (tmp_path / "logs" / STATE_FILE).unlink()  # as if it had been killed before the state was saved
    assert write(store, tool, tmp_path / "logs") == 2
    same(READERS[tool](tmp_path / "logs"), held(store))


def test_a_run_that_goes_on_is_added_to_and_what_a_kill_left_is_cut_off(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store as it was at steps 20 and 40, seen through a smaller `rows`, and killed before the state was saved."""
    pytest.importorskip("tensorboard")
    logs, rows, entries = tmp_path / "logs", Store.rows, Store.entries
    for step in (20, 40):
        monkeypatch.setattr(
            Store,
            "rows",
            lambda self, table, trial, at=step: [
                r for r in rows(self, table, trial) if table == "curves" and r[1] <= at
            ],
        )
        monkeypatch.setattr(Store, "entries", lambda self, at=step: entries(self).assign(step=at, status="pending"))
        before = (logs / STATE_FILE).read_text() if step == 40 else ""
        assert write(store, "tensorboard", logs) == 2
        if step == 40:
            (logs / STATE_FILE).write_text(before)
    monkeypatch.undo()
    assert write(store, "tensorboard", logs) == 2
    same(from_tensorboard(logs), held(store))
    shutil.rmtree(next(f for f in logs.iterdir() if f.is_dir()))  # lost by its owner: written again, whole
    assert write(store, "tensorboard", logs) == 1
    same(from_tensorboard(logs), held(store))


SCRIPT = """
import os, signal, sys, unseen, unseen.api
from unseen.running.runner import Settings
from unseen.tracking import follow
save = follow.LogWriter._save_states
def save_and_die(self):
    if sys.argv[2] != "before":
        save(self)
    if sys.argv[2] != "never":
        os.kill(os.getpid(), signal.SIGKILL)
follow.LogWriter._save_states = save_and_die
follow.follow.__wrapped__.__defaults__ = (0.1,)
unseen.api.Settings = lambda **k: Settings(**{**k, "chunk_seconds": 0.1})
unseen.train(unseen.task("retrieval/T1", length=3, train_size=500, evaluation_size=300), "retrieval-transformer",
             seeds=2, out=sys.argv[1], steps=200, batch=10, validate_every=20, validation_examples=100,
             progress="none", track="tensorboard")
"""


@pytest.mark.slow
def test_killed_and_resumed_nothing_is_counted_twice(tmp_path: Path) -> None:
    """Killed when logs are written, before and after it is noted how far."""
    pytest.importorskip("tensorboard")
    out = tmp_path / "r"
    logs = out / "tracking" / "tensorboard"
    for moment, code in (("before", -signal.SIGKILL), ("after", -signal.SIGKILL), ("never", 0)):
        done = subprocess.run([sys.executable, "-c", SCRIPT, str(out), moment], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert (logs / STATE_FILE).exists() == (moment != "before")
    same(from_tensorboard(logs), held(out))


def test_train_and_run_keep_logs_and_the_command_says_what_it_did(store: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    train(tmp_path / "r", seeds=1, track=["tensorboard", f"tensorboard:{tmp_path / 'logs'}"])
    for logs in (tmp_path / "r" / "tracking" / "tensorboard", tmp_path / "logs"):
        same(from_tensorboard(logs), held(tmp_path / "r"))
    runner = CliRunner()
    command = ["track", str(store), "--to", "tensorboard", "--out", str(tmp_path / "other")]
    assert "2 runs written" in runner.invoke(app, command).output
    assert "was up to date" in runner.invoke(app, command).output


class Broken:
    """A tracker that fails with its first run."""

    live = True
    calls = 0

    def __init__(self, path: Path) -> None: ...

    def holds(self, trial: str, state: dict[str, object]) -> bool:
        return True

    def write(self, run: TrackedRun, update: RunUpdate, state: dict[str, object]) -> dict[str, object]:
        Broken.calls += 1
        raise SystemExit("the disk of the logs is full")

    def close(self) -> None:
        raise RuntimeError("and it can't be closed")


def test_a_tracker_that_fails_is_one_warning_and_the_run_goes_on(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "open_tracker", lambda name, path: Broken(path))
    monkeypatch.setattr(tracking, "find_spec", lambda name: object())
    with pytest.warns(
        UserWarning, match=r"the logs for tensorboard are incomplete: SystemExit: the disk .*unseen track"
    ):
        train(tmp_path / "r", track="tensorboard")
    assert Broken.calls == 1 and held(tmp_path / "r") == held(store)


def test_wrong_tracks_are_refused_before_anything_is_made(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"unknown tracker 'tensorbord'. Did you mean 'tensorboard'"):
        train(tmp_path / "r", track="tensorbord")
    with pytest.raises(UsageError, match=r"unknown tracker 'tensorboard,mlflow'. Give each on its own: --track "):
        train(tmp_path / "r", track="tensorboard,mlflow")
    monkeypatch.setattr(tracking, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"wandb needs the extra 'tracking': pip install 'unseen\[tracking\]'"):
        train(tmp_path / "r", track="wandb")
    with pytest.raises(UsageError, match="the results are not kept in a directory"):
        unseen.train("retrieval/T1", "retrieval-transformer", track="mlflow")
    assert not (tmp_path / "r").exists()
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / STATE_FILE).write_text('{"tool": "mlflow", "runs": {}}')
    with pytest.raises(UsageError, match="holds logs for mlflow"):
        LogWriter(store, "tensorboard", tmp_path / "logs")
