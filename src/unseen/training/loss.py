"""The loss that a target's kind calls for: one number per member, the mean over its batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from unseen.errors import UsageError
from unseen.models.context import Objective
from unseen.spec import Target


def softplus(x: Tensor) -> Tensor:
    """log(1 + eˣ), from kernels whose bits do not depend on an element's place in the array.

    torch's own softplus and sigmoid treat the tail of an array by other instructions than its body, so that a
    member's numbers would depend on how many others are stacked with it.
    """
    return x.clamp_min(0) + torch.log1p(torch.exp(-x.abs()))


def loss(prediction: Tensor, targets: Tensor, target: Target) -> Tensor:
    """Mean loss: cross-entropy on logits for binary and category targets, absolute error for real ones."""
    answered = prediction.shape[:-1] if target.kind == "category" else prediction.shape
    if answered != targets.shape:
        values = f" with {target.width} values" if target.kind == "category" else ""
        raise UsageError(
            f"the model's prediction has shape {tuple(prediction.shape)}, but the task's target, batch "
            f"first, has {tuple(targets.shape)}{values}"
        )
    if target.kind == "category":
        return F.cross_entropy(prediction.flatten(0, -2), targets.flatten())
    if target.kind == "binary":
        return (softplus(prediction) - prediction * targets).mean()
    return (prediction - targets).abs().mean()


def training_loss(prediction: Tensor, targets: Tensor, target: Target, objectives: Sequence[Objective] = ()) -> Tensor:
    """The mean loss, with what a module adds to it in training.

    The value is that of the task alone, comparable between models; the gradient is that of the sum.
    """
    task_loss = loss(prediction, targets, target)
    if not objectives:
        return task_loss
    by_answer = answer_losses(prediction, targets, target).detach()
    added = torch.stack([objective(by_answer) for objective in objectives]).sum()
    return task_loss + (added - added.detach())


def answer_losses(prediction: Tensor, targets: Tensor, target: Target) -> Tensor:
    """The loss of every example, (B,), or of every token, (B, N): the mean over the width of the target."""
    if target.kind == "category":
        flat = F.cross_entropy(prediction.flatten(0, -2), targets.flatten(), reduction="none")
        return flat.view(targets.shape)
    if target.kind == "binary":
        return (softplus(prediction) - prediction * targets).mean(-1)
    return (prediction - targets).abs().mean(-1)
