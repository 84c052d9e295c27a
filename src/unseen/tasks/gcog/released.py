"""The generator of the preset `released`: what the published code does, with all that is wrong with it.

A question gets objects and cells first, then a grid is filled: distractors, and over them the objects of all operators.
Whether a boolean is true follows from the grid; several objects may fit a question: then the smallest (x, y) counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseen.randomness import Bools, Draws, Ints
from unseen.tasks.gcog.board import Board
from unseen.tasks.gcog.distinct import draw_distinct
from unseen.tasks.gcog.lookups import lookups
from unseen.tasks.gcog.plan import Plan
from unseen.tasks.gcog.records import Codes, Records, Rows, Small

_POOL = 100
"""Objects drawn for a tree, from which its operators then draw with replacement."""


@dataclass(frozen=True)
class Questions(Rows):
    """B questions without their grids: operators (B, K), and objects and cells, (B, K, 2), of all of them.

    `two` (B, K): whether a question is about the second object, too. All small, for they are kept in large numbers.
    """

    operator: Codes
    two: Bools
    objects: Small
    cells: Small


def generate_released(plan: Plan, count: int, draws: Draws) -> Records:
    """`count` questions with their grids."""
    return ask_released(plan, draw_released(plan, count, draws), draws)


def draw_released(plan: Plan, count: int, draws: Draws) -> Questions:
    """`count` questions: operators, objects and cells."""
    operator = plan.draw_operators(np.zeros(count, np.int64), None, draws)
    two = lookups(plan.schema).optional[operator] & draws.bernoulli(plan.two_objects, operator.shape)
    objects, cells = _task_objects(plan, operator, draws)
    if plan.two_objects:
        _second_objects(plan, two, objects, cells, draws)
    return Questions(
        redraws=np.zeros(count, np.int64),
        operator=operator.T.astype(np.uint8),
        two=two.T,
        objects=objects.transpose(2, 0, 1).astype(np.uint16),
        cells=cells.transpose(2, 0, 1).astype(np.uint16),
    )


def ask_released(plan: Plan, questions: Questions, draws: Draws) -> Records:
    """Fresh grids for questions."""
    schema, count = plan.schema, len(questions)
    operator, two = questions.operator.T.astype(np.int64), questions.two.T
    objects, cells = (each.transpose(1, 2, 0).astype(np.int64) for each in (questions.objects, questions.cells))
    board = Board(count, schema.cells, int(np.prod(schema.sizes)), draws)
    _add_distractors(plan, operator, objects[:, 0], board, draws)
    present = ~lookups(schema).exist[operator] | draws.bernoulli(0.5, operator.shape)
    for node in _placement_order(len(operator), 0):
        for part, there in ((1, two[node]), (0, present[node])):
            rows = np.flatnonzero(there)
            board.add_asked(rows, objects[node, part, rows], cells[node, part, rows])
    leaf, target = _answer(plan, operator, two, objects, board)
    return Records(
        redraws=questions.redraws,
        operator=questions.operator,
        named=_named(plan, operator, two, objects),
        number=np.zeros((count, len(operator)), np.int64),
        grid=_grid(plan, board),
        target=target,
        leaf=leaf,
        distractors=((board.at >= 0) & ~board.asked).sum(axis=1),
    )


def _placement_order(nodes: int, node: int) -> list[int]:
    """The ELSE subtree, then the THEN subtree, then the condition."""
    if node >= nodes:
        return []
    return [*_placement_order(nodes, 2 * node + 2), *_placement_order(nodes, 2 * node + 1), node]


def _task_objects(plan: Plan, operator: Ints, draws: Draws) -> tuple[Ints, Ints]:
    """The objects and cells of all operators, both (K, 2, B); the second ones are still to be drawn."""
    schema, (nodes, count) = plan.schema, operator.shape
    known = int(np.prod(schema.sizes))
    allowed = np.arange(known) if plan.task_objects is None else np.array(plan.task_objects)
    objects, cells = np.zeros((2, nodes, 2, count), np.int64)
    if nodes == 1:
        pick = draws.uniform(count)
        objects[0, 0] = allowed[(pick * len(allowed)).astype(np.int64)]
        for name, numbers in plan.named:
            here = operator[0] == schema.operators[name].code
            objects[0, 0, here] = np.array(numbers)[(pick[here] * len(numbers)).astype(np.int64)]
        cells[0, 0] = draws.integers(schema.cells, count)
        return objects, cells

    def distinct(size: int) -> Ints:
        every = np.ones((nodes, count), np.bool_)
        return draw_distinct(np.full(count, size), every, np.zeros((count, size), np.bool_), draws)

    pool, spots, columns = allowed[distinct(len(allowed))], distinct(schema.cells), np.arange(count)
    drawn = draws.integers(_POOL, (nodes, count))
    first = (drawn[:, None] == drawn[None]).argmax(axis=1)  # operators that drew the same share the object of the first
    objects[:, 0], cells[:, 0] = pool[first, columns], spots[first, columns]
    return objects, cells


def _second_objects(plan: Plan, two: Bools, objects: Ints, cells: Ints, draws: Draws) -> None:
    """Any object, equal to others or not; its cell is none that an operator has so far."""
    nodes, count = two.shape
    taken, columns = np.zeros((count, plan.schema.cells), np.bool_), np.arange(count)
    objects[:, 1] = draws.integers(int(np.prod(plan.schema.sizes)), (nodes, count))
    for node in range(nodes):
        taken[columns, cells[node, 0]] = True
        cells[node, 1] = draw_distinct(np.full(count, plan.schema.cells), two[node : node + 1], taken, draws)[0]


def _add_distractors(plan: Plan, operator: Ints, objects: Ints, board: Board, draws: Draws) -> None:
    """Distractors with the features that no Get operator of the tree goes by."""
    schema, count = plan.schema, operator.shape[1]
    low, high = plan.distractors
    asked = low + draws.integers(high - low + 1, count)
    drawn, stride = np.zeros((high, count), np.int64), 1
    for feature, size in enumerate(schema.sizes):
        free = np.ones((count, size), np.bool_)
        node, column = np.nonzero(lookups(schema).key[operator] == feature)
        free[column, objects[node, column] // stride % size] = False
        listed, left = np.argsort(~free, axis=1, kind="stable"), free.sum(axis=1)
        asked = np.where(left > 0, asked, 0)
        drawn += stride * listed[np.arange(count), draws.integers(np.maximum(left, 1), (high, count))]
        stride *= size
    for number in range(high):
        rows = np.flatnonzero(number < asked)
        board.add_distractors(rows, drawn[number, rows])


def _answer(plan: Plan, operator: Ints, two: Bools, objects: Ints, board: Board) -> tuple[Ints, Ints]:
    """The operator each path ends at and the class of the answer, both (B,), as the grid has it."""
    schema, (nodes, count) = plan.schema, operator.shape
    columns, node = np.arange(count), np.zeros(count, np.int64)
    truth = _truth(plan, operator, two, objects, board, node)
    for _ in range(nodes.bit_length() - 1):
        node = 2 * node + 2 - truth
        truth = _truth(plan, operator, two, objects, board, node)
    asked, number = operator[node, columns], objects[node, 0, columns]
    target = np.where(truth, 0, 1)
    location = asked == schema.operators["GetLocation"].code
    target = np.where(location, schema.location_answer(board.where[columns, number]), target)
    for name, (key, about) in {"GetColor": (0, 1), "GetShape": (1, 0)}.items():
        rows = np.flatnonzero(asked == schema.operators[name].code)
        fits = (_value(plan, board.at[rows], key) == _value(plan, number[rows], key)[:, None]) & (board.at[rows] >= 0)
        found = board.at[rows, board.first_cell(fits)]
        target[rows] = schema.value_answer(about, _value(plan, found, about) + 1)
    return node, target


def _truth(plan: Plan, operator: Ints, two: Bools, objects: Ints, board: Board, node: Ints) -> Bools:
    """Whether the boolean operators at these nodes, (B,), hold; anything for others."""
    columns = np.arange(len(node))
    cells = board.where[columns[:, None], objects[node, :, columns]]
    both = two[node, columns]
    x, y = plan.schema.place(cells)
    total = (x + y)[:, 0] + (x + y)[:, 1] * both
    product = (x * y)[:, 0] * np.where(both, (x * y)[:, 1], 1)
    holds = {
        "Exist": cells[:, 0] >= 0,
        "SumEven": total % 2 == 0,
        "SumOdd": total % 2 == 1,
        "ProductEven": product % 2 == 0,
        "ProductOdd": product % 2 == 1,
    }
    truth, asked = np.zeros(len(node), np.bool_), operator[node, columns]
    for name, value in holds.items():
        truth |= value & (asked == plan.schema.operators[name].code)
    return truth


def _value(plan: Plan, objects: Ints, feature: int) -> Ints:
    """The number of an object's value of a feature."""
    return objects // int(np.prod(plan.schema.sizes[:feature])) % plan.schema.sizes[feature]


def _named(plan: Plan, operator: Ints, two: Bools, objects: Ints) -> Codes:
    """What the questions name, (B, K, 2, F)."""
    nodes, count = operator.shape
    named = np.zeros((count, nodes, 2, len(plan.schema.sizes)), np.uint8)
    for feature in range(len(plan.schema.sizes)):
        says = lookups(plan.schema).names[feature][operator]
        for part, used in ((0, says), (1, says & two)):
            named[:, :, part, feature] = ((_value(plan, objects[:, part], feature) + 1) * used).T
    return named


def _grid(plan: Plan, board: Board) -> Codes:
    """The codes of features in every cell, (B, cells, F)."""
    values = [(_value(plan, board.at, feature) + 1) * (board.at >= 0) for feature in range(len(plan.schema.sizes))]
    return np.stack(values, axis=2).astype(np.uint8)
