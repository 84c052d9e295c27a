"""Figures of word problems over groups: accuracy by the number of tokens that have been multiplied."""

from __future__ import annotations

import numpy as np
import pandas as pd

from unseen.claims.papers import option_column
from unseen.names import family_of
from unseen.report.charts import ENDED, NOT_CONVERGED, stack_charts
from unseen.report.data import Source
from unseen.report.figure import Drawing, Figure, run_notes
from unseen.report.line_plot import NumberPanel, number_chart, number_table

_TOKENS = "tokens read (end of the range)"


def draw_prefixes(source: Source) -> Drawing | None:
    """A panel per group: accuracy against the number of tokens that have been multiplied, in the longest words."""
    records = source.records
    if records.empty or "prefix" not in set(records["factor"]):
        return None
    prefixes = (records["factor"] == "prefix") & (records["split"] == "ood/longest")
    rows = records[prefixes & (records["metric"] == "accuracy") & (records["selection"] == source.selection)]
    rows = rows[rows["value"].notna() & rows["task"].map(family_of).eq("groups")]
    if rows.empty:
        return None
    runs = source.runs.drop_duplicates("trial").set_index("trial")
    series = "backbone" if "backbone" in rows else source.series
    state = np.where(rows["trial"].map(runs["not_converged"]).eq(1), NOT_CONVERGED, ENDED)
    # A level like 041-080 is drawn at its end.
    tokens_read = rows["level"].astype(str).str.rpartition("-")[2].astype(int)
    rows = rows.assign(series=rows[series].astype(str), number=tokens_read, state=state)
    labels = list(rows["series"].drop_duplicates())
    lengths = option_column(runs, "task.length")
    charts = []
    tables = []
    for task, of_task in rows.groupby("task", sort=False):
        first_task = source.task(of_task["trial"].iloc[0])
        references = {} if first_task is None else {"chance": first_task.spec.target.chance}
        boundary = float(lengths[of_task["trial"].iloc[0]])
        panel = NumberPanel(str(task), of_task, references, boundary)
        charts.append(number_chart(panel, labels, _TOKENS))
        tables.append(number_table(panel, series, "tokens").assign(task=task))
    notes = run_notes(source.runs, rows)
    return Drawing(stack_charts(charts), pd.concat(tables, ignore_index=True), tuple(notes))


FIGURES = (
    Figure(
        "groups/prefixes",
        "State tracking by prefix length",
        "ours",
        "Accuracy on the longest words (ood/longest) by how many tokens have been multiplied; right of the line, more than "
        "in training. Dots: runs; ticks: means with 95 % intervals.",
        draw_prefixes,
    ),
)
