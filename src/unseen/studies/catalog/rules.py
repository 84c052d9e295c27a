"""The studies of the modularity paper: its main comparison, and the sizes that may mislead in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unseen.studies.catalog import option_axis
from unseen.studies.grid import Grid, Level
from unseen.studies.study import Study

if TYPE_CHECKING:
    from unseen.studies.catalog import Axis

ARCHITECTURES = ("mlp", "mha", "rnn")
SETTINGS: Axis = option_axis("task.setting", ("classification", "regression"))

_SPECIALIZED = {"evaluation": {"analyses": ("specialization",)}}
GATINGS: Axis = {
    "none": {"model": {"gating": "none"}},  # nothing chooses modules, so there is nothing to measure
    **{name: {"model": {"gating": name}, **_SPECIALIZED} for name in ("joint", "operation", "truth")},
}

SEEDS = range(5)
"""Of tasks and of models."""
RULES, WIDTHS = (2, 4, 8, 16, 32), (32, 64, 128, 256, 512)

# Examples per split, for activation matrices, and for each of the 100 rule distributions of Adaptation.
PUBLISHED: dict[str, dict[str, Any]] = {
    "mlp": {"examples": 100_000, "activation_examples": 1_000_000, "adaptation_examples": 10_000},
    "mha": {"examples": 100_000, "activation_examples": 1_000_000, "adaptation_examples": 10_000},
    "rnn": {"examples": 25_600, "activation_examples": 100_000, "adaptation_examples": 10_000},
}
_SMOKE_EVALUATION = {"examples": 250, "activation_examples": 500, "adaptation_examples": 10}

_NOTES = (
    "the logged curve and the selection of the best checkpoint use the same fixed validation set (released code: two "
    "fresh ones at every point)",
    "Adaptation in its exact linear form where that holds, else against the realised rule frequencies",
)


def grid(
    architecture: str,
    *,
    rules: Iterable[int],
    widths: Iterable[int] = (32,),
    searches: Iterable[int] = (1, 2),
    task_seeds: Iterable[int],
    seeds: Iterable[int],
    recipe: Mapping[str, Any] | None = None,
    evaluation: Mapping[str, Any] | None = None,
    axes: Mapping[str, Axis] | None = None,
) -> Grid:
    """Settings × gatings × rules × widths × tasks of one architecture (MHA: × searches).

    The recipe is the published one with the changes of `recipe`; `axes` are added before the tasks.
    """
    search_axis: dict[str, Axis] = {}
    if architecture == "mha":
        search_axis["search"] = option_axis("task.search", searches)
    return Grid(
        axes={
            "architecture": {architecture: {}},
            **search_axis,
            "setting": SETTINGS,
            "gating": GATINGS,
            "rules": option_axis("task.rules", rules),
            "width": option_axis("model.width", widths),
            **(axes or {}),
            "task_seed": option_axis("task.task_seed", task_seeds),
        },
        base={
            "task": {"name": f"rules/{architecture}"},
            "model": {"name": f"rules-{architecture}"},
            "recipe": {"name": f"rules-{architecture}-paper", **(recipe or {})},
            "evaluation": PUBLISHED[architecture] if evaluation is None else evaluation,
        },
        seeds=tuple(seeds),
    )


# -- the main comparison ----------------------------------------------------------------------------------------------

_MAIN_SMOKE: dict[str, Any] = {
    "recipe": {"steps": 50, "learning_rate": 1e-3, "validate_every": 25, "batch": 64, "validation_examples": 256},
    "evaluation": _SMOKE_EVALUATION,
}
_MAIN_MINI: dict[str, dict[str, Any]] = {
    "mlp": {"rules": (2, 8, 32), "task_seeds": range(5), "recipe": {"steps": 5_000}},
    "mha": {"rules": (2,), "task_seeds": range(3), "recipe": {"steps": 5_000, "batch": 64}},
    "rnn": {"rules": (2,), "task_seeds": range(3), "recipe": {"steps": 6_000, "batch": 32}},
}
"""At ten times the published learning rate. MLPs level off; attention and recurrent models get far above chance and
still rise at the end, and with 8 rules they would learn nothing in this time."""


def _main_grids(scale: str) -> list[Grid]:
    """The modularity paper's study: modules or none, chosen in different ways, on tasks of 2 to 32 rules.

    `full` is the published grid of 20 000 models, `small` its complete part of narrow MLPs, and `mini` what can be
    learned within 45 minutes on two cores, where each task is learned by one seed.
    """
    if scale == "smoke":
        return [
            grid(name, rules=(2,), widths=(8,), task_seeds=(0,), seeds=(0,), **_MAIN_SMOKE) for name in ARCHITECTURES
        ]
    if scale == "mini":
        grids = []
        for name, size in _MAIN_MINI.items():
            recipe = {"learning_rate": 1e-3, "validate_every": 250, **size["recipe"]}
            evaluation = {"examples": 4_000, "activation_examples": 4_000, "adaptation_examples": 100}
            for number in size["task_seeds"]:
                one_task: dict[str, Any] = {"task_seeds": (number,), "seeds": (number,)}
                grids.append(
                    grid(name, rules=size["rules"], searches=(1,), recipe=recipe, evaluation=evaluation, **one_task)
                )
        return grids
    all_seeds: dict[str, Any] = {"task_seeds": SEEDS, "seeds": SEEDS}
    if scale == "full":
        return [grid(name, rules=RULES, widths=WIDTHS, **all_seeds) for name in ARCHITECTURES]
    narrow_mlps = grid("mlp", rules=RULES, **all_seeds)
    if scale == "small":
        return [narrow_mlps]
    few_seeds: dict[str, Any] = {"task_seeds": (0, 1), "seeds": (0, 1)}
    shortened = {"steps": 100_000}
    return [narrow_mlps, *(grid(name, rules=(2, 8), recipe=shortened, **few_seeds) for name in ("mha", "rnn"))]


MAIN = Study(
    name="rules-main",
    version=1,
    question="Do modular networks do better than a monolithic one where the data are made by rules, and do their "
    "modules specialize in the rules?",
    scales={"smoke": 1, "mini": 45, "small": None, "medium": None, "full": None},
    grids=_main_grids,
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
    notes=_NOTES,
)


# -- confounded sizes -------------------------------------------------------------------------------------------------

_FREED_SIZES: dict[str, dict[str, Axis]] = {
    "mha": {
        "encoder": {"fixed": {}, "scaled": {"model": {"encoder": "scaled"}}},
        "gate_hidden": {"head": {}, "width": {"model": {"gate_hidden": "width"}}},
    },
    "rnn": {"shared_state": {"shrunk": {}, "whole": {"model": {"state": "whole"}}}},
}
"""The sizes of each architecture that are tried, the paper's first."""
_WITHOUT: dict[str, dict[str, Level | Sequence[Level]]] = {
    "mha": {"gating": ("none", "joint", "truth"), "gate_hidden": "width"},  # only `operation` has such a layer
    "rnn": {"gating": "none", "shared_state": "whole"},  # a single module has no shared state
}
_CONFOUNDS_SIZES: dict[str, dict[str, Any]] = {
    "smoke": {
        "rules": (8,),
        "widths": (8,),
        "task_seeds": (0,),
        "seeds": (0,),
        "recipe": {"steps": 30, "learning_rate": 1e-3, "batch": 32, "validate_every": 15, "validation_examples": 250},
        "evaluation": _SMOKE_EVALUATION,
    },
    # At width 16 eight rules are as limited as 16 at the paper's smallest width.
    "mini": {
        "rules": (8,),
        "widths": (16,),
        "task_seeds": (0, 1, 2),
        "seeds": (0,),
        "recipe": {"steps": 5_000, "learning_rate": 1e-3, "batch": 64, "validate_every": 250},
        "evaluation": {
            "splits": ("iid", "ood/length=30,amplitude=2"),
            "examples": 4_000,
            "activation_examples": 10_000,
            "adaptation_examples": 100,
        },
    },
    "full": {"rules": RULES, "widths": WIDTHS, "task_seeds": SEEDS, "seeds": SEEDS},
}


def _confounds_grids(scale: str) -> list[Grid]:
    """How much of the modularity paper's findings comes from the sizes of its models?

    Three sizes are tried as published and freed: the encoder of the attention model, too narrow to hold what a token
    must show of all its rules; the hidden layer that chooses its modules by the rule, of two units at 32 rules; and the
    state that recurrent modules share, which shrinks with the number of rules.
    """
    grids = []
    for architecture, axes in _FREED_SIZES.items():
        crossed = grid(architecture, searches=(1,), axes=axes, **_CONFOUNDS_SIZES[scale])
        grids.append(replace(crossed, without=[_WITHOUT[architecture]]))
    return grids


CONFOUNDS = Study(
    name="rules-confounds",
    version=1,
    question="How much of the difference between modular and monolithic models comes from the sizes they were given?",
    scales={"smoke": 1, "mini": 45, "full": None},
    grids=_confounds_grids,
    selection="last",
    claims=("rules/C3", "rules/C3-trend", "rules/C4", "rules/C4-width", "rules/C5", "rules/C5-state"),
    notes=_NOTES,
)
