"""`ctl-lengths`: the original compositional table lookup, trained on short chains and tested on longer ones.

    unseen run ctl-lengths --scale mini --out lengths

Models are those of the data router's paper, in both orders of reading. `mini` is a world of 4 symbols.
"""

from __future__ import annotations

from typing import Any

from unseen.studies.catalog.ctl import BILSTM, NDR, TINY_MODELS, TINY_RECIPE, TRANSFORMER, Changes, models
from unseen.studies.catalog.ctl_table1 import QUICK
from unseen.studies.grid import Grid
from unseen.studies.study import Study

PUBLISHED: Changes = {
    BILSTM: {"model": {"embedding": 16, "width": 200}},
    TRANSFORMER: {"model": {"layers": 11, "key_dropout": 0.0, "read_at": "end"}},
    NDR: {"model": {"form": "original", "layers": 14, "extra_layers": 0, "heads": 1, "read_at": "end"}},
}
"""The models as they were for this task."""
_NARROW: dict[str, Any] = {"width": 64, "feedforward": 128, "layers": 9, "read_at": "end"}
NARROW: Changes = {
    BILSTM: {"model": {"embedding": 64, "width": 64, "dropout": 0.2}, "recipe": {"steps": 6_000}},
    TRANSFORMER: {
        "model": {**_NARROW, "dropout": 0.0, "key_dropout": 0.0},
        "recipe": {"steps": 8_000, "learning_rate": 5e-4},
    },
    NDR: {
        "model": {**_NARROW, "form": "original", "extra_layers": 0, "heads": 1, "dropout": 0.1},
        "recipe": {"steps": 4_000, "clip": 1.0},
    },
}

SIZES: dict[str, dict[str, Any]] = {
    "smoke": {
        "task": {
            "symbols": 4,
            "composed": 5,
            "max_length": 3,
            "longer": ((4, 5), (6, 7)),
            "train_size": 150,
            "iid_size": 20,
        },
        "recipe": TINY_RECIPE,
        "models": TINY_MODELS,
        "seeds": 1,
    },
    "mini": {
        "task": {"symbols": 4, "composed": 5, "longer": ((6, 6), (7, 8)), "train_size": 5_000, "iid_size": 300},
        "recipe": QUICK,
        "models": NARROW,
        "seeds": 3,
        "orders": ("backward",),
    },
    "full": {"models": PUBLISHED, "seeds": 10},
}


def grids(scale: str) -> list[Grid]:
    """Models × orders of reading × seeds."""
    size = SIZES[scale]
    return [
        Grid(
            axes={
                "model": models("ctl/lengths", size["models"]),
                "order": {name: {"task": {"order": name}} for name in size.get("orders", ("forward", "backward"))},
            },
            base={"task": {"name": "ctl/lengths", **size.get("task", {})}, "recipe": size.get("recipe", {})},
            seeds=range(size["seeds"]),
        )
    ]


STUDY = Study(
    name="ctl-lengths",
    version=1,
    question="Does a network that composes up to five functions compose ten?",
    scales={"smoke": 1, "mini": 45, "full": None},
    grids=grids,
    selection="last",
    claims=("ctl/lengths",),
    notes=("float32 throughout (published: mixed precision in training)",),
)
