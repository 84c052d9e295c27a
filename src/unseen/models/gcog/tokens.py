"""Embedded tokens that attention can use without computing them.

An embedded token is affine in the few numbers of its row: h = row · W + constant, where the constant is the bias and the
code of its position. What a query needs of all tokens, the scores h · u and a weighted sum Σ a h, then costs as much as
the rows and the codes, not as the wide tokens. With dropout on the sum, or after a layer, tokens have to be computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unseen.models.context import Context
from unseen.models.gcog.inputs import TokenRows, count_columns
from unseen.models.layers.attention import padding_barrier
from unseen.models.layers.constants import constant
from unseen.models.layers.linear import affine
from unseen.models.layers.positions import sinusoidal_code
from unseen.spec import Field


class TokenView(Protocol):
    """The view of T tokens of width E that attention needs, whether they are computed or not."""

    @property
    def sequence(self) -> TokenRows:
        """The rows, the mask, and the token that is read."""

    def states(self) -> Tensor:
        """All tokens: (B, T, E)."""

    def last(self) -> Tensor:
        """The token that is read: (B, E)."""

    def project(self, weight: Tensor, bias: Tensor) -> Tensor:
        """All tokens times a matrix (E, k), plus a bias: (B, T, k)."""

    def scores(self, query: Tensor) -> Tensor:
        """The products with vectors (B, Q, E): (B, Q, T)."""

    def mix(self, weights: Tensor) -> Tensor:
        """Their sums with weights (B, Q, T): (B, Q, E)."""


@dataclass(frozen=True)
class DenseTokens:
    """Tokens that have been computed, (B, T, E)."""

    tokens: Tensor
    sequence: TokenRows

    def states(self) -> Tensor:
        return self.tokens

    def last(self) -> Tensor:
        return take_at(self.tokens, self.sequence.read_at)

    def project(self, weight: Tensor, bias: Tensor) -> Tensor:
        return affine(self.tokens, weight, bias)

    def scores(self, query: Tensor) -> Tensor:
        return query @ self.tokens.mT

    def mix(self, weights: Tensor) -> Tensor:
        return weights @ self.tokens


@dataclass(frozen=True)
class LazyTokens:
    """Tokens row · `weight` + `code` + `bias`: `weight` (columns, E), `code` (T, E), `bias` (E)."""

    sequence: TokenRows
    weight: Tensor
    code: Tensor
    bias: Tensor

    @property
    def constant(self) -> Tensor:
        """The summand that does not depend on the rows: (T, E)."""
        return self.code + self.bias

    def states(self) -> Tensor:
        return affine(self.sequence.rows, self.weight).add_(self.constant)

    def last(self) -> Tensor:
        read_at = self.sequence.read_at
        code = self.code[-1] if read_at is None else F.embedding(read_at, self.code)
        return affine(take_at(self.sequence.rows, read_at), self.weight, self.bias).add_(code)

    def project(self, weight: Tensor, bias: Tensor) -> Tensor:
        return affine(self.sequence.rows, self.weight @ weight).add_(affine(self.constant, weight, bias))

    def scores(self, query: Tensor) -> Tensor:
        # (row · W + c) · u = row · (W u) + c · u: the product with W is done once per query, not once per token.
        by_row = affine(query, self.weight.mT) @ self.sequence.rows.mT
        return by_row.add_(affine(query, self.constant.mT))

    def mix(self, weights: Tensor) -> Tensor:
        # Σ a (row · W + c) = (Σ a row) · W + Σ a c.
        by_row = affine(weights @ self.sequence.rows, self.weight)
        return by_row.add_(affine(weights, self.constant))


class RowEmbedding(nn.Module):
    """A linear map of rows, plus sinusoidal codes of positions if `has_codes`, with `dropout` on the sum.

    Columns of numbers start like a linear layer with that many inputs, those of a category like an embedding.
    """

    def __init__(self, fields: tuple[Field, ...], width: int, *, has_codes: bool, dropout: float) -> None:
        super().__init__()
        self.has_codes = has_codes
        self.dropout = dropout
        numbers = count_columns(tuple(f for f in fields if f.kind != "category"))
        bound = 1 / math.sqrt(numbers) if numbers else 0.0
        blocks = []
        for field in fields:
            block = torch.empty(field.width, width)
            blocks.append(block.normal_() if field.kind == "category" else block.uniform_(-bound, bound))
        self.weight = nn.Parameter(torch.cat(blocks))
        self.bias = nn.Parameter(torch.empty(width).uniform_(-bound, bound))

    def forward(self, sequence: TokenRows, ctx: Context) -> TokenView:
        tokens = LazyTokens(sequence, self.weight, self._code(sequence.positions), self.bias)
        if self.has_codes and self.dropout and ctx.training:  # dropout acts on each token, which must be computed
            return DenseTokens(ctx.dropout(tokens.states(), self.dropout), sequence)
        return tokens

    def again(self, states: Tensor, sequence: TokenRows, ctx: Context) -> TokenView:
        """The states of a layer as the tokens of the next, with the codes added again."""
        if self.has_codes:
            states = ctx.dropout(states + self._code(sequence.positions), self.dropout)
        return DenseTokens(states, sequence)

    def _code(self, positions: tuple[int, ...]) -> Tensor:
        # Without codes there are zeros, which depend on the number of tokens alone.
        coded = positions if self.has_codes else len(positions)
        return _codes(coded, self.weight.shape[1], self.weight.dtype, self.weight.device)


@constant
def _codes(positions: tuple[int, ...] | int, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The sinusoidal codes of positions, or that many rows of zeros."""
    if isinstance(positions, int):
        return torch.zeros(positions, width, dtype=dtype, device=device)
    return sinusoidal_code(torch.tensor(positions, device=device), width).to(dtype)


def take_at(x: Tensor, end: Tensor | None) -> Tensor:
    """(B, T, k) → (B, k), at the index of each example, by default the last."""
    if end is None:
        return x[:, -1]
    return x.gather(1, end[:, None, None].expand(-1, 1, x.shape[2]))[:, 0]


def mask_barrier(tokens: TokenView, dtype: torch.dtype) -> Tensor | None:
    """The number to add to each score so that no token attends to padding: (B, 1, 1, T)."""
    mask = tokens.sequence.mask
    return None if mask is None else padding_barrier(mask, dtype)
