"""`unseen exam`: a stranger's class from the first error to the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

import unseen
from unseen.cli.main import app
from unseen.errors import UsageError

CODE = """
import torch
import unseen
from torch import nn

class Mine(unseen.Adapter):
    class Options(unseen.Adapter.Options):
        width: int = 16

    def core(self, width):
        return nn.GRU(width, width, batch_first=True)

class Narrow(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.answer = nn.Linear(spec.field("sequence").width, 1)

    def forward(self, inputs):
        return self.answer(inputs["sequence"].mean(1))
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"examined_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["exam", *map(str, arguments)])


@pytest.mark.parametrize(
    ("model", "more", "said"),
    [
        ("nowhere:Model", (), "can't be imported"),
        ("lstmm", (), "Did you mean 'lstm'"),
        ("lstm", ("--set", "widht=8"), "Did you mean 'width'"),
        ("lstm", ("--scale", "minni"), "has no scale 'minni'"),
    ],
)
def test_wrong_use_leaves_nothing(model: str, more: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = invoke(model, "--out", tmp_path / "out", *more)
    assert isinstance(done.exception, UsageError) and said in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_a_class_that_fits_some_tests_only_is_refused_at_once(module: str, tmp_path: Path) -> None:
    done = invoke(f"{module}:Narrow", "--scale", "smoke", "--out", tmp_path / "out")
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith("test 'tables' (ctl/A): ") and "sequence" in str(done.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_strangers_class_is_examined(module: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = (f"{module}:Mine", "--set", "width=8", "--scale", "smoke", "--workers", 2, "--out", out)
    done = invoke(*asked)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == f"{module}:Mine" and lines[1].split()[:3] == ["ability", "test", "score"]
    assert len([line for line in lines if line.startswith("in-distribution")]) == 7
    assert (
        f"specialization needs the activations gating.weights, which {module}:Mine does not report."
        in done.stderr.splitlines()
    )
    text = (out / "report.html").read_text()
    assert "exam-abilities" in text and "exam-matrix" in text
    before = unseen.results(out)
    assert set(before["status"]) == {"finished"}
    again = invoke(*asked)  # nothing is left to run
    assert again.exit_code == 0 and again.stdout == done.stdout
    assert unseen.results(out).equals(before)
