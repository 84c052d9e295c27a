"""Processes of their own for what must be measured there: a peak of memory, or two trainings at once.

They are forked from a server that has imported torch and done nothing, so they begin alike and at once.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from unseen.errors import CheckFailed

T = TypeVar("T")
Meet = Callable[[], object]
"""Waits for the other process."""


@cache
def _context() -> Any:
    """How processes are made: forked from a server of their own, or started anew where there is no forking."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(["benchmarks.cases"])
    return made


def in_child(work: Callable[..., T], *args: object) -> T:
    """What a function gives in a process that does nothing else."""
    found: T
    (found,) = _all([_started(work, *args)])
    return found


def at_once(work: Callable[..., T], first: tuple[object, ...], second: tuple[object, ...]) -> tuple[T, T]:
    """What a function gives for two lists of arguments, in a process each; before these it is given a way to `Meet`."""
    barrier = _context().Barrier(2)
    one, two = _all([_started(_meeting, barrier, work, *first), _started(_meeting, barrier, work, *second)])
    return one, two


def _started(work: Callable[..., object], *args: object) -> tuple[Any, Any]:
    ours, theirs = _context().Pipe(duplex=False)
    process = _context().Process(target=_answering, args=(theirs, work, *args), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _answering(pipe: Any, work: Callable[..., object], *args: object) -> None:
    """In the child."""
    pipe.send(work(*args))
    pipe.close()


def _meeting(barrier: Any, work: Callable[..., T], *args: object) -> T:
    """In the child."""
    return work(barrier.wait, *args)


def _all(started: list[tuple[Any, Any]]) -> list[Any]:
    """The answers. If a process dies without one, the others, which may wait for it, are ended, too."""
    try:
        return [pipe.recv() for _, pipe in started]
    except EOFError:
        raise CheckFailed("a process that was measured died") from None
    finally:
        for process, _ in started:
            process.terminate()
            process.join()
