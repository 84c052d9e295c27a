"""The contract of a task, on every registered one in every preset: a new entry is covered the moment it is there."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import lru_cache
from typing import get_args
from xml.etree import ElementTree

import numpy as np
import pytest

from support import standins
from unseen.config import digest
from unseen.errors import UsageError
from unseen.tasks import TASKS
from unseen.tasks.base import Examples, Task
from unseen.tasks.verify import find_spec_violations, fingerprint
from unseen.tasks.verify.baselines import BASELINES
from unseen.tasks.verify.determinism import find_batch_dependence

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


@lru_cache(maxsize=32)
def some(task: Task, split: str) -> Examples:
    """Examples that several tests look at, one task after the other."""
    size = task.size(split)
    return task.sample(split, N if size is None else min(N, size))


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


def test_splits_have_train_and_the_one_for_validation(task: Task) -> None:
    assert "train" in task.splits
    assert task.validation in task.splits
    for name, split in task.splits.items():
        assert split.name == name
        assert split.summary
    assert task.family and "/" in task.name


def test_examples_have_the_form_of_the_spec(task: Task) -> None:
    for split in task.splits:
        assert find_spec_violations(task.spec, some(task, split)) == []
        empty = task.sample(split, 0)
        assert len(empty) == 0 and find_spec_violations(task.spec, empty) == []


def test_factors_lie_along_the_examples_and_name_what_is_unseen(task: Task) -> None:
    for name, split in task.splits.items():
        examples = some(task, name)
        assert all(len(values) == len(examples) for values in examples.factors.values())
        assert set(split.unseen) <= set(examples.factors)


def test_examples_depend_on_nothing_but_their_name(task: Task) -> None:
    for split in task.splits:
        assert find_batch_dependence(task, split) == []


def test_data_seeds_and_splits_have_streams_of_their_own(task: Task) -> None:
    prints = [
        fingerprint(task.sample(split, 16, data_seed=seed))
        for split in task.splits
        for seed in (0, 1, "validation", "test")
    ]
    assert len(set(prints)) == len(prints)


def test_solver_agrees_and_needs_the_inputs_alone(task: Task) -> None:
    for split in task.splits:
        examples = some(task, split)
        solved = task.solve(Examples(examples.inputs, np.zeros_like(examples.targets), {}))
        if task.spec.target.kind == "real":
            np.testing.assert_allclose(solved, examples.targets, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(solved, examples.targets)


def test_every_split_has_examples_a_person_can_read(task: Task) -> None:
    for split in task.splits:
        examples = task.sample(split, 3)
        assert all(task.describe(examples, index).strip() for index in range(3))


@pytest.mark.parametrize("task", NAMES, indirect=True)
def test_registered_tasks_have_well_formed_pictures(task: Task) -> None:
    picture = task.picture(task.sample("train", 1), 0)
    assert ElementTree.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"


def test_task_without_a_picture_refuses_to_draw() -> None:
    task = STANDINS["standin/clean"]
    with pytest.raises(UsageError, match="standin/clean has no picture; use --format text or json"):
        task.picture(task.sample("train", 1), 0)


def test_size_is_respected(task: Task) -> None:
    for split in task.splits:
        size = task.size(split)
        if size is None:
            assert len(task.sample(split, 2, start=10**6)) == 2
            continue
        assert len(task.sample(split, 2, start=size - 2)) == 2
        with pytest.raises(UsageError, match=f"has {size} examples"):
            task.sample(split, 2, start=size - 1)


def test_wrong_use_is_refused_with_advice(task: Task) -> None:
    for use in ({"split": "trian", "n": 1}, {"split": "Train", "n": 1}):
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


def test_shortcuts_artefacts_and_ceilings_work_on_every_split(task: Task) -> None:
    for split in task.splits:
        examples = some(task, split)
        shortcuts, artefacts = task.shortcuts(split), task.artefacts(split)
        for shortcut in shortcuts:
            assert np.asarray(shortcut.answer(examples)).size == examples.targets.size
        for artefact in artefacts:
            assert isinstance(artefact.measure(examples), float)
        for named in (shortcuts, artefacts):
            names = [item.name for item in named]
            assert len(set(names)) == len(names)
        assert set(task.ceilings(split)) <= set(BASELINES)


def test_tasks_never_import_torch() -> None:
    code = (
        "import sys\nfrom unseen.tasks import TASKS, task\nimport unseen.tasks.verify\n"
        "for entry in TASKS: task(entry.name).sample('train', 1)\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
