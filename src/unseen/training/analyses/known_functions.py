"""Accuracy on examples whose function training has, in any form, and on the others: `functions/accuracy` by `function`.

A new combination may be a function that training has in another form; then a model that has learned that function as a
whole can answer it. Training is what the run was trained on, up to 100,000 examples of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from unseen.analysis.accuracy import share_correct
from unseen.randomness import Bools
from unseen.tasks.base import Array, DataSeed, Examples, Task
from unseen.tasks.verify.equivalence import TrainingFunctions, read_functions
from unseen.training.evaluate import Measure, Origin, Unavailable, draw_examples, evaluated_splits, predict
from unseen.training.recipe import FUNCTIONS, Evaluation
from unseen.training.stack import Stack


def unavailable(stack: Stack, task: Task, origin: Origin | None = None) -> Unavailable | None:
    """Why known and new functions cannot be told apart; None if they can."""
    if origin is None:
        return Unavailable("it is not known on which data the model was trained")
    if task.spec.target.kind == "real":
        return Unavailable("real targets have no accuracy")
    if task.expressions(draw_examples(task, task.validation, 1, "test")) is None:
        return Unavailable(f"{task.name} does not say which examples compute the same")
    return None


def examples(task: Task, evaluation: Evaluation) -> int:
    """The number of examples that the analysis answers."""
    tested = set(evaluated_splits(task, evaluation)) - {"train"}
    return len(tested) * evaluation.examples


def measures(stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None) -> list[list[Measure]]:
    """The accuracy of every member on known and on new functions, on every split that has some, but `train`."""
    assert origin is not None
    rows: list[list[Measure]] = [[] for _ in range(len(stack))]
    for split in evaluated_splits(task, evaluation):
        if split == "train":
            continue
        tested = draw_examples(task, split, evaluation.examples, "test")
        predictions = predict(stack, tested, task.spec)["prediction"]
        for member, scores in enumerate(score_by_function(task, tested, predictions, origin.data_seeds)):
            for label, accuracy, n in scores:
                if n:
                    error = math.sqrt(accuracy * (1 - accuracy) / n)
                    rows[member].append(Measure(split, "function", label, f"{FUNCTIONS}/accuracy", accuracy, error, n))
    return rows


def score_by_function(
    task: Task, tested: Examples, predictions: Sequence[Array] | Array, data_seeds: Sequence[DataSeed]
) -> Iterator[list[tuple[str, float, int]]]:
    """For every member, trained on the data of its seed: `known` and `new`, the accuracy (NaN without examples), and n."""
    expressions = task.expressions(tested)
    assert expressions is not None
    known_by_seed: dict[DataSeed, Bools] = {}
    for prediction, data_seed in zip(predictions, data_seeds, strict=True):
        if data_seed not in known_by_seed:
            trained: TrainingFunctions | None = read_functions(task, data_seed=data_seed)
            assert trained is not None
            known_by_seed[data_seed] = trained.compare(expressions).function
        is_known = known_by_seed[data_seed]
        correct = share_correct(prediction, tested.targets, task.spec.target.kind)
        scores = []
        for label, chosen in (("known", is_known), ("new", ~is_known)):
            scores.append((label, float(correct[chosen].mean()) if chosen.any() else math.nan, int(chosen.sum())))
        yield scores
