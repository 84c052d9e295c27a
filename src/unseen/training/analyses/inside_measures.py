"""The subject of the analyses `probes` and `interchange` of studies: a variable of each family, at the tokens that matter.

The sites are all at which the model has a state. A measure is named by `variable,site,position`, as in
`symbol[1],encoder.state,token[1]`. For other variables, sites and positions look into kept weights: `runs.probe`,
`runs.intervene`, `unseen inspect`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from unseen.names import name_in_family
from unseen.tasks.base import Task
from unseen.tasks.groups.task import WordProblem
from unseen.training.evaluate import Measure

FACTOR = "variable,site,position"
MOST_EXAMPLES = 1_000
"""The examples of a probe; there are half as many pairs."""


@dataclass(frozen=True)
class Subject:
    """A variable, and the positions at which activations with tokens are examined; none: all of them."""

    variable: str
    positions: tuple[str, ...] = ()


def choose_subject(task: Task) -> Subject | None:
    """The variable of a task whose use is in question; None if the task names none.

    >>> from unseen.tasks import task
    >>> choose_subject(task("ctl/A"))
    Subject(variable='symbol[1]', positions=('token[1]', 'token[2]', '0', 'all'))
    """
    variant = name_in_family(task.name)
    if task.family == "ctl":
        # The first function's token, the second's, and the start marker, at which Transformers read the answer.
        return Subject("symbol[1]", ("token[1]", "token[2]", "0", "all"))
    if task.family == "retrieval":
        if variant in ("T6", "T7"):
            return Subject("first_position[0]", ("first_position[0]", "second_position[0]", "all"))
        return Subject("first_present[0]", ("first_position[0]", "all"))
    if task.family == "rules":
        return Subject("rule", ("all",)) if variant == "mlp" else Subject("rule[0]", ("0", "1", "all"))
    if task.family == "gcog":
        return Subject("target_place", ("all",))
    if isinstance(task, WordProblem):
        # The product in the middle of the longest words: at its token, at the next, at which it is multiplied, and at the last.
        middle = max(1, task.length // 2)
        later = min(middle, task.length - 1)
        positions = dict.fromkeys((str(middle - 1), str(later), str(task.length - 1), "all"))
        return Subject(f"product[{middle}]", tuple(positions))
    if task.family == "recall":
        return Subject("value[0]", ("key_position[0]", "value_position[0]", "query_position[0]", "all"))
    return None


def as_measures(
    table: pd.DataFrame, split: str, analysis: str, metrics: tuple[str, ...], members: int
) -> list[list[Measure]]:
    """The rows of a table of `training.inside` as measures of every member."""
    rows: list[list[Measure]] = [[] for _ in range(members)]
    for row in table.to_dict("records"):
        level = f"{row['variable']},{row['site']},{row['position']}"
        for metric in metrics:
            share = float(row[metric])
            n = int(row["n"])
            if math.isnan(share):  # only matched pairs have moved answers
                continue
            error = math.sqrt(share * (1 - share) / n) if metric != "selectivity" else math.nan
            rows[row["member"]].append(Measure(split, FACTOR, level, f"{analysis}/{metric}", share, error, n))
    return rows
