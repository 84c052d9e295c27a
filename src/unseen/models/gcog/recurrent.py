"""The gCOG paper's recurrent networks (RNN, GRU): the whole stimulus is an input beside every token of the rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from unseen.config import Config
from unseen.errors import UsageError
from unseen.models.context import NO_CONTEXT, Context
from unseen.models.gcog.blocks import AnswerHead
from unseen.models.gcog.inputs import count_columns, make_reader
from unseen.models.gcog.tokens import take_at
from unseen.models.layers.linear import affine, uniform_parameter
from unseen.models.layers.norm import LayerNorm
from unseen.models.layers.recurrent import STEPS, Activation, CellName, unroll_steps
from unseen.spec import Spec


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
