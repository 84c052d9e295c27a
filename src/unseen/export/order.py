"""A requested export: its description in every file, and the commands that repeat and verify it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from unseen.config import canonical, digest
from unseen.export.splits import ExportedSplit, columns, dtype_name, first_example
from unseen.tasks.base import DataSeed, Task


@dataclass(frozen=True)
class Order:
    """A task, a format and the examples to export: the named splits (none: all), n of each (None: all of a finite
    split), and the exported splits that result."""

    task: Task
    format: str
    splits: tuple[str, ...]
    n: int | None
    data_seed: DataSeed
    parts: tuple[ExportedSplit, ...]


def describe_export(order: Order) -> dict[str, Any]:
    """The facts that all splits share, as JSON values: version, task and its options, spec, data seed."""
    task = order.task
    return {
        "unseen": version("unseen"),
        "task": task.name,
        "task_version": task.version,
        "task_id": digest(task.identity()),
        "options": task.options(),
        "spec": asdict(task.spec),
        "data_seed": order.data_seed,
    }


def describe_split(order: Order, selected: ExportedSplit) -> dict[str, Any]:
    """The facts of `describe_export`, and those of a split: its description and its columns."""
    forms = {}
    for name, values in columns(first_example(order.task, selected, order.data_seed)).items():
        forms[name] = {"dtype": dtype_name(values), "shape": list(values.shape[1:])}
    return {
        **describe_export(order),
        "split": asdict(selected.split),
        "file_name": selected.file_name,
        "examples": selected.examples,
        "columns": forms,
    }


def export_command(order: Order, companions: Mapping[str, str]) -> str:
    """The command that repeats the export; the files of `companions` are those in its folder."""
    arguments = ["unseen", "export", order.task.name, *option_arguments(order.task, companions)]
    for name in order.splits:
        arguments += ["--split", name]
    if order.n is not None:
        arguments += ["-n", str(order.n)]
    arguments += ["--data-seed", str(order.data_seed), "--format", order.format, "--out", "DIR"]
    return shlex.join(arguments)


def verify_command(task: Task, files: Sequence[str], companions: Mapping[str, str]) -> str:
    """The command that verifies files of examples.

    A table goes with the examples; a world that was passed as an option is also part of the task.

    >>> from unseen.tasks import task
    >>> verify_command(task("retrieval/T4", length=5), ["d/train.jsonl"], {"mapping": "d/mapping.txt"})
    'unseen verify retrieval/T4 --set length=5 --data d/train.jsonl --mapping d/mapping.txt'
    """
    with_examples = [name for name in ("mapping", "world") if name in companions]
    if "world" in task.options():
        with_examples = [name for name in with_examples if name != "world"]
    arguments = ["unseen", "verify", task.name, *option_arguments(task, companions, with_examples)]
    for file in files:
        arguments += ["--data", file]
    for name in with_examples:
        arguments += [f"--{name}", companions[name]]
    return shlex.join(arguments)


def option_arguments(task: Task, files: Mapping[str, str], skip: Collection[str] = ()) -> list[str]:
    """The options of a task as arguments of `--set`; an option that a file holds is set to the file's name."""
    arguments = []
    for name, value in task.options().items():
        if name != "name" and name not in skip:
            arguments += ["--set", f"{name}={files.get(name) or _format_value(value)}"]
    return arguments


def _format_value(value: Any) -> str:
    """A value as the command line reads it: a string without quotes, unless it could be read as another JSON value."""
    if not isinstance(value, str):
        return canonical(value)
    try:
        json.loads(value)
    except ValueError:
        return value
    return canonical(value)
