"""Recurrent layers: LSTM, GRU and Elman's RNN, unrolled over time.

The LSTM has its own backward pass over all steps, in which everything that does not depend on the previous step is done
for all steps at once: the input projection, and the gradient of the recurrent weights (one product instead of one per
step and their sum). The GRU and the RNN are written as one step and unrolled by autograd.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from unseen.models.context import NO_CONTEXT, Context
from unseen.models.layers.constants import constant
from unseen.models.layers.linear import TensorModule, affine, sigmoid, uniform_parameter
from unseen.models.layers.per_member import LARGE, save_intermediates, stack_inputs

Activation = Literal["relu", "tanh"]
CellName = Literal["lstm", "gru", "relu", "tanh"]
"""`relu` and `tanh` are Elman's RNN with that activation."""

RecurrentStep = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""From the projections of input and state, (B, gates · width) each, and the state, None for zeros, to the new state."""


class Recurrence(TensorModule):
    """Recurrent layers from zero states: (B, T, inputs) → (B, T, width), the hidden state at every step.

    Two bias vectors, and everything uniform within ±1/√width, as in `nn.LSTM`, `nn.GRU` and `nn.RNN`. Gates are in the
    order input, forget, candidate, output (LSTM) or reset, update, candidate (GRU). Dropout acts between layers. At
    padded steps (mask false) the state is carried on unchanged.
    """

    def __init__(
        self, inputs: int, width: int, layers: int = 1, dropout: float = 0.0, *, cell: CellName = "lstm"
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.layers = nn.ModuleList(_RecurrentLayer(width if i else inputs, width, cell) for i in range(layers))

    def forward(
        self, x: Tensor, mask: Tensor | None = None, *, reverse: bool = False, ctx: Context = NO_CONTEXT
    ) -> Tensor:
        """The states in the order of the tokens; with `reverse`, they are read from the last to the first."""
        if reverse:
            x, mask = x.flip(1), None if mask is None else mask.flip(1)
        for i, layer in enumerate(self.layers):
            x = layer(ctx.dropout(x, self.dropout) if i else x, mask)
        return x.flip(1) if reverse else x


class _RecurrentLayer(nn.Module):
    def __init__(self, inputs: int, width: int, cell: CellName) -> None:
        super().__init__()
        self.cell = cell
        gates = {"lstm": 4, "gru": 3}.get(cell, 1)
        self.input_weight = uniform_parameter(width, inputs, gates * width)
        self.state_weight = uniform_parameter(width, width, gates * width)
        self.input_bias = uniform_parameter(width, gates * width)
        self.state_bias = uniform_parameter(width, gates * width)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        real = None if mask is None else mask.to(x.dtype)
        if self.cell == "lstm":
            projected = affine(x, self.input_weight, self.input_bias + self.state_bias)
            if torch.compiler.is_compiling():
                return unroll_lstm_by_autograd(projected, self.state_weight, real)
            return _LSTMUnroll.apply(projected, self.state_weight, real)[0]  # type: ignore[no-any-return, no-untyped-call]
        projections = affine(x, self.input_weight, self.input_bias).unbind(1)
        real_steps = None if real is None else real[..., None].unbind(1)
        return unroll_steps(STEPS[self.cell], projections, self.state_weight, self.state_bias, real_steps)


def unroll_steps(
    step: RecurrentStep,
    projections: Iterable[Tensor],
    state_weight: Tensor,
    state_bias: Tensor,
    real: Sequence[Tensor] | None = None,
    norm: nn.Module | None = None,
) -> Tensor:
    """Apply one step to the input projections (B, gates · width) of all steps, from a zero state: (B, T, width).

    `real` has a tensor (B, 1) per step, 1 for real tokens and 0 for padding. `norm` acts on the state after every step.
    """
    states: list[Tensor] = []
    for k, projection in enumerate(projections):
        before = states[-1] if states else None
        from_state = state_bias if before is None else affine(before, state_weight, state_bias)
        state = step(projection, from_state, before)
        if real is not None:  # sums of products with 0 and 1: exactly one state or the other
            state = state * real[k] if before is None else state * real[k] + before * (1 - real[k])
        states.append(state if norm is None else norm(state))
    return torch.stack(states, 1)


# The LSTM.


def update_lstm(
    take: Tensor, forget: Tensor, candidate: Tensor, out: Tensor, memory: Tensor, new: tuple[Tensor, Tensor, Tensor]
) -> None:
    """c′ = f c + i g and h′ = o tanh(c′), from activated gates; fills in `new`: c′, tanh(c′) and h′."""
    cell, tanh_cell, hidden = new
    torch.mul(forget, memory, out=cell).addcmul_(take, candidate)
    torch.mul(out, torch.tanh(cell, out=tanh_cell), out=hidden)


def update_lstm_backward(gates: Sequence[Tensor], memory: Tensor, d_cell: Tensor, d_gates: Sequence[Tensor]) -> None:
    """The gradients of the gates before their activation; `d_cell`, the gradient of c′, becomes that of the old memory.

    Gates are in the order take, forget, candidate, out. On entry `d_out` holds d_h′ · h′. Each σ is contained in the
    product it was multiplied into: with x = dσ · σ, the gradient of its input, dσ · (σ − σ²), is x − x σ, and x is at
    hand. The same holds for both tanh. This takes half the passes over memory that computing the slopes would take.
    """
    take, forget, candidate, out = gates
    d_take, d_forget, d_candidate, d_out = d_gates
    torch.mul(d_cell, take, out=d_candidate)
    torch.mul(d_candidate, candidate, out=d_take)
    d_candidate.addcmul_(d_take, candidate, value=-1)
    torch.mul(d_cell.mul_(forget), memory, out=d_forget)
    d_take.addcmul_(d_take, take, value=-1)
    d_forget.addcmul_(d_forget, forget, value=-1)
    d_out.addcmul_(d_out, out, value=-1)


@constant
def _gate_line(width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Slope and offset that turn tanh into each gate: σ(x) = ½ tanh(x/2) + ½, and the candidate is tanh itself.

    This takes one kernel for all gates. It also keeps the bits: torch's sigmoid rounds the last elements of an array
    differently from the rest, so that a member's numbers would depend on its position in the stack; its tanh does not.
    """
    slope = torch.tensor([0.5, 0.5, 1.0, 0.5], dtype=dtype, device=device).repeat_interleave(width)
    return torch.stack([slope, 1 - slope])


class _LSTMUnroll(torch.autograd.Function):
    """From projected inputs (…, B, T, 4w), weights (…, w, 4w) and 1 where real (…, B, T) to states (…, B, T, w).

    Leading axes are stacked members. The other outputs are what the backward pass needs, with the steps first.
    """

    @staticmethod
    def forward(projected: Tensor, weight: Tensor, real: Tensor | None) -> tuple[Tensor, ...]:
        width = weight.shape[-2]
        slope, offset = _gate_line(width, weight.dtype, weight.device)
        by_step = _join_members(projected, 3).movedim(-2, 0)
        # Written into fresh contiguous memory, steps first: each step then works on one block, in place.
        gates = torch.mul(by_step, slope, out=by_step.new_empty(by_step.shape))
        weight = _join_members(weight, 2) * slope
        padded = None if real is None else 1 - _join_members(real, 2).movedim(-1, 0)[..., None]
        steps, *rows, _ = gates.shape
        # One step more than there are: index 0 is the zero state before the first.
        states, cells = gates.new_zeros(2, steps + 1, *rows, width)
        tanh_cells = gates.new_empty(steps, *rows, width)
        for k, gate in enumerate(gates):
            # All four gates at once, in place: offset + slope · tanh(slope · (input + state)); the inner slope is already
            # in the projections and in the weight.
            torch.addcmul(offset, gate.baddbmm_(states[k], weight).tanh_(), slope, out=gate)
            if padded is not None:  # carry the cell on: forget nothing, add nothing
                gate.mul_(1 - padded[k])[..., width : 2 * width].add_(padded[k])
            take, forget, candidate, out = gate.chunk(4, -1)
            update_lstm(take, forget, candidate, out, cells[k], (cells[k + 1], tanh_cells[k], states[k + 1]))
            if padded is not None:
                states[k + 1].addcmul_(states[k], padded[k])
        result = states[1:].movedim(0, -2).reshape(*projected.shape[:-1], width)
        return result, gates, states, cells, tanh_cells

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        save_intermediates(ctx, output, inputs[1], inputs[2])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if gradients[0] is None:
            return None, None, None
        weight, real, gates, states, cells, tanh_cells = ctx.saved_tensors
        width = weight.shape[-2]
        backward_weight = _join_members(weight, 2).transpose(-1, -2)
        padded = None if real is None else 1 - _join_members(real, 2).movedim(-1, 0)[..., None]
        incoming = _join_members(gradients[0], 3).movedim(-2, 0)
        d_projected = incoming.new_empty(*incoming.shape[1:3], len(gates), 4 * width)
        d_gate = torch.empty_like(gates[0])
        d_gates = d_gate.chunk(4, -1)
        d_state = incoming[-1]
        d_cell = torch.zeros_like(incoming[-1])
        for k in range(len(gates) - 1, -1, -1):
            out = gates[k].chunk(4, -1)[3]
            d_tanh = d_state * out
            torch.mul(d_tanh, tanh_cells[k], out=d_gates[3])
            d_cell = d_tanh.add_(d_cell).addcmul_(d_gates[3], tanh_cells[k], value=-1)
            update_lstm_backward(gates[k].chunk(4, -1), cells[k], d_cell, d_gates)
            d_projected[:, :, k] = d_gate
            if k:
                carried = incoming[k - 1]
                if padded is not None:  # a padded step copied its state: the gradient passes through unchanged
                    carried = torch.addcmul(carried, d_state, padded[k])
                d_state = torch.baddbmm(carried, d_gate, backward_weight)
        # One product over all steps and examples for the gradient of the recurrent weights.
        before = states[:-1].movedim(0, 2).flatten(1, 2)
        d_weight = before.transpose(1, 2) @ d_projected.flatten(1, 2)
        return d_projected.view(*gradients[0].shape[:-1], -1), d_weight.view(weight.shape), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor | None) -> tuple[Any, Any]:
        stacked = stack_inputs(info, in_dims, inputs)
        return _LSTMUnroll.apply(*stacked), (0, None, None, None, None)  # type: ignore[no-untyped-call]


def unroll_lstm_by_autograd(projected: Tensor, weight: Tensor, real: Tensor | None) -> Tensor:
    """The same states from plain operations: what `torch.compile` traces, since it makes its own backward pass."""
    states: list[Tensor] = []
    memory = projected.new_zeros(len(projected), weight.shape[0])
    state = memory
    for k in range(projected.shape[1]):
        gates = projected[:, k] + state @ weight
        take, forget, candidate, out = gates.chunk(4, -1)
        new_memory = sigmoid(forget) * memory + sigmoid(take) * torch.tanh(candidate)
        new_state = sigmoid(out) * torch.tanh(new_memory)
        if real is not None:  # a padded step carries cell and state on
            is_real = real[:, k, None]
            new_memory = new_memory * is_real + memory * (1 - is_real)
            new_state = new_state * is_real + state * (1 - is_real)
        memory, state = new_memory, new_state
        states.append(state)
    return torch.stack(states, 1)


def _join_members(x: Tensor, axes: int) -> Tensor:
    """All leading axes except the last `axes` as one."""
    return x.reshape(-1, *x.shape[-axes:])


# The GRU.


def gru_step(projection: Tensor, from_state: Tensor, before: Tensor | None) -> Tensor:
    """The GRU, gates in the order reset, update, candidate: n = tanh(a + r · b), and the new state is (1 − z) n + z h.

    From the projections of input and state, (B, 3 · width) each, and the state (B, width), None for zeros. Large members
    have their own backward pass, because autograd spreads the gradient of each third of the gates over zeros as wide as
    all three and adds them up.
    """
    if projection.numel() < LARGE or torch.compiler.is_compiling():
        return gru_step_by_autograd(projection, from_state, before)
    arguments = projection, from_state.expand(projection.shape), before
    return _GRUStep.apply(*arguments)[0]  # type: ignore[no-any-return, no-untyped-call]


def gru_step_by_autograd(projection: Tensor, from_state: Tensor, before: Tensor | None) -> Tensor:
    """The same step for small members."""
    width = projection.shape[-1] // 3
    reset, update = sigmoid(projection[..., : 2 * width] + from_state[..., : 2 * width]).chunk(2, -1)
    new = (projection[..., 2 * width :] + reset * from_state[..., 2 * width :]).tanh()
    return new - update * new if before is None else new + update * (before - new)


class _GRUStep(torch.autograd.Function):
    """The new state; besides it both gates and the candidate, for the backward pass. Any leading axes are allowed."""

    @staticmethod
    def forward(projection: Tensor, from_state: Tensor, before: Tensor | None) -> tuple[Tensor, ...]:
        width = projection.shape[-1] // 3
        gates = projection[..., : 2 * width] + from_state[..., : 2 * width]
        gates.mul_(0.5).tanh_().mul_(0.5).add_(0.5)  # σ by tanh: the bits of torch's sigmoid depend on the position
        reset, update = gates.chunk(2, -1)
        new = torch.addcmul(projection[..., 2 * width :], reset, from_state[..., 2 * width :]).tanh_()
        return torch.addcmul(new, update, -new if before is None else before - new), gates, new

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        save_intermediates(ctx, output, *inputs[1:])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if gradients[0] is None:
            return None, None, None
        d_state = gradients[0]
        from_state, before, gates, new = ctx.saved_tensors
        width = new.shape[-1]
        reset, update = gates.chunk(2, -1)
        d_before = d_state * update
        d_projection = torch.empty_like(from_state, memory_format=torch.contiguous_format)
        d_reset, d_update, d_new = d_projection.chunk(3, -1)
        torch.mul(d_state - d_before, 1 - new * new, out=d_new)
        torch.mul(d_new, from_state[..., 2 * width :], out=d_reset)
        torch.mul(d_state, -new if before is None else before - new, out=d_update)
        d_projection[..., : 2 * width].mul_((1 - gates).mul_(gates))  # both gates at once: the slope of σ
        d_from_state = d_projection.clone()
        d_from_state[..., 2 * width :].mul_(reset)
        return d_projection, d_from_state, None if before is None else d_before

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor | None) -> tuple[Any, Any]:
        return _GRUStep.apply(*stack_inputs(info, in_dims, inputs)), (0, 0, 0)  # type: ignore[no-untyped-call]


STEPS: dict[CellName, RecurrentStep] = {
    "gru": gru_step,
    "relu": lambda projection, from_state, _: torch.relu(projection + from_state),
    "tanh": lambda projection, from_state, _: torch.tanh(projection + from_state),
}
"""The cells that are unrolled step by step."""
