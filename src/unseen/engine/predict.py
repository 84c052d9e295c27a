"""What models answer on some examples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from unseen.engine.feed import target_tensor, tensors
from unseen.engine.loss import loss
from unseen.engine.recipe import Evaluation
from unseen.engine.stack import Stack
from unseen.spec import Spec
from unseen.tasks.base import Array, DataSeed, Examples, Task

CHUNK = 250
"""Examples per forward pass. A constant, because the rounding of a product may depend on it."""
NOT_KEPT = "the model keeps no "
"""How the reason begins why an analysis has nothing to read; the names of the traces follow."""


def predictions(
    stack: Stack, examples: Examples | Sequence[Examples], spec: Spec, wanted: Sequence[str] = ()
) -> dict[str, Array]:
    """`prediction` and the wanted intermediates of every member: arrays (member, example, …).

    All members answer the same examples, or each its own, of which there must be equally many.
    """
    own = not isinstance(examples, Examples)
    given = [examples] if isinstance(examples, Examples) else list(examples)
    parts: list[dict[str, Array]] = []
    for start in range(0, len(given[0]), CHUNK):
        each = [e[start : start + CHUNK].inputs for e in given]
        inputs = {k: np.stack([e[k] for e in each]) for k in each[0]} if own else each[0]
        predicted, kept = stack.predict(tensors(inputs, spec, stack.dtype, str(stack.rows.device)), wanted, own=own)
        parts.append({k: v.cpu().numpy() for k, v in {"prediction": predicted, **kept}.items()})
    return {k: np.concatenate([p[k] for p in parts], axis=1) for k in parts[0]}


def each(examples: Examples | Sequence[Examples], members: int) -> list[Examples]:
    """The examples of every member, whether all answer the same or each its own."""
    return [examples] * members if isinstance(examples, Examples) else list(examples)


def member_loss(predicted: Array, targets: Array, spec: Spec) -> float:
    """The mean loss of one member."""
    return float(
        loss(torch.from_numpy(predicted).double(), target_tensor(targets, spec, torch.float64, "cpu"), spec.target)
    )


def conditions(task: Task, evaluation: Evaluation) -> list[str]:
    """The conditions an evaluation covers."""
    for name in evaluation.conditions:
        task.condition(name)
    return list(evaluation.conditions) or [c for c in task.conditions if c != "train"]


def draw(task: Task, condition: str, n: int, data_seed: DataSeed) -> Examples:
    """The first n examples, or all if the set is smaller."""
    size = task.size(condition)
    return task.sample(condition, n if size is None else min(n, size), data_seed=data_seed)
