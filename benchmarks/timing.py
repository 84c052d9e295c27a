"""Timing on a noisy machine: interleaved rounds, the median of each contender, and how far its rounds spread."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median, quantiles


@dataclass(frozen=True)
class Timed:
    """Seconds of a contender: the median of some rounds and their quartiles."""

    seconds: float
    low: float
    high: float
    rounds: int

    @classmethod
    def of(cls, found: list[float]) -> Timed:
        """From the seconds of each round."""
        low, _, high = quantiles(found, n=4, method="inclusive") if len(found) > 1 else found * 3
        return cls(median(found), low, high, len(found))


def rounds_of(
    contenders: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
    warm: bool = False,
) -> dict[str, list[float]]:
    """Seconds of each contender in each round: all run once per round, one after the other, so that noise meets them
    alike. A round before the first is not counted; where all are `warm` there is none. `time.process_time` as the clock
    leaves out what others did on the machine meanwhile; it is for work of one thread.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    if not warm:
        for work in contenders.values():
            work()
    for _ in range(rounds):
        for name, work in contenders.items():
            began = clock()
            work()
            times[name].append(clock() - began)
    return times


def timed(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Timed]:
    """The median and the spread of each contender, over interleaved rounds."""
    return {name: Timed.of(found) for name, found in rounds_of(contenders, rounds).items()}


def ratio(times: Mapping[str, list[float]], over: str, under: str, factor: float = 1.0) -> Timed:
    """The ratio of two contenders, taken within each round: what slows a round slows both."""
    return Timed.of([factor * a / b for a, b in zip(times[over], times[under], strict=True)])


def calibrated(work: Callable[[], object], seconds: float) -> tuple[int, float]:
    """How often to repeat some work so that it takes about so long (at least once), and what it takes once.

    It is done twice to find out; the first time is not counted.
    """
    work()
    began = time.process_time()
    work()
    once = max(time.process_time() - began, 1e-9)
    return max(1, round(seconds / once)), once


def repeated(work: Callable[[], object], times: int) -> Callable[[], None]:
    """Some work so many times."""

    def run() -> None:
        for _ in range(times):
            work()

    return run


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
