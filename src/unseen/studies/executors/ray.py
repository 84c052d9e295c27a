"""A Ray cluster: an existing one, or one started here that listens on loopback only.

One Ray task per slice; slices and outcomes travel by value, so no disk is shared. Every node needs Unseen installed.
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

from unseen.engine.threads import ONE_THREAD
from unseen.errors import CheckFailed, UsageError
from unseen.studies.executors import Death, Event
from unseen.studies.provenance import cores
from unseen.studies.slice import Outcome, Slice, Worker

CONNECT, LOOK, PATIENCE, AGAIN = 60.0, 5.0, 20.0, 10.0
"""Seconds: to connect within; between two looks at the cluster; for which its head may be gone (Ray itself ends the
process, without a word of ours, after 60); after which a slice that goes on is told again to stop."""
LOST = (
    "the connection to the Ray cluster is lost. Everything up to the last finished slices is in the store; "
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
"""Why a slice has died, by the name of Ray's exception or of one of its bases."""


class Ray:
    """Slices as Ray tasks, one CPU each. A process that is connected to Ray already keeps its connection."""

    def __init__(self, address: str | None, workers: int | None) -> None:
        """`address`: `auto`, `HOST:PORT` or `ray://HOST:PORT`; None starts Ray here. `workers`: so many slices at a
        time; None: as many as the cluster has CPUs, also when it grows or shrinks.
        """
        self._ray = ray = _imported()
        self._ours, environment = not ray.is_initialized(), dict(ONE_THREAD)
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
        self._given, self.workers = workers, workers or _cpus(ray)
        self._head = None if ray.util.client.ray.is_connected() else ray.get_runtime_context().gcs_address
        self._looked = self._seen = time.monotonic()
        self._task = ray.remote(num_cpus=1, max_retries=0, runtime_env={"env_vars": environment})(_do)
        self._waiting, self._flying, self._stopped = list[Slice](), dict[Any, int](), deque[Outcome]()

    def submit(self, slice: Slice) -> None:
        """Have a slice done as soon as a worker is free."""
        self._waiting.append(slice)
        self._send()

    def next(self, seconds: float) -> Event | None:
        """What happened next; None if nothing did in this time."""
        if self._stopped:
            return self._stopped.popleft()
        self._look()
        self._send()
        if not self._flying:
            time.sleep(seconds)
            return None
        ended = self._wait(1, seconds)
        return self._event(ended[0]) if ended else None

    def stop(self) -> int:
        """Forget what has not begun, end what has after the step under way; returns how many outcomes will come.

        Waits for them. Nothing is lost but the slices of workers that die meanwhile, or that were still starting.
        """
        self._waiting.clear()
        while self._flying:
            for ref in self._flying:
                self._ray.cancel(ref, force=False)
            events = [self._event(ref) for ref in self._wait(len(self._flying), AGAIN)]
            self._stopped.extend(event for event in events if isinstance(event, Outcome))
        return len(self._stopped)

    def close(self) -> None:
        """End the Ray that was started here, or leave the cluster that was connected to as it is."""
        if self._ours:
            self._ray.shutdown()

    def _send(self) -> None:
        # No more than there are workers, and the newest first: a stack that goes on finds its worker free, and itself
        # in that worker's memory.
        while self._waiting and len(self._flying) < self.workers:
            slice = self._waiting.pop()
            self._flying[self._task.remote(slice, version("unseen"))] = slice.ticket

    def _wait(self, count: int, seconds: float | None) -> list[Any]:
        try:
            ended: list[Any] = self._ray.wait(list(self._flying), num_returns=count, timeout=seconds)[0]
        except ConnectionError as error:
            raise CheckFailed(LOST) from error
        return ended

    def _event(self, ref: Any) -> Outcome | Death:
        ticket, exceptions = self._flying.pop(ref), self._ray.exceptions
        try:
            outcome: Outcome = self._ray.get(ref)
        except exceptions.RayTaskError as error:  # a slice says itself what is wrong with it: this is before it began
            raise CheckFailed(
                f"a node can't do the work: {_line(error)}. Every node needs what is installed here (docs/clusters.md)"
            ) from error
        except (exceptions.LocalRayletDiedError, ConnectionError) as error:
            raise CheckFailed(LOST) from error
        except exceptions.RayError as error:
            lost = (exceptions.NodeDiedError, exceptions.ObjectLostError, exceptions.TaskCancelledError)
            return Death(ticket, cause(error), innocent=isinstance(error, lost))
        return outcome

    def _look(self) -> None:
        """From time to time: whether the head is there (Ray would wait for it), and how many CPUs there are now."""
        now = time.monotonic()
        if now < self._looked + LOOK:
            return
        self._looked = now
        if self._head is not None and _refusal(self._head) is not None:
            if now > self._seen + PATIENCE:
                raise CheckFailed(LOST)
            return
        self._seen = now
        if self._given is None:
            self.workers = _cpus(self._ray)


def cause(error: Exception) -> str:
    """Why a slice has died, in one line.

    >>> class ObjectLostError(Exception): pass
    >>> class OwnerDiedError(ObjectLostError): pass
    >>> cause(OwnerDiedError("…"))
    'its outcome was lost with the node that held it'
    >>> cause(RuntimeError("no such thing"))
    'Ray could not do it: RuntimeError: no such thing'
    """
    known = [CAUSES[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in CAUSES]
    return known[0] if known else f"Ray could not do it: {type(error).__name__}: {_line(error)}"


_WORKER, _STOP = Worker(), threading.Event()
"""In a Ray worker: what keeps the stack it did last; whether to stop. The word to stop may come before its slice has
begun, so it holds until a slice has ended, never until one begins."""


def _do(slice: Slice, release: str) -> Outcome:
    """In a Ray worker: the outcome of a slice. Ray's way to cancel a task is SIGINT, which ends the slice early."""
    if version("unseen") != release:
        raise RuntimeError(f"{socket.gethostname()} has unseen {version('unseen')}, the runner {release}")
    signal.signal(signal.SIGINT, lambda number, frame: _STOP.set())
    try:
        return _WORKER.do(slice, lambda tick: _STOP.is_set())
    finally:
        _STOP.clear()


def _imported() -> ModuleType:
    """Ray, told before it is imported to send nothing home and not to print what workers and daemons say."""
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
    before, ray_constants.ENABLE_RAY_CLUSTER = ray_constants.ENABLE_RAY_CLUSTER, False
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
        ray_constants.ENABLE_RAY_CLUSTER = before
    if started.address_info["node_ip_address"] != "127.0.0.1":
        ray.shutdown()
        raise CheckFailed(f"Ray {ray.__version__} does not keep to loopback; start a cluster and give its --address")


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
        tried = subprocess.run(
            [sys.executable, "-c", _ATTEMPT, address],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CONNECT,
        )
        if tried.returncode != 0:
            raise UsageError(f"address {address}: Ray can't connect: {_line(tried.stdout)}")
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"address {address}: no Ray cluster answers within {CONNECT:.0f} s. Expected HOST:PORT of its "
            "head, from one of its nodes, or ray://HOST:PORT of its client server"
        ) from None
    except (ConnectionError, RuntimeError) as error:
        raise UsageError(f"address {address}: Ray can't connect: {_line(error)}") from error


def _refusal(address: str) -> str | None:
    """Why nobody answers at `HOST:PORT` or `ray://HOST:PORT`; None: somebody does."""
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or not port or parts.scheme not in ("", "ray"):
        raise UsageError(f"address '{address}': expected auto, HOST:PORT or ray://HOST:PORT")
    try:
        socket.create_connection((host, port), timeout=LOOK).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


def _cpus(ray: ModuleType) -> int:
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def _line(said: object) -> str:
    """The line that matters: the last one after a traceback, else the first."""
    lines = str(said).strip().splitlines() or [type(said).__name__]
    return lines[-1 if "Traceback" in str(said) or 'File "' in str(said) else 0].strip()
