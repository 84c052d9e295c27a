"""How the executor deals with hundreds of actors, with nodes that can't do the work and with a head that is gone, on a
stand-in for Ray; `test_executor_ray.py` has a real one."""

from __future__ import annotations

import time
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from support.small import STUDY
from unseen.errors import CheckFailed, UsageError
from unseen.running.chunk import Chunk, Tick
from unseen.running.executors import ray as executor
from unseen.running.executors.ray import Ray, _Actor, _ActorChunk
from unseen.running.runner import Settings

TRIALS = (STUDY.entries("smoke", range(1))[0].trial,)


class FakeRay:
    """References are tuples; those in `answers` have come."""

    exceptions = SimpleNamespace(
        RayError=RuntimeError,
        RayTaskError=KeyError,
        LocalRayletDiedError=KeyError,
        NodeDiedError=TimeoutError,
        ObjectLostError=TimeoutError,
        TaskCancelledError=TimeoutError,
    )

    def __init__(self) -> None:
        self.answers: dict[Any, Any] = {}
        self.waits = 0
        self.killed: list[Any] = []
        self.asked = 0
        self.started = 0

    def wait(self, refs: list[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        self.waits += 1
        come = [ref for ref in refs if ref in self.answers][:num_returns]
        return come, [ref for ref in refs if ref not in come]

    def get(self, ref: Any, timeout: float | None = None) -> Any:
        if isinstance(self.answers[ref], Exception):
            raise self.answers[ref]
        return self.answers[ref]

    def kill(self, handle: Any) -> None:
        self.killed.append(handle)

    def start_actor(self) -> SimpleNamespace:
        self.started += 1
        name = f"asked for {self.started}"
        return SimpleNamespace(name=name, start=SimpleNamespace(remote=lambda release: ("answer", name)))

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
    ray._head, ray._failed_starts, ray._next_start = None, 0, now
    ray._actor_class = SimpleNamespace(remote=fake.start_actor)
    ray.checkpoint_bytes = 0
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


BROKEN = RuntimeError(
    "ray::ActorWorker.start()\nTraceback (most recent call last):\nRuntimeError: node-7 has unseen 1, the runner 2"
)


def test_a_node_on_which_no_actor_starts_does_not_end_the_run_while_others_work() -> None:
    """A free CPU of such a node gets the next actor at once: so it is not tried again for a while."""
    fake = FakeRay()
    ray = make(fake, busy=1, starting=3)
    ray._waiting.extend(Chunk(100 + number, TRIALS, None, 60.0) for number in range(3))
    for number in range(3):
        fake.answers["answer", f"starting {number}"] = BROKEN
    with pytest.warns(UserWarning, match=r"an actor can't be started somewhere .*: RuntimeError: node-7 has unseen 1"):
        assert ray.next(0.0) is None
    assert [handle.name for handle in fake.killed] == ["starting 0", "starting 1", "starting 2"]
    assert ray.next(0.0) is None and fake.started == 0
    ray._next_start = time.monotonic()
    assert ray.next(0.0) is None and fake.started == 3


def test_actors_that_are_still_starting_are_waited_for() -> None:
    """Starting takes seconds, failing to start an instant: a bad node may fail three times before a good one answers."""
    fake = FakeRay()
    ray = make(fake, busy=0, starting=4)
    ray._waiting.extend(Chunk(100 + number, TRIALS, None, 60.0) for number in range(4))
    for number in range(3):
        fake.answers["answer", f"starting {number}"] = BROKEN
    with pytest.warns(UserWarning, match="an actor can't be started somewhere"):
        assert ray.next(0.0) is None
    fake.answers["answer", "starting 3"] = "node 1"
    assert ray.next(0.0) is None
    assert [actor.ready for actor in ray._actors] == [True] and ray._failed_starts == 0


def test_a_cluster_on_which_no_actor_starts_ends_the_run() -> None:
    fake = FakeRay()
    ray = make(fake, busy=0, starting=3)
    for number in range(3):
        fake.answers["answer", f"starting {number}"] = BROKEN
    ray._waiting.append(Chunk(100, TRIALS, None, 60.0))
    with pytest.raises(
        CheckFailed, match=r"no actor can be started .*: RuntimeError: node-7 has .* the runner 2. Every"
    ):
        ray.next(0.0)


def test_a_run_that_is_stopped_does_not_wait_for_actors_that_start() -> None:
    """Ctrl-C while a cluster grows: the actors that it waits for may not start for minutes."""
    fake = FakeRay()
    ray = make(fake, busy=0, starting=2)
    ray._waiting.append(Chunk(100, TRIALS, None, 60.0))
    ray._ours = False
    assert ray.stop() == 0 and fake.waits == 0
    ray.close()
    assert [handle.name for handle in fake.killed] == ["starting 0", "starting 1"]


def test_a_head_that_is_gone_is_not_asked_about_its_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The question would block until Ray ends the process; meanwhile nobody would say what has happened."""
    fake = FakeRay()
    ray = make(fake, busy=1)
    ray._head, ray._last_answer = "127.0.0.1:1", time.monotonic()
    fake.answers["answer", "busy 0"] = RuntimeError("the actor died")
    assert ray.next(0.0) is None  # the chunk is lost
    assert len(ray._lost) == 1
    assert ray.next(0.0) is None  # FakeRay has no `nodes`: asking for them would fail
    ray._last_check = ray._last_answer = time.monotonic() - executor.CHECK_SECONDS - executor.PATIENCE - 1.0
    with pytest.raises(CheckFailed, match="the connection to the Ray cluster is lost"):
        ray.next(0.0)


def test_a_client_that_loses_its_cluster_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of the cluster, any call may be the one that notices."""
    fake = FakeRay()
    ray = make(fake, busy=0)
    ray._waiting.append(Chunk(100, TRIALS, None, 60.0))

    def start_actor() -> None:
        raise ConnectionError("GRPC connection failed: client is disconnected")

    ray._actor_class = SimpleNamespace(remote=start_actor)
    with pytest.raises(CheckFailed, match="the connection to the Ray cluster is lost"):
        ray.next(0.0)


def test_a_checkpoint_is_read_when_an_actor_begins_with_it() -> None:
    """A study that is resumed has thousands of chunks waiting for actors, each with a checkpoint of some megabytes."""
    fake = FakeRay()
    ray = make(fake, busy=0, starting=1)
    read: list[int] = []
    sent: list[Chunk] = []

    def submit(number: int) -> None:
        def read_checkpoint() -> bytes:
            read.append(number)
            return b"checkpoint"

        ray.submit(Chunk(number, TRIALS, None, 60.0, read_checkpoint=read_checkpoint))

    def do(chunk: Chunk, checkpoint: str) -> tuple[str, str]:
        sent.append(chunk)
        return "answer of a segment", "its checkpoint"

    for number in (7, 8):
        submit(number)
    ray._actors[0].handle.do = SimpleNamespace(options=lambda num_returns: SimpleNamespace(remote=do))
    assert ray.next(0.0) is None and read == []
    fake.answers["answer", "starting 0"] = "node 1"
    assert ray.next(0.0) is None and ray.next(0.0) is None
    assert read == [7] and [(chunk.ticket, chunk.checkpoint) for chunk in sent] == [(7, b"checkpoint")]
    assert sent[0].read_checkpoint is None, "it could not be pickled"


def test_no_gpu_can_be_named_on_ray() -> None:
    """An actor sees one GPU, the one that Ray has given to it; a second one would be missing in every trial."""
    with pytest.raises(UsageError, match=r"device cuda:1: Ray chooses a GPU for each actor, .* Give the device cuda$"):
        Settings("ray", device="cuda:1")
    Settings("ray", device="cuda")
