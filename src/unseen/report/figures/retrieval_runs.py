"""What figures of the retrieval family show, run by run: the best weights' numbers on the paper's test (`ood/single`),
as the claims of the family judge them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from unseen.report.figures.notes import run_notes
from unseen.report.figures.rows import LEARNING
from unseen.report.panels import ENDED
from unseen.report.references import drawn, measured, unseen_notes
from unseen.report.source import Source
from unseen.studies.claims import retrieval as claims
from unseen.studies.claims.retrieval import LENGTH, LSTM, LSTM_ATTENTION, VARIANTS

TEST = "ood/single"
TASKS = tuple(f"retrieval/{name}" for name in claims.TABLE2)
MODELS = (*VARIANTS, LSTM, LSTM_ATTENTION)


def of_variants(source: Source) -> pd.DataFrame:
    """The runs that say which variant of the paper's models they are, with their `length` and the `short` name of their
    task."""
    runs = claims.columns(source.runs)
    runs = runs[runs["variant"].isin(MODELS)] if "variant" in runs else runs.iloc[:0]
    return runs.assign(short=runs["task"].str.removeprefix("retrieval/"))


def at_length(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs at the length that is nearest to that of the paper's tables, as the claims choose it."""
    if runs.empty:
        return runs
    lengths = runs["length"].astype(int)
    nearest = min(sorted(set(lengths)), key=lambda length: abs(length - LENGTH))
    return runs[lengths == nearest]


def best(
    source: Source, runs: pd.DataFrame, metric: str = "accuracy", factor: str = "", series: str = "variant"
) -> pd.DataFrame:
    """A metric of the best weights of some runs on the paper's test, overall or by the levels of a factor, beside what
    the runs are; with `series`, and `state`, what became of the run."""
    records = source.records
    rows = records[
        (records["selection"] == "best")
        & (records["condition"] == TEST)
        & (records["factor"] == factor)
        & (records["metric"] == metric)
    ]
    told = runs.assign(series=runs[series].astype(str), state=np.where(runs["still_learning"] == 1, LEARNING, ENDED))
    kept = ["cell", "level", "value"]
    found = told.drop(columns=[name for name in kept[1:] if name in told]).merge(rows[kept], on="cell")
    return found[found["value"].notna()]


def order(series: Sequence[str]) -> list[str]:
    """Models in the order of the paper's table, others after them."""
    return [
        *(name for name in MODELS if name in set(series)),
        *(name for name in dict.fromkeys(series) if name not in MODELS),
    ]


def shortcut_lines(source: Source, runs: pd.DataFrame) -> dict[str, float]:
    """What can be had without the task, on average over the lengths of the runs: chance, the best shortcut, and the
    oracle."""
    return drawn(measured(source, runs["cell"], [TEST]))


def notes(source: Source, runs: pd.DataFrame, rows: pd.DataFrame, *more: str) -> tuple[str, ...]:
    """What to say under a figure of `rows` of `runs`: on the runs, `more`, and what is unseen in the test."""
    unseen = unseen_notes(source.where(source.runs["cell"].isin(runs["cell"])), [TEST])
    return tuple(dict.fromkeys([*run_notes(runs, rows), *more, *unseen]))


def length_note(runs: pd.DataFrame, printed: str = "") -> list[str]:
    """At which length, where it is not the paper's; else how what it prints is drawn."""
    lengths = sorted(set(runs["length"]))
    many = " and ".join(map(str, lengths))
    return (
        [printed] * bool(printed)
        if lengths == [LENGTH]
        else [f"Sequences of length {many}; the paper's numbers, for length {LENGTH}, are not drawn."]
    )


def papers_length(runs: pd.DataFrame) -> bool:
    """Whether all runs are at the length for which the paper's numbers are printed."""
    return bool(len(runs)) and bool((runs["length"] == LENGTH).all())
