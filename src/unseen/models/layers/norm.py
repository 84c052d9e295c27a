"""Layer normalisation of a stack, by the kernel of a single model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from unseen.models.layers.members import LARGE, each, stack


class LayerNorm(nn.LayerNorm):
    """torch's own, whose kernel has one scale and one shift for all rows, where a stack has one for each member.

    vmap would make nine passes of it, forward and backward, where the kernel makes two: norm, scale and shift, the norm
    once more on the way back, and products and sums for every gradient. Small members are left to it all the same.
    """

    def __init__(self, width: int) -> None:
        super().__init__(width)

    def forward(self, x: Tensor) -> Tensor:
        if x.numel() < LARGE:
            return super().forward(x)
        normed: Tensor = _LayerNorm.apply(x, self.weight, self.bias, self.eps)[0]  # type: ignore[no-untyped-call]
        return normed


class _LayerNorm(torch.autograd.Function):
    """From x (…, width), scale and shift (width,) to the norm, and means and inverse deviations for the way back.

    With scale and shift (members, width), every tensor has a leading axis of members.
    """

    @staticmethod
    def forward(x: Tensor, scale: Tensor, shift: Tensor, eps: float) -> tuple[Tensor, ...]:
        def one(x: Tensor, scale: Tensor, shift: Tensor) -> tuple[Tensor, ...]:
            return torch.native_layer_norm(x, scale.shape, scale, shift, eps)

        return one(x, scale, shift) if scale.dim() == 1 else each(one, x, scale, shift)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs[:3], *output[1:])
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if gradients[0] is None:
            return (None,) * 4

        def one(d_y: Tensor, x: Tensor, scale: Tensor, shift: Tensor, mean: Tensor, rate: Tensor) -> tuple[Tensor, ...]:
            back = torch.ops.aten.native_layer_norm_backward
            found: tuple[Tensor, ...] = back(d_y, x, scale.shape, mean, rate, scale, shift, [True] * 3)
            return found

        given = gradients[0], *ctx.saved_tensors
        return *(one(*given) if ctx.saved_tensors[1].dim() == 1 else each(one, *given)), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, Any]:
        stacked = stack(info, in_dims[:3], inputs[:3])
        return _LayerNorm.apply(*stacked, inputs[3]), (0, 0, 0)  # type: ignore[no-untyped-call]
