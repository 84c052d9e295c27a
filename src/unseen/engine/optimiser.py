"""Elementwise optimisers on stacked rows, with clipping, learning rate and weight decay per member."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from unseen.engine.recipe import Recipe

_KINDS: dict[str, Any] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}


class Optimiser:
    """torch's own fused optimiser on the rows of a stack, one parameter group per run of members with equal rates."""

    def __init__(self, rows: Tensor, recipes: Sequence[Recipe]) -> None:
        self._clips = torch.tensor(
            [r.clip if r.clip is not None else torch.inf for r in recipes], dtype=rows.dtype, device=rows.device
        )
        groups, start = [], 0
        for (rate, decay), run in groupby(recipes, key=lambda r: (r.learning_rate, r.weight_decay)):
            end = start + len(list(run))
            groups.append({"params": [rows[start:end]], "lr": rate, "weight_decay": decay})
            start = end
        self._torch: torch.optim.Optimizer = _KINDS[recipes[0].optimiser](groups, fused=True)
        self._parts = [group["params"][0] for group in self._torch.param_groups]
        self._rates = [group["lr"] for group in self._torch.param_groups]
        self._warmup, self._decay = recipes[0].warmup, recipes[0].decay

    def step(self, gradients: Tensor, step: int) -> None:
        """Clip each member's gradient (a row) by its own norm, then update all members; `step` steps came before."""
        clip_rows(gradients, self._clips)
        if self._decay is not None or step <= self._warmup:  # without decay, the last of these sets what they stay
            share = rate_share(step, self._warmup, self._decay)
            for group, rate in zip(self._torch.param_groups, self._rates, strict=True):
                group["lr"] = rate * share
        for part, gradient in zip(self._parts, gradients.split([len(p) for p in self._parts]), strict=True):
            part.grad = gradient
        self._torch.step()

    def save(self) -> dict[str, Tensor]:
        """The optimiser's memory by slot (`exp_avg`, …), a row per member."""
        slots: dict[str, list[Tensor]] = {}
        for part in self._parts:
            for slot, value in self._torch.state[part].items():
                if isinstance(value, Tensor) and value.shape == part.shape:
                    slots.setdefault(slot, []).append(value)
        return {slot: torch.cat(parts) for slot, parts in slots.items()}

    def load(self, slots: dict[str, Tensor], step: int) -> None:
        """Continue from a saved memory."""
        start = 0
        for part in self._parts:
            end = start + len(part)
            for slot, rows in slots.items():
                self._torch.state[part][slot] = rows[start:end].clone()
            if slots:
                self._torch.state[part]["step"] = torch.tensor(float(step), device=part.device)
            start = end


def rate_share(step: int, warmup: int, decay: int | None) -> float:
    """The share of the learning rate at a step (from 0): a rise to all of it, then half a cosine down to nothing.

    >>> [rate_share(step, warmup=2, decay=None) for step in (0, 1, 2, 100)]
    [0.5, 1.0, 1.0, 1.0]
    >>> [round(rate_share(step, warmup=2, decay=6), 3) for step in (0, 1, 2, 3, 4, 5, 6, 7)]
    [0.5, 1.0, 1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """
    if step < warmup:
        return (step + 1) / warmup
    if decay is None:
        return 1.0
    gone = min(1.0, (step - warmup) / max(1, decay - warmup))
    return 0.5 * (1.0 + math.cos(math.pi * gone))


def clip_rows(gradients: Tensor, clips: Tensor) -> Tensor:
    """Scale each row, in place, to a norm of at most its clip; returns the norms before."""
    norms: Tensor = torch.linalg.vector_norm(gradients, dim=1)
    scale = (clips / (norms + 1e-6)).clamp_max(1.0)
    # Not `scale < 1`: a member whose norm is not a number must look the same alone and beside others.
    if not bool((scale >= 1).all()):
        gradients.mul_(scale[:, None])
    return norms
