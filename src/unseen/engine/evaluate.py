"""How good the answers of models are on each condition, and what the analyses find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from unseen.engine.predict import draw, member_loss, predictions
from unseen.engine.recipe import SPECIALIZATION, Evaluation
from unseen.engine.specialize import WEIGHTS, specialization
from unseen.engine.stack import Stack
from unseen.metrics.accuracy import accuracy, accuracy_by
from unseen.metrics.analyses import ANALYSES, Analysis
from unseen.metrics.error import absolute_error, relative_error
from unseen.metrics.traces import Trace
from unseen.tasks.base import Array, Examples, Task
from unseen.tasks.rules.task import Rules


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
        analyses = {name: analysis for name, analysis in _analyses(evaluation).items()
                    if task.name in analysis.tasks and condition == analysis.condition}
        traces = predictions(stack, examples, task.spec, _needs(analyses))
        predicted = traces["prediction"]
        for member, found in enumerate(rows):
            found.extend(_performance(predicted[member], examples, task, condition))
            found.extend(_summaries({k: v[member] for k, v in traces.items()}, examples, analyses, condition))
    if SPECIALIZATION in evaluation.analyses and not _unspecialized(stack, task):
        assert isinstance(task, Rules)
        for found, scores in zip(rows, specialization(stack, task, evaluation), strict=True):
            found += [Measure(task.validation, "", "", f"{SPECIALIZATION}/{name}", s.value, s.standard_error, s.n)
                      for name, s in scores.items()]
    return rows


def left_out(stack: Stack, task: Task, evaluation: Evaluation) -> list[str]:
    """The analyses asked for that leave no measures here, each with the reason."""
    analyses, covered = _analyses(evaluation), conditions(task, evaluation)
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
    if SPECIALIZATION in evaluation.analyses and _unspecialized(stack, task):
        reasons[SPECIALIZATION] = _unspecialized(stack, task)
    return [f"{name} left out: {reason}" for name, reason in reasons.items()]


def _analyses(evaluation: Evaluation) -> dict[str, Analysis]:
    """Those that are made of one condition's traces."""
    return {name: ANALYSES[name] for name in evaluation.analyses if name in ANALYSES}


def _unspecialized(stack: Stack, task: Task) -> str:
    """Why there is no specialization to measure; empty if there is."""
    if not isinstance(task, Rules):
        return "it is about tasks made by rules"
    kept = predictions(stack, draw(task, task.validation, 1, "test"), task.spec, [WEIGHTS])
    return "" if WEIGHTS in kept else f"the model keeps no {WEIGHTS}"


def _needs(analyses: Mapping[str, Analysis]) -> list[str]:
    return sorted({need for analysis in analyses.values() for need in analysis.needs or ()})


def _summaries(trace: Trace, examples: Examples, analyses: Mapping[str, Analysis], condition: str) -> list[Measure]:
    """What the analyses leave of one member; nothing of one that reads what the model does not keep."""
    return [Measure(condition, factor, level, f"{name}/{measure}", value, float("nan"), n)
            for name, analysis in analyses.items() if trace.keys() >= set(analysis.needs or ())
            for factor, level, measure, value, n in analysis.summarise(trace, examples.targets, examples.factors)]


def _performance(predicted: Array, examples: Examples, task: Task, condition: str) -> list[Measure]:
    kind = task.spec.target.kind
    if kind == "real":
        scores = {"loss": absolute_error(predicted, examples.targets),
                  "relative_loss": relative_error(predicted, examples.targets)}
        return [Measure(condition, "", "", metric, s.value, s.standard_error, s.n) for metric, s in scores.items()]
    lost, whole = member_loss(predicted, examples.targets, task.spec), accuracy(predicted, examples.targets, kind)
    rows = [Measure(condition, "", "", "loss", lost, float("nan"), len(examples)),
            Measure(condition, "", "", "accuracy", whole.value, whole.standard_error, whole.n)]
    for factor in task.report_by:
        table = accuracy_by(predicted, examples.targets, kind, examples.factors[factor])
        rows += [Measure(condition, factor, str(level), "accuracy", float(value), float(error), int(n))
                 for level, value, error, n in table[["level", "value", "standard_error", "n"]].to_numpy()]
    return rows
