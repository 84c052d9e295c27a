"""`gcog-pool`: is it the fixed pool of training questions that keeps models from answering fresh ones?

    unseen run gcog-pool --scale mini --out pool

The published models answer 98 % of their training trees and 59 to 75 % of fresh ones of the same kind. They were
trained on a fixed pool of questions, in which the answer nearly follows from the question. Here pools of several sizes
stand beside questions that are drawn anew for every batch, with the same budget.
"""

from __future__ import annotations

from typing import Any

from unseen.studies.catalog.gcog import (
    CROSS,
    GRU,
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

NAME = "gcog/systematic-trees"
FRESH = "fresh"
DISTRACTORS: dict[str, dict[str, Any]] = {
    "clean": {"some": {}, "none": {"distractors": (0, 0)}},
    "released": {"some": {"distractors": (0, 5)}, "none": {}},
}
"""Where depths are mixed, the released code puts none."""

SIZES: dict[str, dict[str, Any]] = {
    "smoke": {
        "task": SMALL,
        "width": 16,
        "recipe": TINY_RECIPE,
        "pools": (200,),
        "models": (GRU,),
        "seeds": 1,
        "codings": ("embedding", "integer"),
    },
    # Integer codes are learned so slowly that half an hour is not enough: two pools, and fewer steps.
    "mini": {
        "task": SMALL,
        "width": 64,
        "recipe": SMALL_RECIPE,
        "needs": NEEDS,
        "pools": (2_000, 20_000),
        "models": (GRU,),
        "seeds": 3,
        "codings": ("embedding", "integer"),
        "own": {"integer": {"pools": (2_000,), "needs": {GRU: {**NEEDS[GRU], "steps": 12_000}}}},
    },
    "medium": {"recipe": {"steps": 21_086}, "pools": (10_000, 100_000), "models": (CROSS,), "seeds": 3},
    "full": {
        "pools": (10_000, 40_000, 100_000, 1_000_000),
        "seeds": 3,
        "presets": ("clean", "released"),
        "distractors": ("some", "none"),
    },
}


def grids(scale: str) -> list[Grid]:
    """Presets × distractors × codings × pools × models × seeds."""
    size = SIZES[scale]
    return [
        _grid({**size, **size.get("own", {}).get(coding, {})}, preset, coding)
        for preset in size.get("presets", ("clean",))
        for coding in size.get("codings", ("integer",))
    ]


def _grid(size: dict[str, Any], preset: str, coding: str) -> Grid:
    options = {**size.get("task", {}), "preset": preset, "coding": coding}
    pools: dict[Any, Any] = {str(number): {"task": {"pool": number}} for number in size["pools"]}
    return Grid(
        axes={
            "preset": {preset: {}},
            "distractors": {name: {"task": DISTRACTORS[preset][name]} for name in size.get("distractors", ("some",))},
            "coding": {coding: {}},
            "pool": {**pools, FRESH: {}},
            "model": models(size),
        },
        base={
            "task": {"name": NAME, **options},
            "recipe": {"name": "gcog-systematic-trees-paper", **size.get("recipe", {})},
            "evaluation": {"conditions": conditions(NAME, options)},
        },
        seeds=range(size["seeds"]),
    )


STUDY = Study(
    name="gcog-pool",
    version=1,
    question="Does a network fail on fresh questions of a known kind only because it was trained on a fixed pool?",
    scales={"smoke": 1, "mini": 30, "medium": None, "full": None},
    grids=grids,
    selection="last",
    claims=("gcog/pool",),
    notes=NOTES[:1] + NOTES[2:],
)
