"""The gCOG paper's dual-stream Transformer (DSTfmr)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from torch import Tensor, nn

from unseen.models.gcog.ends import MLP, Head
from unseen.models.gcog.options import TransformerOptions
from unseen.models.gcog.streamed import TwoStreams
from unseen.models.layers.norm import LayerNorm
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Spec


class DualStream(nn.Module):
    """A block and a layer for each stream; the last tokens are added, normed, and go through three layers.

    Traces of the tokens read: `rule.attention`, `rule.state`, `stimulus.attention`, `stimulus.state`, `readout.state`.
    """

    class Options(TransformerOptions):
        """The released numbers. The paper's text says three layers for each stream."""

        name: Literal["gcog-dual-stream"] = "gcog-dual-stream"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        width, hidden = options.width, options.hidden
        self.streams = TwoStreams(options, spec)
        self.rule_mlp, self.stimulus_mlp = MLP(width, hidden), MLP(width, hidden)
        self.norm, self.mlp = LayerNorm(hidden), MLP(hidden, 2 * hidden, 2 * hidden, hidden)
        self.head = Head(hidden, self.streams.reading.classes)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """Logits (B, classes)."""
        rule, stimulus = self.streams.sequences(inputs)
        of_rule = self.rule_mlp(self.streams.rule.last(rule, tape))
        of_stimulus = self.stimulus_mlp(self.streams.stimulus.last(stimulus, tape))
        logits: Tensor = self.head(self.mlp(self.norm(of_rule + of_stimulus)), tape)
        return logits
