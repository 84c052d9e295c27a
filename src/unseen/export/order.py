"""What was asked for, and what every file says about itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from unseen.config import digest
from unseen.export.chunks import columns, one_example
from unseen.export.parts import Part, make_parts
from unseen.tasks.base import DataSeed, Examples, Task


@dataclass(frozen=True)
class Order:
    """A task, a format, and which examples: the conditions named (none: all), n of each (None: all of a finite set)."""

    task: Task
    format: str
    conditions: tuple[str, ...]
    n: int | None
    data_seed: DataSeed
    parts: tuple[Part, ...]


def make_order(task: Task, format: str, conditions: Sequence[str], n: int | None, data_seed: DataSeed) -> Order:
    """An order, refused if there are no such examples."""
    return Order(task, format, tuple(conditions), n, data_seed, make_parts(task, conditions, n, data_seed))


def about(order: Order) -> dict[str, Any]:
    """What all parts have in common, as JSON values: version, task and its options, spec, data seed."""
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


def about_part(order: Order, part: Part) -> dict[str, Any]:
    """The same, and what is said of one part: its condition, split and columns."""
    found = columns(one_example(order.task, part, order.data_seed))
    # The width of text differs from stretch to stretch.
    forms = {
        name: {"dtype": "text" if values.dtype.kind == "U" else values.dtype.name, "shape": list(values.shape[1:])}
        for name, values in found.items()
    }
    return {
        **about(order),
        "condition": asdict(part.condition),
        "split": part.split,
        "examples": part.examples,
        "columns": forms,
    }


class Format:
    """How the parts of an order are written, a subclass for each. `suffix` is what its files' names end with."""

    suffix = ""
    card = False
    """Whether a data card is written with it."""

    def __init__(self, order: Order, folder: Path) -> None:
        self.order, self.folder = order, folder

    @classmethod
    def check(cls, task: Task) -> None:
        """Refuse a task that this format is not for, or an installation that lacks what it needs."""

    def write(self, part: Part, stretches: Iterable[Examples]) -> None:
        """Write one part, stretch by stretch."""
        raise NotImplementedError

    def close(self) -> None:
        """Called when all parts are written."""

    @classmethod
    def file(cls, part: Part) -> str:
        """The name of what holds a part."""
        return part.split + cls.suffix
