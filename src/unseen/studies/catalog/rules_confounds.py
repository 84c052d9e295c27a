"""`rules-confounds`: how much of the modularity paper's findings is owed to how its models were sized.

    unseen run rules-confounds --scale mini --out confounds

Three sizes are tried as they were and freed: the encoder of the attention model, too narrow to hold what a token must
show of all its rules; the hidden layer that chooses its modules by the rule, of two units at 32 rules; the state that
recurrent modules share, which shrinks with the number of rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from unseen.studies.catalog.retrieval import Axis
from unseen.studies.catalog.rules import NOTES, RULES, SEEDS, TASK_SEEDS, WIDTHS, grid
from unseen.studies.grid import Grid, Level
from unseen.studies.study import Study

CONFOUNDS: dict[str, dict[str, Axis]] = {
    "mha": {
        "encoder": {"fixed": {}, "scaled": {"model": {"encoder": "scaled"}}},
        "gate_hidden": {"head": {}, "width": {"model": {"gate_hidden": "width"}}},
    },
    "rnn": {"shared_state": {"shrunk": {}, "whole": {"model": {"state": "whole"}}}},
}
"""The sizes of each architecture that are tried, the paper's first."""
_WITHOUT: dict[str, dict[str, Level | Sequence[Level]]] = {
    "mha": {"gating": ("none", "joint", "truth"), "gate_hidden": "width"},  # only `operation` has such a layer
    "rnn": {"gating": "none", "shared_state": "whole"},  # one module shares its state with nobody
}

SIZES: dict[str, dict[str, Any]] = {
    "smoke": {
        "rules": (8,),
        "widths": (8,),
        "task_seeds": (0,),
        "seeds": (0,),
        "recipe": {"steps": 30, "learning_rate": 1e-3, "batch": 32, "validate_every": 15, "validation_examples": 250},
        "evaluation": {"examples": 250, "activation_examples": 500, "adaptation_examples": 10},
    },
    # At width 16 eight rules are as limited as 16 at the paper's smallest width.
    "mini": {
        "rules": (8,),
        "widths": (16,),
        "task_seeds": (0, 1, 2),
        "seeds": (0,),
        "recipe": {"steps": 5_000, "learning_rate": 1e-3, "batch": 64, "validate_every": 250},
        "evaluation": {
            "conditions": ("iid", "ood/length=30,amplitude=2"),
            "examples": 4_000,
            "activation_examples": 10_000,
            "adaptation_examples": 100,
        },
    },
    "full": {"rules": RULES, "widths": WIDTHS, "task_seeds": TASK_SEEDS, "seeds": SEEDS},
}


def grids(scale: str) -> list[Grid]:
    """One grid for each architecture."""
    return [
        replace(grid(architecture, searches=(1,), axes=axes, **SIZES[scale]), without=[_WITHOUT[architecture]])
        for architecture, axes in CONFOUNDS.items()
    ]


STUDY = Study(
    name="rules-confounds",
    version=1,
    question="How much of the difference between modular and monolithic models comes from the sizes they were given?",
    scales={"smoke": 1, "mini": 45, "full": None},
    grids=grids,
    selection="last",
    claims=("rules/C3", "rules/C3-trend", "rules/C4", "rules/C4-width", "rules/C5", "rules/C5-state"),
    notes=NOTES,
)
