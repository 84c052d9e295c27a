"""Recurrent backbones for any task: LSTM, GRU and Elman's RNN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from unseen.models.backbones.options import BackboneOptions
from unseen.models.context import NO_CONTEXT, Context
from unseen.models.layers.embedding import Embed, ReadOut
from unseen.models.layers.recurrent import Activation, CellName, Recurrence
from unseen.spec import Spec


class RecurrentOptions(BackboneOptions):
    """Dropout acts on the embedding and between layers."""

    layers: int = Field(1, ge=1, le=1000)


class RecurrentBackbone(nn.Module):
    """Embed, recur, read out; padding carries the state on.

    It reads from left to right: a prediction along a stream knows nothing of later tokens. Captured activations:
    `encoder.state`, for all tokens, and `readout.state`.
    """

    def __init__(self, options: RecurrentOptions, spec: Spec, cell: CellName) -> None:
        super().__init__()
        width = options.width
        self.dropout = options.dropout
        self.embed = Embed(spec, width)
        self.recurrence = Recurrence(width, width, options.layers, options.dropout, cell=cell)
        self.read_out = ReadOut(spec, width)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """The prediction in the shape of the target, logits for binary and category targets."""
        tokens = self.embed(inputs)
        states = self.recurrence(ctx.dropout(tokens.states, self.dropout), tokens.mask, ctx=ctx)
        states = ctx.capture("encoder.state", states)
        return self.read_out(states[:, tokens.read], ctx)


class LSTM(RecurrentBackbone):
    """Long short-term memory; see `RecurrentBackbone`."""

    class Options(RecurrentOptions):
        name: Literal["lstm"] = "lstm"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__(options, spec, "lstm")


class GRU(RecurrentBackbone):
    """The gated recurrent unit, with the reset gate inside the tanh; see `RecurrentBackbone`."""

    class Options(RecurrentOptions):
        name: Literal["gru"] = "gru"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__(options, spec, "gru")


class RNN(RecurrentBackbone):
    """The plain recurrent network, h = activation(inputs + W h); see `RecurrentBackbone`."""

    class Options(RecurrentOptions):
        name: Literal["rnn"] = "rnn"
        activation: Activation = "tanh"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__(options, spec, options.activation)
