"""Audits of gCOG data for `unseen verify`: shortcuts, ceilings that follow from the design, and artefacts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from math import sqrt

import numpy as np

from unseen.randomness import Floats, Ints
from unseen.tasks.base import Artefact, Examples, Shortcut
from unseen.tasks.gcog.encode import GcogTokens
from unseen.tasks.gcog.plan import QuestionPlan
from unseen.tasks.gcog.schema import CONDITIONAL, Schema, get_operator_arrays
from unseen.tasks.verify.baselines import expect_commonest

ReadTokens = Callable[[Examples], GcogTokens]
LeafShares = dict[str, float]
"""How often paths end at each operator."""

_STANDARD_ERRORS = 4
"""Standard errors by which a finite pool of questions may deviate from its expectation."""

# ------------------------------------------------------------------------------------- accuracies without doing the task


def compute_leaf_shares(plans: Sequence[QuestionPlan]) -> LeafShares:
    """Return how often paths end at each operator if plans and groups are equally likely."""
    shares: LeafShares = {}
    for plan in plans:
        leaves: list[tuple[str, ...]] = []
        for group in plan.groups:
            leaves += group[plan.leaf_start :]
        for names in leaves:
            for name in names:
                shares[name] = shares.get(name, 0) + 1 / (len(plans) * len(leaves) * len(names))
    return shares


def compute_operator_chance(schema: Schema, shares: LeafShares) -> float:
    """Return the accuracy of guessing among the answers of the operator: 33.11 % for the paper's eight operators.

    >>> from unseen.tasks.gcog.schema import STANDARD
    >>> round(compute_operator_chance(Schema(), {name: 1 / 8 for name in STANDARD}), 6)
    0.331058
    """
    sizes = Counter(schema.answer_kinds.tolist())
    return sum(share / sizes[schema.operators[name].answer] for name, share in shares.items())


def compute_true_share(schema: Schema, shares: LeafShares) -> float:
    """Return how often the answer is True if booleans are balanced."""
    return sum(share for name, share in shares.items() if schema.operators[name].boolean) / 2


def compute_count_accuracy(distractors: tuple[int, int], constant_count: bool) -> float:
    """Return how often the number of objects reveals whether there is one object besides the distractors.

    >>> compute_count_accuracy((1, 5), False), compute_count_accuracy((5, 5), False), compute_count_accuracy((1, 5), True)
    (0.6, 1.0, 0.5)
    """
    return 0.5 if constant_count else 0.5 + 0.5 / (distractors[1] - distractors[0] + 1)


@lru_cache(maxsize=64)
def compute_blind_accuracy(plan: QuestionPlan) -> float | None:
    """Return the accuracy of the best answer to each question without the grid; None if it is not worked out.

    All leaves are equally likely. A boolean leaf gives True and False one half each. A Get leaf gives equal shares to
    the free values, which exclude those by which the Get operators find their objects.

    >>> from unseen.tasks.gcog.plan import allow_all_operators
    >>> plan = QuestionPlan(Schema(), 3, allow_all_operators(Schema(), 3), (1, 5))
    >>> round(compute_blind_accuracy(plan), 4)
    0.3187
    """
    schema = plan.schema
    if any(schema.operators[name].category in ("is", "same") for name in plan.operator_names):
        return None
    kinds = ["boolean", "location", *(name for name, _ in schema.features)]
    total = 0.0
    for group in plan.groups:
        # The distribution of how many leaves have each kind of answer, leaf by leaf.
        states: dict[tuple[int, ...], float] = {(0,) * len(kinds): 1.0}
        for names in group[plan.leaf_start :]:
            operators_of_kind = Counter(kinds.index(schema.operators[name].answer) for name in names)
            extended: dict[tuple[int, ...], float] = {}
            for state, probability in states.items():
                for kind_index, operators in operators_of_kind.items():
                    counts = list(state)
                    counts[kind_index] += 1
                    new_state = tuple(counts)
                    extended[new_state] = extended.get(new_state, 0.0) + probability * operators / len(names)
            states = extended
        correct = 0.0
        possible = 0.0
        for state, probability in states.items():
            guess = _compute_best_guess(schema, state)
            if guess is not None:
                correct += probability * guess
                possible += probability
        total += correct / possible
    return total / len(plan.groups)


def _compute_best_guess(schema: Schema, leaves: tuple[int, ...]) -> float | None:
    """Return the probability of the likeliest answer for numbers of boolean, location and Get leaves.

    None if there are fewer values than Get operators need; such questions are never drawn.
    """
    booleans, locations, *gets = leaves
    free = list(schema.sizes)
    for about, count in enumerate(gets):
        key = schema.operators[f"Get{schema.features[about][0].capitalize()}"].key
        assert key is not None
        free[key] -= count
    if min(free) < 1:
        return None
    of_values = [count / values for count, values in zip(gets, free, strict=True)]
    return max(booleans / 2, locations / schema.cells, *of_values) / sum(leaves)


def bound_in_pool(share: float, pool: int) -> float:
    """Return the highest share that a pool of this many questions may have by chance.

    >>> round(bound_in_pool(0.3125, 1000), 4), bound_in_pool(0.3125, 1)
    (0.3711, 1.0)
    """
    return min(1.0, share + _STANDARD_ERRORS * sqrt(share * (1 - share) / pool))


def compute_ceilings(plans: Sequence[QuestionPlan], released: bool, pool: int | None = None) -> dict[str, float]:
    """Return the accuracies that the generic baselines of `verify` may reach, averaged over equally likely plans.

    The majority baseline is right if the answer is True. A single feature may reveal the number of objects, which
    helps with Exist. A bag of tokens also reveals which values are common, and the answer is among them. In a pool,
    both may memorise questions.
    """
    ceilings = {"majority": 0.0, "single-feature": 0.0, "bag-of-tokens": 0.0}
    for plan in plans:
        for name, share in compute_leaf_shares([plan]).items():
            weight = share / len(plans)
            if plan.schema.operators[name].boolean:
                guess = _compute_boolean_guess(plan, name, released)
                # The release leaves it to chance whether a distractor equals the absent object; 0.65 is a bound.
                ceilings["majority"] += weight * (0.65 if released and name == "Exist" else 0.5)
                ceilings["single-feature"] += weight * guess
                ceilings["bag-of-tokens"] += weight * guess
            else:
                ceilings["bag-of-tokens"] += weight * _compute_value_guess(plan, name)
    if pool is not None:
        return {"majority": bound_in_pool(ceilings["majority"], pool), "single-feature": 1.0, "bag-of-tokens": 1.0}
    return ceilings


def _compute_boolean_guess(plan: QuestionPlan, name: str, released: bool) -> float:
    """Return how often the number of objects reveals a boolean; for the release, an upper bound."""
    operator = plan.schema.operators[name]
    if operator.category in ("exist", "combine"):
        return 1.0 if released else compute_count_accuracy(plan.distractors, plan.constant_count)
    if released and operator.quantity == "product":
        # An odd product needs odd factors only: one cell in 4 or, for two objects, one pair in 16.
        return 0.75 if plan.depth == 1 else 0.95
    return 0.5


def _compute_value_guess(plan: QuestionPlan, name: str) -> float:
    """Return an upper bound on how often the values on the grid reveal a location or a value."""
    answer = plan.schema.operators[name].answer
    if answer == "location":
        return 1 / plan.schema.cells
    values = len(dict(plan.schema.features)[answer])
    low, high = plan.distractors
    return sum(expect_commonest(values, 1 + n) for n in range(low, high + 1)) / (high - low + 1)


# ------------------------------------------------------------------------------------------------------------- shortcuts


def list_shortcuts(
    plans: Sequence[QuestionPlan], read_tokens: ReadTokens, released: bool, pool: int | None = None
) -> list[Shortcut]:
    """Return the shortcut baselines of a split, weakest first; `pool` is the number of questions, None if endless."""
    schema = plans[0].schema
    shares = compute_leaf_shares(plans)
    chance = compute_operator_chance(schema, shares)
    single_operators = all(plan.depth == 1 for plan in plans)
    true_ceiling: float | None = None
    constant_ceiling: float | None = None
    blind_ceiling: float | None = None
    if not released:
        true_ceiling = compute_true_share(schema, shares)
        constant_ceiling = chance
        accuracies = [compute_blind_accuracy(plan) for plan in plans]
        available = [accuracy for accuracy in accuracies if accuracy is not None]
        if len(available) == len(plans):
            blind_ceiling = sum(available) / len(plans)
    elif single_operators:
        # Products about one object are even in 3 of 4 cells. For trees there is no closed form.
        products = sum(share for name, share in shares.items() if schema.operators[name].quantity == "product")
        constant_ceiling = chance + products / 4 + 0.15 * shares.get("Exist", 0)
    shortcuts = [
        Shortcut("instruction-blind", _answer_true, true_ceiling),
        Shortcut("constant per operator", partial(_answer_constant, schema), constant_ceiling),
        Shortcut("stimulus-blind", partial(_answer_blindly, schema, read_tokens), blind_ceiling),
    ]
    if single_operators and "Exist" in shares:
        ((distractors, constant_count),) = {(plan.distractors, plan.constant_count) for plan in plans}
        gain = shares["Exist"] * (compute_count_accuracy(distractors, constant_count) - 0.5)
        answer = partial(_answer_by_count, schema, read_tokens, distractors[0])
        shortcuts.append(Shortcut("count-only", answer, None if released else chance + gain))
    if pool is None:
        return shortcuts
    bounded = []
    for shortcut in shortcuts:
        ceiling = None if shortcut.ceiling is None else bound_in_pool(shortcut.ceiling, pool)
        bounded.append(replace(shortcut, ceiling=ceiling))
    return bounded


def _answer_true(examples: Examples) -> Ints:
    return np.zeros(len(examples), np.int64)


def _answer_constant(schema: Schema, examples: Examples) -> Ints:
    """Return the likeliest answer of the operator at which the path ends: False for ProductOdd, else the first one."""
    answers: dict[str, int] = {}
    for name, operator in schema.operators.items():
        if operator.boolean:
            answers[name] = 1 if name == "ProductOdd" else 0
        else:
            answers[name] = 2 if operator.about is None else schema.value_answer(operator.about, 1)
    return np.array([answers[name] for name in examples.factors["operator"].tolist()])


def _answer_by_count(schema: Schema, read_tokens: ReadTokens, fewest: int, examples: Examples) -> Ints:
    """Answer an Exist with True if there are more objects than the fewest distractors; otherwise, with the constants."""
    objects = read_tokens(examples).grid.any(axis=2).sum(axis=1)
    exist = examples.factors["operator"] == "Exist"
    return np.where(exist, np.where(objects > fewest, 0, 1), _answer_constant(schema, examples))


def _answer_blindly(schema: Schema, read_tokens: ReadTokens, examples: Examples) -> Ints:
    """Return the likeliest answer to each question without the grid, see `compute_blind_accuracy`."""
    rule = read_tokens(examples).rule
    operator = rule[:, :, 0]
    count = len(rule)
    # Leaves are the last operators before the end token; there is one more of them than conditionals.
    leaves = (operator == CONDITIONAL).sum(axis=1) + 1
    stop = (operator > 0).sum(axis=1)
    position = np.arange(rule.shape[1])
    is_leaf = (position >= (stop - leaves)[:, None]) & (position < stop[:, None])

    def count_leaves(name: str) -> Ints:
        return np.asarray((is_leaf & (operator == schema.operators[name].code)).sum(axis=1))

    booleans = np.zeros(count)
    for name, entry in schema.operators.items():
        if entry.boolean:
            booleans += count_leaves(name)
    # The expected number of leaves with the likeliest answer of each kind, and the class of that answer.
    scores: list[Floats] = [booleans / 2, count_leaves("GetLocation") / schema.cells]
    classes: list[Ints] = [np.zeros(count, np.int64), np.full(count, 2)]
    for feature, (name, values) in enumerate(schema.features):
        excluded = np.zeros((count, len(values) + 1), np.bool_)
        excluded[:, 0] = True
        for entry in schema.operators.values():
            if entry.key == feature:
                row, token = np.nonzero(operator == entry.code)
                excluded[row, rule[row, token, 1 + feature]] = True
        first_free = excluded.argmin(axis=1)
        scores.append(count_leaves(f"Get{name.capitalize()}") / (len(values) + 1 - excluded.sum(axis=1)))
        classes.append(schema.value_answer(feature, first_free))
    best = np.argmax(np.stack(scores), axis=0)
    return np.asarray(np.stack(classes)[best, np.arange(count)])


# ------------------------------------------------------------------------------------------------------------- artefacts


def list_artefacts(
    plans: Sequence[QuestionPlan], read_tokens: ReadTokens, released: bool, pool: int | None
) -> list[Artefact]:
    """Return what to measure on a split; `pool` is the number of questions, None if endless."""
    schema = plans[0].schema
    shares = compute_leaf_shares(plans)
    product_tolerance = 0.0
    if pool is not None:
        # The sampling error of a difference between two shares of True.
        counts = [shares[name] * pool for name in ("ProductEven", "ProductOdd") if name in shares]
        product_tolerance = _STANDARD_ERRORS * sqrt(sum(0.25 / count for count in counts))
    artefacts = [
        Artefact(
            "ambiguity",
            "share of questions with an operator that several objects match, on the path or not",
            lambda examples: float((count_ambiguous(schema, read_tokens(examples)) > 0).mean()),
            absent=0.0,
            tolerance=0.0,
            known=released and any(plan.depth > 1 for plan in plans),
        ),
        Artefact(
            "products",
            "how much more often ProductEven answers True than ProductOdd",
            measure_product_imbalance,
            absent=0.0,
            tolerance=product_tolerance,
            known=released,
        ),
        Artefact(
            "no distractors",
            "share of grids without a distractor",
            lambda examples: float((examples.factors["distractors"] == 0).mean()),
            absent=0.0,
            tolerance=0.0,
            known=released or any(plan.distractors[0] == 0 for plan in plans),
        ),
    ]
    if schema != Schema() or any(plan.depth > 7 or plan.distractors[1] > 45 or plan.two for plan in plans):
        artefacts.append(
            Artefact(
                "redraws",
                "share of questions drawn again for lack of room, which makes some operators rarer",
                lambda examples: float((examples.factors["redraws"] > 0).mean()),
                absent=0.0,
                tolerance=0.01,
                known=True,
            )
        )
    # With few values or unbalanced booleans, a question always says something about its answer.
    if pool is not None or (schema == Schema() and not released):
        artefacts.append(
            Artefact(
                "pool",
                "gain over guessing from answering like most other examples with the same question",
                partial(measure_memorization, schema, read_tokens),
                absent=0.0,
                tolerance=0.05,
                known=pool is not None,
            )
        )
    return artefacts


def count_ambiguous(schema: Schema, tokens: GcogTokens) -> Ints:
    """Return how many operators of each question, (B,), several objects match, on the path or not.

    >>> rule = np.zeros((1, 2, 8), np.int64)
    >>> rule[0, 0, :4] = 3, 5, 0, 1  # GetColor of e
    >>> grid = np.zeros((1, 100, 2), np.uint8)
    >>> grid[0, [7, 9]] = [[5, 1], [5, 2]]  # a red and a green e
    >>> count_ambiguous(Schema(), GcogTokens(rule, grid)).tolist()
    [1]
    """
    ambiguous = np.zeros(tokens.rule.shape[:2], np.int64)
    # Conditionals and padding have no key (−1).
    key = get_operator_arrays(schema).key[tokens.rule[:, :, 0]]
    for feature in range(len(schema.features)):
        row, token = np.nonzero(key == feature)
        for start in (1, len(schema.features) + 2):
            value = tokens.rule[row, token, start + feature]
            matching = (tokens.grid[row, :, feature] == value[:, None]).sum(axis=1)
            ambiguous[row, token] += (matching > 1) & (value > 0)
    return np.asarray(ambiguous.sum(axis=1))


def measure_product_imbalance(examples: Examples) -> float:
    """Return how much more often ProductEven answers True than ProductOdd, among paths that end at one of them."""

    def share_true(name: str) -> float:
        selected = examples.factors["operator"] == name
        return float((examples.targets[selected] == 0).mean()) if selected.any() else 0.5

    return share_true("ProductEven") - share_true("ProductOdd")


def measure_memorization(schema: Schema, read_tokens: ReadTokens, examples: Examples) -> float:
    """Return the gain over guessing from answering like most other examples with the same question.

    A question that occurs once is guessed.
    """
    rule = read_tokens(examples).rule
    targets = examples.targets
    question = np.unique(rule.reshape(len(rule), -1), axis=0, return_inverse=True)[1].reshape(-1)
    # How often each question has each answer; an example's own answer is not counted.
    counts = np.zeros((len(rule), len(schema.answers)), np.int32)
    np.add.at(counts, (question, targets), 1)
    others = counts[question]
    others[np.arange(len(examples)), targets] -= 1
    kinds = schema.answer_kinds
    guess = 1 / (kinds[:, None] == kinds[None]).sum(axis=1)[targets]
    gain = (others.argmax(axis=1) == targets) - guess
    return float(np.where(others.any(axis=1), gain, 0).mean())


def measure_leak(trained: Collection[tuple[str, tuple[int, ...]]], examples: Examples) -> float:
    """Return the share of questions whose operator was trained with the same stated values."""
    operators = examples.factors["operator"].tolist()
    stated = map(tuple, examples.factors["object"].tolist())
    return float(np.mean([instruction in trained for instruction in zip(operators, stated, strict=True)]))
