"""Recurrent cells, forwards and backwards, for all modules at once.

A cell turns its `drive` (gates, modules, width, B), what it computes from input and hidden state, into the activated
gates in place, and these with the old memory (width, B) into new states of every module, (modules, width, B). The
hidden state is the first; a memory, if there is one, the last. `note` is room to write down what is needed again.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

import torch
from torch import Tensor

from unseen.models.rules.widths import Cell


class CellMath(Protocol):
    """`states` and `notes` say how many (modules, width, B) there are of each."""

    states: ClassVar[int]
    notes: ClassVar[int]

    def forward(self, drive: Tensor, memory: Tensor, new: Tensor, note: Tensor) -> None:
        """Activate the gates in place and fill in the new states and the note."""

    def backward(
        self, gates: Tensor, memory: Tensor, new: Tensor, note: Tensor, d_new: list[Tensor], d_drive: Tensor
    ) -> Tensor:
        """Fill in the gradient of the drive; that of the memory, as far as each module used it, comes out."""


class LSTM:
    """i, f, o = σ(drive), g = tanh(drive); c′ = f c + i g, h′ = o tanh(c′). Gates in the order i, f, o, g."""

    states: ClassVar[int] = 2
    notes: ClassVar[int] = 1

    def forward(self, drive: Tensor, memory: Tensor, new: Tensor, note: Tensor) -> None:
        drive[:3].sigmoid_()
        drive[3].tanh_()
        (take, forget, out, candidate), (hidden, cell), squashed = drive, new, note[0]
        torch.mul(forget, memory, out=cell).addcmul_(take, candidate)
        torch.mul(out, torch.tanh(cell, out=squashed), out=hidden)

    def backward(
        self, gates: Tensor, memory: Tensor, new: Tensor, note: Tensor, d_new: list[Tensor], d_drive: Tensor
    ) -> Tensor:
        """In few passes over memory: each σ is in what it was multiplied to, so that dσ · σ′ = x − x σ with x = dσ · σ,
        and x is at hand: d_h h for o, d_c f c for f, d_c i g for i. So are the gradients through both tanh.
        """
        take, forget, out, candidate = gates
        d_hidden, d_cell = d_new
        d_take, d_forget, d_out, d_candidate = d_drive
        torch.mul(d_hidden, new[0], out=d_out)
        d_cell = torch.addcmul(d_cell, d_hidden, out).addcmul_(d_out, note[0], value=-1)
        torch.mul(d_cell, take, out=d_candidate)
        torch.mul(d_candidate, candidate, out=d_take)
        d_candidate.addcmul_(d_take, candidate, value=-1)
        torch.mul(d_cell.mul_(forget), memory, out=d_forget)
        d_drive[:3].addcmul_(d_drive[:3], gates[:3], value=-1)
        return d_cell


class Elman:
    """h′ = tanh(drive), without memory."""

    states: ClassVar[int] = 1
    notes: ClassVar[int] = 0

    def forward(self, drive: Tensor, memory: Tensor, new: Tensor, note: Tensor) -> None:
        torch.tanh(drive, out=new)

    def backward(
        self, gates: Tensor, memory: Tensor, new: Tensor, note: Tensor, d_new: list[Tensor], d_drive: Tensor
    ) -> Tensor:
        torch.mul(d_new[0], new, out=d_drive).mul_(new).neg_().add_(d_new[0])
        return torch.zeros_like(memory)[None]


CELLS: dict[Cell, CellMath] = {"lstm": LSTM(), "elman": Elman()}
