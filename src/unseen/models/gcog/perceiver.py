"""The gCOG paper's Perceiver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn

from unseen.models.gcog.attention import Attention
from unseen.models.gcog.ends import MLP, Head
from unseen.models.gcog.options import TransformerOptions
from unseen.models.gcog.streamed import TwoStreams
from unseen.models.gcog.streams import Sequence
from unseen.models.gcog.tokens import Made, Tokens
from unseen.models.layers.norm import LayerNorm
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Spec

LATENTS = 10


class Glance(nn.Module):
    """What the latents find in one stream: cross-attention, a norm, and a layer added to it."""

    def __init__(self, name: str, hidden: int, source: int) -> None:
        super().__init__()
        self.name = name
        self.attention, self.norm, self.mlp = Attention(hidden, source), LayerNorm(hidden), MLP(hidden, hidden)

    def forward(self, latents: Tensor | None, tokens: Tokens, tape: Tape) -> Tensor:
        found = self.norm(self.attention.look(latents, tokens, tape, f"cross.{self.name}.attention"))
        result: Tensor = found + self.mlp(found)
        return result


class Perceiver(nn.Module):
    """Latents look at the rule, then at each other, then at the stimulus, then at each other; the last one answers.

    Each of the four adds to the latents and is followed by the same norm. Latents that start at zero are equal for
    ever, so one of them does the work of all; alone, it sees nothing but itself. Then the map from latents to queries
    of the first look is never used, nor are those to queries and keys of the latents among themselves.

    Traces: `rule.attention`, `rule.state`, `stimulus.attention`, `stimulus.state`, `cross.rule.attention` and
    `cross.stimulus.attention` (B, 1, latents, T), `readout.state`; with learned latents also what they see of each
    other, `latents.rule.attention` and `latents.stimulus.attention`.
    """

    class Options(TransformerOptions):
        """The released numbers; `hidden` is the width of the latents, in the paper's text 256.

        `latents`: `zeros` at the start of every trial, or ten `learned` vectors.
        """

        name: Literal["gcog-perceiver"] = "gcog-perceiver"
        latents: Literal["zeros", "learned"] = "zeros"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        width, hidden = options.width, options.hidden
        self.streams = TwoStreams(options, spec)
        self.to_rule, self.to_stimulus = Glance("rule", hidden, width), Glance("stimulus", hidden, width)
        self.latents: nn.Parameter | None
        self.among, self.norm = Attention(hidden), LayerNorm(hidden)
        self.mlp = MLP(hidden, hidden)
        self.head = Head(hidden, self.streams.reading.classes, norm=False)
        learned = nn.Parameter(torch.empty(LATENTS, hidden).normal_(std=0.02)) if options.latents == "learned" else None
        self.register_parameter("latents", learned)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """Logits (B, classes)."""
        rule, stimulus = self.streams.sequences(inputs)
        start = None if self.latents is None else self.latents.expand(len(rule.rows), -1, -1)
        latents = self._turn(start, self.to_rule, self.streams.rule(rule, tape), tape)
        latents = self._turn(latents, self.to_stimulus, self.streams.stimulus(stimulus, tape), tape)
        logits: Tensor = self.head(self.mlp(latents[:, -1]), tape)
        return logits

    def _turn(self, latents: Tensor | None, glance: Glance, tokens: Tokens, tape: Tape) -> Tensor:
        found = glance(latents, tokens, tape)
        latents = self.norm(found if latents is None else latents + found)
        seen = self.among(
            Made(latents, Sequence(latents, tuple(range(latents.shape[1])))), tape, f"latents.{glance.name}.attention"
        )
        result: Tensor = self.norm(latents + seen)
        return result
