"""Models of users, good and bad, as other processes import them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

import unseen
from unseen.config import Config
from unseen.spec import Spec

Inputs = Mapping[str, Tensor]


class Plain(nn.Module):
    """On retrieval tasks: built from the spec, without a context."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.answer = nn.Linear(spec.field("sequence").width + spec.field("query").width, 1)

    def forward(self, inputs: Inputs) -> Tensor:
        return self.answer(torch.cat([inputs["sequence"].amax(1), inputs["query"]], -1))


class Fixed(Plain):
    """Built from nothing."""

    def __init__(self) -> None:
        super().__init__(unseen.task("retrieval/T1").spec)


class Defaulted(Plain):
    """The spec has a default that would not do."""

    def __init__(self, spec: Spec | None = None) -> None:
        assert spec is not None
        super().__init__(spec)


class WithContext(Plain):
    """With a context that must be given."""

    def forward(self, inputs: Inputs, ctx: Any) -> Tensor:
        hidden = ctx.dropout(torch.cat([inputs["sequence"].amax(1), inputs["query"]], -1), 0.5)
        hidden = ctx.capture("bag.state", hidden)
        return self.answer(hidden)


class Optional(nn.Module):
    """With options."""

    class Options(Config):
        name: str = "optional"
        width: int = 8
        bias: bool = True

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        self.hidden = nn.Linear(spec.field("sequence").width, options.width, bias=options.bias)
        self.answer = nn.Linear(options.width, 1)

    def forward(self, inputs: Inputs) -> Tensor:
        return self.answer(self.hidden(inputs["sequence"].sum(1)).relu())


class Adapted(unseen.Adapter):
    """A linear core: it can be stacked."""

    def core(self, width: int) -> nn.Module:
        return nn.Linear(width, width)


class Decorated(Plain):
    """A method that encloses an object which says where in memory it lies."""

    @torch.no_grad()
    def probed(self, inputs: Inputs) -> Tensor:
        return self(inputs)


class Keyword(Plain):
    def __init__(self, *, spec: Spec) -> None:
        super().__init__(spec)


class Crashing(Plain):
    def __init__(self, spec: Spec) -> None:
        raise ZeroDivisionError("no way")


class Wrongly(nn.Module):
    class Options:
        width = 3


class Taken(nn.Module):
    class Options(Config):
        name: str = "taken"
        source: str = "mine"


class Reluctant(nn.Module):
    class Options(Config):
        name: str = "reluctant"

    def __init__(self, options: Options, spec: Spec, more: int) -> None:
        super().__init__()


def function(inputs: Inputs) -> Tensor:
    """No class."""
    return inputs["sequence"]
