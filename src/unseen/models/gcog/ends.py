"""Where the gcog models end: layers with an activation after each, and the answer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from unseen.models.layers.activation import gelu
from unseen.models.layers.linear import Linear
from unseen.models.layers.norm import LayerNorm
from unseen.models.layers.tape import Tape

Activation = Literal["relu", "gelu"]
_ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {"relu": torch.relu_, "gelu": gelu}


class MLP(nn.Module):
    """Linear layers of these widths, each followed by the activation."""

    def __init__(self, *widths: int, activation: Activation = "relu") -> None:
        super().__init__()
        self.layers = nn.ModuleList(Linear(*pair) for pair in pairwise(widths))
        self.activation = _ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = self.activation(layer(x))
        return x


class Head(nn.Module):
    """A norm, unless without, and a linear map: (B, width) → (B, classes). Keeps what the map is given."""

    def __init__(self, width: int, classes: int, *, norm: bool = True) -> None:
        super().__init__()
        self.norm = LayerNorm(width) if norm else nn.Identity()
        self.answer = Linear(width, classes)

    def forward(self, state: Tensor, tape: Tape) -> Tensor:
        state = self.norm(state)
        tape.keep("readout.state", state)
        logits: Tensor = self.answer(state)
        return logits
