"""Why models fail: three studies that look inside them with probes, interchange interventions and ablations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from unseen.studies.catalog import option_axis
from unseen.studies.catalog.ctl import TABLE1
from unseen.studies.catalog.quickstart import STUDY as QUICKSTART
from unseen.studies.grid import Grid
from unseen.studies.study import Study


def _symbol_grids(scale: str) -> list[Grid]:
    """Is the symbol after the first function there, and does the second function use it across groups?

    Alternating (A) and repeating (R) groups in the small world of `ctl-table1`, whose trainings these are. Probes say
    whether the symbol after the first function can be read off each layer at the tokens of the first and the second
    function; exchanging the state there says whether the answer follows it, in and out of distribution.
    """
    evaluation = {
        "splits": ("iid", "ood/transition"),
        "examples": 200 if scale == "smoke" else 1_000,
        "analyses": ("probes", "interchange"),
    }
    return [replace(grid, base={**grid.base, "evaluation": evaluation}) for grid in TABLE1.grids(scale)]


SYMBOL = Study(
    name="inside-ctl",
    version=1,
    question="Where networks fail across groups, is the symbol after the first function there, and is it used?",
    scales={"smoke": 1, "mini": 90},
    grids=_symbol_grids,
    notes=("the small world and the narrow models of ctl-table1 at scale mini",),
)


def _order_grids(scale: str) -> list[Grid]:
    """Is the order of two features carried by the later token, or only attended to?

    Task T6 and the ablations of the quickstart, whose trainings these are. Base and source have the second feature at the
    same token and the first feature before or after it. If the later token carries the order, exchanging its state
    moves the answer; if the query compares positions, exchanging the first feature's tokens does: its place in the base,
    which loses it, and its place in the source, where it appears.
    """
    evaluation = {"examples": 200 if scale == "smoke" else 1_000, "analyses": ("probes", "interchange")}
    return [replace(grid, base={**grid.base, "evaluation": evaluation}) for grid in QUICKSTART.grids(scale)]


ORDER = Study(
    name="inside-order",
    version=2,  # 1 exchanged the first feature's token of the base alone, which removes the feature instead of moving it
    question="Is the order of two features carried by the later token, or only attended to?",
    scales={"smoke": 1, "mini": 15},
    grids=_order_grids,
    notes=QUICKSTART.notes,
)

_MODULES: dict[str, dict[str, Any]] = {
    "smoke": {"steps": 100, "examples": 250, "rules": (2,), "tasks": 2},
    "mini": {"steps": 5_000, "examples": 1_000, "rules": (4, 8), "tasks": 5},
}


def _module_grids(scale: str) -> list[Grid]:
    """Do modules that specialise matter more when they are ablated, and does alignment predict it?

    The modular MLP of the rules family with three ways of gating. `specialization` measures how well modules align with
    rules; `ablation` sets the weight of one module to zero and measures how much accuracy is lost.

    The unit is the task, ten of them, with the mean of two seeds. Two criteria were written down before the first run, on
    `iid` and the best weights (they are no registered claim, and what they show is exploratory):

    1. Specialised modules matter more if the mean over tasks of `ablation/mean_drop` with the true gating, minus that with
       joint gating, is above 0 with its 95 % interval.
    2. Alignment predicts it if, among models with learned gating, Spearman's rank correlation of
       `specialization/alignment` (0: perfect) and `ablation/mean_drop` over tasks, averaged over the four combinations of
       gating and number of rules, is below 0 at one-sided 5 % when tasks are permuted within them.
    """
    size = _MODULES[scale]
    evaluation = {
        "examples": size["examples"],
        "activation_examples": 2 * size["examples"],
        "adaptation_examples": 50,
        "analyses": ("specialization", "ablation"),
    }
    return [
        Grid(
            axes={
                "gating": option_axis("model.gating", ("joint", "operation", "truth")),
                "rules": option_axis("task.rules", size["rules"]),
                "task_seed": option_axis("task.task_seed", range(size["tasks"])),
            },
            base={
                "task": {"name": "rules/mlp"},
                "model": {"name": "rules-mlp"},
                "recipe": {"steps": size["steps"]},
                "evaluation": evaluation,
            },
            seeds=range(2),
        )
    ]


MODULES = Study(
    name="inside-modules",
    version=1,
    question="Do modules that specialise matter more when they are ablated, and does alignment predict it?",
    scales={"smoke": 1, "mini": 60},
    grids=_module_grids,
    notes=("rules/mlp in classification, 4 and 8 rules, width 32, short trainings",),
)
