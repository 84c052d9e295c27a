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
    # To stop is the runner's business. A scheduler may send its signals to every process of a job.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
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

    def send(message: object) -> None:
        try:
            connection.send(message)
        except OSError:  # the runner is gone
            os._exit(0)

    # Before torch is imported, which takes seconds: a runner that dies meanwhile is noticed at once.
    threading.Thread(target=listen, daemon=True).start()
    from unseen.running.chunk import Tick, Worker
    from unseen.store.schema import Outcome

    worker = Worker()
    send("ready")
    while True:
        ticket, data = waiting.get()
        try:
            chunk = pickle.loads(data)
        except Exception:  # a class that can't be imported here
            send(Outcome(ticket, error=traceback.format_exc()))
            continue
        last_sent = time.monotonic()

        def on_tick(tick: Tick) -> bool:
            nonlocal last_sent
            if time.monotonic() - last_sent > TICK:
                last_sent = time.monotonic()
                send(tick)
            return stop.is_set()

        send(worker.do(chunk, on_tick))


if __name__ == "__main__":
    main(int(sys.argv[1]))
