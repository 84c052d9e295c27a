"""Transformer backbones for any task: the Transformer, the universal Transformer and the Neural Data Router."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from unseen.models.backbones.options import BackboneOptions, PlacedOptions
from unseen.models.context import NO_CONTEXT, Context
from unseen.models.layers.attention import ALL
from unseen.models.layers.embedding import Embed, ReadOut, gather_real, take_tokens
from unseen.models.layers.encoder import Encoder
from unseen.models.layers.ndr import NDRBlock, NDRFormName
from unseen.models.layers.positions import Scheme
from unseen.spec import Spec


class AttentiveOptions(PlacedOptions):
    """`feedforward` is the hidden width of the feed-forward as a multiple of `width`. With `causal`, tokens attend only
    to themselves and to earlier tokens."""

    layers: int = Field(2, ge=1, le=1000)
    heads: int = Field(4, ge=1)
    feedforward: int = Field(4, ge=1)
    norm: Literal["pre", "post"] = "pre"
    causal: bool = False


class AttentiveBackbone(nn.Module):
    """Embed, encode, read out; each layer has its own weights, or one layer is `shared`.

    Captured activations, for the tokens that are read: `encoder.attention` (of earlier layers, for all tokens,
    `encoder.0.attention`, …), `encoder.state`, `readout.state`.
    """

    def __init__(self, options: AttentiveOptions, spec: Spec, *, shared: bool) -> None:
        super().__init__()
        self.dropout = options.dropout
        self.embed = Embed(spec, options.width, options.positions, options.places)
        self.encoder = Encoder(
            options.width,
            options.layers,
            options.heads,
            options.feedforward * options.width,
            options.dropout,
            norm=options.norm,
            positions=options.positions,
            causal=options.causal,
            shared=shared,
        )
        self.read_out = ReadOut(spec, options.width)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """The prediction in the shape of the target, logits for binary and category targets."""
        tokens = self.embed(inputs)
        x = ctx.dropout(tokens.states, self.dropout)
        states = self.encoder(x, tokens.mask, token_positions=tokens.token_positions, rows=tokens.read, ctx=ctx)
        return self.read_out(states, ctx)


class Transformer(AttentiveBackbone):
    """Layers of self-attention and feed-forward, each with its own weights; see `AttentiveBackbone`."""

    class Options(AttentiveOptions):
        name: Literal["transformer"] = "transformer"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__(options, spec, shared=False)


class UniversalTransformer(AttentiveBackbone):
    """One layer of self-attention and feed-forward, applied repeatedly; see `AttentiveBackbone`."""

    class Options(AttentiveOptions):
        """`layers` is how often the layer is applied."""

        name: Literal["universal-transformer"] = "universal-transformer"
        layers: int = Field(4, ge=1, le=1000)
        positions: Scheme = "relative"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__(options, spec, shared=True)


class NDR(nn.Module):
    """Embed, apply one layer with geometric attention and a copy gate repeatedly, read out.

    It knows no positions except the order of the tokens, so that a set is read as a sequence. Where there is padding, the
    real tokens are moved together, so that none lies between neighbours.

    Captured activations: `encoder.attention` and `encoder.gate` (of earlier layers `encoder.0.gate`, …), in the order of
    the moved tokens; `encoder.state` and `readout.state`, for the tokens that are read.
    """

    class Options(BackboneOptions):
        """`layers` is how often the layer is applied, `feedforward` the hidden width of the feed-forward as a multiple
        of `width`. Gate dropout closes the gate for whole tokens."""

        name: Literal["ndr"] = "ndr"
        layers: int = Field(4, ge=1, le=1000)
        heads: int = Field(4, ge=1)
        feedforward: int = Field(2, ge=1)
        gate_dropout: float = Field(0.1, ge=0, lt=1)
        form: NDRFormName = "ctl++"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        width = options.width
        self.dropout = options.dropout
        self.layers = options.layers
        self.once = spec.target.along is None
        self.embed = Embed(spec, width)
        self.block = NDRBlock(
            width,
            options.heads,
            options.feedforward * width,
            dropout=options.dropout,
            gate_dropout=options.gate_dropout,
            form=options.form,
        )
        self.read_out = ReadOut(spec, width)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """The prediction in the shape of the target, logits for binary and category targets."""
        tokens = self.embed(inputs)
        x = ctx.dropout(tokens.states, self.dropout)
        mask = tokens.mask
        position = None
        if mask is not None:
            x, mask, position = gather_real(x, mask)
        # The read-out token is the last and stays there, so that the last layer can compute it alone.
        rows = tokens.read if self.once or position is None else ALL
        for i in range(self.layers - 1):
            x = self.block(x, mask, ctx=ctx, name=f"encoder.{i}")
        x = self.block(x, mask, rows=rows, ctx=ctx)
        if position is not None and not self.once:
            x = take_tokens(x, position)[:, tokens.read]
        x = ctx.capture("encoder.state", x)
        return self.read_out(x, ctx)
