"""What a query asks: formulas over features, evaluated for many sequences at once.

A formula speaks of *slots* (0, 1, …). A binding says which feature sits in each slot, so one formula serves every
query of a task. Another atom is another small class with the three methods of `Formula`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from unseen.randomness import Bools, Ints
from unseen.tasks.base import Array

Where = Sequence[Sequence[int]]
"""For each slot, the tokens that carry its feature, ascending."""


class Formula(Protocol):
    """A statement about the features in some slots."""

    def holds(self, columns: Bools) -> Bools:
        """Whether it is true, (B,), given the activity of each slot's feature, (B, slots, n)."""
        ...

    def words(self, names: Sequence[str]) -> str:
        """The statement in words, with a name for each slot."""
        ...

    def why(self, names: Sequence[str], where: Where) -> tuple[bool, str]:
        """Whether it is true of one sequence, and the evidence."""
        ...


@dataclass(frozen=True)
class Occurs:
    """Some token carries the feature."""

    slot: int

    def holds(self, columns: Bools) -> Bools:
        return np.asarray(columns[:, self.slot].any(axis=1))

    def words(self, names: Sequence[str]) -> str:
        return names[self.slot]

    def why(self, names: Sequence[str], where: Where) -> tuple[bool, str]:
        return bool(where[self.slot]), place(names[self.slot], where[self.slot])


@dataclass(frozen=True)
class Before:
    """Some token with the first feature lies strictly before some token with the second."""

    first: int
    second: int

    def holds(self, columns: Bools) -> Bools:
        seen = np.logical_or.accumulate(columns[:, self.first, :-1], axis=1)
        return np.asarray((seen & columns[:, self.second, 1:]).any(axis=1))

    def words(self, names: Sequence[str]) -> str:
        return f"{names[self.first]} before {names[self.second]}"

    def why(self, names: Sequence[str], where: Where) -> tuple[bool, str]:
        first, second = where[self.first], where[self.second]
        absent = [place(names[s], ()) for s in (self.first, self.second) if not where[s]]
        if absent:
            return False, ", ".join(absent)
        earliest, latest = first[0], second[-1]
        sign = "<" if earliest < latest else "≥"
        return earliest < latest, (
            f"{place(names[self.first], first)}, {place(names[self.second], second)}, and {earliest} {sign} {latest}"
        )


@dataclass(frozen=True)
class And:
    """Every part is true."""

    parts: tuple[Formula, ...]

    def holds(self, columns: Bools) -> Bools:
        return np.asarray(np.logical_and.reduce([part.holds(columns) for part in self.parts]))

    def words(self, names: Sequence[str]) -> str:
        return " and ".join(part.words(names) for part in self.parts)

    def why(self, names: Sequence[str], where: Where) -> tuple[bool, str]:
        told = [part.why(names, where) for part in self.parts]
        value = all(true for true, _ in told)
        return value, ", ".join(text for true, text in told if true == value)


@dataclass(frozen=True)
class Or:
    """Some part is true."""

    parts: tuple[Formula, ...]

    def holds(self, columns: Bools) -> Bools:
        return np.asarray(np.logical_or.reduce([part.holds(columns) for part in self.parts]))

    def words(self, names: Sequence[str]) -> str:
        return ", or ".join(part.words(names) for part in self.parts)

    def why(self, names: Sequence[str], where: Where) -> tuple[bool, str]:
        told = [part.why(names, where) for part in self.parts]
        value = any(true for true, _ in told)
        return value, "; ".join(text for true, text in told if true == value)


_A, _B, _C, _D = (Occurs(slot) for slot in range(4))

FORMULAS: dict[str, Formula] = {
    "T1": _A,
    "T2": And((_A, _B)),
    "T3": Or((_A, _B)),
    "T4": And((_A, _B)),
    "T5": Or((And((_A, _B)), And((_C, _D)))),
    "T6": Before(0, 1),
    "T7": Or((Before(0, 1), Before(2, 3))),
}


def columns_of(sequence: Array, binding: Ints) -> Bools:
    """The activity of each slot's feature, (B, slots, n), out of sequences (B, n, F) and a binding (B, slots)."""
    rows = np.arange(len(binding))[:, None]
    return np.asarray(sequence[rows, :, binding]).astype(np.bool_, copy=False)


def evaluate(formula: Formula, sequence: Array, binding: Ints) -> Bools:
    """Whether the formula holds in each sequence, (B,).

    >>> tokens = np.array([[[1, 0], [0, 0], [0, 1]]])          # feature 0 at token 0, feature 1 at token 2
    >>> evaluate(Before(0, 1), tokens, np.array([[0, 1]])), evaluate(Before(0, 1), tokens, np.array([[1, 0]]))
    (array([ True]), array([False]))
    """
    return formula.holds(columns_of(sequence, binding))


def place(name: str, tokens: Sequence[int]) -> str:
    """Where a feature is, in words.

    >>> place("7", [1, 4]), place("7", [])
    ('7 at tokens 1 and 4', '7 nowhere')
    """
    if not tokens:
        return f"{name} nowhere"
    *rest, last = (str(token) for token in tokens)
    return f"{name} at tokens {', '.join(rest)} and {last}" if rest else f"{name} at token {last}"
