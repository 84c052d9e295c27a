"""The recurrent loop of the rules family: modules share one state, which each updates and a gating mixes.

At every step each module computes a new state from the same input and the same old state, and the new states are mixed.
The loop has its own backward pass. Examples are the last axis ("columns"), so that weights and scores broadcast over
whole vector registers. The members of a stack are processed one after the other, because a step of one fills the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from unseen.models.layers.per_member import stack_inputs
from unseen.models.layers.recurrent import update_lstm, update_lstm_backward
from unseen.models.rules.gated_step import ChosenStep, DenseStep, GatedStep, ScoredStep
from unseen.models.rules.sizes import Cell


class RecurrentCell(Protocol):
    """A recurrent cell, forward and backward, for all modules at once.

    A cell activates its gates (gates, modules, width, B) in place and computes from them and the old memory (width, B)
    the new states of every module. `states` is the number of states (modules, width, B): the hidden state first, the
    memory, if there is one, last. `notes` is the number of further tensors that the backward pass needs.
    """

    states: ClassVar[int]
    notes: ClassVar[int]

    def forward(self, gates: Tensor, memory: Tensor, new: Tensor, notes: Tensor) -> None:
        """Activate the gates in place and fill in the new states and the notes."""

    def backward(
        self, gates: Tensor, memory: Tensor, new: Tensor, notes: Tensor, d_new: list[Tensor], d_gates: Tensor
    ) -> Tensor:
        """Fill in the gradient of the gates before activation; returns each module's gradient of the memory."""


class LSTMCell:
    """i, f, o = σ(gates), g = tanh(gates); c′ = f c + i g, h′ = o tanh(c′). Gates in the order i, f, o, g."""

    states: ClassVar[int] = 2
    notes: ClassVar[int] = 1

    def forward(self, gates: Tensor, memory: Tensor, new: Tensor, notes: Tensor) -> None:
        # torch's sigmoid is safe here: the loop runs on one member at a time, exactly as it does for a member alone.
        gates[:3].sigmoid_()
        gates[3].tanh_()
        take, forget, out, candidate = gates
        hidden, cell = new
        update_lstm(take, forget, candidate, out, memory, (cell, notes[0], hidden))

    def backward(
        self, gates: Tensor, memory: Tensor, new: Tensor, notes: Tensor, d_new: list[Tensor], d_gates: Tensor
    ) -> Tensor:
        take, forget, out, candidate = gates
        d_hidden, d_cell = d_new
        d_take, d_forget, d_out, d_candidate = d_gates
        torch.mul(d_hidden, new[0], out=d_out)
        # Through h′ = o tanh(c′): d_c′ += d_h′ o (1 − tanh²(c′)); d_out already holds d_h′ o tanh(c′).
        d_cell = torch.addcmul(d_cell, d_hidden, out).addcmul_(d_out, notes[0], value=-1)
        update_lstm_backward((take, forget, candidate, out), memory, d_cell, (d_take, d_forget, d_candidate, d_out))
        return d_cell


class ElmanCell:
    """h′ = tanh(gates), without memory."""

    states: ClassVar[int] = 1
    notes: ClassVar[int] = 0

    def forward(self, gates: Tensor, memory: Tensor, new: Tensor, notes: Tensor) -> None:
        torch.tanh(gates, out=new)

    def backward(
        self, gates: Tensor, memory: Tensor, new: Tensor, notes: Tensor, d_new: list[Tensor], d_gates: Tensor
    ) -> Tensor:
        # d · (1 − h′²) as d − d h′ h′, in place: no square is kept.
        torch.mul(d_new[0], new, out=d_gates).mul_(new).neg_().add_(d_new[0])
        return torch.zeros_like(memory)[None]


CELLS: dict[Cell, RecurrentCell] = {"lstm": LSTMCell(), "elman": ElmanCell()}


def unroll(
    x: Tensor,
    weight: Tensor,
    cell: Cell,
    *,
    choice: Tensor | None = None,
    mixing: Tensor | None = None,
    score: Tensor | None = None,
    route: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The shared hidden state at every step, (N, width, B), and the weights that mixed the modules, (N, modules, B).

    `x` (N, inputs, B); `weight` (rows, gates, modules, width), whose rows are those of input, state and optionally one
    bias. For more than one module, one of `choice`, `mixing` weights and `score`: see `gated_step`.
    `route` turns the scores of a step, (modules, B), into weights, by default their softmax.
    """
    # `torch.compile` makes its own backward pass, and the one written here knows no routing but the softmax.
    if route is not None or torch.compiler.is_compiling():
        return _unroll_by_autograd(x, weight, cell, choice, mixing, score, route)
    unrolling = _Unrolling(cell, keep=torch.is_grad_enabled())
    hidden, chosen = _Unroll.apply(x, weight, choice, mixing, score, unrolling)  # type: ignore[no-untyped-call]
    return hidden, chosen if score is not None else mixing


def _unroll_by_autograd(
    x: Tensor,
    weight: Tensor,
    cell: Cell,
    choice: Tensor | None,
    mixing: Tensor | None,
    score: Tensor | None,
    route: Callable[[Tensor], Tensor] | None,
) -> tuple[Tensor, Tensor | None]:
    """`unroll` from plain operations, differentiated by torch."""
    steps, inputs, batch = x.shape
    rows, gate_count, modules, width = weight.shape
    biases = (rows if choice is None else rows // choice.shape[1]) - inputs - width
    flat = weight.flatten(1).mT
    state = x.new_zeros(width, batch)
    memory = state
    hidden: list[Tensor] = []
    mixed_by: list[Tensor] = []
    for k in range(steps):
        row = torch.cat([x[k], state, x.new_ones(biases, batch)])
        if choice is not None:
            row = (choice[k][:, None] * row).flatten(0, 1)
        gates = (flat @ row).view(gate_count, modules, width, batch)
        weights = None if mixing is None else mixing[k]
        if score is not None:
            products = flat[:, :inputs] @ x[k], flat[:, inputs : inputs + width] @ state
            scores = [s[..., None] * p.view(gates.shape).relu() for s, p in zip(score, products, strict=True)]
            total = (scores[0] + scores[1]).sum((0, 2))
            weights = total.softmax(0) if route is None else route(total)
            mixed_by.append(weights)
        if cell == "lstm":
            take, forget, out = gates[:3].sigmoid().unbind(0)
            new_memory = forget * memory + take * gates[3].tanh()
            new = torch.stack([out * new_memory.tanh(), new_memory])
        else:
            new = gates.tanh()
        mixed = new[:, 0] if weights is None else (new * weights[:, None]).sum(1)
        state, memory = mixed[0], mixed[-1]
        hidden.append(state)
    return torch.stack(hidden), torch.stack(mixed_by) if score is not None else mixing


@dataclass
class _Unrolling:
    """The state that the forward pass leaves for the backward pass besides tensors: the members' loops, if `keep`."""

    cell: Cell
    keep: bool
    loops: list[_MemberLoop] = field(default_factory=list)


class _Unroll(torch.autograd.Function):
    """Every tensor may have a leading axis, the members."""

    @staticmethod
    def forward(
        x: Tensor,
        weight: Tensor,
        choice: Tensor | None,
        mixing: Tensor | None,
        score: Tensor | None,
        unrolling: _Unrolling,
    ) -> tuple[Tensor, Tensor]:
        lead = x.shape[:-3]
        steps, _, batch = x.shape[-3:]
        modules, width = weight.shape[-2:]
        hidden = x.new_empty(*lead, steps, width, batch)
        chosen = x.new_empty(*lead, steps if score is not None else 0, modules, batch)
        for index in range(lead.numel()):
            arguments: list[Any] = []
            for tensor in (x, weight, choice, mixing, score, chosen):
                arguments.append(tensor[index] if lead and tensor is not None else tensor)
            loop = _MemberLoop(unrolling.cell, unrolling.keep, *arguments)
            # The loop may not keep a reference to `hidden`, whose graph refers to the loop: memory would not be freed.
            loop.forward(hidden[index] if lead else hidden)
            if unrolling.keep:
                unrolling.loops.append(loop)
        return hidden, chosen

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        *tensors, ctx.unrolling = inputs
        ctx.shapes = [None if t is None else t.shape for t in tensors]
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if gradients[0] is None:
            return (None,) * 6
        # Contiguous: the gradient arrives with the examples first, and every step would stride across all of them.
        d_hidden = gradients[0].reshape(-1, *gradients[0].shape[-3:]).contiguous()
        by_member = [loop.backward(d) for loop, d in zip(ctx.unrolling.loops, d_hidden, strict=True)]
        results: list[Tensor | None] = []
        for members, shape in zip(zip(*by_member, strict=True), ctx.shapes, strict=True):
            results.append(None if members[0] is None else torch.stack(members).view(shape))
        return *results, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, Any]:
        *tensors, unrolling = inputs
        stacked = stack_inputs(info, in_dims[:-1], tensors)
        return _Unroll.apply(*stacked, unrolling), (0, 0)  # type: ignore[no-untyped-call]


class _MemberLoop:
    """The loop of one member of a stack: its gated step, and what the steps keep for the backward pass."""

    def __init__(
        self,
        cell: Cell,
        keep: bool,
        x: Tensor,
        weight: Tensor,
        choice: Tensor | None,
        mixing: Tensor | None,
        score: Tensor | None,
        chosen: Tensor,
    ) -> None:
        steps, inputs, batch = x.shape
        rows, gates, modules, width = weight.shape
        self.cell = CELLS[cell]
        self.state_rows = slice(inputs, inputs + width)
        self.step: GatedStep
        if score is not None:
            self.step = ScoredStep(weight, score, chosen, inputs)
        elif choice is not None:
            self.step = ChosenStep(weight, choice)
        else:
            self.step = DenseStep(weight, mixing)
        # The rows [input; state; 1 if there is a bias] of every step; the states are filled in as they become known.
        self.rows = x.new_ones(steps, rows if choice is None else rows // choice.shape[1], batch)
        self.rows[:, :inputs] = x
        self.rows[0, self.state_rows] = 0
        room = steps if keep else 2  # without a backward pass two slots suffice: every step overwrites the last but one
        self.gates = x.new_empty(room, gates, modules, width, batch)
        self.new = x.new_empty(room, self.cell.states, modules, width, batch)
        self.notes = x.new_empty(room, self.cell.notes, modules, width, batch)
        self.memories: list[Tensor] = []
        """The memory before every step."""

    def forward(self, hidden: Tensor) -> None:
        """Go from step to step, filling `hidden`."""
        memory = torch.zeros_like(hidden[0])
        for k, row in enumerate(self.rows):
            slot = k % len(self.gates)
            gates, new = self.gates[slot], self.new[slot]
            self.memories.append(memory)
            self.step.forward(k, row, gates)
            self.cell.forward(gates, memory, new, self.notes[slot])
            mixed = _mix_modules(new, self.step.weights(k))
            hidden[k] = mixed[0]
            memory = mixed[-1]
            if k + 1 < len(self.rows):
                self.rows[k + 1, self.state_rows] = mixed[0]

    def backward(self, d_hidden: Tensor) -> list[Tensor | None]:
        """Go back from the last step; returns the gradients of input, weight, choice, mixing weights and score."""
        d_rows = torch.empty_like(self.rows)
        d_gates = torch.empty_like(self.gates[0])
        d_state = d_hidden[-1]
        d_memory = torch.zeros_like(d_hidden[-1])
        self.step.clear()
        for k in range(len(self.rows) - 1, -1, -1):
            new, weights = self.new[k], self.step.weights(k)
            # Modules share one state, so each new state has the gradient of the mixed one, times its weight below.
            d_new = [d_state[None], d_memory[None]][: self.cell.states]
            d_weights = None
            if weights is not None:
                d_weights = sum((state * d).sum(1) for state, d in zip(new, d_new, strict=True))
                d_new = [weights[:, None] * d for d in d_new]
            d_memories = self.cell.backward(self.gates[k], self.memories[k], new, self.notes[k], d_new, d_gates)
            d_memory = d_memories[0] if len(d_memories) == 1 else d_memories.sum(0)
            self.step.backward(k, self.rows[k], d_gates, d_weights, d_rows[k])
            if k:
                d_state = d_hidden[k - 1] + d_rows[k, self.state_rows]
        d_weight, d_mixing, d_score = self.step.gradients
        return [d_rows[:, : self.state_rows.start], d_weight, None, d_mixing, d_score]


def _mix_modules(new: Tensor, weights: Tensor | None) -> Tensor:
    """The new states, (states, modules, width, B), mixed with weights (modules, B): (states, width, B)."""
    if weights is None:
        return new[:, 0]
    mixed = new[:, 0] * weights[0]
    for module in range(1, len(weights)):  # only the sum is written: a third of the passes over memory
        mixed.addcmul_(new[:, module], weights[module])
    return mixed
