"""The gCOG paper's BERT-like single-stream Transformers: more layers, more heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from unseen.models.gcog.block import Block
from unseen.models.gcog.ends import Head
from unseen.models.gcog.options import JointOptions
from unseen.models.gcog.streamed import OneStream
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Spec


class Bert(nn.Module):
    """Blocks with GELU on rule and stimulus as one sequence; the last works for the last token alone, which answers.

    Absolute codes are added again before every block. Traces: `encoder.attention` (B, heads, 1, T), those of blocks
    before, `encoder.0.attention` (B, heads, T, T), …, and `readout.state`.
    """

    class Options(JointOptions):
        """The largest of the paper's series, which has 1 to 4 layers of 1, 4 or 8 heads and relative positions.

        `hidden` is the width inside a block's MLP.
        """

        name: Literal["gcog-bert"] = "gcog-bert"
        hidden: int = Field(1024, ge=2)
        layers: int = Field(4, ge=1)
        heads: int = Field(8, ge=1)
        positions: Literal["absolute", "relative"] = "relative"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        width, heads = options.width, options.heads
        self.stream = OneStream(options, spec)
        self.blocks = nn.ModuleList(
            Block(width, options.hidden, heads, activation="gelu", table=self.stream.table(heads))
            for _ in range(options.layers)
        )
        self.head = Head(width, self.stream.reading.classes, norm=False)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """Logits (B, classes)."""
        tokens = self.stream(inputs, tape)
        *earlier, last = self.blocks
        for i, block in enumerate(earlier):
            states = block(tokens, tape, f"encoder.{i}.attention")
            tokens = self.stream.embed.again(states, tokens.sequence, tape)
        assert isinstance(last, Block)
        logits: Tensor = self.head(last.last(tokens, tape, "encoder.attention"), tape)
        return logits
