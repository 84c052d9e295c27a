"""Attention with heads, from tokens to themselves; `encoder.py` has that to others.

It is written as explicit products and a softmax, so that vmap can batch it and the weights can be captured.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from unseen.errors import UsageError
from unseen.models.context import NO_CONTEXT, Context
from unseen.models.layers.constants import constant
from unseen.models.layers.linear import Linear, TensorModule, affine
from unseen.models.layers.positions import RelativeScores, Scheme, rotate

ALL = slice(None)
"""All tokens."""

_BARRED = -1e9


@constant
def causal_barrier(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The number to add to each score so that a token attends only to itself and to earlier tokens: (length, length)."""
    return torch.full((length, length), _BARRED, dtype=dtype, device=device).triu(1)


def padding_barrier(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """The number to add to each score so that no token attends to padding: (B, 1, 1, T).

    `mask` (B, T) is true where a token is real.
    """
    return ((mask.to(dtype) - 1) * -_BARRED)[:, None, None, :]


def check_heads(width: int, heads: int) -> None:
    """Refuse a width that does not divide into heads."""
    if width % heads:
        raise UsageError(f"attention of width {width} does not split into {heads} heads; change width or heads")


def attend(
    scores: Tensor,
    value: Tensor,
    barrier: Tensor | None = None,
    *,
    dropout: float = 0.0,
    ctx: Context = NO_CONTEXT,
    name: str = "attention",
) -> Tensor:
    """softmax(scores + barrier) · value: scores (…, T, U), value (…, U, k) → (…, T, k).

    A barrier is 0 where a query may attend and hugely negative where it may not; the softmax makes that weight exactly 0.
    The weights are captured under `name` before dropout acts on them.
    """
    weights = (scores if barrier is None else scores + barrier).softmax(-1)
    weights = ctx.capture(name, weights)
    return ctx.dropout(weights, dropout) @ value


def project_heads(x: Tensor, input: Linear, heads: int, rows: slice = ALL) -> tuple[Tensor, Tensor, Tensor]:
    """Queries of the tokens in `rows`, keys and values of all tokens, from one map of width → 3·width.

    x (B, T, width) → (B, heads, rows, k) for the queries and (B, heads, T, k) for keys and values.
    """
    width = x.shape[-1]
    weight = input.weight
    bias = input.bias
    if rows.indices(x.shape[1]) == (0, x.shape[1], 1):
        query, key, value = affine(x, weight, bias).chunk(3, -1)
    else:
        query_weight, other_weight = weight.split([width, 2 * width], -1)
        query_bias, other_bias = (None, None) if bias is None else bias.split([width, 2 * width], -1)
        # Contiguous: a product with a strided selection of tokens would copy the weight for every example.
        query = affine(x[:, rows].contiguous(), query_weight, query_bias)
        key, value = affine(x, other_weight, other_bias).chunk(2, -1)
    return split_heads(query, heads), split_heads(key, heads), split_heads(value, heads)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(B, T, width) → (B, heads, T, width / heads)."""
    by_head = x.view(*x.shape[:-1], heads, -1).transpose(1, 2)
    # A later product copies this view if there are several members or examples, and uses it as it is (and may round
    # differently) if there is only one. So it is always copied here; with one head, torch never copies it.
    return by_head if heads == 1 else by_head.contiguous()


def merge_heads(mixed: Tensor) -> Tensor:
    """The results of the heads side by side: (B, heads, T, k) → (B, T, width)."""
    return mixed.transpose(1, 2).flatten(2)


class SelfAttention(TensorModule):
    """Self-attention with heads: (B, T, width) → (B, T, width).

    Query, key and value are one width → 3·width map, Xavier uniform as one matrix with zero bias; the output map has
    torch's default weights and zero bias. Scores are scaled by 1 / √(width / heads), which is also where a learned scale
    starts. `dropout` acts on the weights, `key_dropout` on the keys of tokens and of relative positions.
    """

    def __init__(
        self,
        width: int,
        heads: int = 1,
        dropout: float = 0.0,
        positions: Scheme = "none",
        *,
        key_dropout: float = 0.0,
        learned_scale: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if positions == "rotary" and (width % heads or width // heads % 2):
            raise UsageError(
                f"attention of width {width} does not split into {heads} heads of even width, which rotary positions "
                "need; change width or heads"
            )
        check_heads(width, heads)
        self.heads = heads
        self.dropout = dropout
        self.key_dropout = key_dropout
        self.rotary = positions == "rotary"
        self.relative = RelativeScores(width, heads, key_dropout) if positions == "relative" else None
        scale = 1 / math.sqrt(width // heads)
        self.scale = nn.Parameter(torch.full((1,), scale)) if learned_scale else scale
        self.input = Linear(width, 3 * width, bias=bias)
        self.output = Linear(width, width, bias=bias)
        nn.init.xavier_uniform_(self.input.weight)
        if bias:
            nn.init.zeros_(self.input.bias)
            nn.init.zeros_(self.output.bias)

    def forward(
        self,
        x: Tensor,
        barrier: Tensor | None = None,
        *,
        token_positions: tuple[int, ...] | None = None,
        rows: slice = ALL,
        ctx: Context = NO_CONTEXT,
        name: str = "attention",
    ) -> Tensor:
        """Attend from the tokens in `rows` to all tokens.

        `barrier` broadcasts to (B, heads, T, T); `token_positions` are the positions of the tokens, by default 0 … T − 1.
        """
        token_positions = tuple(range(x.shape[1])) if token_positions is None else token_positions
        query, key, value = project_heads(x, self.input, self.heads, rows)
        key = ctx.dropout(key, self.key_dropout)
        if self.relative is not None:
            scores: Tensor = self.relative(query, key, token_positions[rows], token_positions, ctx)
        else:
            if self.rotary:
                query = rotate(query, token_positions[rows])
                key = rotate(key, token_positions)
            scores = query @ key.transpose(-1, -2)
        if barrier is not None and barrier.shape[-2] > 1:
            barrier = barrier[..., rows, :]
        mixed = attend(scores * self.scale, value, barrier, dropout=self.dropout, ctx=ctx, name=name)
        return self.output(merge_heads(mixed))
