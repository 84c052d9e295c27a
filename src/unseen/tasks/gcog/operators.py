"""The operators: what each is called, which objects it names and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["exist", "location", "get", "parity", "combine", "is", "same", "equal"]

CONDITIONAL = 9
"""The code of IF-THEN-ELSE among the codes of the operators."""

STANDARD = ("Exist", "GetLocation", "GetColor", "GetShape", "SumEven", "ProductEven", "ProductOdd", "SumOdd")
"""The operators of the paper."""


@dataclass(frozen=True)
class Operator:
    """One row of the table of operators.

    - `answer`: `boolean`, `location`, or the feature whose value is the answer;
    - `objects`: how many objects it may be about;
    - `named`: which features (their numbers) a question says of each object;
    - `key`: the feature that finds the object by itself; no other object may then have the same value of it;
    - `about`: the feature that is asked for or compared.
    """

    name: str
    code: int
    kind: Kind
    answer: str
    objects: tuple[int, ...]
    named: tuple[int, ...]
    key: int | None = None
    about: int | None = None

    @property
    def boolean(self) -> bool:
        """Whether it may stand above a conditional."""
        return self.answer == "boolean"


def operator_table(features: Sequence[str]) -> dict[str, Operator]:
    """All operators over features of these names, by name; the first two features are shape and colour.

    An object is found by its shape or, where its shape is in question, by its colour. Further features add Get, Is,
    Same and NotSame operators of their own, with codes after the 21 of the specification.

    >>> operator_table(["shape", "color"])["GetColor"].named
    (0,)
    >>> operator_table(["shape", "color", "size"])["GetSize"].code
    22
    """
    whole = tuple(range(len(features)))
    one, two, either = (1,), (2,), (1, 2)
    rows = [
        Operator("Exist", 1, "exist", "boolean", one, whole),
        Operator("GetLocation", 2, "location", "location", one, whole),
    ]
    rows += [
        Operator(name, code, "parity", "boolean", either, whole)
        for name, code in (("SumEven", 5), ("ProductEven", 6), ("ProductOdd", 7), ("SumOdd", 8))
    ]
    rows += [
        Operator(name, code, "combine", "boolean", two, whole)
        for name, code in (("ExistAnd", 10), ("ExistOr", 11), ("ExistXor", 12))
    ]
    rows += [
        Operator(name, code, "equal", "boolean", either, whole)
        for name, code in (("AddEqual", 19), ("SubtractEqual", 20), ("MultiplyEqual", 21))
    ]
    for about, feature in enumerate(features):
        key, word = (1 if about == 0 else 0), feature.capitalize()
        get, is_, same, not_same = _codes(about)
        rows += [
            Operator(f"Get{word}", get, "get", feature, one, (key,), key, about),
            Operator(f"Is{word}", is_, "is", "boolean", one, tuple(sorted((key, about))), key, about),
            Operator(f"Same{word}", same, "same", "boolean", two, (key,), key, about),
            Operator(f"NotSame{word}", not_same, "same", "boolean", two, (key,), key, about),
        ]
    return {row.name: row for row in sorted(rows, key=lambda row: row.code)}


def _codes(about: int) -> tuple[int, int, int, int]:
    """Codes of Get, Is, Same and NotSame of a feature: those of shape and colour are given, the others follow."""
    if about < 2:
        return 4 - about, 14 - about, 16 - about, 18 - about
    first = 22 + 4 * (about - 2)
    return first, first + 1, first + 2, first + 3
