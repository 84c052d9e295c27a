"""Whether models use a variable where it is: `interchange/accuracy`, `interchange/unchanged`, `interchange/moved`."""

from __future__ import annotations

from unseen.analysis.interchange import NoPairs
from unseen.tasks.base import Task
from unseen.training.analyses.inside_measures import MOST_EXAMPLES, as_measures, choose_subject
from unseen.training.analyses.probes import unavailable
from unseen.training.evaluate import Measure, Origin, evaluated_splits
from unseen.training.inside import interchange_table
from unseen.training.recipe import INTERCHANGE, Evaluation
from unseen.training.stack import Stack

__all__ = ["examples", "measures", "unavailable"]

_SITES_AND_POSITIONS = 20
"""About how many sites and positions there are, each with a forward pass of all pairs."""


def examples(task: Task, evaluation: Evaluation) -> int:
    """The number of examples that the analysis answers, roughly."""
    pairs = min(MOST_EXAMPLES, evaluation.examples) // 2
    return pairs * _SITES_AND_POSITIONS * len(evaluated_splits(task, evaluation))


def measures(stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None) -> list[list[Measure]]:
    """The scores of interchange interventions of every member on every split, by `variable,site,position`.

    A split without pairs of examples whose answers differ in the variable has none.
    """
    subject = choose_subject(task)
    assert subject is not None
    rows: list[list[Measure]] = [[] for _ in range(len(stack))]
    for split in evaluated_splits(task, evaluation):
        n = min(MOST_EXAMPLES, evaluation.examples) // 2
        try:
            table = interchange_table(stack, task, subject.variable, split, n, (), subject.positions)
        except NoPairs:
            continue
        metrics = "accuracy", "unchanged", "moved"
        measures_of_split = as_measures(table, split, INTERCHANGE, metrics, len(stack))
        for member_rows, member_measures in zip(rows, measures_of_split, strict=True):
            member_rows.extend(member_measures)
    return rows
