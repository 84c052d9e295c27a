"""`gcog-rsa`: does training bring what a model represents closer to the stimulus, or to the answer (gCOG, figure 7)?

    unseen run gcog-rsa --scale mini --out rsa

800 examples with the most distractors; cosines of the last hidden states before and after training, against those of
the stimuli and of the answers.
"""

from __future__ import annotations

from typing import Any

from unseen.studies.catalog.gcog import NOTES, models
from unseen.studies.catalog.gcog_distractors import NAME, SIZES
from unseen.studies.grid import Grid
from unseen.studies.study import Study


def grids(scale: str) -> list[Grid]:
    """Models × seeds, trained as in `gcog-distractors`."""
    size: dict[str, Any] = SIZES[scale]
    return [
        Grid(
            axes={"model": models(size)},
            base={
                "task": {"name": NAME, **size.get("task", {})},
                "recipe": {"name": "gcog-distractor-paper", **size.get("recipe", {})},
                "evaluation": {"conditions": ("train", "iid"), "analyses": ("similarity",)},
            },
            seeds=range(size["seeds"]),
        )
    ]


STUDY = Study(
    name="gcog-rsa",
    version=1,
    question="Do the models that cope with many distractors represent the stimulus, or the answer, more closely?",
    scales={"smoke": 1, "mini": 30, "small": None, "medium": None, "full": None},
    grids=grids,
    selection="last",
    claims=("gcog/similarity",),
    notes=NOTES,
)
