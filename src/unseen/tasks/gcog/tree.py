"""A question as a tree, the objects on the grid, and their JSON form.

An operator is `{"op": name, "objects": [{"shape": …, "color": …}]}`, with null for a feature that the question does not
state and a `"number"` if the operator compares with one. A conditional is `{"if": operator, "then": tree, "else": tree}`.
"""

from __future__ import annotations

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
