"""What models answer on a condition, and how good that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from unseen.engine.feed import target_tensor, tensors
from unseen.engine.loss import loss
from unseen.engine.recipe import Evaluation
from unseen.engine.stack import Stack
from unseen.metrics.accuracy import accuracy, accuracy_by
from unseen.metrics.analyses import ANALYSES, Analysis
from unseen.metrics.traces import Trace
from unseen.spec import Spec
from unseen.tasks.base import Array, DataSeed, Examples, Task

CHUNK = 250
"""Examples per forward pass. A constant, because the rounding of a product may depend on it."""


@dataclass(frozen=True)
class Measure:
    """One number of one member: a metric on a condition, overall (`factor` empty) or at one level of a factor."""

    condition: str
    factor: str
    level: str
    metric: str
    value: float
    standard_error: float
    n: int


def predictions(stack: Stack, examples: Examples, spec: Spec, wanted: Sequence[str] = ()) -> dict[str, Array]:
    """`prediction` and the wanted intermediates of every member: arrays (member, example, …)."""
    parts: list[dict[str, Array]] = []
    for start in range(0, len(examples), CHUNK):
        part = examples[start : start + CHUNK]
        inputs = tensors(part.inputs, spec, stack.dtype, str(stack.rows.device))
        predicted, kept = stack.predict(inputs, wanted)
        parts.append({k: v.cpu().numpy() for k, v in {"prediction": predicted, **kept}.items()})
    return {k: np.concatenate([p[k] for p in parts], axis=1) for k in parts[0]}


def member_losses(predicted: Array, targets: Array, spec: Spec) -> list[float]:
    """The mean loss of each member."""
    wanted = target_tensor(targets, spec, torch.float64, "cpu")
    return [float(loss(torch.from_numpy(p).double(), wanted, spec.target)) for p in predicted]


def draw(task: Task, condition: str, n: int, data_seed: DataSeed) -> Examples:
    """The first n examples, or all if the set is smaller."""
    size = task.size(condition)
    return task.sample(condition, n if size is None else min(n, size), data_seed=data_seed)


def conditions(task: Task, evaluation: Evaluation) -> list[str]:
    """The conditions an evaluation covers."""
    for name in evaluation.conditions:
        task.condition(name)
    return list(evaluation.conditions) or [c for c in task.conditions if c != "train"]


def evaluate(stack: Stack, task: Task, evaluation: Evaluation) -> list[list[Measure]]:
    """The measures of every member on the test data of every condition; `left_out` says which analyses are missing."""
    rows: list[list[Measure]] = [[] for _ in range(len(stack))]
    for condition in conditions(task, evaluation):
        examples = draw(task, condition, evaluation.examples, "test")
        analyses = {name: ANALYSES[name] for name in evaluation.analyses
                    if task.name in ANALYSES[name].tasks and condition == ANALYSES[name].condition}
        traces = predictions(stack, examples, task.spec, _needs(analyses))
        predicted = traces["prediction"]
        losses = member_losses(predicted, examples.targets, task.spec)
        for member, found in enumerate(rows):
            found.append(Measure(condition, "", "", "loss", losses[member], float("nan"), len(examples)))
            if task.spec.target.kind != "real":
                found.extend(_accuracies(predicted[member], examples, task, condition))
            found.extend(_summaries({k: v[member] for k, v in traces.items()}, examples, analyses, condition))
    return rows


def left_out(stack: Stack, task: Task, evaluation: Evaluation) -> list[str]:
    """The analyses asked for that leave no measures here, each with the reason."""
    analyses, covered = {name: ANALYSES[name] for name in evaluation.analyses}, conditions(task, evaluation)
    needs, reasons = _needs(analyses), dict[str, str]()
    kept = predictions(stack, draw(task, covered[0], 1, "test"), task.spec, needs) if needs else {}
    for name, analysis in analyses.items():
        missing = [need for need in analysis.needs or () if need not in kept]
        if missing:
            reasons[name] = f"the model keeps no {', '.join(missing)}"
        if analysis.condition not in covered:
            reasons[name] = f"the evaluation does not cover {analysis.condition}"
        if task.name not in analysis.tasks:
            reasons[name] = f"it is about {', '.join(analysis.tasks)}"
    return [f"{name} left out: {reason}" for name, reason in reasons.items()]


def _needs(analyses: Mapping[str, Analysis]) -> list[str]:
    return sorted({need for analysis in analyses.values() for need in analysis.needs or ()})


def _summaries(trace: Trace, examples: Examples, analyses: Mapping[str, Analysis], condition: str) -> list[Measure]:
    """What the analyses leave of one member; nothing of one that reads what the model does not keep."""
    return [Measure(condition, factor, level, f"{name}/{measure}", value, float("nan"), n)
            for name, analysis in analyses.items() if trace.keys() >= set(analysis.needs or ())
            for factor, level, measure, value, n in analysis.summarise(trace, examples.targets, examples.factors)]


def _accuracies(predicted: Array, examples: Examples, task: Task, condition: str) -> list[Measure]:
    kind = task.spec.target.kind
    whole = accuracy(predicted, examples.targets, kind)
    rows = [Measure(condition, "", "", "accuracy", whole.value, whole.standard_error, whole.n)]
    for factor in task.report_by:
        table = accuracy_by(predicted, examples.targets, kind, examples.factors[factor])
        rows += [Measure(condition, factor, str(level), "accuracy", float(value), float(error), int(n))
                 for level, value, error, n in table[["level", "value", "standard_error", "n"]].to_numpy()]
    return rows
