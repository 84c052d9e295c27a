"""Widths that make different backbones equal: in parameters, in state or in FLOPs.

| by | count, for streams of the spec's lengths |
|---|---|
| `parameters` | trained parameters |
| `state` | numbers that a backbone carries per example, see below |
| `flops` | FLOPs of the matrix products in the forward pass of one example; a multiply-add counts as two |

The state is what a backbone carries from token to token, or, if it processes all tokens at once, from layer to layer:

| backbone | state | numbers |
|---|---|---|
| `lstm` | hidden state and cell of every layer | 2 · layers · width |
| `gru`, `rnn` | hidden state of every layer | layers · width |
| `transformer`, `universal-transformer`, `ndr`, `modular` | one vector per token | tokens · width |
| `perceiver` | the latents | latents · width |
| `moe-transformer` | one vector per token | tokens · width |
| `s4d` | complex states of every channel and layer | 2 · layers · state · width |
| `mamba` | states of every channel and layer, and what the short convolution remembers | layers · (state + kernel − 1) · expand · width |
| `gla`, `deltanet` | a matrix per head and layer, and what the short convolution remembers | layers · (width / heads + kernel − 1) · width |

The tokens of an example are those of every stream, one for the fields given once, and one to read the answer from.
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
from unseen.models.backbones.options import BackboneOptions, MatchBy
from unseen.models.build import parameter_count
from unseen.models.flops import forward_flops
from unseen.spec import Spec

WIDEST = 1 << 12
"""The largest width that is considered."""


def match(name: str, spec: Spec, *, by: MatchBy, to: int, **values: Any) -> BackboneOptions:
    """The options of a backbone with the width whose count comes nearest to a number; in a tie, the narrower.

    All other options are `values`. The request is stored in the option `matched`, so that records show it; the count that
    results is `measure(options, spec, by)`. A number out of reach is an error.

    >>> from unseen.spec import Field, Stream, Target
    >>> bits = Field("sequence", "bits", 36, "sequence")
    >>> spec = Spec((Stream("sequence", 10),), (bits,), Target("binary"))
    >>> lstm = match("lstm", spec, by="parameters", to=100_000)
    >>> lstm.width, measure(lstm, spec, "parameters")
    (109, 100172)
    >>> match("transformer", spec, by="parameters", to=100_000).options()
    {'name': 'transformer', 'width': 64, 'matched': {'by': 'parameters', 'to': 100000}}
    """
    if MODELS.entry(name).name not in BACKBONES:
        raise UsageError(f"match: '{name}' has fixed sizes; the models that can be matched are {', '.join(BACKBONES)}")
    if "width" in values or "matched" in values:
        raise UsageError(f"match: the width of '{name}' is what match determines; leave out width and matched")
    chosen = options(name, **values, matched={"by": by, "to": to})
    assert isinstance(chosen, BackboneOptions)

    @cache
    def count(width: int) -> int:
        return measure(_of_width(chosen, width), spec, by)

    widths = _widths(chosen, spec)
    # Doubling first bounds the bisection, so that no module much wider than needed is ever made.
    upper = 1
    while upper < len(widths) and count(widths[upper - 1]) < to:
        upper *= 2
    index = bisect_left(widths, to, hi=min(upper, len(widths)), key=count)
    if index == len(widths) or (index == 0 and count(widths[0]) > to):
        limit, width = ("most", widths[-1]) if index else ("least", widths[0])
        raise UsageError(
            f"match: '{name}' has at {limit} {count(width)} {by} on this task, at width {width}; {to} is out of "
            "reach: ask for another number, or change its other options"
        )
    # `min` returns the first of equals: the narrower width in a tie.
    neighbours = widths[max(0, index - 1) : index + 1]
    return _of_width(chosen, min(neighbours, key=lambda width: abs(count(width) - to)))


def measure(options: BackboneOptions, spec: Spec, by: MatchBy) -> int:
    """The number of parameters, numbers of state or FLOPs of a backbone on a task."""
    return _MEASURES[by](options, spec)


def count_tokens(spec: Spec) -> int:
    """The number of tokens of an example whose streams have the spec's lengths."""
    return sum(stream.length for stream in spec.streams) + bool(spec.along(None)) + (spec.target.along is None)


def count_state(options: BackboneOptions, spec: Spec) -> int:
    """The number of numbers that a backbone carries: see the table above."""
    return _VECTORS[options.name](options, spec) * options.width


_VECTORS: dict[str, Callable[[Any, Spec], int]] = {
    "lstm": lambda options, spec: 2 * options.layers,
    "gru": lambda options, spec: options.layers,
    "rnn": lambda options, spec: options.layers,
    "perceiver": lambda options, spec: options.latents,
    **dict.fromkeys(
        ("transformer", "universal-transformer", "ndr", "modular", "moe-transformer"),
        lambda options, spec: count_tokens(spec),
    ),
    "s4d": lambda options, spec: 2 * options.layers * options.state,
    "mamba": lambda options, spec: options.layers * (options.state + options.kernel - 1) * options.expand,
    **dict.fromkeys(
        ("gla", "deltanet"),
        lambda options, spec: options.layers * (options.width // options.heads + options.kernel - 1),
    ),
}
"""The number of vectors of its width that a backbone carries."""

_MEASURES: dict[MatchBy, Callable[[BackboneOptions, Spec], int]] = {
    "parameters": lambda options, spec: parameter_count(_sketch(options, spec)),
    "state": count_state,
    "flops": lambda options, spec: round(forward_flops(_sketch(options, spec).to_empty(device="cpu"), spec).each),
}


def _sketch(options: BackboneOptions, spec: Spec) -> nn.Module:
    """The module on the meta device: shapes without numbers, so that a wide one costs nothing."""
    with torch.device("meta"):
        module: nn.Module = MODELS.load(options.name)(options, spec)
    return module


def _of_width(options: BackboneOptions, width: int) -> BackboneOptions:
    return type(options).parse({**options.model_dump(), "width": width})


def _widths(options: BackboneOptions, spec: Spec) -> range:
    """The widths that can be built: multiples of the heads (twice for rotary positions), with a unit per module."""
    unit = getattr(options, "heads", 1) * (2 if getattr(options, "positions", "none") == "rotary" else 1)
    widths = range(max(2, unit), WIDEST + 1, unit)
    _sketch(_of_width(options, widths[-1]), spec)  # if even this width cannot be built, the error says why

    def can_build(width: int) -> bool:
        try:
            _sketch(_of_width(options, width), spec)
        except UsageError:
            return False
        return True

    # If a width can be built, so can every larger one: False comes before True, and bisection finds the first True.
    return widths[bisect_left(widths, True, key=can_build) :]
