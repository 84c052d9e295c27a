"""`gcog-distractors`: models that learned among 1 to 5 distractors, asked among up to 40 (gCOG, figure 3).

    unseen run gcog-distractors --scale mini --out distractors

`mini` is a grid of 4 × 4 with 30 different objects and four narrow models; `small` the paper's world, narrow models;
`medium` a tenth of the paper's samples; `full` is the published size.
"""

from __future__ import annotations

from typing import Any

from unseen.studies.catalog.gcog import (
    LEARNED_QUICKLY,
    NEEDS,
    NOTES,
    SMALL,
    SMALL_RECIPE,
    TINY_RECIPE,
    conditions,
    models,
)
from unseen.studies.grid import Grid
from unseen.studies.study import Study

NAME = "gcog/distractor"

SIZES: dict[str, dict[str, Any]] = {
    "smoke": {"task": {**SMALL, "ood_distractors": (4,)}, "width": 16, "recipe": TINY_RECIPE, "seeds": 1},
    "mini": {
        "task": {**SMALL, "ood_distractors": (6, 9, 12)},
        "width": 64,
        "models": LEARNED_QUICKLY,
        "needs": NEEDS,
        "recipe": SMALL_RECIPE,
        "seeds": 4,
    },
    "small": {
        "task": {"coding": "embedding"},
        "width": 64,
        "recipe": {"steps": 20_000, "learning_rate": 5e-4, "validate_every": 1_000},
        "seeds": 3,
    },
    "medium": {"recipe": {"steps": 21_086}, "seeds": 3},
    "full": {"seeds": 5},
}


def grids(scale: str) -> list[Grid]:
    """Models × seeds."""
    size = SIZES[scale]
    options = size.get("task", {})
    return [
        Grid(
            axes={"model": models(size)},
            base={
                "task": {"name": NAME, **options},
                "recipe": {"name": "gcog-distractor-paper", **size.get("recipe", {})},
                "evaluation": {"conditions": conditions(NAME, options)},
            },
            seeds=range(size["seeds"]),
        )
    ]


STUDY = Study(
    name="gcog-distractors",
    version=1,
    question="Does a network that answers questions about a few objects still answer them among many?",
    scales={"smoke": 1, "mini": 30, "small": None, "medium": None, "full": None},
    grids=grids,
    selection="last",
    claims=("gcog/distractors-learned", "gcog/distractors", "gcog/distractors-drop", "gcog/distractors-weakest"),
    notes=NOTES,
)
