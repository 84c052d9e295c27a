"""The gated step: the part of a recurrent step that depends on the gating.

At each step it computes from a `row` [input; state; 1 if there is a bias], (rows, B), the gates of a cell before their
activation, (gates, modules, width, B), and provides the weights, (modules, B), with which the modules are mixed. It serves
one member of a stack; in the backward pass it adds up the gradients of its parameters.

| gating | step |
|---|---|
| none | `DenseStep`: weight · row; there is one module and nothing to mix |
| operation | `DenseStep`, all modules in one product, with weights to mix them |
| truth | `ChosenStep`: weight · (choice ⊗ row), the chosen module's weight times the row; nothing to mix |
| joint | `ScoredStep`: input and state separately, because scores read both products before they are added |
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


class GatedStep(Protocol):
    """How a gating computes and mixes the modules."""

    @property
    def gradients(self) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """The gradients of `weight`, mixing weights and score, after a backward pass."""

    def forward(self, step: int, row: Tensor, gates: Tensor) -> None:
        """Fill in `gates` before their activation, and determine the weights of the step."""

    def weights(self, step: int) -> Tensor | None:
        """The weights of a step after its forward pass; None if there is one module."""

    def clear(self) -> None:
        """Begin a backward pass."""

    def backward(self, step: int, row: Tensor, d_gates: Tensor, d_weights: Tensor | None, d_row: Tensor) -> None:
        """Fill in the gradient of the row, and add to the other gradients."""


class DenseStep:
    """`weight` (rows, gates, modules, width); `mixing` weights (N, modules, B), or None for one module."""

    def __init__(self, weight: Tensor, mixing: Tensor | None) -> None:
        self.mixing = mixing
        self.weight = weight.flatten(1)

    @property
    def gradients(self) -> tuple[Tensor, Tensor | None, Tensor | None]:
        return self.d_weight, self.d_mixing, None

    def forward(self, step: int, row: Tensor, gates: Tensor) -> None:
        # One product for all gates and modules, written where the cell reads it.
        torch.mm(self.weight.mT, row, out=gates.view(-1, gates.shape[-1]))

    def weights(self, step: int) -> Tensor | None:
        return None if self.mixing is None else self.mixing[step]

    def clear(self) -> None:
        self.d_weight = torch.zeros_like(self.weight)
        self.d_mixing = None if self.mixing is None else torch.empty_like(self.mixing)

    def backward(self, step: int, row: Tensor, d_gates: Tensor, d_weights: Tensor | None, d_row: Tensor) -> None:
        if self.d_mixing is not None and d_weights is not None:
            self.d_mixing[step] = d_weights
        d_gates = d_gates.view(-1, d_gates.shape[-1])
        self.d_weight.addmm_(row, d_gates.mT)
        torch.mm(self.weight, d_gates, out=d_row)


class ChosenStep(DenseStep):
    """`weight` (modules · rows, gates, 1, width); `choice` (N, modules, B): 1 for the module of an example, else 0."""

    def __init__(self, weight: Tensor, choice: Tensor) -> None:
        super().__init__(weight, None)
        self.choice = choice[:, :, None]

    def forward(self, step: int, row: Tensor, gates: Tensor) -> None:
        # The row once per module, multiplied by 0 except for the chosen one, times the weights of all modules one below
        # the other: one dense product instead of a product per module.
        super().forward(step, (self.choice[step] * row).flatten(0, 1), gates)

    def backward(self, step: int, row: Tensor, d_gates: Tensor, d_weights: Tensor | None, d_row: Tensor) -> None:
        sent = self.choice[step] * row
        d_sent = sent.new_empty(sent.shape)  # always contiguous, even if `sent` is not: it is filled through a view
        super().backward(step, sent.flatten(0, 1), d_gates, None, d_sent.flatten(0, 1))
        torch.sum(d_sent.mul_(self.choice[step]), 0, out=d_row)


class ScoredStep:
    """`weight` as in `DenseStep`; `score` (2, gates, modules, width) reads the ReLU of the products of input and state.

    The weights, the softmax of the scores, are written into `chosen`, (N, modules, B). In the backward pass the products
    are computed again rather than kept: a product costs less than fresh memory.
    """

    def __init__(self, weight: Tensor, score: Tensor, chosen: Tensor, inputs: int) -> None:
        state = inputs + score.shape[-1]
        self.chosen = chosen
        self.weight = weight.flatten(1)
        self.score = score.flatten(1, 2)
        self.row_ranges = slice(inputs), slice(inputs, state)
        self.bias = slice(state, len(weight))
        # Reused at every step, for the products of input and state.
        self.room = weight.new_empty(2, *self.score.shape[1:], chosen.shape[-1])

    @property
    def gradients(self) -> tuple[Tensor, Tensor | None, Tensor | None]:
        return self.d_weight, None, self.d_score

    def forward(self, step: int, row: Tensor, gates: Tensor) -> None:
        for rows, product in zip(self.row_ranges, self.room, strict=True):
            torch.mm(self.weight[rows].mT, row[rows], out=product.view(-1, row.shape[-1]))
        total = torch.add(*self.room, out=gates.flatten(0, 1))
        for bias in self.weight[self.bias]:
            total.view(-1, row.shape[-1]).add_(bias[:, None])
        # The ReLU is taken in place: the sum above has been formed, so the products themselves are no longer needed.
        scores = torch.bmm(self.score[0, :, None], self.room[0].relu_())
        scores.baddbmm_(self.score[1, :, None], self.room[1].relu_())
        torch.softmax(scores.view(len(gates), -1, row.shape[-1]).sum(0), 0, out=self.chosen[step])

    def weights(self, step: int) -> Tensor | None:
        return self.chosen[step]

    def clear(self) -> None:
        self.d_weight, self.d_score = torch.zeros_like(self.weight), torch.zeros_like(self.score)

    def backward(self, step: int, row: Tensor, d_gates: Tensor, d_weights: Tensor | None, d_row: Tensor) -> None:
        assert d_weights is not None  # scored modules are always mixed
        weights, product = self.chosen[step], self.room[0]
        d_row.zero_()
        # The backward pass of the softmax.
        d_scores = weights * d_weights
        d_scores = d_scores.addcmul_(weights, d_scores.sum(0), value=-1)[:, None]
        # The scores of all gates were added up, so each gate has the same gradient.
        d_scores = d_scores.repeat(len(d_gates), 1, 1)
        flat = product.view(-1, row.shape[-1])
        for rows, score, d_score in zip(self.row_ranges, self.score, self.d_score, strict=True):
            weight = self.weight[rows]
            torch.mm(weight.mT, row[rows], out=flat).relu_()
            d_score[:, None].baddbmm_(d_scores, product.mT)
            # The gradient through the score, where the ReLU is active, plus the gradient through the gates.
            slope = score[..., None].expand_as(product)
            torch.ops.aten.threshold_backward.grad_input(slope, product, 0, grad_input=product)
            torch.addcmul(d_gates.flatten(0, 1), product, d_scores, out=product)
            self.d_weight[rows].addmm_(row[rows], flat.mT)
            torch.mm(weight, flat, out=d_row[rows])
        for d_bias in self.d_weight[self.bias]:
            d_bias += d_gates.sum(-1).flatten()
