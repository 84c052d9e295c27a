"""`gcog-systematicity`: known operators with objects, or with each other, that they never met (gCOG, figures 4 and 9).

    unseen run gcog-systematicity --scale mini --out systematicity

Two tasks: single operators about objects they were not trained with, and trees of operators that were not trained
together. `full` adds the published division of operators and objects, half of whose test combinations are training
combinations (and what is left without those), and relative positions for trees.
"""

from __future__ import annotations

from typing import Any

from unseen.studies.catalog.gcog import (
    GRU,
    LEARNED_QUICKLY,
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
from unseen.studies.catalog.retrieval import Axis
from unseen.studies.grid import Grid
from unseen.studies.study import Study

OPERATORS, TREES = TASKS = ("gcog/systematic-operators", "gcog/systematic-trees")
SPLITS: dict[str, dict[str, Any]] = {
    name: {"task": {"split": name}} for name in ("clean", "released", "released-minus-leak")
}

_WHOLE = {"splits": tuple(SPLITS), "positions": tuple(POSITIONS)}
SIZES: dict[str, dict[str, Any]] = {
    "smoke": {"task": SMALL, "width": 16, "recipe": TINY_RECIPE, "seeds": 1},
    # Cross-attention does not learn trees there in 6 000 steps; the GRU does, and the faster of the recurrent models.
    "mini": {
        "task": SMALL,
        "width": 64,
        "recipe": SMALL_RECIPE,
        "models": LEARNED_QUICKLY,
        "needs": NEEDS,
        "seeds": 3,
        "own": {TREES: {"models": (GRU,)}},
    },
    "small": {
        "task": {"coding": "embedding"},
        "width": 64,
        "recipe": {"steps": 20_000, "learning_rate": 5e-4, "validate_every": 1_000},
        "seeds": 3,
    },
    "medium": {"recipe": {"steps": 20_000}, "seeds": 3},
    "full": {"seeds": 5, **_WHOLE},
}


def grids(scale: str) -> list[Grid]:
    """Tasks × models × seeds; for operators × splits, for trees × positions."""
    size = SIZES[scale]
    own: dict[str, dict[str, Axis]] = {
        OPERATORS: {"split": {name: SPLITS[name] for name in size.get("splits", ("clean",))}},
        TREES: {"positions": {name: POSITIONS[name] for name in size.get("positions", ("absolute",))}},
    }
    return [_grid(name, {**size, **size.get("own", {}).get(name, {})}, own[name]) for name in TASKS]


def _grid(name: str, size: dict[str, Any], more: dict[str, Axis]) -> Grid:
    options, relative = size.get("task", {}), "relative" in more.get("positions", ())
    return Grid(
        axes={"task": {name: {"task": {"name": name}}}, "model": models(size), **more},
        base={
            "task": options,
            "recipe": {"name": f"{name.replace('/', '-')}-paper", **size.get("recipe", {})},
            "evaluation": {"conditions": conditions(name, options)},
        },
        seeds=range(size["seeds"]),
        without=[{"model": RECURRENT, "positions": "relative"}] if relative else [],
    )


STUDY = Study(
    name="gcog-systematicity",
    version=1,
    question="Does a network that knows some combinations of operators and objects, or of operators, know the others?",
    scales={"smoke": 1, "mini": 30, "small": None, "medium": None, "full": None},
    grids=grids,
    selection="last",
    claims=(
        "gcog/operators-learned",
        "gcog/operators",
        "gcog/leak",
        "gcog/trees-learned",
        "gcog/trees",
        "gcog/trees-values",
        "gcog/relative-trees",
    ),
    notes=NOTES,
)
