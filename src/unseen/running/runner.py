"""Filling a store: pending trials become stacks, stacks advance chunk by chunk, each chunk is one transaction."""

from __future__ import annotations

import math
import shutil
import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from unseen.errors import CheckFailed, UsageError, nearest
from unseen.running.chunk import KEEP, Chunk, Death, EndedWeights, Executor, Keep, Tick
from unseen.running.progress import Progress, Style
from unseen.running.provenance import cores, environment
from unseen.running.stacks import SIZE, Evaluations, collect_evaluations, divide_into_stacks, group_trials, stack_key
from unseen.store.schema import Outcome
from unseen.store.store import Store, split_stack, stack_name
from unseen.studies.trial import Entry, Trial, evaluation_id
from unseen.training.checkpoint import unpack
from unseen.training.process import check_device, check_device_name
from unseen.training.recipe import Evaluation

if TYPE_CHECKING:
    from unseen.running.rates import WorkloadTimes
    from unseen.running.timing import Timing
    from unseen.store.take_over import TakenOver, TrialSource

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
"""Signals that stop a run cleanly: Ctrl-C, and what schedulers send before they end a job."""
EXECUTORS = ("inline", "local", "ray", "slurm")
REMOTE_EXECUTORS = ("ray", "slurm")
_FIRST_PROBE_TICKET = 10**9
"""Probes have numbers that no chunk of training has: a late outcome of one is not taken for the other's."""
DEATHS = 2
"""This many workers may die over a stack without a chunk done between; then its trials are tried one by one, and a trial
that is alone has failed."""
WORKERS_PER_CORE = 16
"""More processes on this machine would only take memory from each other."""


@dataclass(frozen=True)
class Settings:
    """How to run. None of it is in any record."""

    executor: Literal["inline", "local", "ray", "slurm"] = "inline"
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
        most = WORKERS_PER_CORE * cores()
        if self.executor == "local" and self.workers is not None and self.workers > most:
            raise UsageError(
                f"workers = {self.workers}: each is a process, and this machine has {cores()} cores: give at most {most}"
            )
        if self.executor in REMOTE_EXECUTORS:  # the workers are elsewhere: this machine need not have such a device
            check_device_name(self.device)
        else:
            check_device(self.device)
        if self.executor == "ray" and find_spec("ray") is None:
            raise UsageError("the executor ray needs the extra 'ray': pip install 'unseen[ray]'")
        if self.executor == "slurm" and shutil.which("sbatch") is None:
            raise UsageError("the executor slurm needs sbatch: run the command where jobs are submitted")
        if self.address is not None and self.executor not in REMOTE_EXECUTORS:
            raise UsageError(
                "an address is that of a Ray cluster, or a YAML file about a Slurm cluster: choose the executor ray or slurm"
            )
        self._check_cluster()

    def _check_cluster(self) -> None:
        """Refuse a cluster that does not answer, or a file about one that can't be read, before a store is made."""
        if self.executor == "ray" and ":" in self.device:
            raise UsageError(
                f"device {self.device}: Ray chooses a GPU for each actor, which sees no other. Give the device "
                f"{self.device.partition(':')[0]}"
            )
        if self.executor == "ray" and self.address is not None:
            from unseen.running.executors.ray import check_address

            check_address(self.address)
        if self.executor == "slurm":
            from unseen.running.executors.slurm import read_cluster

            read_cluster(self.address)


class Interrupted(KeyboardInterrupt):
    """The user or a scheduler asked to stop; everything up to the last step is in the store."""

    def __init__(self, store: Store) -> None:
        super().__init__(f"stopped; everything so far is in {store.path}. Run the same command again to resume")


def run_entries(
    entries: Sequence[Entry],
    store: Store,
    settings: Settings,
    title: str,
    scale: str = "",
    preflight: tuple[str, ...] | None = None,
    sources: Sequence[TrialSource] = (),
) -> None:
    """Train every one of these trials that the store has not ended; those that were begun continue.

    What the `sources` have of them is taken over first. Trials that have ended, but not been evaluated in all the ways
    asked for, are evaluated by their weights, or trained again if these were not kept. `preflight` are the notes of a
    dry run that the caller has made of all these trials, if it has.
    """
    is_new = store.is_new
    store.add(entries, scale)
    _check_environment(store)
    trials = {entry.trial.id: entry.trial for entry in entries}
    with ExitStack() as exits:
        if settings.track:
            from unseen.tracking.follow import follow

            exits.enter_context(follow(store.path, settings.track))
        if is_new and not sources:
            work = _Work(list(trials.values()), collect_evaluations(entries))
        else:
            work = _find_work(store, entries, trials, settings, sources)
        progress = exits.enter_context(Progress(title, settings.progress))
        for line in work.lines:
            progress.announce(line)
        pending = [*chain.from_iterable(stack.trials for stack in work.begun), *work.new]
        if not pending and not work.missing:
            return
        stopping = exits.enter_context(_stop_on_signals())

        def on_probe(text: str) -> None:
            if stopping():
                raise Interrupted(store)
            progress.show_status(text)

        timing = None
        is_remote = settings.executor in REMOTE_EXECUTORS
        if pending and not is_remote:
            timing, progress.price = _price(pending, work.evaluations, settings, on_probe)
        count = len(pending) + len(work.missing)
        with closing(_executor(settings, count, stopping, progress.tick, store.path)) as executor:
            if pending and is_remote:
                remote = _WorkerProbe(executor, settings, stopping, store)
                timing, progress.price = _price(pending, work.evaluations, settings, on_probe, remote)
            stacks: list[_Stack] = []
            if work.missing:
                evaluated = [trials[key] for key in work.missing]
                size = settings.size or SIZE
                stacks += _evaluation_stacks(evaluated, work.missing, work.evaluations, executor.workers, size)
            stacks += work.begun
            if work.new:
                for members in divide_into_stacks(work.new, executor.workers, timing, settings.size, work.evaluations):
                    stacks.append(_Stack(members, work.evaluations[members[0].id]))
            _Runner(store, executor, settings, progress, stopping, preflight).run(stacks)


@dataclass(frozen=True)
class _Work:
    """The work to do: `new` trials are trained from the start, `begun` stacks from their checkpoints, and the weights
    of trials that have ended are evaluated in the ways that are `missing` (by trial). `lines` tell people why."""

    new: list[Trial]
    evaluations: Evaluations
    begun: Sequence[_Stack] = ()
    missing: Mapping[str, Sequence[str]] = field(default_factory=dict)
    lines: Sequence[str] = ()


def _find_work(
    store: Store,
    entries: Sequence[Entry],
    trials: Mapping[str, Trial],
    settings: Settings,
    sources: Sequence[TrialSource],
) -> _Work:
    """The work that a store which has been worked in still lacks, once it has taken over what the sources have."""
    store.check("curves", "records")
    _check_checkpoints(store, settings)
    if settings.retry_failed:
        store.retry(list(trials))
    lines = []
    if sources:
        from unseen.store.take_over import take_over

        lines += [_describe_taken(take_over(store, source, trials)) for source in sources]
    missing = _unevaluated(store, trials)
    evaluable, without_weights = _check_weights(store, missing, settings)
    if without_weights:
        lines.append(
            f"{len(without_weights)} finished trials are to be evaluated in a way they were not, and their weights "
            "were not kept: they are trained again, to the same numbers (--weights all keeps weights)"
        )
    evaluations = _all_evaluations(entries, store)
    store.reopen(without_weights)
    begun = _begun_stacks(store, trials, evaluations)
    in_stacks: set[str] = set()
    for stack in begun:
        in_stacks.update(stack.ids)
    status = store.status()
    new = [trial for key, trial in trials.items() if status[key] == "pending" and key not in in_stacks]
    return _Work(new, evaluations, begun, {key: missing[key] for key in evaluable}, lines)


def _all_evaluations(entries: Sequence[Entry], store: Store) -> dict[str, tuple[Evaluation, ...]]:
    """The evaluations of every trial: those of these entries, and those of its entries at other scales."""
    evaluations = collect_evaluations(entries)
    status = store.status()
    waiting = [trial for trial in evaluations if status[trial] == "pending"]
    for trial, identities in store.evaluations_of([*waiting, *store.unevaluated(evaluations)]).items():
        for identity in identities.values():
            evaluation = Evaluation.parse({name: value for name, value in identity.items() if name != "version"})
            if all(evaluation_id(evaluation) != evaluation_id(known) for known in evaluations[trial]):
                evaluations[trial] += (evaluation,)
    return evaluations


def _check_environment(store: Store) -> None:
    """Warn if variables that change numbers are set otherwise than when the store was begun."""
    now = environment()
    before = store.note_environment(now)
    changes = []
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            changes.append(f"{name} was {before.get(name, 'not set')} and is {now.get(name, 'not set')}")
    if changes:
        warnings.warn(
            f"{store.path} was begun in another environment: {'; '.join(changes)}. Numbers may differ in their last "
            "digits from those of an undisturbed run",
            stacklevel=2,
        )


def _describe_taken(taken: TakenOver) -> str:
    """Describe in a line what was taken over from a source."""
    phrases = []
    if taken.trials:
        phrases.append(f"{len(taken.trials)} finished trials taken over from {taken.path}")
    if taken.evaluated_again:
        phrases.append(f"{len(taken.evaluated_again)} of them are evaluated by their weights")
    if taken.weights_missing:
        phrases.append(
            f"{len(taken.weights_missing)} trials of {taken.path} were not evaluated in the way asked for and have no "
            "weights there, so they are trained here"
        )
    return "; ".join(phrases) or f"nothing to take over from {taken.path}"


def _unevaluated(store: Store, trials: Mapping[str, Trial]) -> dict[str, list[str]]:
    """Ended trials that wait for evaluations, with their ids; without those whose evaluation has failed before."""
    failed = set(store.failures()["trial"])
    return {trial: missing for trial, missing in store.unevaluated(trials).items() if trial not in failed}


def _check_weights(
    store: Store, missing: Mapping[str, Sequence[str]], settings: Settings
) -> tuple[list[str], list[str]]:
    """Which trials can be evaluated by their weights, and which can't; damaged weights are refused, or not used."""
    files = store.evaluation_weights(missing)
    evaluable = []
    for trial, selections in files.items():
        try:
            for selection in set(selections.values()):
                store.weights(trial, selection)
        except CheckFailed as error:
            if not settings.discard_damaged:
                raise CheckFailed(
                    f"{error}. The records are sound; --discard-damaged (discard_damaged=True) trains the trial again"
                ) from error
        else:
            evaluable.append(trial)
    return evaluable, [trial for trial in missing if trial not in set(evaluable)]


def _evaluation_stacks(
    trials: Sequence[Trial], missing: Mapping[str, Sequence[str]], evaluations: Evaluations, workers: int, size: int
) -> list[_Stack]:
    """Stacks of trials that are evaluated only: of equal shape, with the same evaluations missing."""
    groups: dict[tuple[str, tuple[str, ...]], list[Trial]] = {}
    for trial in trials:
        key = (stack_key(trial, evaluations[trial.id]), tuple(missing[trial.id]))
        groups.setdefault(key, []).append(trial)
    # No larger than lets every worker have some.
    size = max(1, min(size, math.ceil(len(trials) / workers)))
    stacks = []
    for (_, ids), members in groups.items():
        for start in range(0, len(members), size):
            chosen = tuple(members[start : start + size])
            stacks.append(_Stack(chosen, evaluations[chosen[0].id], missing=ids))
    return stacks


class _WorkerProbe:
    """Probes on a worker of a cluster: the machine that hands out the work may be slower, or have no such device."""

    def __init__(self, executor: Executor, settings: Settings, stopping: Callable[[], bool], store: Store) -> None:
        self.machine = f"{settings.executor} {settings.address or ''}"
        self._executor = executor
        self._stopping = stopping
        self._store = store
        self._ticket = _FIRST_PROBE_TICKET

    def probe(self, trial: Trial, sizes: Sequence[int], seconds: float, device: str) -> WorkloadTimes:
        """The times of a trial's workload on a worker, however long it takes until there is one."""
        from unseen.running.rates import parse_times

        chunk = Chunk(0, (trial,), None, seconds, device=device, probe_sizes=tuple(sizes))
        event = self._do(chunk)
        while isinstance(event, Death) and event.innocent:  # its node was lost, as may happen to any chunk
            event = self._do(chunk)
        if isinstance(event, Death) or event.timing is None:
            reason = event.cause if isinstance(event, Death) else event.error.strip().splitlines()[-1]
            raise CheckFailed(f"{trial.model.name} can't be timed on a worker: {reason}")
        return parse_times(event.timing)

    def _do(self, chunk: Chunk) -> Outcome | Death:
        """How a probe ends, under a number of its own."""
        self._ticket += 1
        self._executor.submit(replace(chunk, ticket=self._ticket))
        while not self._stopping():
            event = self._executor.next(0.2)
            if event is not None and not isinstance(event, Tick) and event.ticket == self._ticket:
                return event
        raise Interrupted(self._store)


def _price(
    trials: Sequence[Trial],
    evaluations: Evaluations,
    settings: Settings,
    on_probe: Callable[[str], None],
    remote: _WorkerProbe | None = None,
) -> tuple[Timing | None, dict[str, float]]:
    """Timing, if it is needed to choose the size of stacks, and the relative cost of a step of each trial.

    Few trials of a shape are stacked all together, without a probe; where all are of one shape, their steps cost alike.
    """
    groups = group_trials(trials, evaluations)
    if settings.size is None and max(map(len, groups.values())) > SIZE:
        from unseen.running.timing import Timing

        timing = Timing.measure(trials, device=settings.device, on_probe=on_probe, remote=remote)
        # The shipped times are those of a CPU: they say nothing about the stacks of another device.
        if remote is None or timing.measured_any or settings.device == "cpu":
            return timing, {trial.id: timing.seconds(trial) / trial.recipe.steps for trial in trials}
    if len(groups) == 1:
        return None, {}
    from unseen.running.flops import step_cost

    return None, {trial.id: max(step_cost(trial).flops, 1.0) for trial in trials}


class _Stack:
    """Trials that are trained together, their evaluations, and whether they have a checkpoint.

    The checkpoint itself is only in the store: those of thousands of stacks would not fit into the runner's memory.
    `start` is the step at which this run takes them up. If evaluations are `missing` (their ids), the trials have
    ended, and their weights are evaluated.
    """

    def __init__(
        self,
        trials: tuple[Trial, ...],
        evaluations: tuple[Evaluation, ...],
        *,
        has_checkpoint: bool = False,
        start: int = 0,
        missing: tuple[str, ...] = (),
    ) -> None:
        self.trials = trials
        self.evaluations = evaluations
        self.has_checkpoint = has_checkpoint
        self.start = start
        self.missing = missing
        self.deaths = 0
        self.ids = [trial.id for trial in trials]
        self.name = stack_name(self.ids)


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
            if stack.has_checkpoint:
                reached |= dict.fromkeys(stack.ids, stack.start)
            elif stack.missing:
                reached |= {trial.id: trial.recipe.steps for trial in stack.trials}
        self._progress.begin(list(chain.from_iterable(stack.trials for stack in stacks)), reached)
        while (self._waiting or self._running) and not self._stopping():
            # One more than there are workers, so that none has to wait while an outcome is written.
            while self._waiting and len(self._running) <= self._executor.workers:
                self._launch(self._waiting.popleft())
            self._handle_next(0.2)
        if self._stopping():
            self._drain()
            raise Interrupted(self._store)

    def _launch(self, stack: _Stack, checkpoint: bytes | None = None) -> None:
        """Hand out the next chunk of a stack, from this checkpoint, or from the one that the store has of it.

        Nothing replaces the one in the store before this chunk has ended, so it can be read when a worker is free.
        """
        read_checkpoint = None
        if checkpoint is None and stack.has_checkpoint:
            read_checkpoint = partial(self._store.checkpoint, stack.name)
        self._tickets += 1
        self._running[self._tickets] = stack
        self._progress.start(self._tickets, stack.trials)
        self._executor.submit(
            Chunk(
                self._tickets,
                stack.trials,
                checkpoint,
                self._settings.chunk_seconds,
                self._settings.keep,
                self._settings.device,
                stack.evaluations,
                self._notes.get(stack_key(stack.trials[0], stack.evaluations), self._default_notes),
                self._load_weights(stack) if stack.missing else None,
                stack.missing,
                read_checkpoint=read_checkpoint,
            )
        )

    def _load_weights(self, stack: _Stack) -> dict[str, EndedWeights]:
        """The weights that are evaluated, by trial; read when they are needed, for they may be large."""
        weights: dict[str, EndedWeights] = {}
        endings = self._store.endings(stack.ids)
        for trial, files in self._store.evaluation_weights(stack.ids).items():
            states = {}
            for selection, file in files.items():
                states[selection] = self._store.weights(trial, file)[1]
            weights[trial] = EndedWeights(*endings[trial], states)
        return weights

    def _handle_next(self, seconds: float, go_on: bool = True) -> bool:
        """Wait for the next event and handle it; returns whether a chunk has ended."""
        event = self._executor.next(seconds)
        if isinstance(event, Tick):
            self._progress.tick(event)
        elif event is not None:
            stack = self._running.pop(event.ticket, None)
            if stack is not None:  # otherwise it is the end of a probe that was given up
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
        stack.deaths = 0
        if outcome.preflight is not None:
            self._notes[stack_key(stack.trials[0], stack.evaluations)] = outcome.preflight
        if outcome.checkpoint is not None and go_on:
            self._launch(stack, outcome.checkpoint)  # before writing, so that the worker goes on meanwhile
        self._store.commit(stack.name, stack.ids, outcome)
        stack.has_checkpoint = outcome.checkpoint is not None
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
        if stack.has_checkpoint:
            self._store.split(stack.name, split_stack(stack.ids, self._store.checkpoint(stack.name)))
        for trial in reversed(stack.trials):
            alone = _Stack((trial,), stack.evaluations, has_checkpoint=stack.has_checkpoint, missing=stack.missing)
            self._waiting.appendleft(alone)

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
    for name, members, data in store.checkpoints():
        asked = [key for key in members if key in trials]
        plans = {evaluations[key] for key in asked}
        if asked and (len(asked) < len(members) or len(plans) > 1):
            store.split(name, split_stack(members, data))
    status = store.status()
    stacks = []
    for _, members, data in store.checkpoints():
        if all(key in trials and status[key] == "pending" for key in members):
            start = unpack("a checkpoint", data).step
            begun = tuple(trials[key] for key in members)
            stacks.append(_Stack(begun, evaluations[members[0]], has_checkpoint=True, start=start))
    return stacks


def _executor(
    settings: Settings, trials: int, stopping: Callable[[], bool], on_tick: Callable[[Tick], None], store: Path
) -> Executor:
    workers = min(settings.workers or cores(), trials)
    if settings.executor == "local":
        from unseen.running.executors.local import Local

        return Local(workers)
    if settings.executor == "ray":
        from unseen.running.executors.ray import Ray

        return Ray(settings.address, settings.workers, settings.device)
    if settings.executor == "slurm":
        from unseen.running.executors.slurm import Slurm

        return Slurm(store, settings.address, settings.workers)
    from unseen.running.executors.inline import Inline

    return Inline(stopping, on_tick)


@contextmanager
def _stop_on_signals() -> Iterator[Callable[[], bool]]:
    """While inside, Ctrl-C, SIGTERM and SIGUSR1 only raise a flag, so that the step under way is finished and saved."""
    stop_requested = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop_requested.is_set
        return

    def on_signal(number: int, frame: Any) -> None:
        stop_requested.set()
        # A second Ctrl-C acts at once. Schedulers repeat SIGTERM, or send it after SIGUSR1, and end with SIGKILL: these
        # two stay handled, so that what is being saved is saved.
        signal.signal(signal.SIGINT, handlers_before[signal.SIGINT])

    handlers_before = {number: signal.signal(number, on_signal) for number in STOP_SIGNALS}
    try:
        yield stop_requested.is_set
    finally:
        for number, handler in handlers_before.items():
            signal.signal(number, handler)
