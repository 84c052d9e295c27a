"""A question as a tree, and the objects it is about: plain values, and their JSON form.

A leaf or a condition is `{"op": name, "objects": [{"shape": …, "color": …}]}`, null where a feature is not named, with
a `"number"` where the operator compares with one; a conditional is `{"if": leaf, "then": tree, "else": tree}`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from unseen.tasks.gcog.schema import Schema

Named = tuple[str | None, ...]
"""What a question says of one object: a value of each feature, or None where it says nothing."""


@dataclass(frozen=True)
class Ask:
    """One operator and what it is asked about."""

    operator: str
    objects: tuple[Named, ...]
    number: int | None = None


@dataclass(frozen=True)
class Branch:
    """If the condition holds, the one; otherwise the other."""

    condition: Ask
    then: Tree
    otherwise: Tree


Tree = Ask | Branch


@dataclass(frozen=True)
class Thing:
    """An object on the grid: a value of each feature, and its column x and row y."""

    values: tuple[str, ...]
    x: int
    y: int


def top(tree: Tree) -> Ask:
    """The operator at the root."""
    return tree.condition if isinstance(tree, Branch) else tree


def levels(tree: Tree) -> list[list[Tree]]:
    """The nodes of a tree level by level, THEN before ELSE; a conditional counts with the operator above it."""
    found: list[list[Tree]] = [[tree]]
    while below := [child for node in found[-1] if isinstance(node, Branch) for child in (node.then, node.otherwise)]:
        found.append(below)
    return found


def asks(tree: Tree) -> Iterator[Ask]:
    """All operators of a tree in level order."""
    for level in levels(tree):
        yield from map(top, level)


def depth(tree: Tree) -> int:
    """Nodes on a path from root to leaf, operators and conditionals.

    >>> leaf = Ask("Exist", (("a", "red"),))
    >>> depth(leaf), depth(Branch(leaf, leaf, leaf))
    (1, 3)
    """
    return 2 * len(levels(tree)) - 1


def tree_data(schema: Schema, tree: Tree) -> dict[str, Any]:
    """A tree as JSON values."""
    if isinstance(tree, Branch):
        return {
            "if": tree_data(schema, tree.condition),
            "then": tree_data(schema, tree.then),
            "else": tree_data(schema, tree.otherwise),
        }
    names = [name for name, _ in schema.features]
    data: dict[str, Any] = {"op": tree.operator, "objects": [dict(zip(names, o, strict=True)) for o in tree.objects]}
    return data if tree.number is None else {**data, "number": tree.number}


def thing_data(schema: Schema, thing: Thing) -> dict[str, Any]:
    """An object on the grid as JSON values."""
    names = [name for name, _ in schema.features]
    return {**dict(zip(names, thing.values, strict=True)), "x": thing.x, "y": thing.y}
