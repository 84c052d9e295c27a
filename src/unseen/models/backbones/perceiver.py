"""A Perceiver for any task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from unseen.models.backbones.options import PlacedOptions
from unseen.models.layers.embed import Embed
from unseen.models.layers.latents import Latents
from unseen.models.layers.readout import ReadOut
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Spec


class Perceiver(nn.Module):
    """Embed, let latents look at the tokens and think, let the tokens that are read look at them, read out.

    Traces: those of `Latents` (`encoder.state`, `cross.attention`, …), and `readout.state`.
    """

    class Options(PlacedOptions):
        """`feedforward` is the hidden width of the feed-forward as a multiple of `width`. Positions are added to the
        tokens: latents have no place, so there are no distances to speak of.
        """

        name: Literal["perceiver"] = "perceiver"
        latents: int = Field(16, ge=2)
        layers: int = Field(2, ge=1)
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

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """The prediction in the shape of the target, logits for binary and category."""
        tokens = self.embed(inputs)
        x = tape.dropout(tokens.states, self.dropout)
        prediction: Tensor = self.read_out(self.core(x, tokens.mask, rows=tokens.read, tape=tape), tape)
        return prediction
