"""Elementwise optimizers on stacked rows, with clipping, learning rate and weight decay per member."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from unseen.training.recipe import Recipe

_OPTIMIZERS: dict[str, Any] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}


class StackOptimizer:
    """torch's own fused optimizer on the rows of a stack: one parameter group per run of members with equal rates.

    `factors`: what the learning rate of every column of the rows is multiplied with; None: 1 everywhere.
    `reads`: whether to look at the gradients' norms before clipping, which saves a pass over memory on a CPU but waits
    for any other device. The numbers are the same.
    """

    def __init__(
        self, rows: Tensor, recipes: Sequence[Recipe], factors: Tensor | None = None, *, reads: bool = True
    ) -> None:
        self._factors = factors
        self._reads = reads
        clips = [recipe.clip if recipe.clip is not None else torch.inf for recipe in recipes]
        self._clips = torch.tensor(clips, dtype=rows.dtype, device=rows.device)
        groups = []
        start = 0
        # Only neighbours with equal options share a group: a group is one slice of the rows, a view that the optimizer
        # updates in place, without a copy.
        for (rate, decay), equal in groupby(recipes, key=lambda r: (r.learning_rate, r.weight_decay)):
            stop = start + len(list(equal))
            groups.append({"params": [rows[start:stop]], "lr": rate, "weight_decay": decay})
            start = stop
        # Fused: one kernel updates a whole block of rows; torch's default goes over memory once per operation.
        self._torch: torch.optim.Optimizer = _OPTIMIZERS[recipes[0].optimiser](groups, fused=True)
        self._blocks = [group["params"][0] for group in self._torch.param_groups]
        self._rates = [group["lr"] for group in self._torch.param_groups]
        self._warmup = recipes[0].warmup
        self._decay = recipes[0].decay

    def step(self, gradients: Tensor, step: int) -> None:
        """Clip each member's gradient (a row) by its own norm, then update all members; `step` steps came before."""
        clip_rows(gradients, self._clips, reads=self._reads)
        # Without decay the rate stays as it is after the warm-up, whose last step sets it.
        if self._decay is not None or step <= self._warmup:
            factor = learning_rate_factor(step, self._warmup, self._decay)
            for group, rate in zip(self._torch.param_groups, self._rates, strict=True):
                group["lr"] = rate * factor
        for block, gradient in zip(self._blocks, gradients.split(list(map(len, self._blocks))), strict=True):
            # Also a view: the rows of the gradient are cut where the rows of the parameters are.
            block.grad = gradient
        if self._factors is None:
            self._torch.step()
            return
        before = [block.clone() for block in self._blocks]
        self._torch.step()
        # All optimizers here step in proportion to their learning rate.
        for block, start in zip(self._blocks, before, strict=True):
            block.copy_(torch.lerp(start, block, self._factors))

    def save(self) -> dict[str, Tensor]:
        """The optimizer's state by slot (`exp_avg`, …), a row per member."""
        slots: dict[str, list[Tensor]] = {}
        for block in self._blocks:
            for slot, value in self._torch.state[block].items():
                # The number of steps is left out: it is the same for all members, and `load` is told it.
                if isinstance(value, Tensor) and value.shape == block.shape:
                    slots.setdefault(slot, []).append(value)
        return {slot: torch.cat(rows) for slot, rows in slots.items()}

    def load(self, slots: dict[str, Tensor], step: int) -> None:
        """Continue from a saved state."""
        start = 0
        for block in self._blocks:
            stop = start + len(block)
            for slot, rows in slots.items():
                self._torch.state[block][slot] = rows[start:stop].clone()
            if slots:
                self._torch.state[block]["step"] = torch.tensor(float(step), device=block.device)
            start = stop


def learning_rate_factor(step: int, warmup: int, decay: int | None) -> float:
    """The factor of the learning rate at a step (from 0): linear warm-up, then cosine decay to zero.

    >>> [learning_rate_factor(step, warmup=2, decay=None) for step in (0, 1, 2, 100)]
    [0.5, 1.0, 1.0, 1.0]
    >>> [round(learning_rate_factor(step, warmup=2, decay=6), 3) for step in (0, 1, 2, 3, 4, 5, 6, 7)]
    [0.5, 1.0, 1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """
    if step < warmup:
        return (step + 1) / warmup
    if decay is None:
        return 1.0
    passed = min(1.0, (step - warmup) / max(1, decay - warmup))
    return 0.5 * (1.0 + math.cos(math.pi * passed))


def clip_rows(gradients: Tensor, clips: Tensor, *, reads: bool = True) -> Tensor:
    """Scale each row, in place, to a norm of at most its clip; returns the norms before.

    If it `reads` the norms, rows that all stay as they are are left alone; otherwise they are multiplied by 1.
    """
    norms: Tensor = torch.linalg.vector_norm(gradients, dim=1)
    # The small number is that of torch.nn.utils.clip_grad_norm_, so that a run has the numbers of a plain loop.
    scale = (clips / (norms + 1e-6)).clamp_max(1.0)
    # Not `scale < 1`: a member whose norm is not a number must look the same alone and beside others.
    if not reads or not bool((scale >= 1).all()):
        gradients.mul_(scale[:, None])
    return norms
