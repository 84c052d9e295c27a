"""Attention from tokens to a source of other tokens."""

from __future__ import annotations

import math

from torch import Tensor, nn

from unseen.models.context import Context
from unseen.models.layers.attention import attend, check_heads, merge_heads, split_heads
from unseen.models.layers.linear import Linear, TensorModule
from unseen.models.layers.norm import LayerNorm


class CrossAttention(TensorModule):
    """Attention from tokens (B, Q, width) to a source (B, T, width), with heads: (B, Q, width).

    Queries are one map, keys and values another, both Xavier uniform with zero bias; the output map has torch's default
    weights and zero bias. Scores are scaled by 1 / √(width / heads); `dropout` acts on the weights.
    """

    def __init__(self, width: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        check_heads(width, heads)
        self.heads = heads
        self.dropout = dropout
        self.scale = 1 / math.sqrt(width // heads)
        self.query = Linear(width, width)
        self.source = Linear(width, 2 * width)
        self.output = Linear(width, width)
        for linear in (self.query, self.source):
            nn.init.xavier_uniform_(linear.weight)
        for linear in (self.query, self.source, self.output):
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor, source: Tensor, barrier: Tensor | None, ctx: Context, name: str) -> Tensor:
        """`barrier` broadcasts to (B, heads, Q, T). Captured activations: the weights, under `name`."""
        query = split_heads(self.query(x), self.heads)
        key, value = (split_heads(projected, self.heads) for projected in self.source(source).chunk(2, -1))
        scores = query @ key.transpose(-1, -2) * self.scale
        mixed = attend(scores, value, barrier, dropout=self.dropout, ctx=ctx, name=name)
        return self.output(merge_heads(mixed))


class CrossBlock(TensorModule):
    """Pre-norm cross-attention: u = x + attention(LN(x), LN(source)), then u + feed-forward(LN(u))."""

    def __init__(self, width: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.attention = CrossAttention(width, heads, dropout)
        self.expand = Linear(width, hidden)
        self.contract = Linear(hidden, width)
        self.norm_tokens = LayerNorm(width)
        self.norm_source = LayerNorm(width)
        self.norm_second = LayerNorm(width)

    def forward(self, x: Tensor, source: Tensor, barrier: Tensor | None, ctx: Context, name: str) -> Tensor:
        mixed = self.attention(self.norm_tokens(x), self.norm_source(source), barrier, ctx, name)
        u = ctx.add_dropped(x, mixed, self.dropout)
        hidden = ctx.dropout(self.expand(self.norm_second(u)).relu(), self.dropout)
        return ctx.add_dropped(u, self.contract(hidden), self.dropout)
