"""The gCOG paper's single-stream Transformer (SSTfmr)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from torch import Tensor, nn

from unseen.models.gcog.block import Block
from unseen.models.gcog.ends import MLP, Head
from unseen.models.gcog.options import JointOptions
from unseen.models.gcog.streamed import OneStream
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Spec


class SingleStream(nn.Module):
    """One block on rule and stimulus as one sequence, three layers, the answer; of its last token alone.

    Traces: `encoder.attention` (B, 1, 1, T), `encoder.state` and `readout.state`, all of the last token.
    """

    class Options(JointOptions):
        """The released numbers. The paper's text gives the block an MLP of two layers of 512."""

        name: Literal["gcog-single-stream"] = "gcog-single-stream"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        width, hidden = options.width, options.hidden
        self.stream = OneStream(options, spec)
        self.block = Block(width, width, table=self.stream.table())
        self.mlp = MLP(width, hidden, 2 * hidden, hidden)
        self.head = Head(hidden, self.stream.reading.classes)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """Logits (B, classes)."""
        state = self.block.last(self.stream(inputs, tape), tape, "encoder.attention")
        tape.keep("encoder.state", state)
        logits: Tensor = self.head(self.mlp(state), tape)
        return logits
