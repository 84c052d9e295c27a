"""`gcog-layers`: the BERT-like series, layers × heads, on all kinds of generalization (gCOG, figure 6).

unseen run gcog-layers --scale mini --out layers
"""

from __future__ import annotations

from typing import Any

from unseen.studies.catalog.gcog import BERT, NOTES, SMALL, SMALL_RECIPE, TINY_RECIPE, conditions
from unseen.studies.grid import Grid
from unseen.studies.study import Study

TASKS = ("gcog/distractor", "gcog/systematic-operators", "gcog/systematic-trees", "gcog/productive")

SIZES: dict[str, dict[str, Any]] = {
    "smoke": {
        "task": SMALL,
        "own": {"gcog/distractor": {"ood_distractors": (4,)}, "gcog/productive": {"depths": (1, 3, 5)}},
        "model": {"width": 16, "hidden": 32},
        "layers": (1, 2),
        "heads": (1, 4),
        "recipe": TINY_RECIPE,
        "seeds": 1,
    },
    "mini": {
        "task": SMALL,
        "own": {"gcog/distractor": {"ood_distractors": (6, 9, 12)}},
        "model": {"width": 64, "hidden": 128},
        "layers": (1, 2),
        "heads": (1, 4),
        "recipe": SMALL_RECIPE,
        "seeds": 3,
        "tasks": TASKS[:1],
    },
    "medium": {"recipe": {"steps": 11_700}, "layers": (1, 4), "heads": (1, 8), "seeds": 3},
    "full": {"layers": (1, 2, 3, 4), "heads": (1, 4, 8), "seeds": 5},
}


def grids(scale: str) -> list[Grid]:
    """Tasks × layers × heads × seeds."""
    size, found = SIZES[scale], []
    for name in size.get("tasks", TASKS):
        options = {**size.get("task", {}), **size.get("own", {}).get(name, {})}
        found.append(
            Grid(
                axes={
                    "task": {name: {"task": {"name": name, **options}}},
                    "layers": {number: {"model": {"layers": number}} for number in size["layers"]},
                    "heads": {number: {"model": {"heads": number}} for number in size["heads"]},
                },
                base={
                    "model": {"name": BERT, **size.get("model", {})},
                    "recipe": {"name": "gcog-bert-paper", **size.get("recipe", {})},
                    "evaluation": {"conditions": conditions(name, options)},
                },
                seeds=range(size["seeds"]),
            )
        )
    return found


STUDY = Study(
    name="gcog-layers",
    version=1,
    question="Do more layers or more heads help a Transformer with what it has not seen?",
    scales={"smoke": 1, "mini": 30, "medium": None, "full": None},
    grids=grids,
    selection="last",
    claims=("gcog/layers-distractors", "gcog/layers-operators", "gcog/layers-trees", "gcog/layers-productivity"),
    notes=NOTES,
)
