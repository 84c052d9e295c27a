"""Regularities that do not belong to the task, each as a number measured on examples."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from unseen.randomness import Ints
from unseen.tasks.base import Examples
from unseen.tasks.gcog.lookups import lookups
from unseen.tasks.gcog.schema import Schema
from unseen.tasks.gcog.tokens import Tokens

Read = Callable[[Examples], Tokens]


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
    shares = [true[operator == name].mean() if (operator == name).any() else 0.5
              for name in ("ProductEven", "ProductOdd")]
    return float(shares[0] - shares[1])


def no_distractors(examples: Examples) -> float:
    """The share of grids without a distractor."""
    return float((examples.factors["distractors"] == 0).mean())


def redrawn(examples: Examples) -> float:
    """The share of questions that had to be drawn again for want of room."""
    return float((examples.factors["redraws"] > 0).mean())


def leaked(trained: Collection[tuple[str, tuple[int, ...]]], examples: Examples) -> float:
    """The share of questions whose operator was trained with what it names."""
    asked = zip(examples.factors["operator"].tolist(), map(tuple, examples.factors["object"].tolist()), strict=True)
    return float(np.mean([question in trained for question in asked]))
