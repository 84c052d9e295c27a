"""Widths that make different backbones equal: in parameters, in state or in work.

| by | what is counted, for streams of the spec's lengths |
|---|---|
| `parameters` | numbers that are trained |
| `state` | numbers that an example occupies on the way, see below |
| `flops` | operations of the forward pass of one example: products of matrices, a multiply-add is two |

The state is what a backbone carries from token to token, or from layer to layer where all tokens are there at once:

| backbone | state | numbers |
|---|---|---|
| `lstm` | hidden state and cell of every layer | 2 · layers · width |
| `gru`, `rnn` | hidden state of every layer | layers · width |
| `transformer`, `universal-transformer`, `ndr`, `modular` | a vector for every token | tokens · width |
| `perceiver` | the latents | latents · width |

Tokens are those that a backbone makes of an example: of every stream, one for what is given once, one to read from.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import nn

from unseen.errors import UsageError
from unseen.models import BACKBONES, MODELS, options
from unseen.models.backbones.options import BackboneOptions, By
from unseen.models.build import parameter_count
from unseen.models.flops import forward_flops
from unseen.spec import Spec

WIDEST = 1 << 12
"""No backbone is made wider than this."""


def match(name: str, spec: Spec, *, by: By, to: int, **given: Any) -> BackboneOptions:
    """The options of a backbone with the width at which it comes nearest to a number; the narrower of two as near.

    All other options are as given. What was asked for is kept in the option `matched`, so that records say so; what has
    come out of it is `measure(options, spec, by)`. A number out of reach is an error.

    >>> from unseen.spec import Field, Stream, Target
    >>> bits = Field("sequence", "bits", 36, "sequence")
    >>> spec = Spec((Stream("sequence", 10),), (bits,), Target("binary"))
    >>> found = match("lstm", spec, by="parameters", to=100_000)
    >>> found.width, measure(found, spec, "parameters")
    (109, 100172)
    >>> match("transformer", spec, by="parameters", to=100_000).options()
    {'name': 'transformer', 'width': 64, 'matched': {'by': 'parameters', 'to': 100000}}
    """
    if MODELS.entry(name).name not in BACKBONES:
        raise UsageError(f"match: '{name}' has sizes of its own; those that can be matched are {', '.join(BACKBONES)}")
    if "width" in given or "matched" in given:
        raise UsageError(f"match: the width of '{name}' is what is looked for; leave out width and matched")
    chosen = options(name, **given, matched={"by": by, "to": to})
    assert isinstance(chosen, BackboneOptions)

    @cache
    def count(width: int) -> int:
        return measure(_of_width(chosen, width), spec, by)

    widths = _widths(chosen, spec)
    end = 1  # nothing much wider than needed is ever made
    while end < len(widths) and count(widths[end - 1]) < to:
        end *= 2
    place = bisect_left(widths, to, hi=min(end, len(widths)), key=count)
    if place == len(widths) or (place == 0 and count(widths[0]) > to):
        side, bound = ("most", widths[-1]) if place else ("least", widths[0])
        raise UsageError(
            f"match: '{name}' has at {side} {count(bound)} {by} here, at width {bound}; {to} is out of "
            "reach: ask for another number, or change its other options"
        )
    return _of_width(chosen, min(widths[max(0, place - 1) : place + 1], key=lambda width: abs(count(width) - to)))


def measure(options: BackboneOptions, spec: Spec, by: By) -> int:
    """How many parameters, numbers of state or operations a backbone has on a task."""
    return _MEASURES[by](options, spec)


def tokens(spec: Spec) -> int:
    """How many tokens a backbone makes of an example, if its streams have the spec's lengths."""
    return sum(stream.length for stream in spec.streams) + bool(spec.along(None)) + (spec.target.along is None)


def state(options: BackboneOptions, spec: Spec) -> int:
    """How many numbers a backbone carries: see the table above."""
    return _VECTORS[options.name](options, spec) * options.width


_VECTORS: dict[str, Callable[[Any, Spec], int]] = {
    "lstm": lambda options, spec: 2 * options.layers,
    "gru": lambda options, spec: options.layers,
    "rnn": lambda options, spec: options.layers,
    "perceiver": lambda options, spec: options.latents,
    **dict.fromkeys(("transformer", "universal-transformer", "ndr", "modular"), lambda options, spec: tokens(spec)),
}
"""How many vectors of its width a backbone carries."""

_MEASURES: dict[By, Callable[[BackboneOptions, Spec], int]] = {
    "parameters": lambda options, spec: parameter_count(_sketch(options, spec)),
    "state": state,
    "flops": lambda options, spec: round(forward_flops(_sketch(options, spec).to_empty(device="cpu"), spec).each),
}


def _sketch(options: BackboneOptions, spec: Spec) -> nn.Module:
    """The module without its numbers: shapes alone, so that a wide one costs nothing."""
    with torch.device("meta"):
        module: nn.Module = MODELS.load(options.name)(options, spec)
    return module


def _of_width(options: BackboneOptions, width: int) -> BackboneOptions:
    return type(options).parse({**options.model_dump(), "width": width})


def _widths(options: BackboneOptions, spec: Spec) -> range:
    """The widths that can be built: heads divide them, rotary positions even twice; modules need a unit each."""
    unit = getattr(options, "heads", 1) * (2 if getattr(options, "positions", "none") == "rotary" else 1)
    widths = range(max(2, unit), WIDEST + 1, unit)
    _sketch(_of_width(options, widths[-1]), spec)  # if even this can't be, it says why

    def can_be(width: int) -> bool:
        try:
            _sketch(_of_width(options, width), spec)
        except UsageError:
            return False
        return True

    return widths[bisect_left(widths, True, key=can_be) :]
