"""What the ctl models have in common: the tokens they read, and the state they answer from."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unseen.errors import UsageError
from unseen.models.layers.linear import Linear
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Field, Spec

ReadAt = Literal["start", "end"]


def sizes(spec: Spec) -> tuple[int, int]:
    """How many values a token and the answer have; a task without a `token` and a `mask` along `tokens` is refused.

    The last value of a token is the start marker, which comes first and nowhere else; padding is at the end.
    """
    values = spec.field("token").width
    spec.require(Field("token", "category", values, "tokens"))
    spec.require(Field("mask", "mask", 1, "tokens"))
    if (spec.target.kind, spec.target.along) != ("category", None) or len(spec.inputs) > 2:
        raise UsageError(
            f"the ctl models read tokens and answer with one category, the target is {spec.target} and "
            f"the inputs are {', '.join(f.name for f in spec.inputs)}"
        )
    return values, spec.target.width


class Embedding(nn.Module):
    """A vector per token, normal at the start: (B, T) → (B, T, width)."""

    def __init__(self, values: int, width: int, std: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(values, width).normal_(std=std))

    def forward(self, tokens: Tensor) -> Tensor:
        return F.embedding(tokens, self.weight)


class Answer(nn.Module):
    """A linear map of one state: (B, width) → (B, classes). Keeps the state."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.project = Linear(width, classes)

    def forward(self, state: Tensor, tape: Tape = NO_TAPE) -> Tensor:
        tape.keep("readout.state", state)
        logits: Tensor = self.project(state)
        return logits


def state_at(states: Tensor, mask: Tensor, place: ReadAt) -> Tensor:
    """The state of the start marker, or of the end marker, which is the last real token: (B, T, width) → (B, width)."""
    if place == "start":
        return states[:, 0]
    last = mask.sum(1)[:, None, None] - 1
    return states.gather(1, last.expand(-1, 1, states.shape[2]))[:, 0]
