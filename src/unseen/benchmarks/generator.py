"""How fast the generators are: examples per second on one core."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from unseen.benchmarks.timing import medians
from unseen.tasks import TASKS, task


def generator(quick: bool = False) -> Iterator[dict[str, object]]:
    """Rows (task, preset, length, condition, examples per second): 16 blocks at a time, median of 5."""
    lengths = (10,) if quick else (5, 10, 30)
    names = [e.name for e in TASKS if e.name.startswith("retrieval/")]
    for name in names[:1] if quick else names:
        for length in lengths:
            for preset in ("clean", "released"):
                made = task(name, length=length, preset=preset, train_size=None, evaluation_size=None)
                count = 16 * made.block
                contenders = {c: partial(made.sample, c, count) for c in ("train", "ood/single")}
                found = medians(contenders, rounds=1 if quick else 5)
                for condition, seconds in found.items():
                    yield {"task": name, "preset": preset, "length": length, "condition": condition,
                           "examples_per_second": round(count / seconds)}
