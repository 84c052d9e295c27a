"""A Ray cluster: an existing one, or one started here that listens on loopback only.

Chunks, outcomes and checkpoints travel through Ray, so no disk is shared. Every node needs Unseen installed.
"""

from __future__ import annotations

import hashlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from unseen.errors import CheckFailed, UsageError
from unseen.running.chunk import Chunk, Death, Event, Tick, Worker
from unseen.running.provenance import cores
from unseen.store.schema import Outcome, Span
from unseen.training.process import ONE_THREAD

CONNECT = 60.0
"""Seconds within which a cluster must accept the connection."""
CHECK_SECONDS = 5.0
"""Seconds between two checks of the cluster, and for which a check waits for an answer."""
PATIENCE = 20.0
"""Seconds for which the head of the cluster may be gone; after 60, Ray itself ends the process without our message."""
FETCH_EVERY = 5
"""After so many segments of a chunk its checkpoint is fetched: a lost node costs at most so many segments of each of its chunks."""
PROGRESS_SECONDS = 1.0
"""Seconds between two questions to an actor about its step; more where there are hundreds of actors."""
PROGRESS_PER_SECOND = 100
"""How many actors are asked in a second at most: each answer takes this process some tenths of a millisecond."""
IDLE_SECONDS = 60.0
"""Seconds after which an actor is let go if there is nothing to do for it, so that a cluster may shrink."""
STOP_SECONDS = 10.0
"""Seconds for which the answers of actors that stop are waited for at a time."""
RESCUE_SECONDS = 10.0
"""Seconds within which the last checkpoint of an actor that has died must arrive."""
NODE_DEATH_SECONDS = 5.0
"""Seconds within which Ray notices that the node of an actor that has died is dead, too."""
MAX_FAILED_STARTS = 3
"""How many actors in a row may fail to start. Then the run ends if none works or is still starting; otherwise it warns."""
START_RETRY_SECONDS = 30.0
"""Seconds before more actors are asked for after one has failed to start, while others work or are starting: its node
is free again, and would get the next one at once."""
LOST = (
    "the connection to the Ray cluster is lost. Everything up to the last finished chunks is in the store; "
    "run the same command again to resume"
)
CAUSES = {
    "NodeDiedError": "the node it ran on died",
    "OutOfMemoryError": "Ray killed the worker because memory ran out on its node",
    "RayActorError": "the worker exited or was killed, as the system does when memory runs out",
    "WorkerCrashedError": "the worker exited or was killed, as the system does when memory runs out",
    "ObjectLostError": "its outcome was lost with the node that held it",
    "ObjectStoreFullError": "its outcome did not fit into the memory that Ray keeps for objects",
    "TaskCancelledError": "somebody cancelled its Ray task",
}
"""Why a chunk has died, by the name of Ray's exception or of one of its bases."""


class Ray:
    """Chunks on Ray actors: one for each CPU (or GPU), which keeps the stack that it works on, and its data.

    What the runner submits as one chunk is done here in up to `FETCH_EVERY` segments. The checkpoint after each segment stays
    where it was made, as an object of Ray's; only the one after the last segment travels to this process, with all that the
    segments have measured. So the runner commits curve points and spans only together with the checkpoint they lead to. If
    an actor dies, the chunk ends with the last segment whose checkpoint can still be fetched, or else is lost as a whole.

    An actor starts when Ray finds a CPU for it. As long as chunks wait, some more actors are asked for than there are CPUs:
    that is the demand which Ray's autoscaler sees. When none waits any more, this demand is withdrawn, and actors without
    work are let go, so that the cluster can shrink while the last stacks are trained. A process that is connected to Ray
    already keeps its connection.
    """

    def __init__(self, address: str | None, workers: int | None, device: str = "cpu") -> None:
        """`address`: `auto`, `HOST:PORT` or `ray://HOST:PORT`; None starts Ray here. `workers`: the number of actors;
        None: the number of CPUs (or GPUs) of the cluster, also when it grows or shrinks. `device` is where chunks
        are computed: Ray gives each actor a GPU of its own, unless it is `cpu`.
        """
        self._ray = ray = _imported()
        self._ours = not ray.is_initialized()
        environment = dict(ONE_THREAD)
        if not self._ours and address is not None:
            raise UsageError(
                f"address {address}: this process is connected to a Ray cluster already. Leave the "
                "address out to use it, or call ray.shutdown() first"
            )
        if self._ours and address is None:
            workers = workers or cores()
            _start(ray, workers)
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        elif address is not None:
            _connect(ray, address)
        if self._ours:
            _let_ray_print(ray, False)
        self._actors = list[_Actor]()
        self._resource = "CPU" if device == "cpu" else "GPU"
        if self._resource == "GPU" and not ray.cluster_resources().get("GPU") and workers is None:
            self.close()
            raise UsageError(
                f"device {device}: the Ray cluster has no GPU. If it grows on demand, give the number of --workers"
            )
        self._fixed_workers = workers
        self._slots = _count(ray, self._resource)
        self.workers = workers or self._slots  # by these the stacks are cut; later, some more chunks are asked for
        self._head = None if ray.util.client.ray.is_connected() else ray.get_runtime_context().gcs_address
        self._last_check = time.monotonic()
        self._last_answer = self._last_check
        self._last_progress = self._last_check
        self._failed_starts = 0
        self._next_start = self._last_check
        self._actor_class = ray.remote(
            num_cpus=1,
            num_gpus=0 if self._resource == "CPU" else 1,
            max_restarts=0,
            max_concurrency=2,  # a method that stops the chunk under way, or asks for its step, does not wait for its end
            runtime_env={"env_vars": environment},
        )(ActorWorker)
        self._waiting = deque[Chunk]()
        self._events = deque[Event]()
        self._lost = list[tuple[float, str, Death, Exception]]()  # since when, on which node, and why
        # Counted for the benchmark: the bytes of checkpoints that went through this process in either direction, and
        # those that would have, if every segment had got its checkpoint from here and sent it back.
        self.checkpoint_bytes = 0
        self.checkpoint_bytes_by_value = 0
        self.segments = 0

    def submit(self, chunk: Chunk) -> None:
        """Have a chunk done as soon as an actor is free: by the one that has its stack in memory, if it is."""
        digest = _digest(chunk.checkpoint) if chunk.checkpoint else ""
        for actor in self._actors:
            if digest and actor.ready and actor.work is None and actor.checkpoint == digest:
                with _lost_connection_ends_the_run():
                    self._begin(actor, chunk)
                return
        self._waiting.append(chunk)

    def next(self, seconds: float) -> Event | None:
        """The next event; None if there is none within this time."""
        if not self._events:
            with _lost_connection_ends_the_run():
                self._check_cluster()
                self._request_actors()
                self._assign()
                self._dismiss_idle_actors()
                self._request_progress()
                self._report_lost_chunks()
                self._handle_answers(seconds)
        return self._events.popleft() if self._events else None

    def stop(self) -> int:
        """Drop the waiting chunks and end the others after their current step; returns the number of outcomes to come.

        Waits for them, not for actors that are still starting. Only the chunks of actors that die meanwhile are lost.
        """
        self._waiting.clear()
        with _lost_connection_ends_the_run():
            for actor in self._actors:
                if actor.work is not None:
                    actor.work.stopping = True
                    actor.handle.stop.remote(actor.work.chunk.ticket)
            while any(actor.work is not None for actor in self._actors):
                self._check_cluster()
                self._handle_answers(STOP_SECONDS)
        self._events = deque(event for event in self._events if isinstance(event, Outcome))
        return len(self._events)

    def close(self) -> None:
        """End the actors, and the Ray that was started here; a cluster that was connected to stays as it is."""
        for actor in self._actors:
            with suppress(Exception):  # the cluster may be gone
                self._ray.kill(actor.handle)
        self._actors = []
        if self._ours:
            self._ray.shutdown()
            _let_ray_print(self._ray, True)

    def _request_actors(self) -> None:
        """Ask for as many actors as there is work for; up to one for each slot of the cluster, and some in its queue."""
        if time.monotonic() < self._next_start:
            return
        starting = sum(not actor.ready for actor in self._actors)
        idle = sum(actor.ready and actor.work is None for actor in self._actors)
        needed = len(self._waiting) - idle - starting
        most = self._fixed_workers or self._slots + _queued(self._slots)
        for _ in range(min(needed, most - len(self._actors))):
            handle = self._actor_class.remote()
            self._actors.append(_Actor(handle, handle.start.remote(version("unseen"))))

    def _dismiss_idle_actors(self) -> None:
        """Once no chunk waits, withdraw the demand for more actors, and let those go that have had no work for a while."""
        if self._waiting:
            return
        for actor in list(self._actors):
            if not actor.ready or (actor.work is None and time.monotonic() > actor.idle_since + IDLE_SECONDS):
                self._dismiss(actor)

    def _dismiss(self, actor: _Actor) -> None:
        self._actors.remove(actor)
        with suppress(Exception):  # it may be dead already
            self._ray.kill(actor.handle)

    def _assign(self) -> None:
        """Give the chunks that wait to actors that are free."""
        for actor in self._actors:
            if self._waiting and actor.ready and actor.work is None:
                self._begin(actor, self._waiting.popleft())

    def _begin(self, actor: _Actor, chunk: Chunk) -> None:
        chunk = chunk.with_checkpoint()
        checkpoint = chunk.checkpoint
        without_checkpoint = replace(chunk, checkpoint=None)  # what a thousand actors begin from is not kept here
        actor.work = _ActorChunk(without_checkpoint)
        if checkpoint is not None and actor.checkpoint == _digest(checkpoint):
            self._do_segment(actor, without_checkpoint, actor.checkpoint)
            return
        self.checkpoint_bytes += len(checkpoint or b"")
        self._do_segment(actor, chunk, "")

    def _do_segment(self, actor: _Actor, chunk: Chunk, checkpoint: str) -> None:
        """Have a segment done; `checkpoint` names the one that the actor has and goes on from."""
        method = actor.handle.do.options(num_returns=2)
        actor.answer, actor.checkpoint_ref = method.remote(chunk, checkpoint)

    def _request_progress(self) -> None:
        """From time to time, ask the actors at work which step they have reached."""
        at_work = [actor for actor in self._actors if actor.work is not None]
        seconds = max(PROGRESS_SECONDS, len(at_work) / PROGRESS_PER_SECOND)
        if time.monotonic() < self._last_progress + seconds:
            return
        self._last_progress = time.monotonic()
        for actor in at_work:
            if actor.progress is None:
                actor.progress = actor.handle.progress.remote()

    def _handle_answers(self, seconds: float) -> None:
        """Wait until an actor answers, and handle all answers that have come."""
        by_ref: dict[Any, _Actor] = {}
        for actor in self._actors:
            for ref in (actor.answer, actor.progress):
                if ref is not None:
                    by_ref[ref] = actor
        if not by_ref:
            time.sleep(seconds)
            return
        refs = list(by_ref)
        (answered, _) = self._ray.wait(refs, num_returns=1, timeout=seconds)
        if answered:  # Ray looks at every reference at each wait: one for each answer would be too many
            (answered, _) = self._ray.wait(refs, num_returns=len(refs), timeout=0)
        for ref in answered:
            actor = by_ref[ref]
            if ref == actor.progress:
                self._handle_progress(actor)
            elif not actor.ready:
                self._handle_start(actor)
            else:
                self._handle_segment(actor)

    def _handle_progress(self, actor: _Actor) -> None:
        tick: Tick | None = None
        with suppress(self._ray.exceptions.RayError):  # it has died: its chunk says so
            tick = self._get(actor.progress)
        actor.progress = None
        if tick is not None and actor.work is not None and tick.ticket == actor.work.chunk.ticket:
            self._events.append(tick)

    def _handle_start(self, actor: _Actor) -> None:
        """An actor has started, or can't: its node died, or lacks something. There is no chunk to lose yet."""
        exceptions = self._ray.exceptions
        try:
            actor.node = self._ray.get(actor.answer)
        except exceptions.LocalRayletDiedError as error:
            raise CheckFailed(LOST) from error
        except exceptions.RayError as error:
            self._dismiss(actor)  # one that has another release is alive
            self._failed_starts += 1
            if self._actors:
                self._next_start = time.monotonic() + START_RETRY_SECONDS
            if self._failed_starts < MAX_FAILED_STARTS:
                return
            reason = f"{_line(error)}. Every node needs what is installed here (docs/clusters.md)"
            if not self._actors:
                raise CheckFailed(f"no actor can be started on the Ray cluster: {reason}") from error
            # Python shows a warning of the same text once.
            warnings.warn(f"an actor can't be started somewhere on the Ray cluster: {reason}", stacklevel=2)
            return
        actor.ready = True
        actor.idle_since = time.monotonic()
        actor.answer = None
        self._failed_starts = 0

    def _handle_segment(self, actor: _Actor) -> None:
        """A segment has ended: go on with the next one, or end the chunk."""
        work = actor.work
        assert work is not None
        answer = actor.answer
        actor.answer = None
        try:
            segment: SegmentOutcome = self._get(answer)
        except self._ray.exceptions.RayError as error:
            self._dismiss(actor)
            self._end_lost_chunk(actor, work, error)
            return
        self.segments += 1
        self.checkpoint_bytes_by_value += segment.received_bytes + segment.checkpoint_bytes
        actor.checkpoint = segment.checkpoint
        work.outcome = segment.outcome if work.outcome is None else join_segments(work.outcome, segment.outcome)
        work.checkpoint_ref = actor.checkpoint_ref if segment.checkpoint else None
        work.segments += 1
        if segment.checkpoint and work.segments < FETCH_EVERY and not work.stopping:
            rest = replace(work.chunk, preflight=segment.outcome.preflight)
            self._do_segment(actor, rest, segment.checkpoint)
            return
        actor.work = None
        actor.idle_since = time.monotonic()
        actor.checkpoint_ref = None
        try:
            self._events.append(self._with_checkpoint(work, None))
        except self._ray.exceptions.RayError as error:
            self._end_lost_chunk(actor, work, error)

    def _end_lost_chunk(self, actor: _Actor, work: _ActorChunk, error: Exception) -> None:
        """An actor has died: its chunk ends with the last segment whose checkpoint its node still has, or is lost."""
        if work.outcome is not None:
            try:
                self._events.append(self._with_checkpoint(work, RESCUE_SECONDS))
            except self._ray.exceptions.RayError:
                pass
            else:
                return
        self._lost.append((time.monotonic(), actor.node, Death(work.chunk.ticket, cause(error)), error))

    def _report_lost_chunks(self) -> None:
        """Say why chunks are lost. Ray notices that a worker is gone before it knows that its node is: so wait a little."""
        if not self._lost or not self._head_answers():
            return
        exceptions = self._ray.exceptions
        innocent_errors = (exceptions.NodeDiedError, exceptions.ObjectLostError, exceptions.TaskCancelledError)
        alive = {node["NodeID"] for node in self._ray.nodes() if node["Alive"]}
        for entry in list(self._lost):
            since, node, death, error = entry
            if node not in alive:
                self._events.append(replace(death, cause=CAUSES["NodeDiedError"], innocent=True))
            elif isinstance(error, innocent_errors) or time.monotonic() > since + NODE_DEATH_SECONDS:
                self._events.append(replace(death, innocent=isinstance(error, innocent_errors)))
            else:
                continue
            self._lost.remove(entry)

    def _with_checkpoint(self, work: _ActorChunk, seconds: float | None) -> Outcome:
        """The joined outcome of the segments, with the checkpoint that they have reached."""
        assert work.outcome is not None
        if work.checkpoint_ref is None:
            return work.outcome
        checkpoint = self._get(work.checkpoint_ref, seconds)
        self.checkpoint_bytes += len(checkpoint)
        return replace(work.outcome, checkpoint=checkpoint)

    def _get(self, ref: Any, seconds: float | None = None) -> Any:
        """The value of a reference; a cluster that can't do the work at all, or is gone, ends the run."""
        exceptions = self._ray.exceptions
        try:
            return self._ray.get(ref, timeout=seconds)
        except exceptions.RayTaskError as error:  # errors inside a chunk are in its outcome: this is before it began
            raise CheckFailed(
                f"a node can't do the work: {_line(error)}. Every node needs what is installed here (docs/clusters.md)"
            ) from error
        except exceptions.LocalRayletDiedError as error:
            raise CheckFailed(LOST) from error

    def _check_cluster(self) -> None:
        """From time to time, check that the head is there (Ray would wait for it), and count the CPUs again."""
        now = time.monotonic()
        if now < self._last_check + CHECK_SECONDS:
            return
        self._last_check = now
        if not self._head_answers():
            if now > self._last_answer + PATIENCE:
                raise CheckFailed(LOST)
            return
        self._last_answer = now
        if self._fixed_workers is None:
            self._slots = _count(self._ray, self._resource)
            self.workers = self._slots + _queued(self._slots)

    def _head_answers(self) -> bool:
        """Whether the head is there. To ask it for anything while it is not would block, until Ray ends the process."""
        return self._head is None or _refusal(self._head) is None


@dataclass
class _ActorChunk:
    """A chunk that an actor does, without the checkpoint that it began from: the segments of it that have ended, joined,
    and the checkpoint after the last of them."""

    chunk: Chunk
    outcome: Outcome | None = None
    checkpoint_ref: Any = None
    segments: int = 0
    stopping: bool = False


@dataclass(eq=False)
class _Actor:
    """An actor, its node, and what it was asked: to start or to do a segment (`answer`), and for its `progress`.

    `checkpoint` is the digest of the checkpoint that it has in memory.
    """

    handle: Any
    answer: Any
    ready: bool = False
    node: str = ""
    work: _ActorChunk | None = None
    idle_since: float = 0.0
    checkpoint: str = ""
    checkpoint_ref: Any = None
    progress: Any = None


def join_segments(first: Outcome, second: Outcome) -> Outcome:
    """Two segments of a chunk, one after the other, as one."""
    if second.error:
        return second
    spans = dict(first.spans or {})
    for key, later in (second.spans or {}).items():
        earlier = spans.get(key)
        if earlier is None:
            spans[key] = later
            continue
        seconds = earlier.seconds + later.seconds
        spans[key] = Span(earlier.begin, later.end, seconds, earlier.cpu_seconds + later.cpu_seconds, later.worker)
    return replace(second, points=[*first.points, *second.points], spans=spans, seconds=first.seconds + second.seconds)


def _queued(slots: int) -> int:
    """How many more actors to ask for than there are slots: a cluster that grows does so by a quarter at a time."""
    return max(2, slots // 4)


def _digest(checkpoint: bytes) -> str:
    return hashlib.sha256(checkpoint).hexdigest()


def cause(error: Exception) -> str:
    """Why a chunk has died, in one line.

    >>> class ObjectLostError(Exception): pass
    >>> class OwnerDiedError(ObjectLostError): pass
    >>> cause(OwnerDiedError("…"))
    'its outcome was lost with the node that held it'
    >>> cause(RuntimeError("no such thing"))
    'Ray could not do it: RuntimeError: no such thing'
    """
    for base in type(error).__mro__:
        if base.__name__ in CAUSES:
            return CAUSES[base.__name__]
    return f"Ray could not do it: {type(error).__name__}: {_line(error)}"


@dataclass(frozen=True)
class SegmentOutcome:
    """The outcome of a segment without its checkpoint, and the digest of that; empty if the stack is done.

    The sizes are those of the checkpoint that the segment began from, and of the one it has made.
    """

    outcome: Outcome
    checkpoint: str
    received_bytes: int
    checkpoint_bytes: int


class ActorWorker:
    """In an actor: does chunks, and keeps its last stack and checkpoint in memory. Its methods run in two threads."""

    def __init__(self) -> None:
        self._worker = Worker()
        self._checkpoint: bytes | None = None
        self._tick: Tick | None = None
        self._stopped_ticket = -1

    def start(self, release: str) -> str:
        """Check that this node has the runner's release; returns the id of the node."""
        import ray

        if version("unseen") != release:
            raise RuntimeError(f"{socket.gethostname()} has unseen {version('unseen')}, the runner {release}")
        node: str = ray.get_runtime_context().get_node_id()
        return node

    def do(self, chunk: Chunk, checkpoint: str) -> tuple[SegmentOutcome, bytes | None]:
        """Do a chunk, from the checkpoint in it, or from the one in memory if that is named by its digest."""
        if checkpoint:
            if self._checkpoint is None or _digest(self._checkpoint) != checkpoint:
                raise RuntimeError("the actor does not have the checkpoint that it is to go on from")
            chunk = replace(chunk, checkpoint=self._checkpoint)
        outcome = self._worker.do(chunk, self._on_tick)
        made = outcome.checkpoint
        self._checkpoint = made
        digest = "" if made is None else _digest(made)
        sizes = (len(chunk.checkpoint or b""), len(made or b""))
        return SegmentOutcome(replace(outcome, checkpoint=None), digest, *sizes), made

    def progress(self) -> Tick | None:
        """The last step of the chunk under way."""
        return self._tick

    def stop(self, ticket: int) -> None:
        """End a chunk after its current step. Its number is remembered, in case it has not begun yet."""
        self._stopped_ticket = ticket

    def _on_tick(self, tick: Tick) -> bool:
        self._tick = tick
        return self._stopped_ticket == tick.ticket


@contextmanager
def _lost_connection_ends_the_run() -> Iterator[None]:
    """A client outside of the cluster raises this error from any call, once the cluster is gone."""
    try:
        yield
    except ConnectionError as error:
        raise CheckFailed(LOST) from error


@contextmanager
def _same_sigterm_handler() -> Iterator[None]:
    """`ray.init` has SIGTERM end the process at once. The runner's own handler, which saves first, must stay."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _imported() -> ModuleType:
    """Ray; before the import, its usage statistics and the output of its workers and daemons are switched off."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".*")
    warnings.filterwarnings("ignore", "More than 10MB of messages", UserWarning)  # checkpoints are large
    try:
        import ray
    except ImportError:
        raise UsageError("the executor ray needs the extra 'ray': pip install 'unseen[ray]'") from None
    return ray


def _start(ray: ModuleType, cpus: int) -> None:
    """Start Ray on this machine, for this process alone."""
    from ray._private import ray_constants

    # Ray's workers run at niceness 15 otherwise: beside other work they would hardly be given a processor.
    os.environ.setdefault("RAY_worker_niceness", "0")
    # Ray replaces a loopback address by one that other machines can reach, unless told that there are no others.
    enabled_before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        with _same_sigterm_handler():
            started = ray.init(
                "local",
                num_cpus=cpus,
                include_dashboard=False,
                _node_ip_address="127.0.0.1",
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
    except Exception as error:
        raise CheckFailed(f"Ray can't be started: {_line(error)}") from error
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = enabled_before
    if started.address_info["node_ip_address"] != "127.0.0.1":
        ray.shutdown()
        raise CheckFailed(f"Ray {ray.__version__} does not keep to loopback; start a cluster and give its --address")


def _let_ray_print(ray: ModuleType, allowed: bool) -> None:
    """Whether Ray may print errors of the cluster, such as a dying node's last lines, on this process's standard output.

    `log_to_driver=False` keeps only the lines of workers away; there is no public switch for these.
    """
    worker = ray._private.worker
    if hasattr(worker, "_worker_logs_enabled"):
        worker._worker_logs_enabled = allowed


_ATTEMPT = """
import logging, sys, ray
try:
    ray.init(sys.argv[1], log_to_driver=False, logging_level=logging.ERROR)
except Exception as error:
    print(error)
    sys.exit(1)
"""


def _connect(ray: ModuleType, address: str) -> None:
    """Connect to a cluster."""
    check_address(address)
    try:
        with _same_sigterm_handler():
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError) as error:
        raise UsageError(f"address {address}: Ray can't connect: {_line(error)}") from error


@cache  # a success is remembered, so that a run which has checked its address connects at once; a refusal is not
def check_address(address: str) -> None:
    """Refuse an address at which no cluster answers. Tried in another process: Ray waits minutes for a wrong address,
    and can't be interrupted meanwhile."""
    refusal = None if address == "auto" else _refusal(address)
    if refusal is not None:
        raise UsageError(
            f"address {address}: no Ray cluster answers at this address ({refusal}). Is the Ray head running?"
        )
    try:
        attempt = subprocess.run(
            [sys.executable, "-c", _ATTEMPT, address],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CONNECT,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"address {address}: no Ray cluster answers within {CONNECT:.0f} s. Expected HOST:PORT of its "
            "head, from one of its nodes, or ray://HOST:PORT of its client server"
        ) from None
    if attempt.returncode != 0:
        raise UsageError(f"address {address}: Ray can't connect: {_line(attempt.stdout)}")


def _refusal(address: str) -> str | None:
    """Why there is no connection to `HOST:PORT` or `ray://HOST:PORT`; None if there is one."""
    try:
        url = urlsplit(address if "//" in address else f"//{address}")
        host, port = url.hostname, url.port
    except ValueError:
        host, port = None, None
    if not host or not port or url.scheme not in ("", "ray"):
        raise UsageError(f"address '{address}': expected auto, HOST:PORT or ray://HOST:PORT")
    try:
        socket.create_connection((host, port), timeout=CHECK_SECONDS).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


def _count(ray: ModuleType, resource: str) -> int:
    """How many CPUs or GPUs the cluster has."""
    return max(1, int(ray.cluster_resources().get(resource, 1)))


def _line(error: object) -> str:
    """The line of Ray's message that says what is wrong: the last one after a traceback, otherwise the first."""
    text = str(error)
    lines = text.strip().splitlines() or [type(error).__name__]
    has_traceback = "Traceback" in text or 'File "' in text
    return (lines[-1] if has_traceback else lines[0]).strip()
