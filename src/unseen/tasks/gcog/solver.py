"""The plain solver: it walks down the tree and looks at the objects one by one. It shares no code with the generators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unseen.tasks.gcog.schema import Answer, Schema, Ties
from unseen.tasks.gcog.tree import Conditional, Description, GridObject, Query, Tree


class Unanswerable(Exception):
    """The question is about an object that is absent, or (`ambiguous`) that several objects match."""

    def __init__(self, message: str, ambiguous: bool) -> None:
        super().__init__(message)
        self.ambiguous = ambiguous


@dataclass(frozen=True)
class Step:
    """One operator on the path: the query, the objects it looked at, and its value."""

    query: Query
    objects: tuple[GridObject, ...]
    value: Answer


@dataclass(frozen=True)
class Solution:
    """The class of the answer, and the path that leads to it."""

    answer: int
    steps: tuple[Step, ...]


def solve(schema: Schema, tree: Tree, objects: Sequence[GridObject], ties: Ties = "error") -> Solution:
    """Answer a question about the objects on a grid.

    >>> test = Query("SumEven", (("a", "red"),))
    >>> tree = Conditional(test, Query("GetColor", (("b", None),)), Query("Exist", (("c", "red"),)))
    >>> solve(Schema(), tree, [GridObject(("a", "red"), 1, 3), GridObject(("b", "green"), 0, 0)]).answer
    129
    """
    steps: list[Step] = []
    while isinstance(tree, Conditional):
        step = solve_query(schema, tree.test, objects, ties)
        steps.append(step)
        tree = tree.then if step.value is True else tree.otherwise
    steps.append(solve_query(schema, tree, objects, ties))
    return Solution(schema.answers.index(steps[-1].value), tuple(steps))


def solve_query(schema: Schema, query: Query, objects: Sequence[GridObject], ties: Ties) -> Step:
    """Evaluate one operator about the objects on a grid."""
    if query.operator not in ("Exist", "ExistAnd", "ExistOr", "ExistXor"):
        operands = tuple(_find_object(schema, query, stated, objects, ties) for stated in query.objects)
        return Step(query, operands, _evaluate(schema, query, operands))
    present: list[GridObject] = []
    for stated in query.objects:
        # The first one is enough: foreign grids may hold several equal objects.
        present += [candidate for candidate in objects if candidate.values == stated][:1]
    values = {
        "Exist": len(present) == 1,
        "ExistAnd": len(present) == 2,
        "ExistOr": len(present) > 0,
        "ExistXor": len(present) == 1,
    }
    return Step(query, tuple(present), values[query.operator])


def _evaluate(schema: Schema, query: Query, operands: Sequence[GridObject]) -> Answer:
    """Return the value of any operator that is not about presence."""
    total = 0
    product = 1
    for operand in operands:
        total += operand.x + operand.y
        product *= operand.x * operand.y
    numeric = {
        "SumEven": total % 2 == 0,
        "SumOdd": total % 2 == 1,
        "ProductEven": product % 2 == 0,
        "ProductOdd": product % 2 == 1,
        "AddEqual": total == query.number,
        "SubtractEqual": -total == query.number,
        "MultiplyEqual": product == query.number,
    }
    if query.operator in numeric:
        return numeric[query.operator]
    first = operands[0]
    if query.operator == "GetLocation":
        return (first.x, first.y)
    for index, (feature, _) in enumerate(schema.features):
        value = first.values[index]
        if query.operator == f"Get{feature.capitalize()}":
            return (feature, value)
        if query.operator == f"Is{feature.capitalize()}":
            return value == query.objects[0][index]
        if query.operator == f"Same{feature.capitalize()}":
            return value == operands[1].values[index]
        if query.operator == f"NotSame{feature.capitalize()}":
            return value != operands[1].values[index]
    raise ValueError(f"unknown operator '{query.operator}'")


def _find_object(
    schema: Schema, query: Query, stated: Description, objects: Sequence[GridObject], ties: Ties
) -> GridObject:
    """Return the object that a query means: the only one with the stated values."""
    searched = list(stated)
    for index, (feature, _) in enumerate(schema.features):
        if query.operator == f"Is{feature.capitalize()}":
            # The value that an Is operator asks about does not help to find the object.
            searched[index] = None
    matching: list[GridObject] = []
    for candidate in objects:
        if all(value in (None, actual) for value, actual in zip(searched, candidate.values, strict=True)):
            matching.append(candidate)
    phrase = " ".join(value for value in reversed(searched) if value)
    if searched[0] is None:
        phrase += " object"
    if not matching:
        raise Unanswerable(f"{query.operator} asks about the {phrase}; there is none on the grid", ambiguous=False)
    if len(matching) > 1 and ties == "error":
        cells = ", ".join(f"({match.x}, {match.y})" for match in matching)
        raise Unanswerable(
            f"{query.operator} asks about the {phrase}; there are {len(matching)}, at {cells}", ambiguous=True
        )
    return min(matching, key=lambda match: (match.x, match.y))
