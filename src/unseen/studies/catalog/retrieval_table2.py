"""`retrieval-table2`: the retrieval paper's main table, seven tasks × four ablations of its Transformer.

    unseen run retrieval-table2 --scale mini --out table2

`mini` keeps four tasks at length 5, which five seeds of each model learn within 45 minutes on two cores; `small` and
`medium` are the whole table at length 10 with a short recipe; `full` is the published recipe.
"""

from __future__ import annotations

from typing import Any

from unseen.studies.catalog.retrieval import ALL, CONDITIONS, DATA_SEED, NOTES, PUBLISHED, QUICK, TRANSFORMERS, tasks
from unseen.studies.grid import Grid
from unseen.studies.study import Study

SIZES: dict[str, dict[str, Any]] = {
    "smoke": {
        "tasks": ("T1", "T3"),
        "length": 5,
        "seeds": 2,
        "examples": 2_000,
        "recipe": {**QUICK, "steps": 300, "validate_every": 50},
    },
    # Steps by task, as a pilot needed them to level off: order is learned last.
    "mini": {
        "tasks": {"T1": 6_000, "T3": 4_000, "T4": 6_000, "T6": 18_000},
        "length": 5,
        "seeds": 5,
        "examples": 10_000,
        "recipe": {**QUICK, "validate_every": 250},
    },
    "small": {
        "tasks": ALL,
        "length": 10,
        "seeds": 3,
        "examples": 10_000,
        "recipe": {**QUICK, "steps": 20_000, "validate_every": 1_000, "validation_examples": 10_000},
    },
    "medium": {
        "tasks": ALL,
        "length": 10,
        "seeds": 5,
        "examples": 10_000,
        "recipe": {**QUICK, "steps": 30_000, "validate_every": 1_000, "validation_examples": 10_000},
    },
    "full": {"tasks": ALL, "length": 10, "seeds": 5, "examples": 10_000, "recipe": PUBLISHED},
}


def grids(scale: str) -> list[Grid]:
    """Tasks × ablations × seeds."""
    size = SIZES[scale]
    return [
        Grid(
            axes={"task": tasks(size["tasks"]), "variant": TRANSFORMERS},
            base={
                "task": {"preset": "released", "length": size["length"]},
                "recipe": size["recipe"],
                "evaluation": {"conditions": CONDITIONS, "examples": size["examples"]},
            },
            seeds=range(size["seeds"]),
            data_seed=DATA_SEED,
        )
    ]


STUDY = Study(
    name="retrieval-table2",
    version=1,
    question="Which part of a Transformer, positions or self-attention, lets it retrieve features, combine them and "
    "tell their order?",
    scales={"smoke": 1, "mini": 45, "small": None, "medium": None, "full": None},
    grids=grids,
    claims=(
        *(f"retrieval/C{number}" for number in range(1, 10)),
        "retrieval/table2",
        "retrieval/attention",
        "retrieval/reading",
        "retrieval/spreads",
        "retrieval/variants",
        "retrieval/one-feature",
    ),
    notes=NOTES,
)
