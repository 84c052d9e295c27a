"""Filling a store: pending cells become stacks, stacks advance slice by slice, each slice is one transaction."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from unseen.config import digest
from unseen.engine.checkpoint import pack, pack_weights, unpack
from unseen.engine.evaluate import Measure, evaluate
from unseen.engine.flat import State
from unseen.engine.probe import choose_size
from unseen.engine.stack import Stack, load_member
from unseen.engine.train import Job, Member, Point, Trainer, one_thread
from unseen.metrics.learning import still_learning
from unseen.studies.cell import Cell, build_model, words
from unseen.studies.progress import Progress, Style
from unseen.studies.provenance import provenance
from unseen.studies.store import Finished, Store


@dataclass(frozen=True)
class Settings:
    """How to run: stack size, slices, progress; the device; the class of a model that is not registered."""

    size: int | None = None
    slice_seconds: float = 60.0
    device: str = "cpu"
    progress: Style = "auto"
    cls: type[nn.Module] | None = None


class Interrupted(KeyboardInterrupt):
    """The user asked to stop; everything up to the last step is in the store."""

    def __init__(self, store: Store) -> None:
        super().__init__(f"stopped; everything so far is in {store.path}. The same call goes on from there")


def run_cells(cells: Sequence[Cell], store: Store, settings: Settings) -> None:
    """Train every cell that the store has not finished. Cells of one work; stacks that were begun are brought to
    their end as they are, with the seeds they were begun with.
    """
    own_data = all(c.data_seed == c.seed for c in cells)
    store.claim({**cells[0].work, "data_seed": "own" if own_data else cells[0].data_seed})
    store.add(cells)
    status, begun = store.status(), [(stack, unpack(path, data)) for stack, path, data in store.checkpoints()]
    known = {key: replace(cells[0], seed=seed, data_seed=data) for key, (seed, data) in store.seeds().items()}
    taken = {key for _, checkpoint in begun for key in checkpoint.progress}
    rest = [c for c in cells if status[c.id] == "pending" and c.id not in taken]
    steps = cells[0].recipe.steps
    total = steps * len(rest) + sum((steps - c.step) * len(c.progress) for _, c in begun)
    title = f"{words(cells[0].task.options())} · {words(cells[0].model.options())}"
    with Progress(title, total, settings.progress) as progress, _stop_on_interrupt() as stopping:
        for stack, checkpoint in begun:
            job = _job([known[key] for key in checkpoint.progress], settings)
            _run_stack(stack, Trainer(job, checkpoint), store, settings, progress, stopping)
        if rest:
            size = settings.size or choose_size(_job(rest, settings))
            for start in range(0, len(rest), size):
                part = rest[start : start + size]
                trainer = Trainer(_job(part, settings))
                _run_stack(digest([c.id for c in part]), trainer, store, settings, progress, stopping)


def _job(cells: Sequence[Cell], settings: Settings) -> Job:
    first = cells[0]
    members = tuple(Member(c.id, c.seed, c.data_seed, c.recipe) for c in cells)
    spec = first.task.spec
    return Job(first.task, lambda seed: build_model(first.model, spec, seed, settings.cls), members,
               first.evaluation, settings.device)


def _run_stack(stack: str, trainer: Trainer, store: Store, settings: Settings, progress: Progress,
               stopping: Callable[[], bool]) -> None:
    def on_step(now: Trainer) -> bool:
        best = [p.best for p in now.progress.values() if p.best_step]
        progress.add(len(now.running), f"best validation {max(best):.3f}" if best else "")
        return stopping()

    while not trainer.done:
        points = trainer.advance(seconds=settings.slice_seconds, on_step=on_step)
        if trainer.done:
            store.commit(stack, None, points, _finish(trainer, points, store))
            return
        store.commit(stack, pack(trainer.save()), points, {}, {m.key: trainer.step for m in trainer.running})
        if stopping():
            raise Interrupted(store)


def _finish(trainer: Trainer, points: Sequence[Point], store: Store) -> dict[str, Finished]:
    """Evaluate the last and the best weights of every member, and gather what each leaves behind."""
    with one_thread():
        measures = {"last": _measure(trainer, trainer.last), "best": _measure(trainer, trainer.best)}
    curves = store.curves()
    task, done = trainer.job.task, {}
    score = "loss" if task.spec.target.kind == "real" else "accuracy"
    for member in trainer.job.members:
        key, ended = member.key, trainer.progress[member.key]
        stored = curves[(curves.cell == key) & (curves.condition == task.validation) & (curves.metric == score)]
        curve = dict(zip(stored.step, stored.value, strict=True))
        curve |= {p.step: p.value for p in points if (p.key, p.condition, p.metric) == (key, task.validation, score)}
        sign = -1.0 if score == "loss" else 1.0
        done[key] = Finished(
            status=ended.ending, step=ended.step, best_step=ended.best_step,
            still_learning=None if ended.ending == "diverged" else still_learning(
                [sign * curve[s] for s in sorted(curve)]),
            note=trainer.stack.note,
            measures={rule: rows[key] for rule, rows in measures.items() if key in rows},
            weights={rule: pack_weights(states[key]) for rule, states in
                     (("last", trainer.last), ("best", trainer.best)) if key in states},
            provenance={**provenance(), "device": trainer.job.device, "seconds": round(ended.seconds, 3),
                        "cpu_seconds": round(ended.cpu_seconds, 3)},
        )
    return done


def _measure(trainer: Trainer, states: dict[str, State]) -> dict[str, list[Measure]]:
    alive = [m for m in trainer.job.members if m.key in states and trainer.progress[m.key].ending != "diverged"]
    if not alive:
        return {}
    modules = []
    for member in alive:
        module = trainer.job.build(member.seed).to(trainer.job.device, trainer.job.dtype)
        modules.append(load_member(module, states[member.key]))
    stack = Stack(modules)
    stack.together = trainer.stack.together
    rows = evaluate(stack, trainer.job.task, trainer.job.evaluation)
    return dict(zip([m.key for m in alive], rows, strict=True))


@contextmanager
def _stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """While inside, Ctrl-C only raises a flag, so that the step under way is finished and saved."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def ask(number: int, frame: Any) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)
