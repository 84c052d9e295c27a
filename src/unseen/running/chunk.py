"""A chunk: about a minute of a stack's work, as a pure function of (trials, checkpoint); and what executors exchange."""

from __future__ import annotations

import hashlib
import os
import socket
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Literal, Protocol

from torch import nn

from unseen.models import is_ours
from unseen.models.build import build
from unseen.running.provenance import provenance
from unseen.running.stacks import stack_key
from unseen.store.schema import Evaluated, Finished, Outcome, Span
from unseen.studies.trial import Trial, evaluation_id
from unseen.tasks.base import Task
from unseen.training.checkpoint import pack, pack_weights, unpack, unpack_weights
from unseen.training.convergence import not_converged
from unseen.training.evaluate import Measure, Origin, evaluate, left_out, measured_splits
from unseen.training.preflight import check_answers, check_model
from unseen.training.process import device_facts, one_thread
from unseen.training.recipe import Evaluation, curve_splits
from unseen.training.stack import Stack, State, load_member
from unseen.training.trainer import Job, Member, Trainer

Keep = Literal["none", "best", "all"]
KEEP: dict[str, tuple[str, ...]] = {"none": (), "best": ("best",), "all": ("last", "best")}
"""Which weights are kept when a run ends: none, the best on validation, or the best and the last."""


@dataclass(frozen=True)
class EndedWeights:
    """How a trial ended, and the weights it ended with, by selection."""

    status: str
    step: int
    states: Mapping[str, bytes]


@dataclass(frozen=True, eq=False)
class Chunk:
    """The work that a worker is given: the trials of a stack, their checkpoint (None: from the start), and for how long.

    `read_checkpoint` reads the checkpoint when the chunk is handed to a worker (`with_checkpoint`): those of the thousands
    of chunks that may wait for a worker would not fit into the runner's memory.
    `evaluations` are those of all its trials (default: the first trial's own). `preflight` are the notes of a dry run
    that was made before; None: this worker makes it. With `weights`, by trial, nothing is trained: these
    weights are evaluated in the ways whose ids are `missing`. With `probe_sizes` nothing is kept: stacks of these sizes
    are timed on the worker.
    """

    ticket: int
    trials: tuple[Trial, ...]
    checkpoint: bytes | None
    seconds: float
    keep: Keep = "none"
    device: str = "cpu"
    evaluations: tuple[Evaluation, ...] = ()
    preflight: tuple[str, ...] | None = None
    weights: Mapping[str, EndedWeights] | None = None
    missing: tuple[str, ...] = ()
    probe_sizes: tuple[int, ...] = ()
    read_checkpoint: Callable[[], bytes] | None = None

    def with_checkpoint(self) -> Chunk:
        """The chunk as a worker gets it: with the checkpoint, if it has one, in place of the way to read it."""
        if self.read_checkpoint is None:
            return self
        return replace(self, checkpoint=self.read_checkpoint(), read_checkpoint=None)


@dataclass(frozen=True)
class Tick:
    """A chunk is under way: the step it has reached, the best validation of any member."""

    ticket: int
    step: int
    best: float | None


@dataclass(frozen=True)
class Death:
    """A worker died while it computed a chunk; `innocent` if that can't have been the chunk's fault."""

    ticket: int
    cause: str
    innocent: bool = False


Event = Tick | Outcome | Death


class Executor(Protocol):
    """Carries chunks to where they are computed: each chunk ends as one `Outcome` or one `Death`."""

    workers: int

    def submit(self, chunk: Chunk) -> None:
        """Have a chunk done as soon as a worker is free."""

    def next(self, seconds: float) -> Event | None:
        """The next event; None if there is none in this time."""

    def stop(self) -> int:
        """Forget chunks that have not begun, end the others after their current step; returns how many outcomes will
        come."""

    def close(self) -> None:
        """End the workers."""


class Worker:
    """Does chunks. The stack it did last stays in memory, so that its next chunk need not be set up again: the
    outcome is the same either way, bit for bit.
    """

    def __init__(self) -> None:
        self._cached: tuple[str, Trainer] | None = None
        self._preflight: dict[str, tuple[str, ...]] = {}

    def do(self, chunk: Chunk, on_tick: Callable[[Tick], bool] = lambda tick: False) -> Outcome:
        """The outcome of a chunk. `on_tick` is called after every step, and ends the chunk by answering True."""
        began = time.perf_counter()
        try:
            return replace(self._do(chunk, on_tick), seconds=time.perf_counter() - began)
        except Exception:
            self._cached = None
            return Outcome(chunk.ticket, error=traceback.format_exc())

    def _do(self, chunk: Chunk, on_tick: Callable[[Tick], bool]) -> Outcome:
        trials = chunk.trials
        if chunk.probe_sizes:
            from unseen.running.timing import probe

            times = probe(trials[0], chunk.probe_sizes, chunk.seconds, chunk.device)
            return Outcome(chunk.ticket, timing=asdict(times))
        evaluations = chunk.evaluations or (trials[0].evaluation,)
        notes = chunk.preflight
        if notes is None:
            key = stack_key(trials[0], evaluations)
            if key not in self._preflight:
                self._preflight[key] = tuple(check_trial(trials[0], chunk.device, evaluations))
            notes = self._preflight[key]
        if chunk.weights is not None:
            evaluated = _evaluate_weights(chunk, chunk.weights, evaluations, notes)
            return Outcome(chunk.ticket, evaluated=evaluated, preflight=notes)
        trainer = self._trainer(chunk, evaluations)
        before = {key: (_reached(trainer, key), p.seconds, p.cpu_seconds) for key, p in trainer.progress.items()}

        def on_step(now: Trainer) -> bool:
            best = [p.best for p in now.progress.values() if p.best_step]
            return on_tick(Tick(chunk.ticket, now.step, max(best, default=None)))

        points = trainer.begin() + trainer.advance(seconds=chunk.seconds, on_step=on_step)
        worker = f"{socket.gethostname()}:{os.getpid()}"
        spans = {}
        for key, progress in trainer.progress.items():
            step, seconds, cpu_seconds = before[key]
            if _reached(trainer, key) > step:
                took = (progress.seconds - seconds, progress.cpu_seconds - cpu_seconds)
                spans[key] = Span(step, _reached(trainer, key), *took, worker)
        if trainer.done:
            finished = _finish(trainer, evaluations, notes, chunk.keep)
            return Outcome(chunk.ticket, None, points, spans, finished, preflight=notes)
        checkpoint = pack(trainer.save())
        self._cached = (hashlib.sha256(checkpoint).hexdigest(), trainer)
        return Outcome(chunk.ticket, checkpoint, points, spans, {}, preflight=notes)

    def _trainer(self, chunk: Chunk, evaluations: Sequence[Evaluation]) -> Trainer:
        cached = self._cached
        self._cached = None
        job = make_job(chunk.trials, chunk.device, evaluations)
        if chunk.checkpoint is None:
            return Trainer(job)
        if cached is not None and cached[0] == hashlib.sha256(chunk.checkpoint).hexdigest():
            trainer = cached[1]
            if trainer.job.curve == job.curve:
                return trainer
        return Trainer(job, unpack("a checkpoint", chunk.checkpoint))


def make_job(trials: Sequence[Trial], device: str = "cpu", evaluations: Sequence[Evaluation] = ()) -> Job:
    """Trials of equal shape as a job of the trainer; the evaluations say which splits are on the learning curve."""
    first = trials[0]
    members = tuple(Member(trial.id, trial.seed, trial.data_seed, trial.recipe, trial.task) for trial in trials)
    spec = first.task.spec
    curve = curve_splits(evaluations)
    return Job(first.task, lambda seed: build(first.model, spec, seed), members, device, curve=curve)


def check_trial(
    trial: Trial, device: str = "cpu", evaluations: Sequence[Evaluation] = (), *, full: bool = False
) -> list[str]:
    """The preflight of a trial: its notes; a trial that can't be trained and evaluated is refused.

    Models of this package are known to train, so only their answers on the evaluated splits are checked: sequences may
    be longer there than learned positions. `full` checks them like a user's, and refuses analyses that the task or the
    model can't have.
    """
    evaluations = evaluations or (trial.evaluation,)
    make = partial(build, trial.model, trial.task.spec, trial.seed)
    with one_thread():
        if full or not is_ours(trial.model.name):
            return check_model(
                make, trial.task, trial.recipe, evaluations, trial.data_seed, device, require_analyses=full
            )
        splits: list[str] = []
        for evaluation in evaluations:
            splits += measured_splits(trial.task, evaluation)
        check_answers(Stack([make()]), trial.task, splits, trial.model.name, trial.data_seed)
    return []


def check_own_models(trials: Iterable[Trial]) -> None:
    """Refuse a user's class that can't be trained on one of its tasks, before a trial of it is stored as failed.

    The first trial of every model and task is checked. Models of this package are known to train.
    """
    first: dict[tuple[str, str], Trial] = {}
    for trial in trials:
        if not is_ours(trial.model.name):
            first.setdefault((trial.model.name, trial.task.name), trial)
    for trial in first.values():
        check_trial(trial)


def _reached(trainer: Trainer, key: str) -> int:
    """The step a member is at; one that has ended stays where it ended."""
    progress = trainer.progress[key]
    return trainer.step if progress.ending == "running" else progress.step


def _finish(
    trainer: Trainer, evaluations: Sequence[Evaluation], notes: Sequence[str], keep: Keep
) -> dict[str, Finished]:
    """Evaluate the last and the best weights of every member, and collect what is stored of each."""
    states = {"last": trainer.last, "best": trainer.best}
    measures, notes = _measure_all(trainer, states, evaluations, notes)
    layout = trainer.stack.layout
    finished = {}
    for key, progress in trainer.progress.items():
        diverged = progress.ending == "diverged"
        finished[key] = Finished(
            status=progress.ending,
            step=progress.step,
            best_step=progress.best_step,
            not_converged=None if diverged else not_converged(progress.scores),
            note=_note(progress.ending, progress.step, notes),
            measures=measures.get(key, {}),
            weights={name: pack_weights(states[name][key]) for name in KEEP[keep] if key in states[name]},
            provenance={
                **provenance(),
                **device_facts(trainer.job.device),
                "parameters": layout.width - layout.padding,
                "seconds": round(progress.seconds, 3),
                "cpu_seconds": round(progress.cpu_seconds, 3),
            },
        )
    return finished


def _evaluate_weights(
    chunk: Chunk, weights: Mapping[str, EndedWeights], evaluations: Sequence[Evaluation], notes: Sequence[str]
) -> dict[str, Evaluated]:
    """Evaluate the weights that trials ended with, to the numbers of a run that was evaluated in this way at its end."""
    trainer = Trainer(make_job(chunk.trials, chunk.device))
    trainer.settle()
    states: dict[str, dict[str, State]] = defaultdict(dict)
    for key, ended in weights.items():
        for selection, data in ended.states.items():
            state = unpack_weights(f"the {selection} weights of trial {key}", data)
            states[selection][key] = {name: tensor.to(chunk.device) for name, tensor in state.items()}
    measures, notes = _measure_all(trainer, states, evaluations, notes, chunk.missing)
    facts = {**provenance(), **device_facts(chunk.device)}
    evaluated = {}
    for key, ended in weights.items():
        evaluated[key] = Evaluated(_note(ended.status, ended.step, notes), measures.get(key, {}), facts)
    return evaluated


def _measure_all(
    trainer: Trainer,
    states: Mapping[str, Mapping[str, State]],
    evaluations: Sequence[Evaluation],
    notes: Sequence[str],
    missing: Sequence[str] | None = None,
) -> tuple[dict[str, dict[str, dict[str, list[Measure]]]], list[str]]:
    """The measures of weights by trial, evaluation id and selection; and the notes of the records.

    The notes are about all evaluations, the measures are those of the `missing` ones (default: all).
    """
    measures: dict[str, dict[str, dict[str, list[Measure]]]] = {}
    notes = [trainer.stack.note, *notes]
    with one_thread():
        for evaluation in evaluations:
            key = evaluation_id(evaluation)
            for selection, weights in states.items() if missing is None or key in missing else ():
                for trial, rows in _measure(trainer, weights, evaluation).items():
                    measures.setdefault(trial, {}).setdefault(key, {})[selection] = rows
            origin = _origin(trainer, trainer.job.members)
            notes += left_out(trainer.stack, trainer.job.task, evaluation, origin)
    return measures, notes


def _note(ending: str, step: int, notes: Sequence[str]) -> str:
    """The note of a trial: why it ended before its last step, then what holds for all of its stack."""
    why = f"ended at a plateau, after {step} steps" if ending == "stopped" else ""
    return "; ".join(dict.fromkeys(filter(None, [why, *notes])))


def _measure(trainer: Trainer, weights: Mapping[str, State], evaluation: Evaluation) -> dict[str, list[Measure]]:
    """The measures of every member that has such weights and has not diverged; those of one task are one stack."""
    job = trainer.job
    groups: dict[Task, list[Member]] = defaultdict(list)
    for member in job.members:
        if member.key in weights and trainer.progress[member.key].ending != "diverged":
            groups[job.task_of(member)].append(member)
    measures: dict[str, list[Measure]] = {}
    for task, members in groups.items():
        modules = _untrained(job, members)
        for member, module in zip(members, modules, strict=True):
            load_member(module, weights[member.key])
        rows = evaluate(_stack_like(trainer, modules), task, evaluation, _origin(trainer, members))
        for member, member_rows in zip(members, rows, strict=True):
            measures[member.key] = member_rows
    return measures


def _origin(trainer: Trainer, members: Sequence[Member]) -> Origin:
    """The data seeds of these members, and the models they began as."""
    return Origin([m.data_seed for m in members], lambda: _stack_like(trainer, _untrained(trainer.job, members)))


def _untrained(job: Job, members: Sequence[Member]) -> list[nn.Module]:
    """The models of these members as the trainer builds them."""
    return [job.build(m.seed).to(job.device, job.dtype) for m in members]


def _stack_like(trainer: Trainer, modules: Sequence[nn.Module]) -> Stack:
    """A stack that is run as the trainer's is: together, or member by member."""
    stack = Stack(modules)
    stack.together = trainer.stack.together
    return stack
