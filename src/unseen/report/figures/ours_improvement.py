"""Which series is better, and how surely: the probability that a run of one beats a run of another."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pandas as pd

from unseen.randomness import stream
from unseen.report.figure import Drawing
from unseen.report.figures.notes import layout_notes
from unseen.report.layout import Layout, layouts
from unseen.report.panels import stacked
from unseen.report.source import Source
from unseen.report.theme import load_altair
from unseen.stats import probability_of_improvement

SERIES = 12
"""The largest matrix that can be read."""
CELL = 62
PALE = ("#B35806", "#F7F7F7", "#542788")
"""Orange to purple over nearly white: told apart by colour-blind readers."""


def draw(source: Source) -> Drawing | None:
    """A matrix of series against series; None where no two share a place and a seed."""
    found = [(one, rows) for one in layouts(source, panels=False) if len(rows := _table(one))]
    if not found:
        return None
    shown = [one for one, _ in found]
    cut = [f"The first {SERIES} of {len(one.series)} are compared." for one in shown if len(one.series) > SERIES]
    return Drawing(
        stacked([_chart(*one) for one in found]),
        pd.concat([rows for _, rows in found], ignore_index=True),
        (*dict.fromkeys(cut), *layout_notes(source, shown)),
    )


def _table(layout: Layout) -> pd.DataFrame:
    """`better`, `worse` and the `probability` that a run of the first beats one of the second, on the places and seeds
    that both have; both ways."""
    sign = 1 if layout.metric.rising else -1
    labels = layout.series[:SERIES]
    scores = {
        label: dict(
            zip(
                zip(rows["place"], zip(rows["instance"], rows["seed"], strict=True), strict=True),
                (sign * rows["value"]).tolist(),
                strict=True,
            )
        )
        for label, rows in layout.rows.groupby("series", sort=False)
    }
    found = []
    for first, second in combinations(labels, 2):
        shared = scores[first].keys() & scores[second].keys()
        if not shared:
            continue
        one, other = ({key: scores[label][key] for key in shared} for label in (first, second))
        chance = probability_of_improvement(
            one, other, generator=stream("interval", "improvement").block(), covers="runs", resamples=layout.resamples
        )
        low, high = chance.interval.low, chance.interval.high
        places = len({place for place, _ in shared})
        found += [
            [first, second, chance.value, low, high, len(shared), places],
            [second, first, 1 - chance.value, 1 - high, 1 - low, len(shared), places],
        ]
    table = pd.DataFrame(found, columns=["better", "worse", "probability", "low", "high", "runs", "places"])
    return table.assign(metric=layout.metric.name)


def _chart(layout: Layout, rows: pd.DataFrame) -> Any:
    alt = load_altair()
    labels = [label for label in layout.series if label in set(rows["better"])]
    angle = 0 if max(map(len, labels)) * 7 < CELL else -35
    x = alt.X(
        "worse:N",
        sort=labels,
        title=f"… is better than one of these ({layout.metric.word})",
        axis=alt.Axis(orient="top", labelAngle=angle, ticks=False, domain=False, grid=False, titlePadding=10),
    )
    y = alt.Y(
        "better:N",
        sort=labels,
        title="a run of …",
        axis=alt.Axis(ticks=False, domain=False, grid=False, titlePadding=10),
    )
    colour = alt.Color("probability:Q", scale=alt.Scale(domain=[0, 0.5, 1], range=list(PALE)), legend=None)
    # The ink of a number goes with the colour under it, not with the paper.
    ink = alt.condition("abs(datum.probability - 0.5) > 0.33", alt.value("#FFFFFF"), alt.value("#22262E"))
    base = alt.Chart(rows)
    number = [alt.Tooltip(f"{name}:Q", format=".3f") for name in ("probability", "low", "high")]
    cells = base.mark_rect(cornerRadius=3).encode(
        x=x, y=y, color=colour, tooltip=["better:N", "worse:N", *number, "runs:Q", "places:Q"]
    )
    words = base.mark_text(fontSize=13, fontWeight=600).encode(
        x=x, y=y, text=alt.Text("probability:Q", format=".2f"), color=ink
    )
    return alt.layer(cells, words).properties(width=alt.Step(CELL), height=alt.Step(40))
