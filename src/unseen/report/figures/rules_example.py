"""The modularity paper's figure 2: a made-up activation matrix, and what the metrics say of it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from unseen.metrics.specialization import MATRIX_METRICS
from unseen.report import theme
from unseen.report.activation import activation_cells, activation_chart
from unseen.report.figure import Drawing
from unseen.report.figures.rules_runs import METRICS
from unseen.report.source import Source

EXAMPLE = np.array([[0.95, 0, 0, 0.05], [0, 0, 0, 1], [0.35, 0.10, 0, 0.55], [0, 1, 0, 0]])
"""Rows are rules, columns modules."""


def example(source: Source) -> Drawing | None:
    """The matrix with the best assignment framed, the metrics as bars beside it."""
    if not source.runs["task"].str.startswith("rules/").any():
        return None
    alt = theme.load_altair()
    rules = len(EXAMPLE)
    uniform = np.full(rules, 1 / rules)
    cells = activation_cells(EXAMPLE, uniform)
    cells = cells.assign(rule=cells["rule"] + 1, module=cells["module"] + 1)  # as the paper counts them
    scores = pd.DataFrame(
        {"metric": list(METRICS.values()), "value": [float(MATRIX_METRICS[name](EXAMPLE, uniform)) for name in METRICS]}
    )
    at = alt.Y("metric:N", sort=list(METRICS.values()), title=None, axis=alt.Axis(ticks=False, domain=False))
    length = alt.X(
        "value:Q", title="value", scale=alt.Scale(domain=[0, 1.15], nice=False), axis=alt.Axis(values=[0, 0.5, 1])
    )
    scored = alt.Chart(scores).encode(x=length, y=at)
    side = alt.layer(
        scored.mark_bar(color=theme.BLUE, opacity=0.6, height=14),
        scored.mark_text(align="left", dx=5).encode(text=alt.Text("value:Q", format=".4f")),
    )
    chart = alt.hconcat(activation_chart(cells), side.properties(width=220, height=152), spacing=50)
    shown = cells.rename(columns={"weight": "value"}).assign(kind="activation")
    data = pd.concat([shown, scores.assign(kind="metric")], ignore_index=True)
    return Drawing(chart, data.assign(runs=0), ("Illustrative: the matrix is made up, and no run is behind it.",))
