"""Golden fingerprints: with them a change of a task's numbers is a decision, not an accident."""

from __future__ import annotations

from unseen.tasks.base import Task
from unseen.tasks.verify import fingerprint

FIRST = 100
"""Examples of each condition that are looked at."""


def golden(task: Task) -> dict[str, str]:
    """The fingerprint of the first examples of every condition: what a task's `golden` declares of its defaults."""
    sizes = {name: task.size(name) for name in task.conditions}
    return {
        name: fingerprint(task.sample(name, FIRST if size is None else min(FIRST, size)))
        for name, size in sizes.items()
    }
