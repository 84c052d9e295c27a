"""Pictures of one trained model: how its modules divide the rules among themselves, and where it attends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unseen.analysis.accuracy import share_correct
from unseen.analysis.routing import sum_by_label
from unseen.randomness import Floats
from unseen.tasks.base import Array, Examples, Task
from unseen.tasks.rules.task import Rules
from unseen.training.analyses.rules_specialization import WEIGHTS
from unseen.training.analyses.rules_specialization import unavailable as no_activation
from unseen.training.evaluate import draw_examples, predict
from unseen.training.stack import Stack

__all__ = ["ATTENTION", "AttentionMaps", "activation", "attention", "no_activation"]

ATTENTION = {"decoder.attention": ("example", "token"), "encoder.attention": ("example", "head", "token", "token")}
"""The activations that can be drawn, and their axes: from the query to the tokens, and from token to token."""


@dataclass(frozen=True)
class AttentionMaps:
    """The attention maps a model captured, by name, the examples they are of, and how right its answer to each was."""

    maps: dict[str, Array]
    right: Array
    examples: Examples


def activation(stack: Stack, task: Rules, n: int) -> Floats:
    """p(module | rule) of a stack's first member on n test examples; NaN in the rows of rules that do not occur."""
    examples = draw_examples(task, task.validation, n, "test")
    weights = predict(stack, examples, task.spec, [WEIGHTS])[WEIGHTS][0]
    rules = examples.factors["rule"].reshape(-1)
    count = np.bincount(rules, minlength=len(task.pi)).astype(np.float64)
    count[count == 0] = np.nan
    return sum_by_label(weights.reshape(-1, weights.shape[-1]), rules, len(count)) / count[:, None]


def attention(stack: Stack, task: Task, split: str | None, n: int) -> AttentionMaps:
    """The attention of a stack's first member on the first n test examples of a split."""
    examples = draw_examples(task, split or task.validation, n, "test")
    captured: Mapping[str, Array] = predict(stack, examples, task.spec, tuple(ATTENTION))
    maps = {}
    for name, axes in ATTENTION.items():
        if name in captured and captured[name][0].ndim == len(axes):
            maps[name] = captured[name][0]
    kind = task.spec.target.kind
    correct = np.full(len(examples), np.nan)
    if kind != "real":
        correct = share_correct(captured["prediction"][0], examples.targets, kind)
    return AttentionMaps(maps, correct, examples)
