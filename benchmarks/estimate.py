"""Whether `unseen plan` tells the time: what it says of a study, and what the run then takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.rows import Asked, Row
from benchmarks.studies import rates_of_its_own
from unseen.errors import CheckFailed
from unseen.running.provenance import cores

STUDIES = ("retrieval-table2@smoke", "rules-main@smoke", "gcog-distractors@smoke")
"""One of each of three families. At this scale a run is mostly its start; name studies at scale mini to see more."""


class Spent(NamedTuple):
    """Seconds by the clock, and of all processors."""

    wall: float
    cpu: float


def estimate(asked: Asked) -> Iterator[Row]:
    """Seconds estimated and real, by the clock and of one core, and real over estimated: 1 is right.

    `study` names others, as `NAME@SCALE`, separated by commas. Both commands are processes of their own, with a worker
    for each core; rates are measured anew by the first and used by the second. What a command takes before anything is
    trained (importing torch, starting workers) is in the real times.
    """
    named = tuple(asked.study.split(",")) if asked.study else STUDIES
    for case in asked.among(named[:1] if asked.quick else named):
        name, _, scale = case.partition("@")
        given = [name, "--scale", scale or "smoke", "--workers", str(cores())]
        with rates_of_its_own(), tempfile.TemporaryDirectory(prefix="unseen-") as folder:
            said, planning = _unseen("plan", *given, "--format", "json")
            _, real = _unseen("run", *given, "--out", str(Path(folder, "store")))
        plan = json.loads(said)
        yield Row(case, "planning", planning.wall, "s", "less")
        for what, estimated, found in (
            ("time", plan["wall_seconds"], real.wall),
            ("core time", plan["core_seconds"], real.cpu),
        ):
            yield Row(case, f"estimated {what}", estimated, "s")
            yield Row(case, f"real {what}", found, "s")
            yield Row(case, f"real over estimated {what}", found / estimated, "×")


def _unseen(*arguments: str) -> tuple[str, Spent]:
    """What a command prints, and what it takes, its own processes included."""
    before, began = os.times(), time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "unseen", *arguments], capture_output=True, text=True)
    wall, after = time.perf_counter() - began, os.times()
    if done.returncode:
        raise CheckFailed(f"`unseen {' '.join(arguments)}` failed: {done.stderr.strip()}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return done.stdout, Spent(wall, cpu)
