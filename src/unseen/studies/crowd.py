"""Probes by several processes at once: they share the machine's caches and memory as the workers of a run will.

python -m unseen.studies.crowd FILENO
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Self

from unseen.studies.cell import Cell
from unseen.studies.executors.local import start
from unseen.studies.rates_cache import Rate, middle


class Crowd:
    """So many processes, from when the `with` block is entered, as soon as all are ready; of one, none is started."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._started: list[tuple[subprocess.Popen[bytes], Connection]] = []

    def __enter__(self) -> Self:
        if self._size > 1:
            self._started = [start("unseen.studies.crowd") for _ in range(self._size)]
            with suppress(EOFError, OSError):  # one has died: there will be no answers
                for _, connection in self._started:
                    connection.send(sys.path)
                for _, connection in self._started:
                    connection.recv()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process, connection in self._started:
            process.kill()
            process.wait()
            connection.close()

    def probe(self, cell: Cell, tried: Sequence[int], seconds: float, device: str) -> Rate | None:
        """What all of them find at once, the median; None if they can't: a class of a notebook, or one has died."""
        with suppress(Exception):
            asked = pickle.dumps((cell, tried, seconds, device))
            for _, connection in self._started:
                connection.send_bytes(asked)
            found = [connection.recv() for _, connection in self._started]
            return middle(found) if found and None not in found else None
        return None


def main(fileno: int) -> None:
    """Probe until the connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's business
    with suppress(EOFError, OSError), Connection(fileno) as connection:
        sys.path[:] = connection.recv()
        from unseen.engine.probe import warm_up
        from unseen.studies.rates import probe

        warm_up()
        connection.send("ready")
        while True:
            asked, found = connection.recv_bytes(), None
            with suppress(Exception):
                found = probe(*pickle.loads(asked))
            connection.send(found)


if __name__ == "__main__":
    main(int(sys.argv[1]))
