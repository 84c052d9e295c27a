"""Runs: killed, resumed, extended, in another process — always the same rows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import unseen
from unseen.studies.run import Interrupted
from unseen.studies.store import Store

TASK = {"length": 5, "train_size": 500, "evaluation_size": 300}
RECIPE = {"steps": 40, "batch": 10, "validate_every": 10, "validation_examples": 100}


def train(out: Path | None, seeds: object = 3, **given: object) -> unseen.Runs:
    settings = {**RECIPE, "progress": "none", **given}
    return unseen.train(unseen.task("retrieval/T1", **TASK), "retrieval-transformer", seeds=seeds, out=out, **settings)


def rows(path: Path, seeds: set[int] | None = None) -> list[tuple[object, ...]]:
    """Everything a store holds but provenance (times), as tuples of exact values."""
    with Store.read(path) as store:
        frames = [store.records(), store.curves(), store.cells()]
    if seeds is not None:
        frames = [f[f.seed.isin(seeds)] for f in frames]
    return [tuple(map(repr, row)) for frame in frames for row in frame.itertuples(index=False)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "undisturbed"
    train(path)
    return path


def test_stack_size_is_in_no_row(undisturbed: Path, tmp_path: Path) -> None:
    for size in (1, 2, 3):
        train(tmp_path / str(size), stack=size)
        assert rows(tmp_path / str(size)) == rows(undisturbed)


def test_more_seeds_leave_the_old_rows_as_they_are(undisturbed: Path, tmp_path: Path) -> None:
    train(tmp_path / "r", seeds=2)
    before = rows(tmp_path / "r")
    weights = {f.name: (f.read_bytes(), f.stat().st_mtime_ns) for f in (tmp_path / "r" / "weights").iterdir()}
    train(tmp_path / "r", seeds=3)
    assert rows(tmp_path / "r", {0, 1}) == before
    assert rows(tmp_path / "r") == rows(undisturbed)
    for name, (data, written) in weights.items():
        file = tmp_path / "r" / "weights" / name
        assert (file.read_bytes(), file.stat().st_mtime_ns) == (data, written)


SCRIPT = """
import sys, unseen
task = unseen.task("retrieval/T1", length=5, train_size=500, evaluation_size=300)
from unseen.studies import run
settings = run.Settings
run.Settings = lambda **k: settings(**{**k, "slice_seconds": 0.02})
import unseen.api
unseen.api.Settings = run.Settings
unseen.train(task, "retrieval-transformer", seeds=3, out=sys.argv[1], steps=40, batch=10, validate_every=10,
             validation_examples=100, progress="none", stack=3)
"""


def test_a_killed_run_goes_on_to_the_same_rows_in_another_process(undisturbed: Path, tmp_path: Path) -> None:
    out, kills = tmp_path / "r", 0
    for _ in range(40):
        child = subprocess.Popen([sys.executable, "-c", SCRIPT, str(out)], stderr=subprocess.PIPE)
        files = {f.name for f in (out / "checkpoints").glob("*.safetensors")} if out.exists() else set()
        while child.poll() is None:
            now = {f.name for f in (out / "checkpoints").glob("*.safetensors")} if out.exists() else set()
            if now - files and kills < 3:  # killed in mid-work, after something new was saved
                child.send_signal(signal.SIGKILL)
                kills += 1
                break
            time.sleep(0.005)
        _, said = child.communicate()
        if child.returncode == 0:
            break
        assert child.returncode == -signal.SIGKILL, said.decode()
    assert kills == 3
    assert rows(out) == rows(undisturbed)
    assert list((out / "checkpoints").iterdir()) == []


def test_an_interrupt_saves_the_step_under_way(undisturbed: Path, tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    from unseen.engine.train import Trainer

    step = Trainer._train_step

    def interrupted(self: Trainer) -> bool:
        if self.step == 17:
            os.kill(os.getpid(), signal.SIGINT)
        return step(self)

    monkeypatch.setattr(Trainer, "_train_step", interrupted)
    with pytest.raises(Interrupted):
        train(tmp_path / "r", stack=3)
    monkeypatch.undo()
    with Store.read(tmp_path / "r") as store:
        assert len(list(store.checkpoints())) == 1
        assert set(store.status().values()) == {"pending"}
    train(tmp_path / "r")
    assert rows(tmp_path / "r") == rows(undisturbed)


def test_runs_give_table_models_and_traces(undisturbed: Path) -> None:
    runs = train(undisturbed)
    assert list(runs.accuracy("iid").index) == [0, 1, 2]
    model = runs.model(1, "last")
    found = unseen.evaluate(model, runs.task, examples=300)
    mine = found.query("condition == 'iid' and metric == 'accuracy' and factor == ''").value.item()
    assert mine == runs.accuracy("iid", "last")[1]
    assert set(found.query("condition == 'iid' and factor == 'scenario'").level) == {"yes", "no"}
    traces = runs.trace(n=50)
    assert set(traces.traces) == {("retrieval-transformer", s) for s in range(3)}
    attention = traces.traces["retrieval-transformer", 0]["decoder.attention"]
    assert attention.shape == (50, 5)
    assert {"prediction", "encoder.attention", "encoder.state"} <= set(traces.traces["retrieval-transformer", 0])
    with pytest.raises(unseen.UsageError, match=r"decoder\.attention"):
        runs.trace(keep=["decoder.atention"])
    with pytest.raises(unseen.UsageError, match="seed 9"):
        runs.model(9)
    assert any("paper: 1000000" in d for d in runs.deviations)


def test_a_fixed_data_seed_gives_all_seeds_the_same_data(tmp_path: Path) -> None:
    """Same data, same initial weights, no dropout: only the data could differ, and it does not."""
    same = train(None, seeds=[0, 1], data_seed=5)
    assert set(same.table.data_seed) == {"5"}
    own = train(None, seeds=[0, 1])
    assert set(own.table.data_seed) == {"0", "1"}


class Mine(nn.Module):
    """A user's model: made with the spec."""

    def __init__(self, spec: object) -> None:
        super().__init__()
        width = spec.field("sequence").width  # type: ignore[attr-defined]
        self.answer = nn.Linear(2 * width, 1)

    def forward(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.answer(torch.cat([inputs["sequence"].amax(1), inputs["query"]], -1))


def test_a_users_class_trains_and_comes_back(tmp_path: Path) -> None:
    task = unseen.task("retrieval/T1", **TASK)
    runs = unseen.train(task, Mine, seeds=2, out=tmp_path / "r", progress="none", **RECIPE)
    assert isinstance(runs.model(0), Mine)
    assert np.isfinite(runs.accuracy("iid")).all()
    assert runs.trace(n=10).traces["test_runs:Mine", 0]["prediction"].shape == (10, 1)


def test_a_model_that_lacks_a_field_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    from unseen.spec import Field, Spec, Target
    from unseen.tasks.base import Task

    class Other(Task):
        name: str = "other/one"

        @property
        def spec(self) -> Spec:
            return Spec((), (Field("x", "real", 2),), Target("binary"))

    with pytest.raises(unseen.UsageError, match="no input field 'sequence'"):
        unseen.train(Other(), "retrieval-transformer", out=tmp_path / "r")
    assert not (tmp_path / "r").exists()
