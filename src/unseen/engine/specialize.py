"""How the modules of a model share out the rules of a task: its activation matrix, and what the metrics say of it."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

from unseen.config import Config
from unseen.engine.measure import Measure
from unseen.engine.origin import Origin
from unseen.engine.predict import NOT_KEPT, draw, predictions
from unseen.engine.recipe import SPECIALIZATION, Evaluation
from unseen.engine.stack import Stack
from unseen.metrics.accuracy import Score
from unseen.metrics.adaptation import DRAWS, adaptation
from unseen.metrics.specialization import Tally
from unseen.randomness import Floats
from unseen.tasks.base import Array, Examples, Task
from unseen.tasks.rules.task import Rules

WEIGHTS = "gating.weights"
"""The trace that a modular model keeps: what multiplies the outputs of its modules, token by token."""
AT_ONCE = 10_000
"""Examples whose weights are held in memory."""


def why_not(stack: Stack, task: Task, origin: Origin | None = None) -> str:
    """Why there is no specialization to measure; empty if there is."""
    if not isinstance(task, Rules):
        return "it is about tasks made by rules"
    kept = predictions(stack, draw(task, task.validation, 1, "test"), task.spec, [WEIGHTS])
    return "" if WEIGHTS in kept else f"{NOT_KEPT}{WEIGHTS}"


def measures(stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None) -> list[list[Measure]]:
    """The specialization of every member as measures on the condition that models are selected on."""
    assert isinstance(task, Rules)
    return [
        [
            Measure(task.validation, "", "", f"{SPECIALIZATION}/{name}", s.value, s.standard_error, s.n)
            for name, s in scores.items()
        ]
        for scores in specialization(stack, task, evaluation)
    ]


def examples(task: Task, evaluation: Evaluation) -> int:
    """How many examples the activation matrices take; where adaptation is sampled, it takes some more."""
    return evaluation.activation_examples


def sampled_examples(model: Config, task: Task, evaluation: Evaluation) -> int:
    """How many examples every member is shown by itself, where adaptation is sampled: see `local_gating`."""
    local = getattr(model, "gating", "none") != "joint" or not task.spec.streams
    return 0 if local or SPECIALIZATION not in evaluation.analyses else DRAWS * evaluation.adaptation_examples


def specialization(stack: Stack, task: Rules, evaluation: Evaluation) -> list[dict[str, Score]]:
    """Every specialization metric of every member, on the task's own distribution of rules.

    Adaptation is the exact linear one where the weights of a token depend on that token alone, which a module says by
    `local_gating`; else it is sampled.
    """
    tallies = [Tally(len(task.pi)) for _ in range(len(stack))]
    for part in _stretches(task, evaluation.activation_examples):
        for tally, weights in zip(tallies, _weights(stack, part, task), strict=True):
            tally.add(weights, part.factors["rule"])
    found = [tally.scores(task.pi) for tally in tallies]
    if not getattr(stack.skeleton, "local_gating", False):
        for scores, value in zip(found, _sampled(stack, task, evaluation), strict=True):
            scores["adaptation"] = Score(value, float("nan"), evaluation.adaptation_examples)
    return found


def _sampled(stack: Stack, task: Rules, evaluation: Evaluation) -> Iterator[float]:
    """The members' adaptation from tokens drawn under each of the rule distributions, one member at a time."""
    for member in range(len(stack)):
        alone = copy(stack)
        alone.select([member])

        def sampler(prior: Floats, alone: Stack = alone) -> tuple[Array, Array]:
            other = task.parse({**task.options(), "prior": tuple(prior.tolist())})
            part = draw(other, other.validation, evaluation.adaptation_examples, "test")
            return _weights(alone, part, task)[0], part.factors["rule"]

        yield adaptation(sampler, task.pi)


def _stretches(task: Task, n: int) -> Iterator[Examples]:
    for start in range(0, n, AT_ONCE):
        yield task.sample(task.validation, min(AT_ONCE, n - start), start, "test")


def _weights(stack: Stack, examples: Examples, task: Task) -> Array:
    kept = predictions(stack, examples, task.spec, [WEIGHTS])
    return kept[WEIGHTS]
