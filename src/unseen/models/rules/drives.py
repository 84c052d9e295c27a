"""What drives recurrent modules and what mixes them: the part of a step that differs with the gating.

At one step, a drive makes of a `row` [input; state; 1 if there is a bias], (rows, B), what the gates of a cell start
from, (gates, modules, width, B), and says with which weights, (modules, B), the modules are mixed. It serves one member
of a stack; on the way back it adds up the gradients of what it was made from.

| gating | drive |
|---|---|
| none | `Dense`: weight · row; there is one module and nothing to mix |
| operation | `Dense`, all modules in one product, with given weights |
| truth | `Chosen`: weight · (choice ⊗ row), the chosen module's weight times the row; nothing to mix |
| joint | `Scored`: input and state each by itself, because scores read both parts before they are added |
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


class Drive(Protocol):
    """How a gating drives and mixes modules."""

    @property
    def gradients(self) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Of `weight`, given weights and score, after a backward pass."""

    def forward(self, step: int, row: Tensor, gates: Tensor) -> None:
        """Fill `gates` with what they start from, and see to the weights of the step."""

    def weights(self, step: int) -> Tensor | None:
        """The weights of a step that has been driven; None: there is one module."""

    def clear(self) -> None:
        """Begin a backward pass."""

    def backward(self, step: int, row: Tensor, d_gates: Tensor, d_weights: Tensor | None, d_row: Tensor) -> None:
        """Fill in the gradient of the row; the other gradients go on growing."""


class Dense:
    """`weight` (rows, gates, modules, width); `given` weights, (N, modules, B), or none for one module."""

    def __init__(self, weight: Tensor, given: Tensor | None) -> None:
        self.given, self.weight = given, weight.flatten(1)

    @property
    def gradients(self) -> tuple[Tensor, Tensor | None, Tensor | None]:
        return self.d_weight, self.d_given, None

    def forward(self, step: int, row: Tensor, gates: Tensor) -> None:
        torch.mm(self.weight.mT, row, out=gates.view(-1, gates.shape[-1]))

    def weights(self, step: int) -> Tensor | None:
        return None if self.given is None else self.given[step]

    def clear(self) -> None:
        self.d_weight = torch.zeros_like(self.weight)
        self.d_given = None if self.given is None else torch.empty_like(self.given)

    def backward(self, step: int, row: Tensor, d_gates: Tensor, d_weights: Tensor | None, d_row: Tensor) -> None:
        if self.d_given is not None and d_weights is not None:
            self.d_given[step] = d_weights
        d_gates = d_gates.view(-1, d_gates.shape[-1])
        self.d_weight.addmm_(row, d_gates.mT)
        torch.mm(self.weight, d_gates, out=d_row)


class Chosen(Dense):
    """`weight` (modules · rows, gates, 1, width); `choice` (N, modules, B): 1 for the module of an example, else 0."""

    def __init__(self, weight: Tensor, choice: Tensor) -> None:
        super().__init__(weight, None)
        self.choice = choice[:, :, None]

    def forward(self, step: int, row: Tensor, gates: Tensor) -> None:
        super().forward(step, (self.choice[step] * row).flatten(0, 1), gates)

    def backward(self, step: int, row: Tensor, d_gates: Tensor, d_weights: Tensor | None, d_row: Tensor) -> None:
        sent = self.choice[step] * row
        d_sent = sent.new_empty(sent.shape)  # contiguous, whatever `sent` is: its rows are filled through a view
        super().backward(step, sent.flatten(0, 1), d_gates, None, d_sent.flatten(0, 1))
        torch.sum(d_sent.mul_(self.choice[step]), 0, out=d_row)


class Scored:
    """`weight` as in `Dense`; `score` (2, gates, modules, width) reads the ReLU of the input's and the state's part.

    The weights, softmax of the scores, are written into `made`, (N, modules, B). On the way back the parts are computed
    again rather than kept: a product costs less than fresh memory.
    """

    def __init__(self, weight: Tensor, score: Tensor, made: Tensor, inputs: int) -> None:
        state = inputs + score.shape[-1]
        self.made, self.weight, self.score = made, weight.flatten(1), score.flatten(1, 2)
        self.parts, self.bias = (slice(inputs), slice(inputs, state)), slice(state, len(weight))
        self.room = weight.new_empty(2, *self.score.shape[1:], made.shape[-1])

    @property
    def gradients(self) -> tuple[Tensor, Tensor | None, Tensor | None]:
        return self.d_weight, None, self.d_score

    def forward(self, step: int, row: Tensor, gates: Tensor) -> None:
        for part, product in zip(self.parts, self.room, strict=True):
            torch.mm(self.weight[part].mT, row[part], out=product.view(-1, row.shape[-1]))
        drive = torch.add(*self.room, out=gates.flatten(0, 1))
        for bias in self.weight[self.bias]:
            drive.view(-1, row.shape[-1]).add_(bias[:, None])
        scores = torch.bmm(self.score[0, :, None], self.room[0].relu_())
        scores.baddbmm_(self.score[1, :, None], self.room[1].relu_())
        torch.softmax(scores.view(len(gates), -1, row.shape[-1]).sum(0), 0, out=self.made[step])

    def weights(self, step: int) -> Tensor | None:
        return self.made[step]

    def clear(self) -> None:
        self.d_weight, self.d_score = torch.zeros_like(self.weight), torch.zeros_like(self.score)

    def backward(self, step: int, row: Tensor, d_gates: Tensor, d_weights: Tensor | None, d_row: Tensor) -> None:
        assert d_weights is not None  # scored modules are always mixed
        weights, product = self.made[step], self.room[0]
        d_row.zero_()
        d_scores = weights * d_weights
        d_scores = d_scores.addcmul_(weights, d_scores.sum(0), value=-1)[:, None]
        d_scores = d_scores.repeat(len(d_gates), 1, 1)
        flat = product.view(-1, row.shape[-1])
        for part, score, d_score in zip(self.parts, self.score, self.d_score, strict=True):
            weight = self.weight[part]
            torch.mm(weight.mT, row[part], out=flat).relu_()
            d_score[:, None].baddbmm_(d_scores, product.mT)
            # What the score hands back, where ReLU let it through, and what the gate hands back.
            seen = score[..., None].expand_as(product)
            torch.ops.aten.threshold_backward.grad_input(seen, product, 0, grad_input=product)
            torch.addcmul(d_gates.flatten(0, 1), product, d_scores, out=product)
            self.d_weight[part].addmm_(row[part], flat.mT)
            torch.mm(weight, flat, out=d_row[part])
        for d_bias in self.d_weight[self.bias]:
            d_bias += d_gates.sum(-1).flatten()
