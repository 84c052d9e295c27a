"""Recurrent networks other than the LSTM, written as one step: Elman's RNN here, the GRU in `gru`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from unseen.models.layers.linear import affine
from unseen.models.layers.tape import NO_TAPE, Tape

Step = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""From what inputs and state say, (B, gates · width) each, and the state, None for zeros, to the new state."""

Activation = Literal["relu", "tanh"]


def elman(activation: Activation) -> Step:
    """Elman's RNN: the new state is activation(a + b)."""
    function = {"relu": torch.relu, "tanh": torch.tanh}[activation]
    return lambda given, from_state, _: function(given + from_state)


class Stepwise(nn.Module):
    """Layers of one kind of step from zero states: (B, T, inputs) → (B, T, width), the state after every step.

    Two bias vectors, everything uniform within ±1/√width, as in `nn.GRU` and `nn.RNN`. Dropout acts between layers. At
    padded steps (mask false) the state is carried on unchanged. As `Recurrence`, which is for the LSTM.
    """

    def __init__(self, inputs: int, width: int, gates: int, step: Step, layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.layers = nn.ModuleList(_Layer(width if i else inputs, width, gates, step) for i in range(layers))

    def forward(self, x: Tensor, mask: Tensor | None = None, *, tape: Tape = NO_TAPE) -> Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(tape.dropout(x, self.dropout) if i else x, mask)
        return x


class _Layer(nn.Module):
    def __init__(self, inputs: int, width: int, gates: int, step: Step) -> None:
        super().__init__()
        self.step = step
        bound = 1 / math.sqrt(width)

        def uniform(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))

        self.input_weight, self.state_weight = uniform(inputs, gates * width), uniform(width, gates * width)
        self.input_bias, self.state_bias = uniform(gates * width), uniform(gates * width)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        given = affine(x, self.input_weight, self.input_bias).unbind(1)
        real = None if mask is None else mask.to(x.dtype)[..., None].unbind(1)
        states: list[Tensor] = []
        for k, token in enumerate(given):
            before = states[-1] if states else None
            from_state = self.state_bias if before is None else affine(before, self.state_weight, self.state_bias)
            state = self.step(token, from_state, before)
            if real is not None:  # sums of products with 0 and 1: exactly the one state or the other
                state = state * real[k] if before is None else state * real[k] + before * (1 - real[k])
            states.append(state)
        return torch.stack(states, 1)
