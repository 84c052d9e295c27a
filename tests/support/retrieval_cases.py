"""Ways to make and take apart retrieval examples, for several test files."""

from __future__ import annotations

import numpy as np

from unseen.tasks import task
from unseen.tasks.base import Examples
from unseen.tasks.retrieval.formulas import columns_of
from unseen.tasks.retrieval.task import Retrieval

KINDS = ["T1", "T2", "T3", "T4", "T5", "T6", "T7"]
PRESETS = ["clean", "released", "paper"]
LENGTHS = [2, 5, 10, 30]


def make(kind: str, **options: object) -> Retrieval:
    retrieval = task(f"retrieval/{kind}", train_size=None, evaluation_size=None, **options)
    assert isinstance(retrieval, Retrieval)
    return retrieval


def answers(examples: Examples) -> np.ndarray:
    return examples.targets[:, 0] == 1


def chosen_columns(examples: Examples) -> np.ndarray:
    """The activity of the chosen pair's features, (B, 2, n)."""
    relevant, chosen = examples.factors["relevant"], examples.factors["chosen"]
    pair = relevant[np.arange(len(examples))[:, None], 2 * chosen[:, None] + np.arange(min(2, relevant.shape[1]))]
    return columns_of(examples.inputs["sequence"], pair)


def other_features(examples: Examples) -> np.ndarray:
    relevant, chosen = examples.factors["relevant"], examples.factors["chosen"]
    return np.where(chosen[:, None] == 0, relevant[:, 2:], relevant[:, :2])


def within(share: float, expected: float, count: int) -> bool:
    """Within four standard errors; a certain share must be exact."""
    return abs(share - expected) <= 4 * np.sqrt(expected * (1 - expected) / count)
