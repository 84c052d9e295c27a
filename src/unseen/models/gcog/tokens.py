"""Embedded tokens, of which attention may ask without ever making them.

An embedded token is affine in the few numbers of its row: h = row · W + constant, where the constant is the bias and
the code of its place. What one query needs of all tokens, scores h · u and a weighted sum Σ a h, then costs as much as
the rows and the codes, not as the tokens. Dropout on the sum, or a layer before, makes the tokens real.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unseen.models.gcog.streams import Sequence, columns
from unseen.models.layers.attention import padding
from unseen.models.layers.constants import constant
from unseen.models.layers.linear import affine
from unseen.models.layers.positions import waves
from unseen.models.layers.tape import Tape
from unseen.spec import Field


class Tokens(Protocol):
    """What attention asks of T tokens of width E, whether they are made or not."""

    @property
    def sequence(self) -> Sequence:
        """Their mask, and which of them is read."""

    def states(self) -> Tensor:
        """All of them: (B, T, E)."""

    def last(self) -> Tensor:
        """The one that is read: (B, E)."""

    def project(self, weight: Tensor, bias: Tensor) -> Tensor:
        """All of them times a matrix (E, k), plus a bias: (B, T, k)."""

    def scores(self, query: Tensor) -> Tensor:
        """The products with vectors (B, Q, E): (B, Q, T)."""

    def mix(self, weights: Tensor) -> Tensor:
        """Their sums with weights (B, Q, T): (B, Q, E)."""


@dataclass(frozen=True)
class Made:
    """Tokens that have been made."""

    made: Tensor
    sequence: Sequence

    def states(self) -> Tensor:
        return self.made

    def last(self) -> Tensor:
        return at_end(self.made, self.sequence.end)

    def project(self, weight: Tensor, bias: Tensor) -> Tensor:
        return affine(self.made, weight, bias)

    def scores(self, query: Tensor) -> Tensor:
        return query @ self.made.mT

    def mix(self, weights: Tensor) -> Tensor:
        return weights @ self.made


@dataclass(frozen=True)
class Embedded:
    """Tokens row · `weight` + `code` + `bias`: `weight` (columns, E), `code` (T, E), `bias` (E)."""

    sequence: Sequence
    weight: Tensor
    code: Tensor
    bias: Tensor

    @property
    def constant(self) -> Tensor:
        """What does not depend on the rows: (T, E)."""
        return self.code + self.bias

    def states(self) -> Tensor:
        return affine(self.sequence.rows, self.weight).add_(self.constant)

    def last(self) -> Tensor:
        end = self.sequence.end
        code = self.code[-1] if end is None else F.embedding(end, self.code)
        return affine(at_end(self.sequence.rows, end), self.weight, self.bias).add_(code)

    def project(self, weight: Tensor, bias: Tensor) -> Tensor:
        return affine(self.sequence.rows, self.weight @ weight).add_(affine(self.constant, weight, bias))

    def scores(self, query: Tensor) -> Tensor:
        by_row = affine(query, self.weight.mT) @ self.sequence.rows.mT
        return by_row.add_(affine(query, self.constant.mT))

    def mix(self, weights: Tensor) -> Tensor:
        by_row = affine(weights @ self.sequence.rows, self.weight)
        return by_row.add_(affine(weights, self.constant))


class Embedding(nn.Module):
    """A linear map of rows, plus sinusoidal codes of places if `positions`, and `dropout` on the sum.

    Columns of numbers start as a linear layer of that many inputs, those of a category as the vectors of an embedding.
    """

    def __init__(self, fields: tuple[Field, ...], width: int, *, positions: bool, dropout: float) -> None:
        super().__init__()
        self.positions, self.dropout = positions, dropout
        numbers = columns(tuple(f for f in fields if f.kind != "category"))
        bound = 1 / math.sqrt(numbers) if numbers else 0.0
        parts = (
            torch.empty(f.width, width).normal_()
            if f.kind == "category"
            else torch.empty(f.width, width).uniform_(-bound, bound)
            for f in fields
        )
        self.weight = nn.Parameter(torch.cat(list(parts)))
        self.bias = nn.Parameter(torch.empty(width).uniform_(-bound, bound))

    def forward(self, sequence: Sequence, tape: Tape) -> Tokens:
        tokens = Embedded(sequence, self.weight, self._code(sequence.places), self.bias)
        if self.positions and self.dropout and tape.training:
            return Made(tape.dropout(tokens.states(), self.dropout), sequence)
        return tokens

    def again(self, states: Tensor, sequence: Sequence, tape: Tape) -> Tokens:
        """States of a layer as the tokens of the next, the codes added once more."""
        if self.positions:
            states = tape.dropout(states + self._code(sequence.places), self.dropout)
        return Made(states, sequence)

    def _code(self, places: tuple[int, ...]) -> Tensor:
        return _codes(
            places if self.positions else len(places), self.weight.shape[1], self.weight.dtype, self.weight.device
        )


@constant
def _codes(places: tuple[int, ...] | int, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The sinusoidal codes of places, or that many rows of zeros."""
    if isinstance(places, int):
        return torch.zeros(places, width, dtype=dtype, device=device)
    return waves(torch.tensor(places, device=device), width).to(dtype)


def at_end(x: Tensor, end: Tensor | None) -> Tensor:
    """(B, T, k) → (B, k), at an index of each example's own or at the last."""
    if end is None:
        return x[:, -1]
    return x.gather(1, end[:, None, None].expand(-1, 1, x.shape[2]))[:, 0]


def barrier(tokens: Tokens, dtype: torch.dtype) -> Tensor | None:
    """What to add to scores so that nobody sees padding: (B, 1, 1, T)."""
    mask = tokens.sequence.mask
    return None if mask is None else padding(mask, dtype)
