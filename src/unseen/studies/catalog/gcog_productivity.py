"""`gcog-productivity`: trees deeper than those of training (gCOG, figures 5, 10 and 11).

    unseen run gcog-productivity --scale mini --out productivity

Training is on depths 1 and 3, or on depth 1 alone; `full` also has relative positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unseen.studies.catalog.gcog import (
    NEEDS,
    NOTES,
    POSITIONS,
    RECURRENT,
    SMALL,
    SMALL_RECIPE,
    TINY_RECIPE,
    conditions,
    models,
)
from unseen.studies.grid import Grid, Level
from unseen.studies.study import Study

NAME = "gcog/productive"
TRAINED: dict[str, dict[str, Any]] = {"1 and 3": {}, "1": {"train_depths": (1,)}}

SIZES: dict[str, dict[str, Any]] = {
    "smoke": {"task": {**SMALL, "depths": (1, 3, 5)}, "width": 16, "recipe": TINY_RECIPE, "seeds": 1},
    "mini": {
        "task": {**SMALL, "depths": (1, 3, 5)},
        "width": 64,
        "models": RECURRENT,
        "needs": NEEDS,
        "recipe": SMALL_RECIPE,
        "seeds": 3,
        "trained": ("1 and 3",),
    },
    "small": {
        "task": {"coding": "embedding"},
        "width": 64,
        "recipe": {"steps": 20_000, "learning_rate": 5e-4, "validate_every": 1_000},
        "seeds": 3,
    },
    "medium": {"recipe": {"steps": 23_430}, "seeds": 3},
    "full": {"seeds": 5, "positions": tuple(POSITIONS)},
}


def grids(scale: str) -> list[Grid]:
    """Depths of training × models (× positions) × seeds."""
    size = SIZES[scale]
    positions = {name: POSITIONS[name] for name in size.get("positions", ("absolute",))}
    relative: list[dict[str, Level | Sequence[Level]]] = [{"model": RECURRENT, "positions": "relative"}]
    found = []
    for label in size.get("trained", TRAINED):
        options = {**size.get("task", {}), **TRAINED[label]}
        found.append(
            Grid(
                axes={
                    "trained_on": {label: {"task": options}},
                    "model": models(size),
                    "positions": positions if label == "1 and 3" else {"absolute": {}},
                },
                base={
                    "task": {"name": NAME},
                    "recipe": {"name": "gcog-productive-paper", **size.get("recipe", {})},
                    "evaluation": {"conditions": conditions(NAME, options)},
                },
                seeds=range(size["seeds"]),
                without=relative if label == "1 and 3" and "relative" in positions else [],
            )
        )
    return found


STUDY = Study(
    name="gcog-productivity",
    version=1,
    question="Does a network that follows short questions follow longer ones?",
    scales={"smoke": 1, "mini": 30, "small": None, "medium": None, "full": None},
    grids=grids,
    selection="last",
    claims=("gcog/productivity-learned", "gcog/productivity", "gcog/relative-productivity", "gcog/depth-1"),
    notes=NOTES,
)
