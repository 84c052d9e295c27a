"""The Neural Data Router for any task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from unseen.models.backbones.options import BackboneOptions
from unseen.models.layers.attention import ALL
from unseen.models.layers.embed import Embed
from unseen.models.layers.gather import gathered, spread
from unseen.models.layers.ndr import FormName, NDRBlock
from unseen.models.layers.readout import ReadOut
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Spec


class NDR(nn.Module):
    """Embed, apply one layer with geometric attention and a copy gate again and again, read out.

    It has no positions but the order of the tokens: a set is read as a sequence. Where there is padding, real tokens
    are moved together, so that it lies between no neighbours.

    Traces: `encoder.attention` and `encoder.gate` (of earlier layers `encoder.0.gate`, …), in the order of the moved
    tokens; `encoder.state` and `readout.state`, for the tokens that are read.
    """

    class Options(BackboneOptions):
        """`layers` is how often the layer is applied, `feedforward` the hidden width of the feed-forward as a multiple
        of `width`. Gate dropout closes the gate for whole tokens."""

        name: Literal["ndr"] = "ndr"
        layers: int = Field(4, ge=1)
        heads: int = Field(4, ge=1)
        feedforward: int = Field(2, ge=1)
        gate_dropout: float = Field(0.1, ge=0, lt=1)
        form: FormName = "ctl++"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        width = options.width
        self.dropout, self.layers, self.once = options.dropout, options.layers, spec.target.along is None
        self.embed = Embed(spec, width)
        self.block = NDRBlock(
            width,
            options.heads,
            options.feedforward * width,
            options.dropout,
            gate_dropout=options.gate_dropout,
            form=options.form,
        )
        self.read_out = ReadOut(spec, width)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """The prediction in the shape of the target, logits for binary and category."""
        tokens = self.embed(inputs)
        x, mask, place = tape.dropout(tokens.states, self.dropout), tokens.mask, None
        if mask is not None:
            x, mask, place = gathered(x, mask)
        # The read-out token is the last, and stays there: the last layer may work for it alone.
        rows = tokens.read if self.once or place is None else ALL
        for i in range(self.layers - 1):
            x = self.block(x, mask, tape=tape, name=f"encoder.{i}")
        x = self.block(x, mask, rows=rows, tape=tape)
        if place is not None and not self.once:
            x = spread(x, place)[:, tokens.read]
        tape.keep("encoder.state", x)
        prediction: Tensor = self.read_out(x, tape)
        return prediction
