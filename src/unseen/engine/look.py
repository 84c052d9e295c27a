"""A look inside one trained model: how modules share out rules, where it attends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unseen.engine.predict import draw, predictions
from unseen.engine.specialize import WEIGHTS
from unseen.engine.specialize import why_not as no_activation
from unseen.engine.stack import Stack
from unseen.metrics.accuracy import right
from unseen.metrics.activation import sums
from unseen.randomness import Floats
from unseen.tasks.base import Array, Examples, Task
from unseen.tasks.rules.task import Rules

__all__ = ["ATTENTION", "Attention", "activation", "attention", "no_activation"]

ATTENTION = {"decoder.attention": ("example", "token"), "encoder.attention": ("example", "head", "token", "token")}
"""The traces that can be drawn, and their axes: the query over the tokens, and the tokens over each other."""


@dataclass(frozen=True)
class Attention:
    """The attention maps a model kept by name, the examples they are of, and how right its answer to each was."""

    maps: dict[str, Array]
    right: Array
    examples: Examples


def activation(stack: Stack, task: Rules, n: int) -> Floats:
    """p(module | rule) of a stack's first member on n test examples; NaN in the rows of rules that do not occur."""
    examples = draw(task, task.validation, n, "test")
    weights = predictions(stack, examples, task.spec, [WEIGHTS])[WEIGHTS][0]
    rules = examples.factors["rule"].reshape(-1)
    count = np.bincount(rules, minlength=len(task.pi)).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return sums(weights.reshape(-1, weights.shape[-1]), rules, len(count)) / np.where(count, count, np.nan)[:, None]


def attention(stack: Stack, task: Task, condition: str | None, n: int) -> Attention:
    """The attention of a stack's first member on the first n test examples of a condition."""
    examples = draw(task, condition or task.validation, n, "test")
    kept: Mapping[str, Array] = predictions(stack, examples, task.spec, tuple(ATTENTION))
    maps = {name: kept[name][0] for name, axes in ATTENTION.items() if name in kept and kept[name][0].ndim == len(axes)}
    kind = task.spec.target.kind
    correct = right(kept["prediction"][0], examples.targets, kind) if kind != "real" else np.full(len(examples), np.nan)
    return Attention(maps, correct, examples)
