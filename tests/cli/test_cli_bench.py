"""`unseen bench`: the table, the file, and wrong use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.program import Done, inside, outside
from unseen.cli import bench

CODE = """
from torch import nn

class Narrow(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.answer = nn.Linear(spec.field("sequence").width, 1)

    def forward(self, inputs):
        return self.answer(inputs["sequence"].mean(1))
"""
SMALL = ["--set", "length=3", "--set", "train_size=300", "--batch", "4", "--seconds", "0"]


def test_figures_of_several_models(tmp_path: Path) -> None:
    file = tmp_path / "speed.json"
    (tmp_path / "narrow_model.py").write_text(CODE)
    done = inside(
        "bench", "retrieval-transformer", "narrow_model:Narrow", *SMALL, "--stack", "1,3", "--json", file, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    title, header, *rows = done.stdout.splitlines()
    assert title.startswith("retrieval/T6, batch of 4; milliseconds per training step and seed")
    assert "plain loop" in header and "stack of 3" in header
    assert [row.split()[0] for row in rows] == ["retrieval-transformer", "narrow_model:Narrow"]
    figures = json.loads(file.read_text())
    assert figures["batch"] == 4 and figures["machine"]["torch"]
    transformer, narrow = figures["models"]
    assert transformer["parameters"] > narrow["parameters"] > 0
    assert transformer["flops_per_step"] > 0 and transformer["plain_loop_ms"] > 0
    assert set(transformer["stack_ms"]) == set(transformer["speed_up"]) == {"1", "3"}


def test_times_are_per_seed_and_ratios_within_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of the loop takes 4 ms, a stack 8 ms, and a busy round twice as long."""
    calls = {"rounds": 0}

    def fake_time(step: object, repeats: int) -> float:
        calls["rounds"] += 1
        # Two calibrations, then rounds of two contenders each; the second round is busy.
        slow = 2.0 if calls["rounds"] in (5, 6) else 1.0
        return slow * (0.004 if step is loop else 0.008)

    def loop() -> None: ...

    trial = bench._make_trial("lstm", "retrieval/T6", {"task": {"length": 3}, "model": {}, "recipe": {}})
    monkeypatch.setattr(bench, "_time", fake_time)
    monkeypatch.setattr(bench, "_plain_loop", lambda trial: loop)
    monkeypatch.setattr(bench, "_stacked_step", lambda trial, size: lambda: None)
    (row,) = bench._measure({"lstm": trial}, [4], 1.0)
    assert row["plain_loop_ms"] == pytest.approx(4.0) and row["stack_ms"][4] == pytest.approx(2.0)
    assert row["speed_up"][4] == pytest.approx(2.0)


def test_the_real_command() -> None:
    done = outside("bench", "lstm", *SMALL, "--stack", "2")
    assert done.returncode == 0, done.stderr
    assert "lstm" in done.stdout and "(2 seeds)" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lstm", "--stack", "1,x"], "--stack 1,x: expected different positive numbers, like 1,4,16"),
        (["lstm", "--stack", "0"], "expected different positive numbers"),
        (["lstm", "--task", "retrieval/T66"], "Did you mean"),
        (["lstm", "--set", "widht=8"], "Did you mean 'width'?"),
        (["gcog-rnn"], "gcog"),
    ],
)
def test_wrong_use(arguments: list[str], message: str) -> None:
    done: Done = inside("bench", *arguments)
    assert done.returncode == 2 and message in done.stderr, done.stderr
