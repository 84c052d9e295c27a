"""What it costs a training step that activations could be captured, if nobody asks for any."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from unittest.mock import patch

from torch import Tensor

from benchmarks.cases import CASES, Case
from benchmarks.loop import plain_loop
from benchmarks.rows import Asked, Row
from benchmarks.timing import calibrated, pinned, ratio, repeated, rounds_of
from unseen.models.context import Context
from unseen.training.process import one_thread

WITH, WITHOUT = "as it is", "without captures"


def capture(asked: Asked) -> Iterator[Row]:
    """Rows of one figure, the time of a plain step over that of the same step whose captures do nothing at all.

    The difference is below what one run of a busy machine can resolve; a ratio within 1 ± 0.02 is none.
    """
    rounds, seconds = (3, 0.02) if asked.quick else (31, 0.1)
    cases = [case for case in CASES if case.quick] if asked.quick else list(CASES)
    with one_thread(), pinned():
        for case in asked.among(cases, lambda case: case.name):
            # CPU time of one thread, which leaves out what others do on the machine.
            found = rounds_of(_contenders(case, seconds), rounds, time.process_time)
            took = ratio(found, WITH, WITHOUT)
            yield Row(
                case.name, "captures nobody asked for", took.seconds, "×", "less", took.low, took.high, took.rounds
            )


def _contenders(case: Case, seconds: float) -> dict[str, Callable[[], object]]:
    step = plain_loop(case)
    times, _ = calibrated(step, seconds)
    steps = repeated(step, times)

    def without() -> None:
        with patch.object(Context, "capture", _return_value):
            steps()

    return {WITH: steps, WITHOUT: without}


def _return_value(_ctx: Context, _name: str, value: Tensor) -> Tensor:
    return value
