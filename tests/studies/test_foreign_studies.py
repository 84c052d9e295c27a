"""Models of users in studies: imported by name in workers, held where they were made, refused in words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import unseen
from support.small import tables
from unseen.errors import UsageError
from unseen.models.foreign import ForeignModel
from unseen.store.load_model import load_trained
from unseen.store.store import Store
from unseen.studies.grid import Grid
from unseen.studies.study import Study, study

SMALL = {
    "task": {"name": "retrieval/T1", "length": 3, "train_size": 300, "evaluation_size": 200},
    "recipe": {"steps": 6, "batch": 10, "validate_every": 3, "validation_examples": 50},
    "evaluation": {"examples": 100},
}
CODE = """
import torch
import unseen
from torch import nn

class Bag(unseen.Adapter):
    def core(self, width):
        return nn.Linear(width, width)

class Wrong(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.answer = nn.Linear(36, 2)

    def forward(self, inputs):
        return self.answer(inputs["query"])
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A user's module in a directory that this process searches, under a name that no test had before."""
    name = f"users_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def made(models: dict[str, Any], seeds: int = 2, **more: Any) -> Study:
    grid = Grid(
        axes={"variant": {label: {"model": model} for label, model in models.items()}},
        base={**SMALL, **more},
        seeds=range(seeds),
    )
    return Study("foreign", 1, "Do strangers train?", {"smoke": None}, lambda scale: [grid])


def run(what: Study | str, out: Path, **given: Any) -> Path:
    unseen.run(what, out, **{"progress": "none", **given})
    return out


def test_two_workers_import_a_class_by_its_name(module: str, tmp_path: Path) -> None:
    yaml = tmp_path / "study.yaml"
    yaml.write_text(
        f"study: mine\nseeds: 2\nbase: {json.dumps(SMALL)}\naxes:\n  variant:\n"
        f"    mine: {{model: {{name: '{module}:Bag', width: 8}}}}\n"
        "    theirs: {model: {name: lstm, width: 8}}\n"
    )
    out = run(str(yaml), tmp_path / "local", executor="local", workers=2, keep="best", stack=1)
    records = unseen.results(out)
    assert set(records.model) == {f"{module}:Bag", "lstm"} and records.seed.nunique() == 2
    assert set(records.model_options) == {"width=8"}
    assert tables(run(str(yaml), tmp_path / "inline", executor="inline", stack=1)) == tables(out)
    with Store.read(out) as store:
        assert store.spans().worker.nunique() == 2
        assert set(store.trials().status) == {"finished"}
        trial = store.entries().trial.iloc[0]
    found = load_trained(out, trial)
    accuracy = unseen.evaluate(found.module, found.task, examples=100, splits=["iid"])
    kept = records.query(
        "trial == @trial and split == 'iid' and metric == 'accuracy' and factor == '' and selection == 'best'"
    )
    assert accuracy.query("metric == 'accuracy' and factor == ''").value.item() == kept.value.item()
    page = tmp_path / "page.html"
    unseen.report(out, page)
    assert f"{module}:Bag" in page.read_text()


def test_other_code_is_other_work(module: str, tmp_path: Path) -> None:
    out = run(made({"mine": {"name": f"{module}:Bag"}}, 1), tmp_path / "r", executor="inline", keep="best")
    (tmp_path / f"{module}_later.py").write_text(CODE.replace("nn.Linear(width, width)", "nn.Identity()"))
    with Store.write(out) as store:
        now = store.entries().model.iloc[0].replace(module, f"{module}_later")
        assert module in now
    stored = json.loads(now)
    with pytest.raises(UsageError, match="is not what it was when these runs were begun"):
        unseen.model(**{key: value for key, value in stored.items() if key != "version"})


def test_a_class_that_only_this_process_has_works_inline(module: str, tmp_path: Path) -> None:
    class Inside(nn.Module):
        def __init__(self, spec: object) -> None:
            super().__init__()
            self.answer = nn.Linear(36, 1)

        def forward(self, inputs: dict[str, Tensor]) -> Tensor:
            return self.answer(inputs["query"] + inputs["sequence"].sum(1))

    def scaled(gain: float) -> type[nn.Module]:
        class Scaled(Inside):
            def forward(self, inputs: dict[str, Tensor]) -> Tensor:
                return gain * super().forward(inputs)

        return Scaled

    what = made({"plain": {"name": Inside}, "once": {"name": scaled(1.0)}, "twice": {"name": scaled(2.0)}}, 1)
    models = [entry.trial.model for entry in what.entries("smoke")]
    assert len({model.source for model in models if isinstance(model, ForeignModel)}) == 3
    for executor in ("local", "ray"):
        with pytest.raises(UsageError, match=r"worker processes can't import .*Inside.*or use the executor inline"):
            run(what, tmp_path / "r", executor=executor)
    assert not (tmp_path / "r").exists()
    records = unseen.results(run(what, tmp_path / "r", executor="inline"))
    assert set(records.variant) == {"plain", "once", "twice"}


def test_a_model_that_does_not_fit_is_refused_and_on_a_worker_the_others_end(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class that does not fit is refused before anything is stored; a worker may have another one of that name."""
    wrong_shape = (
        "Wrong on retrieval/T1, split train: the model's prediction has shape (4, 2); expected one "
        "tensor of logits, float32 (4, 1)"
    )
    what = made({"wrong": {"name": f"{module}:Wrong"}, "mine": {"name": f"{module}:Bag", "width": 8}})
    with pytest.raises(UsageError, match=re.escape(wrong_shape)):
        run(what, tmp_path / "r", executor="local", workers=2)
    assert not (tmp_path / "r").exists()
    monkeypatch.setattr("unseen.api.check_own_models", lambda trials: None)
    out = run(what, tmp_path / "r", executor="local", workers=2)
    with Store.read(out) as store:
        assert store.entries().status.tolist() == ["failed"] * 2 + ["finished"] * 2
        assert all(wrong_shape in cause for cause in store.failures().cause)


def test_our_own_models_are_tried_on_every_split_too(tmp_path: Path) -> None:
    """Learned positions know as many places as there are in training: no trial is trained only to fail at its end."""
    base = {**SMALL, "task": {"name": "rules/rnn", "rules": 2, "dimension": 4}}
    short, enough = (
        {"name": "transformer", "width": 8, "layers": 1, "positions": "learned", **more}
        for more in ({}, {"places": 50})
    )
    out = run(made({"short": short, "enough": enough}, 1, **base), tmp_path / "r", executor="inline")
    with Store.read(out) as store:
        assert store.entries().status.tolist() == ["failed", "finished"]
        assert "split ood/length" in store.failures().cause.item()
        assert "positions 'learned' know 10 places" in store.failures().cause.item()
        assert set(store.curves().trial) == {store.entries().trial.iloc[1]}


def test_an_analysis_without_its_trace_is_left_out_of_a_study_with_a_note(module: str, tmp_path: Path) -> None:
    what = made(
        {"mine": {"name": f"{module}:Bag", "width": 8}}, 1, evaluation={"examples": 100, "analyses": ("R1", "R2")}
    )
    out = run(what, tmp_path / "r", executor="inline")
    with Store.read(out) as store:
        assert store.trials().note.item() == "R1 left out: the model captures no decoder.attention"


def test_wrong_models_of_a_study_are_answered_with_their_place(module: str, tmp_path: Path) -> None:
    for model, said in (
        ({"name": f"{module}:Bga"}, "Did you mean 'Bag'"),
        ({"name": 3}, "model name = 3 is not a name"),
        ({"name": f"{module}:Bag", "widht": 3}, "unknown option 'widht'"),
        ({"name": torch.Tensor}, "expected an nn.Module class"),
    ):
        with pytest.raises(UsageError, match=f"axis 'variant', level 'mine'.*{said}"):
            made({"mine": model}).entries("smoke")
    (tmp_path / "study.yaml").write_text(
        "study: mine\nbase: {task: {name: retrieval/T1}, recipe: {steps: 3}}\n"
        f"axes:\n  model: [lstm, '{module}:Wrong']\n"
    )
    found = study(str(tmp_path / "study.yaml")).entries("full")
    assert [entry.levels["model"] for entry in found[::5]] == ["lstm", f"{module}:Wrong"]
    (tmp_path / "study.yaml").write_text(
        f"study: mine\nbase: {{task: {{name: retrieval/T1}}}}\naxes:\n  model: [lstm, '{module}:Worng']\n"
    )
    with pytest.raises(UsageError, match=r"study\.yaml, line 4: .*Did you mean 'Wrong'"):
        study(str(tmp_path / "study.yaml")).entries("full")


@pytest.mark.slow
def test_ray_workers_import_a_class_by_its_name(module: str, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    what = made({"mine": {"name": f"{module}:Bag", "width": 8}})
    out = run(what, tmp_path / "ray", executor="ray", workers=2, stack=1)
    assert tables(out) == tables(run(what, tmp_path / "inline", executor="inline", stack=1))
