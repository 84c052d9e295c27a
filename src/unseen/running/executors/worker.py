"""A worker process of the local executor: chunks in, ticks and outcomes out, over one connection.

    python -m unseen.running.executors.worker FILENO

It lives as long as its connection: when the runner is gone, however it went, so is the worker.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection

TICK = 0.5
"""Seconds between two messages about steps."""


def main(fileno: int) -> None:
    """Do chunks until the connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the runner's business
    connection = Connection(fileno)
    try:
        sys.path[:] = connection.recv()
    except (EOFError, OSError):
        return  # the runner is gone already
    waiting: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()
    stop = threading.Event()

    def listen() -> None:
        while True:
            try:
                message = connection.recv()
            except (EOFError, OSError):
                os._exit(0)
            if message == "stop":
                stop.set()
            else:
                stop.clear()
                waiting.put(message)

    from unseen.running.chunk import Tick, Worker
    from unseen.store.schema import Outcome

    worker = Worker()
    threading.Thread(target=listen, daemon=True).start()
    connection.send("ready")
    while True:
        ticket, data = waiting.get()
        try:
            chunk = pickle.loads(data)
        except Exception:  # a class that can't be imported here
            connection.send(Outcome(ticket, error=traceback.format_exc()))
            continue
        said = time.monotonic()

        def on_tick(tick: Tick) -> bool:
            nonlocal said
            if time.monotonic() - said > TICK:
                said = time.monotonic()
                connection.send(tick)
            return stop.is_set()

        connection.send(worker.do(chunk, on_tick))


if __name__ == "__main__":
    main(int(sys.argv[1]))
