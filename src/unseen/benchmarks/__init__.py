"""Benchmarks: ratios inside one run, one thread, median of several. `unseen bench` runs them."""

from __future__ import annotations

from unseen.registry import Registry

BENCHMARKS: Registry[object] = Registry(
    "benchmark",
    "unseen.benchmarks",
    {
        "generator": ("unseen.benchmarks.generator:generator", "examples per second, family by family"),
        "stack": ("unseen.benchmarks.stack:stack", "stacked training against a plain PyTorch loop, over S and batch"),
        "rules-stack": ("unseen.benchmarks.rules:rules",
                        "stacked training of modular models against plain PyTorch loops"),
        "study-workers": ("unseen.benchmarks.studies:workers", "two worker processes against one, on equal stacks"),
        "study-orchestration": ("unseen.benchmarks.studies:orchestration",
                                "what a study of 1 000 small cells costs besides training"),
        "study-size": ("unseen.benchmarks.size:size", "a study of 10 000 cells: counted, entered, listed"),
        "report": ("unseen.benchmarks.report:report", "a report of 20 000 runs: written, and opened in a browser"),
        "ctl-step": ("unseen.benchmarks.ctl:step",
                     "a training step of the ctl models against the machine's rate of matrix products"),
        "gcog-step": ("unseen.benchmarks.gcog:step",
                      "a training step of the gcog models against plain ones and the rate of matrix products"),
    },
)
