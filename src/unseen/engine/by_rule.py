"""How well each rule of a task is learned, and the worst of them. With rare rules the average hides it."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from unseen.engine.measure import Measure
from unseen.engine.origin import Origin, shown
from unseen.engine.predict import conditions, each, predictions
from unseen.engine.recipe import BY_RULE, Evaluation
from unseen.engine.stack import Stack
from unseen.metrics.accuracy import accuracy_by
from unseen.metrics.error import absolute_error_by, relative_error_by
from unseen.tasks.base import Array, Examples, Task
from unseen.tasks.rules.task import Rules


def why_not(stack: Stack, task: Task, origin: Origin | None = None) -> str:
    """Why there are no rules to tell apart; empty if there are."""
    return "" if isinstance(task, Rules) else "it is about tasks made by rules"


def examples(task: Task, evaluation: Evaluation) -> int:
    """How many examples are looked at once more."""
    return evaluation.examples * len(conditions(task, evaluation))


def measures(stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None) -> list[list[Measure]]:
    """`accuracy`, or `loss` and `relative_loss`, of every member on every condition: of each `rule`, and of the worst
    one (`worst_accuracy`, …). A rule that does not occur has none."""
    found: list[list[Measure]] = [[] for _ in range(len(stack))]
    for condition in conditions(task, evaluation):
        drawn = shown(task, condition, evaluation.examples, origin)
        answered = predictions(stack, drawn, task.spec)["prediction"]
        for rows, answers, own in zip(found, answered, each(drawn, len(stack)), strict=True):
            for metric, table in _tables(answers, own, task).items():
                rows += _measures(condition, metric, table)
    return found


def _tables(answers: Array, examples: Examples, task: Task) -> dict[str, pd.DataFrame]:
    """Each metric by rule: of tokens where there are tokens."""
    kind, targets, rule = task.spec.target.kind, examples.targets, examples.factors["rule"]
    if kind == "real":
        return {
            "loss": absolute_error_by(answers, targets, rule),
            "relative_loss": relative_error_by(answers, targets, rule),
        }
    return {"accuracy": accuracy_by(answers, targets, kind, rule)}


def _measures(condition: str, metric: str, table: pd.DataFrame) -> list[Measure]:
    rows = table[["level", "value", "standard_error", "n"]].to_numpy().tolist()
    found = [
        Measure(condition, "rule", str(int(rule)), f"{BY_RULE}/{metric}", value, error, int(n))
        for rule, value, error, n in rows
    ]
    worst = (min if metric == "accuracy" else max)(found, key=lambda one: one.value)
    return [*found, replace(worst, factor="", level="", metric=f"{BY_RULE}/worst_{metric}")]
