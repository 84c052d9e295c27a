"""Questions of the preset `clean` that are asked again and again, each time with a fresh grid.

A question has its objects, their features and their cells. Fresh are the distractors and whether the objects are there
that an operator asks just that about: Exist and its forms for two objects.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unseen.randomness import Bools, Draws, Ints
from unseen.tasks.gcog.clean import draw_counts, record, settle
from unseen.tasks.gcog.distinct import draw_distinct
from unseen.tasks.gcog.drafts import draft_feasible, draw_operators, draw_presence, until_settled
from unseen.tasks.gcog.features import Draft, Objects, draw_features
from unseen.tasks.gcog.lookups import lookups
from unseen.tasks.gcog.places import places
from unseen.tasks.gcog.plan import Plan
from unseen.tasks.gcog.records import Codes, Records, Rows, Small


@dataclass(frozen=True)
class Questions(Rows):
    """B questions without their grids, in small numbers, for they are kept in large ones.

    `operator`, `two`, `truth` (B, K), the last without a meaning where presence is asked for; `first` and `second`
    (B, F, K): the features of all objects; `named` (B, K, 2, F), `number` (B, K); `cells` (B, K, 1 or 2).
    """

    operator: Codes
    two: Bools
    truth: Bools
    first: Codes
    second: Codes
    named: Codes
    number: NDArray[np.int32]
    cells: Small


def draw_clean(plan: Plan, count: int, draws: Draws) -> Questions:
    """`count` questions. All have room for the most distractors, and cells for all of their objects, present or not."""
    truth = draws.bernoulli(0.5, (plan.operators_in_tree, count))
    return until_settled(plan, count, lambda columns: _attempt(plan, truth[:, columns], draws))


def _attempt(plan: Plan, truth: Bools, draws: Draws) -> tuple[Questions, Bools]:
    count, most = truth.shape[1], plan.distractors[1]

    def make(columns: Ints) -> Draft:
        operator, two = draw_operators(plan, np.zeros(len(columns), np.int64), None, draws)
        used = np.stack([np.ones_like(two), two], axis=1)
        # What takes most room: objects that are there or, if a distractor stands in for each absent one, absent ones.
        absent = lookups(plan.schema).presence[operator][:, None] & plan.constant_count
        return Draft(operator, two, used & ~absent, truth[:, columns], np.full(len(columns), most))

    draft, redraws = draft_feasible(plan, count, make)
    whole = replace(draft, present=draft.used, distractors=np.zeros(count, np.int64))
    objects = draw_features(plan, whole, draws)
    cells, number, _, failed = settle(places(plan.schema, plan.two), whole, draws)
    return Questions(
        redraws=redraws,
        operator=whole.operator.T.astype(np.uint8),
        two=whole.two.T,
        truth=truth.T,
        first=np.moveaxis(objects.first, -1, 0),
        second=np.moveaxis(objects.second, -1, 0),
        named=objects.named.transpose(3, 0, 1, 2),
        number=number.T.astype(np.int32),
        cells=np.moveaxis(cells, -1, 0).astype(np.uint16),
    ), failed


def ask_clean(plan: Plan, questions: Questions, draws: Draws) -> Records:
    """Fresh grids for questions."""
    schema, count = plan.schema, len(questions)
    operator, two = questions.operator.T.astype(np.int64), questions.two.T
    asked = lookups(schema).presence[operator]
    truth = np.where(asked, draws.bernoulli(0.5, operator.shape), questions.truth.T)
    present = draw_presence(plan, operator, two, truth, draws)
    draft = Draft(operator, two, present, truth, draw_counts(plan, count, draws))
    extra = draft.extra(plan)
    there = np.arange(extra.max())[:, None] < extra
    first, second = (np.moveaxis(each, 0, -1) for each in (questions.first, questions.second))
    objects = Objects(
        first,
        second,
        _distractors(plan, draft, first, second, there, draws),
        there,
        questions.named.transpose(1, 2, 3, 0),
    )
    cells = questions.cells.transpose(1, 2, 0).astype(np.int64)
    taken, columns = np.zeros((count, schema.cells), np.bool_), np.arange(count)
    for part in range(cells.shape[1]):
        taken[columns, cells[:, part]] |= present[:, part]
    places_left = draw_distinct(np.full(count, schema.cells), there, taken, draws)
    return record(plan, draft, objects, cells, places_left, questions.number.T.astype(np.int64), questions.redraws)


def _distractors(plan: Plan, draft: Draft, first: Codes, second: Codes, there: Bools, draws: Draws) -> Codes:
    """The codes of features (F, D, B): objects that no operator could mean, and that are different from each other."""
    sizes, count = plan.schema.sizes, draft.operator.shape[1]
    taken, key = np.zeros((count, int(np.prod(sizes))), np.bool_), lookups(plan.schema).key[draft.operator]
    strides = np.cumprod((1, *sizes[:-1]))
    for part, values in enumerate((first, second)[: 1 + plan.two]):
        used, numbers = draft.used[:, part], values.astype(np.int64) - 1
        node, column = np.nonzero(used)
        taken[column, np.tensordot(strides, numbers, 1)[node, column]] = True
        for feature in range(len(sizes)):
            node, column = np.nonzero(used & (key == feature))
            # The first feature runs fastest: seen as a box, its values lie along the last axis.
            box = np.moveaxis(taken.reshape(count, *sizes[::-1]), len(sizes) - feature, 1)
            box[column, numbers[feature][node, column]] = True
    number = draw_distinct(np.full(count, taken.shape[1]), there, taken, draws)
    return np.stack([number // stride % size for stride, size in zip(strides, sizes, strict=True)]).astype(
        np.uint8
    ) + np.uint8(1)
