"""The informed baselines: rules that answer without doing the task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from unseen.randomness import Floats, Ints
from unseen.tasks.base import Examples, Shortcut
from unseen.tasks.gcog.artefacts import Read
from unseen.tasks.gcog.ceilings import (
    blind_accuracy,
    count_accuracy,
    leaf_shares,
    operator_chance,
    true_share,
    within_pool,
)
from unseen.tasks.gcog.operators import CONDITIONAL
from unseen.tasks.gcog.plan import Plan
from unseen.tasks.gcog.schema import Schema


def task_shortcuts(plans: Sequence[Plan], read: Read, released: bool, pool: int | None = None) -> list[Shortcut]:
    """The informed baselines of a condition, weakest first; `pool`: how many questions there are, None for all."""
    schema, shares = plans[0].schema, leaf_shares(plans)
    chance = operator_chance(schema, shares)
    blind = [blind_accuracy(plan) for plan in plans]
    known = [value for value in blind if value is not None]
    if released:  # one-object products are true in 3 of 4 cells; of trees there is no closed form
        single = all(plan.depth == 1 for plan in plans)
        products = sum(share for name, share in shares.items() if name.startswith("Product"))
        constant = chance + products / 4 + 0.15 * shares.get("Exist", 0) if single else None
    else:
        constant = chance
    found = [
        Shortcut("instruction-blind", _always_true, None if released else true_share(schema, shares)),
        Shortcut("constant per operator", partial(_constants, schema), constant),
        Shortcut(
            "stimulus-blind",
            partial(_blind, schema, read),
            sum(known) / len(plans) if len(known) == len(plans) and not released else None,
        ),
    ]
    if all(plan.depth == 1 for plan in plans) and "Exist" in shares:
        ranges = {(plan.distractors, plan.constant_count) for plan in plans}
        ((distractors, constant_count),) = ranges
        gain = shares["Exist"] * (count_accuracy(distractors, constant_count) - 0.5)
        found.append(
            Shortcut(
                "count-only", partial(_count_only, schema, read, distractors[0]), None if released else chance + gain
            )
        )
    if pool is not None:
        return [
            each if each.ceiling is None else replace(each, ceiling=within_pool(each.ceiling, pool)) for each in found
        ]
    return found


def _always_true(examples: Examples) -> Ints:
    return np.zeros(len(examples), np.int64)


def _constants(schema: Schema, examples: Examples) -> Ints:
    """The likeliest answer of the operator that the path ends at; odd products are rare where nobody balances them."""
    answers = {
        name: {"boolean": 0, "location": 2}.get(operator.answer, schema.value_answer(operator.about or 0, 1))
        for name, operator in schema.operators.items()
    } | {"ProductOdd": 1}
    return np.array([answers[name] for name in examples.factors["operator"].tolist()])


def _count_only(schema: Schema, read: Read, fewest: int, examples: Examples) -> Ints:
    """True for an Exist if there are more objects than the fewest distractors; the constants for the rest."""
    objects = read(examples).grid.any(axis=2).sum(axis=1)
    exist = examples.factors["operator"] == "Exist"
    return np.where(exist, np.where(objects > fewest, 0, 1), _constants(schema, examples))


def _blind(schema: Schema, read: Read, examples: Examples) -> Ints:
    """The likeliest answer to each question, whatever the grid: see `blind_accuracy`."""
    rule = read(examples).rule
    operator, count = rule[:, :, 0], len(rule)
    leaves = (operator == CONDITIONAL).sum(axis=1) + 1
    end = (operator > 0).sum(axis=1)
    place = np.arange(rule.shape[1])
    leaf = (place >= (end - leaves)[:, None]) & (place < end[:, None])
    chances: list[Floats] = []
    classes: list[Ints] = []

    def asks(name: str) -> Ints:
        return np.asarray((leaf & (operator == schema.operators[name].code)).sum(axis=1))

    booleans = [name for name, known in schema.operators.items() if known.boolean]
    chances.append(sum((asks(name) for name in booleans), np.zeros(count)) / 2)
    classes.append(np.zeros(count, np.int64))
    chances.append(asks("GetLocation") / schema.cells)
    classes.append(np.full(count, 2))
    for feature, (name, values) in enumerate(schema.features):
        named = np.zeros((count, len(values) + 1), np.bool_)
        named[:, 0] = True
        for known in schema.operators.values():
            if known.key == feature:
                row, where = np.nonzero(operator == known.code)
                named[row, rule[row, where, 1 + feature]] = True
        free = named.argmin(axis=1)
        chances.append(asks(f"Get{name.capitalize()}") / (len(values) + 1 - named.sum(axis=1)))
        classes.append(schema.value_answer(feature, free))
    best = np.argmax(np.stack(chances), axis=0)
    return np.asarray(np.stack(classes)[best, np.arange(count)])
