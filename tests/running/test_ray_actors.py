"""How the executor deals with hundreds of actors, on a stand-in for Ray; `test_executor_ray.py` has a real one."""

from __future__ import annotations

import time
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from support.small import STUDY
from unseen.running.chunk import Chunk, Tick
from unseen.running.executors import ray as executor
from unseen.running.executors.ray import Ray, _Actor, _ActorChunk

TRIALS = (STUDY.entries("smoke", range(1))[0].trial,)


class FakeRay:
    """References are tuples; those in `answers` have come."""

    exceptions = SimpleNamespace(
        RayError=RuntimeError, RayTaskError=KeyError, LocalRayletDiedError=KeyError, ActorDiedError=RuntimeError
    )

    def __init__(self) -> None:
        self.answers: dict[Any, Any] = {}
        self.waits = 0
        self.killed: list[Any] = []
        self.asked = 0

    def wait(self, refs: list[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        self.waits += 1
        come = [ref for ref in refs if ref in self.answers][:num_returns]
        return come, [ref for ref in refs if ref not in come]

    def get(self, ref: Any, timeout: float | None = None) -> Any:
        return self.answers[ref]

    def kill(self, handle: Any) -> None:
        self.killed.append(handle)

    def handle(self, name: str) -> SimpleNamespace:
        def ask() -> tuple[str, str]:
            self.asked += 1
            return ("progress", name)

        return SimpleNamespace(name=name, progress=SimpleNamespace(remote=ask))


def make(fake: FakeRay, busy: int, starting: int = 0, idle: int = 0) -> Ray:
    """An executor with actors that are at work, and others that start or have nothing to do."""
    ray = Ray.__new__(Ray)
    now = time.monotonic()
    ray._ray = fake
    ray._waiting, ray._events, ray._lost = deque(), deque(), []
    ray._last_progress = ray._last_check = now
    ray._fixed_workers, ray._slots, ray._resource = 10**6, 10**6, "CPU"
    ray._actors = []
    for number in range(busy):
        work = _ActorChunk(Chunk(number, TRIALS, None, 60.0))
        ray._actors.append(_Actor(fake.handle(f"busy {number}"), ("answer", f"busy {number}"), ready=True, work=work))
    for number in range(starting):
        ray._actors.append(_Actor(fake.handle(f"starting {number}"), ("answer", f"starting {number}")))
    for number in range(idle):
        ray._actors.append(_Actor(fake.handle(f"idle {number}"), None, ready=True, idle_since=now))
    return ray


def test_all_answers_that_have_come_are_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray looks at every reference at each wait: a wait for each of a thousand actors is a million looks a second."""
    fake = FakeRay()
    ray = make(fake, busy=300)
    ray._last_progress = 0.0
    for number in range(300):
        fake.answers["progress", f"busy {number}"] = Tick(number, 5, None)
    ticks = [ray.next(0.0) for _ in range(300)]
    assert ticks == [Tick(number, 5, None) for number in range(300)]
    assert fake.waits == 2


def test_a_thousand_actors_are_not_asked_every_second(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeRay()
    ray = make(fake, busy=1000)
    ray._last_progress = time.monotonic() - 2 * executor.PROGRESS_SECONDS
    assert ray.next(0.0) is None and fake.asked == 0
    ray._last_progress = time.monotonic() - 1000 / executor.PROGRESS_PER_SECOND
    assert ray.next(0.0) is None and fake.asked == 1000


def test_demand_is_withdrawn_and_idle_actors_go_when_no_chunk_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the autoscaler would add nodes for the last stacks of a study, and keep those that it has."""
    fake = FakeRay()
    ray = make(fake, busy=1, starting=2, idle=1)
    assert ray.next(0.0) is None
    assert [handle.name for handle in fake.killed] == ["starting 0", "starting 1"]
    monkeypatch.setattr(executor, "IDLE_SECONDS", -1.0)
    assert ray.next(0.0) is None
    assert [handle.name for handle in fake.killed[2:]] == ["idle 0"]
    assert [actor.handle.name for actor in ray._actors] == ["busy 0"]


def test_actors_stay_while_a_chunk_waits() -> None:
    fake = FakeRay()
    ray = make(fake, busy=1, starting=1)
    ray._waiting.append(Chunk(7, TRIALS, None, 60.0))
    assert ray.next(0.0) is None and fake.killed == []
