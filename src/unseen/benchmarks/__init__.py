"""Benchmarks: interleaved rounds in one run, medians and their spread, each figure beside its limit. `unseen bench`.

Names are of one kind everywhere. A case is what is measured and the options that set it apart (`retrieval-transformer
batch=10`, `gcog/productive distractors=40 condition=iid/depth=3`), a figure is what is said of it (`stacked S=16`).
"""

from __future__ import annotations

from unseen.benchmarks.rows import Benchmark
from unseen.registry import Registry

BENCHMARKS: Registry[Benchmark] = Registry(
    "benchmark",
    "unseen.benchmarks",
    {
        "machine": ("unseen.benchmarks.machine:machine", "what this machine can do at all: products, copies"),
        "start": ("unseen.benchmarks.start:start", "how long a command takes that does nothing yet"),
        "generators": ("unseen.benchmarks.generators:generators", "examples per second, task by task"),
        "steps": (
            "unseen.benchmarks.steps:steps",
            "a training step of every model: plain loops, stacks, two processes, and the limits of the machine",
        ),
        "memory": ("unseen.benchmarks.memory:memory", "peak memory of generators and stacks, and what they must hold"),
        "growth": (
            "unseen.benchmarks.growth:growth",
            "time against batch, width, length, rules, S and cells, with fitted exponents",
        ),
        "alignment": ("unseen.benchmarks.alignment:alignment", "the alignment of activation matrices"),
        "workers": ("unseen.benchmarks.studies:workers", "two worker processes against one, on equal stacks"),
        "orchestration": (
            "unseen.benchmarks.studies:orchestration",
            "what a study of 1 000 small cells costs besides training",
        ),
        "cells": ("unseen.benchmarks.cells:cells", "10 to 10 000 cells: time, memory and writes per cell"),
        "size": ("unseen.benchmarks.size:size", "a study of 10 000 cells: counted, entered, listed"),
        "report": ("unseen.benchmarks.report:report", "a report of 20 000 runs: written, and opened in a browser"),
        "estimate": ("unseen.benchmarks.estimate:estimate", "the time that `unseen plan` says against the real one"),
    },
)
