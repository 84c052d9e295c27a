"""What can be had without doing a task: chance, shortcuts, and the oracle; and what is unseen in a condition."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np

from unseen.report.source import Source
from unseen.tasks.base import Task

EXAMPLES = 4_000
ORACLE = "oracle"


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
    found = {"chance": task.spec.target.chance}
    shortcuts = task.shortcuts(condition)
    if shortcuts:
        size = task.size(condition)
        examples = task.sample(condition, EXAMPLES if size is None else min(size, EXAMPLES), data_seed="test")
        found |= {one.name: float(np.mean(one.answer(examples) == examples.targets)) for one in shortcuts}
    return found | {ORACLE: 1.0}


def unseen_in(task: Task, conditions: Iterable[str]) -> list[str]:
    """What each condition has that training never had, a sentence each.

    >>> from unseen.tasks import task
    >>> unseen_in(task("retrieval/T6", length=5), ["iid"])
    ['iid: nothing is unseen but the examples']
    """
    found = [task.conditions[name] for name in dict.fromkeys(conditions) if name in task.conditions]
    return [f"{one.name}: " + (f"unseen: {' with '.join(one.unseen)} ({one.summary})" if one.unseen else
                               "nothing is unseen but the examples" if one.name in ("iid", "train")
                               else f"no value is unseen ({one.summary})") for one in found]


def unseen_notes(source: Source, conditions: Iterable[str]) -> list[str]:
    """The same for all tasks of a source, each sentence once."""
    wanted, first = list(conditions), source.runs.drop_duplicates("task")
    tasks = [source.task(cell) for cell in first["cell"]]
    return list(dict.fromkeys(text for one in tasks if one is not None for text in unseen_in(one, wanted)))
