"""How far one gets without doing the task, worked out from the design."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import factorial, sqrt

import numpy as np

from unseen.tasks.gcog.plan import Plan
from unseen.tasks.gcog.schema import Schema

_ERRORS = 4
"""Standard errors by which a finite pool of questions may be off."""

Shares = dict[str, float]
"""How often paths end at each operator."""


def leaf_shares(plans: Sequence[Plan]) -> Shares:
    """How often paths end at each operator, if plans and groups are equally frequent."""
    found: Shares = {}
    for plan in plans:
        leaves = plan.operators_in_tree // 2
        places = [names for group in plan.groups for names in group[leaves:]]
        for names in places:
            for name in names:
                found[name] = found.get(name, 0) + 1 / (len(plans) * len(places) * len(names))
    return found


def operator_chance(schema: Schema, shares: Shares) -> float:
    """Accuracy of who knows the operator and guesses among its answers: 33.11 % for the eight operators.

    >>> from unseen.tasks.gcog.operators import STANDARD
    >>> round(operator_chance(Schema(), {name: 1 / 8 for name in STANDARD}), 6)
    0.331058
    """
    sizes = {"boolean": 2, "location": schema.cells} | {name: len(values) for name, values in schema.features}
    return sum(share / sizes[schema.operators[name].answer] for name, share in shares.items())


def true_share(schema: Schema, shares: Shares) -> float:
    """How often the answer is True, and how often it is False, if booleans are balanced."""
    return sum(share for name, share in shares.items() if schema.operators[name].boolean) / 2


def count_accuracy(distractors: tuple[int, int], constant_count: bool) -> float:
    """How often the number of objects tells whether one more than the distractors is there.

    >>> count_accuracy((1, 5), False), count_accuracy((5, 5), False), count_accuracy((1, 5), True)
    (0.6, 1.0, 0.5)
    """
    return 0.5 if constant_count else 0.5 + 0.5 / (distractors[1] - distractors[0] + 1)


@lru_cache(maxsize=256)
def commonest_share(values: int, objects: int) -> float:
    """The expected share of the commonest value among objects whose values are uniform and independent.

    >>> round(commonest_share(10, 2), 6)  # one in ten pairs is equal
    0.55
    """
    expected, below = 0.0, 0.0
    for most in range(1, objects + 1):
        # Ways to have every value at most that often: a product of exponential generating functions.
        one = np.array([1 / factorial(n) if n <= most else 0.0 for n in range(objects + 1)])
        ways = np.ones(1)
        for _ in range(values):
            ways = np.convolve(ways, one)[: objects + 1]
        at_most = float(ways[-1] * factorial(objects) / values**objects)
        expected, below = expected + most * (at_most - below), at_most
    return expected / objects


@lru_cache(maxsize=64)
def blind_accuracy(plan: Plan) -> float | None:
    """Accuracy of who knows the question and not the grid; None for operators it has not been worked out for.

    All leaves are equally likely. Each boolean among them gives True and False a half each, each Get operator the
    values that are free, which excludes those by which other Get operators find their objects.

    >>> from unseen.tasks.gcog.splits import all_operators
    >>> plan = Plan(Schema(), 3, all_operators(Schema(), 3), (1, 5))
    >>> round(blind_accuracy(plan), 4)
    0.3187
    """
    schema, leaves = plan.schema, plan.operators_in_tree // 2
    if any(schema.operators[name].kind in ("is", "same") for name in plan.operator_names):
        return None
    kinds = ["boolean", "location", *(name for name, _ in schema.features)]
    total = 0.0
    for group in plan.groups:
        states: dict[tuple[int, ...], float] = {(0,) * len(kinds): 1.0}
        for names in group[leaves:]:
            chances = Counter(kinds.index(schema.operators[name].answer) for name in names)
            grown: dict[tuple[int, ...], float] = {}
            for state, chance in states.items():
                for kind, many in chances.items():
                    after = (*state[:kind], state[kind] + 1, *state[kind + 1 :])
                    grown[after] = grown.get(after, 0.0) + chance * many / len(names)
            states = grown
        guesses = [(chance, _best_guess(schema, state)) for state, chance in states.items()]
        possible = [(chance, guess) for chance, guess in guesses if guess is not None]
        total += sum(chance * guess for chance, guess in possible) / sum(chance for chance, _ in possible)
    return total / len(plan.groups)


def _best_guess(schema: Schema, leaves: tuple[int, ...]) -> float | None:
    """The chance of the likeliest answer, given how many leaves are boolean, GetLocation and Get of each feature.

    None if there are not enough values for so many Get operators: such questions are not asked.
    """
    booleans, locations, *gets = leaves
    free = [size - _keyed(schema, gets, feature) for feature, size in enumerate(schema.sizes)]
    if min(free) < 1:
        return None
    return max(booleans / 2, locations / schema.cells, *(g / f for g, f in zip(gets, free, strict=True))) / sum(leaves)


def _keyed(schema: Schema, gets: Sequence[int], feature: int) -> int:
    """How many values of a feature are named by Get operators."""
    return sum(
        many
        for about, many in enumerate(gets)
        if schema.operators[f"Get{schema.features[about][0].capitalize()}"].key == feature
    )


def within_pool(share: float, pool: int) -> float:
    """What a share may come to by chance among so many questions.

    >>> round(within_pool(0.3125, 1000), 4), within_pool(0.3125, 1)
    (0.3711, 1.0)
    """
    return min(1.0, share + _ERRORS * sqrt(share * (1 - share) / pool))


def pool_error(shares: Sequence[float], pool: int) -> float:
    """By how much the truth of operators may be off, all together, if each has its share of so many questions."""
    return _ERRORS * sqrt(sum(0.25 / (share * pool) for share in shares))


def generic_ceilings(plans: Sequence[Plan], released: bool, pool: int | None = None) -> dict[str, float]:
    """What the generic baselines of `verify` may reach, averaged over equally frequent plans.

    Always True is right as often as the answer is a boolean that holds. A single feature may tell the number of
    objects, which tells something about Exist; a bag of tokens also which values are common, among them the answer.
    Of a pool of questions they may know some by heart.
    """
    found = {"majority": 0.0, "single-feature": 0.0, "bag-of-tokens": 0.0}
    for plan in plans:
        operators = plan.schema.operators
        for name, share in leaf_shares([plan]).items():
            boolean, weight = operators[name].boolean, share / len(plans)
            found["majority"] += weight * _often_true(name, released) if boolean else 0
            found["single-feature"] += weight * _guess_boolean(plan, name, released) if boolean else 0
            found["bag-of-tokens"] += weight * (
                _guess_boolean(plan, name, released) if boolean else _guess_value(plan, name)
            )
    if pool is not None:
        return {"majority": within_pool(found["majority"], pool), "single-feature": 1.0, "bag-of-tokens": 1.0}
    return found


def _often_true(name: str, released: bool) -> float:
    """How often a boolean operator answers True; what the release leaves to chance, at most."""
    return 0.65 if released and name == "Exist" else 0.5


def _guess_boolean(plan: Plan, name: str, released: bool) -> float:
    """How often who knows the number of objects, and no more, guesses a boolean; for the release at most."""
    if plan.schema.operators[name].kind in ("exist", "combine"):
        return 1.0 if released else count_accuracy(plan.distractors, plan.constant_count)
    if released and name.startswith("Product"):
        return 0.75 if plan.depth == 1 else 0.95
    return 0.5


def _guess_value(plan: Plan, name: str) -> float:
    """How often who knows which values are on the grid, and no more, guesses a location or a value, at most."""
    schema, answer, (low, high) = plan.schema, plan.schema.operators[name].answer, plan.distractors
    if answer == "location":
        return 1 / schema.cells
    values = len(dict(schema.features)[answer])
    return sum(commonest_share(values, 1 + n) for n in range(low, high + 1)) / (high - low + 1)
