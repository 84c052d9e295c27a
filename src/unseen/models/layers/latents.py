"""The Perceiver's core: a few latents look at all tokens, and at each other."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unseen.models.layers.attention import ALL, padding
from unseen.models.layers.cross import CrossBlock
from unseen.models.layers.encoder import Block
from unseen.models.layers.norm import LayerNorm
from unseen.models.layers.tape import NO_TAPE, Tape


class Latents(nn.Module):
    """Learned latents read the tokens, think, and are read by the tokens: (B, T, width) → (B, rows, width).

    In every layer the latents look at the tokens, which stay as they are, and then at each other. In the end the tokens
    that are wanted look at the latents. However many tokens there are, the work per token is the same.
    """

    def __init__(self, latents: int, width: int, layers: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.latents = nn.Parameter(torch.empty(latents, width).normal_(std=0.02))
        self.looks = nn.ModuleList(CrossBlock(width, heads, hidden, dropout) for _ in range(layers))
        self.thoughts = nn.ModuleList(Block(width, heads, hidden, dropout, norm="pre") for _ in range(layers))
        self.answer, self.norm = CrossBlock(width, heads, hidden, dropout), LayerNorm(width)

    def forward(self, x: Tensor, mask: Tensor | None = None, *, rows: slice = ALL, tape: Tape = NO_TAPE) -> Tensor:
        """Keeps `cross.attention` (B, heads, latents, T) and `latents.attention` of the last layer (of earlier ones
        `cross.0.attention`, …), `latents.state`, and of the tokens in `rows` `readout.attention` (B, heads, rows,
        latents) and `encoder.state`.
        """
        barrier = None if mask is None else padding(mask, x.dtype)
        latents = self.latents.expand(len(x), -1, -1)
        for i, (look, think) in enumerate(zip(self.looks, self.thoughts, strict=True)):
            layer = "" if i == len(self.looks) - 1 else f"{i}."
            latents = look(latents, x, barrier, tape, f"cross.{layer}attention")
            latents = think(latents, None, None, ALL, tape, f"latents.{layer}attention")
        tape.keep("latents.state", latents)
        states: Tensor = self.norm(self.answer(x[:, rows], latents, None, tape, "readout.attention"))
        tape.keep("encoder.state", states)
        return states
