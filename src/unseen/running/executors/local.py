"""Worker processes on this machine, one thread each. One that dies is replaced."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
from collections import deque
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait

from unseen.errors import CheckFailed, UsageError
from unseen.running.chunk import Chunk, Death, Event, Tick
from unseen.store.schema import Outcome
from unseen.training.process import ONE_THREAD, worker_device

TRIES = 3
"""The number of workers in a row that may die before they are ready; then something is wrong with all of them."""


def start(module: str) -> tuple[subprocess.Popen[bytes], Connection]:
    """A process that runs a module of ours on one thread, and the connection to it.

    If this process ends, the connection closes, and the other process notices that.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            # -P: nothing is imported from the working directory, unless the runner itself does so.
            [sys.executable, "-P", "-m", module, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            process_group=0,  # Ctrl-C is the runner's business, from the first moment
        )
    return process, Connection(ours.detach())


class _Process:
    """One worker, and the chunk that it works on. Its `number` chooses its device.

    `last_trial` is the first trial of the stack that it has in memory; while `reserved`, it waits for that stack.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.process, self.connection = start("unseen.running.executors.worker")
        self.ready = False
        self.reserved = False
        self.last_trial = ""
        self.chunk: Chunk | None = None
        self._send(sys.path)

    def give(self, chunk: Chunk) -> None:
        given = replace(chunk.with_checkpoint(), device=worker_device(chunk.device, self.number))
        try:
            data = pickle.dumps(given)
        except Exception as error:
            raise UsageError(
                f"{chunk.trials[0].task.name} can't be given to a worker: {error}. Define its classes in a "
                "module that can be imported, or use the executor inline"
            ) from error
        self.chunk = chunk
        self.last_trial = chunk.trials[0].id
        self.reserved = False
        self._send((chunk.ticket, data))

    def stop(self) -> None:
        self._send("stop")

    def _send(self, message: object) -> None:
        with suppress(OSError):  # it has died, which reading from the connection will show
            self.connection.send(message)

    def cause(self) -> str:
        """Why it died, as a phrase for people."""
        self.process.kill()
        code = self.process.wait()
        if code == -signal.SIGKILL:
            return "the worker was killed by signal 9 (SIGKILL), as the system does when memory runs out"
        if code < 0:
            return f"the worker was killed by signal {-code} ({signal.Signals(-code).name})"
        return f"the worker exited with code {code}"


class Local:
    """Supervised worker processes. A stack stays with its worker as long as it can."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._failed_starts = 0
        self._waiting = deque[Chunk]()
        self._events = deque[Event]()
        self._processes = [_Process(number) for number in range(workers)]

    def submit(self, chunk: Chunk) -> None:
        """Have a chunk done as soon as a worker is free."""
        self._waiting.append(chunk)
        self._assign()

    def next(self, seconds: float) -> Event | None:
        """The next event; None if there is none within this time."""
        if not self._events:
            for process in self._processes:
                process.reserved = False  # its stack was not submitted again: it is free for any chunk
            self._assign()
            ready = wait([process.connection for process in self._processes], seconds)
            for process in list(self._processes):  # a copy, because dead workers are replaced
                if process.connection in ready:
                    self._listen(process)
        return self._events.popleft() if self._events else None

    def stop(self) -> int:
        """Drop the waiting chunks and end the others after their current step; returns the number of events to come."""
        self._waiting.clear()
        busy = [process for process in self._processes if process.chunk is not None]
        for process in busy:
            process.stop()
        return len(busy) + sum(not isinstance(event, Tick) for event in self._events)

    def close(self) -> None:
        """End the workers at once."""
        for process in self._processes:
            process.process.kill()
            process.process.wait()
            process.connection.close()
        self._processes = []

    def _listen(self, process: _Process) -> None:
        try:
            message = process.connection.recv()
        except (EOFError, OSError):
            self._replace(process)
            return
        if message == "ready":
            process.ready = True
            self._failed_starts = 0
        else:
            self._events.append(message)
        if isinstance(message, Outcome):
            # A stack that goes on is submitted again at once: its worker is kept free for it.
            process.chunk = None
            process.reserved = message.checkpoint is not None
        if not isinstance(message, Tick):
            self._assign()

    def _assign(self) -> None:
        """Give waiting chunks to free workers: first every stack to the worker that has it in memory, then any to any."""
        for only_same_stack in (True, False):
            for process in self._processes:
                if process.chunk is not None or not process.ready:
                    continue
                if process.reserved and not only_same_stack:
                    continue
                for chunk in self._waiting:
                    if not only_same_stack or chunk.trials[0].id == process.last_trial:
                        self._waiting.remove(chunk)
                        process.give(chunk)
                        break

    def _replace(self, process: _Process) -> None:
        """Report the chunk of a dead worker, and start a new worker instead."""
        cause = process.cause()
        process.connection.close()
        if process.chunk is not None:
            self._events.append(Death(process.chunk.ticket, cause))
        if not process.ready:
            self._failed_starts += 1
        if self._failed_starts >= TRIES:
            raise CheckFailed(f"workers can't be started: {cause}; see what it said above, or try `unseen doctor`")
        self._processes[self._processes.index(process)] = _Process(process.number)
