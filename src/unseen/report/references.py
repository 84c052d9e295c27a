"""What can be had without doing a task: chance, shortcuts, and the oracle; and what is unseen in a condition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

import numpy as np

from unseen.report.source import Source
from unseen.tasks.base import Task

EXAMPLES = 4_000
CHANCE, ORACLE = "chance", "oracle"
TASKS = 3
"""Tasks that are measured behind one line: to measure hundreds would take longer than the rest of a figure."""
NEAR = 0.02
"""A shortcut that is no more than this above chance is not drawn beside it."""


@cache
def references(task: Task, condition: str) -> dict[str, float]:
    """Accuracies by name, of a target that can be right or wrong: chance, the task's own shortcuts measured on the test
    data, and the oracle, which the task's solver is. Empty for a real target: zero is its oracle.

    >>> from unseen.tasks import task
    >>> found = references(task("retrieval/T6", length=5), "ood/single")
    >>> found["chance"], found["oracle"], len(found) > 2
    (0.5, 1.0, True)
    """
    if task.spec.target.kind == "real":
        return {}
    found = {CHANCE: task.spec.target.chance}
    shortcuts = task.shortcuts(condition)
    if shortcuts:
        size = task.size(condition)
        examples = task.sample(condition, EXAMPLES if size is None else min(size, EXAMPLES), data_seed="test")
        found |= {one.name: float(np.mean(one.answer(examples) == examples.targets)) for one in shortcuts}
    return found | {ORACLE: 1.0}


def measured(source: Source, cells: Iterable[str], conditions: Iterable[str]) -> dict[str, float]:
    """Means over the tasks of some runs and over conditions, of the references that all of them have."""
    tasks = {source.tasks[cell]: cell for cell in cells}
    made, wanted = [source.task(cell) for cell in list(tasks.values())[:TASKS]], list(conditions)
    found = [references(task, name) for task in made if task is not None for name in wanted if name in task.conditions]
    shared = [name for name in found[0] if all(name in one for one in found)] if found else []
    return {name: float(np.mean([one[name] for one in found])) for name in shared}


def drawn(values: Mapping[str, float], shortcuts: int = 1) -> dict[str, float]:
    """The references that a figure draws, the lowest first: chance, the best shortcuts, and the oracle.

    >>> drawn({"chance": 0.5, "majority": 0.51, "one feature": 0.88, "bag": 0.7, "oracle": 1.0})
    {'chance': 0.5, 'one feature': 0.88, 'oracle': 1.0}
    """
    clear = [name for name in values if name not in (CHANCE, ORACLE) and values[name] > values[CHANCE] + NEAR]
    best = sorted(clear, key=lambda name: values[name])[-shortcuts:]
    return {name: values[name] for name in (CHANCE, *best, ORACLE) if name in values}


def unseen_in(task: Task, conditions: Iterable[str]) -> list[str]:
    """What each condition has that training never had, a sentence each.

    >>> from unseen.tasks import task
    >>> unseen_in(task("retrieval/T6", length=5), ["iid"])
    ['iid: nothing is unseen but the examples']
    """
    found = [task.conditions[name] for name in dict.fromkeys(conditions) if name in task.conditions]
    return [
        f"{one.name}: "
        + (
            f"unseen: {' with '.join(one.unseen)} ({one.summary})"
            if one.unseen
            else "nothing is unseen but the examples"
            if one.name in ("iid", "train")
            else f"no value is unseen ({one.summary})"
        )
        for one in found
    ]


def unseen_notes(source: Source, conditions: Iterable[str]) -> list[str]:
    """The same for all tasks of a source, each sentence once."""
    wanted, first = list(conditions), source.runs.drop_duplicates("task")
    tasks = [source.task(cell) for cell in first["cell"]]
    return list(dict.fromkeys(text for one in tasks if one is not None for text in unseen_in(one, wanted)))
