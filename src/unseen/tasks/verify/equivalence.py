"""Equivalence: which examples compute a function that training already has, in the same form or in another."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Set
from dataclasses import dataclass

import numpy as np

from unseen.randomness import Bools
from unseen.tasks.base import DataSeed, Examples, Expressions, Task

TRAINING = 100_000
"""The most training examples with which a test example is compared."""
AT_ONCE = 10_000
"""The training examples that are drawn at once."""


@dataclass(frozen=True)
class Familiarity:
    """Of every example, whether training has its function in any form, and whether it has the very form.

    `training` is the number of training examples, and `complete` says whether they are the whole training set.
    """

    function: Bools
    form: Bools
    training: int
    complete: bool

    @property
    def new(self) -> float:
        """The share of examples whose function is not in training."""
        return float(1 - self.function.mean())

    @property
    def equivalent(self) -> float:
        """The share of examples whose function is in training, but only in other forms."""
        return float((self.function & ~self.form).mean())


@dataclass(frozen=True)
class TrainingFunctions:
    """The functions and forms of the training examples, how many examples there are, and whether those are all."""

    functions: Set[Hashable]
    forms: Set[Hashable]
    training: int
    complete: bool

    def compare(self, expressions: Expressions) -> Familiarity:
        """Which of these expressions training has."""
        return Familiarity(
            np.array([function in self.functions for function in expressions.functions]),
            np.array([form in self.forms for form in expressions.forms]),
            self.training,
            self.complete,
        )


def read_functions(task: Task, training: int = TRAINING, data_seed: DataSeed = 0) -> TrainingFunctions | None:
    """The functions of the training set, or of the first examples of a larger or endless one.

    None if the task does not say what its examples compute.
    """
    functions: set[Hashable] = set()
    forms: set[Hashable] = set()
    for block in training_blocks(task, training, data_seed):
        expressions = task.expressions(block)
        if expressions is None:
            return None
        functions.update(expressions.functions)
        forms.update(expressions.forms)
    count = count_training(task, training)
    return TrainingFunctions(functions, forms, count, count == task.size("train"))


def find_familiar(task: Task, examples: Examples, training: int = TRAINING, data_seed: int = 0) -> Familiarity | None:
    """Compare examples with the training set, or with the first examples of a larger or endless one.

    None if the task does not say what its examples compute. Hashes of whole functions are compared, so the answer is exact
    for these training examples; more of them may contain more.
    """
    expressions = task.expressions(examples)
    trained = read_functions(task, training, data_seed) if expressions is not None else None
    return None if expressions is None or trained is None else trained.compare(expressions)


def count_training(task: Task, training: int = TRAINING) -> int:
    """The number of training examples that are compared."""
    size = task.size("train")
    return training if size is None else min(training, size)


def training_blocks(task: Task, training: int = TRAINING, data_seed: DataSeed = 0) -> Iterator[Examples]:
    """The training examples that are compared, some at a time."""
    count = count_training(task, training)
    for start in range(0, count, AT_ONCE):
        yield task.sample("train", min(AT_ONCE, count - start), start, data_seed)


def describe_familiar(familiar: Familiarity) -> str:
    """The shares in words, with Wilson's interval at 95 %."""
    return f"{describe_other_forms(familiar)}, {familiar.form.mean():.1%} in the same, {familiar.new:.1%} something new"


def describe_other_forms(familiar: Familiarity) -> str:
    """The share that training has in another form in words, with Wilson's interval at 95 %."""
    n = len(familiar.function)
    low, high = _wilson(familiar.equivalent, n)
    whole = "all" if familiar.complete else "the first"
    return (
        f"{familiar.equivalent:.1%} [{low:.1%}, {high:.1%}] of {n} examples compute what one of {whole} "
        f"{familiar.training:,} training examples does in another form"
    )


def summarize_equivalence(familiar_by_split: Mapping[str, Familiarity]) -> str:
    """A sentence about all splits: the largest share that training has in another form, and the largest that is new."""
    if not familiar_by_split:
        return "the task does not say which examples compute the same"
    split, familiar = max(familiar_by_split.items(), key=lambda item: item[1].equivalent)
    newest, newest_familiar = max(familiar_by_split.items(), key=lambda item: item[1].new)
    whole = "all" if familiar.complete else "the first"
    return (
        f"up to {familiar.equivalent:.1%} of a split ({split}) compute what {whole} {familiar.training:,} training examples "
        f"do in another form, and up to {newest_familiar.new:.1%} ({newest}) something new"
    )


def _wilson(share: float, n: int) -> tuple[float, float]:
    from unseen.stats import wilson

    interval = wilson(round(share * n), n, covers="examples")
    return interval.low, interval.high
