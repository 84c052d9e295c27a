"""What of each split training already has: `python docs/generate/unseen_shares.py [TASK ...]` writes unseen_shares.csv.

Computing it takes minutes per family, so that the file is committed; a test computes samples of it again. Tasks that are
named are computed anew, the rows of the others stay.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from unseen.tasks import TASKS, task
from unseen.tasks.base import Task
from unseen.tasks.verify.coverage import read_coverage
from unseen.tasks.verify.equivalence import read_functions, training_blocks
from unseen.training.evaluate import draw_examples

FILE = Path(__file__).with_name("unseen_shares.csv")
EXAMPLES = 1_000
"""The test examples of a split that are compared with training."""
LONGEST = 2
"""Chains of up to so many functions are what a learner may be expected to know by heart."""
LISTED = 4


def compute(chosen: Task) -> list[dict[str, object]]:
    """A row per split but `train`: the shares of its functions and forms, and the properties that training lacks."""
    functions = read_functions(chosen)
    coverage = read_coverage(chosen)
    short = _short_functions(chosen)
    rows: list[dict[str, object]] = []
    for split in chosen.splits:
        if split == "train":
            continue
        examples = draw_examples(chosen, split, EXAMPLES, "test")
        expressions = chosen.expressions(examples)
        row: dict[str, object] = {
            "task": chosen.name,
            "split": split,
            "n": len(examples),
            "training": coverage.training,
        }
        if functions is not None and expressions is not None:
            familiar = functions.compare(expressions)
            row |= {"other_form": familiar.equivalent, "same_form": familiar.form.mean(), "new": familiar.new}
        if short is not None and expressions is not None:
            row["short"] = sum(function in short for function in expressions.functions) / len(examples)
        lacking = coverage.find_lacking(chosen, examples)[:LISTED]
        row["lacking"] = "; ".join(f"{lack.name} {100 * lack.share:.1f} %" for lack in lacking)
        rows.append(row)
    return rows


def _short_functions(chosen: Task) -> set[object] | None:
    """The functions of training chains of one or two functions; None for tasks without chains."""
    if chosen.family != "ctl":
        return None
    functions: set[object] = set()
    for block in training_blocks(chosen):
        length = block.factors["length"]
        expressions = chosen.expressions(block[length <= LONGEST])
        assert expressions is not None
        functions.update(expressions.functions)
    return functions


def read() -> pd.DataFrame:
    """The committed shares."""
    return pd.read_csv(FILE, keep_default_na=False, na_values=[""])


def main(names: list[str]) -> None:
    """Compute the shares of these tasks, or of all that come with the package, and write them task by task."""
    for name in names or [entry.name for entry in TASKS if entry.target.startswith("unseen.")]:
        before = read() if FILE.exists() else pd.DataFrame(columns=["task"])
        table = pd.concat([before[before["task"] != name], pd.DataFrame(compute(task(name)))])
        table = table.astype({"n": int, "training": int}).sort_values("task", kind="stable")
        table.to_csv(FILE, index=False, float_format="%.4f")
        sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
