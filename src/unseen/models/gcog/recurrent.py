"""The gCOG paper's recurrent networks (RNN, GRU): the whole stimulus beside every token of the rule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from unseen.config import Config
from unseen.errors import UsageError
from unseen.models.gcog.ends import Head
from unseen.models.gcog.streams import columns, read
from unseen.models.gcog.tokens import at_end
from unseen.models.layers.gru import gated
from unseen.models.layers.linear import affine
from unseen.models.layers.norm import LayerNorm
from unseen.models.layers.steps import Activation, Step, elman
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Spec


class RecurrentOptions(Config):
    """`norm_each_step`: a norm after every step, whose result is the state (the paper's text), instead of one at the
    end (as released). `pad_mask`: whether the state at the end token is read where there is a mask, or the last.
    """

    width: int = Field(512, ge=2)
    norm_each_step: bool = False
    pad_mask: bool = True


class Recurrent(nn.Module):
    """A recurrent layer over the rule, with two biases, everything uniform within ±1/√width; a norm; the answer.

    The stimulus is given at every step, flattened, token by token: its share of the input is the same at all steps and
    made once. Traces: `encoder.state` (B, R, width) after every step, `readout.state`.
    """

    def __init__(self, options: RecurrentOptions, spec: Spec, gates: int, step: Step) -> None:
        super().__init__()
        self.reading, self.step = read(spec, options.pad_mask), step
        rule, width = columns(self.reading.rule_fields), options.width
        self.sizes = rule, self.reading.stimulus_length * columns(self.reading.stimulus_fields)
        bound = 1 / math.sqrt(width)

        def uniform(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))

        self.input_weight, self.state_weight = uniform(sum(self.sizes), gates * width), uniform(width, gates * width)
        self.input_bias, self.state_bias = uniform(gates * width), uniform(gates * width)
        self.norm = LayerNorm(width) if options.norm_each_step else None
        self.head = Head(width, self.reading.classes, norm=not options.norm_each_step)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """Logits (B, classes)."""
        dtype = self.input_weight.dtype
        rule, stimulus = self.reading.rule(inputs, dtype), self.reading.stimulus(inputs, dtype)
        if len(stimulus.places) != self.reading.stimulus_length:
            raise UsageError(
                f"the recurrent gcog models read a stimulus of {self.reading.stimulus_length} tokens, "
                f"{len(stimulus.places)} arrived; train one on the other grid"
            )
        rule_weight, stimulus_weight = self.input_weight.split(self.sizes)
        always = affine(stimulus.rows.flatten(1), stimulus_weight, self.input_bias)
        states: list[Tensor] = []
        for token in rule.rows.unbind(1):
            before = states[-1] if states else None
            from_state = self.state_bias if before is None else affine(before, self.state_weight, self.state_bias)
            state = self.step(affine(token.contiguous(), rule_weight) + always, from_state, before)
            states.append(state if self.norm is None else self.norm(state))
        all_states = torch.stack(states, 1)
        tape.keep("encoder.state", all_states)
        logits: Tensor = self.head(at_end(all_states, rule.end), tape)
        return logits


class GcogRNN(Recurrent):
    """The Elman network: h = activation(inputs + W h)."""

    class Options(RecurrentOptions):
        """The released activation is ReLU, the paper's text says tanh."""

        name: Literal["gcog-rnn"] = "gcog-rnn"
        activation: Activation = "relu"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__(options, spec, 1, elman(options.activation))


class GcogGRU(Recurrent):
    """The gated recurrent unit, the reset gate inside the tanh."""

    class Options(RecurrentOptions):
        """The released numbers, with three numbers for each of the 101 stimulus tokens."""

        name: Literal["gcog-gru"] = "gcog-gru"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__(options, spec, 3, gated)
