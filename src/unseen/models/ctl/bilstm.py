"""The CTL++ paper's bidirectional LSTM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from unseen.config import Config
from unseen.models.ctl.tokens import Answer, Embedding, sizes
from unseen.models.layers.recurrence import Recurrence
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Spec


class CTLBiLSTM(nn.Module):
    """Embed, read from left to right and from right to left, answer from the two final states.

    The start marker is not read and has no embedding.
    """

    class Options(Config):
        """`width` is that of one direction. Dropout acts on the embedding."""

        name: Literal["ctl-bilstm"] = "ctl-bilstm"
        embedding: int = Field(256, ge=2)
        width: int = Field(128, ge=2)
        dropout: float = Field(0.5, ge=0, lt=1)

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        values, classes = sizes(spec)
        self.dropout, self.end = options.dropout, values - 2
        self.embed = Embedding(values - 1, options.embedding)
        self.rightwards = Recurrence(options.embedding, options.width)
        self.leftwards = Recurrence(options.embedding, options.width)
        self.answer = Answer(2 * options.width, classes)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """Logits (B, classes). Traces: `encoder.state` of both directions at every token read, `readout.state`."""
        tokens, mask = inputs["token"][:, 1:], inputs["mask"][:, 1:]
        if not tokens.shape[1]:  # nothing but the start marker: one step of padding
            tokens, mask = F.pad(tokens, (0, 1)), F.pad(mask, (0, 1))
        # A start marker that comes later is no legal input; it passes for an end marker.
        x = tape.dropout(self.embed(tokens.clamp_max(self.end)), self.dropout)
        rightwards, leftwards = self.rightwards(x, mask), self.leftwards(x.flip(1), mask.flip(1))
        tape.keep("encoder.state", torch.cat([rightwards, leftwards.flip(1)], -1))
        # Padding carries the state on, from zero if it comes first: both directions end at the last step.
        logits: Tensor = self.answer(torch.cat([rightwards[:, -1], leftwards[:, -1]], -1), tape)
        return logits
