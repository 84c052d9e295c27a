"""The study `quickstart`: a first finding in minutes."""

from __future__ import annotations

from typing import Any

from unseen.studies.catalog.retrieval import TRANSFORMERS
from unseen.studies.grid import Grid
from unseen.studies.study import Study

_SIZES: dict[str, dict[str, Any]] = {
    "smoke": {"seeds": 2, "evaluation": {"examples": 1_000}, "recipe": {"steps": 200, "validate_every": 25}},
    "mini": {"seeds": 5, "evaluation": {}, "recipe": {"steps": 2_000, "validate_every": 100}},
}


def _grids(scale: str) -> list[Grid]:
    """Can a Transformer tell "a before b" from "b before a", and which part of it does the work?

    Task T6 at length 5 (an opaque query stands for an ordered pair of features), the four ablations of the retrieval
    paper's Transformer, five seeds each, every seed with its own data. Without positions and without self-attention the
    model cannot see order and stays near the order-blind ceiling or below it; with both it goes well beyond.
    """
    size = _SIZES[scale]
    return [
        Grid(
            axes={"variant": TRANSFORMERS},
            base={
                "task": {"name": "retrieval/T6", "length": 5},
                "recipe": size["recipe"],
                "evaluation": size["evaluation"],
            },
            seeds=range(size["seeds"]),
        )
    ]


STUDY = Study(
    name="quickstart",
    version=1,
    question="Can a Transformer tell a-before-b from b-before-a, and which part of it does the work?",
    scales={"smoke": 1, "mini": 5},
    grids=_grids,
    notes=(
        "length 5 (paper: 10)",
        "task T6 only, on clean data (paper: seven tasks, on the released data)",
        "each seed has its own data (paper: one data set)",
    ),
)
