"""Studies of what a recurrent state can do: track a group element through long words, and recall many pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unseen.studies.catalog import option_axis
from unseen.studies.grid import Grid
from unseen.studies.study import Study

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unseen.studies.catalog import Axis

_HEADS: dict[str, Any] = {"heads": 2}
MODELS: Axis = {
    "lstm": {"model": {"name": "lstm"}},
    "transformer": {"model": {"name": "transformer", "causal": True, **_HEADS}},
    "s4d": {"model": {"name": "s4d"}},
    "mamba": {"model": {"name": "mamba"}},
    "gla": {"model": {"name": "gla", **_HEADS}},
    "deltanet": {"model": {"name": "deltanet", **_HEADS}},
    "deltanet-negative": {"model": {"name": "deltanet", "negative_eigenvalues": True, **_HEADS}},
}
"""Backbones that read from left to right; `deltanet-negative` has eigenvalues between −1 and 1."""

_TRACKING: dict[str, dict[str, Any]] = {
    "smoke": {
        "groups": {"Z2": {}},
        "task": {"length": 6, "longest": 16},
        "model": {"width": 8, "layers": 1},
        "recipe": {"steps": 30, "batch": 16, "validate_every": 15, "validation_examples": 100},
        "examples": 100,
        "seeds": 1,
    },
    # Pilots learned parity in 1 500 steps; 60 elements get more steps than two or six.
    "mini": {
        "groups": {"Z2": {}, "S3": {}, "A5": {"steps": 8_000}},
        "task": {},
        "model": {"width": 32, "layers": 2},
        "recipe": {"steps": 3_000, "batch": 32, "validate_every": 250, "validation_examples": 500},
        "examples": 500,
        "seeds": 3,
    },
    "full": {
        "groups": {"Z2": {}, "S3": {}, "A5": {}, "S5": {}},
        "task": {},
        "model": {"width": 128, "layers": 2},
        "recipe": {"steps": 50_000, "batch": 128, "validate_every": 1_000, "validation_examples": 1_000},
        "examples": 2_000,
        "seeds": 5,
    },
}


def _tracking_grids(scale: str) -> list[Grid]:
    """Which backbones track the state of a group beyond the length of their training, and of which groups?"""
    size = _TRACKING[scale]
    groups: Axis = {
        name: {"task": {"name": f"groups/{name}"}, "recipe": recipe} for name, recipe in size["groups"].items()
    }
    return [_grid(size, {"group": groups, "backbone": MODELS}, size["task"], size["model"])]


def _grid(size: Mapping[str, Any], axes: Mapping[str, Axis], task: Mapping[str, Any], model: Mapping[str, Any]) -> Grid:
    base = {
        "task": task,
        "model": {"dropout": 0.0, **model},
        "recipe": {"learning_rate": 3e-3, **size["recipe"]},
        "evaluation": {"examples": size["examples"]},
    }
    return Grid(axes=axes, base=base, seeds=range(size["seeds"]))


_LITTLE_BEYOND = 0.75
"""Accuracy over words of 256 tokens, on the first 40 of which a model was trained: all of these, and a little of the rest."""


def _expect(claim: str, source: str, statement: str, split: str, *headline: Mapping[str, Any]) -> Mapping[str, Any]:
    """A claim as a study file states it; `unseen run` registers it in the store before the first run."""
    return {"claim": claim, "source": source, "statement": statement, "split": split, "headline": list(headline)}


_TRACKING_CLAIMS = (
    _expect(
        "negative-eigenvalues",
        "Grazzi et al. 2025",
        "DeltaNet tracks parity beyond its training length if a step may have negative eigenvalues, and not if "
        "eigenvalues lie between 0 and 1.",
        "ood/longest",
        {"above": 0.85, "runs": {"group": "Z2", "backbone": "deltanet-negative"}},
        {"below": _LITTLE_BEYOND, "runs": {"group": "Z2", "backbone": "deltanet"}},
    ),
    _expect(
        "positive-eigenvalues",
        "Grazzi et al. 2025",
        "No linear recurrence whose eigenvalues are positive tracks parity far beyond its training length.",
        "ood/longest",
        {"below": _LITTLE_BEYOND, "runs": {"group": "Z2", "backbone": "mamba"}},
        {"below": _LITTLE_BEYOND, "runs": {"group": "Z2", "backbone": "gla"}},
    ),
    _expect(
        "recurrence-beyond-attention",
        "Merrill et al. 2024",
        "A nonlinear recurrence tracks states beyond its training length where a Transformer of constant depth does not.",
        "ood/longest",
        {"better": {"group": "Z2", "backbone": "lstm"}, "than": {"group": "Z2", "backbone": "transformer"}, "by": 0.2},
        {"better": {"group": "S3", "backbone": "lstm"}, "than": {"group": "S3", "backbone": "transformer"}, "by": 0.2},
    ),
)

STATE_TRACKING = Study(
    name="state-tracking",
    version=2,
    own_claims=_TRACKING_CLAIMS,
    question="Which backbones track a state through longer words than those of training, and for which groups?",
    scales={"smoke": 1, "mini": 90, "full": None},
    grids=_tracking_grids,
    notes=(
        "every model has the same width, layers and learning rate, not the same number of parameters",
        "each seed has its own data, without end",
    ),
)

_RECALL: dict[str, dict[str, Any]] = {
    "smoke": {
        "task": {"pairs": 2, "keys": 8, "values": 10, "length": 6},
        "widths": (8,),
        "recipe": {"steps": 30, "batch": 16, "validate_every": 15, "validation_examples": 100},
        "examples": 100,
        "seeds": 1,
    },
    "mini": {
        "task": {"pairs": 8, "keys": 16, "values": 16, "length": 20},
        "widths": (8, 16, 32, 64),
        "recipe": {"steps": 5_000, "batch": 32, "validate_every": 250, "validation_examples": 500},
        "examples": 1_000,
        "seeds": 3,
    },
    "full": {
        "task": {"pairs": 16, "keys": 64, "values": 64, "length": 64},
        "widths": (16, 32, 64, 128, 256),
        "recipe": {"steps": 50_000, "batch": 128, "validate_every": 1_000, "validation_examples": 1_000},
        "examples": 2_000,
        "seeds": 5,
    },
}


def _recall_grids(scale: str) -> list[Grid]:
    """How large must a state be to recall all pairs of a context, and does a Transformer need none?"""
    size = _RECALL[scale]
    models = {name: settings for name, settings in MODELS.items() if name != "deltanet-negative"}
    axes: dict[str, Axis] = {"backbone": models, "width": option_axis("model.width", size["widths"])}
    return [_grid(size, axes, {"name": "recall/mqar", **size["task"]}, {"layers": 2})]


_RECALL_CLAIMS = (
    _expect(
        "large-enough",
        "Arora et al. 2024",
        "DeltaNet recalls all pairs if its state is large enough (4 480 numbers for 8 pairs), not if it is too small (112).",
        "iid",
        {"above": 0.95, "runs": {"backbone": "deltanet", "task.pairs": 8, "width": 64}},
        {"below": 0.8, "runs": {"backbone": "deltanet", "task.pairs": 8, "width": 8}},
    ),
    _expect(
        "state-decides",
        "Arora et al. 2024",
        "A recurrent backbone recalls more with a larger state, also of pairs that training holds out.",
        "ood/pairs",
        {"better": {"backbone": "deltanet", "width": 64}, "than": {"backbone": "deltanet", "width": 8}, "by": 0.3},
        {"better": {"backbone": "gla", "width": 64}, "than": {"backbone": "gla", "width": 8}, "by": 0.1},
    ),
)

RECALL = Study(
    name="recall",
    version=2,
    own_claims=_RECALL_CLAIMS,
    question="How large must the state of a recurrent backbone be to recall the pairs of a context, by model and width?",
    scales={"smoke": 1, "mini": 90, "full": None},
    grids=_recall_grids,
    notes=(
        "models of one width differ in state: width² / heads numbers in each layer of gla and deltanet, 16 · 2 · width "
        "of mamba, 2 · 16 · width of s4d, 2 · width of the LSTM, one vector per token of the Transformer",
        "each seed has its own data, without end",
    ),
)
