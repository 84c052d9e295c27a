"""Filling a store: pending cells become stacks, stacks advance slice by slice, each slice is one transaction."""

from __future__ import annotations

import math
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from unseen.engine.checkpoint import unpack
from unseen.errors import CheckFailed, UsageError, nearest
from unseen.studies.cell import Cell
from unseen.studies.executors import Death, Executor
from unseen.studies.plan import arrange
from unseen.studies.progress import Progress, Style
from unseen.studies.provenance import cores
from unseen.studies.rates import Rates
from unseen.studies.sinks.follow import follow
from unseen.studies.slice import KEEP, Keep, Outcome, Slice, Tick, alone, stack_name
from unseen.studies.store import Store
from unseen.studies.study import Entry

EXECUTORS = ("inline", "local", "ray")
DEATHS = 2
"""So many workers may die over a stack without a slice done between; then its cells are tried one by one, and a
cell that is alone has failed."""


@dataclass(frozen=True)
class Settings:
    """How to run. None of it is in any record."""

    executor: Literal["inline", "local", "ray"] = "inline"
    workers: int | None = None
    address: str | None = None
    size: int | None = None
    slice_seconds: float = 60.0
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
        for name in ("workers", "size", "slice_seconds"):
            count = getattr(self, name)
            if count is not None and not 0 < count < math.inf:
                raise UsageError(f"{name.replace('size', 'stack')} = {count}: give a positive number")
        if self.address is not None and self.executor != "ray":
            raise UsageError("an address is that of a Ray cluster: choose the executor ray")


class Interrupted(KeyboardInterrupt):
    """The user asked to stop; everything up to the last step is in the store."""

    def __init__(self, store: Store) -> None:
        super().__init__(f"stopped; everything so far is in {store.path}. The same call goes on from there")


def run_entries(entries: Sequence[Entry], store: Store, settings: Settings, title: str, scale: str = "") -> None:
    """Train every one of these cells that the store has not ended; those that were begun go on as they are."""
    store.add(entries, scale)
    with follow(store.path, settings.track):
        _run_entries(entries, store, settings, title)


def _run_entries(entries: Sequence[Entry], store: Store, settings: Settings, title: str) -> None:
    store.check("curves", "records")
    _check_checkpoints(store, settings)
    if settings.retry_failed:
        store.retry([e.cell.id for e in entries])
    begun = _begun(store, {e.cell.id: e.cell for e in entries})
    taken = {cell.id for stack in begun for cell in stack.cells}
    status = store.status()
    rest = [e.cell for e in entries if status[e.cell.id] == "pending" and e.cell.id not in taken]
    if not begun and not rest:
        return
    pending = [cell for stack in begun for cell in stack.cells] + rest
    with _stop_on_interrupt() as stopping, Progress(title, settings.progress) as progress:

        def on_probe(said: str) -> None:
            if stopping():
                raise Interrupted(store)
            progress.say(said)

        rates = Rates.measure(pending, device=settings.device, on_probe=on_probe)
        progress.price = {c.id: rates.seconds(c) / c.recipe.steps for c in pending}
        with closing(_executor(settings, len(pending), stopping, progress.tick)) as executor:
            stacks = arrange(rest, executor.workers, rates, settings.size)
            runner = _Runner(store, executor, settings, progress, stopping)
            runner.run([*begun, *(_Stack(cells) for cells in stacks)])


class _Stack:
    """Cells on their way together, and the checkpoint they have reached."""

    def __init__(self, cells: tuple[Cell, ...], checkpoint: bytes | None = None) -> None:
        self.cells, self.checkpoint, self.deaths = cells, checkpoint, 0
        self.ids = [c.id for c in cells]
        self.name = stack_name(self.ids)

    def split(self) -> list[_Stack]:
        """Each cell on its own, from the same checkpoint."""
        if self.checkpoint is None:
            return [_Stack((cell,)) for cell in self.cells]
        parts = alone(self.ids, self.checkpoint).values()
        return [_Stack((cell,), data) for cell, (_, data) in zip(self.cells, parts, strict=True)]


class _Runner:
    """The one writer: hands out slices, and commits what comes back."""

    def __init__(
        self, store: Store, executor: Executor, settings: Settings, progress: Progress, stopping: Callable[[], bool]
    ) -> None:
        self._store, self._executor, self._settings = store, executor, settings
        self._progress, self._stopping = progress, stopping
        self._waiting, self._flying, self._tickets = deque[_Stack](), dict[int, _Stack](), 0

    def run(self, stacks: Sequence[_Stack]) -> None:
        """Bring all stacks to their end."""
        self._waiting.extend(stacks)
        self._progress.begin(
            [c for stack in stacks for c in stack.cells],
            {c.id: unpack("a checkpoint", s.checkpoint).step for s in stacks if s.checkpoint for c in s.cells},
        )
        while (self._waiting or self._flying) and not self._stopping():
            # One more than there are workers, so that none has to wait while an outcome is written.
            while self._waiting and len(self._flying) <= self._executor.workers:
                self._launch(self._waiting.popleft())
            self._hear(0.2)
        if self._stopping():
            self._drain()
            raise Interrupted(self._store)

    def _launch(self, stack: _Stack) -> None:
        self._tickets += 1
        self._flying[self._tickets] = stack
        given = self._settings
        self._progress.start(self._tickets, stack.cells)
        self._executor.submit(
            Slice(self._tickets, stack.cells, stack.checkpoint, given.slice_seconds, given.keep, given.device)
        )

    def _hear(self, seconds: float, go_on: bool = True) -> bool:
        """Wait for what happens next and deal with it; whether a slice has come to its end."""
        event = self._executor.next(seconds)
        if isinstance(event, Tick):
            self._progress.tick(event)
        elif event is not None and event.ticket in self._flying:  # anything else is a late duplicate
            stack = self._flying.pop(event.ticket)
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
        stack.checkpoint, stack.deaths = outcome.checkpoint, 0
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
        """Something is wrong with one of the cells: each goes on alone, until it is clear which."""
        if len(stack.cells) == 1:
            self._store.fail(stack.ids[0], cause, traceback)
            self._progress.fail(stack.ids[0], cause)
            return
        parts = stack.split()
        if stack.checkpoint is not None:
            self._store.split(stack.name, {p.name: (p.ids, p.checkpoint) for p in parts if p.checkpoint is not None})
        self._waiting.extendleft(reversed(parts))

    def _drain(self) -> None:
        """Write what the workers have done up to the interrupt."""
        coming = self._executor.stop()
        while coming:
            coming -= self._hear(1.0, go_on=False)


def _check_checkpoints(store: Store, settings: Settings) -> None:
    """Refuse damaged checkpoints, or give them up; before anything else is changed."""
    damaged = store.damaged()
    if damaged and not settings.discard_damaged:
        raise CheckFailed(
            f"{next(iter(damaged.values()))}. The records are sound; --discard-damaged "
            "(discard_damaged=True) trains the cells behind it from the start, to the same numbers"
        )
    for stack in damaged:
        store.discard(stack)


def _begun(store: Store, known: Mapping[str, Cell]) -> list[_Stack]:
    """The stacks of known cells that have a checkpoint. One that holds cells nobody asked for now is taken apart."""
    for name, cells, data in list(store.checkpoints()):
        if 0 < len(set(cells) & set(known)) < len(cells):
            store.split(name, alone(cells, data))
    status = store.status()
    return [
        _Stack(tuple(known[c] for c in cells), data)
        for _, cells, data in store.checkpoints()
        if all(c in known and status[c] == "pending" for c in cells)
    ]


def _executor(
    settings: Settings, cells: int, stopping: Callable[[], bool], on_tick: Callable[[Tick], None]
) -> Executor:
    workers = min(settings.workers or cores(), cells)
    if settings.executor == "local":
        from unseen.studies.executors.local import Local

        return Local(workers)
    if settings.executor == "ray":
        from unseen.studies.executors.ray import Ray

        return Ray(settings.address, settings.workers)
    from unseen.studies.executors.inline import Inline

    return Inline(stopping, on_tick)


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
