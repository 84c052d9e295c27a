"""Peak memory of generators and of stacks in training, beside what they have to hold in any case."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.cases import CASES, case_of, rules_case
from benchmarks.generators import TABLE, WHOLE, Drawn
from benchmarks.rows import Asked, Row
from benchmarks.steps import LONGEST
from benchmarks.subprocesses import in_child
from unseen.tasks.base import Examples
from unseen.training.process import one_thread

EXAMPLES = 16_384
"""Examples that a generator draws at once; of a finite set, all there are."""
MEMBERS = (1, 16)
_STEPS = 3


class Held(NamedTuple):
    """Bytes at the peak beyond those held before, bytes that the arrays themselves need, seconds of the last step."""

    peak: float
    arrays: float
    seconds: float = 0.0


def memory(asked: Asked) -> Iterator[Row]:
    """Rows `peak` and `arrays` (MB), each case in a process of its own, above what it held after all imports.

    A generator's arrays are the examples that it gives; those of a stack are parameters, gradients, the two memories of
    Adam, and a batch: activations are in the peak alone. Stacks of 16 are `left out S=16` where their step would take
    too long.
    """
    drawn = [one.name for one in TABLE if (one.quick if asked.quick else _typical(one))]
    trained = [case.name for case in CASES if case.quick or not asked.quick]
    for name in asked.among([*drawn, *trained]):
        if name in drawn:
            yield from _rows(name, "", in_child(drawing, name))
            continue
        took = 0.0
        for members in MEMBERS[:1] if asked.quick else MEMBERS:
            if members * took > LONGEST:
                yield Row(name, f"left out S={members}", members * took, "s", note="longer than a step may take")
                continue
            found = in_child(training, name, members)
            took = found.seconds
            yield from _rows(name, f" S={members}", found)


def _rows(name: str, suffix: str, found: Held) -> Iterator[Row]:
    yield Row(name, f"peak{suffix}", found.peak / 1e6, "MB", "less")
    yield Row(name, f"arrays{suffix}", found.arrays / 1e6, "MB")


def _typical(drawn: Drawn) -> bool:
    """One preset and one setting of each task: the others hold as much."""
    return drawn.options.get("preset", "clean") == "clean" and drawn.options.get("setting") != "regression"


def drawing(name: str) -> Held:
    """In a child: draw the examples of a case."""
    drawn = next(one for one in TABLE if one.name == name)
    made = drawn.make()
    if drawn.split != WHOLE:
        made.sample(drawn.split, 1)  # imports and tables that stay; of a finite set it would draw everything
    before = peak()
    if drawn.split != WHOLE:
        examples = [made.sample(drawn.split, EXAMPLES)]
    else:
        examples = [made.sample(split, made.size(split) or 0) for split in made.splits]
    return Held(peak() - before, sum(map(_bytes, examples)))


def training(name: str, members: int) -> Held:
    """In a child: some steps of a stack."""
    case = case_of(name)
    with one_thread():
        replace(rules_case("mlp", 32, 2, "none"), batch=2).trainer(1).advance(1)  # what torch sets up once
        before = peak()
        trainer = case.trainer(members)
        trainer.advance(_STEPS)
        began = time.process_time()
        trainer.advance(1)
    took, batch, rows = time.process_time() - began, case.make_task().sample("train", case.batch), trainer.stack.rows
    inputs = sum(value.nbytes for value in batch.inputs.values()) + batch.targets.nbytes
    return Held(peak() - before, 4 * rows.numel() * rows.element_size() + members * inputs, took)


def peak() -> float:
    """The most memory this process has held so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # unlike the system call, it knows nothing of the process that this one was forked from
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return float(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0)


def _bytes(examples: Examples) -> int:
    return sum(value.nbytes for value in (*examples.inputs.values(), examples.targets, *examples.factors.values()))
