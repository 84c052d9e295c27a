"""What the two Transformers have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from unseen.models.backbones.options import PlacedOptions
from unseen.models.layers.embed import Embed
from unseen.models.layers.encoder import Encoder
from unseen.models.layers.readout import ReadOut
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Spec


class AttentiveOptions(PlacedOptions):
    """`feedforward` is the hidden width of the feed-forward as a multiple of `width`. `causal`: tokens see themselves
    and what came before them."""

    layers: int = Field(2, ge=1)
    heads: int = Field(4, ge=1)
    feedforward: int = Field(4, ge=1)
    norm: Literal["pre", "post"] = "pre"
    causal: bool = False


class Attentive(nn.Module):
    """Embed, encode, read out; the layers are different ones, or one that is `shared` by all.

    Traces, for the tokens that are read: `encoder.attention` (of earlier layers, and for all tokens,
    `encoder.0.attention`, …), `encoder.state`, `readout.state`.
    """

    def __init__(self, options: AttentiveOptions, spec: Spec, *, shared: bool) -> None:
        super().__init__()
        self.dropout = options.dropout
        self.embed = Embed(spec, options.width, options.positions, options.places)
        self.encoder = Encoder(
            options.width,
            options.layers,
            options.heads,
            options.feedforward * options.width,
            options.dropout,
            norm=options.norm,
            positions=options.positions,
            causal=options.causal,
            shared=shared,
        )
        self.read_out = ReadOut(spec, options.width)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """The prediction in the shape of the target, logits for binary and category."""
        tokens = self.embed(inputs)
        x = tape.dropout(tokens.states, self.dropout)
        states = self.encoder(x, tokens.mask, places=tokens.places, rows=tokens.read, tape=tape)
        prediction: Tensor = self.read_out(states, tape)
        return prediction
