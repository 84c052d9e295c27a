"""Evaluation: how good the answers of models are on each split, and what the analyses find."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch

from unseen.analysis.accuracy import (
    Score,
    absolute_error,
    accuracy,
    accuracy_by,
    kind_accuracy,
    kind_accuracy_by,
    relative_error,
)
from unseen.spec import Spec
from unseen.tasks.base import Array, DataSeed, Examples, Task
from unseen.training.batches import input_tensors, target_tensor
from unseen.training.loss import loss
from unseen.training.recipe import (
    ABLATION,
    BY_RULE,
    FUNCTIONS,
    INTERCHANGE,
    PROBES,
    REPRESENTATION,
    SIMILARITY,
    SPECIALIZATION,
    Evaluation,
)
from unseen.training.stack import Stack

if TYPE_CHECKING:
    import pandas as pd

    from unseen.analysis.activations import Activations
    from unseen.analysis.attention import Analysis

CHUNK = 250
"""Examples per forward pass. A constant, because the rounding of a product may depend on it."""


@dataclass(frozen=True)
class Measure:
    """One number of one member: a metric on a split, overall (`factor` empty) or at one level of a factor."""

    split: str
    factor: str
    level: str
    metric: str
    value: float
    standard_error: float
    n: int


@dataclass(frozen=True)
class Origin:
    """Where the members of a stack come from: their data seeds, and how to build the stack of the untrained models.

    `initial` is called only if an analysis needs them: members in the same order, not yet trained.
    """

    data_seeds: Sequence[DataSeed]
    initial: Callable[[], Stack]


@dataclass(frozen=True)
class Unavailable:
    """Why an analysis can't be made: a reason in words, and the activations that the model would have to capture."""

    reason: str
    activations: tuple[str, ...] = ()

    @classmethod
    def without(cls, activations: Sequence[str]) -> Unavailable:
        """Of a model that does not capture these activations."""
        return cls(f"the model captures no {', '.join(activations)}", tuple(activations))


class FamilyAnalysis(Protocol):
    """A module of `unseen.training.analyses`: an analysis that draws its own data."""

    def unavailable(self, stack: Stack, task: Task, origin: Origin | None = None) -> Unavailable | None:
        """Why there is nothing to measure; None if there is."""

    def measures(
        self, stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None
    ) -> list[list[Measure]]:
        """The measures of every member."""

    def examples(self, task: Task, evaluation: Evaluation) -> int:
        """The number of examples it examines."""


FAMILY_ANALYSES = {
    SPECIALIZATION: "unseen.training.analyses.rules_specialization",
    REPRESENTATION: "unseen.training.analyses.ctl_representation",
    BY_RULE: "unseen.training.analyses.rules_by_rule",
    SIMILARITY: "unseen.training.analyses.gcog_similarity",
    PROBES: "unseen.training.analyses.probes",
    INTERCHANGE: "unseen.training.analyses.interchange",
    ABLATION: "unseen.training.analyses.ablation",
    FUNCTIONS: "unseen.training.analyses.known_functions",
}
"""Analyses that draw their own data. Their modules load the task family they are about, so they are imported on demand."""


def evaluate(stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None) -> list[list[Measure]]:
    """The measures of every member on the test data of every split; `left_out` tells which analyses are missing.

    With an origin `train` is what each member was trained on; without one it is test data like any other.
    """
    rows: list[list[Measure]] = [[] for _ in range(len(stack))]
    all_analyses = _split_analyses(evaluation)
    for split in evaluated_splits(task, evaluation):
        examples = member_examples(task, split, evaluation.examples, origin)
        analyses = {n: a for n, a in all_analyses.items() if task.name in a.tasks and split == a.split}
        arrays = predict(stack, examples, task.spec, _needed_activations(analyses))
        per_member = examples_per_member(examples, len(stack))
        for member, (measures, test_examples) in enumerate(zip(rows, per_member, strict=True)):
            activations = {name: values[member] for name, values in arrays.items()}
            measures.extend(_performance(activations["prediction"], test_examples, task, split))
            measures.extend(_summaries(activations, test_examples, analyses, split))
    for analysis in _family_analyses(evaluation).values():
        if analysis.unavailable(stack, task, origin) is None:
            for measures, more in zip(rows, analysis.measures(stack, task, evaluation, origin), strict=True):
                measures.extend(more)
    return rows


def left_out(stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None) -> list[str]:
    """The analyses of the evaluation that leave no measures here, each with the reason."""
    reasons = unavailable_analyses(stack, task, evaluation, origin)
    return [f"{name} left out: {missing.reason}" for name, missing in reasons.items()]


def unavailable_analyses(
    stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None
) -> dict[str, Unavailable]:
    """Why an analysis of the evaluation leaves no measures here, by its name."""
    if not evaluation.analyses:
        return {}
    analyses = _split_analyses(evaluation)
    covered = evaluated_splits(task, evaluation)
    needed = _needed_activations(analyses)
    captured: Mapping[str, Array] = {}
    if needed:
        captured = predict(stack, draw_examples(task, covered[0], 1, "test"), task.spec, needed)
    reasons: dict[str, Unavailable] = {}
    for name, analysis in analyses.items():
        missing = [need for need in analysis.needs or () if need not in captured]
        if task.name not in analysis.tasks:
            reasons[name] = Unavailable(f"it is about {', '.join(analysis.tasks)}")
        elif analysis.split not in covered:
            reasons[name] = Unavailable(f"the evaluation does not cover {analysis.split}")
        elif missing:
            reasons[name] = Unavailable.without(missing)
    for name, family in _family_analyses(evaluation).items():
        reason = family.unavailable(stack, task, origin)
        if reason is not None:
            reasons[name] = reason
    return reasons


def examples_drawn(task: Task, evaluation: Evaluation, data_seeds: int = 1) -> int:
    """The number of examples an evaluation examines, of members that were trained on this many data seeds."""
    total = 0
    for split in evaluated_splits(task, evaluation):
        examples = min(evaluation.examples, task.size(split) or evaluation.examples)
        total += examples * (data_seeds if split == "train" else 1)
    for analysis in _family_analyses(evaluation).values():
        total += analysis.examples(task, evaluation)
    return total


def evaluated_splits(task: Task, evaluation: Evaluation) -> list[str]:
    """The splits an evaluation covers."""
    for name in evaluation.splits:
        task.get_split(name)
    return list(evaluation.splits) or [name for name in task.splits if name != "train"]


def measured_splits(task: Task, evaluation: Evaluation) -> list[str]:
    """The splits on which models must be able to answer: those an evaluation covers, and those on the curve."""
    for name in evaluation.curve:
        task.get_split(name)
    return list(dict.fromkeys((*evaluated_splits(task, evaluation), *evaluation.curve)))


# -- examples and predictions -----------------------------------------------------------------------------------------


def draw_examples(task: Task, split: str, n: int, data_seed: DataSeed) -> Examples:
    """The first n examples, or all if the set is smaller."""
    size = task.size(split)
    return task.sample(split, n if size is None else min(n, size), data_seed=data_seed)


def member_examples(task: Task, split: str, n: int, origin: Origin | None) -> Examples | list[Examples]:
    """The examples on which members are evaluated: the test data of the split, the same for all.

    On `train` each member has its own if the origin is known: the first n examples it was trained on, or the whole set
    if that is smaller. (Of endless data a very short run has seen fewer; the others come next in its stream.)
    """
    if origin is None or split != "train":
        return draw_examples(task, split, n, "test")
    by_seed = {seed: draw_examples(task, split, n, seed) for seed in dict.fromkeys(origin.data_seeds)}
    return [by_seed[seed] for seed in origin.data_seeds]


def examples_per_member(examples: Examples | Sequence[Examples], members: int) -> list[Examples]:
    """The examples of every member, whether all share them or each has its own."""
    return [examples] * members if isinstance(examples, Examples) else list(examples)


def predict(
    stack: Stack, examples: Examples | Sequence[Examples], spec: Spec, captured: Sequence[str] = ()
) -> dict[str, Array]:
    """`prediction` and the captured activations of every member: arrays (member, example, …).

    All members answer the same examples, or each its own, of which there must be equally many.
    """
    shared = isinstance(examples, Examples)
    sets = [examples] if isinstance(examples, Examples) else list(examples)
    chunks: list[dict[str, Array]] = []
    for start in range(0, len(sets[0]), CHUNK):
        inputs = [examples_of_set[start : start + CHUNK].inputs for examples_of_set in sets]
        stacked = dict(inputs[0])
        if not shared:
            for name in stacked:
                stacked[name] = np.stack([arrays[name] for arrays in inputs])  # members first, then examples
        tensors = input_tensors(stacked, spec, stack.dtype, str(stack.rows.device))
        prediction, activations = stack.predict(tensors, captured, inputs_per_member=not shared)
        tensors_by_name = {"prediction": prediction, **activations}
        chunks.append({name: tensor.cpu().numpy() for name, tensor in tensors_by_name.items()})
    joined = {}
    for name in chunks[0]:
        joined[name] = np.concatenate([chunk[name] for chunk in chunks], axis=1)
    return joined


def member_loss(prediction: Array, targets: Array, spec: Spec) -> float:
    """The mean loss of one member, in float64."""
    # In float64: a mean over thousands of losses in float32 would lose digits.
    as_tensor = target_tensor(targets, spec, torch.float64, "cpu")
    return float(loss(torch.from_numpy(prediction).double(), as_tensor, spec.target))


# -- measures ---------------------------------------------------------------------------------------------------------


def metric_names(task: Task) -> tuple[str, ...]:
    """The metrics of `overall_scores` on this task.

    >>> from unseen.tasks import task
    >>> metric_names(task("retrieval/T6"))
    ('loss', 'accuracy')
    """
    if task.spec.target.kind == "real":
        return ("loss", "relative_loss")
    return ("loss", "accuracy") if task.answer_kinds is None else ("loss", "accuracy", "right_kind")


def overall_scores(prediction: Array, examples: Examples, task: Task) -> dict[str, Score]:
    """The scores of one member over all examples, by metric."""
    kind = task.spec.target.kind
    targets = examples.targets
    if kind == "real":
        return {"loss": absolute_error(prediction, targets), "relative_loss": relative_error(prediction, targets)}
    scores = {
        "loss": Score(member_loss(prediction, targets, task.spec), math.nan, len(examples)),
        "accuracy": accuracy(prediction, targets, kind),
    }
    if task.answer_kinds is not None:
        scores["right_kind"] = kind_accuracy(prediction, targets, task.answer_kinds)
    return scores


def _performance(prediction: Array, examples: Examples, task: Task, split: str) -> list[Measure]:
    kind = task.spec.target.kind
    targets = examples.targets
    rows: list[Measure] = []
    for metric, score in overall_scores(prediction, examples, task).items():
        by_factor: dict[str, pd.DataFrame] = {}
        for name in task.report_by:
            if metric == "accuracy":
                by_factor[name] = accuracy_by(prediction, targets, kind, examples.factors[name])
            elif metric == "right_kind" and task.answer_kinds is not None:
                by_factor[name] = kind_accuracy_by(prediction, targets, task.answer_kinds, examples.factors[name])
        rows += _shares(split, metric, score, by_factor)
    return rows


def _shares(split: str, metric: str, overall: Score, by_factor: Mapping[str, pd.DataFrame]) -> list[Measure]:
    """A score overall, and at each level of each factor."""
    rows = [Measure(split, "", "", metric, overall.value, overall.standard_error, overall.n)]
    for factor, table in by_factor.items():
        for level, value, error, n in table[["level", "value", "standard_error", "n"]].to_numpy():
            rows.append(Measure(split, factor, str(level), metric, float(value), float(error), int(n)))
    return rows


def _summaries(
    activations: Activations, examples: Examples, analyses: Mapping[str, Analysis], split: str
) -> list[Measure]:
    """The measures of the analyses of one member, without those that need activations the model does not capture."""
    rows = []
    for name, analysis in analyses.items():
        if activations.keys() >= set(analysis.needs or ()):
            for factor, level, measure, value, n in analysis.summarise(activations, examples.targets, examples.factors):
                rows.append(Measure(split, factor, level, f"{name}/{measure}", value, math.nan, n))
    return rows


def _split_analyses(evaluation: Evaluation) -> dict[str, Analysis]:
    """The analyses that are made of the activations on one split."""
    if not evaluation.analyses:
        return {}
    from unseen.analysis.attention import ANALYSES

    return {name: ANALYSES[name] for name in evaluation.analyses if name in ANALYSES}


def _family_analyses(evaluation: Evaluation) -> dict[str, FamilyAnalysis]:
    analyses: dict[str, FamilyAnalysis] = {}
    for name in evaluation.analyses:
        if name in FAMILY_ANALYSES:
            analyses[name] = import_module(FAMILY_ANALYSES[name])
    return analyses


def _needed_activations(analyses: Mapping[str, Analysis]) -> list[str]:
    needed: set[str] = set()
    for analysis in analyses.values():
        needed.update(analysis.needs or ())
    return sorted(needed)
