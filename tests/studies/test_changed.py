"""`--set` and `--only`: a changed study is another one, and a slice is the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.program import inside
from support.small import STUDY
from unseen.errors import UsageError
from unseen.store.store import Store
from unseen.studies.changed import change_study
from unseen.studies.study import study

YAML = """study: mine
question: Does length matter?
base: {task: {name: retrieval/T1, train_size: 50, evaluation_size: 20}, model: {name: lstm, width: 4}, recipe: {steps: 3, batch: 4}}
axes: {task.length: [3, 4], variant: {plain: {}, wide: {model: {width: 6}}}}
scales: {smoke: {seeds: 1}}
"""


def test_a_slice_has_the_same_trials_under_the_same_name() -> None:
    whole = STUDY.entries("smoke")
    part = change_study(STUDY, {}, {"rate": ["0.003"], "variant": ["plain"]})
    chosen = [entry for entry in whole if entry.levels["rate"] == 0.003 and entry.levels["variant"] == "plain"]
    assert [entry.trial.id for entry in part.entries("smoke")] == [entry.trial.id for entry in chosen]
    assert part.work == {"study": "small@1"} and part.notes == ("only rate 0.003", "only variant plain")


def test_other_settings_make_another_study() -> None:
    changed = change_study(STUDY, {"recipe": {"steps": 7}, "task": {"length": 4}}, {})
    trials = [entry.trial for entry in changed.entries("mini")]
    assert {trial.recipe.steps for trial in trials} == {7} and {trial.task.length for trial in trials} == {4}  # type: ignore[attr-defined]
    assert len(trials) == len(STUDY.entries("mini"))
    assert changed.work == {"study": "small-changed@1", "settings": {"recipe": {"steps": 7}, "task": {"length": 4}}}
    assert {"changed: recipe.steps = 7", "changed: task.length = 4"} <= set(changed.deviations("mini"))
    assert change_study(STUDY, {"task": {}}, {}) is STUDY


def test_what_an_axis_varies_can_t_be_set() -> None:
    with pytest.raises(UsageError, match=r"the axis 'rate' sets it \(level 0.003\)"):
        change_study(STUDY, {"recipe": {"learning_rate": 1.0}}, {}).entries("smoke")


def test_table_1_on_the_released_data() -> None:
    released = change_study(study("ctl-table1"), {"task": {"preset": "released"}}, {"task": ["ctl/A"]})
    tasks = {entry.trial.task for entry in released.entries("full")}
    assert {(task.name, task.preset) for task in tasks} == {("ctl/A", "released")}  # type: ignore[attr-defined]


def test_splits_that_a_preset_names_otherwise_are_followed() -> None:
    paper = change_study(study("rules-main"), {"task": {"preset": "paper"}}, {"architecture": ["mlp", "mha"]})
    curves = {entry.trial.task.name: entry.trial.evaluation.curve for entry in paper.entries("smoke")}
    longest = "ood/length=30,amplitude=1.41421"
    assert curves == {"rules/mlp": ("iid", "ood/amplitude=1.41421"), "rules/mha": ("iid", longest)}
    chosen = change_study(study("rules-main"), {"task": {"preset": "paper"}, "evaluation": {"curve": ("iid",)}}, {})
    assert {entry.trial.evaluation.curve for entry in chosen.entries("smoke")} == {("iid",)}


def test_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(YAML)
    call = ("run", "mine.yaml", "--executor", "inline", "--out", "r", "--only", "length=3")
    done = inside(*call, "--set", "steps=2", "--set", "examples=20", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "changed: recipe.steps = 2" in done.stderr and "only length 3" in done.stderr
    with Store.read(tmp_path / "r") as store:
        assert store.work == {
            "study": "mine-changed@1",
            "settings": {"recipe": {"steps": 2}, "evaluation": {"examples": 20}},
        }
        records = store.records()
    assert set(records["length"]) == {3} and set(records["variant"]) == {"plain", "wide"}
    assert set(records[records["factor"] == ""]["n"]) == {20}
    again = inside(*call, "--set", "steps=3", cwd=tmp_path)
    assert again.returncode == 2 and "holds other work" in again.stderr
    planned = inside("plan", "mine.yaml", "--no-probe", "--set", "steps=2", "--only", "length=3", cwd=tmp_path)
    assert "--set steps=2 --only length=3" in planned.stdout and "memory" in planned.stdout


def test_analyses_of_a_single_training(tmp_path: Path) -> None:
    sizes = [f"--set={name}" for name in ("examples=50", "activation_examples=50", "adaptation_examples=5", "rules=2")]
    model = ("rules/mlp", "rules-mlp", "--set", "gating=joint", "--set", "width=4", "--steps", 2)
    done = inside("train", *model, "--seeds", "7,", "--set", "analyses=specialization", *sizes, "--out", tmp_path / "r")
    assert done.returncode == 0, done.stderr
    with Store.read(tmp_path / "r") as store:
        records = store.records()
    assert set(records["seed"]) == {7}
    assert "specialization/alignment" in set(records["metric"])
