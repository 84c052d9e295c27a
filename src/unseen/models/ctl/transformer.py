"""The CTL++ paper's Transformer: one layer applied again and again, with relative positions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from unseen.config import Config
from unseen.models.ctl.tokens import Answer, Embedding, ReadAt, sizes, state_at
from unseen.models.layers.attention import ALL, Attention
from unseen.models.layers.encoder import Block, Encoder
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Spec


class CTLTransformer(nn.Module):
    """Embed, encode with a shared post-norm layer, answer from the state of one marker.

    Traces: `encoder.attention` (of earlier layers `encoder.0.attention`, …), `encoder.state`, `readout.state`. In
    training the last layer works only for the token that is read.
    """

    class Options(Config):
        """The released numbers; the paper's text says `feedforward` 512 and `dropout` 0.5. The original CTL has 11
        layers, no `key_dropout`, and reads at the end marker.
        """

        name: Literal["ctl-transformer"] = "ctl-transformer"
        width: int = Field(128, ge=2)
        heads: int = Field(4, ge=1)
        feedforward: int = Field(256, ge=2)
        layers: int = Field(8, ge=1)
        dropout: float = Field(0.1, ge=0, lt=1)
        key_dropout: float = Field(0.1, ge=0, lt=1)
        read_at: ReadAt = "start"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        values, classes = sizes(spec)
        width, heads = options.width, options.heads
        self.read_at = options.read_at
        self.embed = Embedding(values, width, std=math.sqrt(2 / width))
        self.encoder = Encoder(
            width, options.layers, heads, options.feedforward, options.dropout, self_attention=False, shared=True
        )
        block = self.encoder.blocks[0]
        assert isinstance(block, Block)
        block.attention = Attention(
            width, heads, positions="relative", key_dropout=options.key_dropout, learned_scale=True, bias=False
        )
        _start(block, block.attention)
        self.answer = Answer(width, classes)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """Logits (B, classes)."""
        mask = inputs["mask"]
        rows = slice(0, 1) if tape.training and self.read_at == "start" else ALL
        states = self.encoder(self.embed(inputs["token"]), mask, rows=rows, tape=tape)
        logits: Tensor = self.answer(state_at(states, mask, self.read_at), tape)
        return logits


def _start(block: Block, attention: Attention) -> None:
    """Queries as one matrix, keys and values as another, both Xavier uniform; the rest as the layers do."""
    width = attention.output.weight.shape[0]
    query, key_value = attention.input.weight.detach().split([width, 2 * width], -1)
    nn.init.xavier_uniform_(query)
    nn.init.xavier_uniform_(key_value)
    nn.init.xavier_normal_(block.expand.weight, math.sqrt(2))
    nn.init.xavier_uniform_(block.contract.weight)
