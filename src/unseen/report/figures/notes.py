"""What must stand under a figure of runs: how many are missing, and which of those that are there to distrust."""

from __future__ import annotations

import pandas as pd

from unseen.report.figures.rows import LEARNING, UNLEARNED
from unseen.studies.store import ENDED


def run_notes(runs: pd.DataFrame, shown: pd.DataFrame, bound: str = "", counted: bool = False) -> list[str]:
    """How many of `runs` have ended, and what became of those that are `shown` (a `cell` and its `state` per line).

    `bound` says what a run that has not learned falls short of; `counted`: it is in the means all the same.

    >>> runs = pd.DataFrame({"cell": ["a", "b", "c"], "status": ["finished", "failed", "pending"]})
    >>> run_notes(runs, pd.DataFrame({"cell": ["a", "a"], "state": [LEARNING] * 2}))
    ['1 of 3 runs are drawn; 1 failed, 1 has not ended.', 'Hollow dots: 1 run was still learning when it ended.']
    """
    drawn = shown.drop_duplicates("cell")
    status = runs["status"].value_counts()
    failed, open_ = int(status.get("failed", 0)), int((~runs["status"].isin([*ENDED, "failed"])).sum())
    diverged = int(status.get("diverged", 0))
    missing = [f"{number} {words}" for number, words in (
        (failed, "failed"), (diverged, "diverged"), (open_, "has not ended" if open_ == 1 else "have not ended"))
        if number]
    found = []
    if len(drawn) < len(runs) or diverged:
        found.append(f"{len(drawn)} of {len(runs)} runs are drawn" + (f"; {', '.join(missing)}." if missing else "."))
    learning, unlearned = (int((drawn["state"] == state).sum()) for state in (LEARNING, UNLEARNED))
    if learning:
        found.append(f"Hollow dots: {learning} run{_s(learning)} {_was(learning)} still learning when "
                     f"{'it' if learning == 1 else 'they'} ended.")
    if unlearned:
        found.append(f"Hollow diamonds: {unlearned} run{_s(unlearned)} {'has' if unlearned == 1 else 'have'} not "
                     f"learned{bound}" + ("." if counted else "; means of what is new leave "
                                          f"{'it' if unlearned == 1 else 'them'} out."))
    return found


def _s(number: int) -> str:
    return "" if number == 1 else "s"


def _was(number: int) -> str:
    return "was" if number == 1 else "were"
