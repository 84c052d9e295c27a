"""How the modules of a model divide the rules of a task among themselves: the metrics of its activation matrix."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy

import numpy as np

from unseen.analysis.accuracy import Score
from unseen.analysis.adaptation_metric import DRAWS, adaptation
from unseen.analysis.routing import sum_by_label
from unseen.analysis.specialization_metrics import ENTRY_FACTOR, ENTRY_METRIC, SpecializationTally
from unseen.config import Config
from unseen.errors import UsageError
from unseen.randomness import Floats
from unseen.tasks.base import Array, Task
from unseen.tasks.rules.task import Rules
from unseen.training.evaluate import Measure, Origin, Unavailable, draw_examples, predict
from unseen.training.recipe import SPECIALIZATION, Evaluation
from unseen.training.stack import Stack

WEIGHTS = "gating.weights"
"""The activation that a modular model captures: the factors of its modules' outputs, token by token."""
PROBABILITIES = "gating.probabilities"
"""The softmax that a router makes its weights from; its metrics are recorded beside those of the weights."""
CHECKED = 3
"""Examples whose weights are checked before training."""
TOLERANCE = 1e-3
MOST_ENTRIES = 1_024
"""Larger matrices are not recorded."""
AT_ONCE = 10_000
"""Examples whose weights are held in memory."""


def unavailable(stack: Stack, task: Task, origin: Origin | None = None) -> Unavailable | None:
    """Why there is no specialization to measure; None if there is."""
    if not isinstance(task, Rules):
        return Unavailable("it is about tasks made by rules")
    examples = draw_examples(task, task.validation, CHECKED, "test")
    captured = predict(stack, examples, task.spec, [WEIGHTS])
    if WEIGHTS not in captured:
        return Unavailable.without([WEIGHTS])
    for weights in captured[WEIGHTS]:
        check_weights(weights, examples.factors["rule"])
    return None


def activation(stack: Stack, task: Rules, n: int) -> Floats:
    """p(module | rule) of a stack's first member on n test examples; NaN in the rows of rules that do not occur."""
    examples = draw_examples(task, task.validation, n, "test")
    weights = predict(stack, examples, task.spec, [WEIGHTS])[WEIGHTS][0]
    rules = examples.factors["rule"].reshape(-1)
    count = np.bincount(rules, minlength=len(task.pi)).astype(np.float64)
    count[count == 0] = np.nan
    return sum_by_label(weights.reshape(-1, weights.shape[-1]), rules, len(count)) / count[:, None]


def check_weights(weights: Array, rules: Array) -> None:
    """Refuse captured weights that are not a share of every module for every token that has a rule."""
    tokens = "examples, tokens" if rules.ndim > 1 else "examples"
    expected = f"({tokens}, modules) = {(*rules.shape, 'modules')}".replace("'", "")
    if weights.shape[:-1] != rules.shape or weights.ndim != rules.ndim + 1:
        raise UsageError(
            f"the model captures {WEIGHTS} of shape {weights.shape}; expected {expected}: a weight of every module for "
            "each token that has a rule, without the other tokens (Adapter.capture_gating picks them)"
        )
    sums = weights.sum(axis=-1)
    if not (np.isfinite(weights).all() and (weights >= -TOLERANCE).all() and (abs(sums - 1) <= TOLERANCE).all()):
        raise UsageError(
            f"the model captures {WEIGHTS} that are not shares: of each token they must be at least 0 and add up to 1 "
            f"(capture them after the softmax); sums here are {sums.min():.3g} to {sums.max():.3g}"
        )


def measures(stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None) -> list[list[Measure]]:
    """The specialization of every member as measures on the split that models are selected on.

    The activation matrix of a user's model is recorded with them: a report draws those of our models from their weights,
    but runs no code that a store names.
    """
    assert isinstance(task, Rules)
    tallies = _tally(stack, task, evaluation, WEIGHTS)
    is_foreign = not type(stack.skeleton).__module__.startswith("unseen.")
    measures_by_member = []
    for tally, scores in zip(tallies, _score(tallies, stack, task, evaluation), strict=True):
        member_measures = _matrix_measures(tally, task.validation) if is_foreign else []
        for name, score in scores.items():
            metric = f"{SPECIALIZATION}/{name}"
            member_measures.append(Measure(task.validation, "", "", metric, score.value, score.standard_error, score.n))
        measures_by_member.append(member_measures)
    return measures_by_member


def _matrix_measures(tally: SpecializationTally, split: str) -> list[Measure]:
    """The entries of the activation matrix, of the rules that occur."""
    matrix = tally.matrix()
    if matrix.size > MOST_ENTRIES:
        return []
    entries = []
    for (rule, module), weight in np.ndenumerate(matrix):
        if weight == weight:
            level = f"{rule}, {module}"
            entries.append(Measure(split, ENTRY_FACTOR, level, ENTRY_METRIC, float(weight), math.nan, tally.examples))
    return entries


def examples(task: Task, evaluation: Evaluation) -> int:
    """The number of examples behind the activation matrices; sampled adaptation needs more."""
    return evaluation.activation_examples


def sampled_examples(model: Config, task: Task, evaluation: Evaluation) -> int:
    """The number of examples for every member alone, if its adaptation is sampled: see `local_gating`."""
    local = getattr(model, "gating", "none") != "joint" or not task.spec.streams
    return 0 if local or SPECIALIZATION not in evaluation.analyses else DRAWS * evaluation.adaptation_examples


def specialization(stack: Stack, task: Rules, evaluation: Evaluation) -> list[dict[str, Score]]:
    """Every specialization metric of every member, on the task's own distribution of rules. Of models with a router there
    are also those of its softmax p, as `probability_alignment` and so on.

    Adaptation is exact and linear if the weights of a token depend on that token alone, which a module declares by
    `local_gating`; otherwise it is sampled.
    """
    tallies = _tally(stack, task, evaluation, WEIGHTS)
    return _score(tallies, stack, task, evaluation)


def _tally(stack: Stack, task: Rules, evaluation: Evaluation, captured: str) -> list[SpecializationTally]:
    """The sums over the tokens of the examples, for every member, of a captured activation."""
    tallies = [SpecializationTally(len(task.pi)) for _ in range(len(stack))]
    # In blocks, because the weights of all examples would not fit into memory.
    for start in range(0, evaluation.activation_examples, AT_ONCE):
        count = min(AT_ONCE, evaluation.activation_examples - start)
        block = task.sample(task.validation, count, start, "test")
        for tally, weights in zip(tallies, predict(stack, block, task.spec, [captured])[captured], strict=True):
            tally.add(weights, block.factors["rule"])
    return tallies


def _score(
    tallies: Sequence[SpecializationTally], stack: Stack, task: Rules, evaluation: Evaluation
) -> list[dict[str, Score]]:
    local = getattr(stack.skeleton, "local_gating", False)
    scores_by_member = [tally.scores(task.pi) for tally in tallies]
    if not local:
        for scores, value in zip(scores_by_member, _sample_adaptation(stack, task, evaluation), strict=True):
            scores["adaptation"] = Score(value, float("nan"), evaluation.adaptation_examples)
    # Not by an attribute `router`: a user's model may have one and capture nothing but the weights.
    few = draw_examples(task, task.validation, CHECKED, "test")
    if PROBABILITIES in predict(stack, few, task.spec, [PROBABILITIES]):
        soft_tallies = _tally(stack, task, evaluation, PROBABILITIES)
        for scores, soft_tally in zip(scores_by_member, soft_tallies, strict=True):
            for name, score in soft_tally.scores(task.pi).items():
                if local or name != "adaptation":
                    scores[f"probability_{name}"] = score
    return scores_by_member


def _sample_adaptation(stack: Stack, task: Rules, evaluation: Evaluation) -> Iterator[float]:
    """The members' adaptation from tokens drawn under each of the rule distributions, one member at a time."""
    for member in range(len(stack)):
        alone = copy(stack)
        alone.select([member])

        def sampler(prior: Floats, alone: Stack = alone) -> tuple[Array, Array]:
            task_with_prior = task.parse({**task.options(), "prior": tuple(prior.tolist())})
            examples = draw_examples(
                task_with_prior, task_with_prior.validation, evaluation.adaptation_examples, "test"
            )
            return predict(alone, examples, task.spec, [WEIGHTS])[WEIGHTS][0], examples.factors["rule"]

        yield adaptation(sampler, task.pi)
