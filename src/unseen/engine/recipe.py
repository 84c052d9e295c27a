"""How to train, and what to measure afterwards."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, field_validator

from unseen.config import Config
from unseen.errors import UsageError, nearest
from unseen.metrics.analyses import ANALYSES

SPECIALIZATION = "specialization"
"""The analysis of how modules share out rules; unlike those of the table, it draws data of its own."""


class Recipe(Config):
    """Optimiser, steps, batch, clipping, validation and early stopping.

    The defaults are sized for two CPU cores; `retrieval-paper` and its like are the published recipes.
    """

    name: str = "quick"
    optimiser: Literal["adam", "adamw", "sgd"] = "adam"
    learning_rate: PositiveFloat = 1e-3
    weight_decay: NonNegativeFloat = 0.0
    steps: PositiveInt = 10_000
    batch: PositiveInt = 100
    clip: PositiveFloat | None = Field(0.5, description="largest global gradient norm of one member")
    shuffle: bool = Field(True, description="a new order of a finite set in every epoch")
    validate_every: PositiveInt = 500
    validation_examples: PositiveInt = 2_000
    patience: PositiveInt | None = Field(None, description="validations without a better one before a member stops")


class Evaluation(Config):
    """Which conditions, how many examples of each, and which analyses. No conditions named: all but `train`.

    An analysis (`R7`) leaves measures like `R7/positive` on the condition it is about, where the evaluation covers it;
    `specialization` leaves `specialization/alignment` and its like of modular models on the rules family.
    """

    name: str = "standard"
    conditions: tuple[str, ...] = ()
    examples: PositiveInt = 10_000
    analyses: tuple[str, ...] = ()
    activation_examples: PositiveInt = Field(10_000, description="specialization: examples behind activation matrices")
    adaptation_examples: PositiveInt = Field(200, description="specialization: examples per distribution of rules")

    @field_validator("analyses")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        """In the table's order and each once, so that the same work has the same id."""
        known = (*ANALYSES, SPECIALIZATION)
        for name in names:
            if name not in known:
                raise ValueError(f"unknown analysis '{name}'. {nearest(name, known)}")
        return tuple(name for name in known if name in names)


# Modularity paper: 100 000 steps (MLP) or 500 000, every batch fresh; clipping for the RNN only.
_RULES = {"learning_rate": 1e-4, "batch": 256, "clip": None, "validate_every": 5_000, "validation_examples": 2_560}

RECIPES: dict[str, dict[str, Any]] = {
    "quick": {},
    # Retrieval paper: 100 epochs of 10 000 steps; the best epoch on validation is kept.
    "retrieval-paper": {
        "learning_rate": 1e-4,
        "steps": 1_000_000,
        "batch": 10,
        "validate_every": 10_000,
        "validation_examples": 10_000,
    },
    "rules-mlp-paper": {**_RULES, "steps": 100_000},
    "rules-mha-paper": {**_RULES, "steps": 500_000},
    "rules-rnn-paper": {**_RULES, "steps": 500_000, "clip": 1.0},
}


def recipe(name: str = "quick", **options: Any) -> Recipe:
    """A named recipe, with single options replaced.

    >>> recipe("retrieval-paper", steps=20_000).batch
    10
    """
    if name not in RECIPES:
        raise UsageError(f"unknown recipe '{name}'. {nearest(name, RECIPES)}")
    return Recipe.parse({"name": name, **RECIPES[name], **options})


def deviations(used: Recipe, task: str) -> list[str]:
    """How a recipe differs from the published one of a task or its family, one phrase each; [] if there is none.

    >>> deviations(recipe("retrieval-paper", steps=500), "retrieval/T6")
    ['steps 500 (paper: 1000000)']
    """
    names = [f"{part}-paper" for part in (task.replace("/", "-"), task.partition("/")[0])]
    found = [name for name in names if name in RECIPES]
    if not found:
        return []
    published = recipe(found[0])
    fields = [f for f in Recipe.model_fields if f != "name"]
    return [f"{f.replace('_', ' ')} {getattr(used, f)} (paper: {getattr(published, f)})"
            for f in fields if getattr(used, f) != getattr(published, f)]
