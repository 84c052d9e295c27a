"""Whether example *i* depends on its name alone: not on what else is asked, in which order or process."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import reduce
from importlib import import_module
from typing import Any

from unseen.config import canonical
from unseen.errors import CheckFailed, UsageError
from unseen.tasks.base import Array, Examples, Task

_CHILD = "from unseen.tasks.verify.purity import answer_parent; answer_parent()"
_PATIENCE = 600


def fingerprint(examples: Examples) -> str:
    """A hash of names, dtypes, shapes and bytes, the same on every machine.

    >>> from numpy import array, uint8
    >>> fingerprint(Examples({"x": array([[1, 0]], uint8)}, array([[1]], uint8), {"rule": array(["and"])}))
    '8d6464ba268f2fd555ad30353d5bfe34'
    """
    hashed = hashlib.blake2b(digest_size=16)
    groups = {"inputs": examples.inputs, "targets": {"": examples.targets}, "factors": examples.factors}
    for group, arrays in groups.items():
        for name in sorted(arrays):
            kind, content = _plain(arrays[name])
            hashed.update(canonical([group, name, kind, arrays[name].shape, len(content)]).encode() + content)
    return hashed.hexdigest()


def _plain(array: Array) -> tuple[str, bytes]:
    """Kind and bytes of an array, low bytes first; text letter by letter, since its dtype depends on the batch."""
    if array.dtype.kind in "UT":
        return "text", canonical(array.tolist()).encode()
    if array.dtype.hasobject:
        raise UsageError(f"an array of {array.dtype} has no fingerprint; use numbers, booleans or text")
    little = array.dtype.newbyteorder("<")
    return little.str, array.astype(little, copy=False).tobytes()


def reach(task: Task, condition: str) -> int:
    """How many examples are compared: more than two blocks, where the condition has so many."""
    size, wanted = task.size(condition), 2 * task.block + 300
    return wanted if size is None else min(size, wanted)


def impurities(task: Task, condition: str) -> list[str]:
    """Ranges of examples that come out differently when they are drawn alone, later ones first."""
    count, block = reach(task, condition), task.block
    whole = task.sample(condition, count)
    starts = [0, 3, block - 3, block, block + 5, 2 * block - 1, count - 1]
    counts = [1, 50, 7, block, 300, 250, 1]
    found = []
    for start, wanted in sorted(zip(starts, counts, strict=True), reverse=True):
        n = min(wanted, count - start)
        if n > 0 and fingerprint(task.sample(condition, n, start)) != fingerprint(whole[start : start + n]):
            found.append(f"{start} … {start + n - 1}")
    return found


def portable(task: Task) -> bool:
    """Whether another process can import the task's class."""
    return type(task).__module__ != "__main__" and "<locals>" not in type(task).__qualname__


def elsewhere(task: Task, counts: Mapping[str, int]) -> dict[str, str]:
    """Fingerprints of the first examples of each condition as a fresh process draws them, or its error.

    The process rebuilds the task from its options and has another hash seed, so that an order taken from a
    Python set shows.
    """
    cls = type(task)
    letter = {"module": cls.__module__, "qualname": cls.__qualname__, "options": task.options(), "counts": counts}
    surroundings = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2",
    }
    child = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input=json.dumps(letter),
        env=surroundings,
        text=True,
        capture_output=True,
        timeout=_PATIENCE,
        check=False,
    )
    if child.returncode:
        last = (child.stderr.strip().splitlines() or ["no message"])[-1]
        raise CheckFailed(f"another process failed: {last}")
    answer: dict[str, str] = json.loads(child.stdout.splitlines()[-1])
    return answer


def answer_parent() -> None:
    """The other process: a task and counts from standard input, fingerprints to standard output."""
    letter = json.load(sys.stdin)
    cls: Any = reduce(getattr, letter["qualname"].split("."), import_module(letter["module"]))
    task, answer = cls.parse(letter["options"]), {}
    for condition, count in reversed(letter["counts"].items()):
        try:
            answer[condition] = fingerprint(task.sample(condition, count))
        except Exception as error:  # a task may fail in any way; the parent reports it
            answer[condition] = f"{type(error).__name__}: {error}"
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
