"""The modularity paper's figure 2: a made-up activation matrix, and what the metrics say of it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from unseen.metrics.specialization import MATRIX_METRICS
from unseen.report import theme
from unseen.report.figure import Drawing
from unseen.report.figures.rules_runs import METRICS
from unseen.report.source import Source

EXAMPLE = np.array([[0.95, 0, 0, 0.05], [0, 0, 0, 1], [0.35, 0.10, 0, 0.55], [0, 1, 0, 0]])
"""Rows are rules, columns modules."""


def example(source: Source) -> Drawing | None:
    """The matrix as a heat map, the metrics as bars beside it."""
    if not source.runs["task"].str.startswith("rules/").any():
        return None
    alt = theme.load_altair()
    rules = len(EXAMPLE)
    numbers = np.arange(1, rules + 1)
    cells = pd.DataFrame({"rule": np.repeat(numbers, rules), "module": np.tile(numbers, rules),
                          "value": EXAMPLE.ravel()})
    uniform = np.full(rules, 1 / rules)
    scores = pd.DataFrame({"metric": list(METRICS.values()),
                           "value": [float(MATRIX_METRICS[name](EXAMPLE, uniform)) for name in METRICS]})
    x, y = (channel(f"{name}:O", title=name, axis=alt.Axis(labelAngle=0, ticks=False, domain=False))
            for name, channel in (("module", alt.X), ("rule", alt.Y)))
    heat = alt.Chart(cells).mark_rect().encode(
        x=x, y=y, tooltip=["rule:O", "module:O", "value:Q"],
        color=alt.Color("value:Q", scale=alt.Scale(domain=[0, 1], scheme="viridis"),
                        legend=alt.Legend(title="activation", gradientLength=130)))
    written = alt.Chart(cells).mark_text().encode(
        x=x, y=y, text=alt.Text("value:Q", format=".2f"),
        color={"condition": {"test": "datum.value > 0.6", "value": theme.GROUND["dark"]},
               "value": theme.GROUND["light"]})
    at = alt.Y("metric:N", sort=list(METRICS.values()), title=None, axis=alt.Axis(ticks=False, domain=False))
    length = alt.X("value:Q", title="value", scale=alt.Scale(domain=[0, 1.15], nice=False),
                   axis=alt.Axis(values=[0, 0.5, 1]))
    scored = alt.Chart(scores).encode(x=length, y=at)
    side = alt.layer(scored.mark_bar(color=theme.BLUE, opacity=0.6, height=14),
                     scored.mark_text(align="left", dx=5).encode(text=alt.Text("value:Q", format=".4f")))
    chart = alt.hconcat(alt.layer(heat, written).properties(width=200, height=200),
                        side.properties(width=220, height=200), spacing=50)
    data = pd.concat([cells.assign(kind="activation"), scores.assign(kind="metric")], ignore_index=True)
    return Drawing(chart, data.assign(runs=0), ("Illustrative: the matrix is made up, and no run is behind it.",))
