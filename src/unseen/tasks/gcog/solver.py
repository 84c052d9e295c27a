"""The plain solver: walks down the tree and looks at the objects one by one. It is a stranger to the generators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from unseen.tasks.gcog.schema import Answer, Schema
from unseen.tasks.gcog.tree import Ask, Branch, Named, Thing, Tree

Ties = Literal["error", "smallest"]
"""What to do where several objects fit: that is an error, or the one with the smallest (x, y) counts (the release)."""


class Unanswerable(Exception):
    """A question about an object that is not there, or that several objects could be."""


@dataclass(frozen=True)
class Step:
    """One operator on the path: what it was asked, the objects it looked at, and what it found."""

    ask: Ask
    things: tuple[Thing, ...]
    value: Answer


@dataclass(frozen=True)
class Solution:
    """The class of the answer, and the path that leads to it."""

    answer: int
    steps: tuple[Step, ...]


def solve(schema: Schema, tree: Tree, things: Sequence[Thing], ties: Ties = "error") -> Solution:
    """The answer to a question about objects.

    >>> tree = Branch(Ask("SumEven", (("a", "red"),)), Ask("GetColor", (("b", None),)), Ask("Exist", (("c", "red"),)))
    >>> solve(Schema(), tree, [Thing(("a", "red"), 1, 3), Thing(("b", "green"), 0, 0)]).answer
    129
    """
    steps: list[Step] = []
    while isinstance(tree, Branch):
        steps.append(_step(schema, tree.condition, things, ties))
        tree = tree.then if steps[-1].value is True else tree.otherwise
    steps.append(_step(schema, tree, things, ties))
    return Solution(schema.answers.index(steps[-1].value), tuple(steps))


def _step(schema: Schema, ask: Ask, things: Sequence[Thing], ties: Ties) -> Step:
    name = ask.operator
    if name.startswith("Exist"):
        found = [[t for t in things if t.values == named] for named in ask.objects]
        seen = [len(fitting) > 0 for fitting in found]
        values = {"Exist": all(seen), "ExistAnd": all(seen), "ExistOr": any(seen), "ExistXor": seen.count(True) == 1}
        return Step(ask, tuple(fitting[0] for fitting in found if fitting), values[name])
    looked = tuple(_one(schema, ask, number, things, ties) for number in range(len(ask.objects)))
    return Step(ask, looked, _value(schema, ask, looked))


def _value(schema: Schema, ask: Ask, looked: Sequence[Thing]) -> Answer:
    name, names = ask.operator, [feature for feature, _ in schema.features]
    total, product = 0, 1
    for thing in looked:
        total += thing.x + thing.y
        product *= thing.x * thing.y
    numeric = {
        "SumEven": total % 2 == 0,
        "SumOdd": total % 2 == 1,
        "ProductEven": product % 2 == 0,
        "ProductOdd": product % 2 == 1,
        "AddEqual": total == ask.number,
        "SubtractEqual": -total == ask.number,
        "MultiplyEqual": product == ask.number,
    }
    if name in numeric:
        return numeric[name]
    if name == "GetLocation":
        return (looked[0].x, looked[0].y)
    for number, feature in enumerate(names):
        if name == f"Get{feature.capitalize()}":
            return (feature, looked[0].values[number])
        if name == f"Is{feature.capitalize()}":
            return looked[0].values[number] == ask.objects[0][number]
        if name == f"Same{feature.capitalize()}":
            return looked[0].values[number] == looked[1].values[number]
        if name == f"NotSame{feature.capitalize()}":
            return looked[0].values[number] != looked[1].values[number]
    raise ValueError(f"no such operator: {name}")


def _one(schema: Schema, ask: Ask, number: int, things: Sequence[Thing], ties: Ties) -> Thing:
    """The one object a question means."""
    described = _description(schema, ask, ask.objects[number])
    fitting = [t for t in things if all(d in (None, v) for d, v in zip(described, t.values, strict=True))]
    words = " ".join(d for d in reversed(described) if d) + (" object" if described[0] is None else "")
    if not fitting:
        raise Unanswerable(f"{ask.operator} asks about the {words}; there is none on the grid")
    if len(fitting) > 1 and ties == "error":
        places = ", ".join(f"({t.x}, {t.y})" for t in fitting)
        raise Unanswerable(f"{ask.operator} asks about the {words}; there are {len(fitting)}, at {places}")
    return min(fitting, key=lambda t: (t.x, t.y))


def _description(schema: Schema, ask: Ask, named: Named) -> Named:
    """What an object is found by: all that is named, except the value an Is operator asks about."""
    for number, (feature, _) in enumerate(schema.features):
        if ask.operator == f"Is{feature.capitalize()}":
            return tuple(None if i == number else value for i, value in enumerate(named))
    return named
