"""`retrieval-lengths`: what becomes of six models as the sequences grow from 5 to 30 tokens.

    unseen run retrieval-lengths --scale mini --out lengths

`mini` is the shortest and the table's length, an easy task and one that needs two features, three seeds: the longer
lengths cost too much to be learned within 45 minutes on two cores.
"""

from __future__ import annotations

from typing import Any

from unseen.studies.catalog.retrieval import (
    ALL,
    CONDITIONS,
    DATA_SEED,
    LSTMS,
    NOTES,
    PUBLISHED,
    QUICK,
    TRANSFORMERS,
    tasks,
)
from unseen.studies.grid import Grid
from unseen.studies.study import Study

SIZES: dict[str, dict[str, Any]] = {
    "smoke": {
        "tasks": ("T1",),
        "lengths": (5, 10),
        "seeds": 1,
        "examples": 2_000,
        "recipe": {**QUICK, "steps": 200, "validate_every": 25},
    },
    "mini": {
        "tasks": ("T1", "T4"),
        "lengths": (5, 10),
        "seeds": 3,
        "examples": 10_000,
        "recipe": {**QUICK, "steps": 7_000, "validate_every": 250},
    },
    "small": {
        "tasks": ("T1", "T4", "T6"),
        "lengths": (5, 10, 20),
        "seeds": 3,
        "examples": 10_000,
        "recipe": {**QUICK, "steps": 20_000, "validate_every": 1_000, "validation_examples": 10_000},
    },
    "medium": {
        "tasks": ALL,
        "lengths": (5, 10, 20, 30),
        "seeds": 3,
        "examples": 10_000,
        "recipe": {**QUICK, "steps": 20_000, "validate_every": 1_000, "validation_examples": 10_000},
    },
    "full": {"tasks": ALL, "lengths": (5, 10, 15, 20, 25, 30), "seeds": 5, "examples": 10_000, "recipe": PUBLISHED},
}


def grids(scale: str) -> list[Grid]:
    """Tasks × models × lengths × seeds: a model is trained and tested at one length."""
    size = SIZES[scale]
    return [
        Grid(
            axes={
                "task": tasks(size["tasks"]),
                "variant": {**TRANSFORMERS, **LSTMS},
                "length": {length: {"task": {"length": length}} for length in size["lengths"]},
            },
            base={
                "task": {"preset": "released"},
                "recipe": size["recipe"],
                "evaluation": {"conditions": CONDITIONS, "examples": size["examples"]},
            },
            seeds=range(size["seeds"]),
            data_seed=DATA_SEED,
        )
    ]


STUDY = Study(
    name="retrieval-lengths",
    version=1,
    question="How do Transformers and LSTMs fare as the sequence they have to search gets longer?",
    scales={"smoke": 1, "mini": 45, "small": None, "medium": None, "full": None},
    grids=grids,
    claims=("retrieval/C10", "retrieval/lengths"),
    notes=NOTES,
)
