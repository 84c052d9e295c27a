"""Timing on a noisy machine: interleaved rounds, the median of each contender."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median


def medians(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds of each contender: all run once per round, one after the other, so that noise meets them alike."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for work in contenders.values():
        work()
    for _ in range(rounds):
        for name, work in contenders.items():
            began = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - began)
    return {name: median(found) for name, found in times.items()}


@contextmanager
def pinned() -> Iterator[None]:
    """Stay on one core while measuring, where the system allows it."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
