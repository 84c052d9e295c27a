"""Benchmarks: interleaved rounds in one run, medians and their spread, each figure beside its limit. `python -m benchmarks`.

Names are of one kind everywhere. A case is what is measured and the options that set it apart (`retrieval-transformer
batch=10`, `gcog/productive distractors=40 split=iid/depth=3`), a figure is what is said of it (`stacked S=16`).
"""

from __future__ import annotations

from benchmarks.rows import Benchmark
from unseen.registry import Registry

BENCHMARKS: Registry[Benchmark] = Registry(
    "benchmark",
    "benchmarks",
    {
        "package": ("benchmarks.package:package", "claims decided, the demo, source lines, and the gates for a GPU"),
        "machine": ("benchmarks.machine:machine", "what this machine can do at all: products, copies"),
        "start": ("benchmarks.start:start", "how long a command takes that does nothing yet"),
        "generators": ("benchmarks.generators:generators", "examples per second, task by task"),
        "steps": (
            "benchmarks.steps:steps",
            "a training step of every model: plain loops, stacks, two processes, and the limits of the machine",
        ),
        "capture": ("benchmarks.capture:capture", "what captures that nobody asked for cost a training step"),
        "memory": ("benchmarks.memory:memory", "peak memory of generators and stacks, and what they must hold"),
        "growth": (
            "benchmarks.growth:growth",
            "time against batch, width, length, rules, S and trials, with fitted exponents",
        ),
        "alignment": ("benchmarks.alignment:alignment", "the alignment of activation matrices"),
        "workers": ("benchmarks.studies:workers", "two worker processes against one, on equal stacks"),
        "orchestration": (
            "benchmarks.studies:orchestration",
            "what a study of 1 000 small trials costs besides training",
        ),
        "trials": ("benchmarks.trials:trials", "10 to 10 000 trials: time, memory and writes per trial"),
        "cluster": ("benchmarks.cluster:cluster", "2 048 simulated workers: what the runner and its store can take"),
        "size": ("benchmarks.size:size", "a study of 10 000 trials: counted, entered, listed"),
        "report": ("benchmarks.report:report", "a report of 20 000 runs: written, and opened in a browser"),
        "estimate": ("benchmarks.estimate:estimate", "the time that `unseen plan` says against the real one"),
    },
)
