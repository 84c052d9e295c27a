"""In this process: for `train`, notebooks, and classes that no other process could import."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from unseen.running.chunk import Chunk, Event, Tick, Worker
from unseen.store.schema import Outcome


class Inline:
    """One chunk at a time, computed when asked what happens next."""

    workers = 1

    def __init__(self, stopping: Callable[[], bool], on_tick: Callable[[Tick], None]) -> None:
        """`stopping` ends the chunk under way; `on_tick` hears of its steps, since `next` returns only its outcome."""
        self._stopping, self._on_tick = stopping, on_tick
        self._worker, self._waiting = Worker(), deque[Chunk]()

    def submit(self, chunk: Chunk) -> None:
        """Have a chunk done by the next call of `next`."""
        self._waiting.append(chunk)

    def next(self, seconds: float) -> Event | None:
        """Do a chunk."""
        if not self._waiting:
            time.sleep(seconds)
            return None

        def on_tick(tick: Tick) -> bool:
            self._on_tick(tick)
            return self._stopping()

        # The newest first: it is the stack that the worker has in memory.
        outcome: Outcome = self._worker.do(self._waiting.pop().with_checkpoint(), on_tick)
        return outcome

    def stop(self) -> int:
        """Forget what has not begun."""
        self._waiting.clear()
        return 0

    def close(self) -> None:
        """Nothing to let go."""
