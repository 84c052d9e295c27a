"""The rates that ship with the package: how long steps of each model took on one named machine.

They price work where nothing may be measured: in `unseen plan --no-probe`, beside open claims, and wherever a decision
must come out alike on every machine. `python -m benchmarks.make_rates` measures them again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

FILE = "rates.json"


@dataclass(frozen=True)
class WorkloadTimes:
    """Measured times of one workload, in seconds on one core.

    By stack size, per member: of a step (`steps`), and to answer an example (`answers`); `tests`: how many times as long
    an example of the evaluation takes as one of the validation; to draw an example; to build a member.

    >>> times = WorkloadTimes({1: 0.010, 5: 0.006}, {1: 0.0, 5: 0.0}, tests=1.0, draw=0.0, build=0.0)
    >>> round(times.step(3), 4)
    0.0067
    """

    steps: Mapping[int, float]
    answers: Mapping[int, float]
    tests: float
    draw: float
    build: float

    def step(self, members: int) -> float:
        """Seconds per member of one step of a stack of this size."""
        return _interpolate(self.steps, members)

    def answer(self, members: int) -> float:
        """Seconds per member in which a stack of this size answers an example."""
        return _interpolate(self.answers, members)

    @property
    def best_size(self) -> int:
        """The size with the least time per member. A larger one must earn its memory: near ties go to the smaller.

        >>> WorkloadTimes({1: 0.0100, 5: 0.0060, 10: 0.0059}, {}, 1.0, 0.0, 0.0).best_size
        5
        """
        best = min(self.steps)
        for size in sorted(self.steps):
            if self.steps[size] < 0.95 * self.steps[best]:
                best = size
        return best

    def scaled(self, factor: float) -> WorkloadTimes:
        """The times of a workload whose steps take this many times as long."""
        steps = {size: seconds * factor for size, seconds in self.steps.items()}
        answers = {size: seconds * factor for size, seconds in self.answers.items()}
        return replace(self, steps=steps, answers=answers)


def _interpolate(table: Mapping[int, float], members: int) -> float:
    """Seconds per member at any size: between measured sizes, the times of whole stacks lie on a line."""
    sizes = sorted(table)
    if members >= sizes[-1]:
        return table[sizes[-1]]
    return float(np.interp(members, sizes, [size * table[size] for size in sizes])) / members


def parse_times(values: Mapping[str, Any]) -> WorkloadTimes:
    """Read times from JSON; a `ValueError`, `TypeError` or `KeyError` says that they are damaged."""
    steps = {int(size): float(seconds) for size, seconds in values["steps"].items()}
    answers = {int(size): float(seconds) for size, seconds in values["answers"].items()}
    times = WorkloadTimes(steps, answers, *(float(values[name]) for name in ("tests", "draw", "build")))
    if not steps or min(steps) < 1 or steps.keys() != answers.keys():
        raise ValueError(f"no times of steps: {values}")
    if not all(0 < seconds < math.inf for seconds in steps.values()):
        raise ValueError(f"no times of steps: {values}")
    if not all(0 <= seconds < math.inf for seconds in (*answers.values(), times.tests, times.draw, times.build)):
        raise ValueError(f"no times of examples: {values}")
    return times


@dataclass(frozen=True)
class Rate:
    """The times of one workload of a model, and the FLOPs of a step of it."""

    model: str
    flops: float
    times: WorkloadTimes


@dataclass(frozen=True)
class ShippedRates:
    """The rates of all models of the package, and the machine on which they were measured."""

    machine: str
    rates: tuple[Rate, ...]

    def times(self, model: str, flops: float) -> WorkloadTimes:
        """Times of a model's workload: FLOP for FLOP those of its nearest measured one; of any model, if it has none."""
        flops = max(flops, 1.0)
        candidates = [rate for rate in self.rates if rate.model == model] or list(self.rates)
        # The nearest by ratio: FLOPs of steps span many orders of magnitude.
        nearest = min(candidates, key=lambda rate: abs(math.log(max(rate.flops, 1.0) / flops)))
        return nearest.times.scaled(flops / max(nearest.flops, 1.0))


@cache
def shipped_rates() -> ShippedRates:
    """Read the rates of the package."""
    content = json.loads(files("unseen.running").joinpath(FILE).read_text("utf-8"))
    rates = tuple(Rate(entry["model"], entry["flops"], parse_times(entry)) for entry in content["rates"])
    return ShippedRates(f"{content['machine']}, {content['date']}", rates)
