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
        state = gates.new_zeros(*gates.shape[1:-1], width)
        cell, states, cells, squashed = state, [state], [state], []
        for k, gate in enumerate(gates):
            gate.baddbmm_(state, weight).tanh_().mul_(slope).add_(offset)
            if padded is not None:  # keep the cell: forget nothing, add nothing
                gate.mul_(1 - padded[k])[..., width : 2 * width].add_(padded[k])
            take, forget, candidate, out = gate.chunk(4, -1)
            cell = (forget * cell).addcmul_(take, candidate)
            squashed.append(cell.tanh())
            previous, state = state, out * squashed[-1]
            if padded is not None:
                state.addcmul_(previous, padded[k])
            states.append(state)
            cells.append(cell)
        kept = torch.stack(states)
        result = kept[1:].movedim(0, -2).reshape(*projected.shape[:-1], width)
        return result, gates, kept[:-1], torch.stack(cells[:-1]), torch.stack(squashed)

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
        take, forget, candidate, out = gates.chunk(4, -1)
        # Becomes the gradient of each gate's input. First its slope, σ′ = σ (1 − σ) or tanh′ = 1 − tanh², times what
        # the gate is multiplied with; in the loop times the gradient of the cell, for the last gate of the state.
        factor = (1 - gates).mul_(gates)
        factor[..., 2 * width : 3 * width] = 1 - candidate * candidate
        for part, partner in zip(factor.chunk(4, -1), (candidate, cells, take, squashed), strict=True):
            part.mul_(partner)
        state_to_cell = (1 - squashed * squashed).mul_(out)
        d_state, d_cell = incoming[-1], torch.zeros_like(incoming[-1])
        for k in range(len(gates) - 1, -1, -1):
            d_cell = torch.addcmul(d_cell, d_state, state_to_cell[k])
            d_gate = factor[k].unflatten(-1, (4, width))
            d_gate[..., :3, :].mul_(d_cell[..., None, :])
            d_gate[..., 3, :].mul_(d_state)
            if k:
                d_cell.mul_(forget[k])
                carried = incoming[k - 1]
                if padded is not None:
                    carried = torch.addcmul(carried, d_state, padded[k])
                d_state = torch.baddbmm(carried, factor[k], backward_weight)
        d_weight = states.movedim(0, 1).flatten(1, 2).transpose(1, 2) @ factor.movedim(0, 1).flatten(1, 2)
        # Contiguous: summed over steps first, the gradient of the bias would depend on the number of members.
        d_projected = factor.movedim(0, -2).contiguous()
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
