"""Where a variable of the task can be read off the activations by a linear map: `probes/accuracy`, `probes/selectivity`."""

from __future__ import annotations

from unseen.tasks.base import Task
from unseen.training.analyses.inside_measures import MOST_EXAMPLES, as_measures, choose_subject
from unseen.training.evaluate import Measure, Origin, Unavailable, evaluated_splits
from unseen.training.inside import probe_table
from unseen.training.recipe import PROBES, Evaluation
from unseen.training.stack import Stack


def unavailable(stack: Stack, task: Task, origin: Origin | None = None) -> Unavailable | None:
    """Why there is nothing to probe; None if there is."""
    return Unavailable(f"{task.name} names no variable to look for") if choose_subject(task) is None else None


def examples(task: Task, evaluation: Evaluation) -> int:
    """The number of examples that the analysis examines."""
    return min(MOST_EXAMPLES, evaluation.examples) * len(evaluated_splits(task, evaluation))


def measures(stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None) -> list[list[Measure]]:
    """The scores of probes of every member on every split, by `variable,site,position`."""
    subject = choose_subject(task)
    assert subject is not None
    rows: list[list[Measure]] = [[] for _ in range(len(stack))]
    for split in evaluated_splits(task, evaluation):
        n = min(MOST_EXAMPLES, evaluation.examples)
        table = probe_table(stack, task, [subject.variable], split, n, (), subject.positions)
        measures_of_split = as_measures(table, split, PROBES, ("accuracy", "selectivity"), len(stack))
        for member_rows, member_measures in zip(rows, measures_of_split, strict=True):
            member_rows.extend(member_measures)
    return rows
