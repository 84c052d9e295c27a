"""How much worse a modular model answers without each of its modules: `ablation/drop` by `module`, and `ablation/mean_drop`.

A module is left out by setting its weight to zero; the other weights stay as they are.
"""

from __future__ import annotations

import math

from unseen.tasks.base import Task
from unseen.training.analyses.rules_specialization import WEIGHTS
from unseen.training.evaluate import Measure, Origin, Unavailable, draw_examples, evaluated_splits, predict
from unseen.training.inside import ablation_table
from unseen.training.interventions import Component
from unseen.training.recipe import ABLATION, Evaluation
from unseen.training.stack import Stack

MOST_EXAMPLES = 1_000


def unavailable(stack: Stack, task: Task, origin: Origin | None = None) -> Unavailable | None:
    """Why there are no modules to leave out; None if there are."""
    return Unavailable.without([WEIGHTS]) if _count_modules(stack, task) is None else None


def examples(task: Task, evaluation: Evaluation) -> int:
    """The number of examples that the analysis answers: twice for each of about eight modules."""
    return 16 * min(MOST_EXAMPLES, evaluation.examples) * len(evaluated_splits(task, evaluation))


def measures(stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None) -> list[list[Measure]]:
    """The loss of accuracy (with real targets, minus the rise of the error) without each module, and its mean."""
    modules = _count_modules(stack, task)
    assert modules is not None
    components = [Component(WEIGHTS, unit=module) for module in range(modules)]
    rows: list[list[Measure]] = [[] for _ in range(len(stack))]
    for split in evaluated_splits(task, evaluation):
        n = min(MOST_EXAMPLES, evaluation.examples)
        table = ablation_table(stack, task, components, "zero", split, n)
        for member in range(len(stack)):
            member_rows = table[table["member"] == member]
            drops = dict(zip(member_rows["unit"], member_rows["drop"], strict=True))
            for module, drop in drops.items():
                rows[member].append(Measure(split, "module", str(module), f"{ABLATION}/drop", drop, math.nan, n))
            mean = sum(drops.values()) / len(drops)
            rows[member].append(Measure(split, "", "", f"{ABLATION}/mean_drop", mean, math.nan, n))
    return rows


def _count_modules(stack: Stack, task: Task) -> int | None:
    captured = predict(stack, draw_examples(task, task.validation, 1, "test"), task.spec, [WEIGHTS])
    return int(captured[WEIGHTS].shape[-1]) if WEIGHTS in captured else None
