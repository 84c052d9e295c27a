"""The Transformer encoder: blocks of attention and feed-forward, post-norm or pre-norm; and attention to other tokens."""

from __future__ import annotations

import math
from typing import Literal

from torch import Tensor, nn

from unseen.models.context import NO_CONTEXT, Context
from unseen.models.layers.attention import (
    ALL,
    SelfAttention,
    attend,
    causal_barrier,
    check_heads,
    merge_heads,
    padding_barrier,
    split_heads,
)
from unseen.models.layers.linear import Linear, TensorModule
from unseen.models.layers.norm import LayerNorm
from unseen.models.layers.positions import Scheme

Norm = Literal["post", "pre"]


class EncoderBlock(TensorModule):
    """One layer. Post-norm: u = LN(x + attention(x)), LN(u + feed-forward(u)); pre-norm normalises the inputs instead.

    Without self-attention that sub-layer and its residual are left out; the norms and the feed-forward stay.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        hidden: int,
        dropout: float,
        *,
        norm: Norm = "post",
        positions: Scheme = "none",
        self_attention: bool = True,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.norm = norm
        self.attention = SelfAttention(width, heads, dropout, positions) if self_attention else None
        self.expand = Linear(width, hidden)
        self.contract = Linear(hidden, width)
        self.norm_first = LayerNorm(width)
        self.norm_second = LayerNorm(width)

    def forward(
        self,
        x: Tensor,
        barrier: Tensor | None,
        token_positions: tuple[int, ...] | None,
        rows: slice,
        ctx: Context,
        name: str,
    ) -> Tensor:
        pre = self.norm == "pre"
        u = x[:, rows]
        if self.attention is not None:
            source = self.norm_first(x) if pre else x
            mixed = self.attention(source, barrier, token_positions=token_positions, rows=rows, ctx=ctx, name=name)
            u = ctx.add_dropped(u, mixed, self.dropout)
        if not pre:
            u = self.norm_first(u)
        hidden = self.expand(self.norm_second(u) if pre else u).relu()
        u = ctx.add_dropped(u, self.contract(ctx.dropout(hidden, self.dropout)), self.dropout)
        return u if pre else self.norm_second(u)


class Encoder(TensorModule):
    """A stack of blocks, or one block `shared` by all layers: (B, T, width) → (B, rows, width).

    A pre-norm encoder ends with a norm.
    """

    def __init__(
        self,
        width: int,
        layers: int,
        heads: int,
        hidden: int,
        dropout: float,
        *,
        norm: Norm = "post",
        positions: Scheme = "none",
        causal: bool = False,
        self_attention: bool = True,
        shared: bool = False,
    ) -> None:
        super().__init__()
        self.causal = causal
        self.layers = layers
        self.blocks = nn.ModuleList(
            EncoderBlock(width, heads, hidden, dropout, norm=norm, positions=positions, self_attention=self_attention)
            for _ in range(1 if shared else layers)
        )
        self.norm = LayerNorm(width) if norm == "pre" else nn.Identity()

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        token_positions: tuple[int, ...] | None = None,
        rows: slice = ALL,
        ctx: Context = NO_CONTEXT,
        name: str = "encoder",
    ) -> Tensor:
        """Encode the tokens and return those in `rows`; `mask` (B, T) is true where a token is real.

        The last block computes only the tokens in `rows`, which changes nothing else. Captured activations: the attention
        of every layer (`encoder.0.attention`, …; of the last layer `encoder.attention`) and the result `encoder.state`.
        """
        barrier = causal_barrier(x.shape[1], x.dtype, x.device) if self.causal else None
        if mask is not None:
            padded = padding_barrier(mask, x.dtype)
            barrier = padded if barrier is None else padded + barrier
        for i in range(self.layers):
            last = i == self.layers - 1
            attention_name = f"{name}.attention" if last else f"{name}.{i}.attention"
            block = self.blocks[i % len(self.blocks)]
            x = block(x, barrier, token_positions, rows if last else ALL, ctx, attention_name)
        return ctx.capture(f"{name}.state", self.norm(x))


# Attention to other tokens.


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
