"""The commands that make an export and that prove it, word by word."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from unseen.config import canonical
from unseen.export.order import Order
from unseen.tasks.base import Task


def export_command(order: Order, companions: Mapping[str, str]) -> str:
    """What makes the same export again; the files of `companions` are those in its folder."""
    names = [word for name in order.conditions for word in ("--condition", name)]
    count = [] if order.n is None else ["-n", str(order.n)]
    return shlex.join(
        [
            "unseen",
            "export",
            order.task.name,
            *settings(order.task, companions),
            *names,
            *count,
            "--data-seed",
            str(order.data_seed),
            "--format",
            order.format,
            "--out",
            "DIR",
        ]
    )


def verify_command(task: Task, files: Sequence[str], companions: Mapping[str, str]) -> str:
    """What judges files of examples. A table goes with the examples, but a world that was given makes the task, too.

    >>> from unseen.tasks import task
    >>> verify_command(task("retrieval/T4", length=5), ["d/train.jsonl"], {"mapping": "d/mapping.txt"})
    'unseen verify retrieval/T4 --set length=5 --data d/train.jsonl --mapping d/mapping.txt'
    """
    given = {"world"} & set(task.options())
    beside = [option for option in ("mapping", "world") if option in companions and option not in given]
    words = ["unseen", "verify", task.name, *settings(task, companions, beside)]
    words += [word for file in files for word in ("--data", file)]
    return shlex.join([*words, *(word for option in beside for word in (f"--{option}", companions[option]))])


def settings(task: Task, files: Mapping[str, str], leave: Collection[str] = ()) -> list[str]:
    """The options of a task as `--set` takes them, those that a file holds by its name."""
    options = {key: value for key, value in task.options().items() if key != "name" and key not in leave}
    return [word for key, value in options.items() for word in ("--set", f"{key}={files.get(key) or _text(value)}")]


def _text(value: Any) -> str:
    """A value as the command line reads it: a word as it is, unless it could be taken for something else."""
    if not isinstance(value, str):
        return canonical(value)
    try:
        json.loads(value)
    except ValueError:
        return value
    return canonical(value)
