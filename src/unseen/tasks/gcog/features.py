"""Which features objects have: exclusive values where an operator goes by one feature, distinct objects elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseen.randomness import Bools, Draws, Ints
from unseen.tasks.gcog.distinct import draw_distinct, shuffled
from unseen.tasks.gcog.lookups import lookups
from unseen.tasks.gcog.plan import Plan
from unseen.tasks.gcog.records import Codes


@dataclass(frozen=True)
class Draft:
    """Questions before their objects are known: K operators (K, B), each about one object or two, present or not.

    `present` (K, 2, B); `truth` (K, B) and `distractors` (B,) were drawn before the operators and stay what they are.
    """

    operator: Ints
    two: Bools
    present: Bools
    truth: Bools
    distractors: Ints

    @property
    def used(self) -> Bools:
        """Which objects there are to ask about, (K, 2, B), present or not."""
        return np.stack([np.ones_like(self.two), self.two], axis=1)

    def put(self, columns: Ints, others: Draft) -> None:
        """Replace some questions by others."""
        for mine, theirs in ((self.operator, others.operator), (self.two, others.two), (self.present, others.present)):
            mine[..., columns] = theirs

    def take(self, columns: Ints) -> Draft:
        """Some of the questions."""
        return Draft(
            self.operator[:, columns],
            self.two[:, columns],
            self.present[..., columns],
            self.truth[:, columns],
            self.distractors[columns],
        )

    def extra(self, plan: Plan) -> Ints:
        """How many distractors there are in all, (B,)."""
        absent = (self.used & ~self.present).sum(axis=(0, 1)) if plan.constant_count else 0
        return np.asarray(self.distractors + absent)


@dataclass(frozen=True)
class Objects:
    """The codes of features: `first` and `second` objects of the operators (F, K, B), and `distractors` (F, D, B).

    `there` (D, B): which of the distractors there are; `named` (K, 2, F, B): what the questions name.
    """

    first: Codes
    second: Codes
    distractors: Codes
    there: Bools
    named: Codes


def exclusive_counts(plan: Plan, draft: Draft) -> list[Ints]:
    """How many values of each feature are exclusive to one object, (B,) each."""
    key = lookups(plan.schema).key[draft.operator]
    return [((key == f) * (1 + draft.two)).sum(axis=0) for f in range(len(plan.schema.features))]


def feasible(plan: Plan, draft: Draft) -> Bools:
    """Which questions, (B,), have enough features and cells for their objects and distractors."""
    schema, table, extra = plan.schema, lookups(plan.schema), draft.extra(plan)
    exclusive = exclusive_counts(plan, draft)
    needed = draft.used.sum(axis=(0, 1)) - sum(exclusive) + extra
    fits = np.asarray(draft.present.sum(axis=(0, 1)) + extra <= schema.cells)
    compares, box = (table.is_ | table.same)[draft.operator], np.ones_like(extra)
    for feature, (size, taken) in enumerate(zip(schema.sizes, exclusive, strict=True)):
        compared = (compares & (table.about[draft.operator] == feature)).any(axis=0)
        fits &= size - taken > compared  # at least one value is free, two where some may have to differ
        box *= np.maximum(size - taken, 0)
    return np.asarray(fits & (box >= needed))


def draw_features(plan: Plan, draft: Draft, draws: Draws) -> Objects:
    """The features of all objects of feasible questions.

    The values of a feature are shuffled; the first ones are exclusive, one for each object that is found by them. The
    others span a box of free combinations, from which all other objects and the distractors take different ones.
    """
    schema, (nodes, count), parts = plan.schema, draft.operator.shape, 1 + plan.two
    extra, columns = draft.extra(plan), np.arange(draft.operator.shape[1])
    there = np.arange(extra.max())[:, None] < extra
    used = draft.used[:, :parts].swapaxes(0, 1).reshape(parts * nodes, count)
    key = np.where(used, np.tile(lookups(schema).key[draft.operator], (parts, 1)), -1)
    exclusive = exclusive_counts(plan, draft)
    free = [size - taken for size, taken in zip(schema.sizes, exclusive, strict=True)]
    chosen = _restricted(plan, draft.operator[0], draws)
    indices = _free_values(free, key, np.concatenate([used & (key < 0), there]), chosen, draws)
    asked = _compare(plan, draft, indices, free, draws)
    values, named = np.empty((len(free), *indices[0].shape), np.uint8), np.zeros((nodes, 2, len(free), count), np.uint8)
    for feature, size in enumerate(schema.sizes):
        keyed = key == feature
        place = indices[feature] + exclusive[feature]
        place[: len(key)] = np.where(keyed, np.cumsum(keyed, axis=0) - 1, place[: len(key)])
        first = None if chosen is None else np.where(keyed[0], chosen, 0)
        pool = shuffled(count, size, int(exclusive[feature].max()), draws, first) + 1
        values[feature] = pool[columns, place]
        says = lookups(schema).names[feature][draft.operator]
        for part in range(parts):
            mine = slice(part * nodes, (part + 1) * nodes)
            named[:, part, feature] = values[feature, mine] * (used[mine] & says)
        if asked is not None:
            inquired = (lookups(schema).is_ & (lookups(schema).about == feature))[draft.operator]
            value = pool[columns, np.where(inquired, asked, 0) + exclusive[feature]]
            named[:, 0, feature] = np.where(inquired, value, named[:, 0, feature])
    return Objects(values[:, :nodes], values[:, nodes : len(key)], values[:, len(key) :], there, named)


def _restricted(plan: Plan, operator: Ints, draws: Draws) -> Ints | None:
    """What the first operator names, where that is restricted: the number of an object or of a value, (B,)."""
    if not plan.named:
        return None
    chosen, pick = np.zeros_like(operator), draws.uniform(len(operator))
    for name, numbers in plan.named:
        here = operator == plan.schema.operators[name].code
        chosen[here] = np.array(numbers)[(pick[here] * len(numbers)).astype(np.int64)]
    return chosen


def _free_values(free: list[Ints], key: Ints, wanted: Bools, chosen: Ints | None, draws: Draws) -> list[Ints]:
    """For each feature the number of a free value, (objects, B): all combinations that are wanted are different.

    Objects with an exclusive value, which makes them different anyway, draw their other values independently.
    """
    count, keyed = key.shape[1], key >= 0
    box = np.asarray(np.prod(free, axis=0))
    first = None if chosen is None else np.where(keyed[0], 0, chosen)
    number = draw_distinct(box, wanted, np.zeros((count, box.max()), np.bool_), draws, first)
    found = []
    for each in free:
        number, index = np.divmod(number, each)
        at = np.nonzero(keyed)
        index[at] = draws.integers(each[at[1]], len(at[1]))
        found.append(index)
    return found


def _compare(plan: Plan, draft: Draft, indices: list[Ints], free: list[Ints], draws: Draws) -> Ints | None:
    """Give the second objects of Same operators values that make them true or false, in place.

    For Is operators the value that is named, as the number of a free value, (K, B).
    """
    table, operator = lookups(plan.schema), draft.operator
    names = plan.operator_names
    if not any(plan.schema.operators[name].kind in ("is", "same") for name in names):
        return None
    nodes, asked = len(operator), np.zeros_like(operator)
    equal = draft.truth ^ table.not_same[operator]
    for feature, each in enumerate(free):
        here = table.about[operator] == feature
        index = indices[feature][:nodes]
        other = (index + 1 + draws.integers(np.maximum(each - 1, 1), operator.shape)) % each
        compared = np.where(equal, index, other)
        asked = np.where(here & table.is_[operator], compared, asked)
        if plan.two:
            second = indices[feature][nodes : 2 * nodes]
            second[:] = np.where(here & table.same[operator], compared, second)
    return asked
