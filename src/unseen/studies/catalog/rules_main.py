"""`rules-main`: the modularity paper's study. Modules or none, chosen how, on tasks of 2 to 32 rules.

    unseen run rules-main --scale mini --out rules

`full` is the published grid of 20 000 models; `small` its complete slice of narrow MLPs; `mini` is what learns within
45 minutes on two cores.
"""

from __future__ import annotations

from typing import Any

from unseen.studies.catalog.rules import ARCHITECTURES, NOTES, RULES, SEEDS, TASK_SEEDS, WIDTHS, grid
from unseen.studies.grid import Grid
from unseen.studies.study import Study

_SMOKE: dict[str, Any] = {
    "recipe": {"steps": 50, "learning_rate": 1e-3, "validate_every": 25, "batch": 64, "validation_examples": 256},
    "evaluation": {"examples": 250, "activation_examples": 500, "adaptation_examples": 10},
}
_MINI: dict[str, dict[str, Any]] = {
    "mlp": {"rules": (2, 8, 32), "task_seeds": range(5), "recipe": {"steps": 5_000}},
    "mha": {"rules": (2,), "task_seeds": range(3), "recipe": {"steps": 5_000, "batch": 64}},
    "rnn": {"rules": (2,), "task_seeds": range(3), "recipe": {"steps": 6_000, "batch": 32}},
}
"""At ten times the published learning rate. MLPs level off; attention and recurrent models get far above chance and
still rise at the end, and with 8 rules they would be nowhere in this time."""


def grids(scale: str) -> list[Grid]:
    """One grid per architecture, at `mini` also per task: each of its tasks is learned by one seed."""
    if scale == "smoke":
        return [grid(name, rules=(2,), widths=(8,), task_seeds=(0,), seeds=(0,), **_SMOKE) for name in ARCHITECTURES]
    if scale == "mini":
        return [
            grid(
                name,
                rules=size["rules"],
                searches=(1,),
                task_seeds=(number,),
                seeds=(number,),
                recipe={"learning_rate": 1e-3, "validate_every": 250, **size["recipe"]},
                evaluation={"examples": 4_000, "activation_examples": 4_000, "adaptation_examples": 100},
            )
            for name, size in _MINI.items()
            for number in size["task_seeds"]
        ]
    slim = [grid("mlp", rules=RULES, task_seeds=TASK_SEEDS, seeds=SEEDS)]
    if scale == "small":
        return slim
    if scale == "medium":
        return slim + [
            grid(name, rules=(2, 8), task_seeds=(0, 1), seeds=(0, 1), recipe={"steps": 100_000})
            for name in ARCHITECTURES
            if name != "mlp"
        ]
    return [grid(name, rules=RULES, widths=WIDTHS, task_seeds=TASK_SEEDS, seeds=SEEDS) for name in ARCHITECTURES]


STUDY = Study(
    name="rules-main",
    version=1,
    question="Do modular networks do better than a monolithic one where the data are made by rules, and do their "
    "modules specialize in the rules?",
    scales={"smoke": 1, "mini": 45, "small": None, "medium": None, "full": None},
    grids=grids,
    selection="last",
    claims=(
        *(f"rules/F{number}" for number in range(1, 10)),
        "rules/votes",
        "rules/flipped",
        "rules/votes-flipped",
        "rules/levels",
        "rules/C1",
        "rules/C2",
        "rules/C6",
        "rules/C7",
    ),
    notes=NOTES,
)
