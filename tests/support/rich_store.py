"""A store for the tests of pages: two tasks, four variants, a hostile level, failed runs and learning curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.store_builder import build
from unseen.store.store import Store

VARIANTS = ["T−Pos−Att", "T+Pos−Att", "T−Pos+Att", "T+Pos+Att"]
HOSTILE = "<img src=x onerror=alert(1)>\"'] + warn('x') + datum['\\\\ {{ 7 * 7 }} {% raw %}"
"""Markup, the end of a text, an expression of Vega's, and a template."""
TRACEBACK = "Traceback\n</script><script>window.hacked = 1</script><!-- ValueError: {{ 7 * 7 }}"


def curve(levels: Any, seed: int) -> dict[tuple[int, str, str], float]:
    return {(step, "iid", "accuracy"): 0.5 + step / 2500 for step in (250, 500, 1000)}


def accuracies(levels: Any, seed: int) -> dict[Any, float]:
    """T+ variants are better, and every run has its own number."""
    good = 0.25 if str(levels.get("variant", "")).startswith("T+") else 0.1
    return {
        ("iid", "accuracy"): 0.7 + good + 0.01 * seed,
        ("ood/single", "accuracy"): 0.6 + good + 0.01 * seed,
        ("iid", "loss"): 0.3,
        ("ood/single", "loss"): 0.4,
    }


def rich(path: Path, seeds: int = 4) -> Path:
    """A store of the catalogue's study with a hostile level, and two runs that failed."""
    build(
        path,
        study="retrieval-table2@2",
        axes={"task": ["retrieval/T1", "retrieval/T6"], "variant": [*VARIANTS, HOSTILE]},
        metrics=accuracies,
        last=lambda levels, seed: {k: v - 0.05 for k, v in accuracies(levels, seed).items()},
        seeds=range(seeds),
        curve=curve,
        not_converged=lambda levels, seed: seed == 3,
        status=lambda levels, seed: "pending" if levels["variant"] == HOSTILE and seed < 2 else "finished",
    )
    with Store.write(path) as store:
        for trial in [trial for trial, status in store.status().items() if status == "pending"][:2]:
            store.fail(trial, f"ValueError: {HOSTILE}", TRACEBACK)
    return path
