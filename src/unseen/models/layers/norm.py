"""Layer normalisation of a stack by the kernel for a single model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from unseen.models.layers.per_member import LARGE, map_members, save_intermediates, stack_inputs


class LayerNorm(nn.LayerNorm):
    """torch's layer norm over the last axis, with a faster path for stacks of large members.

    torch's kernel has one scale and one shift for all rows; a stack has one per member. vmap would therefore decompose it
    into nine passes over memory, forward and backward (norm, scale, shift, the norm again on the way back, and products
    and sums for each gradient), where the kernel makes two. Small members are left to vmap: see `LARGE`.
    """

    __call__: Callable[..., Tensor]

    def __init__(self, width: int) -> None:
        super().__init__(width)

    def forward(self, x: Tensor) -> Tensor:
        # Under vmap, `numel` counts the elements of one member: the choice does not depend on the size of the stack.
        if x.numel() < LARGE or torch.compiler.is_compiling():
            return super().forward(x)
        return _LayerNorm.apply(x, self.weight, self.bias, self.eps)[0]  # type: ignore[no-any-return, no-untyped-call]


class _LayerNorm(torch.autograd.Function):
    """x (…, width), scale and shift (width,) → the norm, and means and inverse deviations for the backward pass.

    If scale and shift have shape (members, width), every tensor has a leading axis of members.
    """

    @staticmethod
    def forward(x: Tensor, scale: Tensor, shift: Tensor, eps: float) -> tuple[Tensor, ...]:
        def norm_member(x: Tensor, scale: Tensor, shift: Tensor) -> tuple[Tensor, ...]:
            return torch.native_layer_norm(x, scale.shape, scale, shift, eps)

        return norm_member(x, scale, shift) if scale.dim() == 1 else map_members(norm_member, x, scale, shift)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        save_intermediates(ctx, output, *inputs[:3])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if gradients[0] is None:
            return (None,) * 4

        def gradients_of_member(
            d_y: Tensor, x: Tensor, scale: Tensor, shift: Tensor, mean: Tensor, rate: Tensor
        ) -> tuple[Tensor, ...]:
            kernel = torch.ops.aten.native_layer_norm_backward
            results: tuple[Tensor, ...] = kernel(d_y, x, scale.shape, mean, rate, scale, shift, [True] * 3)
            return results

        arguments = gradients[0], *ctx.saved_tensors
        single = ctx.saved_tensors[1].dim() == 1
        return *(gradients_of_member(*arguments) if single else map_members(gradients_of_member, *arguments)), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, Any]:
        stacked = stack_inputs(info, in_dims[:3], inputs[:3])
        return _LayerNorm.apply(*stacked, inputs[3]), (0, 0, 0)  # type: ignore[no-untyped-call]
