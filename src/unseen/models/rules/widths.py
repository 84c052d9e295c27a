"""Widths that give modular models about as many parameters as the monolithic one.

The core is dealt out to the modules: `d / M` hidden units each in the MLP, heads of width `a / (2 M)` in the attention
model; the other two widths solve an equation of parameter counts.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import Literal

from unseen.errors import UsageError

Match = Literal["reference", "exact"]
"""How widths are matched: by the authors' equations, or to the total count nearest to the monolithic model's."""

State = Literal["matched", "whole"]
"""How wide the state is that recurrent modules share: matched like the rest, so that it shrinks with their number, or
as wide as the monolithic model's."""

Cell = Literal["lstm", "elman"]
GATES: dict[Cell, int] = {"lstm": 4, "elman": 1}
"""How many numbers a recurrent cell computes for each one of its state."""


def mlp_hidden(core: int, modules: int) -> int:
    """Hidden units of each module of the MLP.

    >>> mlp_hidden(128, modules=32)
    4
    """
    return _feasible(core // modules, f"a core of {core} hidden units", f"{modules} modules")


def head_width(core: int, heads: int) -> int:
    """Width of each of so many attention heads.

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
    root = (isqrt(linear**2 + 4 * square * monolithic) - linear) // (2 * square)
    return _feasible(root, f"a recurrent core of width {core}", f"{modules} modules")


def nearest_width(count: Callable[[int], int], wanted: int) -> int:
    """The width, at least 1, at which a growing count comes nearest to the wanted one; the smaller of two as near.

    >>> nearest_width(lambda width: 10 * width, wanted=34)
    3
    """
    high = 1
    while count(high) < wanted:
        high *= 2
    low = high // 2 + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if count(middle) < wanted else (low, middle)
    return min((max(1, high - 1), high), key=lambda width: abs(count(width) - wanted))


def _feasible(share: int, whole: str, parts: str) -> int:
    if share < 1:
        raise UsageError(f"{whole} can't be divided among {parts}; choose a larger width or fewer modules")
    return share
