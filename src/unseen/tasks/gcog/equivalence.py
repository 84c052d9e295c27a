"""Which questions are the same function of the scene: a canonical form of their trees.

A tree is turned into a binary decision diagram (Bryant, 1986): every test is asked at most once on a path, in one order
for all trees, and a test is left out if both outcomes lead to the same diagram. Opposite operators (SumEven and SumOdd, ProductEven
and ProductOdd) are one test, and the order of two objects does not count. Trees with the same form agree on every scene.
Different forms may agree, too, where one test implies another (an odd product has an even sum).
"""

from __future__ import annotations

from collections.abc import Hashable

from unseen.tasks.gcog.schema import Schema
from unseen.tasks.gcog.tree import Conditional, Query, Tree, list_levels

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
