"""The contract of a task, on every registered one in every preset: a new entry is covered the moment it is there."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import get_args
from xml.etree import ElementTree

import numpy as np
import pytest
import standins

from unseen.config import digest
from unseen.errors import UsageError
from unseen.tasks import TASKS
from unseen.tasks.base import Examples, Task
from unseen.tasks.verify import fingerprint, misfits
from unseen.tasks.verify.baselines import BASELINES
from unseen.tasks.verify.purity import impurities

N = 300

NAMES = [
    f"{entry.name} {preset}".strip()
    for entry in TASKS
    if entry.target.startswith("unseen.")
    for preset in get_args(getattr(TASKS.load(entry.name).model_fields.get("preset"), "annotation", None)) or [""]
]
STANDINS: dict[str, Task] = {
    "standin/clean": standins.Clean(),
    "standin/tagging": standins.Tagging(),
    "standin/finite": standins.Clean(evaluation_size=40),
}


@pytest.fixture(params=[*NAMES, *STANDINS], scope="module")
def task(request: pytest.FixtureRequest) -> Task:
    if request.param in STANDINS:
        return STANDINS[request.param]
    name, _, preset = request.param.partition(" ")
    return TASKS.load(name).parse({"name": name, **({"preset": preset} if preset else {})})


def some(task: Task, condition: str) -> Examples:
    size = task.size(condition)
    return task.sample(condition, N if size is None else min(N, size))


def test_options_survive_json_and_give_the_same_id(task: Task) -> None:
    for options in (task.options(), task.model_dump(mode="json")):
        again = type(task).parse(json.loads(json.dumps(options)))
        assert again == task
        assert again.identity() == task.identity()
        assert digest(again.identity()) == digest(task.identity())
    assert task.options()["name"] == task.name


def test_unknown_option_is_answered_with_the_nearest(task: Task) -> None:
    option = max((name for name in type(task).model_fields if name != "name"), key=len)
    with pytest.raises(UsageError, match=f"unknown option '{option}x'. Did you mean '{option}'"):
        type(task).parse({**task.options(), f"{option}x": 1})


def test_conditions_have_train_and_the_one_for_validation(task: Task) -> None:
    assert "train" in task.conditions
    assert task.validation in task.conditions
    for name, condition in task.conditions.items():
        assert condition.name == name
        assert condition.summary
    assert task.family and "/" in task.name


def test_examples_have_the_form_of_the_spec(task: Task) -> None:
    for condition in task.conditions:
        assert misfits(task.spec, some(task, condition)) == []
        empty = task.sample(condition, 0)
        assert len(empty) == 0 and misfits(task.spec, empty) == []


def test_factors_lie_along_the_examples_and_name_what_is_unseen(task: Task) -> None:
    for name, condition in task.conditions.items():
        examples = some(task, name)
        assert all(len(values) == len(examples) for values in examples.factors.values())
        assert set(condition.unseen) <= set(examples.factors)


def test_examples_depend_on_nothing_but_their_name(task: Task) -> None:
    for condition in task.conditions:
        assert impurities(task, condition) == []


def test_data_seeds_and_conditions_have_streams_of_their_own(task: Task) -> None:
    prints = [
        fingerprint(task.sample(condition, 16, data_seed=seed))
        for condition in task.conditions
        for seed in (0, 1, "validation", "test")
    ]
    assert len(set(prints)) == len(prints)


def test_solver_agrees_and_needs_the_inputs_alone(task: Task) -> None:
    for condition in task.conditions:
        examples = some(task, condition)
        solved = task.solve(Examples(examples.inputs, np.zeros_like(examples.targets), {}))
        if task.spec.target.kind == "real":
            np.testing.assert_allclose(solved, examples.targets, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(solved, examples.targets)


def test_every_condition_has_examples_a_person_can_read(task: Task) -> None:
    for condition in task.conditions:
        examples = task.sample(condition, 3)
        assert all(task.describe(examples, index).strip() for index in range(3))


def test_picture_is_well_formed_or_refused(task: Task) -> None:
    try:
        picture = task.picture(task.sample("train", 1), 0)
    except UsageError:
        return
    assert ElementTree.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"


def test_size_is_respected(task: Task) -> None:
    for condition in task.conditions:
        size = task.size(condition)
        if size is None:
            assert len(task.sample(condition, 2, start=10**6)) == 2
            continue
        assert len(task.sample(condition, 2, start=size - 2)) == 2
        with pytest.raises(UsageError, match=f"has {size} examples"):
            task.sample(condition, 2, start=size - 1)


def test_wrong_use_is_refused_with_advice(task: Task) -> None:
    for use in ({"condition": "trian", "n": 1}, {"condition": "Train", "n": 1}):
        with pytest.raises(UsageError, match="Did you mean 'train'"):
            task.sample(**use)
    with pytest.raises(UsageError, match="Did you mean 'train'"):
        task.size("trian")
    for wrong in (-1, "vaildation", 1.5):
        with pytest.raises(UsageError, match="data seed"):
            task.sample("train", 1, data_seed=wrong)
    for wrong in ({"n": -1}, {"n": 1, "start": -1}):
        with pytest.raises(UsageError, match="must not be negative"):
            task.sample("train", **wrong)


def test_shortcuts_artefacts_and_ceilings_work_on_every_condition(task: Task) -> None:
    for condition in task.conditions:
        examples = some(task, condition)
        shortcuts, artefacts = task.shortcuts(condition), task.artefacts(condition)
        for shortcut in shortcuts:
            assert np.asarray(shortcut.answer(examples)).size == examples.targets.size
        for artefact in artefacts:
            assert isinstance(artefact.measure(examples), float)
        for named in (shortcuts, artefacts):
            names = [item.name for item in named]
            assert len(set(names)) == len(names)
        assert set(task.ceilings(condition)) <= set(BASELINES)


def test_tasks_never_import_torch() -> None:
    code = (
        "import sys\nfrom unseen.tasks import TASKS, task\nimport unseen.tasks.verify\n"
        "for entry in TASKS: task(entry.name).sample('train', 1)\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
