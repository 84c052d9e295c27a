"""The generator of the preset `released`: what the published code does, including its defects.

A question gets its objects and cells first. Then a grid is filled with distractors and, over them, with the objects of
all operators. The truth of a boolean follows from the grid. If several objects match a question, the one with the
smallest (x, y) counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseen.randomness import Bools, Draws, Ints
from unseen.tasks.gcog.place_objects import Redraws, draw_distinct
from unseen.tasks.gcog.plan import Codes, QuestionPlan, QuestionRecords, QuestionRows, SmallInts
from unseen.tasks.gcog.schema import Schema, get_operator_arrays

_CANDIDATES = 100
"""Objects drawn for a tree, from which its operators then draw with replacement."""


@dataclass(frozen=True)
class ReleasedQuestions(QuestionRows):
    """B questions without their grids, in small dtypes because pools hold many of them.

    Attributes:
        operator: (B, K), operator codes.
        two: (B, K), whether the operator is about the second object, too.
        objects: (B, K, 2), the objects as numbers (the first feature runs fastest).
        cells: (B, K, 2), the prescribed cells.
    """

    operator: Codes
    two: Bools
    objects: SmallInts
    cells: SmallInts


class Board:
    """Many grids at once, on which objects are placed and removed. An object is on a grid at most once.

    Attributes:
        objects: (count, cells), the object in each cell, or −1.
        cell_of: (count, objects), the cell of each object, or −1.
        queried: (count, cells), whether an operator asks about the object in the cell.
    """

    def __init__(self, count: int, cells: int, objects: int, draws: Draws) -> None:
        self.objects = np.full((count, cells), -1)
        self.cell_of = np.full((count, objects), -1)
        self.queried = np.zeros((count, cells), np.bool_)
        self._redraws = Redraws(draws)

    def draw_free_cells(self, rows: Ints) -> Ints:
        """Return a uniformly drawn free cell of each of these grids."""
        cells = np.zeros(len(rows), np.int64)
        pending = np.arange(len(rows))
        while len(pending):
            cells[pending] = self._redraws.integers(np.full(len(pending), self.objects.shape[1]))
            pending = pending[self.objects[rows[pending], cells[pending]] >= 0]
        return cells

    def add(self, rows: Ints, objects: Ints, cells: Ints, queried: bool) -> None:
        """Place objects on free cells."""
        self.objects[rows, cells] = objects
        self.cell_of[rows, objects] = cells
        self.queried[rows, cells] = queried

    def remove(self, rows: Ints, cells: Ints) -> None:
        """Remove the objects in these cells."""
        self.cell_of[rows, self.objects[rows, cells]] = -1
        self.objects[rows, cells] = -1
        self.queried[rows, cells] = False

    def add_distractors(self, rows: Ints, objects: Ints) -> None:
        """Place a distractor on a free cell of each grid; it replaces an equal one."""
        cells = self.draw_free_cells(rows)
        previous = self.cell_of[rows, objects]
        duplicate = previous >= 0
        self.remove(rows[duplicate], previous[duplicate])
        self.add(rows, objects, cells, queried=False)

    def add_queried(self, rows: Ints, objects: Ints, cells: Ints) -> None:
        """Place a queried object on its cell, unless an earlier operator has placed it already.

        An equal distractor is removed. If the cell is occupied, the object goes to a free cell instead; if it was
        occupied by a distractor, that is removed as well.
        """
        previous = self.cell_of[rows, objects]
        new = ~((previous >= 0) & self.queried[rows, previous])
        rows, objects, cells, previous = rows[new], objects[new], cells[new], previous[new]
        duplicate = previous >= 0
        self.remove(rows[duplicate], previous[duplicate])
        occupied = self.objects[rows, cells] >= 0
        by_distractor = occupied & ~self.queried[rows, cells]
        self.remove(rows[by_distractor], cells[by_distractor])
        # A cell that was just vacated is among the free ones.
        cells[occupied] = self.draw_free_cells(rows[occupied])
        self.add(rows, objects, cells, queried=True)


def generate_released(plan: QuestionPlan, count: int, draws: Draws) -> QuestionRecords:
    """Draw `count` questions with their grids."""
    return ask_released_questions(plan, draw_released_questions(plan, count, draws), draws)


def draw_released_questions(plan: QuestionPlan, count: int, draws: Draws) -> ReleasedQuestions:
    """Draw `count` questions: operators, objects and cells."""
    schema = plan.schema
    operator = plan.draw_operators(np.zeros(count, np.int64), None, draws)
    two = get_operator_arrays(schema).optional[operator] & draws.bernoulli(plan.two_objects, operator.shape)
    objects, cells = _draw_first_objects(plan, operator, draws)
    if plan.two_objects:
        # The second object is any object, equal to others or not. Its cell is none that an earlier operator has.
        occupied = np.zeros((count, schema.cells), np.bool_)
        objects[:, 1] = draws.integers(schema.object_count, operator.shape)
        for node in range(plan.nodes):
            occupied[np.arange(count), cells[node, 0]] = True
            bound = np.full(count, schema.cells)
            cells[node, 1] = draw_distinct(bound, two[node : node + 1], occupied, draws)[0]
    return ReleasedQuestions(
        redraws=np.zeros(count, np.int64),
        operator=operator.T.astype(np.uint8),
        two=two.T,
        objects=objects.transpose(2, 0, 1).astype(np.uint16),
        cells=cells.transpose(2, 0, 1).astype(np.uint16),
    )


def _draw_first_objects(plan: QuestionPlan, operator: Ints, draws: Draws) -> tuple[Ints, Ints]:
    """Return objects and cells, both (K, 2, B), of which the second ones are still zero."""
    schema = plan.schema
    nodes, count = operator.shape
    allowed = np.arange(schema.object_count) if plan.task_objects is None else np.array(plan.task_objects)
    objects = np.zeros((nodes, 2, count), np.int64)
    cells = np.zeros((nodes, 2, count), np.int64)
    if nodes == 1:
        uniform = draws.uniform(count)
        objects[0, 0] = allowed[(uniform * len(allowed)).astype(np.int64)]
        plan.restrict_objects(operator[0], uniform, objects[0, 0])
        cells[0, 0] = draws.integers(schema.cells, count)
        return objects, cells

    def draw_different(size: int) -> Ints:
        active = np.ones((nodes, count), np.bool_)
        return draw_distinct(np.full(count, size), active, np.zeros((count, size), np.bool_), draws)

    candidates = allowed[draw_different(len(allowed))]
    candidate_cells = draw_different(schema.cells)
    # Operators draw from _CANDIDATES objects with replacement. Only collisions matter: an operator that drew the same
    # number as an earlier one shares its object, all others have objects of their own.
    pick = draws.integers(_CANDIDATES, (nodes, count))
    first_with_pick = (pick[:, None] == pick[None]).argmax(axis=1)
    columns = np.arange(count)
    objects[:, 0] = candidates[first_with_pick, columns]
    cells[:, 0] = candidate_cells[first_with_pick, columns]
    return objects, cells


def ask_released_questions(plan: QuestionPlan, questions: ReleasedQuestions, draws: Draws) -> QuestionRecords:
    """Draw fresh grids for questions."""
    schema = plan.schema
    arrays = get_operator_arrays(schema)
    count = len(questions)
    operator = questions.operator.T.astype(np.int64)
    two = questions.two.T
    objects = questions.objects.transpose(1, 2, 0).astype(np.int64)
    cells = questions.cells.transpose(1, 2, 0).astype(np.int64)
    board = Board(count, schema.cells, schema.object_count, draws)
    # Distractors come first; the objects of all operators, on the path or not, are placed over them.
    _add_distractors(plan, operator, objects[:, 0], board, draws)
    present = ~arrays.exist[operator] | draws.bernoulli(0.5, operator.shape)
    for node in _order_nodes(len(operator), 0):
        # Of two objects, the second is placed first, as in the release.
        for slot, placed in ((1, two[node]), (0, present[node])):
            rows = np.flatnonzero(placed)
            board.add_queried(rows, objects[node, slot, rows], cells[node, slot, rows])
    leaf, target = _answer(schema, operator, two, objects, board)

    stated = np.zeros((count, len(operator), 2, len(schema.sizes)), np.uint8)
    grid = np.zeros((count, schema.cells, len(schema.sizes)), np.uint8)
    for feature in range(len(schema.sizes)):
        grid[:, :, feature] = (_get_value(schema, board.objects, feature) + 1) * (board.objects >= 0)
        states = arrays.names[feature][operator]
        for slot, used in ((0, states), (1, states & two)):
            stated[:, :, slot, feature] = ((_get_value(schema, objects[:, slot], feature) + 1) * used).T
    return QuestionRecords(
        redraws=questions.redraws,
        operator=questions.operator,
        stated=stated,
        number=np.zeros((count, len(operator)), np.int64),
        grid=grid,
        target=target,
        leaf=leaf,
        distractors=((board.objects >= 0) & ~board.queried).sum(axis=1),
    )


def _order_nodes(nodes: int, node: int) -> list[int]:
    """Return the order in which objects are placed: the ELSE subtree, the THEN subtree, then the test."""
    if node >= nodes:
        return []
    return [*_order_nodes(nodes, 2 * node + 2), *_order_nodes(nodes, 2 * node + 1), node]


def _add_distractors(plan: QuestionPlan, operator: Ints, objects: Ints, board: Board, draws: Draws) -> None:
    """Add distractors without the values by which Get operators of the tree find their objects."""
    schema = plan.schema
    count = operator.shape[1]
    rows = np.arange(count)
    high = plan.distractors[1]
    requested = plan.draw_distractor_counts(count, draws)
    distractors = np.zeros((high, count), np.int64)
    stride = 1
    for feature, size in enumerate(schema.sizes):
        free = np.ones((count, size), np.bool_)
        node, column = np.nonzero(get_operator_arrays(schema).key[operator] == feature)
        free[column, _get_value(schema, objects[node, column], feature)] = False
        # A stable sort lists the free values first, in their order.
        free_values = np.argsort(~free, axis=1, kind="stable")
        free_count = free.sum(axis=1)
        # Without a free value there can be no distractor. A number is drawn nevertheless, so that the draws of other
        # questions stay the same.
        requested = np.where(free_count > 0, requested, 0)
        choice = draws.integers(np.maximum(free_count, 1), (high, count))
        distractors += stride * free_values[rows, choice]
        stride *= size
    for number in range(high):
        affected = np.flatnonzero(number < requested)
        board.add_distractors(affected, distractors[number, affected])


def _answer(schema: Schema, operator: Ints, two: Bools, objects: Ints, board: Board) -> tuple[Ints, Ints]:
    """Return the node at which each path ends and the class of the answer, both (B,), according to the grid."""
    nodes, count = operator.shape
    columns = np.arange(count)
    node = np.zeros(count, np.int64)
    truth = _evaluate(schema, operator, two, objects, board, node)
    # Nodes are in heap order: from node j, True leads to 2j + 1 and False to 2j + 2. There are 2ⁿ − 1 nodes on n levels.
    for _ in range(nodes.bit_length() - 1):
        node = 2 * node + 2 - truth
        truth = _evaluate(schema, operator, two, objects, board, node)
    leaf_operator = operator[node, columns]
    leaf_object = objects[node, 0, columns]
    target = np.where(truth, 0, 1)
    location = leaf_operator == schema.operators["GetLocation"].code
    target = np.where(location, schema.location_answer(board.cell_of[columns, leaf_object]), target)
    for name, (key, about) in {"GetColor": (0, 1), "GetShape": (1, 0)}.items():
        rows = np.flatnonzero(leaf_operator == schema.operators[name].code)
        on_grid = board.objects[rows]
        searched = _get_value(schema, leaf_object[rows], key)
        matches = (_get_value(schema, on_grid, key) == searched[:, None]) & (on_grid >= 0)
        # The first matching cell is the one with the smallest (x, y), because y runs fastest.
        matching = on_grid[np.arange(len(rows)), matches.argmax(axis=1)]
        target[rows] = schema.value_answer(about, _get_value(schema, matching, about) + 1)
    return node, target


def _evaluate(schema: Schema, operator: Ints, two: Bools, objects: Ints, board: Board, node: Ints) -> Bools:
    """Return whether the boolean operators at these nodes, (B,), are true; False for other operators."""
    columns = np.arange(len(node))
    cells = board.cell_of[columns[:, None], objects[node, :, columns]]
    both = two[node, columns]
    x, y = schema.coordinates(cells)
    total = (x + y)[:, 0] + (x + y)[:, 1] * both
    product = (x * y)[:, 0] * np.where(both, (x * y)[:, 1], 1)
    values = {
        "Exist": cells[:, 0] >= 0,
        "SumEven": total % 2 == 0,
        "SumOdd": total % 2 == 1,
        "ProductEven": product % 2 == 0,
        "ProductOdd": product % 2 == 1,
    }
    truth = np.zeros(len(node), np.bool_)
    for name, value in values.items():
        truth |= value & (operator[node, columns] == schema.operators[name].code)
    return truth


def _get_value(schema: Schema, objects: Ints, feature: int) -> Ints:
    """Return the index of an object's value of a feature."""
    # The number of an object has a digit for each feature, the first of them the least significant.
    return objects // int(np.prod(schema.sizes[:feature])) % schema.sizes[feature]
