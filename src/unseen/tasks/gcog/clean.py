"""The generator of the preset `clean`: truth values first, then features and places that realise them."""

from __future__ import annotations

import numpy as np

from unseen.errors import UsageError
from unseen.randomness import Bools, Draws, Ints
from unseen.tasks.gcog.distinct import draw_distinct
from unseen.tasks.gcog.features import Draft, Objects, draw_features, feasible
from unseen.tasks.gcog.lookups import lookups
from unseen.tasks.gcog.places import Places, places
from unseen.tasks.gcog.plan import Plan
from unseen.tasks.gcog.records import Codes, Records

_REDRAWS = 1000
_RELOCATIONS = 20

# How often none, only the first, only the second and both objects are there, if the answer is False or True.
_PRESENCE: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "ExistAnd": ((1 / 4, 3 / 8, 3 / 8, 0), (0, 0, 0, 1)),
    "ExistOr": ((1, 0, 0, 0), (0, 3 / 8, 3 / 8, 1 / 4)),
    "ExistXor": ((1 / 2, 0, 0, 1 / 2), (0, 1 / 2, 1 / 2, 0)),
}


def generate_clean(plan: Plan, count: int, dealt: Ints | None, draws: Draws) -> Records:
    """`count` questions with their grids; the operators that paths end at as dealt, if they are.

    Truth values and numbers of distractors are kept where a question has to be drawn again, so they stay uniform.
    """
    nodes = plan.operators_in_tree
    truth = draws.bernoulli(0.5, (nodes, count))
    low, high = plan.distractors
    distractors = low + draws.integers(high - low + 1, count)
    columns, found = np.arange(count), None
    for _ in range(_REDRAWS):
        part, failed = _attempt(plan, truth[:, columns], distractors[columns],
                                None if dealt is None else dealt[columns], draws)
        if found is None:
            found = part
        else:
            found.put(columns, part)
        columns = columns[failed]
        if not len(columns):
            return found
    raise _hopeless(plan)


def _attempt(
    plan: Plan, truth: Bools, distractors: Ints, dealt: Ints | None, draws: Draws
) -> tuple[Records, Bools]:
    leaf = _walk(truth)
    draft, redraws = _draft_feasible(plan, truth, distractors, leaf, dealt, draws)
    objects = draw_features(plan, draft, draws)
    known = places(plan.schema, plan.two)
    cells, number, taken, failed = _settle(known, draft, draws)
    extra = draw_distinct(np.full(len(leaf), plan.schema.cells), objects.there & ~failed, taken, draws)
    records = Records(
        operator=draft.operator.T.astype(np.uint8),
        named=objects.named.transpose(3, 0, 1, 2),
        number=number.T,
        grid=_grid(plan, draft, objects, cells, extra),
        target=_target(plan, draft, objects, cells, leaf),
        leaf=leaf,
        distractors=objects.there.sum(axis=0),
        redraws=redraws,
    )
    return records, failed


def _walk(truth: Bools) -> Ints:
    """The operator each path ends at, (B,), in heap order."""
    nodes, count = truth.shape
    columns, node = np.arange(count), np.zeros(count, np.int64)
    for _ in range(nodes.bit_length() - 1):
        node = 2 * node + 2 - truth[node, columns]
    return node


def _draft_feasible(
    plan: Plan, truth: Bools, distractors: Ints, leaf: Ints, dealt: Ints | None, draws: Draws
) -> tuple[Draft, Ints]:
    """Operators for all questions, drawn again where there is not room enough; and how often each was."""
    redraws = np.zeros(len(leaf), np.int64)
    draft = _draft(plan, truth, distractors, leaf, dealt, draws)
    wrong = np.flatnonzero(~feasible(plan, draft))
    while len(wrong):
        redraws[wrong] += 1
        if redraws.max() > _REDRAWS:
            raise _hopeless(plan)
        again = _draft(plan, truth[:, wrong], distractors[wrong], leaf[wrong],
                       None if dealt is None else dealt[wrong], draws)
        draft.put(wrong, again)
        wrong = wrong[~feasible(plan, again)]
    return draft, redraws


def _draft(
    plan: Plan, truth: Bools, distractors: Ints, leaf: Ints, dealt: Ints | None, draws: Draws
) -> Draft:
    operator, table = plan.draw_operators(leaf, dealt, draws), lookups(plan.schema)
    two = table.pair[operator]
    if plan.two_objects:
        two = two | (table.optional[operator] & draws.bernoulli(plan.two_objects, operator.shape))
    present = np.stack([~table.exist[operator] | truth, two], axis=1)
    for name in sorted(_PRESENCE.keys() & plan.operator_names):
        here = np.nonzero(operator == plan.schema.operators[name].code)
        pick = draws.uniform(len(here[0]))
        for value, shares in enumerate(_PRESENCE[name]):
            state = np.searchsorted(np.cumsum(shares), pick, side="right")
            mine = truth[here] == bool(value)
            for part in (0, 1):
                present[here[0][mine], part, here[1][mine]] = (state[mine] >> part & 1).astype(np.bool_)
    return Draft(operator, two, present, truth, distractors)


def _settle(known: Places, draft: Draft, draws: Draws) -> tuple[Ints, Ints, Bools, Bools]:
    """Cells (K, 1 or 2, B), numbers (K, B), taken cells (B, cells), and which questions found no place for objects."""
    classes, number = known.draw_classes(draft, draws)
    taken = np.zeros((classes.shape[1], known.schema.cells), np.bool_)
    cells, failed = known.settle(draft, classes, number, taken, draws)
    for _ in range(_RELOCATIONS - 1):
        wrong = np.flatnonzero(failed)
        if not len(wrong):
            break
        again = np.zeros((len(wrong), known.schema.cells), np.bool_)
        cells[..., wrong], failed[wrong] = known.settle(
            draft.take(wrong), classes[:, wrong], number[:, wrong], again, draws)
        taken[wrong] = again
    return cells, number, taken, failed


def _grid(plan: Plan, draft: Draft, objects: Objects, cells: Ints, extra: Ints) -> Codes:
    """The codes of features in every cell, (B, cells, F)."""
    count, cells_of_grid = draft.operator.shape[1], plan.schema.cells
    grid = np.zeros((count * cells_of_grid, len(plan.schema.features)), np.uint8)
    parts = [(objects.first, cells[:, 0], draft.present[:, 0]), (objects.distractors, extra, objects.there)]
    if plan.two:
        parts.append((objects.second, cells[:, 1], draft.present[:, 1]))
    for values, where, there in parts:
        place = (where + np.arange(count) * cells_of_grid)[there]
        for feature, codes in enumerate(values):
            grid[place, feature] = codes[there]
    return grid.reshape(count, cells_of_grid, -1)


def _target(plan: Plan, draft: Draft, objects: Objects, cells: Ints, leaf: Ints) -> Ints:
    """The class of each answer, (B,), from the way the question was built."""
    schema, columns = plan.schema, np.arange(len(leaf))
    at = leaf, columns
    operator = draft.operator[at]
    target = np.where(draft.truth[at], 0, 1)
    location = operator == schema.operators["GetLocation"].code
    target = np.where(location, schema.location_answer(cells[leaf, 0, columns]), target)
    for feature, (name, _) in enumerate(schema.features):
        asked = operator == schema.operators[f"Get{name.capitalize()}"].code
        target = np.where(asked, schema.value_answer(feature, objects.first[feature][at].astype(np.int64)), target)
    return target


def _hopeless(plan: Plan) -> UsageError:
    return UsageError(f"gcog: a question of depth {plan.depth} with {plan.distractors[1]} distractors found no room in "
                      f"{_REDRAWS} tries; take fewer distractors, a larger grid or more values per feature")


