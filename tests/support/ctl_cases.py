"""A small ctl spec, inputs as the ctl tasks give them, and bits for a whole pass of training."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from unseen.models import options
from unseen.models.build import build
from unseen.models.context import CountingContext
from unseen.spec import Field, Spec, Stream, Target

FUNCTIONS, SYMBOLS, LONGEST = 6, 4, 4
END, START = FUNCTIONS + SYMBOLS, FUNCTIONS + SYMBOLS + 1


def spec(values: int = START + 1, classes: int = SYMBOLS) -> Spec:
    fields = Field("token", "category", values, "tokens"), Field("mask", "mask", 1, "tokens")
    return Spec((Stream("tokens", LONGEST + 3),), fields, Target("category", classes))


PAPER = spec(42, 8)
"""32 functions, 8 symbols and the two markers."""


def inputs(batch: int = 5, seed: int = 0) -> dict[str, Tensor]:
    """Start, functions (1 to LONGEST of them), symbol, end, and padding that looks like tokens."""
    generator = torch.Generator().manual_seed(seed)
    token = torch.randint(SYMBOLS, END, (batch, LONGEST + 3), generator=generator)
    count = 1 + torch.arange(batch) % LONGEST
    rows = torch.arange(batch)
    token[:, 0] = START
    token[rows, count + 1] = torch.randint(SYMBOLS, (batch,), generator=generator)
    token[rows, count + 2] = END
    return {"token": token, "mask": torch.arange(LONGEST + 3) < count[:, None] + 3}


def model(name: str, paper: bool = False, **given: object) -> nn.Module:
    """In double precision, with every parameter moved away from where it starts (unless of paper size)."""
    made = build(options(name, **given), PAPER if paper else spec(), 0)
    if not paper:
        generator = torch.Generator().manual_seed(1)
        made = made.double()
        for parameter in made.parameters():
            parameter.data += 0.2 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return made


def bits(module: nn.Module, given: dict[str, Tensor], seed: int = 0) -> Tensor:
    """Random dropout bits for a pass of training."""
    ctx = CountingContext()
    module(given, ctx)
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-(2**15), 2**15, (ctx.used,), generator=generator, dtype=torch.int16)


def within(values: Tensor, bound: float) -> bool:
    """Whether values look uniform within ±bound: inside, reaching it, with the spread of a uniform distribution."""
    spread = values.std().item() / (bound / math.sqrt(3))
    return bool(0.98 * bound < values.abs().max() <= bound * (1 + 1e-6)) and 0.97 < spread < 1.03
