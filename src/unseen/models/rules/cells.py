"""Recurrent cells, forwards and backwards, for all modules at once.

A cell turns its `drive` (gates, modules, width, B), what it computes from input and hidden state, into the activated
gates in place, and these with the old memory (width, B) into new states of every module, (modules, width, B). The
hidden state is the first; a memory, if there is one, the second. `note` is room to write down what is needed again.
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

    def forward(self, drive: Tensor, memory: Tensor, note: Tensor) -> None:
        """Activate the gates in place and fill the note."""

    def new(self, gates: Tensor, note: Tensor) -> list[Tensor]:
        """The new states."""

    def backward(self, gates: Tensor, memory: Tensor, note: Tensor, d_new: list[Tensor]) -> tuple[Tensor, Tensor]:
        """The gradients of the drive, and of the memory as far as each module used it."""


class LSTM:
    """i, f, o = σ(drive), g = tanh(drive); c′ = f c + i g, h′ = o tanh(c′). Gates in the order i, f, o, g."""

    states: ClassVar[int] = 2
    notes: ClassVar[int] = 2

    def forward(self, drive: Tensor, memory: Tensor, note: Tensor) -> None:
        drive[:3].sigmoid_()
        drive[3].tanh_()
        take, forget, _, candidate = drive
        cell, squashed = note
        torch.mul(forget, memory, out=cell).addcmul_(take, candidate)
        torch.tanh(cell, out=squashed)

    def new(self, gates: Tensor, note: Tensor) -> list[Tensor]:
        return [gates[2] * note[1], note[0]]

    def backward(self, gates: Tensor, memory: Tensor, note: Tensor, d_new: list[Tensor]) -> tuple[Tensor, Tensor]:
        take, forget, out, candidate = gates
        squashed, one = note[1], gates.new_ones(())
        d_hidden, d_cell = d_new
        d_cell = torch.addcmul(d_cell, d_hidden * out, torch.addcmul(one, squashed, squashed, value=-1))
        drive = torch.empty_like(gates)
        torch.addcmul(gates[:3], gates[:3], gates[:3], value=-1, out=drive[:3])  # σ′ = σ − σ²
        torch.addcmul(one, candidate, candidate, value=-1, out=drive[3])  # tanh′ = 1 − tanh²
        for gate, partners in enumerate(((d_cell, candidate), (d_cell, memory), (d_hidden, squashed), (d_cell, take))):
            drive[gate].mul_(partners[0]).mul_(partners[1])
        return drive, d_cell.mul_(forget)


class Elman:
    """h′ = tanh(drive), without memory."""

    states: ClassVar[int] = 1
    notes: ClassVar[int] = 0

    def forward(self, drive: Tensor, memory: Tensor, note: Tensor) -> None:
        drive.tanh_()

    def new(self, gates: Tensor, note: Tensor) -> list[Tensor]:
        return [gates[0]]

    def backward(self, gates: Tensor, memory: Tensor, note: Tensor, d_new: list[Tensor]) -> tuple[Tensor, Tensor]:
        drive = torch.addcmul(gates.new_ones(()), gates, gates, value=-1).mul_(d_new[0])
        return drive, torch.zeros_like(memory)[None]


CELLS: dict[Cell, CellMath] = {"lstm": LSTM(), "elman": Elman()}
