"""The summary of `unseen results DIR`: a line per configuration, also where axes differ between grids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import unseen
from support.finished_store import fill_store
from unseen.cli.output import csv_text
from unseen.cli.summary import _list_notes, _list_runs, summarize
from unseen.spec import Spec
from unseen.store.store import Store
from unseen.store.tables import trials_table
from unseen.studies.grid import Grid
from unseen.studies.study import Study

BASE = {"task": {"name": "retrieval/T1", "length": 3}, "model": {"name": "lstm"}}


def grid(path: str, levels: list[Any], seeds: int = 3) -> Grid:
    part, _, option = path.partition(".")
    return Grid({option: {level: {part: {option: level}} for level in levels}}, BASE, range(seeds))


def lines(out: Path, *grids: Grid) -> list[str]:
    fill_store([entry for one in grids for entry in one.entries()], out)
    return summarize(out).splitlines()


def test_every_configuration_has_a_line_in_the_order_of_the_study(tmp_path: Path) -> None:
    found = lines(tmp_path / "r", grid("task.length", [10, 5]))
    assert found[0] == "many-trials@1 full: 6 of 6 trials have ended"
    assert found[2] == "accuracy:" and found[3].split() == ["length", "runs", "iid", "ood/single"]
    assert [line.split()[:3] for line in found[4:6]] == [["10", "3", "0.001"], ["5", "3", "0.004"]]
    assert found[4].count("[") == 2


def test_a_configuration_without_a_level_on_some_axis_has_a_line_too(tmp_path: Path) -> None:
    found = lines(tmp_path / "r", grid("model.width", [16, 32]), grid("recipe.optimiser", ["sgd"]))
    assert [line.split()[0] for line in found[4:7]] == ["16", "32", "sgd"]
    assert found[6].startswith(" "), "the column width is empty"


def test_whole_numbers_stay_whole_where_some_trials_have_no_level(tmp_path: Path) -> None:
    """pandas makes 16 into 16.0 beside a row that has no width."""
    found = lines(tmp_path / "r", grid("model.width", [16]), grid("recipe.optimiser", ["sgd"]))
    assert [line.split()[0] for line in found[4:6]] == ["16", "sgd"]
    with Store.read(tmp_path / "r") as store:
        trials = trials_table(store.entries())
        records = store.records()
    widths = {row.split(",")[1] for row in csv_text(records).splitlines()[1:]}
    assert widths == {"16", ""}
    missing = trials.assign(status="failed")
    assert " seeds 0, 1, 2" in _list_runs(missing, ["optimiser", "width"], "failed")
    assert (
        "16.0" not in _list_runs(missing, ["optimiser", "width"], "failed")
        and list(trials.width) == [16] * 3 + [None] * 3
    )


def test_a_long_table_has_intervals_too(tmp_path: Path) -> None:
    found = lines(tmp_path / "r", grid("recipe.steps", list(range(1, 202))))
    assert len([line for line in found if line.count("[") == 2]) == 201


def test_records_and_entries_are_of_one_moment_and_the_overall_ones_a_part_of_all(tmp_path: Path) -> None:
    fill_store(grid("task.length", [5, 10]).entries(), tmp_path / "r")
    with Store.read(tmp_path / "r") as store:
        (overall, entries), (records, same) = store.tables(overall=True), store.tables()
        assert records.equals(store.records()) and entries.equals(same)
    assert overall.equals(records[records.factor == ""].reset_index(drop=True))
    assert 0 < len(overall) < len(records) and len(entries) == 6


def test_a_training_tells_what_its_analyses_measured(tmp_path: Path) -> None:
    evaluation = unseen.Evaluation(
        analyses=("specialization",), examples=50, activation_examples=50, adaptation_examples=2
    )
    model = unseen.model("rules-mlp", width=8, gating="truth")
    task = unseen.task("rules/mlp", rules=2)
    unseen.train(task, model, seeds=2, steps=2, evaluation=evaluation, out=tmp_path / "r")
    told = " ".join(summarize(tmp_path / "r").split())
    for selection in ("best", "last"):
        start = told.index(f"iid specialization, {selection} weights, means over seeds: ")
        assert "alignment 0.000, " in told[start:] and "collapse_avg 0.0" in told[start:]


def test_a_training_without_analyses_has_a_summary(tmp_path: Path) -> None:
    task = unseen.task("retrieval/T1", length=3, train_size=20, evaluation_size=20)
    unseen.train(task, unseen.model("lstm", width=4), seeds=1, steps=2, out=tmp_path / "r")
    assert "iid accuracy, best weights: " in summarize(tmp_path / "r")


class Idle(nn.Module):
    """The model of a user, who forgot one of its parameters."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.used = nn.Linear(spec.field("query").width, spec.target.width)
        self.unused = nn.Parameter(torch.zeros(1))

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        answer: Tensor = self.used(inputs["query"])
        return answer


def test_a_summary_has_the_notes_of_its_trials(tmp_path: Path) -> None:
    task = unseen.task("retrieval/T1", length=3, train_size=20, evaluation_size=20)
    with pytest.warns(UserWarning, match="no gradient"):
        unseen.train(task, Idle, seeds=2, steps=2, out=tmp_path / "r", progress="none")
    assert "note: 1 of 3 parameters get no gradient: unused" in summarize(tmp_path / "r").splitlines()
    options = {"name": "retrieval/T1", "length": 3, "train_size": 20, "evaluation_size": 20}
    one = Grid({}, {"task": options, "model": {"name": f"{__name__}:Idle"}, "recipe": {"steps": 2}}, range(2))
    unseen.run(
        Study("idle", 1, "?", {"mini": None}, lambda scale: [one]), tmp_path / "s", executor="inline", progress="none"
    )
    assert "note: 1 of 3 parameters get no gradient: unused" in summarize(tmp_path / "s").splitlines()


def test_notes_are_counted_where_not_all_trials_have_them() -> None:
    left_out = "R7 left out: it is about retrieval/T5"
    trials = pd.DataFrame({"status": ["finished", "diverged", "pending"], "note": [left_out, "", left_out]})
    assert _list_notes(trials) == [f"note: {left_out} (1 of 2 runs)"]
    many = pd.DataFrame({"status": "stopped", "note": [f"ended after {step} steps" for step in range(9)]})
    assert _list_notes(many)[-1] == "3 further notes: --trials" and len(_list_notes(many)) == 7
