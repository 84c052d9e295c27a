"""What must stand under a figure of runs: how many are missing, and which of those that are there to distrust."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from unseen.report.figures.rows import LEARNING, UNLEARNED
from unseen.report.layout import Layout
from unseen.report.references import unseen_notes
from unseen.report.source import Source
from unseen.studies.store import ENDED

HOLLOW = "Hollow dots: "
WEIGHTS = {"best": "Weights best on validation.", "last": "Last weights, as in the paper."}


def run_notes(
    runs: pd.DataFrame, shown: pd.DataFrame, bound: str = "", counted: bool = False, mark: str = HOLLOW
) -> list[str]:
    """How many of `runs` have ended, and what became of those that are `shown` (a `cell` per line, and its `state` or
    whether it was `still_learning`).

    `bound` says what a run that has not learned falls short of; `counted`: it is in the means all the same; `mark` is
    how those are drawn that were still learning.

    >>> runs = pd.DataFrame({"cell": ["a", "b", "c"], "status": ["finished", "failed", "pending"], "still_learning": 1})
    >>> run_notes(runs, pd.DataFrame({"cell": ["a", "a"], "state": [LEARNING] * 2}))
    ['1 of 3 runs are drawn; 1 failed, 1 has not ended.', 'Hollow dots: 1 run was still learning when it ended.']
    """
    runs, drawn = runs.drop_duplicates("cell"), shown.drop_duplicates("cell")
    status = runs["status"].value_counts()
    open_ = int((~runs["status"].isin([*ENDED, "failed"])).sum())
    missing = [
        f"{number} {words}"
        for number, words in (
            (status.get("failed", 0), "failed"),
            (status.get("diverged", 0), "diverged"),
            (open_, "has not ended" if open_ == 1 else "have not ended"),
        )
        if number
    ]
    found = []
    if len(drawn) < len(runs) or missing:
        found.append(f"{len(drawn)} of {len(runs)} runs are drawn" + (f"; {', '.join(missing)}." if missing else "."))
    still = drawn["state"] == LEARNING if "state" in drawn else drawn["still_learning"] == 1
    learning = int(still.sum())
    if learning:
        found.append(
            f"{mark}{learning} run{_s(learning)} {_was(learning)} still learning when "
            f"{'it' if learning == 1 else 'they'} ended."
        )
    unlearned = int((drawn["state"] == UNLEARNED).sum()) if "state" in drawn else 0
    if unlearned:
        found.append(
            f"Hollow diamonds: {unlearned} run{_s(unlearned)} {'has' if unlearned == 1 else 'have'} not "
            f"learned{bound}"
            + (
                "."
                if counted
                else f"; no mean but that of training accuracy counts {'it' if unlearned == 1 else 'them'}."
            )
        )
    unknown = int(
        (
            runs["still_learning"].isna()
            & runs["cell"].isin(drawn["cell"])
            & runs["status"].isin(["finished", "stopped"])
        ).sum()
    )
    if unknown:
        found.append(
            f"Of {unknown} run{_s(unknown)} it can't be told whether {'it' if unknown == 1 else 'they'} "
            f"{_was(unknown)} still learning: too few validations."
        )
    return found


def layout_notes(
    source: Source, layouts: Sequence[Layout], mark: str = "", conditions: Iterable[str] | None = None
) -> tuple[str, ...]:
    """All that stands under a figure of these layouts; `conditions` are those of the layouts if none are given."""
    shown = pd.concat([one.rows[["cell", "still_learning"]] for one in layouts])
    wanted = [name for one in layouts for name in one.conditions] if conditions is None else conditions
    return tuple(
        dict.fromkeys(
            [
                WEIGHTS[source.selection],
                *(note for one in layouts for note in one.notes),
                *run_notes(source.runs, shown, mark=mark),
                *unseen_notes(source, wanted),
            ]
        )
    )


def _s(number: int) -> str:
    return "" if number == 1 else "s"


def _was(number: int) -> str:
    return "was" if number == 1 else "were"
