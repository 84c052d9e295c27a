"""The gCOG paper's models: recurrent networks (RNN, GRU), and Transformers on one stream or two, up to the BERT-like series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from unseen.config import Config
from unseen.errors import UsageError
from unseen.models.context import NO_CONTEXT, Context
from unseen.models.gcog.blocks import (
    MLP,
    AnswerHead,
    GcogAttention,
    GcogBlock,
    GcogOptions,
    JointOptions,
    JointStream,
    SeparateStreams,
)
from unseen.models.gcog.inputs import DenseTokens, TokenRows, TokenView, count_columns, make_reader, take_at
from unseen.models.layers.linear import affine, uniform_parameter
from unseen.models.layers.norm import LayerNorm
from unseen.models.layers.recurrent import STEPS, Activation, CellName, unroll_steps
from unseen.spec import Spec

LATENTS = 10
"""The number of learned latents of the Perceiver."""


# Recurrent networks: the whole stimulus is an input beside every token of the rule.


class GcogRecurrentOptions(Config):
    """`norm_each_step`: a norm after every step, whose result is the state (the paper's text), instead of one at the end
    (as released). `pad_mask`: where there is a mask, read the state at the end token instead of the last.
    """

    width: int = Field(512, ge=2)
    norm_each_step: bool = False
    pad_mask: bool = True


class GcogRecurrent(nn.Module):
    """A recurrent layer over the rule, with two biases, everything uniform within ±1/√width; a norm; the answer.

    The stimulus, flattened token by token, is an input at every step: its share of the projection is the same at all
    steps and computed once. Captured activations: `encoder.state` (B, R, width) after every step, `readout.state`.
    """

    def __init__(self, options: GcogRecurrentOptions, spec: Spec, gates: int, cell: CellName) -> None:
        super().__init__()
        self.reader = make_reader(spec, options.pad_mask)
        self.step = STEPS[cell]
        width = options.width
        rule = count_columns(self.reader.rule_fields)
        self.sizes = rule, self.reader.stimulus_length * count_columns(self.reader.stimulus_fields)
        self.input_weight = uniform_parameter(width, sum(self.sizes), gates * width)
        self.state_weight = uniform_parameter(width, width, gates * width)
        self.input_bias = uniform_parameter(width, gates * width)
        self.state_bias = uniform_parameter(width, gates * width)
        self.norm = LayerNorm(width) if options.norm_each_step else None
        self.head = AnswerHead(width, self.reader.classes, norm=not options.norm_each_step)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """Logits (B, classes)."""
        dtype = self.input_weight.dtype
        rule = self.reader.rule(inputs, dtype)
        stimulus = self.reader.stimulus(inputs, dtype)
        if len(stimulus.positions) != self.reader.stimulus_length:
            raise UsageError(
                f"the recurrent gcog models read a stimulus of {self.reader.stimulus_length} tokens, "
                f"{len(stimulus.positions)} arrived; train one on the other grid"
            )
        rule_weight, stimulus_weight = self.input_weight.split(self.sizes)
        from_stimulus = affine(stimulus.rows.flatten(1), stimulus_weight, self.input_bias)
        # Projected lazily, step by step: the order of the operations decides the order in which gradients are added up.
        projections = (affine(token.contiguous(), rule_weight) + from_stimulus for token in rule.rows.unbind(1))
        states = unroll_steps(self.step, projections, self.state_weight, self.state_bias, norm=self.norm)
        states = ctx.capture("encoder.state", states)
        return self.head(take_at(states, rule.read_at), ctx)


class GcogRNN(GcogRecurrent):
    """The Elman network: h = activation(inputs + W h)."""

    class Options(GcogRecurrentOptions):
        """The released activation is ReLU, the paper's text says tanh."""

        name: Literal["gcog-rnn"] = "gcog-rnn"
        activation: Activation = "relu"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__(options, spec, 1, options.activation)


class GcogGRU(GcogRecurrent):
    """The gated recurrent unit, with the reset gate inside the tanh."""

    class Options(GcogRecurrentOptions):
        """The released numbers, with three numbers for each of the 101 stimulus tokens."""

        name: Literal["gcog-gru"] = "gcog-gru"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__(options, spec, 3, "gru")


# Transformers.


class GcogSingleStream(nn.Module):
    """The paper's SSTfmr: one block on rule and stimulus as one sequence, three layers, the answer from the last token.

    Captured activations: `encoder.attention` (B, 1, 1, T), `encoder.state` and `readout.state`, all of the last token.
    """

    class Options(JointOptions):
        """The released numbers. The paper's text gives the block an MLP of two layers of 512."""

        name: Literal["gcog-single-stream"] = "gcog-single-stream"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        width, hidden = options.width, options.hidden
        self.stream = JointStream(options, spec)
        self.block = GcogBlock(width, width, table=self.stream.make_table())
        self.mlp = MLP(width, hidden, 2 * hidden, hidden)
        self.head = AnswerHead(hidden, self.stream.reader.classes)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """Logits (B, classes)."""
        state = self.block.last(self.stream(inputs, ctx), ctx, "encoder.attention")
        state = ctx.capture("encoder.state", state)
        return self.head(self.mlp(state), ctx)


class GcogDualStream(nn.Module):
    """The paper's DSTfmr: a block and a layer for each stream; the last tokens are added, normed, and go through three
    layers.

    Captured activations of the tokens that are read: `rule.attention`, `rule.state`, `stimulus.attention`,
    `stimulus.state`, `readout.state`.
    """

    class Options(GcogOptions):
        """The released numbers. The paper's text says three layers for each stream."""

        name: Literal["gcog-dual-stream"] = "gcog-dual-stream"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        width, hidden = options.width, options.hidden
        self.streams = SeparateStreams(options, spec)
        self.rule_mlp = MLP(width, hidden)
        self.stimulus_mlp = MLP(width, hidden)
        self.norm = LayerNorm(hidden)
        self.mlp = MLP(hidden, 2 * hidden, 2 * hidden, hidden)
        self.head = AnswerHead(hidden, self.streams.reader.classes)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """Logits (B, classes)."""
        rule, stimulus = self.streams.read_rows(inputs)
        rule_state = self.rule_mlp(self.streams.rule.last(rule, ctx))
        stimulus_state = self.stimulus_mlp(self.streams.stimulus.last(stimulus, ctx))
        return self.head(self.mlp(self.norm(rule_state + stimulus_state)), ctx)


class GcogCrossAttention(nn.Module):
    """The paper's CrossAttn: a block for each stream; the last rule token attends to all stimulus tokens; two layers.

    The result of cross-attention is normed before the state of the rule is added. Captured activations: `rule.attention`
    and `rule.state` of the last token, `stimulus.attention` (B, 1, T, T) and `stimulus.state` of all tokens,
    `cross.attention` (B, 1, 1, T) and `readout.state`.
    """

    class Options(GcogOptions):
        """The released numbers."""

        name: Literal["gcog-cross-attention"] = "gcog-cross-attention"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        width, hidden = options.width, options.hidden
        self.streams = SeparateStreams(options, spec)
        self.cross = GcogAttention(width)
        self.norm = LayerNorm(width)
        self.mlp = MLP(width, hidden, hidden)
        self.head = AnswerHead(hidden, self.streams.reader.classes)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """Logits (B, classes)."""
        rule, stimulus = self.streams.read_rows(inputs)
        rule_state = self.streams.rule.last(rule, ctx)
        stimulus_tokens = self.streams.stimulus(stimulus, ctx)
        mixed = self.cross.look(rule_state[:, None], stimulus_tokens, ctx, "cross.attention")[:, 0]
        return self.head(self.mlp(self.norm(mixed) + rule_state), ctx)


class GcogBert(nn.Module):
    """The paper's BERT-like series: blocks with GELU on rule and stimulus as one sequence. The last block computes only
    the last token, which answers.

    Absolute codes are added again before every block. Captured activations: `encoder.attention` (B, heads, 1, T), those
    of earlier blocks, `encoder.0.attention` (B, heads, T, T), …, and `readout.state`.
    """

    class Options(JointOptions):
        """The largest of the paper's series, which has 1 to 4 layers of 1, 4 or 8 heads and relative positions.

        `hidden` is the width inside a block's MLP.
        """

        name: Literal["gcog-bert"] = "gcog-bert"
        hidden: int = Field(1024, ge=2)
        layers: int = Field(4, ge=1, le=1000)
        heads: int = Field(8, ge=1)
        positions: Literal["absolute", "relative"] = "relative"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        width, heads = options.width, options.heads
        self.stream = JointStream(options, spec)
        self.blocks = nn.ModuleList(
            GcogBlock(width, options.hidden, heads, activation="gelu", table=self.stream.make_table(heads))
            for _ in range(options.layers)
        )
        self.head = AnswerHead(width, self.stream.reader.classes, norm=False)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """Logits (B, classes)."""
        tokens = self.stream(inputs, ctx)
        *earlier, last = self.blocks
        for i, block in enumerate(earlier):
            states = block(tokens, ctx, f"encoder.{i}.attention")
            tokens = self.stream.embed.again(states, tokens.sequence, ctx)
        assert isinstance(last, GcogBlock)
        return self.head(last.last(tokens, ctx, "encoder.attention"), ctx)


class Glance(nn.Module):
    """One read of the latents of the Perceiver from a stream: cross-attention, a norm, and a layer added to it."""

    def __init__(self, name: str, hidden: int, source: int) -> None:
        super().__init__()
        self.name = name
        self.attention = GcogAttention(hidden, source)
        self.norm = LayerNorm(hidden)
        self.mlp = MLP(hidden, hidden)

    def forward(self, latents: Tensor | None, tokens: TokenView, ctx: Context) -> Tensor:
        mixed = self.norm(self.attention.look(latents, tokens, ctx, f"cross.{self.name}.attention"))
        return mixed + self.mlp(mixed)


class GcogPerceiver(nn.Module):
    """The paper's Perceiver: latents attend to the rule, to each other, to the stimulus, and to each other again; the
    last latent answers.

    Each of the four adds to the latents and is followed by the same norm. Latents that start at zero remain equal, so
    that one of them does the work of all; alone, it attends only to itself. Then the map from latents to queries of the
    first cross-attention is never used, nor are those to queries and keys of the latents among themselves.

    Captured activations: `rule.attention`, `rule.state`, `stimulus.attention`, `stimulus.state`, `cross.rule.attention`
    and `cross.stimulus.attention` (B, 1, latents, T), `readout.state`; with learned latents also their attention to each
    other, `latents.rule.attention` and `latents.stimulus.attention`.
    """

    class Options(GcogOptions):
        """The released numbers; `hidden` is the width of the latents, in the paper's text 256.

        `latents`: `zeros` at the start of every trial, or ten `learned` vectors.
        """

        name: Literal["gcog-perceiver"] = "gcog-perceiver"
        latents: Literal["zeros", "learned"] = "zeros"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        width, hidden = options.width, options.hidden
        self.streams = SeparateStreams(options, spec)
        self.to_rule = Glance("rule", hidden, width)
        self.to_stimulus = Glance("stimulus", hidden, width)
        self.latents: nn.Parameter | None
        self.among = GcogAttention(hidden)
        self.norm = LayerNorm(hidden)
        self.mlp = MLP(hidden, hidden)
        self.head = AnswerHead(hidden, self.streams.reader.classes, norm=False)
        learned = nn.Parameter(torch.empty(LATENTS, hidden).normal_(std=0.02)) if options.latents == "learned" else None
        self.register_parameter("latents", learned)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """Logits (B, classes)."""
        rule, stimulus = self.streams.read_rows(inputs)
        start = None if self.latents is None else self.latents.expand(len(rule.rows), -1, -1)
        latents = self._update(start, self.to_rule, self.streams.rule(rule, ctx), ctx)
        latents = self._update(latents, self.to_stimulus, self.streams.stimulus(stimulus, ctx), ctx)
        return self.head(self.mlp(latents[:, -1]), ctx)

    def _update(self, latents: Tensor | None, glance: Glance, tokens: TokenView, ctx: Context) -> Tensor:
        added = glance(latents, tokens, ctx)
        latents = self.norm(added if latents is None else latents + added)
        among_themselves = DenseTokens(latents, TokenRows(latents, tuple(range(latents.shape[1]))))
        mixed = self.among(among_themselves, ctx, f"latents.{glance.name}.attention")
        return self.norm(latents + mixed)
