"""How the modules of a model divide the rules of a task among themselves: the metrics of its activation matrix."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

from unseen.analysis.accuracy import Score
from unseen.analysis.adaptation_metric import DRAWS, adaptation
from unseen.analysis.specialization_metrics import SpecializationTally
from unseen.config import Config
from unseen.randomness import Floats
from unseen.tasks.base import Array, Examples, Task
from unseen.tasks.rules.task import Rules
from unseen.training.evaluate import Measure, Origin, Unavailable, draw_examples, predict
from unseen.training.recipe import SPECIALIZATION, Evaluation
from unseen.training.stack import Stack

WEIGHTS = "gating.weights"
"""The activation that a modular model captures: the factors of its modules' outputs, token by token."""
AT_ONCE = 10_000
"""Examples whose weights are held in memory."""


def unavailable(stack: Stack, task: Task, origin: Origin | None = None) -> Unavailable | None:
    """Why there is no specialization to measure; None if there is."""
    if not isinstance(task, Rules):
        return Unavailable("it is about tasks made by rules")
    captured = predict(stack, draw_examples(task, task.validation, 1, "test"), task.spec, [WEIGHTS])
    return None if WEIGHTS in captured else Unavailable.without([WEIGHTS])


def measures(stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None) -> list[list[Measure]]:
    """The specialization of every member as measures on the split that models are selected on."""
    assert isinstance(task, Rules)
    measures_by_member = []
    for scores in specialization(stack, task, evaluation):
        member_measures = []
        for name, score in scores.items():
            metric = f"{SPECIALIZATION}/{name}"
            member_measures.append(Measure(task.validation, "", "", metric, score.value, score.standard_error, score.n))
        measures_by_member.append(member_measures)
    return measures_by_member


def examples(task: Task, evaluation: Evaluation) -> int:
    """The number of examples behind the activation matrices; sampled adaptation needs more."""
    return evaluation.activation_examples


def sampled_examples(model: Config, task: Task, evaluation: Evaluation) -> int:
    """The number of examples for every member alone, if its adaptation is sampled: see `local_gating`."""
    local = getattr(model, "gating", "none") != "joint" or not task.spec.streams
    return 0 if local or SPECIALIZATION not in evaluation.analyses else DRAWS * evaluation.adaptation_examples


def specialization(stack: Stack, task: Rules, evaluation: Evaluation) -> list[dict[str, Score]]:
    """Every specialization metric of every member, on the task's own distribution of rules.

    Adaptation is exact and linear if the weights of a token depend on that token alone, which a module declares by
    `local_gating`; otherwise it is sampled.
    """
    tallies = [SpecializationTally(len(task.pi)) for _ in range(len(stack))]
    # In blocks, because the weights of all examples would not fit into memory.
    for start in range(0, evaluation.activation_examples, AT_ONCE):
        count = min(AT_ONCE, evaluation.activation_examples - start)
        block = task.sample(task.validation, count, start, "test")
        for tally, weights in zip(tallies, _weights(stack, block, task), strict=True):
            tally.add(weights, block.factors["rule"])
    scores_by_member = [tally.scores(task.pi) for tally in tallies]
    if not getattr(stack.skeleton, "local_gating", False):
        for scores, value in zip(scores_by_member, _sample_adaptation(stack, task, evaluation), strict=True):
            scores["adaptation"] = Score(value, float("nan"), evaluation.adaptation_examples)
    return scores_by_member


def _sample_adaptation(stack: Stack, task: Rules, evaluation: Evaluation) -> Iterator[float]:
    """The members' adaptation from tokens drawn under each of the rule distributions, one member at a time."""
    for member in range(len(stack)):
        alone = copy(stack)
        alone.select([member])

        def sampler(prior: Floats, alone: Stack = alone) -> tuple[Array, Array]:
            task_with_prior = task.parse({**task.options(), "prior": tuple(prior.tolist())})
            drawn = draw_examples(task_with_prior, task_with_prior.validation, evaluation.adaptation_examples, "test")
            return _weights(alone, drawn, task)[0], drawn.factors["rule"]

        yield adaptation(sampler, task.pi)


def _weights(stack: Stack, examples: Examples, task: Task) -> Array:
    captured = predict(stack, examples, task.spec, [WEIGHTS])
    return captured[WEIGHTS]
