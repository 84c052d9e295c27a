"""The studies of the gCOG paper: distractors, systematicity, productivity, layers, similarity; and a question of ours.

In all of them `smoke` tries whether everything runs; `mini` is a grid of 4 × 4 with 30 different objects and narrow
models; `small` is the paper's world with narrow models; `medium` a part of the paper's samples; and `full` the
published size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unseen.studies.catalog import option_axis
from unseen.studies.grid import Grid, Level
from unseen.studies.study import Study
from unseen.tasks import task as make_task

if TYPE_CHECKING:
    from unseen.studies.catalog import Axis

RNN, GRU, SINGLE, DUAL, CROSS, PERCEIVER = MODELS = (
    "gcog-rnn",
    "gcog-gru",
    "gcog-single-stream",
    "gcog-dual-stream",
    "gcog-cross-attention",
    "gcog-perceiver",
)
RECURRENT = (RNN, GRU)
BERT = "gcog-bert"
DISTRACTOR, OPERATORS, TREES, PRODUCTIVE = TASKS = (
    "gcog/distractor",
    "gcog/systematic-operators",
    "gcog/systematic-trees",
    "gcog/productive",
)

_FEATURES = (("shape", tuple("abcdef")), ("color", ("red", "green", "blue", "yellow", "orange")))
_SMALL_WORLD: dict[str, Any] = {
    "coding": "embedding",
    "grid": (4, 4),
    "features": _FEATURES,
    "distractors": (1, 3),
}
"""A world that narrow models learn in minutes; on grids of 5 × 5 and more they long do not learn about locations."""
_LEARNED_QUICKLY = (RNN, GRU, CROSS, PERCEIVER)
"""The models that learn there. After 6 000 steps at either of two learning rates, the two that join their streams
without cross-attention were little above chance."""
_RECIPES: Mapping[str, Mapping[str, Any]] = {
    RNN: {"steps": 40_000},
    GRU: {"steps": 30_000, "learning_rate": 2e-3},
    CROSS: {"learning_rate": 5e-4},
    PERCEIVER: {"learning_rate": 2.5e-4},
}
"""What the recipe of each needs there. After 20 000 steps at 1e-3 most recurrent models had not converged, and at 2e-3
a GRU learns twice as fast; of the narrow Transformers some never learn about locations at twice these rates."""

# Sizes that several studies share: options of the task, width of the models, recipe, number of seeds.
_SMOKE: dict[str, Any] = {
    "task": _SMALL_WORLD,
    "width": 16,
    "recipe": {"steps": 60, "batch": 32, "learning_rate": 1e-3, "validate_every": 20, "validation_examples": 250},
    "seeds": 1,
}
_MINI: dict[str, Any] = {
    "task": _SMALL_WORLD,
    "width": 64,
    "recipe": {
        "batch": 128,
        "steps": 10_000,
        "learning_rate": 1e-3,
        "validate_every": 500,
        "validation_examples": 1_000,
    },
    "recipes": _RECIPES,
    "seeds": 3,
}
_SMALL: dict[str, Any] = {
    "task": {"coding": "embedding"},
    "width": 64,
    "recipe": {"steps": 20_000, "learning_rate": 5e-4, "validate_every": 1_000},
    "seeds": 3,
}
_FIVE_SCALES = {"smoke": 1, "mini": 30, "small": None, "medium": None, "full": None}
_FOUR_SCALES = {"smoke": 1, "mini": 30, "medium": None, "full": None}

_POSITIONS: Axis = {"absolute": {}, "relative": {"model": {"positions": "relative"}}}
_NO_RELATIVE_RECURRENT: dict[str, Level | Sequence[Level]] = {"model": RECURRENT, "positions": "relative"}

_NOTES = (
    "neither the batch size (released demonstrations: 64) nor the times of validation are published: our recipe takes "
    "their place, with as many samples as the paper says",
    "questions and grids are drawn anew for every batch (released code: a fixed pool of questions; study gcog-pool)",
    "padding is masked and the rule read at its end, tests in evaluation mode (released code: neither)",
)


def _grid(
    task: str,
    size: Mapping[str, Any],
    axes: Mapping[str, Axis],
    options: Mapping[str, Any] | None = None,
    *,
    base: Mapping[str, Any] | None = None,
    recipe: str = "",
    without: Sequence[Mapping[str, Level | Sequence[Level]]] = (),
) -> Grid:
    """Some axes × seeds on a task with the options of the size and more, trained with its published recipe.

    Every split of the task is tested, the training data of the run among them: the paper's first statement is about
    those. `base` replaces or adds parts that all trials share.
    """
    task_options = {**size.get("task", {}), **(options or {})}
    return Grid(
        axes=axes,
        base={
            "task": {"name": task, **task_options},
            "recipe": {"name": recipe or f"{task.replace('/', '-')}-paper", **size.get("recipe", {})},
            "evaluation": {"splits": tuple(make_task(task, **task_options).splits)},
            **(base or {}),
        },
        seeds=range(size["seeds"]),
        without=without,
    )


def _model_axis(size: Mapping[str, Any]) -> Axis:
    """The models of a size, as published or narrow (`width` of tokens, twice that of states), each with its recipe."""
    width = size.get("width")
    axis: dict[Any, Any] = {}
    for name in size.get("models", MODELS):
        options: dict[str, Any] = {}
        if width is not None:
            options = {"width": 2 * width} if name in RECURRENT else {"width": width, "hidden": 2 * width}
        axis[name] = {"model": {"name": name, **options}, "recipe": size.get("recipes", {}).get(name, {})}
    return axis


# -- distractors, and what the models represent -----------------------------------------------------------------------

_DISTRACTORS_SIZES: dict[str, dict[str, Any]] = {
    "smoke": {**_SMOKE, "task": {**_SMALL_WORLD, "ood_distractors": (4,)}},
    "mini": {
        **_MINI,
        "task": {**_SMALL_WORLD, "ood_distractors": (6, 9, 12)},
        "models": _LEARNED_QUICKLY,
        "seeds": 4,
    },
    "small": _SMALL,
    "medium": {"recipe": {"steps": 21_086}, "seeds": 3},
    "full": {"seeds": 5},
}


def _distractors_grids(scale: str) -> list[Grid]:
    """Models that learned among 1 to 5 distractors, asked among up to 40 (gCOG, figure 3)."""
    size = _DISTRACTORS_SIZES[scale]
    return [_grid(DISTRACTOR, size, {"model": _model_axis(size)})]


def _rsa_grids(scale: str) -> list[Grid]:
    """Does training bring what a model represents closer to the stimulus, or to the answer (gCOG, figure 7)?

    The models are trained as in `gcog-distractors`. On 800 examples with the most distractors, the cosines of the last
    hidden states before and after training are compared with those of the stimuli and of the answers.
    """
    size = _DISTRACTORS_SIZES[scale]
    evaluation = {"splits": ("train", "iid"), "analyses": ("similarity",)}
    return [_grid(DISTRACTOR, size, {"model": _model_axis(size)}, base={"evaluation": evaluation})]


DISTRACTORS = Study(
    name="gcog-distractors",
    version=1,
    question="Does a network that answers questions about a few objects still answer them among many?",
    scales=_FIVE_SCALES,
    grids=_distractors_grids,
    selection="last",
    claims=("gcog/distractors-learned", "gcog/distractors", "gcog/distractors-drop", "gcog/distractors-weakest"),
    notes=_NOTES,
)
RSA = Study(
    name="gcog-rsa",
    version=1,
    question="Do the models that cope with many distractors represent the stimulus, or the answer, more closely?",
    scales=_FIVE_SCALES,
    grids=_rsa_grids,
    selection="last",
    claims=("gcog/similarity",),
    notes=_NOTES,
)


# -- systematicity ----------------------------------------------------------------------------------------------------

_HOLD_OUTS = ("clean", "released", "released-minus-leak")
_SYSTEMATICITY_SIZES: dict[str, dict[str, Any]] = {
    "smoke": _SMOKE,
    # Cross-attention does not learn trees there in 6 000 steps; the GRU does, and is the faster of the recurrent models.
    "mini": {**_MINI, "models": _LEARNED_QUICKLY, "by_task": {TREES: {"models": (GRU,)}}},
    "small": _SMALL,
    "medium": {"recipe": {"steps": 20_000}, "seeds": 3},
    "full": {"seeds": 5, "hold_outs": _HOLD_OUTS, "positions": tuple(_POSITIONS)},
}


def _systematicity_grids(scale: str) -> list[Grid]:
    """Known operators with objects, or with each other, that they never met (gCOG, figures 4 and 9).

    Two tasks: single operators about objects they were not trained with, and trees of operators that were not trained
    together. `full` adds the published division of operators and objects, half of whose test combinations are training
    combinations (and what remains without those), and relative positions for trees.
    """
    grids = []
    for name in (OPERATORS, TREES):
        size = {**_SYSTEMATICITY_SIZES[scale], **_SYSTEMATICITY_SIZES[scale].get("by_task", {}).get(name, {})}
        axes: dict[str, Axis] = {"task": {name: {"task": {"name": name}}}, "model": _model_axis(size)}
        if name == OPERATORS:
            hold_outs = size.get("hold_outs", ("clean",))
            # The task's option is called `split`; a column of this name says what a record was tested on.
            axes["hold_out"] = option_axis("task.split", hold_outs)
        else:
            axes["positions"] = {level: _POSITIONS[level] for level in size.get("positions", ("absolute",))}
        without = [_NO_RELATIVE_RECURRENT] if "relative" in axes.get("positions", ()) else []
        grids.append(_grid(name, size, axes, without=without))
    return grids


SYSTEMATICITY = Study(
    name="gcog-systematicity",
    version=1,
    question="Does a network that knows some combinations of operators and objects, or of operators, know the others?",
    scales=_FIVE_SCALES,
    grids=_systematicity_grids,
    selection="last",
    claims=(
        "gcog/operators-learned",
        "gcog/operators",
        "gcog/leak",
        "gcog/trees-learned",
        "gcog/trees",
        "gcog/trees-values",
        "gcog/relative-trees",
    ),
    notes=_NOTES,
)


# -- productivity -----------------------------------------------------------------------------------------------------

_TRAINED_ON: dict[str, dict[str, Any]] = {"1 and 3": {}, "1": {"train_depths": (1,)}}
_SHALLOW = {**_SMALL_WORLD, "depths": (1, 3, 5)}
_PRODUCTIVITY_SIZES: dict[str, dict[str, Any]] = {
    "smoke": {**_SMOKE, "task": _SHALLOW},
    "mini": {**_MINI, "task": _SHALLOW, "models": RECURRENT, "trained_on": ("1 and 3",)},
    "small": _SMALL,
    "medium": {"recipe": {"steps": 23_430}, "seeds": 3},
    "full": {"seeds": 5, "positions": tuple(_POSITIONS)},
}


def _productivity_grids(scale: str) -> list[Grid]:
    """Trees deeper than those of training (gCOG, figures 5, 10 and 11).

    Training is on depths 1 and 3, or on depth 1 alone; `full` also has relative positions.
    """
    size = _PRODUCTIVITY_SIZES[scale]
    grids = []
    for depths in size.get("trained_on", _TRAINED_ON):
        levels = size.get("positions", ("absolute",)) if depths == "1 and 3" else ("absolute",)
        axes: dict[str, Axis] = {
            "trained_on": {depths: {}},
            "model": _model_axis(size),
            "positions": {level: _POSITIONS[level] for level in levels},
        }
        without = [_NO_RELATIVE_RECURRENT] if "relative" in levels else []
        grids.append(_grid(PRODUCTIVE, size, axes, _TRAINED_ON[depths], without=without))
    return grids


PRODUCTIVITY = Study(
    name="gcog-productivity",
    version=1,
    question="Does a network that follows short questions follow longer ones?",
    scales=_FIVE_SCALES,
    grids=_productivity_grids,
    selection="last",
    claims=("gcog/productivity-learned", "gcog/productivity", "gcog/relative-productivity", "gcog/depth-1"),
    notes=_NOTES,
)


# -- layers and heads -------------------------------------------------------------------------------------------------

_LAYERS_SIZES: dict[str, dict[str, Any]] = {
    "smoke": {
        **_SMOKE,
        "by_task": {DISTRACTOR: {"ood_distractors": (4,)}, PRODUCTIVE: {"depths": (1, 3, 5)}},
        "layers": (1, 2),
        "heads": (1, 4),
    },
    "mini": {
        **_MINI,
        "by_task": {DISTRACTOR: {"ood_distractors": (6, 9, 12)}},
        "layers": (1, 2),
        "heads": (1, 4),
        "tasks": (DISTRACTOR,),
    },
    "medium": {"recipe": {"steps": 11_700}, "layers": (1, 4), "heads": (1, 8), "seeds": 3},
    "full": {"layers": (1, 2, 3, 4), "heads": (1, 4, 8), "seeds": 5},
}


def _layers_grids(scale: str) -> list[Grid]:
    """The BERT-like series, layers × heads, on all kinds of generalization (gCOG, figure 6)."""
    size = _LAYERS_SIZES[scale]
    model: dict[str, Any] = {"name": BERT}
    if "width" in size:
        model |= {"width": size["width"], "hidden": 2 * size["width"]}
    grids = []
    for name in size.get("tasks", TASKS):
        axes: dict[str, Axis] = {
            "task": {name: {"task": {"name": name}}},
            "layers": option_axis("model.layers", size["layers"]),
            "heads": option_axis("model.heads", size["heads"]),
        }
        options = size.get("by_task", {}).get(name)
        grids.append(_grid(name, size, axes, options, base={"model": model}, recipe="gcog-bert-paper"))
    return grids


LAYERS = Study(
    name="gcog-layers",
    version=1,
    question="Do more layers or more heads help a Transformer with what it has not seen?",
    scales=_FOUR_SCALES,
    grids=_layers_grids,
    selection="last",
    claims=("gcog/layers-distractors", "gcog/layers-operators", "gcog/layers-trees", "gcog/layers-productivity"),
    notes=_NOTES,
)


# -- a fixed pool of questions ----------------------------------------------------------------------------------------

FRESH = "fresh"
_POOL_DISTRACTORS: dict[str, dict[str, Any]] = {
    "clean": {"some": {}, "none": {"distractors": (0, 0)}},
    "released": {"some": {"distractors": (0, 5)}, "none": {}},
}
"""Where depths are mixed, the released code puts none."""
_POOL_SIZES: dict[str, dict[str, Any]] = {
    "smoke": {**_SMOKE, "pools": (200,), "models": (GRU,), "codings": ("embedding", "integer")},
    # Integer codes are learned so slowly that half an hour is not enough: two pools, and fewer steps.
    "mini": {
        **_MINI,
        "pools": (2_000, 20_000),
        "models": (GRU,),
        "codings": ("embedding", "integer"),
        "by_coding": {"integer": {"pools": (2_000,), "recipes": {GRU: {**_RECIPES[GRU], "steps": 12_000}}}},
    },
    "medium": {"recipe": {"steps": 21_086}, "pools": (10_000, 100_000), "models": (CROSS,), "seeds": 3},
    "full": {
        "pools": (10_000, 40_000, 100_000, 1_000_000),
        "seeds": 3,
        "presets": ("clean", "released"),
        "distractors": ("some", "none"),
    },
}


def _pool_grids(scale: str) -> list[Grid]:
    """Is it the fixed pool of training questions that keeps models from answering fresh ones?

    The published models answer 98 % of their training trees and 59 to 75 % of fresh ones of the same kind. They were
    trained on a fixed pool of questions, in which the answer nearly follows from the question. Here pools of several
    sizes are compared with questions that are drawn anew for every batch, with the same budget.
    """
    grids = []
    for preset in _POOL_SIZES[scale].get("presets", ("clean",)):
        for coding in _POOL_SIZES[scale].get("codings", ("integer",)):
            size = {**_POOL_SIZES[scale], **_POOL_SIZES[scale].get("by_coding", {}).get(coding, {})}
            amounts = size.get("distractors", ("some",))
            pools: dict[Any, Any] = {str(number): {"task": {"pool": number}} for number in size["pools"]}
            axes: dict[str, Axis] = {
                "preset": {preset: {}},
                "distractors": {amount: {"task": _POOL_DISTRACTORS[preset][amount]} for amount in amounts},
                "coding": {coding: {}},
                "pool": {**pools, FRESH: {}},
                "model": _model_axis(size),
            }
            grids.append(_grid(TREES, size, axes, {"preset": preset, "coding": coding}))
    return grids


POOL = Study(
    name="gcog-pool",
    version=1,
    question="Does a network fail on fresh questions of a known kind only because it was trained on a fixed pool?",
    scales=_FOUR_SCALES,
    grids=_pool_grids,
    selection="last",
    claims=("gcog/pool",),
    notes=(_NOTES[0], _NOTES[2]),
)
