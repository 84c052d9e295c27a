"""How good the answers of models are on each condition, and what the analyses find."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from unseen.engine import by_rule, represent, similarity, specialize
from unseen.engine.measure import Measure
from unseen.engine.origin import Origin, shown
from unseen.engine.predict import NOT_KEPT, conditions, draw, each, member_loss, predictions
from unseen.engine.recipe import BY_RULE, REPRESENTATION, SIMILARITY, SPECIALIZATION, Evaluation
from unseen.engine.stack import Stack
from unseen.metrics.accuracy import Score, accuracy, accuracy_by, kind_accuracy, kind_accuracy_by
from unseen.metrics.analyses import ANALYSES, Analysis
from unseen.metrics.error import absolute_error, relative_error
from unseen.metrics.traces import Trace
from unseen.tasks.base import Array, Examples, Task

__all__ = ["DRAWING", "Measure", "Origin", "conditions", "evaluate", "examples_drawn", "left_out", "why_not"]


@dataclass(frozen=True)
class Drawing:
    """An analysis that draws data of its own: why it has nothing to say here (empty if it has), what it says of every
    member, and how many examples that takes."""

    why_not: Callable[[Stack, Task, Origin | None], str]
    measures: Callable[[Stack, Task, Evaluation, Origin | None], list[list[Measure]]]
    examples: Callable[[Task, Evaluation], int]


DRAWING: Mapping[str, Drawing] = {
    SPECIALIZATION: Drawing(specialize.why_not, specialize.measures, specialize.examples),
    REPRESENTATION: Drawing(represent.why_not, represent.measures, represent.examples),
    BY_RULE: Drawing(by_rule.why_not, by_rule.measures, by_rule.examples),
    SIMILARITY: Drawing(similarity.why_not, similarity.measures, similarity.examples),
}


def examples_drawn(task: Task, evaluation: Evaluation, data_seeds: int = 1) -> int:
    """How many examples an evaluation looks at, of members that were trained on so many sets of data."""
    sizes = {name: task.size(name) for name in conditions(task, evaluation)}
    return sum(
        min(evaluation.examples, size or evaluation.examples) * (data_seeds if name == "train" else 1)
        for name, size in sizes.items()
    ) + sum(drawing.examples(task, evaluation) for drawing in _drawing(evaluation).values())


def evaluate(stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None) -> list[list[Measure]]:
    """The measures of every member on the test data of every condition; `left_out` says which analyses are missing.

    With an origin `train` is what each member was trained on; without one it is test data like any other.
    """
    rows: list[list[Measure]] = [[] for _ in range(len(stack))]
    for condition in conditions(task, evaluation):
        examples = shown(task, condition, evaluation.examples, origin)
        analyses = {
            name: analysis
            for name, analysis in _analyses(evaluation).items()
            if task.name in analysis.tasks and condition == analysis.condition
        }
        traces = predictions(stack, examples, task.spec, _needs(analyses))
        predicted = traces["prediction"]
        for member, (found, own) in enumerate(zip(rows, each(examples, len(stack)), strict=True)):
            found.extend(_performance(predicted[member], own, task, condition))
            found.extend(_summaries({k: v[member] for k, v in traces.items()}, own, analyses, condition))
    for drawing in _drawing(evaluation).values():
        if not drawing.why_not(stack, task, origin):
            for found, more in zip(rows, drawing.measures(stack, task, evaluation, origin), strict=True):
                found.extend(more)
    return rows


def left_out(stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None) -> list[str]:
    """The analyses asked for that leave no measures here, each with the reason."""
    return [f"{name} left out: {reason}" for name, reason in why_not(stack, task, evaluation, origin).items()]


def why_not(stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None) -> dict[str, str]:
    """Why an analysis that was asked for leaves no measures here, by its name."""
    analyses, covered = _analyses(evaluation), conditions(task, evaluation)
    needs, reasons = _needs(analyses), dict[str, str]()
    kept = predictions(stack, draw(task, covered[0], 1, "test"), task.spec, needs) if needs else {}
    for name, analysis in analyses.items():
        missing = [need for need in analysis.needs or () if need not in kept]
        if missing:
            reasons[name] = f"{NOT_KEPT}{', '.join(missing)}"
        if analysis.condition not in covered:
            reasons[name] = f"the evaluation does not cover {analysis.condition}"
        if task.name not in analysis.tasks:
            reasons[name] = f"it is about {', '.join(analysis.tasks)}"
    reasons |= {name: drawing.why_not(stack, task, origin) for name, drawing in _drawing(evaluation).items()}
    return {name: reason for name, reason in reasons.items() if reason}


def _analyses(evaluation: Evaluation) -> dict[str, Analysis]:
    """Those that are made of one condition's traces."""
    return {name: ANALYSES[name] for name in evaluation.analyses if name in ANALYSES}


def _drawing(evaluation: Evaluation) -> dict[str, Drawing]:
    """Those that draw data of their own."""
    return {name: DRAWING[name] for name in evaluation.analyses if name in DRAWING}


def _needs(analyses: Mapping[str, Analysis]) -> list[str]:
    return sorted({need for analysis in analyses.values() for need in analysis.needs or ()})


def _summaries(trace: Trace, examples: Examples, analyses: Mapping[str, Analysis], condition: str) -> list[Measure]:
    """What the analyses leave of one member; nothing of one that reads what the model does not keep."""
    return [
        Measure(condition, factor, level, f"{name}/{measure}", value, float("nan"), n)
        for name, analysis in analyses.items()
        if trace.keys() >= set(analysis.needs or ())
        for factor, level, measure, value, n in analysis.summarise(trace, examples.targets, examples.factors)
    ]


def _performance(predicted: Array, examples: Examples, task: Task, condition: str) -> list[Measure]:
    kind = task.spec.target.kind
    if kind == "real":
        scores = {
            "loss": absolute_error(predicted, examples.targets),
            "relative_loss": relative_error(predicted, examples.targets),
        }
        return [Measure(condition, "", "", metric, s.value, s.standard_error, s.n) for metric, s in scores.items()]
    targets, factors = examples.targets, {name: examples.factors[name] for name in task.report_by}
    lost = Measure(condition, "", "", "loss", member_loss(predicted, targets, task.spec), float("nan"), len(examples))
    rows = [
        lost,
        *_shares(
            condition,
            "accuracy",
            accuracy(predicted, targets, kind),
            {name: accuracy_by(predicted, targets, kind, levels) for name, levels in factors.items()},
        ),
    ]
    kinds = task.answer_kinds
    if kinds is not None:
        rows += _shares(
            condition,
            "right_kind",
            kind_accuracy(predicted, targets, kinds),
            {name: kind_accuracy_by(predicted, targets, kinds, at) for name, at in factors.items()},
        )
    return rows


def _shares(condition: str, metric: str, whole: Score, tables: Mapping[str, pd.DataFrame]) -> list[Measure]:
    """A share of examples, overall and at each level of each factor."""
    return [
        Measure(condition, "", "", metric, whole.value, whole.standard_error, whole.n),
        *(
            Measure(condition, factor, str(level), metric, float(value), float(error), int(n))
            for factor, table in tables.items()
            for level, value, error, n in table[["level", "value", "standard_error", "n"]].to_numpy()
        ),
    ]
