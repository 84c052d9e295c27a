"""Filling a store: pending trials become stacks, stacks advance chunk by chunk, each chunk is one transaction."""

from __future__ import annotations

import math
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from unseen.errors import CheckFailed, UsageError, nearest
from unseen.running.chunk import KEEP, Chunk, Death, Executor, Keep, Tick
from unseen.running.progress import Progress, Style
from unseen.running.provenance import cores
from unseen.running.stacks import SIZE, Evaluations, arrange, collect_evaluations, group_trials, shape
from unseen.store.schema import Outcome
from unseen.store.store import Store, split_stack, stack_name
from unseen.studies.trial import Entry, Trial
from unseen.training.checkpoint import unpack
from unseen.training.recipe import Evaluation

if TYPE_CHECKING:
    from unseen.running.timing import Timing

EXECUTORS = ("inline", "local", "ray")
DEATHS = 2
"""This many workers may die over a stack without a chunk done between; then its trials are tried one by one, and a trial
that is alone has failed."""


@dataclass(frozen=True)
class Settings:
    """How to run. None of it is in any record."""

    executor: Literal["inline", "local", "ray"] = "inline"
    workers: int | None = None
    address: str | None = None
    size: int | None = None
    chunk_seconds: float = 60.0
    keep: Keep = "all"
    device: str = "cpu"
    progress: Style = "auto"
    retry_failed: bool = False
    discard_damaged: bool = False
    track: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, known in (("executor", EXECUTORS), ("keep", KEEP)):
            if getattr(self, name) not in known:
                raise UsageError(f"unknown {name} '{getattr(self, name)}'. {nearest(str(getattr(self, name)), known)}")
        for name in ("workers", "size", "chunk_seconds"):
            count = getattr(self, name)
            if count is not None and not 0 < count < math.inf:
                raise UsageError(f"{name.replace('size', 'stack')} = {count}: give a positive number")
        if self.address is not None and self.executor != "ray":
            raise UsageError("an address is that of a Ray cluster: choose the executor ray")


class Interrupted(KeyboardInterrupt):
    """The user asked to stop; everything up to the last step is in the store."""

    def __init__(self, store: Store) -> None:
        super().__init__(f"stopped; everything so far is in {store.path}. The same call goes on from there")


def run_entries(
    entries: Sequence[Entry],
    store: Store,
    settings: Settings,
    title: str,
    scale: str = "",
    preflight: tuple[str, ...] | None = None,
) -> None:
    """Train every one of these trials that the store has not ended; those that were begun continue.

    `preflight` are the notes of a dry run that the caller has made of all these trials, if it has.
    """
    store.add(entries, scale)
    with ExitStack() as exits:
        if settings.track:
            from unseen.tracking.follow import follow

            exits.enter_context(follow(store.path, settings.track))
        store.check("curves", "records")
        _check_checkpoints(store, settings)
        trials = {entry.trial.id: entry.trial for entry in entries}
        if settings.retry_failed:
            store.retry(list(trials))
        evaluations = _all_evaluations(entries, store)
        begun = _begun_stacks(store, trials, evaluations)
        in_stacks = {trial.id for stack in begun for trial in stack.trials}
        status = store.status()
        new = [trial for key, trial in trials.items() if status[key] == "pending" and key not in in_stacks]
        if not begun and not new:
            return
        pending = [trial for stack in begun for trial in stack.trials] + new
        stopping = exits.enter_context(_stop_on_interrupt())
        progress = exits.enter_context(Progress(title, settings.progress))

        def on_probe(text: str) -> None:
            if stopping():
                raise Interrupted(store)
            progress.say(text)

        timing, progress.price = _price(pending, evaluations, settings, on_probe)
        with closing(_executor(settings, len(pending), stopping, progress.tick)) as executor:
            stacks = arrange(new, executor.workers, timing, settings.size, evaluations)
            runner = _Runner(store, executor, settings, progress, stopping, preflight)
            runner.run([*begun, *(_Stack(members, evaluations[members[0].id]) for members in stacks)])


def _all_evaluations(entries: Sequence[Entry], store: Store) -> dict[str, tuple[Evaluation, ...]]:
    """The evaluations of every trial: those of these entries, and those of its entries at other scales."""
    evaluations = collect_evaluations(entries)
    for trial, identities in store.pending_evaluations().items():
        for identity in identities if trial in evaluations else ():
            evaluation = Evaluation.parse({name: value for name, value in identity.items() if name != "version"})
            if evaluation not in evaluations[trial]:
                evaluations[trial] += (evaluation,)
    return evaluations


def _price(
    trials: Sequence[Trial], evaluations: Evaluations, settings: Settings, on_probe: Callable[[str], None]
) -> tuple[Timing | None, dict[str, float]]:
    """Timing, if it is needed to choose the size of stacks, and the relative cost of a step of each trial.

    Few trials of a shape are stacked all together, without a probe; where all are of one shape, their steps cost alike.
    """
    groups = group_trials(trials, evaluations)
    if settings.size is None and max(map(len, groups.values())) > SIZE:
        from unseen.running.timing import Timing

        timing = Timing.measure(trials, device=settings.device, on_probe=on_probe)
        return timing, {trial.id: timing.seconds(trial) / trial.recipe.steps for trial in trials}
    if len(groups) == 1:
        return None, {}
    from unseen.running.flops import step_cost

    return None, {trial.id: max(step_cost(trial).flops, 1.0) for trial in trials}


class _Stack:
    """Trials that are trained together, their evaluations, and the checkpoint they have reached."""

    def __init__(
        self, trials: tuple[Trial, ...], evaluations: tuple[Evaluation, ...], checkpoint: bytes | None = None
    ) -> None:
        self.trials = trials
        self.evaluations = evaluations
        self.checkpoint = checkpoint
        self.deaths = 0
        self.ids = [trial.id for trial in trials]
        self.name = stack_name(self.ids)

    def split(self) -> list[_Stack]:
        """Each trial on its own, from the same checkpoint."""
        if self.checkpoint is None:
            return [_Stack((trial,), self.evaluations) for trial in self.trials]
        checkpoints = split_stack(self.ids, self.checkpoint).values()
        stacks = []
        for trial, (_, data) in zip(self.trials, checkpoints, strict=True):
            stacks.append(_Stack((trial,), self.evaluations, data))
        return stacks


class _Runner:
    """The one writer: hands out chunks, and commits what comes back."""

    def __init__(
        self,
        store: Store,
        executor: Executor,
        settings: Settings,
        progress: Progress,
        stopping: Callable[[], bool],
        preflight: tuple[str, ...] | None,
    ) -> None:
        self._store = store
        self._executor = executor
        self._settings = settings
        self._progress = progress
        self._stopping = stopping
        self._waiting = deque[_Stack]()
        self._running: dict[int, _Stack] = {}
        self._tickets = 0
        self._default_notes = preflight
        # The notes of the dry run by shape: it is made once for each, by the first worker that gets such a stack.
        self._notes: dict[str, tuple[str, ...]] = {}

    def run(self, stacks: Sequence[_Stack]) -> None:
        """Train all stacks to their end."""
        self._waiting.extend(stacks)
        reached: dict[str, int] = {}
        for stack in stacks:
            if stack.checkpoint is not None:
                reached |= dict.fromkeys(stack.ids, unpack("a checkpoint", stack.checkpoint).step)
        self._progress.begin([trial for stack in stacks for trial in stack.trials], reached)
        while (self._waiting or self._running) and not self._stopping():
            # One more than there are workers, so that none has to wait while an outcome is written.
            while self._waiting and len(self._running) <= self._executor.workers:
                self._launch(self._waiting.popleft())
            self._handle_next(0.2)
        if self._stopping():
            self._drain()
            raise Interrupted(self._store)

    def _launch(self, stack: _Stack) -> None:
        self._tickets += 1
        self._running[self._tickets] = stack
        self._progress.start(self._tickets, stack.trials)
        self._executor.submit(
            Chunk(
                self._tickets,
                stack.trials,
                stack.checkpoint,
                self._settings.chunk_seconds,
                self._settings.keep,
                self._settings.device,
                stack.evaluations,
                self._notes.get(shape(stack.trials[0], stack.evaluations), self._default_notes),
            )
        )

    def _handle_next(self, seconds: float, go_on: bool = True) -> bool:
        """Wait for the next event and handle it; returns whether a chunk has ended."""
        event = self._executor.next(seconds)
        if isinstance(event, Tick):
            self._progress.tick(event)
        elif event is not None and event.ticket in self._running:  # anything else is a late duplicate
            stack = self._running.pop(event.ticket)
            self._progress.end(event.ticket)
            if isinstance(event, Death):
                self._died(stack, event, go_on)
            elif event.error:
                self._failed(stack, event.error.strip().splitlines()[-1], event.error)
            else:
                self._advanced(stack, event, go_on)
            return True
        return False

    def _advanced(self, stack: _Stack, outcome: Outcome, go_on: bool) -> None:
        stack.checkpoint = outcome.checkpoint
        stack.deaths = 0
        if outcome.preflight is not None:
            self._notes[shape(stack.trials[0], stack.evaluations)] = outcome.preflight
        if outcome.checkpoint is not None and go_on:
            self._launch(stack)  # before writing, so that the worker goes on meanwhile
        self._store.commit(stack.name, stack.ids, outcome)
        self._progress.advance(outcome)

    def _died(self, stack: _Stack, death: Death, go_on: bool) -> None:
        stack.deaths += not death.innocent
        if stack.deaths >= DEATHS:
            self._failed(stack, death.cause, "")
        elif go_on:
            self._launch(stack)

    def _failed(self, stack: _Stack, cause: str, traceback: str) -> None:
        """One of the trials fails: each continues alone, which shows which one it is."""
        if len(stack.trials) == 1:
            self._store.fail(stack.ids[0], cause, traceback)
            self._progress.fail(stack.ids[0], cause)
            return
        stacks = stack.split()
        if stack.checkpoint is not None:
            self._store.split(stack.name, {s.name: (s.ids, s.checkpoint) for s in stacks if s.checkpoint is not None})
        self._waiting.extendleft(reversed(stacks))

    def _drain(self) -> None:
        """Write what the workers have done up to the interrupt."""
        coming = self._executor.stop()
        while coming:
            coming -= self._handle_next(1.0, go_on=False)


def _check_checkpoints(store: Store, settings: Settings) -> None:
    """Refuse damaged checkpoints, or discard them; before anything else is changed."""
    damaged = store.damaged()
    if damaged and not settings.discard_damaged:
        raise CheckFailed(
            f"{next(iter(damaged.values()))}. The records are sound; --discard-damaged "
            "(discard_damaged=True) trains the trials behind it from the start, to the same numbers"
        )
    for stack in damaged:
        store.discard(stack)


def _begun_stacks(store: Store, trials: Mapping[str, Trial], evaluations: Evaluations) -> list[_Stack]:
    """The stacks of these trials that have a checkpoint. One that holds other trials, too, or trials that are now
    evaluated in different ways, is taken apart."""
    for name, members, data in list(store.checkpoints()):
        asked = [key for key in members if key in trials]
        plans = {evaluations[key] for key in asked}
        if asked and (len(asked) < len(members) or len(plans) > 1):
            store.split(name, split_stack(members, data))
    status = store.status()
    stacks = []
    for _, members, data in store.checkpoints():
        if all(key in trials and status[key] == "pending" for key in members):
            stacks.append(_Stack(tuple(trials[key] for key in members), evaluations[members[0]], data))
    return stacks


def _executor(
    settings: Settings, trials: int, stopping: Callable[[], bool], on_tick: Callable[[Tick], None]
) -> Executor:
    workers = min(settings.workers or cores(), trials)
    if settings.executor == "local":
        from unseen.running.executors.local import Local

        return Local(workers)
    if settings.executor == "ray":
        from unseen.running.executors.ray import Ray

        return Ray(settings.address, settings.workers)
    from unseen.running.executors.inline import Inline

    return Inline(stopping, on_tick)


@contextmanager
def _stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """While inside, Ctrl-C only raises a flag, so that the step under way is finished and saved."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted.is_set
        return

    def on_signal(number: int, frame: Any) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, before)  # a second Ctrl-C acts at once

    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield interrupted.is_set
    finally:
        signal.signal(signal.SIGINT, before)
