"""Which conditions are exported, how many examples of each, and what each is called in files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unseen.errors import UsageError
from unseen.tasks.base import Condition, DataSeed, Task


@dataclass(frozen=True)
class Part:
    """The first examples of one condition. `split` is its name where a condition's own is not allowed."""

    condition: Condition
    examples: int
    split: str


def make_parts(task: Task, conditions: Sequence[str], n: int | None, data_seed: DataSeed) -> tuple[Part, ...]:
    """What to export: the conditions named, or all of them; n examples of each, or (None) the whole of a finite set.

    Of conditions that nobody named, those with fewer than n examples are whole, and the endless ones wait for an n.

    >>> from unseen.tasks import task
    >>> [(part.split, part.examples) for part in make_parts(task("retrieval/T1"), ["iid", "ood/single"], 500, 0)]
    [('iid', 500), ('ood_single', 500)]
    """
    if n is not None and n < 1:
        raise UsageError(f"n = {n}: give a positive number of examples")
    twice = [name for name in conditions if conditions.count(name) > 1]
    if twice:
        raise UsageError(f"condition '{twice[0]}' is given twice")
    sizes = {name: task.size(task.condition(name).name) for name in conditions or task.conditions}
    if not conditions:
        sizes = {name: size for name, size in sizes.items() if size is not None or n is not None}
        if not sizes:
            raise UsageError(f"all conditions of {task.name} are endless; say how many examples of each with -n")
    found = {name: _count(task, name, size, n, bool(conditions)) for name, size in sizes.items()}
    for name, count in found.items():
        task.check_request(name, count, 0, data_seed)
    splits = split_names(found)
    return tuple(Part(task.conditions[name], count, splits[name]) for name, count in found.items())


def _count(task: Task, name: str, size: int | None, n: int | None, asked: bool) -> int:
    if size is None:
        if n is None:
            raise UsageError(f"condition '{name}' of {task.name} is endless; say how many examples with -n")
        return n
    return size if n is None else n if asked else min(n, size)


def split_names(conditions: Iterable[str]) -> dict[str, str]:
    """A name for each condition of letters, digits and underscores alone: good for files and for `datasets`.

    >>> split_names(["train", "ood/length=30,amplitude=2", "a=1", "A-1"])
    {'train': 'train', 'ood/length=30,amplitude=2': 'ood_length_30_amplitude_2', 'a=1': 'a_1', 'A-1': 'A_1_2'}
    """
    found: dict[str, str] = {}
    for condition in conditions:
        name = plain = re.sub(r"\W+", "_", condition, flags=re.ASCII).strip("_") or "split"
        taken, number = {other.casefold() for other in found.values()}, 1
        while name.casefold() in taken:  # some file systems do not tell A from a
            number += 1
            name = f"{plain}_{number}"
        found[condition] = name
    return found
