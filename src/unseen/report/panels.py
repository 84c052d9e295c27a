"""Panels of a figure: layers over one table, one panel or many, wrapped; and the small parts that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unseen.report.layout import Layout, Metric
from unseen.report.theme import load_altair

WIDTHS = {1: 640, 2: 300, 3: 230, 4: 176}
"""The width of a panel by how many stand side by side: a page is 1 100 wide."""
ENDED, STILL = "ended", "still learning"


def arranged(
    layers: Sequence[Any],
    rows: Any,
    layout: Layout,
    height: Any,
    row: int = 70,
    column: int = 28,
    above: int = 0,
    independent: Sequence[str] = (),
) -> Any:
    """Layers that draw from the columns of `rows`, a panel for each value of its column `panel`; `row` and `column`
    are what axes, headers and words need between panels, `above` what words need over each."""
    alt = load_altair()
    wide, beside = width(layout), across(layout)
    # Something over every panel that is not seen: headers stand above what is there, and would not stand in line.
    kept = (
        alt.Chart()
        .transform_aggregate(rows="count()")
        .mark_text(
            baseline="bottom",
            dy=-above - 4,
            fontSize=11 if above else 3,
            opacity=0,
            text="|",
        )
        .encode(x=alt.value(0), y=alt.value(0))
    )
    layered = alt.layer(*layers, *([kept] if beside > 1 else []), data=rows).properties(width=wide, height=height)
    if beside == 1:
        return layered
    long = max(map(len, layout.panels)) * 7.5 > wide + column
    header = alt.Header(
        labelAnchor="start",
        labelPadding=10,
        labelLimit=wide + column - 8,
        **({"labelExpr": "split(datum.label, ' · ')", "labelBaseline": "bottom"} if long else {}),
    )
    several = layered.facet(
        facet=alt.Facet("panel:N", title=None, sort=list(layout.panels), header=header),
        columns=beside,
        spacing={"row": row + (18 * max(one.count(" · ") for one in layout.panels) if long else 0), "column": column},
        bounds="flush",
        align="each",
    )
    # Axes under every panel: a shared one would hang below the gap that an incomplete last row leaves.
    several = several.resolve_axis(x="independent")
    return several.resolve_scale(**dict.fromkeys(independent, "independent")) if independent else several


def width(layout: Layout) -> int:
    """The width of each panel."""
    return WIDTHS[across(layout)]


def across(layout: Layout) -> int:
    """How many panels stand side by side, so that the last row is not nearly empty."""
    panels = len(layout.panels)
    return panels if panels <= 4 else 3 if panels in (5, 6, 9) else 4


def stacked(charts: Sequence[Any]) -> Any:
    """Charts one below the other, each with colours and a legend of its own: they may have other series."""
    alt = load_altair()
    if len(charts) == 1 and charts[0].title is alt.Undefined:
        return charts[0]
    scales = alt.ScaleResolveMap(color="independent", fill="independent", shape="independent")
    return alt.vconcat(*charts, spacing=40, resolve=alt.Resolve(scale=scales))


def only(**equal: object) -> Any:
    """A chart of the rows whose columns have these values."""
    alt = load_altair()
    chart = alt.Chart()
    for field, value in equal.items():
        chart = chart.transform_filter(alt.FieldEqualPredicate(equal=value, field=field))
    return chart


def number(field: str, metric: Metric, title: str | None = None) -> Any:
    """A line of a tooltip with a value of a metric."""
    written = ".1%" if metric.format == "%" else ".3~f"
    return load_altair().Tooltip(f"{field}:Q", title=title or field, format=written)


def hollow() -> Any:
    """The filling of a dot by its column `state`: none while it was still learning."""
    alt = load_altair()
    return alt.FillOpacity("state:N", legend=None, scale=alt.Scale(domain=[ENDED, STILL], range=[0.75, 0.0]))


def said(value: float, metric: Metric) -> str:
    """A value as it stands in a figure.

    >>> from unseen.report.layout import METRICS
    >>> said(0.8125, METRICS[0]), said(0.8125, METRICS[1])
    ('81.2 %', '0.812')
    """
    return f"{100 * value:.1f} %" if metric.format == "%" else f"{value:.3f}" if abs(value) < 10 else f"{value:.3g}"
