"""A slice: about a minute of a stack's work, as a pure function of (cells, checkpoint)."""

from __future__ import annotations

import hashlib
import os
import socket
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import nn

from unseen.config import digest
from unseen.engine.checkpoint import pack, pack_weights, unpack
from unseen.engine.evaluate import Measure, Origin, evaluate, left_out
from unseen.engine.flat import State
from unseen.engine.stack import Stack, load_member
from unseen.engine.threads import one_thread
from unseen.engine.train import Job, Member, Point, Trainer
from unseen.metrics.learning import still_learning
from unseen.studies.cell import Cell, build_model
from unseen.studies.fit import Fits
from unseen.studies.provenance import provenance
from unseen.tasks.base import Task

Keep = Literal["none", "best", "all"]
KEEP: dict[str, tuple[str, ...]] = {"none": (), "best": ("best",), "all": ("last", "best")}
"""Whose weights outlive the run: nobody's, the best on validation, or the best and the last."""


@dataclass(frozen=True, eq=False)
class Slice:
    """What a worker is given: the cells of a stack, where they stand (None: at the start), and for how long."""

    ticket: int
    cells: tuple[Cell, ...]
    checkpoint: bytes | None
    seconds: float
    keep: Keep = "none"
    device: str = "cpu"


@dataclass(frozen=True)
class Span:
    """The steps of one cell that a slice has done, and what they took."""

    begin: int
    end: int
    seconds: float
    cpu_seconds: float
    worker: str


@dataclass(frozen=True)
class Finished:
    """What an ended cell leaves behind; `measures` and `weights` by selection rule."""

    status: str
    step: int
    best_step: int
    still_learning: bool | None
    note: str
    measures: Mapping[str, Sequence[Measure]]
    weights: Mapping[str, bytes]
    provenance: Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What a slice gives back. Without a checkpoint the stack is done; with an `error` nothing was done.

    `seconds` is all that it took where it was computed: setting up, training, evaluating, packing.
    """

    ticket: int
    checkpoint: bytes | None = None
    points: Sequence[Point] = ()
    spans: Mapping[str, Span] | None = None
    finished: Mapping[str, Finished] | None = None
    error: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Tick:
    """A slice is under way: the step it has reached, the best validation of any member."""

    ticket: int
    step: int
    best: float | None


class Worker:
    """Does slices. The stack it did last stays in memory, so that its next slice need not be set up again: the
    outcome is the same either way, bit for bit.
    """

    def __init__(self) -> None:
        self._kept: tuple[str, Trainer] | None = None
        self._fits = Fits()

    def do(self, slice: Slice, on_tick: Callable[[Tick], bool] = lambda tick: False) -> Outcome:
        """The outcome of a slice. `on_tick` hears of every step, and ends the slice after it by answering True."""
        began = time.perf_counter()
        try:
            return replace(self._do(slice, on_tick), seconds=time.perf_counter() - began)
        except Exception:
            self._kept = None
            return Outcome(slice.ticket, error=traceback.format_exc())

    def _do(self, slice: Slice, on_tick: Callable[[Tick], bool]) -> Outcome:
        odd = self._fits.check(slice.cells[0], slice.device)
        trainer = self._trainer(slice)
        before = {key: (_reached(trainer, key), p.seconds, p.cpu_seconds) for key, p in trainer.progress.items()}

        def on_step(now: Trainer) -> bool:
            best = [p.best for p in now.progress.values() if p.best_step]
            return on_tick(Tick(slice.ticket, now.step, max(best, default=None)))

        points = trainer.begin() + trainer.advance(seconds=slice.seconds, on_step=on_step)
        name = f"{socket.gethostname()}:{os.getpid()}"
        spans = {
            key: Span(step, _reached(trainer, key), p.seconds - seconds, p.cpu_seconds - cpu_seconds, name)
            for key, p in trainer.progress.items()
            for step, seconds, cpu_seconds in [before[key]]
            if _reached(trainer, key) > step
        }
        if trainer.done:
            return Outcome(slice.ticket, None, points, spans, _finish(trainer, odd, slice.keep))
        checkpoint = pack(trainer.save())
        self._kept = (hashlib.sha256(checkpoint).hexdigest(), trainer)
        return Outcome(slice.ticket, checkpoint, points, spans, {})

    def _trainer(self, slice: Slice) -> Trainer:
        kept, self._kept = self._kept, None
        if slice.checkpoint is None:
            return Trainer(job(slice.cells, slice.device))
        if kept is not None and kept[0] == hashlib.sha256(slice.checkpoint).hexdigest():
            return kept[1]
        return Trainer(job(slice.cells, slice.device), unpack("a checkpoint", slice.checkpoint))


def job(cells: Sequence[Cell], device: str = "cpu") -> Job:
    """Cells of equal shape as the engine's job."""
    first = cells[0]
    members = tuple(Member(c.id, c.seed, c.data_seed, c.recipe, c.task) for c in cells)
    spec = first.task.spec
    return Job(first.task, lambda seed: build_model(first.model, spec, seed), members, first.evaluation, device)


def stack_name(cells: Sequence[str]) -> str:
    """What the stack of these cells is called."""
    return digest(list(cells))


def alone(cells: Sequence[str], checkpoint: bytes) -> dict[str, tuple[list[str], bytes]]:
    """The parts of a stack's checkpoint from which each cell goes on alone: {stack: (its cell, checkpoint)}."""
    whole = unpack("a checkpoint", checkpoint)
    return {stack_name([cell]): ([cell], pack(whole.only(cell))) for cell in cells}


def _reached(trainer: Trainer, key: str) -> int:
    """The step a member is at; one that has ended stays where it ended."""
    progress = trainer.progress[key]
    return trainer.step if progress.ending == "running" else progress.step


def _finish(trainer: Trainer, odd: Sequence[str], keep: Keep) -> dict[str, Finished]:
    """Evaluate the last and the best weights of every member, and gather what each leaves behind; `odd` is to be noted
    of all."""
    states = {"last": trainer.last, "best": trainer.best}
    with one_thread():
        measures = {rule: _measure(trainer, named) for rule, named in states.items()}
        missing = left_out(
            trainer.stack, trainer.job.task, trainer.job.evaluation, _origin(trainer, trainer.job.members)
        )
    layout = trainer.stack.layout
    note = "; ".join(filter(None, [trainer.stack.note, *odd, *missing]))
    return {
        key: Finished(
            status=ended.ending,
            step=ended.step,
            best_step=ended.best_step,
            still_learning=None if ended.ending == "diverged" else still_learning(ended.scores),
            note=note,
            measures={rule: rows[key] for rule, rows in measures.items() if key in rows},
            weights={rule: pack_weights(states[rule][key]) for rule in KEEP[keep] if key in states[rule]},
            provenance={
                **provenance(),
                "device": trainer.job.device,
                "parameters": layout.width - layout.padding,
                "seconds": round(ended.seconds, 3),
                "cpu_seconds": round(ended.cpu_seconds, 3),
            },
        )
        for key, ended in trainer.progress.items()
    }


def _measure(trainer: Trainer, states: dict[str, State]) -> dict[str, list[Measure]]:
    job, groups, found = trainer.job, defaultdict[Task, list[Member]](list), dict[str, list[Measure]]()
    for member in job.members:
        if member.key in states and trainer.progress[member.key].ending != "diverged":
            groups[job.task_of(member)].append(member)
    for task, members in groups.items():
        modules = zip(members, _initial(job, members), strict=True)
        stack = _stack(trainer, [load_member(module, states[m.key]) for m, module in modules])
        rows = evaluate(stack, task, job.evaluation, _origin(trainer, members))
        found |= zip([m.key for m in members], rows, strict=True)
    return found


def _origin(trainer: Trainer, members: Sequence[Member]) -> Origin:
    """Whose data these members were trained on, and the models they began as."""
    return Origin([m.data_seed for m in members], lambda: _stack(trainer, _initial(trainer.job, members)))


def _initial(job: Job, members: Sequence[Member]) -> list[nn.Module]:
    """The models of these members as the trainer builds them."""
    return [job.build(m.seed).to(job.device, job.dtype) for m in members]


def _stack(trainer: Trainer, modules: Sequence[nn.Module]) -> Stack:
    """A stack that is run in the way the trainer's is."""
    stack = Stack(modules)
    stack.together = trainer.stack.together
    return stack
