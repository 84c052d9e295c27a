"""The study of routers: what brings modules that are trained end to end near the specialization of true gates?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from unseen.studies.catalog import option_axis
from unseen.studies.catalog.rules import _MAIN_SMOKE, _NOTES, _SMOKE_EVALUATION, JUDGED, grid
from unseen.studies.grid import Grid, Level
from unseen.studies.study import Study

if TYPE_CHECKING:
    from unseen.studies.catalog import Axis

ROUTING: Axis = {
    "softmax": {},
    "top-1": {"model": {"router": "topk", "top_k": 1}},
    "top-2": {"model": {"router": "topk", "top_k": 2}},
    "straight-through": {"model": {"router": "straight-through"}},
    "gumbel": {"model": {"router": "gumbel"}},
    "reinforce": {"model": {"router": "reinforce"}},
    "sinkhorn": {"model": {"router": "sinkhorn"}},
    "annealed softmax": {"model": {"temperature": 1.0, "last_temperature": 0.1}},
    "switch loss": {"model": {"aux": ("switch(0.1)",)}},
    "importance loss": {"model": {"aux": ("importance(0.1)",)}},
    "entropy loss": {"model": {"aux": ("entropy(0.1)",)}},
    "module dropout": {"model": {"module_dropout": 0.1}},
    "uniform start": {"model": {"uniform_steps": 500}},
    "rule information": {"model": {"aux": ("mi_rule(0.1)",)}},
    "true rule": {"model": {"aux": ("gt_ce(0.1)",)}},
}
"""Routers, then biases of the softmax. The last two are told the rule of a token: between Modular and GT-Modular."""
AUXILIARY = ("switch loss", "importance loss", "entropy loss", "rule information", "true rule")
TUNED: Axis = option_axis("recipe.learning_rate", (1e-3, 3e-3))
"""Tuned alike for all: a claim reads, of every configuration, the rate with the least error in distribution."""

_SIZES: Mapping[str, dict[str, Any]] = {
    "smoke": {"rules": (2,), "widths": (8,), "tasks": range(1), **_MAIN_SMOKE},
    "mini": {
        "rules": (8,),
        "widths": (32,),
        "tasks": range(6),
        "recipe": {"steps": 4_000, "validate_every": 250},
        "evaluation": {"examples": 4_000, "activation_examples": 4_000, "adaptation_examples": 100},
    },
}
_SMOKE_ROUTING = ("softmax", "top-1", "gumbel", "reinforce", "importance loss")
_FACTORS = (0.001, 0.01, 0.1)
"""The factors λ of auxiliary losses that scale `small` sweeps; `mini` has the last."""
_TERMS = ("switch", "importance", "entropy", "mi_rule", "gt_ce", "z")


def _router_grids(scale: str) -> list[Grid]:
    """Every router and bias, for joint gating and gating by the operation, beside no modules and true gates.

    MLPs on 8 rules. `small` has every auxiliary loss at three factors, and three learning rates.
    """
    size = _SIZES["smoke" if scale == "smoke" else "mini"]
    evaluation = {**(_SMOKE_EVALUATION if scale == "smoke" else size["evaluation"]), "splits": JUDGED["mlp"]}
    recipe = {name: value for name, value in size["recipe"].items() if name != "learning_rate"}
    routing = ROUTING
    learning_rates = TUNED
    if scale == "smoke":
        routing = {level: ROUTING[level] for level in _SMOKE_ROUTING}
    elif scale == "small":
        swept: dict[Level, Any] = {}
        for term, factor in product(_TERMS, _FACTORS):
            name = f"{term}({factor:g})"
            swept[name] = {"model": {"aux": (name,)}}
        without_losses = {level: settings for level, settings in ROUTING.items() if level not in AUXILIARY}
        routing = {**without_losses, **swept}
        learning_rates = option_axis("recipe.learning_rate", (3e-4, 1e-3, 3e-3))
    grids = []
    for number in size["tasks"]:
        one_task: dict[str, Any] = {"task_seeds": (number,), "seeds": (number,)}
        shared = {"rules": size["rules"], "widths": size["widths"], "recipe": recipe, "evaluation": evaluation}
        crossed = grid("mlp", axes={"routing": routing, "learning_rate": learning_rates}, **shared, **one_task)
        # Without modules, and with true gates, there is no router to vary.
        routers = [level for level in routing if level != "softmax"]
        grids.append(replace(crossed, without=[{"gating": ("none", "truth"), "routing": routers}]))
    return grids


ROUTERS = Study(
    name="rules-routers",
    version=1,
    question="Does any router or inductive bias bring modules that are trained end to end near the specialization of true "
    "gates, and does that pay out of distribution?",
    scales={"smoke": 1, "mini": 60, "small": None},
    grids=_router_grids,
    selection="last",
    claims=("rules/R1", "rules/R2", "rules/R3", "rules/R4"),
    notes=(
        "the paper has the softmax alone; routers and biases are ours",
        "each configuration is trained at the same learning rates, and judged at the one with the least error in "
        "distribution (mean over tasks)",
        *_NOTES,
    ),
)
