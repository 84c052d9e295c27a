"""Measured rates, kept between calls in the user's cache directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from unseen.studies.kept import Kept, code_state, kept_path
from unseen.studies.provenance import cpu_name


@dataclass(frozen=True)
class Rate:
    """What one kind of work takes: by stack size, seconds per member of a step and to answer an example; how many times
    as long an example of the evaluation takes (`tests`); seconds to draw an example, and to build a member.

    `asked` is the largest size that was asked for; it may have been left out because it took too long. `crowd` is how
    many processes tried at once.

    >>> rate = Rate({1: 0.010, 5: 0.006}, {1: 0.0, 5: 0.0}, tests=1.0, draw=0.0, build=0.0, asked=5, crowd=1)
    >>> round(rate.step(3), 4)
    0.0067
    """

    steps: Mapping[int, float]
    answers: Mapping[int, float]
    tests: float
    draw: float
    build: float
    asked: int
    crowd: int

    def step(self, members: int) -> float:
        """Seconds per member of one step of a stack of so many."""
        return _between(self.steps, members)

    def answer(self, members: int) -> float:
        """Seconds per member in which a stack of so many answers an example."""
        return _between(self.answers, members)

    def longer(self, by: float, batches: float) -> Rate:
        """The rate of a kind whose step takes so many seconds more (or, negative, less) for each member, with batches
        so many times as large. To answer an example takes as much more as what a step does for one."""
        steps = {size: seconds + by for size, seconds in self.steps.items()}
        answers = {size: seconds * steps[size] / self.steps[size] / batches for size, seconds in self.answers.items()}
        return replace(self, steps=steps, answers=answers)


def _between(table: Mapping[int, float], members: int) -> float:
    """Seconds per member at any size: between measured ones, those of whole stacks lie on a line."""
    tried = sorted(table)
    if members >= tried[-1]:
        return table[tried[-1]]
    return float(np.interp(members, tried, [size * table[size] for size in tried])) / members


def middle(rates: Sequence[Rate]) -> Rate:
    """The median of what several processes measured at once: of all sizes that each of them has tried."""
    first, every = rates[0], [set(rate.steps) for rate in rates]
    sizes = sorted(set.intersection(*every))
    return Rate(
        {size: median(rate.steps[size] for rate in rates) for size in sizes},
        {size: median(rate.answers[size] for rate in rates) for size in sizes},
        median(rate.tests for rate in rates),
        median(rate.draw for rate in rates),
        median(rate.build for rate in rates),
        first.asked,
        len(rates),
    )


class RatesCache(Kept[Rate]):
    """Rates by kind, for this processor, this code and one thread."""

    def __init__(self, path: Path | None = None, device: str = "cpu") -> None:
        machine = f"{cpu_name()}, {device}, 1 thread, {code_state('engine', 'models', 'tasks')}"
        super().__init__(path or kept_path("rates.json"), machine, _rate, "the rates are measured anew")

    def covers(self, kind: str, size: int, crowd: int) -> bool:
        """The kind is known for stacks up to this size, tried by so many processes at least."""
        return kind in self.known and self.known[kind].asked >= size and self.known[kind].crowd >= crowd


def _rate(said: Mapping[str, Any]) -> Rate:
    steps, answers = ({int(k): float(v) for k, v in said[name].items()} for name in ("steps", "answers"))
    tests, draw, build = (float(said[name]) for name in ("tests", "draw", "build"))
    if not steps or min(steps) < 1 or steps.keys() != answers.keys() or not all(0 < s < inf for s in steps.values()):
        raise ValueError(f"no times of steps: {said}")
    if not all(0 <= s < inf for s in (*answers.values(), tests, draw, build)):
        raise ValueError(f"no times of examples: {said}")
    return Rate(steps, answers, tests, draw, build, int(said["asked"]), int(said["crowd"]))
