"""The sizes of the rules models: widths that match modular to monolithic models, and parameter counts in closed form.

The core is divided among the modules: `d / M` hidden units each in the MLP, heads of width `a / (2 M)` in the attention
model; the other two widths solve an equation of parameter counts. A model is built from its sizes, and a test compares
its parameters with the formula.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt
from typing import Any, Literal

from unseen.errors import UsageError, nearest
from unseen.models.layers.mixture import Gating

Match = Literal["reference", "exact"]
"""How widths are matched: by the authors' equations, or to the total count nearest to the monolithic model's."""

State = Literal["matched", "whole"]
"""How wide the state is that recurrent modules share: matched like the rest, so that it shrinks with their number, or
as wide as the monolithic model's."""

Cell = Literal["lstm", "elman"]
GATES: dict[Cell, int] = {"lstm": 4, "elman": 1}
"""The number of gates of a recurrent cell."""


def mlp_hidden(core: int, modules: int) -> int:
    """Hidden units of each module of the MLP.

    >>> mlp_hidden(128, modules=32)
    4
    """
    return _feasible(core // modules, f"a core of {core} hidden units", f"{modules} modules")


def head_width(core: int, heads: int) -> int:
    """Width of each attention head.

    >>> head_width(128, heads=64)
    2
    """
    return _feasible(core // heads, f"a core of width {core}", f"{heads} heads")


def mha_hidden(width: int, core: int, modules: int, heads: int = 2) -> int:
    """Hidden units of each module's output map: as many weights in both output layers as the monolithic model has.

    >>> mha_hidden(32, 128, modules=32)
    8
    """
    monolithic = 2 * width * (heads * modules * (core + width) + core)
    per_unit = modules * ((heads + 1) * core + heads * modules * width)
    return _feasible(monolithic // per_unit, f"an output map of width {width}", f"{modules} modules")


def state_width(width: int, core: int, modules: int, cell: Cell = "lstm") -> int:
    """Width of the state the recurrent modules share, rounded down: as many weights in cells and decoder.

    >>> state_width(32, 128, modules=32)
    15
    """
    gates = GATES[cell]
    square, linear = gates * modules + 1, gates * modules * width + 1
    monolithic = (gates + 1) * core**2 + (gates * width + 1) * core
    # The positive root of square · h² + linear · h = monolithic, in whole numbers, so that it is exact for any size.
    root = (isqrt(linear**2 + 4 * square * monolithic) - linear) // (2 * square)
    return _feasible(root, f"a recurrent core of width {core}", f"{modules} modules")


def nearest_width(count: Callable[[int], int], target: int) -> int:
    """The width, at least 1, at which a growing count comes nearest to the target; in a tie, the smaller.

    >>> nearest_width(lambda width: 10 * width, target=34)
    3
    """
    high = 1
    while count(high) < target:
        high *= 2
    # Bisection for the first width that reaches the target; the one before it may be nearer.
    low = high // 2 + 1
    while low < high:
        middle = (low + high) // 2
        if count(middle) < target:
            low = middle + 1
        else:
            high = middle
    return min((max(1, high - 1), high), key=lambda width: abs(count(width) - target))


def _feasible(share: int, whole: str, receivers: str) -> int:
    if share < 1:
        raise UsageError(f"{whole} can't be divided among {receivers}; choose a larger width or fewer modules")
    return share


@dataclass(frozen=True, kw_only=True)
class Sizes(ABC):
    """The sizes that all three models have: `width` e of the encoder, `core` 4e, and the modules."""

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
        """The number of modules: one without gating, by default as many as there are rules."""
        return 1 if self.gating == "none" else self.given_modules or self.rules

    @cached_property
    def inner(self) -> int:
        """The width that is matched: that of a module's hidden layer, or of the shared state."""
        by_formula = self.formula()
        if self.match == "reference" or self.gating == "none":
            return by_formula
        return nearest_width(self.count_with, replace(self, gating="none").count)

    @property
    def count(self) -> int:
        """The number of trained parameters."""
        return self.count_with(self.inner)

    @abstractmethod
    def formula(self) -> int:
        """The inner width by the authors' equation."""

    @abstractmethod
    def count_with(self, inner: int) -> int:
        """The number of parameters for another inner width."""


@dataclass(frozen=True, kw_only=True)
class MLPSizes(Sizes):
    """Inner width: hidden units of a module, d / M."""

    inputs: int = 2

    def formula(self) -> int:
        return mlp_hidden(self.core, self.modules)

    def count_with(self, inner: int) -> int:
        e, d, m, w = self.width, self.core, self.modules, inner
        # Lin(1, e) and Lin(e, e) for each number alike; Lin(rules, e) and Lin(e, e) for the rule. All have biases.
        encoders = (e * e + 3 * e) + (e * e + (self.rules + 2) * e)
        decoder = (d + 1) * e + (e + 1) * self.outputs
        # A module reads three codes side by side: two numbers and the rule.
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
        """The heads of one module; without gating the one module has those of all rules."""
        return self.heads_per_module * (self.rules if self.gating == "none" else 1)

    @property
    def head(self) -> int:
        """Width k of a head."""
        return head_width(self.core, self.heads * self.modules)

    @property
    def gate(self) -> int:
        """Hidden units that choose a module from the rule alone."""
        if isinstance(self.gate_hidden, int):
            return self.gate_hidden
        return {"reference": self.head, "width": self.width}[self.gate_hidden]

    def formula(self) -> int:
        if self.gating == "none":
            return 2 * self.width
        return mha_hidden(self.width, self.core, self.modules, self.heads)

    def count_with(self, inner: int) -> int:
        e, m, k, g, i = self.width, self.modules, self.head, self.gate, inner
        encoder = (self.inputs + self.rules + 1 + self.encoded + 1) * self.encoded
        decoder = (e + 1) * e + (e + 1) * self.outputs
        # Queries, keys and values of all heads, and the channels that each module has of the token itself.
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
        # Every gate of every module maps input and state to the shared state.
        cells = gates * m * h * (e + h + biases)
        gating = {"joint": 2 * gates * m * h, "operation": (self.rules + m) * h}.get(self.gating, 0)
        return encoder + decoder + cells + gating


ARCHITECTURES: dict[str, type[Sizes]] = {"mlp": MLPSizes, "mha": MHASizes, "rnn": RNNSizes}


def parameter_count(
    architecture: str, gating: Gating, rules: int, width: int, *, search: int = 1, unused: bool = False, **sizes: Any
) -> int:
    """The number of parameters of a model; `sizes` are further fields of its sizes.

    `search` determines the features of the attention model: 4 or 6 per rule. `unused` adds the bias per module that the
    authors' recurrent model with joint gating declares and never reads; this gives the number in their tables.

    >>> parameter_count("mlp", "joint", rules=32, width=32)
    40449
    >>> parameter_count("rnn", "joint", 2, 32, outputs=32), parameter_count("rnn", "joint", 2, 32, unused=True)
    (104492, 101642)
    """
    if architecture not in ARCHITECTURES:
        raise UsageError(f"unknown architecture '{architecture}'. {nearest(architecture, ARCHITECTURES)}")
    if architecture == "mha":
        sizes = {"inputs": {1: 4, 2: 6}[search] * rules, **sizes}
    model = ARCHITECTURES[architecture](gating=gating, rules=rules, width=width, **sizes)
    declared = model.modules if unused and (architecture, gating) == ("rnn", "joint") else 0
    return model.count + declared
