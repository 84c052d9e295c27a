"""Generators, solvers, splits and views. NumPy only, never torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unseen.registry import Registry

if TYPE_CHECKING:
    from unseen.tasks.base import Task

_RETRIEVAL = "unseen.tasks.retrieval.task:Retrieval"

TASKS: Registry[type[Task]] = Registry(
    "task",
    "unseen.tasks",
    {
        "retrieval/T1": (_RETRIEVAL, "one feature: did q occur?"),
        "retrieval/T2": (_RETRIEVAL, "two features: did a and b occur?"),
        "retrieval/T3": (_RETRIEVAL, "set member: did a or b occur? (pair behind an opaque query)"),
        "retrieval/T4": (_RETRIEVAL, "contextualised two features: did a and b occur? (opaque query)"),
        "retrieval/T5": (_RETRIEVAL, "contextualised set member: a and b, or c and d? (opaque query)"),
        "retrieval/T6": (_RETRIEVAL, "ordered feature: did a occur before b? (opaque query)"),
        "retrieval/T7": (_RETRIEVAL, "ordered contextualised set member: a before b, or c before d?"),
    },
)


def task(name: str, **options: Any) -> Task:
    """A task by name, with its options as keywords.

    >>> task("retrieval/T6", length=5).options()
    {'name': 'retrieval/T6', 'length': 5}
    """
    return TASKS.load(name).parse({"name": name, **options})
