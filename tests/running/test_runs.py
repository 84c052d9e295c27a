"""Runs: killed, resumed, extended, in another process — always the same rows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import unseen
from unseen.running.runner import Interrupted, Settings, run_entries
from unseen.store.store import Store
from unseen.studies.trial import Entry, Trial, model_config
from unseen.training.trainer import Trainer

TASK = {"length": 5, "train_size": 500, "evaluation_size": 300}
RECIPE = {"steps": 40, "batch": 10, "validate_every": 10, "validation_examples": 100}


def train(out: Path | None, seeds: object = 3, **given: object) -> unseen.Runs:
    settings = {**RECIPE, "progress": "none", **given}
    return unseen.train(unseen.task("retrieval/T1", **TASK), "retrieval-transformer", seeds=seeds, out=out, **settings)


def rows(path: Path, seeds: set[int] | None = None) -> list[tuple[object, ...]]:
    """Everything a store holds but provenance (times), as tuples of exact values."""
    with Store.read(path) as store:
        frames = [store.records(), store.curves(), store.trials()]
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
import os, signal, sys, unseen, unseen.api
from unseen.running.runner import Settings
from unseen.store import store
place, count = {"file": (store, "write_file"), "commit": (store.Store, "commit")}[sys.argv[2]], int(sys.argv[3])
function, calls = getattr(*place), []
def call_and_die(*arguments):
    result = function(*arguments)
    calls.append(arguments)
    if len(calls) == count:
        os.kill(os.getpid(), signal.SIGKILL)
    return result
setattr(*place, call_and_die)
unseen.api.Settings = lambda **k: Settings(**{**k, "chunk_seconds": 1e-9})  # a step in each chunk
task = unseen.task("retrieval/T1", length=5, train_size=500, evaluation_size=300)
unseen.train(task, "retrieval-transformer", seeds=3, out=sys.argv[1], steps=40, batch=10, validate_every=10,
             validation_examples=100, progress="none", stack=3)
"""


def test_a_killed_run_goes_on_to_the_same_rows_in_another_process(undisturbed: Path, tmp_path: Path) -> None:
    """Killed when a checkpoint has its file, and no row yet; then twice after a transaction; the last time it ends."""
    out = tmp_path / "r"
    for function, count, code in (("file", 3, -9), ("commit", 9, -9), ("commit", 14, -9), ("commit", 0, 0)):
        command = [sys.executable, "-c", SCRIPT, str(out), function, str(count)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert len(list((out / "checkpoints").glob("*.safetensors"))) == (code != 0) + (function == "file")
    assert rows(out) == rows(undisturbed)
    assert list((out / "checkpoints").iterdir()) == []


def interrupt_in_step_17(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the user pressed Ctrl-C while the step is computed."""
    step = Trainer._train_step

    def interrupted(self: Trainer) -> bool:
        if self.step == 17:
            os.kill(os.getpid(), signal.SIGINT)
        return step(self)

    monkeypatch.setattr(Trainer, "_train_step", interrupted)


def test_an_interrupt_saves_the_step_under_way(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_in_step_17(monkeypatch)
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
    mine = found.query("split == 'iid' and metric == 'accuracy' and factor == ''").value.item()
    assert mine == runs.accuracy("iid", "last")[1]
    assert set(found.query("split == 'iid' and factor == 'scenario'").level) == {"yes", "no"}
    traces = runs.activations(n=50)
    assert set(traces.activations) == {("retrieval-transformer", s) for s in range(3)}
    attention = traces.activations["retrieval-transformer", 0]["decoder.attention"]
    assert attention.shape == (50, 5)
    assert {"prediction", "encoder.attention", "encoder.state"} <= set(traces.activations["retrieval-transformer", 0])
    with pytest.raises(unseen.UsageError, match=r"decoder\.attention"):
        runs.activations(keep=["decoder.atention"])
    with pytest.raises(unseen.UsageError, match="seed 9"):
        runs.model(9)
    assert any("paper: 1000000" in d for d in runs.deviations)


def test_a_fixed_data_seed_gives_all_seeds_the_same_data(tmp_path: Path) -> None:
    from unseen.training.batches import Source, StackBatches

    task = unseen.task("retrieval/T1", **TASK)
    seen: list[tuple[int, ...]] = []
    batch = StackBatches.batch

    def spy(self: StackBatches, step: int, sources: list[Source]) -> object:
        seen.append(tuple(data_seed for _, data_seed in sources))
        return batch(self, step, sources)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StackBatches, "batch", spy)
        train(None, seeds=[0, 1], data_seed=5, stack=2)
        train(None, seeds=[0, 1], stack=2)
    assert set(seen) == {(5, 5), (0, 1)}
    first, second = StackBatches(10, True).batch(3, [(task, 5), (task, 5)]).inputs["sequence"]
    assert np.array_equal(first, second)
    first, second = StackBatches(10, True).batch(3, [(task, 0), (task, 1)]).inputs["sequence"]
    assert not np.array_equal(first, second)


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
    assert runs.activations(n=10).activations["test_runs:Mine", 0]["prediction"].shape == (10, 1)


def test_fewer_seeds_after_an_interrupt_leave_the_others_where_they_were(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_in_step_17(monkeypatch)
    with pytest.raises(KeyboardInterrupt, match="same command again to resume"):
        train(tmp_path / "r", stack=3)
    monkeypatch.undo()
    with Store.read(tmp_path / "r") as store:
        assert set(store.trials().step) == {18}
    train(tmp_path / "r", seeds=2)
    with Store.read(tmp_path / "r") as store:
        assert store.trials().step.tolist() == [40, 40, 18]
    train(tmp_path / "r")
    assert rows(tmp_path / "r") == rows(undisturbed)


def test_a_changed_class_is_other_work(tmp_path: Path) -> None:
    def make(gain: float) -> type[nn.Module]:
        class Made(Mine):
            def forward(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
                return gain * super().forward(inputs)

        return Made

    task = unseen.task("retrieval/T1", **TASK)
    unseen.train(task, make(1.0), seeds=1, out=tmp_path / "r", progress="none", **RECIPE)
    unseen.train(task, make(1.0), seeds=1, out=tmp_path / "r", progress="none", **RECIPE)
    with pytest.raises(unseen.UsageError, match="model source"):
        unseen.train(task, make(50.0), seeds=1, out=tmp_path / "r", progress="none", **RECIPE)
    texts = ["return x", "return x + 1"]
    found = []
    for text in texts:
        space: dict[str, type[nn.Module]] = {}
        exec(f"import torch\nclass Same(torch.nn.Module):\n    def forward(self, x):\n        {text}", space)
        found.append(model_config(space["Same"]))
    assert found[0] != found[1]


class Fixed(nn.Module):
    """Nothing to train."""

    def forward(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        return inputs["sequence"].sum((1, 2))[:, None] - 30


class Recurrent(nn.Module):
    """A module that vmap refuses."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.answer = nn.LSTM(36, 4, batch_first=True), nn.Linear(4, 1)

    def forward(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.answer(self.encode(inputs["sequence"])[0][:, -1])


def test_any_module_can_be_evaluated() -> None:
    task = unseen.task("retrieval/T1", **TASK)
    for module in (Fixed(), Recurrent(), Recurrent().requires_grad_(False)):
        found = unseen.evaluate(module, task, examples=100)
        assert np.isfinite(found.query("metric == 'accuracy' and factor == ''").value).all()
    runs = unseen.train(task, Recurrent, seeds=1, progress="none", **RECIPE)
    assert runs.activations(n=20).activations["test_runs:Recurrent", 0]["prediction"].shape == (20, 1)
    assert "member by member" in runs.trials.note.item()


class Lacking(Mine):
    def forward(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        return inputs["tokens"]


class Flat(Mine):
    def forward(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        return super().forward(inputs)[:, 0]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": Lacking}, "'tokens' is not an input of this task"),
        ({"model": Flat}, "prediction has shape"),
        ({"model": Fixed}, "no parameters to train"),
        ({"model": nn.Linear(2, 2)}, "nn.Module class"),
        ({"model": nn.Linear}, "needs in_features, out_features"),
        ({"stack": 0}, "stack = 0"),
        ({"data_seed": "test"}, "data seed 'test'"),
        ({"seeds": 2.5}, "seeds = 2.5"),
        ({"seeds": [1, 1]}, "different"),
        ({"device": "banana"}, "device 'banana'"),
        ({"evaluation": unseen.Evaluation(splits=("odo/single",))}, "ood/single"),
    ],
)
def test_wrong_calls_are_refused_before_anything_is_written(
    given: dict[str, object], said: str, tmp_path: Path
) -> None:
    call = {"model": "retrieval-transformer", "seeds": 1, "out": tmp_path / "r", "progress": "none", **RECIPE, **given}
    with pytest.raises(unseen.UsageError, match=said):
        unseen.train(unseen.task("retrieval/T1", **TASK), **call)
    assert not (tmp_path / "r").exists()


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


def test_curves_and_plateaus_are_the_same_from_every_stack_and_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs end at a plateau in different chunks and stacks, with a split on the curve: always the same rows."""
    monkeypatch.setattr("unseen.training.convergence.left_start", lambda scores: True)
    monkeypatch.setattr("unseen.training.convergence.LEAST_VALIDATIONS", 6)
    # The bound is such that some seeds end early, at different steps.
    given = {"evaluation": unseen.Evaluation(curve=("iid",)), "plateau": 0.2, "validate_every": 2}
    train(tmp_path / "3", **given)
    for size in (1, 2):
        train(tmp_path / str(size), stack=size, **given)
        assert rows(tmp_path / str(size)) == rows(tmp_path / "3")
    used = unseen.recipe(**{**RECIPE, "plateau": given["plateau"], "validate_every": 2})
    chosen = unseen.task("retrieval/T1", **TASK), model_config("retrieval-transformer"), used, given["evaluation"]
    with Store.write(tmp_path / "chunks") as store:
        entries = [Entry({}, Trial(*chosen, seed, seed)) for seed in range(3)]
        run_entries(entries, store, Settings(chunk_seconds=1e-9, progress="none"), "")  # a step in each chunk
    assert rows(tmp_path / "chunks") == rows(tmp_path / "3")
    with Store.read(tmp_path / "3") as store:
        trials, curves = store.trials(), store.curves()
    early = trials[trials.status == "stopped"]
    assert len(early) and (early.step < 40).all()
    assert (early.note == [f"ended at a plateau, after {step} steps" for step in early.step]).all()
    for trial, step in trials.set_index("trial").step.items():
        on_curve = curves[(curves.trial == trial) & (curves.split == "iid") & (curves.metric == "accuracy")]
        assert on_curve.step.tolist() == list(range(0, step + 1, 2))


def test_a_curve_may_be_asked_for_later(undisturbed: Path, tmp_path: Path) -> None:
    """It is no part of the work: a store that was filled without one goes on, and what has ended stays as it is."""
    train(tmp_path / "r", seeds=2)
    before = rows(tmp_path / "r")
    train(tmp_path / "r", seeds=3, evaluation=unseen.Evaluation(curve=("iid",), curve_points=4))
    assert rows(tmp_path / "r", {0, 1}) == before
    with Store.read(tmp_path / "r") as store:
        curves = store.curves()
    assert set(curves.seed[curves.split == "iid"]) == {2}
    added = {row for row in rows(tmp_path / "r", {2}) if "'iid'" not in row}
    assert added == {row for row in rows(undisturbed, {2}) if "'iid'" not in row}
