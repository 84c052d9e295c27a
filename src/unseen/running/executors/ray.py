"""A Ray cluster: an existing one, or one started here that listens on loopback only.

One Ray task per chunk; chunks and outcomes travel by value, so no disk is shared. Every node needs Unseen installed.
"""

from __future__ import annotations

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
from importlib.metadata import version
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from unseen.errors import CheckFailed, UsageError
from unseen.running.chunk import Chunk, Death, Event, Worker
from unseen.running.provenance import cores
from unseen.store.schema import Outcome
from unseen.training.process import ONE_THREAD

CONNECT = 60.0
"""Seconds within which a cluster must accept the connection."""
LOOK = 5.0
"""Seconds between two checks of the cluster, and for which a check waits for an answer."""
PATIENCE = 20.0
"""Seconds for which the head of the cluster may be gone; after 60, Ray itself ends the process without our message."""
AGAIN = 10.0
"""Seconds after which a chunk that goes on is told again to stop."""
LOST = (
    "the connection to the Ray cluster is lost. Everything up to the last finished chunks is in the store; "
    "the same command goes on from there"
)
CAUSES = {
    "NodeDiedError": "the node it ran on died",
    "OutOfMemoryError": "Ray killed the worker because memory ran out on its node",
    "WorkerCrashedError": "the worker exited or was killed, as the system does when memory runs out",
    "ObjectLostError": "its outcome was lost with the node that held it",
    "ObjectStoreFullError": "its outcome did not fit into the memory that Ray keeps for objects",
    "TaskCancelledError": "somebody cancelled its Ray task",
}
"""Why a chunk has died, by the name of Ray's exception or of one of its bases."""


class Ray:
    """Chunks as Ray tasks, one CPU each. A process that is connected to Ray already keeps its connection."""

    def __init__(self, address: str | None, workers: int | None) -> None:
        """`address`: `auto`, `HOST:PORT` or `ray://HOST:PORT`; None starts Ray here. `workers`: the number of chunks at
        a time; None: the number of CPUs of the cluster, also when it grows or shrinks.
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
        self._fixed_workers = workers
        self.workers = workers or _cpus(ray)
        self._head = None if ray.util.client.ray.is_connected() else ray.get_runtime_context().gcs_address
        self._last_check = time.monotonic()
        self._last_answer = self._last_check
        self._task = ray.remote(num_cpus=1, max_retries=0, runtime_env={"env_vars": environment})(_do)
        self._waiting = list[Chunk]()
        self._running = dict[Any, int]()  # the ticket of each chunk that Ray has, by Ray's reference to its outcome
        self._stopped = deque[Outcome]()

    def submit(self, chunk: Chunk) -> None:
        """Have a chunk done as soon as a worker is free."""
        self._waiting.append(chunk)
        self._send()

    def next(self, seconds: float) -> Event | None:
        """The next event; None if there is none within this time."""
        if self._stopped:
            return self._stopped.popleft()
        self._check_cluster()
        self._send()
        if not self._running:
            time.sleep(seconds)
            return None
        ended = self._wait(1, seconds)
        return self._event(ended[0]) if ended else None

    def stop(self) -> int:
        """Drop the waiting chunks and end the others after their current step; returns the number of outcomes to come.

        Waits for them. Only the chunks of workers that die meanwhile, or that were still starting, are lost.
        """
        self._waiting.clear()
        while self._running:
            for ref in self._running:
                self._ray.cancel(ref, force=False)
            events = [self._event(ref) for ref in self._wait(len(self._running), AGAIN)]
            self._stopped.extend(event for event in events if isinstance(event, Outcome))
        return len(self._stopped)

    def close(self) -> None:
        """End the Ray that was started here, or leave the cluster that was connected to as it is."""
        if self._ours:
            self._ray.shutdown()
            _let_ray_print(self._ray, True)

    def _send(self) -> None:
        # No more than there are workers, and the newest first: then a stack that goes on finds its worker free, with
        # the stack still in that worker's memory.
        while self._waiting and len(self._running) < self.workers:
            chunk = self._waiting.pop()
            self._running[self._task.remote(chunk, version("unseen"))] = chunk.ticket

    def _wait(self, count: int, seconds: float | None) -> list[Any]:
        try:
            ended: list[Any] = self._ray.wait(list(self._running), num_returns=count, timeout=seconds)[0]
        except ConnectionError as error:
            raise CheckFailed(LOST) from error
        return ended

    def _event(self, ref: Any) -> Outcome | Death:
        ticket = self._running.pop(ref)
        exceptions = self._ray.exceptions
        try:
            outcome: Outcome = self._ray.get(ref)
        except exceptions.RayTaskError as error:  # errors inside a chunk are in its outcome: this is before it began
            raise CheckFailed(
                f"a node can't do the work: {_line(error)}. Every node needs what is installed here (docs/clusters.md)"
            ) from error
        except (exceptions.LocalRayletDiedError, ConnectionError) as error:
            raise CheckFailed(LOST) from error
        except exceptions.RayError as error:
            lost = (exceptions.NodeDiedError, exceptions.ObjectLostError, exceptions.TaskCancelledError)
            return Death(ticket, cause(error), innocent=isinstance(error, lost))
        return outcome

    def _check_cluster(self) -> None:
        """From time to time, check that the head is there (Ray would wait for it), and count the CPUs again."""
        now = time.monotonic()
        if now < self._last_check + LOOK:
            return
        self._last_check = now
        if self._head is not None and _refusal(self._head) is not None:
            if now > self._last_answer + PATIENCE:
                raise CheckFailed(LOST)
            return
        self._last_answer = now
        if self._fixed_workers is None:
            self.workers = _cpus(self._ray)


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


_WORKER = Worker()
"""In a Ray worker: keeps its last stack in memory."""
_STOP = threading.Event()
"""In a Ray worker: whether to stop. The signal may come before its chunk has begun, so the event is cleared when a chunk
has ended, never when one begins."""


def _do(chunk: Chunk, release: str) -> Outcome:
    """In a Ray worker: the outcome of a chunk. Ray's way to cancel a task is SIGINT, which ends the chunk early."""
    if version("unseen") != release:
        raise RuntimeError(f"{socket.gethostname()} has unseen {version('unseen')}, the runner {release}")
    signal.signal(signal.SIGINT, lambda number, frame: _STOP.set())
    try:
        return _WORKER.do(chunk, lambda tick: _STOP.is_set())
    finally:
        _STOP.clear()


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

    # Ray replaces a loopback address by one that other machines can reach, unless told that there are no others.
    enabled_before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
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
    """Connect to a cluster. Tried in another process first: Ray waits minutes for a wrong address, and can't be
    interrupted meanwhile."""
    refusal = None if address == "auto" else _refusal(address)
    if refusal is not None:
        raise UsageError(f"address {address}: nobody answers there ({refusal}). Is the Ray head running?")
    try:
        attempt = subprocess.run(
            [sys.executable, "-c", _ATTEMPT, address],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CONNECT,
        )
        if attempt.returncode != 0:
            raise UsageError(f"address {address}: Ray can't connect: {_line(attempt.stdout)}")
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"address {address}: no Ray cluster answers within {CONNECT:.0f} s. Expected HOST:PORT of its "
            "head, from one of its nodes, or ray://HOST:PORT of its client server"
        ) from None
    except (ConnectionError, RuntimeError) as error:
        raise UsageError(f"address {address}: Ray can't connect: {_line(error)}") from error


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
        socket.create_connection((host, port), timeout=LOOK).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


def _cpus(ray: ModuleType) -> int:
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def _line(error: object) -> str:
    """The line of Ray's message that says what is wrong: the last one after a traceback, otherwise the first."""
    text = str(error)
    lines = text.strip().splitlines() or [type(error).__name__]
    has_traceback = "Traceback" in text or 'File "' in text
    return (lines[-1] if has_traceback else lines[0]).strip()
