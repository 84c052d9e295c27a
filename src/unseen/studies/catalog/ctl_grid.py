"""`ctl-grid`: how much overlap between two paths lets a network change from one to the other (CTL++, variant S).

    unseen run ctl-grid --scale mini --out grid
    unseen results grid --grid bridge,shared

Axes are the functions of the bridge that both paths cross (the paper's o) and the symbols at which both may enter them
(its k). `full` is the published grid of 20 settings × 3 models × 5 seeds.
"""

from __future__ import annotations

from typing import Any

from unseen.studies.catalog.ctl import BILSTM, MODELS, NDR, NOTES, TINY, TINY_MODELS, TINY_RECIPE, TRANSFORMER, models
from unseen.studies.catalog.ctl_table1 import NARROW, QUICK
from unseen.studies.grid import Grid
from unseen.studies.study import Study

BRIDGES, SHARED = (4, 8, 12, 16), (2, 3, 4, 5, 6)
_NARROW = {**NARROW, NDR: {**NARROW[NDR], "model": {**NARROW[NDR]["model"], "layers": 6}}}  # as many as functions

SIZES: dict[str, dict[str, Any]] = {
    "smoke": {
        "bridges": (4,),
        "shared": (1, 3),
        "seeds": 1,
        "models": TINY_MODELS,
        "recipe": TINY_RECIPE,
        "task": {**TINY, "max_length": 4, "train_size": 100, "on_shortage": "take_all"},
    },
    "mini": {
        "bridges": (4, 8),
        "shared": (1, 3),
        "seeds": 3,
        "names": (BILSTM, NDR),
        "models": _NARROW,
        "recipe": QUICK,
        "task": {
            "symbols": 4,
            "functions": 16,
            "train_size": 5_000,
            "iid_size": 400,
            "ood_size": 500,
            "always_include": "both",
        },
    },
    "medium": {
        "bridges": (4, 16),
        "shared": (2, 6),
        "seeds": 5,
        "models": {
            BILSTM: {"recipe": {"steps": 16_000}},
            TRANSFORMER: {"recipe": {"steps": 60_000}},
            NDR: {"recipe": {"steps": 16_000}},
        },
    },
    "full": {"bridges": BRIDGES, "shared": SHARED, "seeds": 5},
}


def grids(scale: str) -> list[Grid]:
    """Models × bridges × shared symbols × seeds."""
    size = SIZES[scale]
    return [
        Grid(
            axes={
                "model": models("ctl/S", size.get("models"), size.get("names", MODELS)),
                "bridge": {number: {"task": {"bridge": number}} for number in size["bridges"]},
                "shared": {number: {"task": {"shared": number}} for number in size["shared"]},
            },
            base={
                "task": {"name": "ctl/S", **size.get("task", {})},
                "recipe": size.get("recipe", {}),
                "evaluation": {"conditions": ("iid", "ood/transition")},
            },
            seeds=range(size["seeds"]),
        )
    ]


STUDY = Study(
    name="ctl-grid",
    version=1,
    question="How many functions must two paths have in common, and at how many symbols, before a network mixes them?",
    scales={"smoke": 1, "mini": 45, "medium": None, "full": None},
    grids=grids,
    selection="last",
    claims=("ctl/K5",),
    notes=NOTES,
)
