"""Benchmarks: ratios inside one run, one thread, median of several. `unseen bench` runs them."""

from __future__ import annotations

from unseen.registry import Registry

BENCHMARKS: Registry[object] = Registry(
    "benchmark",
    "unseen.benchmarks",
    {
        "generator": ("unseen.benchmarks.generator:generator", "retrieval examples per second, by task and length"),
        "stack": ("unseen.benchmarks.stack:stack", "stacked training against a plain PyTorch loop, over S and batch"),
        "study-workers": ("unseen.benchmarks.studies:workers", "two worker processes against one, on equal stacks"),
        "study-orchestration": ("unseen.benchmarks.studies:orchestration",
                                "what a study of 1 000 small cells costs besides training"),
        "study-size": ("unseen.benchmarks.size:size", "a study of 10 000 cells: counted, entered, listed"),
    },
)
