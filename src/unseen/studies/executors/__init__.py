"""Executors carry slices to where they are computed, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from unseen.studies.slice import Outcome, Slice, Tick


@dataclass(frozen=True)
class Death:
    """A worker died with a slice in its hands; `innocent` if that can't have been the slice's fault."""

    ticket: int
    cause: str
    innocent: bool = False


Event = Tick | Outcome | Death


class Executor(Protocol):
    """`submit` slices, ask for what happened `next`; each slice ends as one `Outcome` or one `Death`."""

    workers: int

    def submit(self, slice: Slice) -> None:
        """Have a slice done as soon as a worker is free."""

    def next(self, seconds: float) -> Event | None:
        """What happened next; None if nothing did in this time."""

    def stop(self) -> int:
        """Forget what has not begun, end what has after the step under way; returns how many outcomes will come."""

    def close(self) -> None:
        """Let the workers go."""
