"""Time estimates: one short probe per workload on this machine, remembered in the user's cache directory.

A workload is what determines the time of a step: the model's options, the shapes of the task, the batch. A probe trains
a few throw-away steps of stacks of several sizes. Only the time of a run depends on its results, never its numbers.
"""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from statistics import mean, median
from typing import Protocol

import numpy as np

from unseen.config import digest
from unseen.files import write_atomically
from unseen.running.chunk import make_job
from unseen.running.flops import step_cost
from unseen.running.provenance import cpu_name
from unseen.running.rates import WorkloadTimes, parse_times, shipped_rates
from unseen.running.stacks import stack_key
from unseen.studies.trial import Trial
from unseen.tasks.base import Task
from unseen.training.batches import Batch, Source, StackBatches, shorten, stack_batches, typical_spec
from unseen.training.evaluate import CHUNK, draw_examples, evaluated_splits, examples_drawn, predict
from unseen.training.process import device_clock, one_thread
from unseen.training.recipe import SPECIALIZATION, CurveSplit, Recipe, curve_splits, curve_steps
from unseen.training.stack import Stack
from unseen.training.trainer import Job, Member, Trainer

SIZES = (1, 5, 10, 20)
"""The stack sizes that a probe tries."""
SELECTIONS = 2
"""A finished run is evaluated twice: its best weights and its last."""
_ANSWERED = 2 * CHUNK
"""Examples that a probe answers to see how long that takes."""
# Of a stack's steps the first is not timed; then five, or, of short ones, up to fifty within a fifth of a second.
_WARM_UP_STEPS = 1
_TIMED_STEPS = 5
_MOST_TIMED_STEPS = 50
_SECONDS_OF_SHORT_STEPS = 0.2


class RemoteProbe(Protocol):
    """Times stacks where a study is to run."""

    machine: str
    """A name of the workers, by which times are found in the cache."""

    def probe(self, trial: Trial, sizes: Sequence[int], seconds: float, device: str) -> WorkloadTimes:
        """The times of a trial's workload on a worker."""


class Timing:
    """Time estimates of trials. A workload that was not measured takes, FLOP for FLOP, as long as the measured one with
    the nearest number of FLOPs; if none was measured, the rates that ship with the package give the times, alike on
    every machine. Members that stop early or diverge make a run shorter than estimated.
    """

    def __init__(self, known: Mapping[str, WorkloadTimes] = {}, flops: Mapping[str, float] = {}) -> None:
        """`known` are measured times by workload, `flops` the FLOPs of a step of each of them."""
        self._known = dict(known)
        self._flops = dict(flops)

    @staticmethod
    def measure(
        trials: Iterable[Trial],
        *,
        also: Iterable[Trial] = (),
        probes: int = 10,
        seconds: float = 20.0,
        cache: Path | None = None,
        device: str = "cpu",
        on_probe: Callable[[str], object] = lambda title: None,
        remote: RemoteProbe | None = None,
    ) -> Timing:
        """Times of the workloads of these trials, from the cache or by a probe each: those with most FLOPs first.

        At most this many probes and about this many seconds: no probe is begun after that, and each ends its share
        early. With `probes=0` there is only what the cache has. Trials in `also` are estimated and not run: their
        workloads are measured last. `cache` is a file (default: `timing.json` in the user's cache directory);
        `on_probe` is told what is being measured. `remote` measures on the workers of a cluster instead of here.
        """
        file = cache or _default_cache()
        machine = cpu_name() if remote is None else remote.machine
        machine = f"{machine}, {device}, torch {version('torch')}, unseen {version('unseen')}"
        entries = _read_cache(file)
        known: dict[str, WorkloadTimes] = {}
        flops: dict[str, float] = {}
        chosen: dict[str, tuple[Trial, list[int]]] = {}
        for group in (list(trials), list(also)):
            shapes = Counter(map(stack_key, group))
            most: dict[str, int] = {}
            carried: dict[str, float] = {}
            first: dict[str, Trial] = {}
            for trial in group:
                key = workload(trial)
                flops[key] = step_cost(trial).flops
                most[key] = max(most.get(key, 0), shapes[stack_key(trial)])
                carried[key] = carried.get(key, 0.0) + flops[key] * trial.recipe.steps
                first.setdefault(key, trial)
            for key in sorted(carried, key=lambda k: carried[k], reverse=True):
                cached = entries.get(f"{machine}: {key}")
                if cached is not None:
                    known[key] = cached
                elif key not in chosen and len(chosen) < probes:
                    chosen[key] = (first[key], sorted({min(size, most[key]) for size in SIZES}))
        deadline = time.monotonic() + seconds
        for number, (key, (trial, sizes)) in enumerate(chosen.items()):
            remaining = deadline - time.monotonic()
            if number and remaining <= 0:
                break
            on_probe(f"probe {number + 1} of {len(chosen)}: {trial.model.name}")
            with suppress(Exception):  # a model that can't be tried: its trials will fail, and say why
                seconds_each = remaining / (len(chosen) - number)
                if remote is None:
                    known[key] = probe(trial, sizes, seconds_each, device)
                else:
                    known[key] = remote.probe(trial, sizes, seconds_each, device)
                entries[f"{machine}: {key}"] = known[key]
        if chosen:
            _write_cache(file, entries)
        return Timing(known, flops)

    @property
    def measured_any(self) -> bool:
        """Whether anything was measured on this machine; if not, all times come from the shipped rates."""
        return bool(self._known)

    def measured(self, trials: Iterable[Trial]) -> tuple[int, int]:
        """How many of the workloads of these trials were measured, and how many there are."""
        workloads = {workload(trial) for trial in trials}
        return len(workloads & self._known.keys()), len(workloads)

    def size(self, trial: Trial) -> int:
        """How many members of this workload to stack at most."""
        return self._times(trial).best_size

    def seconds(self, trial: Trial) -> float:
        """Core seconds of the whole trial, in a stack of the best size."""
        members = self.size(trial)
        return self._stack_seconds(trial, members, members, 1) / members

    def stack_seconds(self, trials: Sequence[Trial]) -> float:
        """Core seconds of a stack: building it, drawing the data, steps, validations, and the evaluation of the best
        and the last weights with its analyses."""
        sources = {(trial.task.as_json, trial.data_seed) for trial in trials}
        return self._stack_seconds(trials[0], len(trials), len(sources), len({task for task, _ in sources}))

    def _stack_seconds(self, trial: Trial, members: int, sources: int, tasks: int) -> float:
        task = trial.task
        recipe = trial.recipe
        evaluation = trial.evaluation
        times = self._times(trial)
        validated = min(recipe.validation_examples, task.size(task.validation) or recipe.validation_examples)
        validations = 1 + math.ceil(recipe.steps / recipe.validate_every)
        on_curve = sum(_curve_examples(task, recipe, wanted) for wanted in curve_splits([evaluation]))
        # Members on one instance of the task are evaluated together, on examples drawn once for all of them.
        together = math.ceil(members / tasks)
        # Where adaptation is sampled, every member sees examples of its own, one member at a time.
        sampled = 0
        if SPECIALIZATION in evaluation.analyses:
            from unseen.training.analyses.rules_specialization import sampled_examples

            sampled = SELECTIONS * sampled_examples(trial.model, task, evaluation)
        per_member = (
            recipe.steps * times.step(members)
            + validations * validated * times.answer(members)
            + on_curve * times.answer(members) * times.tests
            + SELECTIONS * examples_drawn(task, evaluation) * times.answer(together) * times.tests
            + sampled * (times.answer(1) + times.draw)
            + (1 + SELECTIONS) * times.build
        )
        trained = task.size("train") or recipe.steps * recipe.batch
        tested = SELECTIONS * examples_drawn(task, evaluation, math.ceil(sources / tasks))
        return members * per_member + times.draw * (sources * trained + tasks * (validated + tested * times.tests))

    def _times(self, trial: Trial) -> WorkloadTimes:
        key = workload(trial)
        if key in self._known:
            return self._known[key]
        flops = max(step_cost(trial).flops, 1.0)
        if not self._known:
            return shipped_rates().times(trial.model.name, flops)
        nearest = min(self._known, key=lambda other: abs(math.log(max(self._flops[other], 1.0) / flops)))
        return self._known[nearest].scaled(flops / max(self._flops[nearest], 1.0))


def _curve_examples(task: Task, recipe: Recipe, wanted: CurveSplit) -> int:
    """How many examples of a split a member answers in the course of training."""
    examples = min(wanted.examples, task.size(wanted.split) or wanted.examples)
    return len(curve_steps(recipe, wanted.points)) * examples


_WORKLOADS: dict[tuple[str, str, str, int], str] = {}


def workload(trial: Trial) -> str:
    """The id of a trial's workload; the same for all trials whose steps take the same time."""
    batches = trial.recipe.batches
    key = (trial.model.as_json, trial.task.as_json, batches, trial.recipe.batch)
    if key not in _WORKLOADS:
        spec = asdict(typical_spec(trial.task, batches))
        _WORKLOADS[key] = digest([trial.model.identity(), spec, trial.recipe.batch])
    return _WORKLOADS[key]


# -- the cache --------------------------------------------------------------------------------------------------------


def _default_cache() -> Path | None:
    """`timing.json` in the user's cache directory; None if this user has no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unseen" / "timing.json"
    except RuntimeError:
        return None


def _read_cache(file: Path | None) -> dict[str, WorkloadTimes]:
    """The measured times by machine and workload. A damaged file is ignored, with a warning."""
    try:
        text = file.read_text() if file is not None else "{}"
    except (OSError, UnicodeDecodeError):
        return {}
    try:
        return {key: parse_times(value) for key, value in json.loads(text).items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        warnings.warn(f"{file} is damaged and is ignored; times are measured anew", stacklevel=3)
        return {}


def _write_cache(file: Path | None, entries: Mapping[str, WorkloadTimes]) -> None:
    if file is not None:
        with suppress(OSError):  # a cache that can't be written does no harm
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, json.dumps({key: asdict(times) for key, times in entries.items()}))


# -- the probe --------------------------------------------------------------------------------------------------------


def probe(trial: Trial, sizes: Sequence[int], seconds: float, device: str) -> WorkloadTimes:
    """Time stacks of a trial's workload; sizes that would not end in time are left out, but for the smallest.

    Every size validates and trains a few steps on one batch; the median step counts.
    """
    clock = device_clock(device)
    deadline = time.perf_counter() + seconds
    job = make_job([trial], device)
    # It never ends, never validates and never diverges: only steps are timed.
    recipe = trial.recipe.model_copy(
        update={
            "steps": 10**9,
            "validate_every": 10**9,
            "learning_rate": 1e-9,
            "validation_examples": min(_ANSWERED, trial.recipe.validation_examples),
        }
    )
    batches = _OneBatch(trial.task, recipe)
    answered = min(recipe.validation_examples, trial.task.size(trial.task.validation) or _ANSWERED)
    steps: dict[int, float] = {}
    answers: dict[int, float] = {}
    builds: list[float] = []
    expected = 0.0
    for size in sorted(sizes):
        if steps and time.perf_counter() + size * expected > deadline:
            break
        members = tuple(Member(str(i), i, i, recipe) for i in range(size))
        began = clock()
        trainer = Trainer(replace(job, members=members), batches=batches)
        builds.append((clock() - began) / size)
        trainer.begin()  # draws the data
        began = clock()
        trainer.begin()
        answers[size] = (clock() - began) / size / answered
        steps[size] = _time_step(trainer, clock, deadline) / size
        expected = (
            (_WARM_UP_STEPS + _TIMED_STEPS) * steps[size] + 2 * recipe.validation_examples * answers[size] + builds[-1]
        )
    return WorkloadTimes(steps, answers, _longer_tests(trial, job, clock), _draw_seconds(trial.task), min(builds))


def _time_step(trainer: Trainer, clock: Callable[[], float], deadline: float) -> float:
    times: list[float] = []
    while True:
        began = clock()
        trainer.advance(steps=1)
        times.append(clock() - began)
        timed = len(times) - _WARM_UP_STEPS
        if timed >= 1 and time.perf_counter() >= deadline:
            break
        if timed >= _TIMED_STEPS and (timed >= _MOST_TIMED_STEPS or sum(times) >= _SECONDS_OF_SHORT_STEPS):
            break
    return median(times[_WARM_UP_STEPS:])


def _longer_tests(trial: Trial, job: Job, clock: Callable[[], float]) -> float:
    """How many times as long an example of the evaluation takes, on average, as one of the validation: a split may
    have longer sequences."""
    task = trial.task
    names = [task.validation, *evaluated_splits(task, trial.evaluation)]
    sets = [draw_examples(task, name, CHUNK, "test") for name in names]
    shapes = []
    for examples in sets:
        shapes.append({name: values.shape[1:] for name, values in examples.inputs.items()})
    if all(shape == shapes[0] for shape in shapes):
        return 1.0
    stack = Stack([job.build(0).to(job.device, job.dtype)])
    times: list[float] = []
    with one_thread():
        predict(stack, sets[0], task.spec)  # the first pass takes longer
        for examples in sets:
            began = clock()
            predict(stack, examples, task.spec)
            times.append((clock() - began) / len(examples))
    return mean(times[1:]) / times[0]


def _draw_seconds(task: Task) -> float:
    """Seconds per example to draw training data: the better of two attempts, since the first sets things up."""
    n = min(4 * task.block, task.size("train") or 4 * task.block)
    attempts = []
    for _ in range(2):
        began = time.process_time()
        task.sample("train", n)
        attempts.append(time.process_time() - began)
    return min(attempts) / n


class _OneBatch(StackBatches):
    """The same batch for every member at every step: a whole training set takes longer to draw than a probe."""

    def __init__(self, task: Task, recipe: Recipe) -> None:
        super().__init__(recipe.batch, recipe.batches)
        n = min(recipe.batch, task.size("train") or recipe.batch)
        examples = task.sample("train", n)
        spec = typical_spec(task, recipe.batches)
        inputs = shorten(examples.inputs, spec, spec.streams[0].length) if spec.streams else examples.inputs
        self._one_batch = Batch(inputs, examples.targets).take(np.arange(recipe.batch) % n)

    def batch(self, step: int, sources: Sequence[Source]) -> Batch:
        """One copy per member, stacked along a leading axis."""
        return stack_batches([self._one_batch] * len(sources))

    def _stays_on_device(self, sources: Sequence[Source], device: str) -> bool:
        return False
