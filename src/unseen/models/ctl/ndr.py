"""The Neural Data Router, as in the CTL++ paper and in its original form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from unseen.config import Config
from unseen.models.ctl.tokens import Answer, Embedding, ReadAt, sizes, state_at
from unseen.models.layers.attention import ALL
from unseen.models.layers.ndr import FormName, NDRBlock
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Spec


class CTLNDR(nn.Module):
    """Embed, apply one gated layer again and again, answer from the state of one marker.

    Traces: `encoder.gate` and `encoder.attention` (of earlier layers `encoder.0.gate`, …), `encoder.state`,
    `readout.state`. In training the last layer works only for the token that is read.
    """

    class Options(Config):
        """The released numbers; the paper's text says `feedforward` 1024 and `extra_layers` 0.

        `extra_layers` are applied in evaluation only (8 layers in training, 10 in evaluation). `interleaved_start` is
        the released code's slip in starting keys and values. The original CTL has form `original`, 14 layers, one head,
        and reads at the end marker.
        """

        name: Literal["ctl-ndr"] = "ctl-ndr"
        form: FormName = "ctl++"
        width: int = Field(256, ge=2)
        heads: int = Field(4, ge=1)
        feedforward: int = Field(512, ge=2)
        layers: int = Field(8, ge=1)
        extra_layers: int = Field(2, ge=0)
        dropout: float = Field(0.5, ge=0, lt=1)
        key_dropout: float = Field(0.1, ge=0, lt=1)
        gate_dropout: float = Field(0.1, ge=0, lt=1)
        read_at: ReadAt = "start"
        interleaved_start: bool = False

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        values, classes = sizes(spec)
        self.layers, self.extra_layers, self.read_at = options.layers, options.extra_layers, options.read_at
        self.embed = Embedding(values, options.width)
        self.block = NDRBlock(
            options.width,
            options.heads,
            options.feedforward,
            options.dropout,
            options.key_dropout,
            options.gate_dropout,
            form=options.form,
            interleaved=options.interleaved_start,
        )
        self.answer = Answer(options.width, classes)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """Logits (B, classes)."""
        states, mask = self.embed(inputs["token"]), inputs["mask"]
        layers = self.layers if tape.training else self.layers + self.extra_layers
        for i in range(layers - 1):
            states = self.block(states, mask, tape=tape, name=f"encoder.{i}")
        read = slice(0, 1) if tape.training and self.read_at == "start" else ALL
        states = self.block(states, mask, rows=read, tape=tape, name="encoder")
        tape.keep("encoder.state", states)
        logits: Tensor = self.answer(state_at(states, mask, self.read_at), tape)
        return logits
