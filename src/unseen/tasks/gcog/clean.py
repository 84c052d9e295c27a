"""The generator of the preset `clean`: truth values first, then features and places that realise them."""

from __future__ import annotations

import numpy as np

from unseen.randomness import Bools, Draws, Ints
from unseen.tasks.gcog.distinct import draw_distinct
from unseen.tasks.gcog.drafts import draft_feasible, draw_operators, draw_presence, until_settled
from unseen.tasks.gcog.features import Draft, Objects, draw_features
from unseen.tasks.gcog.places import Places, places
from unseen.tasks.gcog.plan import Plan
from unseen.tasks.gcog.records import Codes, Records

_RELOCATIONS = 20


def generate_clean(plan: Plan, count: int, dealt: Ints | None, draws: Draws) -> Records:
    """`count` questions with their grids; the operators that paths end at as dealt, if they are.

    Truth values and numbers of distractors are kept where a question has to be drawn again, so they stay uniform.
    """
    truth = draws.bernoulli(0.5, (plan.operators_in_tree, count))
    distractors = draw_counts(plan, count, draws)
    return until_settled(
        plan,
        count,
        lambda columns: _attempt(
            plan, truth[:, columns], distractors[columns], None if dealt is None else dealt[columns], draws
        ),
    )


def draw_counts(plan: Plan, count: int, draws: Draws) -> Ints:
    """How many distractors are asked for, (B,)."""
    low, high = plan.distractors
    return low + draws.integers(high - low + 1, count)


def _attempt(plan: Plan, truth: Bools, distractors: Ints, dealt: Ints | None, draws: Draws) -> tuple[Records, Bools]:
    leaf = _walk(truth)

    def make(columns: Ints) -> Draft:
        operator, two = draw_operators(plan, leaf[columns], None if dealt is None else dealt[columns], draws)
        present = draw_presence(plan, operator, two, truth[:, columns], draws)
        return Draft(operator, two, present, truth[:, columns], distractors[columns])

    draft, redraws = draft_feasible(plan, len(leaf), make)
    objects = draw_features(plan, draft, draws)
    cells, number, taken, failed = settle(places(plan.schema, plan.two), draft, draws)
    extra = draw_distinct(np.full(len(leaf), plan.schema.cells), objects.there & ~failed, taken, draws)
    return record(plan, draft, objects, cells, extra, number, redraws), failed


def record(
    plan: Plan, draft: Draft, objects: Objects, cells: Ints, extra: Ints, number: Ints, redraws: Ints
) -> Records:
    """What was drawn: `cells` (K, 1 or 2, B) of objects, `extra` (D, B) of distractors, `number` (K, B)."""
    leaf = _walk(draft.truth)
    return Records(
        redraws=redraws,
        operator=draft.operator.T.astype(np.uint8),
        named=objects.named.transpose(3, 0, 1, 2),
        number=number.T,
        grid=_grid(plan, draft, objects, cells, extra),
        target=_target(plan, draft, objects, cells, leaf),
        leaf=leaf,
        distractors=objects.there.sum(axis=0),
    )


def _walk(truth: Bools) -> Ints:
    """The operator each path ends at, (B,), in heap order."""
    nodes, count = truth.shape
    columns, node = np.arange(count), np.zeros(count, np.int64)
    for _ in range(nodes.bit_length() - 1):
        node = 2 * node + 2 - truth[node, columns]
    return node


def settle(known: Places, draft: Draft, draws: Draws) -> tuple[Ints, Ints, Bools, Bools]:
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
            draft.take(wrong), classes[:, wrong], number[:, wrong], again, draws
        )
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
