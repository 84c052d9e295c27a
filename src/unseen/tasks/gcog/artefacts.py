"""Regularities that do not belong to the task, each as a number measured on examples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

import numpy as np

from unseen.randomness import Ints
from unseen.tasks.base import Artefact, Examples
from unseen.tasks.gcog.ceilings import leaf_shares, pool_error
from unseen.tasks.gcog.lookups import lookups
from unseen.tasks.gcog.plan import Plan
from unseen.tasks.gcog.schema import Schema
from unseen.tasks.gcog.tokens import Tokens

Read = Callable[[Examples], Tokens]


def task_artefacts(plans: Sequence[Plan], read: Read, released: bool, pool: int | None) -> list[Artefact]:
    """What to measure on a condition, declared known or not; `pool`: how many questions there are, None for all."""
    schema, shares = plans[0].schema, leaf_shares(plans)
    products = [shares[name] for name in ("ProductEven", "ProductOdd") if name in shares]
    found = [
        Artefact(
            "ambiguity",
            "share of questions with an operator that several objects fit, on the path or not",
            partial(ambiguous_share, schema, read),
            0.0,
            0.0,
            released and any(plan.depth > 1 for plan in plans),
        ),
        Artefact(
            "products",
            "how much more often ProductEven answers True than ProductOdd",
            product_imbalance,
            0.0,
            0.0 if pool is None else pool_error(products, pool),
            released,
        ),
        Artefact(
            "no distractors",
            "share of grids without a distractor",
            no_distractors,
            0.0,
            0.0,
            released or any(plan.distractors[0] == 0 for plan in plans),
        ),
    ]
    if schema != Schema() or any(plan.depth > 7 or plan.distractors[1] > 45 or plan.two for plan in plans):
        found.append(
            Artefact(
                "redraws",
                "share of questions drawn again for want of room, which makes some operators rarer",
                redrawn,
                0.0,
                0.01,
                True,
            )
        )
    # Where values are few or booleans are not balanced, a question tells something about its answer anyway.
    if pool is not None or (schema == Schema() and not released):
        found.append(
            Artefact(
                "pool",
                "how much more often than by guessing one is right who answers like most other "
                "examples with the same question",
                partial(by_heart, schema, read),
                0.0,
                0.05,
                pool is not None,
            )
        )
    return found


def ambiguous(schema: Schema, tokens: Tokens) -> Ints:
    """How many operators of each question, (B,), have several objects to choose from, on the path or not.

    >>> one = np.zeros((1, 2, 8), np.int64)
    >>> one[0, 0, :4] = 3, 5, 0, 1  # GetColor of e
    >>> grid = np.zeros((1, 100, 2), np.uint8)
    >>> grid[0, [7, 9]] = [[5, 1], [5, 2]]  # a red and a green e
    >>> ambiguous(Schema(), Tokens(one, grid)).tolist()
    [1]
    """
    found = np.zeros(tokens.rule.shape[:2], np.int64)
    key = lookups(schema).key[np.minimum(tokens.rule[:, :, 0], max(schema.by_code))]
    for feature in range(len(schema.features)):
        row, place = np.nonzero(key == feature)
        for start in (1, len(schema.features) + 2):
            value = tokens.rule[row, place, start + feature]
            found[row, place] += ((tokens.grid[row, :, feature] == value[:, None]).sum(axis=1) > 1) & (value > 0)
    return np.asarray(found.sum(axis=1))


def ambiguous_share(schema: Schema, read: Read, examples: Examples) -> float:
    """The share of questions in which some operator has several objects to choose from."""
    return float((ambiguous(schema, read(examples)) > 0).mean())


def product_imbalance(examples: Examples) -> float:
    """How much more often ProductEven answers True than ProductOdd does, where a path ends at one of them."""
    true, operator = examples.targets == 0, examples.factors["operator"]
    shares = [
        true[operator == name].mean() if (operator == name).any() else 0.5 for name in ("ProductEven", "ProductOdd")
    ]
    return float(shares[0] - shares[1])


def no_distractors(examples: Examples) -> float:
    """The share of grids without a distractor."""
    return float((examples.factors["distractors"] == 0).mean())


def redrawn(examples: Examples) -> float:
    """The share of questions that had to be drawn again for want of room."""
    return float((examples.factors["redraws"] > 0).mean())


def by_heart(schema: Schema, read: Read, examples: Examples) -> float:
    """How much more often than by guessing one is right who answers like most other examples with the same question.

    Whoever meets a question for the first time guesses; so does, in effect, whoever meets it with unrelated grids.
    """
    rule, every, targets = read(examples).rule, np.arange(len(examples)), examples.targets
    question = np.unique(rule.reshape(len(rule), -1), axis=0, return_inverse=True)[1].reshape(-1)
    counts = np.zeros((len(rule), len(schema.answers)), np.int32)
    np.add.at(counts, (question, targets), 1)
    others = counts[question]
    others[every, targets] -= 1
    kinds = schema.answer_kinds
    guess = 1 / (kinds[:, None] == kinds[None]).sum(axis=1)[targets]
    return float(np.where(others.any(axis=1), (others.argmax(axis=1) == targets) - guess, 0).mean())


def leaked(trained: Collection[tuple[str, tuple[int, ...]]], examples: Examples) -> float:
    """The share of questions whose operator was trained with what it names."""
    asked = zip(examples.factors["operator"].tolist(), map(tuple, examples.factors["object"].tolist()), strict=True)
    return float(np.mean([question in trained for question in asked]))
