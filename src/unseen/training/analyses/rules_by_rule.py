"""How well each rule of a task is learned, and the worst of them. With rare rules, the average hides this."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from unseen.analysis.accuracy import absolute_error_by, accuracy_by, relative_error_by
from unseen.tasks.base import Array, Examples, Task
from unseen.tasks.rules.task import Rules
from unseen.training.evaluate import (
    Measure,
    Origin,
    Unavailable,
    evaluated_splits,
    examples_per_member,
    member_examples,
    predict,
)
from unseen.training.recipe import BY_RULE, Evaluation
from unseen.training.stack import Stack


def unavailable(stack: Stack, task: Task, origin: Origin | None = None) -> Unavailable | None:
    """Why there are no rules to tell apart; None if there are."""
    return None if isinstance(task, Rules) else Unavailable("it is about tasks made by rules")


def examples(task: Task, evaluation: Evaluation) -> int:
    """The number of examples that the analysis evaluates again."""
    return evaluation.examples * len(evaluated_splits(task, evaluation))


def measures(stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None) -> list[list[Measure]]:
    """`accuracy`, or `loss` and `relative_loss`, of every member on every split: by `rule`, and for the worst rule
    (`worst_accuracy`, …). A rule that does not occur has none."""
    rows_by_member: list[list[Measure]] = [[] for _ in range(len(stack))]
    for split in evaluated_splits(task, evaluation):
        all_examples = member_examples(task, split, evaluation.examples, origin)
        predictions = predict(stack, all_examples, task.spec)["prediction"]
        by_member = examples_per_member(all_examples, len(stack))
        for rows, answers, own_examples in zip(rows_by_member, predictions, by_member, strict=True):
            for metric, table in _score_rules(answers, own_examples, task).items():
                rows += _make_measures(split, metric, table)
    return rows_by_member


def _score_rules(answers: Array, examples: Examples, task: Task) -> dict[str, pd.DataFrame]:
    """Each metric by rule: over tokens if the task has tokens."""
    targets = examples.targets
    rule = examples.factors["rule"]
    if task.spec.target.kind == "real":
        return {
            "loss": absolute_error_by(answers, targets, rule),
            "relative_loss": relative_error_by(answers, targets, rule),
        }
    return {"accuracy": accuracy_by(answers, targets, task.spec.target.kind, rule)}


def _make_measures(split: str, metric: str, table: pd.DataFrame) -> list[Measure]:
    measures = []
    for rule, value, error, n in table[["level", "value", "standard_error", "n"]].to_numpy().tolist():
        measures.append(Measure(split, "rule", str(int(rule)), f"{BY_RULE}/{metric}", value, error, int(n)))
    find_worst = min if metric == "accuracy" else max  # a loss is worse if it is larger
    worst = find_worst(measures, key=lambda measure: measure.value)
    return [*measures, replace(worst, factor="", level="", metric=f"{BY_RULE}/worst_{metric}")]
