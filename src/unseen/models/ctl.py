"""The CTL++ paper's models: a bidirectional LSTM, a Transformer with a shared layer, and the Neural Data Router."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from unseen.config import Config
from unseen.errors import UsageError
from unseen.models.context import NO_CONTEXT, Context
from unseen.models.layers.attention import ALL, SelfAttention
from unseen.models.layers.embedding import TokenEmbedding
from unseen.models.layers.encoder import Encoder, EncoderBlock
from unseen.models.layers.linear import Linear, TensorModule
from unseen.models.layers.ndr import NDRBlock, NDRFormName
from unseen.models.layers.recurrent import Recurrence
from unseen.models.requirements import refuse_target, require_field
from unseen.spec import Spec

ReadAt = Literal["start", "end"]


def vocabulary_sizes(spec: Spec) -> tuple[int, int]:
    """The numbers of values of a token and of the answer; a task without a `token` and a `mask` is refused.

    The last value of a token is the start marker, which comes first and nowhere else; padding is at the end.
    """
    token = require_field(spec, "token", "category", "tokens")
    require_field(spec, "mask", "mask", "tokens")
    if (spec.target.kind, spec.target.along) != ("category", None):
        raise refuse_target(spec, "the ctl models", "one category")
    if len(spec.inputs) > 2:
        names = ", ".join(f.name for f in spec.inputs)
        raise UsageError(f"the ctl models read token and mask, this task has the input fields {names}")
    return token.width, spec.target.width


class Answer(TensorModule):
    """A linear map of one state: (B, width) → (B, classes). Captured activations: `readout.state`, that state."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.project = Linear(width, classes)

    def forward(self, state: Tensor, ctx: Context = NO_CONTEXT) -> Tensor:
        return self.project(ctx.capture("readout.state", state))


def take_state(states: Tensor, mask: Tensor, marker: ReadAt) -> Tensor:
    """The state of the start marker, or of the end marker, which is the last real token: (B, T, width) → (B, width)."""
    if marker == "start":
        return states[:, 0]
    # `gather` wants an index for every channel; an expanded one takes no memory.
    last = mask.sum(1)[:, None, None] - 1
    return states.gather(1, last.expand(-1, 1, states.shape[2]))[:, 0]


class CTLBiLSTM(nn.Module):
    """Embed, read from left to right and from right to left, answer from the two final states.

    The start marker is not read and has no embedding.
    """

    token_offset = -1
    """The start marker is left out, so that every token is one position earlier than in the task."""

    class Options(Config):
        """`width` is that of one direction. Dropout acts on the embedding."""

        name: Literal["ctl-bilstm"] = "ctl-bilstm"
        embedding: int = Field(256, ge=2)
        width: int = Field(128, ge=2)
        dropout: float = Field(0.5, ge=0, lt=1)

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        values, classes = vocabulary_sizes(spec)
        self.dropout = options.dropout
        self.end_marker = values - 2
        self.embed = TokenEmbedding(values - 1, options.embedding)
        self.rightwards = Recurrence(options.embedding, options.width)
        self.leftwards = Recurrence(options.embedding, options.width)
        self.answer = Answer(2 * options.width, classes)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """Logits (B, classes). Captured activations: `encoder.state` of both directions at every token that is read,
        and `readout.state`."""
        tokens = inputs["token"][:, 1:]
        mask = inputs["mask"][:, 1:]
        if not tokens.shape[1]:  # there is only the start marker: read one step of padding
            tokens = F.pad(tokens, (0, 1))
            mask = F.pad(mask, (0, 1))
        # A start marker after the first token is not a legal input; it is read as an end marker.
        x = ctx.dropout(self.embed(tokens.clamp_max(self.end_marker)), self.dropout)
        rightwards = self.rightwards(x, mask)
        leftwards = self.leftwards(x, mask, reverse=True)
        states = ctx.capture("encoder.state", torch.cat([rightwards, leftwards], -1))
        # Padding carries the state on (from zero if it comes first), so that both directions end at their last step.
        width = rightwards.shape[-1]
        return self.answer(torch.cat([states[:, -1, :width], states[:, 0, width:]], -1), ctx)


class CTLTransformer(nn.Module):
    """Embed, encode with a shared post-norm layer with relative positions, answer from the state of one marker.

    Captured activations: `encoder.attention` (of earlier layers `encoder.0.attention`, …), `encoder.state`,
    `readout.state`. In training the last layer computes only the token that is read.
    """

    class Options(Config):
        """The released numbers; the paper's text says `feedforward` 512 and `dropout` 0.5. The original CTL has 11
        layers, no `key_dropout`, and reads at the end marker.
        """

        name: Literal["ctl-transformer"] = "ctl-transformer"
        width: int = Field(128, ge=2)
        heads: int = Field(4, ge=1)
        feedforward: int = Field(256, ge=2)
        layers: int = Field(8, ge=1, le=1000)
        dropout: float = Field(0.1, ge=0, lt=1)
        key_dropout: float = Field(0.1, ge=0, lt=1)
        read_at: ReadAt = "start"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        values, classes = vocabulary_sizes(spec)
        width, heads = options.width, options.heads
        self.read_at = options.read_at
        self.embed = TokenEmbedding(values, width, std=math.sqrt(2 / width))
        self.encoder = Encoder(
            width, options.layers, heads, options.feedforward, options.dropout, self_attention=False, shared=True
        )
        block = self.encoder.blocks[0]
        assert isinstance(block, EncoderBlock)
        attention = block.attention = SelfAttention(
            width, heads, positions="relative", key_dropout=options.key_dropout, learned_scale=True, bias=False
        )
        # Queries as one matrix, keys and values as another, both Xavier uniform; everything else as the layers start.
        query, key_value = attention.input.weight.detach().split([width, 2 * width], -1)
        nn.init.xavier_uniform_(query)
        nn.init.xavier_uniform_(key_value)
        nn.init.xavier_normal_(block.expand.weight, math.sqrt(2))
        nn.init.xavier_uniform_(block.contract.weight)
        self.answer = Answer(width, classes)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """Logits (B, classes)."""
        mask = inputs["mask"]
        rows = slice(0, 1) if ctx.training and self.read_at == "start" else ALL
        states = self.encoder(self.embed(inputs["token"]), mask, rows=rows, ctx=ctx)
        return self.answer(take_state(states, mask, self.read_at), ctx)


class CTLNDR(nn.Module):
    """Embed, apply one gated layer repeatedly, answer from the state of one marker.

    Captured activations: `encoder.gate` and `encoder.attention` (of earlier layers `encoder.0.gate`, …),
    `encoder.state`, `readout.state`. In training the last layer computes only the token that is read.
    """

    class Options(Config):
        """The released numbers; the paper's text says `feedforward` 1024 and `extra_layers` 0.

        `extra_layers` are applied in evaluation only (8 layers in training, 10 in evaluation). `interleaved_start` is the
        released code's error in initialising keys and values. The original CTL has form `original`, 14 layers, one head,
        and reads at the end marker.
        """

        name: Literal["ctl-ndr"] = "ctl-ndr"
        form: NDRFormName = "ctl++"
        width: int = Field(256, ge=2)
        heads: int = Field(4, ge=1)
        feedforward: int = Field(512, ge=2)
        layers: int = Field(8, ge=1, le=1000)
        extra_layers: int = Field(2, ge=0, le=1000)
        dropout: float = Field(0.5, ge=0, lt=1)
        key_dropout: float = Field(0.1, ge=0, lt=1)
        gate_dropout: float = Field(0.1, ge=0, lt=1)
        read_at: ReadAt = "start"
        interleaved_start: bool = False

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        values, classes = vocabulary_sizes(spec)
        self.layers = options.layers
        self.extra_layers = options.extra_layers
        self.read_at = options.read_at
        self.embed = TokenEmbedding(values, options.width)
        self.block = NDRBlock(
            options.width,
            options.heads,
            options.feedforward,
            dropout=options.dropout,
            key_dropout=options.key_dropout,
            gate_dropout=options.gate_dropout,
            form=options.form,
            interleaved=options.interleaved_start,
        )
        self.answer = Answer(options.width, classes)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """Logits (B, classes)."""
        states = self.embed(inputs["token"])
        mask = inputs["mask"]
        layers = self.layers if ctx.training else self.layers + self.extra_layers
        for i in range(layers - 1):
            states = self.block(states, mask, ctx=ctx, name=f"encoder.{i}")
        rows = slice(0, 1) if ctx.training and self.read_at == "start" else ALL
        states = self.block(states, mask, rows=rows, ctx=ctx, name="encoder")
        states = ctx.capture("encoder.state", states)
        return self.answer(take_state(states, mask, self.read_at), ctx)
