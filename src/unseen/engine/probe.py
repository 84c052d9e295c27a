"""How long stacks of several sizes take: tried, not guessed. Only the time depends on the answer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import mean, median

import numpy as np
import torch

from unseen.engine.feed import Batch, Feeds, Source
from unseen.engine.lengths import shorten, typical
from unseen.engine.predict import CHUNK, conditions, draw, predictions
from unseen.engine.recipe import Recipe
from unseen.engine.stack import Stack
from unseen.engine.threads import one_thread
from unseen.engine.train import Job, Member, Trainer
from unseen.tasks.base import Task

CANDIDATES = (1, 5, 10, 20)
_ANSWERED = 2 * CHUNK
"""Examples that are answered to see how long that takes."""
_WARM, _TIMED, _MOST, _LONG = 1, 5, 50, 0.2
"""Steps that are not timed; that are; and, where they are short, so many at most or as many as take so many seconds."""


@dataclass(frozen=True)
class Pace:
    """Seconds that a member of a stack takes: for a step, to answer an example (with its score), to be built."""

    step: float
    answer: float
    build: float


def sizes(members: int) -> list[int]:
    """The candidates that so many members allow.

    >>> sizes(7)
    [1, 5, 7]
    """
    return sorted({min(size, members) for size in CANDIDATES})


def time_sizes(job: Job, tried: Iterable[int], seconds: float = math.inf) -> dict[int, Pace]:
    """The pace at each size, the smallest first; those that would not end in time are left out.

    Every size validates and trains a few throw-away steps on one drawn batch; the median step counts. On a CPU it is
    this process's time that is measured, so that a busy machine disturbs little. The smallest size is always tried.
    """
    warm_up()
    deadline, clock = time.perf_counter() + seconds, _clock(job)
    # It never ends, never validates and never diverges: only steps are timed.
    recipe = job.recipe.model_copy(
        update={
            "steps": 10**9,
            "validate_every": 10**9,
            "learning_rate": 1e-9,
            "validation_examples": min(_ANSWERED, job.recipe.validation_examples),
        }
    )
    feeds, found, expected = _OneBatch(job.task, recipe), dict[int, Pace](), 0.0
    for size in sorted(tried):
        if found and time.perf_counter() + size * expected > deadline:
            break
        members = tuple(Member(str(i), i, i, recipe) for i in range(size))
        pace = found[size] = _pace(replace(job, members=members), feeds, clock, deadline)
        expected = (_WARM + _TIMED) * pace.step + 2 * recipe.validation_examples * pace.answer + pace.build
    return found


@cache
def warm_up() -> None:
    """Have torch import what it does with the first optimiser: that takes longer than many a probe."""
    torch.optim.Adam([torch.zeros(1)])


def longer_tests(job: Job) -> float:
    """How many times as long an example of the evaluation takes, on average, as one of the validation: a condition may
    have longer sequences."""
    task, clock = job.task, _clock(job)
    drawn = [draw(task, name, CHUNK, "test") for name in (task.validation, *conditions(task, job.evaluation))]
    if len({str({name: values.shape[1:] for name, values in one.inputs.items()}) for one in drawn}) == 1:
        return 1.0
    stack, times = Stack([job.build(0).to(job.device, job.dtype)]), list[float]()
    with one_thread():
        predictions(stack, drawn[0], task.spec)  # the first pass takes longer
        for examples in drawn:
            began = clock()
            predictions(stack, examples, task.spec)
            times.append((clock() - began) / len(examples))
    return mean(times[1:]) / times[0]


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


def _clock(job: Job) -> Callable[[], float]:
    return time.process_time if job.device == "cpu" else time.perf_counter


def _pace(job: Job, feeds: Feeds, clock: Callable[[], float], deadline: float) -> Pace:
    began, size = clock(), len(job.members)
    trainer = Trainer(job, feeds=feeds)
    built = clock() - began
    trainer.begin()  # draws the data
    began = clock()
    trainer.begin()
    answered = clock() - began
    examples = min(job.recipe.validation_examples, job.task.size(job.task.validation) or _ANSWERED)
    return Pace(_step(trainer, clock, deadline) / size, answered / size / examples, built / size)


def _step(trainer: Trainer, clock: Callable[[], float], deadline: float) -> float:
    times: list[float] = []
    while len(times) <= _WARM or (
        time.perf_counter() < deadline
        and (len(times) < _WARM + _TIMED or (sum(times) < _LONG and len(times) < _WARM + _MOST))
    ):
        began = clock()
        trainer.advance(steps=1)
        times.append(clock() - began)
    return median(times[_WARM:])


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
        return Batch(
            {k: np.stack([p.inputs[k] for p in parts]) for k in parts[0].inputs}, np.stack([p.targets for p in parts])
        )
