"""Sizes of the three models, and how many parameters follow from them in closed form.

A model is built from its sizes; that what is built has as many parameters as the formula says is a test.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from unseen.errors import UsageError, nearest
from unseen.models.layers.gating import Gating
from unseen.models.rules.widths import (
    GATES,
    Cell,
    Match,
    State,
    head_width,
    mha_hidden,
    mlp_hidden,
    nearest_width,
    state_width,
)


@dataclass(frozen=True, kw_only=True)
class Sizes(ABC):
    """What all three have: `width` e of the encoder, `core` 4e, modules (1 without gating, else as many as rules)."""

    gating: Gating
    rules: int
    width: int
    inputs: int
    outputs: int = 1
    core_width: int | None = None
    given_modules: int | None = None
    match: Match = "reference"

    @property
    def core(self) -> int:
        """Width of the core: d, a or H."""
        return self.core_width or 4 * self.width

    @property
    def modules(self) -> int:
        """How many modules there are: one without gating."""
        return 1 if self.gating == "none" else self.given_modules or self.rules

    @cached_property
    def inner(self) -> int:
        """The width that is matched: hidden units of a module, or the shared state."""
        by_formula = self.formula()
        if self.match == "reference" or self.gating == "none":
            return by_formula
        return nearest_width(self.count_with, replace(self, gating="none").count)

    @property
    def count(self) -> int:
        """How many numbers are trained."""
        return self.count_with(self.inner)

    @abstractmethod
    def formula(self) -> int:
        """The inner width by the authors' equation."""

    @abstractmethod
    def count_with(self, inner: int) -> int:
        """The count if the inner width were another."""


@dataclass(frozen=True, kw_only=True)
class MLPSizes(Sizes):
    """Inner width: hidden units of a module, d / M."""

    inputs: int = 2

    def formula(self) -> int:
        return mlp_hidden(self.core, self.modules)

    def count_with(self, inner: int) -> int:
        e, d, m, w = self.width, self.core, self.modules, inner
        encoders = (e * e + 3 * e) + (e * e + (self.rules + 2) * e)
        decoder = (d + 1) * e + (e + 1) * self.outputs
        modules = m * ((3 * e + 1) * w + (w + 1) * d)
        return encoders + decoder + modules + {"joint": m * (w + 1), "operation": (e + 1) * m}.get(self.gating, 0)


@dataclass(frozen=True, kw_only=True)
class MHASizes(Sizes):
    """Inner width: hidden units I of a module's output map. Without gating: one module with all heads and I = 2e."""

    heads_per_module: int = 2
    encoder: Literal["fixed", "scaled"] = "fixed"
    gate_hidden: Literal["reference", "width"] | int = "reference"

    @property
    def encoded(self) -> int:
        """Width of the encoder: e, or wide enough for every feature."""
        return self.width if self.encoder == "fixed" else max(self.width, 2 * (self.inputs + self.rules))

    @property
    def heads(self) -> int:
        """Heads of one module; without gating one module has those of all rules."""
        return self.heads_per_module * (self.rules if self.gating == "none" else 1)

    @property
    def head(self) -> int:
        """Width k of a head."""
        return head_width(self.core, self.heads * self.modules)

    @property
    def gate(self) -> int:
        """Hidden units that choose a module from the rule alone."""
        named = {"reference": self.head, "width": self.width}
        return self.gate_hidden if isinstance(self.gate_hidden, int) else named[self.gate_hidden]

    def formula(self) -> int:
        if self.gating == "none":
            return 2 * self.width
        return mha_hidden(self.width, self.core, self.modules, self.heads)

    def count_with(self, inner: int) -> int:
        e, m, k, g, i = self.width, self.modules, self.head, self.gate, inner
        encoder = (self.inputs + self.rules + 1 + self.encoded + 1) * self.encoded
        decoder = (e + 1) * e + (e + 1) * self.outputs
        look = 3 * (self.encoded + 1) * self.heads * m * k + (self.encoded + 1) * m * k
        modules = m * (((self.heads + 1) * k + 1) * i + (i + 1) * e)
        gating = {"joint": m * (i + 1), "operation": (self.rules + 1) * g + (g + 1) * m}.get(self.gating, 0)
        return encoder + decoder + look + modules + gating


@dataclass(frozen=True, kw_only=True)
class RNNSizes(Sizes):
    """Inner width: the shared state h, or `whole`, as wide as without gating: H, and there two bias vectors."""

    inputs: int = 32
    cell: Cell = "lstm"
    bias: bool = False
    state: State = "matched"

    def formula(self) -> int:
        if self.gating == "none" or self.state == "whole":
            return self.core
        return state_width(self.width, self.core, self.modules, self.cell)

    def count_with(self, inner: int) -> int:
        e, m, h, gates = self.width, self.modules, inner, GATES[self.cell]
        biases = 2 if self.gating == "none" else int(self.bias)
        encoder = (self.inputs + self.rules + 1 + e + 1) * e
        decoder = (h + 1) * h + (h + 1) * self.outputs
        cells = gates * m * h * (e + h + biases)
        gating = {"joint": 2 * gates * m * h, "operation": (self.rules + m) * h}.get(self.gating, 0)
        return encoder + decoder + cells + gating


ARCHITECTURES: dict[str, type[Sizes]] = {"mlp": MLPSizes, "mha": MHASizes, "rnn": RNNSizes}


def parameter_count(
    architecture: str, gating: Gating, rules: int, width: int, *, search: int = 1, unused: bool = False, **sizes: Any
) -> int:
    """How many parameters a model has; `sizes` are further fields of its sizes.

    `search` gives the attention model's features: 4 or 6 per rule. `unused` adds what the authors' recurrent model
    with joint gating declares and never reads, a bias per module: then it is the number their tables go by.

    >>> parameter_count("mlp", "joint", rules=32, width=32)
    40449
    >>> parameter_count("rnn", "joint", 2, 32, outputs=32), parameter_count("rnn", "joint", 2, 32, unused=True)
    (104492, 101642)
    """
    if architecture not in ARCHITECTURES:
        raise UsageError(f"unknown architecture '{architecture}'. {nearest(architecture, ARCHITECTURES)}")
    if architecture == "mha":
        sizes = {"inputs": {1: 4, 2: 6}[search] * rules, **sizes}
    found = ARCHITECTURES[architecture](gating=gating, rules=rules, width=width, **sizes)
    return found.count + (found.modules if unused and (architecture, gating) == ("rnn", "joint") else 0)
