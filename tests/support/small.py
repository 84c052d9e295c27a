"""A small study for tests: 32 trials of four shapes, trained in seconds; and everything its store holds, exactly."""

from __future__ import annotations

from pathlib import Path

from unseen.store.store import Store
from unseen.studies.grid import Grid
from unseen.studies.study import Study

MODELS = {
    "plain": {"name": "retrieval-transformer", "positions": "none", "self_attention": False},
    "basic": {"name": "retrieval-lstm", "form": "basic"},
}
STEPS = {"smoke": 40, "mini": 120}


def grids(scale: str) -> list[Grid]:
    """Tasks × models × learning rates × seeds; trials that differ in the rate alone can be one stack."""
    return [
        Grid(
            axes={
                "task": {name: {"task": {"name": name}} for name in ("retrieval/T1", "retrieval/T3")},
                "variant": {name: {"model": model} for name, model in MODELS.items()},
                "rate": {0.001: {}, 0.003: {"recipe": {"learning_rate": 0.003}}},
            },
            base={
                "task": {"length": 3, "train_size": 500, "evaluation_size": 300},
                "recipe": {"steps": STEPS[scale], "batch": 10, "validate_every": 20, "validation_examples": 100},
                "evaluation": {"examples": 300},
            },
            seeds=range(4),
        )
    ]


STUDY = Study("small", 1, "Do tests train?", {"smoke": None, "mini": None}, grids)


def tables(path: Path) -> list[tuple[str, ...]]:
    """Records, curves and endings as exact values; not the times."""
    with Store.read(path) as store:
        frames = [store.records(), store.curves(), store.trials()]
    return [tuple(map(repr, row)) for frame in frames for row in frame.itertuples(index=False)]
