"""Determinism: example *i* depends on (task, split, data seed, *i*) alone, not on the batch, the order or the process."""

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
from unseen.tasks.base import Examples, Task

_CHILD_CODE = "from unseen.tasks.verify.determinism import run_child; run_child()"
_TIMEOUT_SECONDS = 600


def fingerprint(examples: Examples) -> str:
    """Return a hash of names, dtypes, shapes and bytes, which is the same on every machine.

    >>> from numpy import array, uint8
    >>> fingerprint(Examples({"x": array([[1, 0]], uint8)}, array([[1]], uint8), {"rule": array(["and"])}))
    '8d6464ba268f2fd555ad30353d5bfe34'
    """
    hashed = hashlib.blake2b(digest_size=16)
    groups = {"inputs": examples.inputs, "targets": {"": examples.targets}, "factors": examples.factors}
    for group, arrays in groups.items():
        for name in sorted(arrays):
            array = arrays[name]
            if array.dtype.kind in "UT":
                # Text is hashed by content, since the width of its dtype depends on the batch.
                dtype = "text"
                content = canonical(array.tolist()).encode()
            elif array.dtype.hasobject:
                raise UsageError(f"an array of {array.dtype} has no fingerprint; use numbers, booleans or text")
            else:
                little = array.dtype.newbyteorder("<")
                dtype = little.str
                content = array.astype(little, copy=False).tobytes()
            hashed.update(canonical([group, name, dtype, array.shape, len(content)]).encode() + content)
    return hashed.hexdigest()


def count_compared(task: Task, split: str) -> int:
    """Return how many examples are compared: more than two blocks, if the split has that many."""
    size = task.size(split)
    count = 2 * task.block + 300
    return count if size is None else min(size, count)


def find_batch_dependence(task: Task, split: str) -> list[str]:
    """Return the ranges of examples that differ if they are drawn alone, the last range first."""
    count = count_compared(task, split)
    block = task.block
    whole = task.sample(split, count)
    # Ranges at the ends, inside a block, across a border and over a whole block, as (start, length).
    ranges = [(0, 1), (3, 50), (block - 3, 7), (block, block), (block + 5, 300), (2 * block - 1, 250), (count - 1, 1)]
    different = []
    for start, length in sorted(ranges, reverse=True):
        n = min(length, count - start)
        if n > 0 and fingerprint(task.sample(split, n, start)) != fingerprint(whole[start : start + n]):
            different.append(f"{start} … {start + n - 1}")
    return different


def is_importable(task: Task) -> bool:
    """Return whether another process can import the class of the task."""
    return type(task).__module__ != "__main__" and "<locals>" not in type(task).__qualname__


def fingerprint_in_new_process(task: Task, counts: Mapping[str, int]) -> dict[str, str]:
    """Return the fingerprints of the first examples of each split as a new process draws them, or its error messages.

    The process rebuilds the task from its options. Its hash seed differs, so that an order taken from a Python set is
    noticed.
    """
    cls = type(task)
    request = {"module": cls.__module__, "qualname": cls.__qualname__, "options": task.options(), "counts": counts}
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2",
    }
    child = subprocess.run(
        [sys.executable, "-c", _CHILD_CODE],
        input=json.dumps(request),
        env=environment,
        text=True,
        capture_output=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    if child.returncode:
        error_lines = child.stderr.strip().splitlines() or ["no message"]
        raise CheckFailed(f"another process failed: {error_lines[-1]}")
    fingerprints: dict[str, str] = json.loads(child.stdout.splitlines()[-1])
    return fingerprints


def run_child() -> None:
    """Run the other process: a task and counts from standard input, fingerprints to standard output."""
    request = json.load(sys.stdin)
    cls: Any = reduce(getattr, request["qualname"].split("."), import_module(request["module"]))
    task = cls.parse(request["options"])
    fingerprints = {}
    # In reverse order, so that a dependence on the order of the splits is noticed.
    for split, count in reversed(request["counts"].items()):
        try:
            fingerprints[split] = fingerprint(task.sample(split, count))
        except Exception as error:  # a task may fail in any way; the parent reports it
            fingerprints[split] = f"{type(error).__name__}: {error}"
    # A line of its own: the task may have printed something.
    sys.stdout.write("\n" + json.dumps(fingerprints) + "\n")
