"""A question as a tree, the objects on the grid, their JSON form, and which trees are the same function of the grid.

An operator is `{"op": name, "objects": [{"shape": …, "color": …}]}`, with null for a feature that the question does not
state and a `"number"` if the operator compares with one. A conditional is `{"if": operator, "then": tree, "else": tree}`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from unseen.tasks.gcog.schema import Schema

Description = tuple[str | None, ...]
"""The features that a question states about one object: a value of each feature, or None."""


@dataclass(frozen=True)
class Query:
    """One operator and the objects it asks about."""

    operator: str
    objects: tuple[Description, ...]
    number: int | None = None


@dataclass(frozen=True)
class Conditional:
    """If the test is true, the answer is that of `then`, and that of `otherwise` if it is false."""

    test: Query
    then: Tree
    otherwise: Tree


Tree = Query | Conditional


@dataclass(frozen=True)
class GridObject:
    """An object on the grid: a value of each feature, its column x and its row y."""

    values: tuple[str, ...]
    x: int
    y: int


def get_query(node: Tree) -> Query:
    """Return the operator of a node: a query itself, or the test of a conditional."""
    return node.test if isinstance(node, Conditional) else node


def list_levels(tree: Tree) -> list[list[Tree]]:
    """Return the nodes of a tree level by level, THEN before ELSE. A conditional and its test are one node."""
    levels: list[list[Tree]] = [[tree]]
    while True:
        children: list[Tree] = []
        for node in levels[-1]:
            if isinstance(node, Conditional):
                children += [node.then, node.otherwise]
        if not children:
            return levels
        levels.append(children)


def measure_depth(tree: Tree) -> int:
    """Return the number of operators and conditionals on a path from the root to a leaf.

    >>> leaf = Query("Exist", (("a", "red"),))
    >>> measure_depth(leaf), measure_depth(Conditional(leaf, leaf, leaf))
    (1, 3)
    """
    return 2 * len(list_levels(tree)) - 1


def tree_to_json(schema: Schema, tree: Tree) -> dict[str, Any]:
    """Return a tree as JSON values."""
    if isinstance(tree, Conditional):
        return {
            "if": tree_to_json(schema, tree.test),
            "then": tree_to_json(schema, tree.then),
            "else": tree_to_json(schema, tree.otherwise),
        }
    names = [name for name, _ in schema.features]
    objects = [dict(zip(names, description, strict=True)) for description in tree.objects]
    data: dict[str, Any] = {"op": tree.operator, "objects": objects}
    if tree.number is not None:
        data["number"] = tree.number
    return data


def object_to_json(schema: Schema, grid_object: GridObject) -> dict[str, Any]:
    """Return an object on the grid as JSON values."""
    data: dict[str, Any] = {}
    for (name, _), value in zip(schema.features, grid_object.values, strict=True):
        data[name] = value
    return {**data, "x": grid_object.x, "y": grid_object.y}


# Which questions are the same function.
#
# A tree is turned into a binary decision diagram (Bryant, 1986): every test is asked at most once on a path, in one
# order for all trees, and a test is left out if both outcomes lead to the same diagram. Opposite operators (SumEven
# and SumOdd, ProductEven and ProductOdd) are one test, and the order of two objects does not count. Trees with the
# same form agree on every scene. Different forms may agree, too, where one test implies another (an odd product has an
# even sum).

Diagram = Hashable
"""True, False, a query whose answer is not a boolean, or (test, diagram if it is true, diagram if it is false)."""

OPPOSITES = {"SumOdd": "SumEven", "ProductOdd": "ProductEven"}
MOST_OPERATORS = 8
"""Larger trees keep the order of their tests: putting them in order may take exponential time."""


def find_function(schema: Schema, tree: Tree) -> Diagram:
    """The canonical form of a question.

    >>> a, b = (("a", "red"),), (("b", None),)
    >>> even = Conditional(Query("SumEven", a), Query("GetColor", b), Query("GetShape", b))
    >>> odd = Conditional(Query("SumOdd", a), Query("GetShape", b), Query("GetColor", b))
    >>> find_function(Schema(), even) == find_function(Schema(), odd)
    True
    """
    operators = sum(len(level) for level in list_levels(tree))
    return _DiagramBuilder(schema, ordered=operators <= MOST_OPERATORS).build(tree)


class _DiagramBuilder:
    def __init__(self, schema: Schema, ordered: bool) -> None:
        self.schema = schema
        self.ordered = ordered

    def build(self, tree: Tree) -> Diagram:
        if isinstance(tree, Conditional):
            test, negated = _normalise(tree.test)
            then = self.build(tree.then)
            otherwise = self.build(tree.otherwise)
            if negated:
                then, otherwise = otherwise, then
            return self.choose(test, then, otherwise)
        query, negated = _normalise(tree)
        if self.schema.operators[tree.operator].boolean:
            return self.choose(query, not negated, negated)
        return query

    def choose(self, test: Query, then: Diagram, otherwise: Diagram) -> Diagram:
        """The diagram that is `then` where the test is true, and else `otherwise`."""
        then = _assume(then, test, True)
        otherwise = _assume(otherwise, test, False)
        if then == otherwise:
            return then
        if not self.ordered:
            return (test, then, otherwise)
        # Any order will do, as long as it is the same for all trees.
        first = min([test, *_tests(then), *_tests(otherwise)], key=repr)
        if first == test:
            return (test, then, otherwise)
        # Another test comes first: ask it before, and this one in both of its cases.
        low = self.choose(test, _assume(then, first, False), _assume(otherwise, first, False))
        high = self.choose(test, _assume(then, first, True), _assume(otherwise, first, True))
        return high if high == low else (first, high, low)


def _normalise(query: Query) -> tuple[Query, bool]:
    """A query under the name and the order of objects that equal ones share, and whether its answer is negated."""
    operator = OPPOSITES.get(query.operator, query.operator)
    objects = tuple(sorted(query.objects, key=repr))
    return Query(operator, objects, query.number), operator != query.operator


def _assume(diagram: Diagram, test: Query, outcome: bool) -> Diagram:
    """The diagram where the outcome of a test is known."""
    if not isinstance(diagram, tuple):
        return diagram
    root, high, low = diagram
    if root == test:
        return _assume(high if outcome else low, test, outcome)
    high = _assume(high, test, outcome)
    low = _assume(low, test, outcome)
    return high if high == low else (root, high, low)


def _tests(diagram: Diagram) -> list[Query]:
    """The test of the root, the first of all that the diagram asks."""
    return [diagram[0]] if isinstance(diagram, tuple) else []
