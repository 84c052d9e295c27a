"""The generator of the preset `clean`: it draws truth values first, then features and cells that realise them.

A draft (operators, truth values, presence of objects) gets features (`draw_features`), then cells (`draw_cells`), and
becomes a record. A draft without enough room is drawn again. For pools, `draw_clean_questions` and `ask_clean_questions`
separate what a question fixes from what every new grid draws afresh.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from unseen.errors import UsageError
from unseen.randomness import Bools, Draws, Ints
from unseen.tasks.gcog.place_objects import CellClasses, QueryBatch, build_cell_classes, draw_distinct, shuffle_rows
from unseen.tasks.gcog.plan import Codes, QuestionPlan, QuestionRecords, QuestionRows, SmallInts
from unseen.tasks.gcog.schema import get_operator_arrays

_REDRAWS = 1000
"""Attempts at one question before the task is refused."""
_RELOCATIONS = 20
"""Attempts to place the objects of a draft before the whole draft is drawn again."""

# The probabilities that none, only the first, only the second and both objects are present, for the answers False and
# True. They make the answer and the number of objects as independent as possible.
_PRESENCE: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "ExistAnd": ((1 / 4, 3 / 8, 3 / 8, 0), (0, 0, 0, 1)),
    "ExistOr": ((1, 0, 0, 0), (0, 3 / 8, 3 / 8, 1 / 4)),
    "ExistXor": ((1 / 2, 0, 0, 1 / 2), (0, 1 / 2, 1 / 2, 0)),
}

AnyRows = TypeVar("AnyRows", bound=QuestionRows)


@dataclass(frozen=True)
class QuestionDraft(QueryBatch):
    """B questions before their objects are known; `distractors` (B,) is their number without replacements of absent
    objects. Truth values and numbers of distractors survive a redraw, so they stay uniform."""

    distractors: Ints

    @property
    def used(self) -> Bools:
        """Which objects the questions ask about, (K, 2, B), present or not."""
        return np.stack([np.ones_like(self.two), self.two], axis=1)

    def put(self, columns: Ints, others: QuestionDraft) -> None:
        """Replace some questions by others."""
        self.operator[:, columns] = others.operator
        self.two[:, columns] = others.two
        self.present[..., columns] = others.present

    def take(self, columns: Ints) -> QuestionDraft:
        """Return some of the questions."""
        return QuestionDraft(
            self.operator[:, columns],
            self.two[:, columns],
            self.present[..., columns],
            self.truth[:, columns],
            self.distractors[columns],
        )

    def count_distractors(self, plan: QuestionPlan) -> Ints:
        """Return the number of distractors, (B,), including those that replace absent objects."""
        absent = (self.used & ~self.present).sum(axis=(0, 1)) if plan.constant_count else 0
        return np.asarray(self.distractors + absent)


@dataclass(frozen=True)
class DrawnObjects:
    """Feature codes of all objects.

    Attributes:
        first, second: (F, K, B), the objects of the operators.
        distractors: (F, D, B), room for the largest number of distractors.
        distractor_present: (D, B), which of the distractors exist.
        stated: (K, 2, F, B), the values that the questions state.
    """

    first: Codes
    second: Codes
    distractors: Codes
    distractor_present: Bools
    stated: Codes


def generate_clean(plan: QuestionPlan, count: int, dealt: Ints | None, draws: Draws) -> QuestionRecords:
    """Draw `count` questions with their grids; `dealt` (count,) fixes the operators at which the paths end."""
    truth = draws.bernoulli(0.5, (plan.nodes, count))
    distractors = plan.draw_distractor_counts(count, draws)

    def attempt(columns: Ints) -> tuple[QuestionRecords, Bools]:
        leaf = _walk(truth[:, columns])

        def make_draft(inner: Ints) -> QuestionDraft:
            chosen = columns[inner]
            operator, two = _draw_operators(plan, leaf[inner], None if dealt is None else dealt[chosen], draws)
            present = _draw_presence(plan, operator, two, truth[:, chosen], draws)
            return QuestionDraft(operator, two, present, truth[:, chosen], distractors[chosen])

        draft, redraws = _draw_feasible_drafts(plan, len(columns), make_draft)
        objects = draw_features(plan, draft, draws)
        cells, number, occupied, failed = draw_cells(build_cell_classes(plan.schema, plan.two), draft, draws)
        bound = np.full(len(columns), plan.schema.cells)
        extra_cells = draw_distinct(bound, objects.distractor_present & ~failed, occupied, draws)
        return _make_records(plan, draft, objects, cells, extra_cells, number, redraws), failed

    return _retry_failed(plan, count, attempt)


def _draw_operators(plan: QuestionPlan, leaf: Ints, dealt: Ints | None, draws: Draws) -> tuple[Ints, Bools]:
    """Return operator codes, and which operators are about two objects, both (K, B)."""
    arrays = get_operator_arrays(plan.schema)
    operator = plan.draw_operators(leaf, dealt, draws)
    two = arrays.pair[operator]
    if plan.two_objects:
        two = two | (arrays.optional[operator] & draws.bernoulli(plan.two_objects, operator.shape))
    return operator, two


def _draw_presence(plan: QuestionPlan, operator: Ints, two: Bools, truth: Bools, draws: Draws) -> Bools:
    """Return which objects are present, (K, 2, B), so that operators about presence have the intended truth value."""
    present = np.stack([~get_operator_arrays(plan.schema).exist[operator] | truth, two], axis=1)
    for name in sorted(_PRESENCE.keys() & plan.operator_names):
        nodes, columns = np.nonzero(operator == plan.schema.operators[name].code)
        uniform = draws.uniform(len(nodes))
        for value, probabilities in enumerate(_PRESENCE[name]):
            # The bits of the state (0 to 3) say which of the two objects is present.
            state = np.searchsorted(np.cumsum(probabilities), uniform, side="right")
            affected = truth[nodes, columns] == bool(value)
            for slot in (0, 1):
                bit = (state[affected] >> slot & 1).astype(np.bool_)
                present[nodes[affected], slot, columns[affected]] = bit
    return present


def _draw_feasible_drafts(
    plan: QuestionPlan, count: int, make_draft: Callable[[Ints], QuestionDraft]
) -> tuple[QuestionDraft, Ints]:
    """Return drafts that all have enough room, and how often each was drawn again; `make_draft` draws some columns."""
    redraws = np.zeros(count, np.int64)
    columns = np.arange(count)
    draft = make_draft(columns)
    columns = columns[~_has_room(plan, draft)]
    while len(columns):
        redraws[columns] += 1
        if redraws.max() > _REDRAWS:
            raise _no_room(plan)
        replacement = make_draft(columns)
        draft.put(columns, replacement)
        columns = columns[~_has_room(plan, replacement)]
    return draft, redraws


def _retry_failed(plan: QuestionPlan, count: int, attempt: Callable[[Ints], tuple[AnyRows, Bools]]) -> AnyRows:
    """Return `count` questions; `attempt` draws those of some columns and says which of them failed."""
    columns = np.arange(count)
    questions, failed = attempt(columns)
    for _ in range(_REDRAWS):
        columns = columns[failed]
        if not len(columns):
            return questions
        replacement, failed = attempt(columns)
        questions.put(columns, replacement)
    raise _no_room(plan)


def _no_room(plan: QuestionPlan) -> UsageError:
    return UsageError(
        f"gcog: a question of depth {plan.depth} with {plan.distractors[1]} distractors found no room in "
        f"{_REDRAWS} attempts; use fewer distractors, a larger grid or more values per feature"
    )


def _count_exclusive(plan: QuestionPlan, draft: QuestionDraft) -> list[Ints]:
    """Return for each feature how many of its values belong to one object alone, (B,)."""
    key = get_operator_arrays(plan.schema).key[draft.operator]
    return [((key == feature) * (1 + draft.two)).sum(axis=0) for feature in range(len(plan.schema.features))]


def _has_room(plan: QuestionPlan, draft: QuestionDraft) -> Bools:
    """Return which questions, (B,), have enough values and cells for their objects and distractors."""
    schema = plan.schema
    arrays = get_operator_arrays(schema)
    distractors = draft.count_distractors(plan)
    exclusive = _count_exclusive(plan, draft)
    # Objects with an exclusive value differ from all others anyway; all others need combinations of their own.
    combinations_needed = draft.used.sum(axis=(0, 1)) - sum(exclusive) + distractors
    fits = np.asarray(draft.present.sum(axis=(0, 1)) + distractors <= schema.cells)
    compares = (arrays.is_ | arrays.same)[draft.operator]
    combinations_free = np.ones_like(distractors)
    for feature, size in enumerate(schema.sizes):
        free = size - exclusive[feature]
        compared = (compares & (arrays.about[draft.operator] == feature)).any(axis=0)
        # At least one value must be free, and two if an operator compares values that may have to differ.
        fits &= free > compared
        combinations_free *= np.maximum(free, 0)
    return np.asarray(fits & (combinations_free >= combinations_needed))


def draw_features(plan: QuestionPlan, draft: QuestionDraft, draws: Draws) -> DrawnObjects:
    """Draw the features of all objects of drafts with enough room.

    The values of each feature are shuffled. The first ones are exclusive, one for each object that is found by this
    feature. The others span a box of free combinations, from which all other objects take different ones.
    """
    schema = plan.schema
    arrays = get_operator_arrays(schema)
    nodes, count = draft.operator.shape
    slots = 1 + plan.two
    columns = np.arange(count)
    total = draft.count_distractors(plan)
    distractor_present = np.arange(total.max())[:, None] < total
    # Objects along one axis: all first objects, all second objects (if there are any), then the distractors.
    used = draft.used[:, :slots].swapaxes(0, 1).reshape(slots * nodes, count)
    key = np.where(used, np.tile(arrays.key[draft.operator], (slots, 1)), -1)
    exclusive = _count_exclusive(plan, draft)
    free = [size - taken_values for size, taken_values in zip(schema.sizes, exclusive, strict=True)]
    chosen: Ints | None = None
    if plan.allowed_objects:
        # What the root operator names: the number of an object, or of a value if it finds its object by one feature.
        chosen = np.zeros(count, np.int64)
        plan.restrict_objects(draft.operator[0], draws.uniform(count), chosen)
    distinct = np.concatenate([used & (key < 0), distractor_present])
    indices = _draw_free_values(free, key, distinct, chosen, draws)
    inquired_value = _draw_compared_values(plan, draft, indices, free, draws)
    values = np.empty((len(free), *indices[0].shape), np.uint8)
    stated = np.zeros((nodes, 2, len(free), count), np.uint8)
    for feature, size in enumerate(schema.sizes):
        keyed = key == feature
        position = indices[feature] + exclusive[feature]
        # The n-th object that is found by this feature has the n-th shuffled value.
        position[: len(key)] = np.where(keyed, np.cumsum(keyed, axis=0) - 1, position[: len(key)])
        # A restricted operator that finds its object by this feature gets the chosen value first. Otherwise nothing may
        # be shuffled, because the chosen number of an object counts the values in their own order.
        first = None if chosen is None else np.where(keyed[0], chosen, 0)
        shuffled = shuffle_rows(count, size, int(exclusive[feature].max()), draws, first) + 1
        values[feature] = shuffled[columns, position]
        states = arrays.names[feature][draft.operator]
        for slot in range(slots):
            rows = slice(slot * nodes, (slot + 1) * nodes)
            stated[:, slot, feature] = values[feature, rows] * (used[rows] & states)
        if inquired_value is not None:
            inquired = (arrays.is_ & (arrays.about == feature))[draft.operator]
            value = shuffled[columns, np.where(inquired, inquired_value, 0) + exclusive[feature]]
            stated[:, 0, feature] = np.where(inquired, value, stated[:, 0, feature])
    return DrawnObjects(
        values[:, :nodes], values[:, nodes : len(key)], values[:, len(key) :], distractor_present, stated
    )


def _draw_free_values(free: list[Ints], key: Ints, distinct: Bools, chosen: Ints | None, draws: Draws) -> list[Ints]:
    """Return for each feature the index of a free value, (objects, B); `distinct` marks objects that must differ.

    Objects with an exclusive value are different from all others anyway, and draw their other values independently.
    """
    count = key.shape[1]
    keyed = key >= 0
    box = np.asarray(np.prod(free, axis=0))
    first = None if chosen is None else np.where(keyed[0], 0, chosen)
    combination = draw_distinct(box, distinct, np.zeros((count, box.max()), np.bool_), draws, first)
    keyed_rows, keyed_columns = np.nonzero(keyed)
    indices = []
    for free_values in free:
        # Unrank the combination: the first feature runs fastest.
        combination, index = np.divmod(combination, free_values)
        index[keyed_rows, keyed_columns] = draws.integers(free_values[keyed_columns], len(keyed_columns))
        indices.append(index)
    return indices


def _draw_compared_values(
    plan: QuestionPlan, draft: QuestionDraft, indices: list[Ints], free: list[Ints], draws: Draws
) -> Ints | None:
    """Choose the values that make Is and Same operators true or false.

    The second objects of Same operators are changed in place. The result is the value that each Is operator asks
    about, as the index of a free value, (K, B); None if there are no such operators.
    """
    arrays = get_operator_arrays(plan.schema)
    operator = draft.operator
    if not any(plan.schema.operators[name].category in ("is", "same") for name in plan.operator_names):
        return None
    nodes = len(operator)
    inquired_value = np.zeros_like(operator)
    # A NotSame operator is true if the values differ.
    equal = draft.truth ^ arrays.not_same[operator]
    for feature, free_values in enumerate(free):
        about = arrays.about[operator] == feature
        index = indices[feature][:nodes]
        # A nonzero offset modulo the number of free values: uniform over all other values.
        other = (index + 1 + draws.integers(np.maximum(free_values - 1, 1), operator.shape)) % free_values
        compared = np.where(equal, index, other)
        inquired_value = np.where(about & arrays.is_[operator], compared, inquired_value)
        if plan.two:
            second = indices[feature][nodes : 2 * nodes]
            second[:] = np.where(about & arrays.same[operator], compared, second)
    return inquired_value


def draw_cells(cell_classes: CellClasses, draft: QuestionDraft, draws: Draws) -> tuple[Ints, Ints, Bools, Bools]:
    """Draw cells for all present objects.

    Returns:
        Cells (K, 1 or 2, B), the numbers of equality operators (K, B), the occupied cells (B, cells), and which
        questions found no free cells (B,).
    """
    classes, number = cell_classes.draw_classes(draft, draws)
    occupied = np.zeros((classes.shape[1], cell_classes.schema.cells), np.bool_)
    cells, failed = cell_classes.place_objects(draft, classes, number, occupied, draws)
    for _ in range(_RELOCATIONS - 1):
        columns = np.flatnonzero(failed)
        if not len(columns):
            break
        # A failed question starts again from an empty grid.
        retried = np.zeros((len(columns), cell_classes.schema.cells), np.bool_)
        cells[..., columns], failed[columns] = cell_classes.place_objects(
            draft.take(columns), classes[:, columns], number[:, columns], retried, draws
        )
        occupied[columns] = retried
    return cells, number, occupied, failed


def _walk(truth: Bools) -> Ints:
    """Return the node at which each path ends, (B,), in heap order."""
    nodes, count = truth.shape
    columns = np.arange(count)
    node = np.zeros(count, np.int64)
    # From node j, True leads to 2j + 1 and False to 2j + 2. There are 2ⁿ − 1 nodes on n levels.
    for _ in range(nodes.bit_length() - 1):
        node = 2 * node + 2 - truth[node, columns]
    return node


def _make_records(
    plan: QuestionPlan,
    draft: QuestionDraft,
    objects: DrawnObjects,
    cells: Ints,
    extra_cells: Ints,
    number: Ints,
    redraws: Ints,
) -> QuestionRecords:
    """Return what was drawn: `cells` (K, 1 or 2, B) of objects, `extra_cells` (D, B) of distractors."""
    schema = plan.schema
    leaf = _walk(draft.truth)
    columns = np.arange(len(leaf))
    # The answer follows from the way the question was built; nothing looks at the grid.
    operator = draft.operator[leaf, columns]
    target = np.where(draft.truth[leaf, columns], 0, 1)
    location = operator == schema.operators["GetLocation"].code
    target = np.where(location, schema.location_answer(cells[leaf, 0, columns]), target)
    for feature, (name, _) in enumerate(schema.features):
        code = objects.first[feature][leaf, columns].astype(np.int64)
        gets = operator == schema.operators[f"Get{name.capitalize()}"].code
        target = np.where(gets, schema.value_answer(feature, code), target)

    grid = np.zeros((len(leaf) * schema.cells, len(schema.features)), np.uint8)
    layers = [
        (objects.first, cells[:, 0], draft.present[:, 0]),
        (objects.distractors, extra_cells, objects.distractor_present),
    ]
    if plan.two:
        layers.append((objects.second, cells[:, 1], draft.present[:, 1]))
    # One flat index per object is faster than an index of the row and one of the cell.
    for values, layer_cells, present in layers:
        index = (layer_cells + columns * schema.cells)[present]
        for feature, codes in enumerate(values):
            grid[index, feature] = codes[present]
    return QuestionRecords(
        redraws=redraws,
        operator=draft.operator.T.astype(np.uint8),
        stated=objects.stated.transpose(3, 0, 1, 2),
        number=number.T,
        grid=grid.reshape(len(leaf), schema.cells, -1),
        target=target,
        leaf=leaf,
        distractors=objects.distractor_present.sum(axis=0),
    )


@dataclass(frozen=True)
class CleanQuestions(QuestionRows):
    """B questions without their grids, in small dtypes because pools hold many of them.

    Attributes:
        operator, two, truth: (B, K); the truth value is meaningless for operators about presence.
        first, second: (B, F, K), the features of all objects.
        stated: (B, K, 2, F).
        number: (B, K).
        cells: (B, K, 1 or 2).
    """

    operator: Codes
    two: Bools
    truth: Bools
    first: Codes
    second: Codes
    stated: Codes
    number: NDArray[np.int32]
    cells: SmallInts


def draw_clean_questions(plan: QuestionPlan, count: int, draws: Draws) -> CleanQuestions:
    """Draw questions with objects, features and cells.

    All have room for the largest number of distractors, and cells for all of their objects, present or not.
    """
    truth = draws.bernoulli(0.5, (plan.nodes, count))

    def attempt(columns: Ints) -> tuple[CleanQuestions, Bools]:
        def make_draft(inner: Ints) -> QuestionDraft:
            operator, two = _draw_operators(plan, np.zeros(len(inner), np.int64), None, draws)
            used = np.stack([np.ones_like(two), two], axis=1)
            # The case that needs most room: all objects are present or, if distractors replace absent ones, absent.
            absent = get_operator_arrays(plan.schema).presence[operator][:, None] & plan.constant_count
            distractors = np.full(len(inner), plan.distractors[1])
            return QuestionDraft(operator, two, used & ~absent, truth[:, columns[inner]], distractors)

        draft, redraws = _draw_feasible_drafts(plan, len(columns), make_draft)
        draft = replace(draft, present=draft.used, distractors=np.zeros(len(columns), np.int64))
        objects = draw_features(plan, draft, draws)
        cells, number, _, failed = draw_cells(build_cell_classes(plan.schema, plan.two), draft, draws)
        questions = CleanQuestions(
            redraws=redraws,
            operator=draft.operator.T.astype(np.uint8),
            two=draft.two.T,
            truth=draft.truth.T,
            first=np.moveaxis(objects.first, -1, 0),
            second=np.moveaxis(objects.second, -1, 0),
            stated=objects.stated.transpose(3, 0, 1, 2),
            number=number.T.astype(np.int32),
            cells=np.moveaxis(cells, -1, 0).astype(np.uint16),
        )
        return questions, failed

    return _retry_failed(plan, count, attempt)


def ask_clean_questions(plan: QuestionPlan, questions: CleanQuestions, draws: Draws) -> QuestionRecords:
    """Draw fresh grids for questions: the distractors, and the presence of objects that operators ask about."""
    schema = plan.schema
    arrays = get_operator_arrays(schema)
    count = len(questions)
    operator = questions.operator.T.astype(np.int64)
    two = questions.two.T
    fresh_truth = draws.bernoulli(0.5, operator.shape)
    truth = np.where(arrays.presence[operator], fresh_truth, questions.truth.T)
    present = _draw_presence(plan, operator, two, truth, draws)
    draft = QuestionDraft(operator, two, present, truth, plan.draw_distractor_counts(count, draws))
    total = draft.count_distractors(plan)
    distractor_present = np.arange(total.max())[:, None] < total
    first = np.moveaxis(questions.first, 0, -1)
    second = np.moveaxis(questions.second, 0, -1)
    distractors = _draw_other_objects(plan, draft, first, second, distractor_present, draws)
    stated = questions.stated.transpose(1, 2, 3, 0)
    objects = DrawnObjects(first, second, distractors, distractor_present, stated)
    cells = questions.cells.transpose(1, 2, 0).astype(np.int64)
    occupied = np.zeros((count, schema.cells), np.bool_)
    columns = np.arange(count)
    for slot in range(cells.shape[1]):
        occupied[columns, cells[:, slot]] |= present[:, slot]
    extra_cells = draw_distinct(np.full(count, schema.cells), distractor_present, occupied, draws)
    number = questions.number.T.astype(np.int64)
    return _make_records(plan, draft, objects, cells, extra_cells, number, questions.redraws)


def _draw_other_objects(
    plan: QuestionPlan, draft: QuestionDraft, first: Codes, second: Codes, active: Bools, draws: Draws
) -> Codes:
    """Return the features (F, D, B) of distractors that no operator could mean and that differ from each other."""
    sizes = plan.schema.sizes
    count = draft.operator.shape[1]
    excluded = np.zeros((count, plan.schema.object_count), np.bool_)
    key = get_operator_arrays(plan.schema).key[draft.operator]
    strides = np.cumprod((1, *sizes[:-1]))
    for slot, values in enumerate((first, second)[: 1 + plan.two]):
        used = draft.used[:, slot]
        value_index = values.astype(np.int64) - 1
        node, column = np.nonzero(used)
        excluded[column, np.tensordot(strides, value_index, 1)[node, column]] = True
        for feature in range(len(sizes)):
            node, column = np.nonzero(used & (key == feature))
            # The first feature runs fastest, so its values lie along the last axis of this box. `box` is a view.
            box = np.moveaxis(excluded.reshape(count, *sizes[::-1]), len(sizes) - feature, 1)
            box[column, value_index[feature][node, column]] = True
    number = draw_distinct(np.full(count, plan.schema.object_count), active, excluded, draws)
    codes = [number // stride % size + 1 for stride, size in zip(strides, sizes, strict=True)]
    return np.stack(codes).astype(np.uint8)
