"""Variables: the intermediate values that a solver passes through, which probes and interventions are about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unseen.errors import UsageError, nearest

Ints = NDArray[np.int64]

NONE = -1
"""The value of a variable that an example does not have: the symbol after the third of two functions."""


@dataclass(frozen=True)
class Variable:
    """One intermediate value of every example, computed by plain code beside the solver.

    Attributes:
        values: (B,), from 0 to count − 1, or −1 where an example has no such value.
        count: the number of values.
        causes: (B, K), what the value is a function of; None if that differs from example to example. The control task of
            a probe gives every row of causes a random label.
        context: (B, K), everything else that the answer depends on, so that examples with the same context differ, for
            the answer, only in this variable; None if no two examples have the same.
        positions: whether the values are positions of tokens.
        stream: the stream in which these positions are counted; None: the first.
        causal: whether `Task.answer_with` says what the answer would be if the value were another.
    """

    values: Ints
    count: int
    causes: Ints | None = None
    context: Ints | None = None
    positions: bool = False
    causal: bool = True
    stream: str | None = None

    def __post_init__(self) -> None:
        outside = (self.values < NONE) | (self.values >= self.count)
        if outside.any():
            raise ValueError(f"a variable has values outside −1 … {self.count - 1}")


Variables = Mapping[str, Variable]


def get_variable(variables: Variables, name: str) -> Variable:
    """The variable of that name; an unknown one is a `UsageError` that suggests the nearest."""
    if name not in variables:
        hint = nearest(name, variables) if variables else "The task names none"
        raise UsageError(f"there is no variable '{name}'. {hint}")
    return variables[name]


def table(rows: Sequence[Sequence[int]], width: int | None = None) -> Ints:
    """Rows of unequal length as an array, padded with −1 at the end.

    >>> table([[1, 2], [3]]).tolist()
    [[1, 2], [3, -1]]
    """
    width = max(map(len, rows), default=0) if width is None else width
    array = np.full((len(rows), width), NONE, np.int64)
    for index, row in enumerate(rows):
        array[index, : len(row)] = row
    return array


def split_name(name: str) -> tuple[str, int]:
    """The name of a variable without its index, and the index; 0 if it has none.

    >>> split_name("symbol[2]"), split_name("rule")
    (('symbol', 2), ('rule', 0))
    """
    stem, bracket, index = name.partition("[")
    return (stem, int(index.rstrip("]"))) if bracket else (stem, 0)


def answer_each(targets: NDArray[Any], values: Ints, answer: Callable[[int, int], Any]) -> NDArray[Any]:
    """The targets, with `answer(example, value)` instead wherever the value is not −1."""
    answers = targets.copy()
    for index, value in enumerate(values.tolist()):
        if value != NONE:
            answers[index] = answer(index, value)
    return answers
