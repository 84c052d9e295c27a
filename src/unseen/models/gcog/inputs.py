"""The inputs of the gcog models: rule and stimulus as rows of numbers, and tokens that attention can use without computing them.

Rule and stimulus are read separately or as one sequence. An embedded token is affine in the few numbers of its row:
h = row · W + constant, where the constant is the bias and the code of its position. What a query needs of all tokens, the
scores h · u and a weighted sum Σ a h, then costs as much as the rows and the codes, not as the wide tokens. With dropout on
the sum, or after a layer, tokens have to be computed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unseen.errors import UsageError
from unseen.models.context import Context
from unseen.models.layers.attention import padding_barrier
from unseen.models.layers.constants import arange, constant
from unseen.models.layers.linear import affine
from unseen.models.layers.positions import sinusoidal_code
from unseen.models.requirements import describe_target
from unseen.spec import Field, Spec

RULE_POSITIONS = 100
"""The number of positions that relative positions reserve for a rule, and the first position of a fixed stimulus."""


@dataclass(frozen=True)
class TokenRows:
    """Tokens as rows of numbers.

    `rows` (B, T, columns); `positions`, those of the T tokens; `mask` (B, T), true where a token is real, or None if
    all are; `read_at` (B,), the index of the token that is read, or None if it is the last.
    """

    rows: Tensor
    positions: tuple[int, ...]
    mask: Tensor | None = None
    read_at: Tensor | None = None


@dataclass(frozen=True)
class InputReader:
    """The fields of both streams, the mask of the rule if it is used, and the sizes of stimulus and answer."""

    rule_fields: tuple[Field, ...]
    stimulus_fields: tuple[Field, ...]
    mask: str | None
    stimulus_length: int
    classes: int

    def rule(self, inputs: Mapping[str, Tensor], dtype: torch.dtype) -> TokenRows:
        """The rule, read at its last real token."""
        rows = number_rows(self.rule_fields, inputs, dtype)
        positions = tuple(range(rows.shape[1]))
        if self.mask is None:
            return TokenRows(rows, positions)
        mask = inputs[self.mask]
        return TokenRows(rows, positions, mask, _count_real(mask) - 1)

    def stimulus(self, inputs: Mapping[str, Tensor], dtype: torch.dtype) -> TokenRows:
        """The stimulus, read at its last token."""
        rows = number_rows(self.stimulus_fields, inputs, dtype)
        return TokenRows(rows, tuple(range(rows.shape[1])))

    def joint(self, inputs: Mapping[str, Tensor], dtype: torch.dtype, start: int | None = None) -> TokenRows:
        """Rule and stimulus as one sequence, read at its last token; each has its own columns.

        The stimulus follows the last real token of the rule, and padding comes at the end; or it has the positions from
        `start` on.
        """
        fields = self.rule_fields + self.stimulus_fields
        rule = inputs[self.rule_fields[0].name].shape[1]
        stimulus = inputs[self.stimulus_fields[0].name].shape[1]
        joint = {f.name: _pad(f, inputs[f.name], (0, stimulus)) for f in self.rule_fields}
        joint |= {f.name: _pad(f, inputs[f.name], (rule, 0)) for f in self.stimulus_fields}
        positions = tuple(range(rule + stimulus))
        if start is not None:
            if rule > start:
                raise UsageError(
                    f"a stimulus at position {start} leaves room for a rule of {start} tokens, {rule} "
                    "arrived; choose stim_position=following"
                )
            mask = None if self.mask is None else F.pad(inputs[self.mask], (0, stimulus), value=True)
            return TokenRows(
                number_rows(fields, joint, dtype), (*positions[:rule], *range(start, start + stimulus)), mask
            )
        if self.mask is None:
            return TokenRows(number_rows(fields, joint, dtype), positions)
        mask = inputs[self.mask]
        count = _count_real(mask)[:, None]
        position = arange(len(positions), mask.device)
        # From the end of the rule on, the tokens come from behind its padding; the clamped ones are padding themselves.
        source = (position + (position >= count) * (rule - count)).clamp_max(len(positions) - 1)
        joint = {name: _take(values, source) for name, values in joint.items()}
        rows = number_rows(fields, joint, dtype)
        return TokenRows(rows, positions, position < count + stimulus, count[:, 0] + stimulus - 1)


def make_reader(spec: Spec, pad_mask: bool) -> InputReader:
    """The reader of a task's inputs; a task without a rule and a stimulus is refused."""
    names = {stream.name for stream in spec.streams}
    if names != {"rule", "stimulus"} or spec.along(None) or spec.target.kind != "category" or spec.target.along:
        raise UsageError(
            "the gcog models read the streams 'rule' and 'stimulus' and answer with a category; this task "
            f"has {_list_streams(names)} and {describe_target(spec.target)}"
        )
    masks = [field for field in spec.inputs if field.kind == "mask"]
    if len(masks) > 1 or any(field.along == "stimulus" for field in masks):
        raise UsageError(
            f"the gcog models know one mask, that of the rule; this task has {', '.join(field.name for field in masks)}"
        )
    rule = tuple(field for field in spec.along("rule") if field.kind != "mask")
    stimulus = tuple(field for field in spec.along("stimulus") if field.kind != "mask")
    mask = masks[0].name if masks and pad_mask else None
    return InputReader(rule, stimulus, mask, spec.stream("stimulus").length, spec.target.width)


def count_columns(fields: tuple[Field, ...]) -> int:
    """The number of columns that these fields take in a row."""
    return sum(field.width for field in fields)


def number_rows(fields: tuple[Field, ...], inputs: Mapping[str, Tensor], dtype: torch.dtype) -> Tensor:
    """The fields of a stream side by side, (B, T, columns): numbers as they are, categories as one-hot codes.

    A category one past its last value, which marks padding, is a row of zeros.
    """
    blocks = []
    for field in fields:
        values = inputs[field.name]
        if field.kind == "category":
            blocks.append(F.embedding(values, _one_hot_table(field.width, dtype, values.device)))
        else:
            blocks.append(values.to(dtype))
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks, -1)


def _pad(field: Field, values: Tensor, tokens: tuple[int, int]) -> Tensor:
    """The values of a field, with zero rows for these numbers of tokens before and after."""
    if field.kind == "category":
        return F.pad(values, tokens, value=field.width)
    return F.pad(values, (0, 0, *tokens))


def _take(values: Tensor, source: Tensor) -> Tensor:
    """The values (B, T) or (B, T, k) at positions (B, T)."""
    if values.dim() == 2:
        return values.gather(1, source)
    return values.gather(1, source[..., None].expand(values.shape))


def _count_real(mask: Tensor) -> Tensor:
    """The number of real tokens, which come first; at least 1, so that there is a token to read."""
    return mask.sum(1).clamp_min(1)


@constant
def _one_hot_table(width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.eye(width + 1, width, dtype=dtype, device=device)


def _list_streams(names: set[str]) -> str:
    quoted = " and ".join(f"'{name}'" for name in sorted(names))
    return f"the stream{'s' * (len(names) > 1)} {quoted}" if names else "no streams"


# Embedded tokens.


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
