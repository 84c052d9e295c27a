"""The gCOG paper's Transformer with cross-attention (CrossAttn)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from torch import Tensor, nn

from unseen.models.gcog.attention import Attention
from unseen.models.gcog.ends import MLP, Head
from unseen.models.gcog.options import TransformerOptions
from unseen.models.gcog.streamed import TwoStreams
from unseen.models.layers.norm import LayerNorm
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Spec


class CrossAttention(nn.Module):
    """A block for each stream; the last rule token looks at all stimulus tokens; two layers.

    What it finds is normed before the rule's state is added. Traces: `rule.attention` and `rule.state` of the last
    token, `stimulus.attention` (B, 1, T, T) and `stimulus.state` of all, `cross.attention` (B, 1, 1, T) and
    `readout.state`.
    """

    class Options(TransformerOptions):
        """The released numbers."""

        name: Literal["gcog-cross-attention"] = "gcog-cross-attention"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        width, hidden = options.width, options.hidden
        self.streams = TwoStreams(options, spec)
        self.cross, self.norm = Attention(width), LayerNorm(width)
        self.mlp = MLP(width, hidden, hidden)
        self.head = Head(hidden, self.streams.reading.classes)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """Logits (B, classes)."""
        rule, stimulus = self.streams.sequences(inputs)
        asking, asked = self.streams.rule.last(rule, tape), self.streams.stimulus(stimulus, tape)
        found = self.cross.look(asking[:, None], asked, tape, "cross.attention")[:, 0]
        logits: Tensor = self.head(self.mlp(self.norm(found) + asking), tape)
        return logits
