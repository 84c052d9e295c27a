"""The battery of a task: all of `verify`, and that its numbers are those it declares."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

from unseen.errors import CheckFailed
from unseen.kit.golden import golden
from unseen.kit.verdict import Status, Verdict, tried
from unseen.tasks import TASKS
from unseen.tasks import task as make
from unseen.tasks.base import Task
from unseen.tasks.verify import Check, verify

_TELLING: tuple[Status, ...] = ("FAIL", "known", "ok", "shown")
"""What is said of a check that comes out differently on several conditions: the first of these that any has."""


def checks(name: str, n: int) -> Iterator[tuple[str, Verdict]]:
    """Every check of a task with its default options; one that can't be made is not looked at further."""
    loaded = tried(lambda: _loads(name))
    yield "loads", loaded
    if loaded[0] == "FAIL":
        return
    task = make(name)
    yield "options", tried(lambda: _options(task))
    yield "words", tried(lambda: _words(task))
    by_check: dict[str, list[Check]] = defaultdict(list)
    for found in verify(task, n):
        by_check[found.name].append(found)
    for check, rows in by_check.items():
        yield check, _together(rows)
    if not any(row.status == "FAIL" for rows in by_check.values() for row in rows if row.name in ("sample", "spec")):
        yield "golden", tried(lambda: _golden(task))


def _loads(name: str) -> Verdict:
    cls = TASKS.load(name)
    if not (isinstance(cls, type) and issubclass(cls, Task)):
        raise CheckFailed(f"the entry point is {cls!r}; expected a subclass of unseen.tasks.base.Task")
    task = make(name)
    if task.name != name or "/" not in name:
        raise CheckFailed(f"it is registered as '{name}' and calls itself '{task.name}'; a task is called family/name")
    for condition in ("train", task.validation):
        task.condition(condition)
    unnamed = [key for key, condition in task.conditions.items() if condition.name != key or not condition.summary]
    if unnamed:
        raise CheckFailed(f"condition '{unnamed[0]}' needs that name and a summary")
    return "ok", f"{cls.__module__}:{cls.__qualname__}, conditions {', '.join(task.conditions)}"


def _options(task: Task) -> Verdict:
    again = type(task).parse(json.loads(json.dumps(task.model_dump(mode="json"))))
    if again != task or again.identity() != task.identity():
        raise CheckFailed("its options written as JSON and read again are other options")
    return "ok", "the same task after a trip through JSON"


def _words(task: Task) -> Verdict:
    for condition in task.conditions:
        if not task.describe(task.sample(condition, 1), 0).strip():
            raise CheckFailed(f"describe has nothing to say about an example of {condition}")
    return "ok", "an example of every condition can be read"


def _together(rows: list[Check]) -> Verdict:
    """One check on all conditions, by the first that has the most telling status; `unseen verify` says all."""
    status = next(one for one in _TELLING if any(row.status == one for row in rows))
    having = [row for row in rows if row.status == status]
    return status, f"{having[0].condition}: {having[0].detail} · {len(having)} of {len(rows)} conditions"


def _golden(task: Task) -> Verdict:
    """Against the class's `golden`: a fingerprint for every condition, by its name."""
    found, declared = golden(task), getattr(type(task), "golden", None)
    if declared is None:
        return "shown", f"none are declared; today's are golden = {json.dumps(found)}"
    if dict(declared) != found:
        wrong = [name for name in {**found, **declared} if declared.get(name) != found.get(name)]
        raise CheckFailed(
            f"the examples of {', '.join(wrong)} are not those declared. If that is meant, raise version "
            f"and declare what is said then; now it is golden = {json.dumps(found)}"
        )
    return "ok", f"version {task.version}: the first examples of {len(found)} conditions are those declared"
