"""The one recurrence: LSTM layers unrolled over time, with a backward pass of their own.

Everything that does not depend on the previous step is done for all steps at once: the input projection, the slopes of
the gates, and the gradient of the recurrent weights (one product instead of one per step and their sum).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from unseen.models.layers.constants import constant
from unseen.models.layers.linear import affine
from unseen.models.layers.tape import NO_TAPE, Tape


class Recurrence(nn.Module):
    """LSTM layers from zero states: (B, T, inputs) → (B, T, width), the hidden state at every step.

    Gates in the order input, forget, candidate, output, with two bias vectors, everything uniform within ±1/√width, as
    in `nn.LSTM`. Dropout acts between layers. At padded steps (mask false) the state is carried on unchanged.
    """

    def __init__(self, inputs: int, width: int, layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.layers = nn.ModuleList(_Layer(width if i else inputs, width) for i in range(layers))

    def forward(self, x: Tensor, mask: Tensor | None = None, *, tape: Tape = NO_TAPE) -> Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(tape.dropout(x, self.dropout) if i else x, mask)
        return x


class _Layer(nn.Module):
    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(width)

        def uniform(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))

        self.input_weight, self.state_weight = uniform(inputs, 4 * width), uniform(width, 4 * width)
        self.input_bias, self.state_bias = uniform(4 * width), uniform(4 * width)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        projected = affine(x, self.input_weight, self.input_bias + self.state_bias)
        real = None if mask is None else mask.to(x.dtype)
        states: Tensor = _Unroll.apply(projected, self.state_weight, real)[0]  # type: ignore[no-untyped-call]
        return states


@constant
def _gate_line(width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Slope and offset that turn tanh into each gate: σ(x) = ½ tanh(x/2) + ½, and the candidate is tanh itself.

    Besides taking one kernel for all gates, this keeps the bits: torch's sigmoid rounds the last elements of an array
    differently from the rest, so that a member's numbers would depend on its place in the stack; its tanh does not.
    """
    slope = torch.tensor([0.5, 0.5, 1.0, 0.5], dtype=dtype, device=device).repeat_interleave(width)
    return torch.stack([slope, 1 - slope])


class _Unroll(torch.autograd.Function):
    """From projected inputs (…, B, T, 4w), weights (…, w, 4w) and 1 where real (…, B, T) to states (…, B, T, w).

    Leading axes are stacked members. What the backward pass needs comes out as well, steps first.
    """

    @staticmethod
    def forward(projected: Tensor, weight: Tensor, real: Tensor | None) -> tuple[Tensor, ...]:
        width = weight.shape[-2]
        slope, offset = _gate_line(width, weight.dtype, weight.device)
        by_step = _members(projected, 3).movedim(-2, 0)
        gates = torch.mul(by_step, slope, out=by_step.new_empty(by_step.shape))
        weight = _members(weight, 2) * slope
        padded = None if real is None else 1 - _members(real, 2).movedim(-1, 0)[..., None]
        steps, *rows, _ = gates.shape
        states, cells = gates.new_zeros(2, steps + 1, *rows, width)
        squashed = gates.new_empty(steps, *rows, width)
        for k, gate in enumerate(gates):
            torch.addcmul(offset, gate.baddbmm_(states[k], weight).tanh_(), slope, out=gate)
            if padded is not None:  # keep the cell: forget nothing, add nothing
                gate.mul_(1 - padded[k])[..., width : 2 * width].add_(padded[k])
            take, forget, candidate, out = gate.chunk(4, -1)
            torch.mul(forget, cells[k], out=cells[k + 1]).addcmul_(take, candidate)
            torch.mul(out, torch.tanh(cells[k + 1], out=squashed[k]), out=states[k + 1])
            if padded is not None:
                states[k + 1].addcmul_(states[k], padded[k])
        result = states[1:].movedim(0, -2).reshape(*projected.shape[:-1], width)
        return result, gates, states, cells, squashed

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(inputs[1], inputs[2], *output[1:])
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if gradients[0] is None:
            return None, None, None
        weight, real, gates, states, cells, squashed = ctx.saved_tensors
        width, backward_weight = weight.shape[-2], _members(weight, 2).transpose(-1, -2)
        padded = None if real is None else 1 - _members(real, 2).movedim(-1, 0)[..., None]
        incoming = _members(gradients[0], 3).movedim(-2, 0)
        d_projected = incoming.new_empty(*incoming.shape[1:3], len(gates), 4 * width)
        d_gate = torch.empty_like(gates[0])
        d_take, d_forget, d_candidate, d_out = d_gate.chunk(4, -1)
        d_state, d_cell = incoming[-1], torch.zeros_like(incoming[-1])
        for k in range(len(gates) - 1, -1, -1):
            take, forget, candidate, out = gates[k].chunk(4, -1)
            # Each σ is in what it was multiplied to: with x = dσ · σ its input's gradient, dσ · (σ − σ²), is x − x σ.
            # So are both tanh: this takes half the passes over memory that slopes and partners would.
            shown = d_state * out
            torch.mul(shown, squashed[k], out=d_out)
            d_cell = shown.add_(d_cell).addcmul_(d_out, squashed[k], value=-1)
            torch.mul(d_cell, take, out=d_candidate)
            torch.mul(d_candidate, candidate, out=d_take)
            d_candidate.addcmul_(d_take, candidate, value=-1)
            d_cell.mul_(forget)
            torch.mul(d_cell, cells[k], out=d_forget)
            for part, gate in ((d_take, take), (d_forget, forget), (d_out, out)):
                part.addcmul_(part, gate, value=-1)
            d_projected[:, :, k] = d_gate
            if k:
                carried = incoming[k - 1]
                if padded is not None:
                    carried = torch.addcmul(carried, d_state, padded[k])
                d_state = torch.baddbmm(carried, d_gate, backward_weight)
        before = states[:-1].movedim(0, 2).flatten(1, 2)
        d_weight = before.transpose(1, 2) @ d_projected.flatten(1, 2)
        return d_projected.view(*gradients[0].shape[:-1], -1), d_weight.view(weight.shape), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor | None) -> tuple[Any, Any]:
        stacked = [
            x if x is None else x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
            for x, dim in zip(inputs, in_dims, strict=True)
        ]
        return _Unroll.apply(*stacked), (0, None, None, None, None)  # type: ignore[no-untyped-call]


def _members(x: Tensor, axes: int) -> Tensor:
    """All leading axes but the last `axes` as one."""
    return x.reshape(-1, *x.shape[-axes:])
