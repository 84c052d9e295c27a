"""The rules family's recurrent model: modules share one state and are mixed at every step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, Self

import torch
from pydantic import model_validator
from torch import Tensor, nn

from unseen.models.layers.gating import Gate, RuleTable
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.models.rules.counts import RNNSizes
from unseen.models.rules.ends import Decoder, TokenEncoder, read
from unseen.models.rules.gating import GatingOptions
from unseen.models.rules.unroll import unroll
from unseen.models.rules.widths import GATES, Cell, State
from unseen.spec import Spec


class RulesRNN(nn.Module):
    """Encode tokens, let the modules move the state they share, decode the hidden state, step by step.

    Trace: `gating.weights`, (B, N, modules).
    """

    class Options(GatingOptions):
        """`bias`: one bias vector for each recurrent module; without gating there are always the usual two. `state`:
        as wide as `match` makes it, or `whole`, as wide as without gating, however many parameters that takes.
        """

        name: Literal["rules-rnn"] = "rules-rnn"
        cell: Cell = "lstm"
        bias: bool = False
        state: State = "matched"

        @model_validator(mode="after")
        def _whole_is_not_matched(self) -> Self:
            if self.state == "whole" and self.match == "exact":
                raise ValueError("a whole state can't be matched exactly: leave out match, or state")
            return self

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        self.local_gating = options.gating != "joint"  # a score reads what other tokens have left
        features, rules = read(spec, "x", tokens=True)
        sizes = self.sizes = RNNSizes(
            gating=options.gating,
            rules=rules,
            width=options.width,
            inputs=features,
            outputs=spec.target.width,
            core_width=options.core,
            given_modules=options.modules,
            match=options.match,
            cell=options.cell,
            bias=options.bias,
            state=options.state,
        )
        alone, modules, state = options.gating == "none", sizes.modules, sizes.inner
        gates = (GATES[options.cell], modules, state)
        self.encoder = TokenEncoder(features, rules, options.width)
        self.input_weight = _uniform(state if alone else options.width, options.width, *gates)
        self.state_weight = _uniform(state, state, *gates)
        biases = 2 if alone else int(options.bias)
        self.bias = _uniform(state, biases, *gates) if biases else None
        self.score = _uniform(2 * gates[0] * state, 2, *gates) if options.gating == "joint" else None
        self.gate = Gate(options.gating, rules, modules, options.partition)
        self.scorer = RuleTable(rules, state, modules, bias=False) if options.gating == "operation" else None
        self.decoder = Decoder(state, state, spec.target.width)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """The prediction, (B, N, target): logits of yes, or numbers."""
        code = self.encoder(inputs["x"], inputs["rule"])
        batch, steps, _ = code.shape
        weights = self.gate(inputs["rule"].T.flatten(), self.scorer and self.scorer(), code)
        if weights is not None:
            weights = weights.view(-1, steps, batch).transpose(0, 1)
        rows: list[Tensor] = [self.input_weight, self.state_weight]
        weight = torch.cat(rows if self.bias is None else [*rows, self.bias.sum(0, keepdim=True)])
        how = {"given": weights}
        if self.sizes.gating == "truth":
            weight, how = weight.permute(2, 0, 1, 3).flatten(0, 1)[:, :, None], {"choice": weights}
        hidden, used = unroll(code.permute(1, 2, 0), weight, self.sizes.cell, score=self.score, **how)
        if (used := weights if used is None else used) is not None:
            tape.keep("gating.weights", used.permute(2, 0, 1))
        prediction: Tensor = self.decoder(hidden.permute(2, 0, 1).contiguous())
        return prediction


def _uniform(fan_in: int, *shape: int) -> nn.Parameter:
    bound = 1 / math.sqrt(fan_in)
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))
