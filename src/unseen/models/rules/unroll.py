"""Recurrent modules that share one state, unrolled over time, with a backward pass of their own.

At every step each module makes a new state from the same input and the same old state, and the new states are mixed.
Examples are the last axis ("columns"), so that weights and scores broadcast over whole vector registers. The members of
a stack go one after the other, since a step of one member fills the cache.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from unseen.models.rules.cells import CELLS
from unseen.models.rules.drives import Chosen, Dense, Drive, Scored
from unseen.models.rules.widths import Cell


def unroll(
    x: Tensor,
    weight: Tensor,
    cell: Cell,
    *,
    choice: Tensor | None = None,
    given: Tensor | None = None,
    score: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The shared hidden state at every step, (N, width, B), and the weights that mixed the modules, (N, modules, B).

    `x` (N, inputs, B); `weight` (rows, gates, modules, width), whose rows are those of input, state and, if there is
    one more, bias. For more than one module, one of `choice`, `given` weights and `score`: see `drives`.
    """
    run = _Run(cell, keep=torch.is_grad_enabled())
    hidden, made = _Unroll.apply(x, weight, choice, given, score, run)  # type: ignore[no-untyped-call]
    return hidden, made if score is not None else given


@dataclass
class _Run:
    """What passes from the forward to the backward pass besides tensors: the members, if they are to be kept."""

    cell: Cell
    keep: bool
    members: list[_Member] = field(default_factory=list)


class _Unroll(torch.autograd.Function):
    """Every tensor may have a leading axis, the members."""

    @staticmethod
    def forward(
        x: Tensor, weight: Tensor, choice: Tensor | None, given: Tensor | None, score: Tensor | None, run: _Run
    ) -> tuple[Tensor, Tensor]:
        lead, (steps, _, batch), (modules, width) = x.shape[:-3], x.shape[-3:], weight.shape[-2:]
        hidden = x.new_empty(*lead, steps, width, batch)
        made = x.new_empty(*lead, steps if score is not None else 0, modules, batch)
        for index in range(lead.numel()):
            own: list[Any] = [x, weight, choice, given, score, made]
            member = _Member(run.cell, run.keep, *(t[index] if lead and t is not None else t for t in own))
            # It may not hold on to `hidden`, from which the way back to it leads: that would be a cycle.
            member.forward(hidden[index] if lead else hidden)
            run.members += [member] if run.keep else []
        return hidden, made

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        *tensors, ctx.run = inputs
        ctx.shapes = [None if t is None else t.shape for t in tensors]
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if gradients[0] is None:
            return (None,) * 6
        # Contiguous: it comes with the examples first, and every step would go across all of them.
        d_hidden = gradients[0].reshape(-1, *gradients[0].shape[-3:]).contiguous()
        parts = [member.backward(d) for member, d in zip(ctx.run.members, d_hidden, strict=True)]
        stacked = (None if part[0] is None else torch.stack(part) for part in zip(*parts, strict=True))
        return *(d if d is None else d.view(shape) for d, shape in zip(stacked, ctx.shapes, strict=True)), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, Any]:
        *tensors, run = inputs
        stacked = [
            x if x is None else x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
            for x, dim in zip(tensors, in_dims, strict=False)
        ]
        return _Unroll.apply(*stacked, run), (0, 0)  # type: ignore[no-untyped-call]


class _Member:
    """One member of a stack: its drive, and what its steps leave behind for the way back."""

    def __init__(
        self,
        cell: Cell,
        keep: bool,
        x: Tensor,
        weight: Tensor,
        choice: Tensor | None,
        given: Tensor | None,
        score: Tensor | None,
        made: Tensor,
    ) -> None:
        (steps, inputs, batch), (rows, gates, modules, width) = x.shape, weight.shape
        self.cell, self.state = CELLS[cell], slice(inputs, inputs + width)
        self.drive: Drive
        if score is not None:
            self.drive = Scored(weight, score, made, inputs)
        else:
            self.drive = Dense(weight, given) if choice is None else Chosen(weight, choice)
        self.sent = x.new_ones(steps, rows if choice is None else rows // choice.shape[1], batch)
        self.sent[:, :inputs] = x
        self.sent[0, self.state] = 0
        room = steps if keep else 2  # without a backward pass every step overwrites the last one's but one
        self.gates = x.new_empty(room, gates, modules, width, batch)
        self.new = x.new_empty(room, self.cell.states, modules, width, batch)
        self.notes = x.new_empty(room, self.cell.notes, modules, width, batch)
        self.memory: list[Tensor] = []
        """The memory that every step found."""

    def forward(self, hidden: Tensor) -> None:
        """Go from step to step, filling `hidden`."""
        memory = torch.zeros_like(hidden[0])
        for step, row in enumerate(self.sent):
            gates, new, note = (kept[step % len(kept)] for kept in (self.gates, self.new, self.notes))
            self.memory.append(memory)
            self.drive.forward(step, row, gates)
            self.cell.forward(gates, memory, new, note)
            mixed = _mix(new, self.drive.weights(step))
            hidden[step], memory = mixed[0], mixed[-1]
            if step + 1 < len(self.sent):
                self.sent[step + 1, self.state] = mixed[0]

    def backward(self, d_hidden: Tensor) -> list[Tensor | None]:
        """Go back from the last step; the gradients of input, weight, choice, given weights, score."""
        d_sent, d_drive = torch.empty_like(self.sent), torch.empty_like(self.gates[0])
        d_state, d_memory = d_hidden[-1], torch.zeros_like(d_hidden[-1])
        self.drive.clear()
        for step in range(len(self.sent) - 1, -1, -1):
            new, weights = self.new[step], self.drive.weights(step)
            d_new, d_weights = [d[None] for d in (d_state, d_memory)][: self.cell.states], None
            if weights is not None:
                d_weights = sum((each * d).sum(1) for each, d in zip(new, d_new, strict=True))
                d_new = [weights[:, None] * d for d in d_new]
            d_memories = self.cell.backward(self.gates[step], self.memory[step], new, self.notes[step], d_new, d_drive)
            d_memory = d_memories[0] if len(d_memories) == 1 else d_memories.sum(0)
            self.drive.backward(step, self.sent[step], d_drive, d_weights, d_sent[step])
            if step:
                d_state = d_hidden[step - 1] + d_sent[step, self.state]
        d_weight, d_given, d_score = self.drive.gradients
        return [d_sent[:, : self.state.start], d_weight, None, d_given, d_score]


def _mix(new: Tensor, weights: Tensor | None) -> Tensor:
    """The new states, (states, modules, width, B), mixed with weights (modules, B): (states, width, B)."""
    if weights is None:
        return new[:, 0]
    mixed = new[:, 0] * weights[0]
    for module in range(1, len(weights)):  # nothing but the sum is written: a third of the passes over memory
        mixed.addcmul_(new[:, module], weights[module])
    return mixed
