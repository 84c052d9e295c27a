"""What models answer on a condition, and how good that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from unseen.engine.feed import target_tensor, tensors
from unseen.engine.loss import loss
from unseen.engine.recipe import Evaluation
from unseen.engine.stack import Stack
from unseen.metrics.accuracy import accuracy, accuracy_by
from unseen.spec import Spec
from unseen.tasks.base import Array, DataSeed, Examples, Task

CHUNK = 250
"""Examples per forward pass. A constant, because the rounding of a product may depend on it."""


@dataclass(frozen=True)
class Measure:
    """One number of one member: a metric on a condition, overall (`factor` empty) or at one level of a factor."""

    condition: str
    factor: str
    level: str
    metric: str
    value: float
    standard_error: float
    n: int


def predictions(stack: Stack, examples: Examples, spec: Spec, wanted: Sequence[str] = ()) -> dict[str, Array]:
    """`prediction` and the wanted intermediates of every member: arrays (member, example, …)."""
    parts: list[dict[str, Array]] = []
    for start in range(0, len(examples), CHUNK):
        part = examples[start : start + CHUNK]
        inputs = tensors(part.inputs, spec, stack.dtype, str(stack.rows.device))
        predicted, kept = stack.predict(inputs, wanted)
        parts.append({k: v.cpu().numpy() for k, v in {"prediction": predicted, **kept}.items()})
    return {k: np.concatenate([p[k] for p in parts], axis=1) for k in parts[0]}


def member_losses(predicted: Array, targets: Array, spec: Spec) -> list[float]:
    """The mean loss of each member."""
    wanted = target_tensor(targets, spec, torch.float64, "cpu")
    return [float(loss(torch.from_numpy(p).double(), wanted, spec.target)) for p in predicted]


def draw(task: Task, condition: str, n: int, data_seed: DataSeed) -> Examples:
    """The first n examples, or all if the set is smaller."""
    size = task.size(condition)
    return task.sample(condition, n if size is None else min(n, size), data_seed=data_seed)


def conditions(task: Task, evaluation: Evaluation) -> list[str]:
    """The conditions an evaluation covers."""
    for name in evaluation.conditions:
        task.condition(name)
    return list(evaluation.conditions) or [c for c in task.conditions if c != "train"]


def evaluate(stack: Stack, task: Task, evaluation: Evaluation) -> list[list[Measure]]:
    """The measures of every member on the test data of every condition."""
    rows: list[list[Measure]] = [[] for _ in range(len(stack))]
    for condition in conditions(task, evaluation):
        examples = draw(task, condition, evaluation.examples, "test")
        predicted = predictions(stack, examples, task.spec)["prediction"]
        losses = member_losses(predicted, examples.targets, task.spec)
        for member, found in enumerate(rows):
            found.append(Measure(condition, "", "", "loss", losses[member], float("nan"), len(examples)))
            if task.spec.target.kind != "real":
                found.extend(_accuracies(predicted[member], examples, task, condition))
    return rows


def _accuracies(predicted: Array, examples: Examples, task: Task, condition: str) -> list[Measure]:
    kind = task.spec.target.kind
    whole = accuracy(predicted, examples.targets, kind)
    rows = [Measure(condition, "", "", "accuracy", whole.value, whole.standard_error, whole.n)]
    for factor in task.report_by:
        table = accuracy_by(predicted, examples.targets, kind, examples.factors[factor])
        rows += [Measure(condition, factor, str(level), "accuracy", float(value), float(error), int(n))
                 for level, value, error, n in table[["level", "value", "standard_error", "n"]].to_numpy()]
    return rows
