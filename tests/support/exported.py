"""Small tasks of every family, and what an export of them should hold."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner, Result

from unseen.tasks import task
from unseen.tasks.base import Array, Examples, Task

SMALL_WORLD: dict[str, Any] = {
    "symbols": 4,
    "functions": 8,
    "train_size": 600,
    "iid_size": 50,
    "ood_size": 50,
    "max_length": 4,
}
TASKS: dict[str, dict[str, Any]] = {
    "retrieval/T2": {"length": 4},
    "retrieval/T5": {"length": 5, "preset": "released"},
    "ctl/A": SMALL_WORLD,
    "gcog/productive": {"train_depths": (1, 3), "depths": (1, 3, 5)},
    "rules/mlp": {"setting": "regression"},
    "rules/mha": {"rules": 2},
    "rules/rnn": {"rules": 2, "dimension": 3, "setting": "regression"},
}
"""One of each kind of field, target and factor."""


def made(name: str) -> Task:
    return task(name, **TASKS[name])


def run(command: str) -> Result:
    """A command line, in this process."""
    from unseen.cli.main import app

    program, *arguments = shlex.split(command)
    assert program == "unseen"
    return CliRunner().invoke(app, arguments)


def expected(examples: Examples) -> dict[str, Array]:
    """The columns that examples should become, written out once more."""
    found = dict(examples.inputs)
    found["target"] = examples.targets
    for name in examples.factors:
        found[f"factor_{name}"] = examples.factors[name]
    return found


def assert_same(found: dict[str, Array], wanted: dict[str, Array], dtypes: bool = True) -> None:
    assert list(found) == list(wanted)
    for name, values in wanted.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name, strict=False)
        assert found[name].shape == values.shape, name
        assert not dtypes or found[name].dtype.kind == values.dtype.kind, name
        assert not dtypes or values.dtype.kind == "U" or found[name].dtype == values.dtype, name


def tree(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
