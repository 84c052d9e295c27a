"""What the machine can do at all, on one core: the limits that all other figures are measured against."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch

from benchmarks.rows import Asked, Row
from benchmarks.timing import Timed, calibrated, pinned, repeated, rounds_of
from unseen.training.process import one_thread

SIDE = 1024
"""The side of the large product that is the arithmetic limit."""
COPIES = {"64 KiB": 2**16, "8 MiB": 2**23, "256 MiB": 2**28}
"""Bytes read and written by a copy: in a core's own cache, in the cache that cores share, in memory."""
FUNCTIONS = ("exp", "tanh")
_BATCH, _NARROW = 64, 128
_ELEMENTS = 2**13
"""In a core's own cache, whatever is read and written."""


@dataclass(frozen=True)
class Limits:
    """Rates: operations of products per second, bytes read and written per second by how many they are, functions
    (exp, tanh) per second.
    """

    products: float
    bytes: Mapping[int, float]
    functions: float

    def bandwidth(self, moved: float) -> float:
        """Bytes per second for an operation that moves so many: the rate of the largest copy that moves no more.

        >>> Limits(1e11, {1000: 5e10, 10**6: 1e10}, 1e9).bandwidth(5000)
        50000000000.0
        """
        return self.bytes[max((size for size in self.bytes if size <= moved), default=min(self.bytes))]


def product(side: int = SIDE) -> Callable[[], object]:
    """One large product in float32: 2 side³ operations."""
    left, right, out = (torch.full((side, side), 1e-3) for _ in range(3))
    return partial(torch.mm, left, right, out=out)


def contenders() -> dict[str, tuple[Callable[[], object], float]]:
    """All that is measured, by the name of its figure, and how many operations, bytes or functions it is."""
    left, right, batched = (torch.full((_BATCH, _NARROW, _NARROW), 1e-3) for _ in range(3))
    x, y = torch.rand(_ELEMENTS), torch.empty(_ELEMENTS)
    found: dict[str, tuple[Callable[[], object], float]] = {
        f"product of {SIDE} × {SIDE}": (product(), 2 * SIDE**3),
        f"{_BATCH} products of {_NARROW} × {_NARROW}": (
            partial(torch.bmm, left, right, out=batched),
            2 * _BATCH * _NARROW**3,
        ),
    }
    for name, moved in COPIES.items():
        source, target = torch.zeros(moved // 8), torch.zeros(moved // 8)
        found[f"copy {name}"] = partial(target.copy_, source), moved
    found["add"] = partial(torch.add, x, x, out=y), _ELEMENTS
    return found | {name: (partial(getattr(torch, name), x, out=y), _ELEMENTS) for name in FUNCTIONS}


def limits(seconds: float = 0.05, rounds: int = 5) -> Limits:
    """The limits, measured now: for who needs them beside figures of its own."""
    rates = {name: median(found) for name, found in _rates(seconds, rounds).items()}
    first = next(iter(rates.values()))
    return Limits(
        first, {moved: rates[f"copy {name}"] for name, moved in COPIES.items()}, max(rates[name] for name in FUNCTIONS)
    )


def machine(asked: Asked) -> Iterator[Row]:
    """Rows of one case, `one core`: rates of products (GFLOP/s), copies (GB/s, read and written), and functions."""
    if not asked.wants("one core"):
        return
    for figure, found in _rates(*((0.002, 2) if asked.quick else (0.2, 9))).items():
        rate = Timed.of([one / 1e9 for one in found])
        unit = "GFLOP/s" if "product" in figure else "GB/s" if "copy" in figure else "10⁹/s"
        yield Row("one core", figure, rate.seconds, unit, "more", rate.low, rate.high, rate.rounds)


def _rates(seconds: float, rounds: int) -> dict[str, list[float]]:
    """Per second, in each round."""
    measured = contenders()
    with one_thread(), pinned():
        times = {name: calibrated(work, seconds)[0] for name, (work, _) in measured.items()}
        took = rounds_of(
            {name: repeated(work, times[name]) for name, (work, _) in measured.items()},
            rounds,
            time.process_time,
            warm=True,
        )
    return {name: [times[name] * measured[name][1] / one for one in found] for name, found in took.items()}
