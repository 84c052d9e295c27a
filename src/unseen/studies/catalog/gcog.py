"""What the gcog studies have in common: models, small worlds, and what is evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unseen.studies.catalog.retrieval import Axis
from unseen.tasks import task

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

_FEATURES = (("shape", tuple("abcdef")), ("color", ("red", "green", "blue", "yellow", "orange")))
SMALL: dict[str, Any] = {"coding": "embedding", "grid": (4, 4), "features": _FEATURES, "distractors": (1, 3)}
"""A world that narrow models learn in minutes: on grids of 5 × 5 and more they stay long without a sense of place."""
SMALL_RECIPE = {
    "batch": 128,
    "steps": 10_000,
    "learning_rate": 1e-3,
    "validate_every": 500,
    "validation_examples": 1_000,
}
LEARNED_QUICKLY = (RNN, GRU, CROSS, PERCEIVER)
"""The models that learn there: after 6 000 steps of either of two learning rates, the two that join their streams
without asking one about the other were little above chance."""
NEEDS: Mapping[str, Mapping[str, Any]] = {
    RNN: {"steps": 40_000},
    GRU: {"steps": 30_000, "learning_rate": 2e-3},
    CROSS: {"learning_rate": 5e-4},
    PERCEIVER: {"learning_rate": 2.5e-4},
}
"""After 20 000 steps of 1e-3 most recurrent models were still learning, and at 2e-3 a GRU learns twice as fast; of the
narrow Transformers some never find out about places at twice these rates."""
TINY_RECIPE = {"steps": 60, "batch": 32, "learning_rate": 1e-3, "validate_every": 20, "validation_examples": 250}
"""For trying whether everything runs."""

POSITIONS: Axis = {"absolute": {}, "relative": {"model": {"positions": "relative"}}}

NOTES = (
    "neither the batch size (released demonstrations: 64) nor the times of validation are published: what stands for "
    "them as the paper's is our recipe, with as many samples seen as the paper says",
    "questions and grids are drawn anew for every batch (released code: a fixed pool of questions; study gcog-pool)",
    "padding is masked and the rule read at its end, tests in evaluation mode (released code: neither)",
)


def models(size: Mapping[str, Any]) -> Axis:
    """The axis of models: `models`, of the published size or narrow (`width` of tokens, twice that of states), and what
    the recipe of each `needs`."""
    needs, width = size.get("needs", {}), size.get("width")
    return {
        name: {"model": {"name": name, **_sizes(name, width)}, "recipe": needs.get(name, {})}
        for name in size.get("models", MODELS)
    }


def _sizes(name: str, width: int | None) -> dict[str, Any]:
    if width is None:
        return {}
    return {"width": 2 * width} if name in RECURRENT else {"width": width, "hidden": 2 * width}


def conditions(name: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """All of a task, what a run was trained on among them: the paper's first statement is about that."""
    return tuple(task(name, **options).conditions)
