"""`ctl-table1`: the CTL++ paper's main table, three models on chains whose groups alternate (A) or repeat (R).

    unseen run ctl-table1 --scale mini --out table1

`mini` and `small` are a world of 4 symbols and 8 functions with narrow models, which Bi-LSTM and NDR learn and the
Transformer does not; `medium` is the
paper's world and models for a fifth of their steps and of their seeds; `full` is the published size.
"""

from __future__ import annotations

from typing import Any

from unseen.studies.catalog.ctl import BILSTM, NDR, NOTES, TINY, TINY_MODELS, TINY_RECIPE, TRANSFORMER, Changes, models
from unseen.studies.grid import Grid
from unseen.studies.study import Study

SMALL_WORLD: dict[str, Any] = {
    "symbols": 4,
    "functions": 8,
    "max_length": 5,
    "train_size": 5_000,
    "iid_size": 400,
    "ood_size": 1_000,
    "always_include": "both",
}
"""Every function alone and every legal pair are in training: without them little is learned in this time. Worlds of 12,
16 and 24 functions with shorter chains were tried: the Transformer does not learn there either."""
NARROW: Changes = {
    BILSTM: {"model": {"embedding": 64, "width": 64, "dropout": 0.2}, "recipe": {"steps": 6_000}},
    TRANSFORMER: {
        "model": {"width": 64, "feedforward": 128, "layers": 5, "dropout": 0.0, "key_dropout": 0.0},
        "recipe": {"steps": 10_000, "learning_rate": 5e-4},
    },
    NDR: {
        "model": {"width": 64, "feedforward": 128, "layers": 5, "extra_layers": 0, "dropout": 0.1},
        "recipe": {"steps": 4_000},
    },
}
QUICK = {"learning_rate": 1e-3, "batch": 64, "warmup": 200, "validate_every": 250, "validation_examples": 400}

SIZES: dict[str, dict[str, Any]] = {
    "smoke": {"task": TINY, "recipe": TINY_RECIPE, "models": TINY_MODELS, "seeds": 2},
    "mini": {"task": SMALL_WORLD, "recipe": QUICK, "models": NARROW, "seeds": 5},
    "small": {"task": SMALL_WORLD, "recipe": QUICK, "models": NARROW, "seeds": 25},
    "medium": {
        "models": {
            BILSTM: {"recipe": {"steps": 16_000}},
            TRANSFORMER: {"recipe": {"steps": 60_000}},
            NDR: {"recipe": {"steps": 16_000}},
        },
        "seeds": 5,
    },
    "full": {"seeds": 25},
}


def grids(scale: str) -> list[Grid]:
    """Tasks × models × seeds."""
    size = SIZES[scale]
    return [
        Grid(
            axes={
                "task": {name: {"task": {"name": name}} for name in ("ctl/A", "ctl/R")},
                "model": models("ctl/A", size.get("models")),
            },
            base={
                "task": size.get("task", {}),
                "recipe": size.get("recipe", {}),
                "evaluation": {"conditions": ("iid", "ood/transition"), "analyses": ("representation",)},
            },
            seeds=range(size["seeds"]),
        )
    ]


STUDY = Study(
    name="ctl-table1",
    version=1,
    question="Do networks that have learned to compose known functions compose them across groups that they never saw "
    "together, and does it depend on how they represent what a function returns?",
    scales={"smoke": 1, "mini": 45, "small": None, "medium": None, "full": None},
    grids=grids,
    selection="last",
    claims=(
        "ctl/K1",
        "ctl/K2",
        "ctl/K3",
        "ctl/K4",
        "ctl/K6",
        "ctl/K6-counted",
        "ctl/K7",
        "ctl/K7-clusters",
        "ctl/adding-up",
        "ctl/table1",
        "ctl/spreads",
    ),
    notes=NOTES,
)
