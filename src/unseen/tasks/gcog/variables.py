"""The variables of a question: the value of every node, the branches taken, and the object that decides and its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unseen.tasks.gcog.schema import Schema, Ties
from unseen.tasks.gcog.solver import Unanswerable, solve, solve_query
from unseen.tasks.gcog.tree import Conditional, GridObject, Query, Tree, get_query, list_levels
from unseen.tasks.variables import NONE, Ints, Variable, answer_each, split_name, table

Question = tuple[Tree, Sequence[GridObject]]
"""A tree and the objects on the grid."""


def list_variables(schema: Schema, questions: Sequence[Question], ties: Ties) -> dict[str, Variable]:
    """`node[i]`, the value of the i-th operator of the tree (level by level, THEN before ELSE) as a class of the answer;
    `branch[l]`, whether THEN (1) or ELSE (0) is taken at level l; `target`, the first object that the operator on the
    path is about, and `target_place`, its cell.

    An operator off the path may have no value, if its object is absent or ambiguous.
    """
    nodes = []
    branches = []
    objects = []
    cells = []
    for tree, grid in questions:
        values_of_nodes = []
        for nodes_of_level in list_levels(tree):
            values_of_nodes += [_class_of(schema, get_query(node), grid, ties) for node in nodes_of_level]
        nodes.append(values_of_nodes)
        steps = solve(schema, tree, grid, ties).steps
        branches.append([int(step.value is True) for step in steps[:-1]])
        deciding = steps[-1].objects[0] if steps[-1].objects else None
        objects.append(NONE if deciding is None else number_object(schema, deciding))
        cells.append(NONE if deciding is None else int(schema.cell(deciding.x, deciding.y)))
    variables: dict[str, Variable] = {}
    for i, values in enumerate(table(nodes).T):
        variables[f"node[{i}]"] = Variable(values, len(schema.answers))
    for level, values in enumerate(table(branches).T):
        variables[f"branch[{level}]"] = Variable(values, 2)
    variables["target"] = Variable(np.array(objects, np.int64), schema.object_count, causal=False)
    # The cells come first in the stream of the stimulus, so a cell is the position of a token there.
    variables["target_place"] = Variable(np.array(cells, np.int64), schema.cells, positions=True, stream="stimulus")
    return variables


def number_object(schema: Schema, grid_object: GridObject) -> int:
    """The number of an object among all that there can be; the first feature (the shape) runs fastest."""
    number = 0
    # Horner's rule from the last feature to the first, so that the first has the factor 1.
    for (_, names), value in reversed(list(zip(schema.features, grid_object.values, strict=True))):
        number = number * len(names) + names.index(value)
    return number


def answer_with(
    schema: Schema, questions: Sequence[Question], ties: Ties, name: str, values: Ints, targets: NDArray[Any]
) -> NDArray[Any]:
    """The answers if a node had another value, another branch were taken, or the deciding object were in another cell.

    A question that can't be answered then (nothing is asked about an object that is there) keeps its answer.
    """
    stem, index = split_name(name)

    def answer(example: int, value: int) -> int:
        tree, grid = questions[example]
        try:
            if stem == "target_place":
                return _answer_moved(schema, tree, grid, ties, value)
            return _walk(schema, tree, grid, ties, stem, index, value)
        except Unanswerable:
            return int(targets[example])

    return answer_each(targets, values, answer)


def _class_of(schema: Schema, query: Query, grid: Sequence[GridObject], ties: Ties) -> int:
    try:
        return schema.answers.index(solve_query(schema, query, grid, ties).value)
    except Unanswerable:
        return NONE


def _walk(schema: Schema, tree: Tree, grid: Sequence[GridObject], ties: Ties, stem: str, index: int, value: int) -> int:
    """Walk down the tree, with the value of one node or the turn at one level set to `value`."""
    node = level = 0
    true = schema.answers.index(True)
    while True:
        is_set = (stem, index) in (("node", node), ("branch", level))
        if not isinstance(tree, Conditional):
            if stem == "node" and is_set:
                return value
            return schema.answers.index(solve_query(schema, tree, grid, ties).value)
        if is_set:
            then = value == true if stem == "node" else bool(value)
        else:
            then = solve_query(schema, tree.test, grid, ties).value is True
        tree = tree.then if then else tree.otherwise
        # Heap order: from node j, THEN leads to 2j + 1 and ELSE to 2j + 2.
        node = 2 * node + (1 if then else 2)
        level += 1


def _answer_moved(schema: Schema, tree: Tree, grid: Sequence[GridObject], ties: Ties, cell: int) -> int:
    """The value of the operator on the path if its first object were in another cell; nothing else moves."""
    last = solve(schema, tree, grid, ties).steps[-1]
    if not last.objects:
        return schema.answers.index(last.value)
    x, y = schema.coordinates(cell)
    moved = replace(last.objects[0], x=int(x), y=int(y))
    objects = [moved if other == last.objects[0] else other for other in grid]
    return schema.answers.index(solve_query(schema, last.query, objects, ties).value)
