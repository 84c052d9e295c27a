"""A Transformer encoder for any task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from unseen.config import Config
from unseen.models.layers.embed import Embed
from unseen.models.layers.encoder import Encoder
from unseen.models.layers.positions import Scheme
from unseen.models.layers.readout import ReadOut
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Spec


class Transformer(nn.Module):
    """Embed, encode, read out. Traces: `encoder.attention` and `encoder.state`, for the tokens that are read."""

    class Options(Config):
        """`feedforward` is the hidden width of the feed-forward as a multiple of `width`."""

        name: Literal["transformer"] = "transformer"
        width: int = Field(128, ge=2)
        layers: int = Field(2, ge=1)
        heads: int = Field(4, ge=1)
        feedforward: int = Field(4, ge=1)
        dropout: float = Field(0.1, ge=0, lt=1)
        norm: Literal["pre", "post"] = "pre"
        positions: Scheme = "sinusoidal"
        causal: bool = False

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        self.dropout = options.dropout
        self.embed = Embed(spec, options.width, options.positions)
        self.encoder = Encoder(
            options.width,
            options.layers,
            options.heads,
            options.feedforward * options.width,
            options.dropout,
            norm=options.norm,
            positions=options.positions,
            causal=options.causal,
        )
        self.read_out = ReadOut(spec, options.width)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """The prediction in the shape of the target, logits for binary and category."""
        tokens = self.embed(inputs)
        x = tape.dropout(tokens.states, self.dropout)
        states = self.encoder(x, tokens.mask, places=tokens.places, rows=tokens.read, tape=tape)
        prediction: Tensor = self.read_out(states)
        return prediction
