"""Operators and which of their objects are there, drawn again where there is not room enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from unseen.errors import UsageError
from unseen.randomness import Bools, Draws, Ints
from unseen.tasks.gcog.features import Draft, feasible
from unseen.tasks.gcog.lookups import lookups
from unseen.tasks.gcog.plan import Plan
from unseen.tasks.gcog.records import Rows

_REDRAWS = 1000

# How often none, only the first, only the second and both objects are there, if the answer is False or True.
_PRESENCE: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "ExistAnd": ((1 / 4, 3 / 8, 3 / 8, 0), (0, 0, 0, 1)),
    "ExistOr": ((1, 0, 0, 0), (0, 3 / 8, 3 / 8, 1 / 4)),
    "ExistXor": ((1 / 2, 0, 0, 1 / 2), (0, 1 / 2, 1 / 2, 0)),
}

AnyRows = TypeVar("AnyRows", bound=Rows)


def draw_operators(plan: Plan, leaf: Ints, dealt: Ints | None, draws: Draws) -> tuple[Ints, Bools]:
    """Codes of operators, and which are about two objects, both (K, B); those at `leaf` as dealt, if any are."""
    operator, table = plan.draw_operators(leaf, dealt, draws), lookups(plan.schema)
    two = table.pair[operator]
    if plan.two_objects:
        two = two | (table.optional[operator] & draws.bernoulli(plan.two_objects, operator.shape))
    return operator, two


def draw_presence(plan: Plan, operator: Ints, two: Bools, truth: Bools, draws: Draws) -> Bools:
    """Which objects are there, (K, 2, B), so that operators about that have the truth they were drawn with."""
    present = np.stack([~lookups(plan.schema).exist[operator] | truth, two], axis=1)
    for name in sorted(_PRESENCE.keys() & plan.operator_names):
        here = np.nonzero(operator == plan.schema.operators[name].code)
        pick = draws.uniform(len(here[0]))
        for value, shares in enumerate(_PRESENCE[name]):
            state = np.searchsorted(np.cumsum(shares), pick, side="right")
            mine = truth[here] == bool(value)
            for part in (0, 1):
                present[here[0][mine], part, here[1][mine]] = (state[mine] >> part & 1).astype(np.bool_)
    return present


def draft_feasible(plan: Plan, count: int, make: Callable[[Ints], Draft]) -> tuple[Draft, Ints]:
    """Drafts of all questions, made again where there is not room enough; and how often each was.

    `make` gives those of some columns.
    """
    redraws, wrong = np.zeros(count, np.int64), np.arange(count)
    draft = make(wrong)
    wrong = wrong[~feasible(plan, draft)]
    while len(wrong):
        redraws[wrong] += 1
        if redraws.max() > _REDRAWS:
            raise _hopeless(plan)
        again = make(wrong)
        draft.put(wrong, again)
        wrong = wrong[~feasible(plan, again)]
    return draft, redraws


def until_settled(plan: Plan, count: int, attempt: Callable[[Ints], tuple[AnyRows, Bools]]) -> AnyRows:
    """All questions, made again where that failed: `attempt` makes those of some columns and says which have."""
    columns = np.arange(count)
    found, failed = attempt(columns)
    for _ in range(_REDRAWS):
        columns = columns[failed]
        if not len(columns):
            return found
        part, failed = attempt(columns)
        found.put(columns, part)
    raise _hopeless(plan)


def _hopeless(plan: Plan) -> UsageError:
    return UsageError(
        f"gcog: a question of depth {plan.depth} with {plan.distractors[1]} distractors found no room in "
        f"{_REDRAWS} tries; take fewer distractors, a larger grid or more values per feature"
    )
