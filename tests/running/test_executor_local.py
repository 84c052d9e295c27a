"""The local executor: chunks to worker processes and back, and no process left behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.faulty import processes, study
from unseen.config import Config
from unseen.errors import CheckFailed, UsageError
from unseen.running.chunk import Chunk, Death, Event, Tick, Worker
from unseen.running.executors import local as executor_module
from unseen.running.executors.local import Local
from unseen.store.schema import Outcome
from unseen.studies.trial import Trial
from unseen.training.checkpoint import unpack

PATIENCE = 600.0
"""Seconds until a test gives up: a busy machine is no failure."""


def trials(steps: int = 40, seeds: range = range(2)) -> tuple[Trial, ...]:
    return tuple(entry.trial for entry in study(seeds=seeds, steps=steps).entries("smoke"))


def until(executor: Local, enough: Callable[[list[Event]], bool]) -> list[Event]:
    """What happens, until it is enough."""
    events, deadline = list[Event](), time.monotonic() + PATIENCE
    while not enough(events):
        assert time.monotonic() < deadline, events
        event = executor.next(0.2)
        if event is not None:
            events.append(event)
    return events


def ends(events: list[Event]) -> list[Outcome | Death]:
    return [event for event in events if not isinstance(event, Tick)]


def worker_of(outcome: Event) -> str:
    assert isinstance(outcome, Outcome) and outcome.spans, outcome
    (name,) = {span.worker for span in outcome.spans.values()}
    return name


def endings(outcome: Event) -> str:
    """What the trials leave behind, all but times and places; as text, since no NaN equals another."""
    assert isinstance(outcome, Outcome) and outcome.finished, outcome
    return repr({key: replace(done, provenance={}) for key, done in outcome.finished.items()})


@pytest.fixture(scope="module")
def executor() -> Iterator[Local]:
    found = Local(2)
    yield found
    found.close()
    assert processes(os.getpid()) == []


def test_every_chunk_ends_as_one_outcome(executor: Local) -> None:
    asked = {ticket: Chunk(ticket, trials(40 + ticket), None, 60.0) for ticket in range(1, 6)}
    for chunk in asked.values():
        executor.submit(chunk)
    events = until(executor, lambda events: len(ends(events)) == len(asked))
    assert executor.next(0.5) is None
    found = {outcome.ticket: outcome for outcome in ends(events)}
    assert sorted(found) == sorted(asked) and len({worker_of(outcome) for outcome in found.values()}) == 2
    for ticket, outcome in found.items():
        assert isinstance(outcome, Outcome) and outcome.error == ""
        assert outcome.checkpoint is None and len(outcome.points) == 2 * (2 + 3 * 5)  # 2 untrained
        assert {done.step for done in (outcome.finished or {}).values()} == {40 + ticket}
        assert endings(outcome) == endings(Worker().do(asked[ticket]))


def test_ticks_say_how_far_a_chunk_is(executor: Local) -> None:
    executor.submit(Chunk(11, trials(10**6), None, 2.0))
    events = until(executor, lambda events: len(ends(events)) == 1)
    (outcome,) = ends(events)
    ticks = [event for event in events if isinstance(event, Tick)]
    assert isinstance(outcome, Outcome) and outcome.checkpoint is not None
    reached = unpack("", outcome.checkpoint).step
    steps = [tick.step for tick in ticks]
    assert ticks and steps == sorted(set(steps)) and steps[-1] <= reached
    assert {tick.ticket for tick in ticks} == {11}
    assert ticks[-1].best == max(p.value for p in outcome.points if p.metric == "accuracy" and 0 < p.step <= steps[-1])


def test_a_stack_stays_with_its_worker(executor: Local) -> None:
    """Two stacks, chunk by chunk, while a third waits for a worker that is free."""
    stacks = [trials(10**6, range(first, first + 2)) for first in (0, 2)]
    waiting = trials(40, range(4, 6))
    for ticket, members in enumerate(stacks, 21):
        executor.submit(Chunk(ticket, members, None, 0.1))
    executor.submit(Chunk(99, waiting, None, 60.0))
    history: dict[int, list[str]] = {21: [], 22: []}
    while min(map(len, history.values())) < 5:
        time.sleep(0.4)  # so that both workers have often ended when the first is heard
        (outcome,) = ends(until(executor, lambda events: len(ends(events)) == 1))
        assert isinstance(outcome, Outcome) and outcome.ticket != 99
        history[outcome.ticket].append(worker_of(outcome))
        executor.submit(Chunk(outcome.ticket, stacks[outcome.ticket - 21], outcome.checkpoint, 0.1))
    assert [len(set(names)) for names in history.values()] == [1, 1]
    assert history[21][0] != history[22][0]
    coming = executor.stop()
    until(executor, lambda events: len(ends(events)) == coming)


def test_stop_ends_chunks_early_and_they_go_on_to_the_same_end(executor: Local) -> None:
    steps = 2000  # so many that none has ended when the order to stop arrives
    members = trials(steps)
    for ticket, asked in ((31, members), (32, trials(10**6)), (33, trials())):
        executor.submit(Chunk(ticket, asked, None, 3600.0))
    until(executor, lambda events: {e.ticket for e in events if isinstance(e, Tick)} == {31, 32})
    assert executor.stop() == 2
    stopped = {o.ticket: o for o in ends(until(executor, lambda events: len(ends(events)) == 2))}
    assert set(stopped) == {31, 32}, "what has not begun is forgotten"
    for outcome in stopped.values():
        assert isinstance(outcome, Outcome) and outcome.checkpoint is not None
        reached = unpack("", outcome.checkpoint).step
        assert reached > 0 and {s.end for s in (outcome.spans or {}).values()} == {reached}
    assert reached < steps
    executor.submit(Chunk(34, members, stopped[31].checkpoint, 3600.0))  # type: ignore[union-attr]
    (outcome,) = ends(until(executor, lambda events: len(ends(events)) == 1))
    assert endings(outcome) == endings(Worker().do(Chunk(0, members, None, 3600.0)))


def test_a_dead_worker_is_reported_once_and_replaced(executor: Local) -> None:
    executor.submit(Chunk(41, trials(10**6), None, 3600.0))
    until(executor, lambda events: bool(events))
    (busy,) = [p for p in executor._processes if p.chunk is not None]
    os.kill(busy.process.pid, signal.SIGABRT)
    (death,) = ends(until(executor, lambda events: len(ends(events)) == 1))
    assert death == Death(41, "the worker was killed by signal 6 (SIGABRT)")
    assert len(executor._processes) == 2 and busy not in executor._processes
    executor.submit(Chunk(42, trials(), None, 60.0))
    (outcome,) = ends(until(executor, lambda events: len(ends(events)) == 1))
    assert isinstance(outcome, Outcome) and outcome.ticket == 42 and outcome.finished


def test_a_chunk_that_the_worker_cannot_read_is_an_error_not_a_wait(
    executor: Local, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plug-in's options, of a module that came to the path after the worker had been started."""
    (tmp_path / "newcomer.py").write_text("from unseen.config import Config\nclass Late(Config):\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    from newcomer import Late  # type: ignore[import-not-found]

    executor.submit(Chunk(51, tuple(replace(trial, model=Late(name="late")) for trial in trials()), None, 60.0))
    (outcome,) = ends(until(executor, lambda events: len(ends(events)) == 1))
    assert isinstance(outcome, Outcome) and "No module named 'newcomer'" in outcome.error
    executor.submit(Chunk(52, trials(), None, 60.0))
    (outcome,) = ends(until(executor, lambda events: len(ends(events)) == 1))
    assert isinstance(outcome, Outcome) and outcome.finished


def test_a_class_that_no_other_process_can_import_is_refused(executor: Local) -> None:
    class Local_(Config):
        pass

    with pytest.raises(UsageError, match=r"faulty/T1 can't be given to a worker: .*Local_.* use the executor inline"):
        executor.submit(Chunk(61, tuple(replace(trial, model=Local_(name="x")) for trial in trials()), None, 60.0))
    assert executor.next(0.1) is None and executor.stop() == 0


def test_workers_that_cannot_start_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    process = executor_module._Process
    monkeypatch.setattr(executor_module, "_Process", lambda number: (started.append(1), process(number))[1])
    monkeypatch.setattr(sys, "executable", "/bin/false")
    before = processes(os.getpid())
    executor = Local(2)
    executor.submit(Chunk(1, trials(), None, 60.0))
    with pytest.raises(CheckFailed, match="workers can't be started: the worker exited with code 1"):
        until(executor, lambda events: False)
    executor.close()
    assert len(started) <= 2 + executor_module.TRIES
    assert processes(os.getpid()) == before
