"""A step of the GRU after its products, with a backward pass of its own.

Autograd spreads the gradient of each third of the gates over zeros as wide as all three, and adds them up.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from unseen.models.layers.activation import sigmoid
from unseen.models.layers.members import LARGE, stack


def gated(given: Tensor, from_state: Tensor, before: Tensor | None) -> Tensor:
    """The GRU, gates in the order reset, keep, candidate: n = tanh(a + r · b), and the new state is (1 − z) n + z h.

    From what inputs and state say, (B, 3 · width) each, and the state (B, width), None for zeros, to the new state.
    """
    if given.numel() < LARGE:
        return plain(given, from_state, before)
    state: Tensor = _Gated.apply(given, from_state.expand(given.shape), before)[0]  # type: ignore[no-untyped-call]
    return state


def plain(given: Tensor, from_state: Tensor, before: Tensor | None) -> Tensor:
    """The same by autograd, for small members."""
    width = given.shape[-1] // 3
    reset, keep = sigmoid(given[..., : 2 * width] + from_state[..., : 2 * width]).chunk(2, -1)
    new = (given[..., 2 * width :] + reset * from_state[..., 2 * width :]).tanh()
    return new - keep * new if before is None else new + keep * (before - new)


class _Gated(torch.autograd.Function):
    """The new state; besides it, both gates and the candidate, for the way back. Leading axes are free."""

    @staticmethod
    def forward(given: Tensor, from_state: Tensor, before: Tensor | None) -> tuple[Tensor, ...]:
        width = given.shape[-1] // 3
        gates = given[..., : 2 * width] + from_state[..., : 2 * width]
        gates.mul_(0.5).tanh_().mul_(0.5).add_(0.5)  # σ, without torch's, whose bits depend on an element's place
        reset, keep = gates.chunk(2, -1)
        new = torch.addcmul(given[..., 2 * width :], reset, from_state[..., 2 * width :]).tanh_()
        return torch.addcmul(new, keep, -new if before is None else before - new), gates, new

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs[1:], *output[1:])
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if gradients[0] is None:
            return None, None, None
        d_state = gradients[0]
        from_state, before, gates, new = ctx.saved_tensors
        width, (reset, keep) = new.shape[-1], gates.chunk(2, -1)
        d_before = d_state * keep
        d_given = torch.empty_like(from_state, memory_format=torch.contiguous_format)
        d_reset, d_keep, d_new = d_given.chunk(3, -1)
        torch.mul(d_state - d_before, 1 - new * new, out=d_new)
        torch.mul(d_new, from_state[..., 2 * width :], out=d_reset)
        torch.mul(d_state, -new if before is None else before - new, out=d_keep)
        d_given[..., : 2 * width].mul_((1 - gates).mul_(gates))
        d_from_state = d_given.clone()
        d_from_state[..., 2 * width :].mul_(reset)
        return d_given, d_from_state, None if before is None else d_before

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor | None) -> tuple[Any, Any]:
        return _Gated.apply(*stack(info, in_dims, inputs)), (0, 0, 0)  # type: ignore[no-untyped-call]
