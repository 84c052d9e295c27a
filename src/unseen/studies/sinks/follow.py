"""A sink beside a run: it looks into the store every few seconds, in a thread that can't disturb the run."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from unseen.studies.sinks import where
from unseen.studies.sinks.feed import Feed

SECONDS = 5.0
"""Between two looks."""
PATIENCE = 60.0
"""So long a sink may make no headway after the end of the run before it is left alone."""


@contextmanager
def follow(store: Path, tracks: Sequence[str], seconds: float = SECONDS) -> Iterator[None]:
    """While inside, every track (`tensorboard`, `mlflow:DIR`) is kept up with the store; at the end it has all of it.

    What is wrong from the start (an unknown tool, one that is not installed, a directory in use) is an error now; what
    goes wrong later is one warning at the end, and the run never hears of it.
    """
    with ExitStack() as stack:
        for track in tracks:
            stack.enter_context(_following(store, track, seconds))
        yield


@contextmanager
def _following(store: Path, track: str, seconds: float) -> Iterator[None]:
    tool, logs = where(track, store)
    follower = _Follower(Feed(store, tool, logs), seconds)
    follower.start()
    try:
        yield
    finally:
        wrong = follower.finish()
        if wrong:
            warnings.warn(
                f"{tool} was not told everything: {wrong}. The run itself is not affected; `unseen track "
                f"{store} --to {tool} --out {logs}` writes what is missing",
                stacklevel=2,
            )


class _Follower(threading.Thread):
    """Updates a feed until it is told to finish, or something goes wrong."""

    def __init__(self, feed: Feed, seconds: float) -> None:
        super().__init__(name="unseen-sink", daemon=True)
        self._feed, self._seconds = feed, seconds
        self._ending, self._wrong, self._moved = threading.Event(), "", time.monotonic()

    def run(self) -> None:
        for work in (self._update, self._feed.close):
            try:
                work()
            except BaseException as error:  # whatever a tool does, SystemExit included, ends here
                said = str(error).strip().splitlines() or [""]
                self._wrong = self._wrong or f"{type(error).__name__}: {said[0]}"

    def _update(self) -> None:
        last, seen = False, None
        while not last:
            last = self._ending.wait(self._seconds)
            now = self._feed.stamp()  # taken before the look, so that what comes during it is seen at the next
            if last or now != seen:  # a file may change twice within a tick of its clock: the last look is not spared
                self._feed.update(self._alive)
            seen = now

    def _alive(self) -> None:
        self._moved = time.monotonic()

    def finish(self) -> str:
        """Let it write what is left, as long as it makes headway; returns what went wrong, or nothing."""
        self._alive()
        self._ending.set()
        while self.is_alive() and time.monotonic() < self._moved + PATIENCE:
            self.join(0.2)
        return self._wrong or (f"it stood still for {PATIENCE:.0f} seconds" if self.is_alive() else "")
