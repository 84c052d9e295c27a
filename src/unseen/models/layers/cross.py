"""Attention from some tokens to others, and the block around it."""

from __future__ import annotations

import math

from torch import Tensor, nn

from unseen.errors import UsageError
from unseen.models.layers.attention import attend, by_head, merge
from unseen.models.layers.linear import Linear
from unseen.models.layers.norm import LayerNorm
from unseen.models.layers.tape import Tape


class CrossAttention(nn.Module):
    """Tokens (B, Q, width) look at a source (B, T, width) with heads: (B, Q, width).

    Queries are one map, keys and values another, both Xavier uniform with zero bias; the output map has the framework's
    default weights and zero bias. Scores are scaled by 1 / √(width / heads); `dropout` acts on the weights.
    """

    def __init__(self, width: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        if width % heads:
            raise UsageError(f"attention of width {width} does not split into {heads} heads; change width or heads")
        self.heads, self.dropout, self.scale = heads, dropout, 1 / math.sqrt(width // heads)
        self.query, self.source, self.output = Linear(width, width), Linear(width, 2 * width), Linear(width, width)
        for linear in (self.query, self.source):
            nn.init.xavier_uniform_(linear.weight)
        for linear in (self.query, self.source, self.output):
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor, source: Tensor, barrier: Tensor | None, tape: Tape, name: str) -> Tensor:
        """`barrier` broadcasts to (B, heads, Q, T). Keeps the weights under `name`."""
        query = by_head(self.query(x), self.heads)
        key, value = (by_head(part, self.heads) for part in self.source(source).chunk(2, -1))
        scores = query @ key.transpose(-1, -2) * self.scale
        mixed = attend(scores, value, barrier, dropout=self.dropout, tape=tape, name=name)
        result: Tensor = self.output(merge(mixed))
        return result


class CrossBlock(nn.Module):
    """Pre-norm: u = x + attention(LN(x), LN(source)), then u + feed-forward(LN(u))."""

    def __init__(self, width: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.attention = CrossAttention(width, heads, dropout)
        self.expand, self.contract = Linear(width, hidden), Linear(hidden, width)
        self.norm_tokens, self.norm_source, self.norm_second = (LayerNorm(width) for _ in range(3))

    def forward(self, x: Tensor, source: Tensor, barrier: Tensor | None, tape: Tape, name: str) -> Tensor:
        found = self.attention(self.norm_tokens(x), self.norm_source(source), barrier, tape, name)
        u = tape.onto(x, found, self.dropout)
        inner = tape.dropout(self.expand(self.norm_second(u)).relu(), self.dropout)
        return tape.onto(u, self.contract(inner), self.dropout)
