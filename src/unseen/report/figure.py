"""Figures, and the notes under them: which runs are missing and which have not converged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pandas as pd

from unseen.report.baselines import unseen_notes
from unseen.report.charts import NOT_CONVERGED, NOT_LEARNED
from unseen.report.data import Source
from unseen.report.layout import ChartLayout
from unseen.store.store import ENDED

HOLLOW = "Hollow dots: "
WEIGHTS_NOTES = {"best": "Weights best on validation.", "last": "Last weights, as in the paper."}


@dataclass(frozen=True)
class Drawing:
    """A chart (Altair, without title, text colour or configuration), the table behind it, and the notes under it."""

    chart: Any
    data: pd.DataFrame
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figure:
    """A recipe from records to a drawing.

    `name` is unique and names the files of the figure (`gcog/figure3` → gcog-figure3.svg); `origin` is the figure or
    table of a paper, or `ours`. `draw` returns None if none of its runs exist, and a partial drawing if some do.
    An `illustrative` figure has no run behind it, and is left out of the pages of users' studies.
    """

    name: str
    title: str
    origin: str
    caption: str
    draw: Callable[[Source], Drawing | None]
    reads_activations: bool = False
    """Whether it shows activations of trained models, so that a page explains that word."""
    illustrative: bool = False

    @property
    def file(self) -> str:
        """The name of its files without a suffix."""
        return self.name.replace("/", "-")


def run_notes(
    runs: pd.DataFrame, shown: pd.DataFrame, bound: str = "", counted: bool = False, mark: str = HOLLOW
) -> list[str]:
    """How many of `runs` are drawn, and the states of those that are.

    `shown` has rows with a `trial` and its `state` or whether it was `not_converged`. `bound` is the criterion that a
    run that has not learned misses; `counted` tells that such runs are nevertheless part of the means; `mark` describes
    how runs that have not converged are drawn.

    >>> runs = pd.DataFrame({"trial": ["a", "b", "c"], "status": ["finished", "failed", "pending"], "not_converged": 1})
    >>> run_notes(runs, pd.DataFrame({"trial": ["a", "a"], "state": [NOT_CONVERGED] * 2}))
    ['1 of 3 runs are drawn; 1 failed, 1 has not ended.', 'Hollow dots: 1 run had not converged when it ended.']
    """
    runs = runs.drop_duplicates("trial")
    drawn_trials = shown.drop_duplicates("trial")
    status = runs["status"].value_counts()
    unfinished = int((~runs["status"].isin([*ENDED, "failed"])).sum())
    missing = [f"{status[name]} {name}" for name in ("failed", "diverged") if name in status]
    if unfinished:
        missing.append(f"{unfinished} {'has' if unfinished == 1 else 'have'} not ended")
    notes = []
    if len(drawn_trials) < len(runs) or missing:
        notes.append(
            "; ".join([f"{len(drawn_trials)} of {len(runs)} runs are drawn", *filter(None, [", ".join(missing)])]) + "."
        )
    has_state = "state" in drawn_trials
    not_converged = int(
        (drawn_trials["state"] == NOT_CONVERGED if has_state else drawn_trials["not_converged"] == 1).sum()
    )
    if not_converged:
        pronoun = "it" if not_converged == 1 else "they"
        notes.append(f"{mark}{count_runs(not_converged)} had not converged when {pronoun} ended.")
    not_learned = int((drawn_trials["state"] == NOT_LEARNED).sum()) if has_state else 0
    if not_learned:
        text = f"Hollow diamonds: {count_runs(not_learned)} {'has' if not_learned == 1 else 'have'} not learned{bound}"
        pronoun = "it" if not_learned == 1 else "them"
        notes.append(f"{text}." if counted else f"{text}; no mean except that of training accuracy includes {pronoun}.")
    scored = runs["status"].isin(["finished", "stopped"]) & runs["trial"].isin(drawn_trials["trial"])
    unknown = int((runs["not_converged"].isna() & scored).sum())
    if unknown:
        pronoun = "it" if unknown == 1 else "they"
        notes.append(
            f"For {count_runs(unknown)} there are too few validations to tell whether {pronoun} had converged."
        )
    return notes


def layout_notes(
    source: Source, layouts: Sequence[ChartLayout], mark: str = "", splits: Iterable[str] | None = None
) -> tuple[str, ...]:
    """All notes under a figure of these layouts, each once; `splits` are by default those of the layouts."""
    notes = [WEIGHTS_NOTES[source.selection]]
    for layout in layouts:
        notes += layout.notes
    shown = pd.concat([layout.rows[["trial", "not_converged"]] for layout in layouts])
    notes += run_notes(source.runs, shown, mark=mark)
    if splits is None:
        splits = list(chain.from_iterable(layout.splits for layout in layouts))
    notes += unseen_notes(source, splits)
    return tuple(dict.fromkeys(notes))


def count_runs(number: int) -> str:
    """A number of runs in words.

    >>> count_runs(1), count_runs(2)
    ('1 run', '2 runs')
    """
    return f"{number} run{'' if number == 1 else 's'}"
