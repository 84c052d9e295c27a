"""An LSTM for any task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from unseen.config import Config
from unseen.models.layers.embed import Embed
from unseen.models.layers.readout import ReadOut
from unseen.models.layers.recurrence import Recurrence
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Spec


class LSTM(nn.Module):
    """Embed, recur, read out; padding is passed over. Trace: `encoder.state`, for all tokens.

    It reads from left to right: a prediction along a stream knows nothing of later tokens.
    """

    class Options(Config):
        """Dropout acts on the embedding and between layers."""

        name: Literal["lstm"] = "lstm"
        width: int = Field(128, ge=2)
        layers: int = Field(1, ge=1)
        dropout: float = Field(0.1, ge=0, lt=1)

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        self.dropout = options.dropout
        self.embed = Embed(spec, options.width)
        self.recurrence = Recurrence(options.width, options.width, options.layers, options.dropout)
        self.read_out = ReadOut(spec, options.width)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """The prediction in the shape of the target, logits for binary and category."""
        tokens = self.embed(inputs)
        states = self.recurrence(tape.dropout(tokens.states, self.dropout), tokens.mask, tape=tape)
        tape.keep("encoder.state", states)
        prediction: Tensor = self.read_out(states[:, tokens.read])
        return prediction
