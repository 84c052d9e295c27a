"""A model that is right, and tasks, models and studies with one planted fault each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from support.standins import Clean
from unseen.config import Config
from unseen.errors import UsageError
from unseen.models.context import NO_CONTEXT, Context
from unseen.models.layers.embedding import Embed, ReadOut
from unseen.models.layers.linear import Linear
from unseen.spec import Spec
from unseen.studies.grid import Grid
from unseen.studies.study import Study
from unseen.tasks.base import Array, Examples

Inputs = Mapping[str, Tensor]

# Tasks


class WrongSolver(Clean):
    name: str = "wrong/solver"

    def solve(self, examples: Examples) -> Array:
        solved = super().solve(examples)
        solved[: len(solved) // 10] ^= 1
        return solved


class Drifted(Clean):
    """Its numbers are not those it declares."""

    name: str = "wrong/golden"
    golden: ClassVar[dict[str, str]] = {"train": "0" * 32}


class Silent(Clean):
    name: str = "wrong/words"

    def describe(self, examples: Examples, index: int) -> str:
        return ""


class Misnamed(Clean):
    """Registered under another name than its own."""

    name: str = "wrong/other"

    @classmethod
    def parse(cls, options: Any) -> Any:
        return super().parse({**options, "name": "wrong/other"})


# Models


class Right(nn.Module):
    class Options(Config):
        name: str = "right"
        width: int = 8

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        self.embed = Embed(spec, options.width)
        self.talk = Linear(2 * options.width, options.width)
        self.read_out = ReadOut(spec, options.width)

    def heard(self, states: Tensor, mask: Tensor | None) -> Tensor:
        real = torch.ones_like(states[..., :1]) if mask is None else mask[..., None].to(states.dtype)
        return (states * real).sum(1, keepdim=True) / real.sum(1, keepdim=True)

    def said(self, x: Tensor, ctx: Context) -> Tensor:
        return ctx.dropout(torch.tanh(self.talk(x)), 0.25)

    def forward(self, inputs: Inputs, ctx: Context = NO_CONTEXT) -> Tensor:
        tokens = self.embed(inputs)
        heard = self.heard(tokens.states, tokens.mask).expand_as(tokens.states)
        states = tokens.states + self.said(torch.cat([tokens.states, heard], -1), ctx)
        return self.read_out(states[:, tokens.read], ctx)


class Flat(Right):
    """The last dimension is missing."""

    def forward(self, inputs: Inputs, ctx: Context = NO_CONTEXT) -> Tensor:
        return super().forward(inputs, ctx)[..., 0]


class Mixing(Right):
    """A mean over the batch."""

    def forward(self, inputs: Inputs, ctx: Context = NO_CONTEXT) -> Tensor:
        answer = super().forward(inputs, ctx)
        return answer - answer.mean(0, keepdim=True) / 2


class OwnDropout(Right):
    def said(self, x: Tensor, ctx: Context) -> Tensor:
        return nn.functional.dropout(torch.tanh(self.talk(x)), 0.25, self.training)


class Idle(Right):
    def __init__(self, options: Right.Options, spec: Spec) -> None:
        super().__init__(options, spec)
        self.unused = Linear(3, 3)


class Leaking(Right):
    """Padding has a part in the mean."""

    def heard(self, states: Tensor, mask: Tensor | None) -> Tensor:
        return states.mean(1, keepdim=True)


class Short(Right):
    """Learned positions, as many as the spec has."""

    def __init__(self, options: Right.Options, spec: Spec) -> None:
        super().__init__(options, spec)
        self.embed = Embed(spec, options.width, "learned")


class Counting(Right):
    """It answers by how many members its stack has."""

    def said(self, x: Tensor, ctx: Context) -> Tensor:
        of = torch._C._functorch
        members = of.get_unwrapped(self.talk.weight).shape[0] if of.is_batchedtensor(self.talk.weight) else 1
        return super().said(x, ctx) * (1 + members / 100)


class Careless(Right):
    """Parameters from a generator of its own."""

    generator: ClassVar[np.random.Generator] = np.random.default_rng(0)

    def __init__(self, options: Right.Options, spec: Spec) -> None:
        super().__init__(options, spec)
        with torch.no_grad():
            self.talk.bias += float(self.generator.normal())


class Crashing(Right):
    def __init__(self, options: Right.Options, spec: Spec) -> None:
        super().__init__(options, spec)
        self.first = spec.inputs[99]


class Picky(Right):
    def __init__(self, options: Right.Options, spec: Spec) -> None:
        raise UsageError("only for tasks about the weather")


class Repeating(Right):
    """Two intermediates with one name."""

    def said(self, x: Tensor, ctx: Context) -> Tensor:
        ctx.capture("encoder.state", x)
        ctx.capture("encoder.state", x)
        return super().said(x, ctx)


# Studies


def grids(scale: str, **second: Any) -> list[Grid]:
    """Two levels that differ in nothing, unless `second` says in what."""
    return [
        Grid(
            axes={"variant": {"one": {}, "two": second}},
            base={
                "task": {"name": "retrieval/T1", "length": 3, "train_size": 100, "evaluation_size": 50},
                "model": {"name": "lstm", "width": 8},
                "recipe": {"steps": 4, "batch": 5, "validate_every": 2, "validation_examples": 20},
                "evaluation": {"examples": 50},
            },
            seeds=range(2),
        )
    ]


def larger(scale: str) -> list[Grid]:
    return grids(scale, model={"width": 12})


def failing(scale: str) -> list[Grid]:
    return grids(scale, model={"name": "support.wrong_plugins:Flat", "width": 12})


FINE = Study("fine", 1, "Does width matter?", {"smoke": 1, "mini": 5}, larger)
ALIKE = Study("alike", 1, "Which of two equals is better?", {"smoke": 1}, grids)
NO_SMOKE = Study("no-smoke", 1, "", {"mini": 1}, larger)
OTHER = Study("another", 1, "", {"smoke": 1}, larger)
UNCLAIMED = Study("unclaimed", 1, "", {"smoke": 1}, larger, claims=("retrieval/C99",))
FAILING = Study("failing", 1, "", {"smoke": 1}, failing)
