"""The Perceiver for any task: a few latents attend to all tokens, and to each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from unseen.models.backbones.options import PlacedOptions
from unseen.models.context import NO_CONTEXT, Context
from unseen.models.layers.attention import ALL, padding_barrier
from unseen.models.layers.embedding import Embed, ReadOut
from unseen.models.layers.encoder import CrossBlock, EncoderBlock
from unseen.models.layers.linear import TensorModule
from unseen.models.layers.norm import LayerNorm
from unseen.spec import Spec


class Latents(TensorModule):
    """Learned latents attend to the tokens and to each other, and the tokens attend to them: (B, T, width) → (B, rows,
    width).

    In every layer the latents attend to the tokens, which do not change, and then to each other. At the end the tokens in
    `rows` attend to the latents. The work per token does not depend on the number of tokens.
    """

    def __init__(self, latents: int, width: int, layers: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.latents = nn.Parameter(torch.empty(latents, width).normal_(std=0.02))
        self.looks = nn.ModuleList(CrossBlock(width, heads, hidden, dropout) for _ in range(layers))
        self.thoughts = nn.ModuleList(EncoderBlock(width, heads, hidden, dropout, norm="pre") for _ in range(layers))
        self.answer = CrossBlock(width, heads, hidden, dropout)
        self.norm = LayerNorm(width)

    def forward(self, x: Tensor, mask: Tensor | None = None, *, rows: slice = ALL, ctx: Context = NO_CONTEXT) -> Tensor:
        """Captured activations: `cross.attention` (B, heads, latents, T) and `latents.attention` of the last layer (of
        earlier layers `cross.0.attention`, …), `latents.state`, and of the tokens in `rows` `readout.attention` (B, heads,
        rows, latents) and `encoder.state`.
        """
        barrier = None if mask is None else padding_barrier(mask, x.dtype)
        # The same latents for every example, without a copy.
        latents = self.latents.expand(len(x), -1, -1)
        for i, (look, think) in enumerate(zip(self.looks, self.thoughts, strict=True)):
            layer = "" if i == len(self.looks) - 1 else f"{i}."
            latents = look(latents, x, barrier, ctx, f"cross.{layer}attention")
            latents = think(latents, None, None, ALL, ctx, f"latents.{layer}attention")
        latents = ctx.capture("latents.state", latents)
        states: Tensor = self.norm(self.answer(x[:, rows], latents, None, ctx, "readout.attention"))
        return ctx.capture("encoder.state", states)


class Perceiver(nn.Module):
    """Embed, let latents process the tokens, let the tokens that are read attend to the latents, read out.

    Captured activations: those of `Latents` (`encoder.state`, `cross.attention`, …), and `readout.state`.
    """

    class Options(PlacedOptions):
        """`feedforward` is the hidden width of the feed-forward as a multiple of `width`. Positions are added to the
        tokens: latents have no position, so that relative schemes do not apply.
        """

        name: Literal["perceiver"] = "perceiver"
        latents: int = Field(16, ge=2)
        layers: int = Field(2, ge=1, le=1000)
        heads: int = Field(4, ge=1)
        feedforward: int = Field(4, ge=1)
        positions: Literal["none", "sinusoidal", "learned"] = "sinusoidal"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        width = options.width
        self.dropout = options.dropout
        self.embed = Embed(spec, width, options.positions, options.places)
        self.core = Latents(
            options.latents, width, options.layers, options.heads, options.feedforward * width, options.dropout
        )
        self.read_out = ReadOut(spec, width)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """The prediction in the shape of the target, logits for binary and category targets."""
        tokens = self.embed(inputs)
        x = ctx.dropout(tokens.states, self.dropout)
        return self.read_out(self.core(x, tokens.mask, rows=tokens.read, ctx=ctx), ctx)
