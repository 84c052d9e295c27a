"""A training step of every model: in plain loops, in stacks, in two processes; and how near it is to the limits."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.bounds import Work, work_of
from benchmarks.cases import CASES, Case, case_of
from benchmarks.loop import plain_loop, published_loop
from benchmarks.machine import SIDE, Limits, limits, product
from benchmarks.operation_breakdown import spent
from benchmarks.rows import Asked, Row
from benchmarks.subprocesses import Meet, at_once
from benchmarks.timing import Timed, calibrated, pinned, ratio, repeated, rounds_of
from unseen.training.process import one_thread

LONGEST = 1.5
"""Seconds that a stack's step may take; a larger stack is left out, and a row says so."""
PLAIN, PRODUCT = "plain loop", "product"


@dataclass(frozen=True)
class _Effort:
    """How long a contender works in a round, and how many rounds there are."""

    seconds: float
    rounds: int

    @classmethod
    def of(cls, asked: Asked) -> _Effort:
        return cls(0.02, 2) if asked.quick else cls(0.1, 7)


@dataclass(frozen=True)
class _Contender:
    """Some work: for how many members it is a step, how often it is repeated in a round, and what it takes once."""

    work: Callable[[], object]
    members: int
    times: int
    seconds: float

    @classmethod
    def of(cls, work: Callable[[], object], effort: _Effort, members: int = 1) -> _Contender:
        return cls(work, members, *calibrated(work, effort.seconds))


def steps(asked: Asked) -> Iterator[Row]:
    """Rows per case, all per model and step, in CPU time of one thread on one core:

    `plain loop`, `published loop` (written by hand), `stacked S=…` (ms); `speed-up S=…` over the plain loop, or over
    another that is named; `products` (GFLOP); `product share S=…` of the rate of one large product, `roofline share
    S=…` of the bound; `time in …`, the shares of the fastest stack's step by kind of operation, with its size as the
    note; `two processes S=…`, what two at once do against one alone, by the wall clock. Stacks draw their
    batches and dropout bits; loops have their batches ready made. `left out S=…` is a step (s) that was not tried.
    """
    effort = _Effort.of(asked)
    with one_thread(), pinned():
        known = limits(*((0.002, 2) if asked.quick else ()))
    for case in asked.among([case for case in CASES if case.quick or not asked.quick], lambda case: case.name):
        yield from _rows(case, effort, known, case.sizes[:2] if asked.quick else case.sizes)


def _rows(case: Case, effort: _Effort, known: Limits, sizes: Sequence[int]) -> Iterator[Row]:
    row = partial(Row, case.name)
    with one_thread(), pinned():
        work = _work(case)
        contenders, left_out = _contenders(case, effort), list[Row]()
        for size in sizes:
            took, held = _expected(contenders, size), size * work.written
            if size > 1 and (took > LONGEST or held > _memory() / 2):
                left_out.append(
                    row(
                        f"left out S={size}",
                        took,
                        "s",
                        note=f"a step would take {took:.1f} s and write {held / 1e9:.1f} GB",
                    )
                )
            else:
                contenders[f"S={size}"] = _Contender.of(partial(case.trainer(size).advance, 1), effort, size)
        slow = any(one.seconds > 4 * effort.seconds for one in contenders.values())
        found = rounds_of(
            {name: repeated(one.work, one.times) for name, one in contenders.items()},
            min(5, effort.rounds) if slow else effort.rounds,
            time.process_time,
            warm=True,
        )
    each = {name: [seconds / one.times / one.members for seconds in found[name]] for name, one in contenders.items()}
    yield row("products", work.products / 1e9, "GFLOP")
    yield from _times(row, case, each)
    yield from _shares(row, work, each, contenders, known)
    yield from left_out
    best = min(
        (one.members for name, one in contenders.items() if name.startswith("S=")),
        key=lambda size: median(each[f"S={size}"]),
    )
    with one_thread(), pinned():
        fastest = contenders[f"S={best}"]
        where = spent(repeated(fastest.work, fastest.times))
    yield from (row(f"time in {kind}", share, "", note=f"S={best}") for kind, share in where.items())
    yield _two(row, case, best, effort)


def _work(case: Case) -> Work:
    """What one member's step does; the first steps find out how it is batched."""
    train = partial(case.trainer(1).advance, 1)
    train()
    return work_of(train)


def _contenders(case: Case, effort: _Effort) -> dict[str, _Contender]:
    """The product and the loops."""
    loops = {
        PRODUCT: product(),
        PLAIN: plain_loop(case),
        **{figure: published_loop(case, figure) for figure in case.published},
    }
    return {name: _Contender.of(work, effort) for name, work in loops.items()}


def _expected(contenders: Mapping[str, _Contender], size: int) -> float:
    """About how long a step of a stack will take, from the largest so far."""
    stacks = [one for name, one in contenders.items() if name.startswith("S=")]
    return stacks[-1].seconds / stacks[-1].members * size if stacks else 0.0


def _memory() -> float:
    """Bytes that are free, where the system tells it."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith("MemAvailable"))) * 1024
    except (OSError, StopIteration):
        return math.inf


def _times(row: Callable[..., Row], case: Case, each: Mapping[str, list[float]]) -> Iterator[Row]:
    loops, stacks = [PLAIN, *case.published], [name for name in each if name.startswith("S=")]
    for name in (*loops, *stacks):
        figure = name if name in loops else f"stacked {name}"
        yield _timed(row, figure, Timed.of([1e3 * seconds for seconds in each[name]]), "ms", "less")
    for name in stacks:
        for loop in loops:
            over = "" if loop == PLAIN else f" over {loop.removesuffix(' loop')}"
            yield _timed(row, f"speed-up {name}{over}", ratio(each, loop, name), "×", "more")


def _shares(
    row: Callable[..., Row],
    work: Work,
    each: Mapping[str, list[float]],
    contenders: Mapping[str, _Contender],
    known: Limits,
) -> Iterator[Row]:
    """Against the product of the same round; the other limits were measured before."""
    here = replace(known, products=2 * SIDE**3 / median(each[PRODUCT]))
    found: list[Row] = []
    for name, one in contenders.items():
        if name.startswith("S="):
            shares = ratio(each, PRODUCT, name, work.products / (2 * SIDE**3))
            bound = work.bound(here, one.members)
            roofs = Timed.of([bound.seconds / one.members / seconds for seconds in each[name]])
            found.append(_timed(row, f"product share {name}", shares, "", "more"))
            yield found[-1]
            yield replace(_timed(row, f"roofline share {name}", roofs, "", "more"), note=f"bound: {bound}")
    best = max(found, key=lambda share: share.value)
    yield replace(best, figure="best product share", note=best.figure.rpartition(" ")[2])


def _timed(row: Callable[..., Row], figure: str, found: Timed, unit: str, better: str) -> Row:
    return row(figure, found.seconds, unit, better, found.low, found.high, found.rounds)


# -- two processes ----------------------------------------------------------------------------------------------------


def _two(row: Callable[..., Row], case: Case, size: int, effort: _Effort) -> Row:
    """Steps per second of two processes at once against those of one alone, by the wall clock."""
    figure, cores = f"two processes S={size}", sorted(_cores())
    if len(cores) < 2:
        return row(figure, 1.0, "×", "more", note="there is one core")
    rounds = 2 if effort.rounds < 5 else 5
    alone, beside = at_once(
        train_at_once, *((place, case.name, size, cores[-1 - place], effort.seconds, rounds) for place in (0, 1))
    )
    return _timed(
        row, figure, Timed.of([a[0] / a[1] + a[0] / b[1] for a, b in zip(alone, beside, strict=True)]), "×", "more"
    )


def train_at_once(
    meet: Meet, place: int, name: str, size: int, core: int, seconds: float, rounds: int
) -> list[tuple[float, float]]:
    """In a child: seconds per step alone (the first child while the second waits) and at once, in each round."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    with one_thread():
        train = partial(case_of(name).trainer(size).advance, 1)
        times, _ = calibrated(train, seconds)
        work, found = repeated(train, times), []
        for _ in range(rounds):
            meet()
            alone = _wall(work) / times if place == 0 else math.nan
            meet()
            found.append((alone, _wall(work) / times))
    return found


def _wall(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _cores() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
