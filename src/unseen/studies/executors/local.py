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
from multiprocessing.connection import Connection, wait

from unseen.engine.threads import ONE_THREAD
from unseen.errors import CheckFailed, UsageError
from unseen.studies.executors import Death, Event
from unseen.studies.slice import Outcome, Slice, Tick

TRIES = 3
"""So many workers in a row may die before they are ready; then there is something wrong with all of them."""


def start(module: str) -> tuple[subprocess.Popen[bytes], Connection]:
    """A process that runs a module of ours on one thread, and the connection to it, by whose end it notices ours."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            # -P: nothing is imported from where the command happens to run, unless the runner does so itself.
            [sys.executable, "-P", "-m", module, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            process_group=0,
        )  # Ctrl-C is the runner's business, from the first moment
    return process, Connection(ours.detach())


class _Process:
    """One worker, and the slice in its hands."""

    def __init__(self) -> None:
        self.process, self.connection = start("unseen.studies.executors.worker")
        self.ready, self.held, self.last = False, False, ""
        self.slice: Slice | None = None
        self._send(sys.path)

    def give(self, slice: Slice) -> None:
        try:
            data = pickle.dumps(slice)
        except Exception as error:
            raise UsageError(
                f"{slice.cells[0].task.name} can't be given to a worker: {error}. Define its classes in a "
                "module that can be imported, or use the executor inline"
            ) from error
        self.slice, self.last, self.held = slice, slice.cells[0].id, False
        self._send((slice.ticket, data))

    def stop(self) -> None:
        self._send("stop")

    def _send(self, message: object) -> None:
        with suppress(OSError):  # it has died; the connection will say so to who listens
            self.connection.send(message)

    def cause(self) -> str:
        """Why it died, in words."""
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
        self.workers, self._stillborn = workers, 0
        self._waiting = deque[Slice]()
        self._happened = deque[Event]()
        self._processes = [_Process() for _ in range(workers)]

    def submit(self, slice: Slice) -> None:
        """Have a slice done as soon as a worker is free."""
        self._waiting.append(slice)
        self._assign()

    def next(self, seconds: float) -> Event | None:
        """What happened next; None if nothing did in this time."""
        if not self._happened:
            for process in self._processes:
                process.held = False  # its stack has not come back: it is free for any
            self._assign()
            ready = wait([p.connection for p in self._processes], seconds)
            for process in [p for p in self._processes if p.connection in ready]:
                self._listen(process)
        return self._happened.popleft() if self._happened else None

    def stop(self) -> int:
        """Forget what has not begun, end what has after the step under way."""
        self._waiting.clear()
        busy = [p for p in self._processes if p.slice is not None]
        for process in busy:
            process.stop()
        return len(busy) + sum(not isinstance(e, Tick) for e in self._happened)

    def close(self) -> None:
        """Let the workers go, at once."""
        for process in self._processes:
            process.process.kill()
            process.process.wait()
            process.connection.close()
        self._processes = []

    def _listen(self, process: _Process) -> None:
        try:
            message = process.connection.recv()
        except (EOFError, OSError):
            self._bury(process)
            return
        if message == "ready":
            process.ready, self._stillborn = True, 0
        else:
            self._happened.append(message)
        if isinstance(message, Outcome):
            # A stack that goes on is submitted again at once: its worker is kept free for it.
            process.slice, process.held = None, message.checkpoint is not None
        if not isinstance(message, Tick):
            self._assign()

    def _assign(self) -> None:
        """Give what waits to who is free: first every stack to the worker that has it in memory, then any to any."""
        for own in (True, False):
            for process in self._processes:
                if process.slice is None and process.ready and (own or not process.held):
                    mine = (s for s in self._waiting if not own or s.cells[0].id == process.last)
                    slice = next(mine, None)
                    if slice is not None:
                        self._waiting.remove(slice)
                        process.give(slice)

    def _bury(self, process: _Process) -> None:
        """Report what a dead worker had in its hands, and put a new one in its place."""
        cause = process.cause()
        process.connection.close()
        if process.slice is not None:
            self._happened.append(Death(process.slice.ticket, cause))
        if not process.ready:
            self._stillborn += 1
        if self._stillborn >= TRIES:
            raise CheckFailed(f"workers can't be started: {cause}; see what it said above, or try `unseen doctor`")
        self._processes[self._processes.index(process)] = _Process()
