"""`retrieval-noise`: is the gain of positions due to the dropout that comes with them?

    unseen run retrieval-noise --scale mini --out noise

The paper saw positions help where order does not matter (T1, T3, T4) and took them for a helpful noise. But its model
drops from the embedding only where it adds positions, so the two can't be told apart there. Here they are crossed.
"""

from __future__ import annotations

from typing import Any

from unseen.studies.catalog.retrieval import CONDITIONS, DATA_SEED, NOTES, PUBLISHED, QUICK, tasks
from unseen.studies.grid import Grid
from unseen.studies.study import Study

SIZES: dict[str, dict[str, Any]] = {
    "smoke": {
        "tasks": ("T1",),
        "length": 5,
        "seeds": 2,
        "examples": 2_000,
        "recipe": {**QUICK, "steps": 300, "validate_every": 50},
    },
    "mini": {
        "tasks": ("T1", "T3", "T4"),
        "length": 5,
        "seeds": 5,
        "examples": 10_000,
        "recipe": {**QUICK, "steps": 8_000, "validate_every": 250},
    },
    "small": {
        "tasks": ("T1", "T3", "T4"),
        "length": 10,
        "seeds": 5,
        "examples": 10_000,
        "recipe": {**QUICK, "steps": 20_000, "validate_every": 1_000, "validation_examples": 10_000},
    },
    "medium": {
        "tasks": ("T1", "T3", "T4"),
        "length": 10,
        "seeds": 10,
        "examples": 10_000,
        "recipe": {**QUICK, "steps": 30_000, "validate_every": 1_000, "validation_examples": 10_000},
    },
    # Seeds of T1 differ by 3 points (one standard deviation) where the gain in question is 5: ten of them.
    "full": {"tasks": ("T1", "T3", "T4"), "length": 10, "seeds": 10, "examples": 10_000, "recipe": PUBLISHED},
}


def grids(scale: str) -> list[Grid]:
    """Tasks × positions × embedding dropout × self-attention × seeds."""
    size = SIZES[scale]
    return [
        Grid(
            axes={
                "task": tasks(size["tasks"]),
                "positions": {level: {"model": {"positions": level}} for level in ("none", "sinusoidal")},
                "embed_dropout": {level: {"model": {"embed_dropout": level}} for level in ("never", "always")},
                "self_attention": {level: {"model": {"self_attention": level}} for level in (False, True)},
            },
            base={
                "task": {"preset": "released", "length": size["length"]},
                "model": {"name": "retrieval-transformer"},
                "recipe": size["recipe"],
                "evaluation": {"conditions": CONDITIONS, "examples": size["examples"]},
            },
            seeds=range(size["seeds"]),
            data_seed=DATA_SEED,
        )
    ]


STUDY = Study(
    name="retrieval-noise",
    version=1,
    question="Do positions help on tasks without order because of the embedding dropout that comes with them?",
    scales={"smoke": 1, "mini": 45, "small": None, "medium": None, "full": None},
    grids=grids,
    claims=("retrieval/noise",),
    notes=NOTES,
)
