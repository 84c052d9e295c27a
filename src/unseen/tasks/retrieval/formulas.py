"""The questions of queries: formulas over features, evaluated for many sequences at once.

A formula speaks of *slots* (0, 1, …). A binding says which feature is in each slot, so one formula serves every query
of a task. To add an atom, add a small class with the three methods of `Formula`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from unseen.randomness import Bools, Ints
from unseen.tasks.base import Array

Occurrences = Sequence[Sequence[int]]
"""For each slot, the tokens that carry its feature, ascending."""


class Formula(Protocol):
    """A statement about the features in some slots."""

    def holds(self, columns: Bools) -> Bools:
        """Whether it is true, (B,), given the activity of each slot's feature, (B, slots, n)."""
        ...

    def phrase(self, names: Sequence[str]) -> str:
        """The statement in words, with a name for each slot."""
        ...

    def explain(self, names: Sequence[str], occurrences: Occurrences) -> tuple[bool, str]:
        """Whether it is true of one sequence, and the evidence."""
        ...


@dataclass(frozen=True)
class Occurs:
    """Some token carries the feature."""

    slot: int

    def holds(self, columns: Bools) -> Bools:
        return np.asarray(columns[:, self.slot].any(axis=1))

    def phrase(self, names: Sequence[str]) -> str:
        return names[self.slot]

    def explain(self, names: Sequence[str], occurrences: Occurrences) -> tuple[bool, str]:
        return bool(occurrences[self.slot]), list_tokens(names[self.slot], occurrences[self.slot])


@dataclass(frozen=True)
class Before:
    """Some token with the first feature lies strictly before some token with the second."""

    first: int
    second: int

    def holds(self, columns: Bools) -> Bools:
        seen = np.logical_or.accumulate(columns[:, self.first, :-1], axis=1)
        return np.asarray((seen & columns[:, self.second, 1:]).any(axis=1))

    def phrase(self, names: Sequence[str]) -> str:
        return f"{names[self.first]} before {names[self.second]}"

    def explain(self, names: Sequence[str], occurrences: Occurrences) -> tuple[bool, str]:
        slots = (self.first, self.second)
        absent = [list_tokens(names[slot], ()) for slot in slots if not occurrences[slot]]
        if absent:
            return False, ", ".join(absent)
        earliest = occurrences[self.first][0]
        latest = occurrences[self.second][-1]
        sign = "<" if earliest < latest else "≥"
        tokens = ", ".join(list_tokens(names[slot], occurrences[slot]) for slot in slots)
        return earliest < latest, f"{tokens}, and {earliest} {sign} {latest}"


@dataclass(frozen=True)
class Junction:
    """Formulas joined by "and" or "or". The evidence is that of the terms that have the value of the whole."""

    terms: tuple[Formula, ...]
    needs_all: ClassVar[bool]
    conjunction: ClassVar[str]
    separator: ClassVar[str]

    def holds(self, columns: Bools) -> Bools:
        values = [term.holds(columns) for term in self.terms]
        return np.asarray(np.all(values, axis=0) if self.needs_all else np.any(values, axis=0))

    def phrase(self, names: Sequence[str]) -> str:
        return self.conjunction.join(term.phrase(names) for term in self.terms)

    def explain(self, names: Sequence[str], occurrences: Occurrences) -> tuple[bool, str]:
        explained = [term.explain(names, occurrences) for term in self.terms]
        values = [value for value, _ in explained]
        whole = all(values) if self.needs_all else any(values)
        return whole, self.separator.join(text for value, text in explained if value == whole)


class And(Junction):
    """Every term is true."""

    needs_all = True
    conjunction = " and "
    separator = ", "


class Or(Junction):
    """Some term is true."""

    needs_all = False
    conjunction = ", or "
    separator = "; "


FORMULAS: dict[str, Formula] = {
    "T1": Occurs(0),
    "T2": And((Occurs(0), Occurs(1))),
    "T3": Or((Occurs(0), Occurs(1))),
    "T4": And((Occurs(0), Occurs(1))),
    "T5": Or((And((Occurs(0), Occurs(1))), And((Occurs(2), Occurs(3))))),
    "T6": Before(0, 1),
    "T7": Or((Before(0, 1), Before(2, 3))),
}


def columns_of(sequence: Array, binding: Ints) -> Bools:
    """The activity of each slot's feature, (B, slots, n), out of sequences (B, n, F) and a binding (B, slots)."""
    rows = np.arange(len(binding))[:, None]
    # Advanced indices with a slice between them: their dimensions (B, slots) come first, then the tokens.
    return np.asarray(sequence[rows, :, binding]).astype(np.bool_, copy=False)


def evaluate(formula: Formula, sequence: Array, binding: Ints) -> Bools:
    """Whether the formula holds in each sequence, (B,).

    >>> tokens = np.array([[[1, 0], [0, 0], [0, 1]]])          # feature 0 at token 0, feature 1 at token 2
    >>> evaluate(Before(0, 1), tokens, np.array([[0, 1]])), evaluate(Before(0, 1), tokens, np.array([[1, 0]]))
    (array([ True]), array([False]))
    """
    return formula.holds(columns_of(sequence, binding))


def list_tokens(name: str, tokens: Sequence[int]) -> str:
    """The tokens of a feature in words.

    >>> list_tokens("7", [1, 4]), list_tokens("7", [])
    ('7 at tokens 1 and 4', '7 nowhere')
    """
    if not tokens:
        return f"{name} nowhere"
    *others, last = map(str, tokens)
    return f"{name} at tokens {', '.join(others)} and {last}" if others else f"{name} at token {last}"
