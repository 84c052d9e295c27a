"""The studies of the modularity paper: its main comparison, the sizes that may mislead in it, scarce data, and routers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
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
_LONGEST = "ood/length=30,amplitude=2"
JUDGED = {"mlp": ("iid", "ood/amplitude=2"), "mha": ("iid", _LONGEST), "rnn": ("iid", _LONGEST)}
"""The splits that claims judge, which are on the learning curves."""
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
            "evaluation": {
                **(PUBLISHED[architecture] if evaluation is None else evaluation),
                "curve": JUDGED[architecture],
            },
        },
        seeds=tuple(seeds),
    )


# -- the main comparison ----------------------------------------------------------------------------------------------

_MAIN_SMOKE: dict[str, Any] = {
    "recipe": {"steps": 50, "learning_rate": 1e-3, "validate_every": 25, "batch": 64, "validation_examples": 256},
    "evaluation": _SMOKE_EVALUATION,
}
_MAIN_MINI: dict[str, dict[str, Any]] = {
    "mlp": {"rules": (2, 8, 32), "widths": (16, 32, 64), "task_seeds": range(5), "recipe": {"steps": 5_000}},
    "mha": {"rules": (2,), "task_seeds": range(3), "recipe": {"steps": 5_000, "batch": 64}},
    "rnn": {"rules": (2,), "task_seeds": range(3), "recipe": {"steps": 6_000, "batch": 32}},
}
"""At ten times the published learning rate. MLPs level off; attention and recurrent models get far above chance and
still rise at the end, and with 8 rules they would learn nothing in this time."""

SAMPLE = "random sample of the paper's 1000 experiments at width 32"
"""The level of the axis `sample` that every run of the random sample has: its votes stand for the paper's."""
SAMPLED = 100
_ALL_EXPERIMENTS = tuple(
    product((("mlp", 0), ("mha", 1), ("mha", 2), ("rnn", 0)), ("classification", "regression"), RULES, SEEDS)
)
"""The sampling frame: architecture with its search (0: it has none), setting, number of rules and task seed of the
paper's 200 experiments at width 32."""
_SIZED: dict[str, dict[str, Any]] = {
    # As much steps times learning rate as in the paper.
    "mlp": {"tasks": 20, "rules": RULES, "recipe": {"steps": 10_000}},
    "mha": {"tasks": 5, "rules": (2, 8), "recipe": {"steps": 20_000, "batch": 64}},
    "rnn": {"tasks": 5, "rules": (2, 8), "recipe": {"steps": 20_000, "batch": 32}},
}
"""Tasks, numbers of rules and recipes below `full`. Attention and recurrent models learn nothing about more rules in
an affordable time."""
_EVALUATION = {"examples": 20_000, "activation_examples": 20_000, "adaptation_examples": 100}


def _quick_recipe(architecture: str) -> dict[str, Any]:
    """Ten times the published learning rate, and 20 validations, as published."""
    recipe = _SIZED[architecture]["recipe"]
    return {"learning_rate": 1e-3, "validate_every": recipe["steps"] // 20, **recipe}


def draw_task_seeds(count: int) -> tuple[int, ...]:
    """Tasks drawn at random from task seeds 5 to 1004; the outcome of 0 to 4 was seen at `mini`.

    >>> draw_task_seeds(3)
    (834, 856, 210)
    """
    from unseen.randomness import stream  # loads NumPy

    order = stream("study", "rules-main", "tasks").block().permutation(1_000)
    return tuple(5 + int(number) for number in order[:count])


def _new_task_grids() -> list[Grid]:
    """Tasks that nobody has looked at, each learned by one seed of its own: one grid per architecture and task."""
    grids = []
    for name, size in _SIZED.items():
        for number in draw_task_seeds(size["tasks"]):
            one_task: dict[str, Any] = {"task_seeds": (number,), "seeds": (number,)}
            recipe = _quick_recipe(name)
            grids.append(grid(name, rules=size["rules"], recipe=recipe, evaluation=_EVALUATION, **one_task))
    return grids


def _sample_grids() -> list[Grid]:
    """A simple random sample of the frame: one grid per experiment, which has four gatings and a vote.

    Seeds are others than those whose outcome was seen at `mini`.
    """
    from unseen.randomness import stream  # loads NumPy

    order = stream("study", "rules-main", "sample").block().permutation(len(_ALL_EXPERIMENTS))
    grids = []
    for number in order[:SAMPLED]:
        (name, search), setting, rules, task_seed = _ALL_EXPERIMENTS[number]
        experiment = grid(
            name,
            rules=(rules,),
            searches=(search,),
            task_seeds=(task_seed,),
            seeds=(5 + task_seed,),
            recipe=_quick_recipe(name),
            evaluation=_EVALUATION,
            axes={"sample": {SAMPLE: {}}},
        )
        grids.append(replace(experiment, axes={**experiment.axes, "setting": {setting: SETTINGS[setting]}}))
    return grids


def _main_grids(scale: str) -> list[Grid]:
    """The modularity paper's study: modules or none, chosen in different ways, on tasks of 2 to 32 rules.

    `full` is the published grid of 20 000 models, `medium` a random sample of its experiments at width 32, `small` 20
    tasks of MLPs and 5 of the others, and `mini` what can be learned within an hour on two cores. Below `full` each
    task is learned by one seed.
    """
    if scale == "smoke":
        smallest: dict[str, Any] = {"rules": (2,), "widths": (8,), "task_seeds": (0,), "seeds": (0,), **_MAIN_SMOKE}
        return [grid(name, **smallest) for name in ARCHITECTURES]
    if scale == "mini":
        grids = []
        for name, size in _MAIN_MINI.items():
            recipe = {"learning_rate": 1e-3, "validate_every": 250, **size["recipe"]}
            evaluation = {"examples": 4_000, "activation_examples": 4_000, "adaptation_examples": 100}
            for number in size["task_seeds"]:
                one_task: dict[str, Any] = {"task_seeds": (number,), "seeds": (number,)}
                one_task["widths"] = size.get("widths", (32,))
                grids.append(
                    grid(name, rules=size["rules"], searches=(1,), recipe=recipe, evaluation=evaluation, **one_task)
                )
        return grids
    if scale == "small":
        return _new_task_grids()
    if scale == "medium":
        return _sample_grids()
    return [grid(name, rules=RULES, widths=WIDTHS, task_seeds=SEEDS, seeds=SEEDS) for name in ARCHITECTURES]


MAIN = Study(
    name="rules-main",
    version=2,
    question="Do modular networks do better than a monolithic one where the data are made by rules, and do their "
    "modules specialize in the rules?",
    scales={"smoke": 1, "mini": 60, "small": None, "medium": None, "full": None},
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
    notes=(
        *_NOTES,
        "the authors' tasks can't be repeated (other generators of random numbers): ours are new draws",
    ),
    scale_notes={
        "medium": (
            "a simple random sample of 100 of the 200 experiments at width 32 (architecture and search, setting, number "
            "of rules, task), drawn before anything was run",
        )
    },
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
_CONFOUNDS_EVALUATION: dict[str, Any] = {
    "splits": ("iid", "ood/length=30,amplitude=2"),
    "examples": 4_000,
    "activation_examples": 10_000,
    "adaptation_examples": 100,
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
        "rules": (2, 8),
        "widths": (16,),
        "task_seeds": (0, 1, 2),
        "seeds": (0,),
        "recipe": {"steps": 5_000, "learning_rate": 1e-3, "batch": 64, "validate_every": 250},
        "evaluation": _CONFOUNDS_EVALUATION,
    },
    "small": {
        "rules": (2, 8),
        "widths": (16,),
        "task_seeds": SEEDS,
        "seeds": (0,),
        "recipe": {"steps": 20_000, "learning_rate": 1e-3, "batch": 64, "validate_every": 1_000},
        "evaluation": _CONFOUNDS_EVALUATION,
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
    version=2,
    question="How much of the difference between modular and monolithic models comes from the sizes they were given?",
    scales={"smoke": 1, "mini": 120, "small": None, "full": None},
    grids=_confounds_grids,
    selection="last",
    claims=("rules/C3", "rules/C3-trend", "rules/C4", "rules/C4-width", "rules/C5", "rules/C5-state"),
    notes=_NOTES,
)


# -- finite data --------------------------------------------------------------------------------------------------------

TRAIN_SIZES: Axis = {**option_axis("task.train_size", (256, 1_024, 4_096, 16_384)), "endless": {}}
"""How many examples there are to learn from; without end, as in the paper, no example comes twice."""


def size_levels(sizes: Iterable[int]) -> Axis:
    """Training sets of these sizes, each with a validation set of a tenth, at least 1,000; and data without end.

    >>> size_levels((256, 16_384))[16_384]["recipe"]
    {'batches': 'passes', 'validation_examples': 1638}
    """
    levels: dict[Level, Any] = {}
    for size in sizes:
        recipe = {"batches": "passes", "validation_examples": max(1_000, size // 10)}
        levels[size] = {"task": {"train_size": size, "stratified": True}, "recipe": recipe}
    return {**levels, "endless": {"recipe": {"validation_examples": 1_000}}}


def _wide_data_grids() -> list[Grid]:
    """All sizes from 2**8 to 2**18, stratified, in complete passes; learning rates are tuned alike for all."""
    grids = []
    for number in range(3):
        axes: dict[str, Axis] = {
            "train_size": size_levels(2**exponent for exponent in range(8, 19)),
            "learning_rate": option_axis("recipe.learning_rate", (1e-3, 3e-3)),
        }
        recipe = {"validate_every": 250, "steps": 5_000}
        evaluation = {**_DATA_EVALUATION, "splits": ("train", *JUDGED["mlp"])}
        one_task: dict[str, Any] = {"task_seeds": (number,), "seeds": (number,)}
        grids.append(grid("mlp", rules=(8,), recipe=recipe, evaluation=evaluation, axes=axes, **one_task))
    return grids


_DATA_EVALUATION = {"examples": 4_000, "activation_examples": 4_000, "adaptation_examples": 100}


def _data_grids(scale: str) -> list[Grid]:
    """The MLPs of the main comparison, trained on finite sets: do modules help where data are scarce?

    `mini` has five sizes at one learning rate; `small` has twelve, in stratified sets, at two rates.
    """
    if scale == "small":
        return _wide_data_grids()
    smoke = scale == "smoke"
    sizes: Axis = {level: TRAIN_SIZES[level] for level in (256, "endless")} if smoke else TRAIN_SIZES
    evaluation = {**(_SMOKE_EVALUATION if smoke else _DATA_EVALUATION), "splits": ("train", *JUDGED["mlp"])}
    recipe: dict[str, Any] = {"learning_rate": 1e-3, "validate_every": 250, "steps": 5_000}
    if smoke:
        recipe = _MAIN_SMOKE["recipe"]
    rules = (2,) if smoke else (2, 8)
    grids = []
    for number in range(1 if smoke else 3):
        one_task: dict[str, Any] = {"task_seeds": (number,), "seeds": (number,)}
        axes: dict[str, Axis] = {"train_size": sizes}
        grids.append(grid("mlp", rules=rules, recipe=recipe, evaluation=evaluation, axes=axes, **one_task))
    return grids


DATA = Study(
    name="rules-data",
    version=1,
    question="Do modules help where data are scarce, and do they still specialize: MLPs trained on 256 to 16,384 examples, "
    "and on data without end?",
    scales={"smoke": 1, "mini": 60, "small": None},
    grids=_data_grids,
    notes=(
        "finite training sets (paper: every batch is new)",
        "below scale small, batches continue across the ends of epochs, each of which has its own order",
        *_NOTES,
    ),
)


# -- routers -----------------------------------------------------------------------------------------------------------

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

_ROUTER_SIZES: Mapping[str, dict[str, Any]] = {
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
_LOSS_FACTORS = (0.001, 0.01, 0.1)
"""The factors λ of auxiliary losses that scale `small` sweeps; `mini` has the last."""
_LOSS_TERMS = ("switch", "importance", "entropy", "mi_rule", "gt_ce", "z")


def _router_grids(scale: str) -> list[Grid]:
    """Every router and bias, for joint gating and gating by the operation, beside no modules and true gates.

    MLPs on 8 rules. `small` has every auxiliary loss at three factors, and three learning rates.
    """
    size = _ROUTER_SIZES["smoke" if scale == "smoke" else "mini"]
    evaluation = {**(_SMOKE_EVALUATION if scale == "smoke" else size["evaluation"]), "splits": JUDGED["mlp"]}
    recipe = {name: value for name, value in size["recipe"].items() if name != "learning_rate"}
    routing = ROUTING
    learning_rates = TUNED
    if scale == "smoke":
        routing = {level: ROUTING[level] for level in _SMOKE_ROUTING}
    elif scale == "small":
        swept: dict[Level, Any] = {}
        for term, factor in product(_LOSS_TERMS, _LOSS_FACTORS):
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
