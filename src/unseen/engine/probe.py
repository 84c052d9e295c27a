"""How long a step takes in stacks of several sizes: tried, not guessed. Only the time depends on the answer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from unseen.engine.feed import Batch, Feeds, Source
from unseen.engine.lengths import shorten, typical
from unseen.engine.recipe import Recipe
from unseen.engine.train import Job, Member, Trainer
from unseen.tasks.base import Task

CANDIDATES = (1, 5, 10, 20)
_TIMED, _WARM = 4, 1
"""Steps that are timed at each size, after some that are not."""


def sizes(members: int) -> list[int]:
    """The candidates that so many members allow.

    >>> sizes(7)
    [1, 5, 7]
    """
    return sorted({min(size, members) for size in CANDIDATES})


def time_sizes(job: Job, tried: Iterable[int], seconds: float = math.inf) -> dict[int, float]:
    """Seconds per member and step at each size, the smallest first; those that would not end in time are left out.

    Every size trains a few throw-away steps on one drawn batch; the fastest of them counts. On a CPU it is this
    process's time that is measured, so that a busy machine disturbs little. The smallest size is always tried.
    """
    deadline = time.perf_counter() + seconds
    clock = time.process_time if job.device == "cpu" else time.perf_counter
    # It never ends, never validates and never diverges: only steps are timed.
    recipe = job.recipe.model_copy(update={"steps": 10**9, "validate_every": 10**9, "learning_rate": 1e-9})
    feeds, found = _OneBatch(job.task, recipe), dict[int, float]()
    for size in sorted(tried):
        expected = (_WARM + _TIMED) * size * min(found.values(), default=0.0)
        if found and time.perf_counter() + expected > deadline:
            break
        members = tuple(Member(str(i), i, i, recipe) for i in range(size))
        found[size] = _fastest(Trainer(replace(job, members=members), feeds=feeds), clock, deadline) / size
    return found


def best_size(times: Mapping[int, float]) -> int:
    """The size with the least time per member. A larger one must earn its memory: near ties go to the smaller.

    >>> best_size({1: 0.0100, 5: 0.0060, 10: 0.0059})
    5
    """
    best = min(times)
    for size in sorted(times):
        if times[size] < 0.95 * times[best]:
            best = size
    return best


def _fastest(trainer: Trainer, clock: Callable[[], float], deadline: float) -> float:
    times: list[float] = []
    while len(times) <= _WARM or (len(times) < _WARM + _TIMED and time.perf_counter() < deadline):
        began = clock()
        trainer.advance(steps=1)
        times.append(clock() - began)
    return min(times[_WARM:])


class _OneBatch(Feeds):
    """The same batch for every member at every step: a whole training set takes longer to draw than a probe."""

    def __init__(self, task: Task, recipe: Recipe) -> None:
        super().__init__(recipe.batch, recipe.batches)
        held = min(recipe.batch, task.size("train") or recipe.batch)
        drawn, spec = task.sample("train", held), typical(task, recipe.batches == "lengths")
        inputs = shorten(drawn.inputs, spec, spec.streams[0].length) if spec.streams else drawn.inputs
        self._own, self._index = Batch(inputs, drawn.targets), np.arange(recipe.batch) % held

    def batch(self, step: int, sources: Sequence[Source]) -> Batch:
        """One copy per member, stacked along a leading axis."""
        parts = [self._own.take(self._index) for _ in sources]
        return Batch({k: np.stack([p.inputs[k] for p in parts]) for k in parts[0].inputs},
                     np.stack([p.targets for p in parts]))
