"""Pieces that the charts of all figures share: panels, colours with legends, tooltips, and the states of runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from unseen.report.layout import SEPARATOR, ChartLayout, ChartMetric
from unseen.report.theme import GROUND, colour_scale, load_altair

ENDED = "ended"
NOT_CONVERGED = "not converged"
NOT_LEARNED = "not learned"
STATES = (ENDED, NOT_CONVERGED, NOT_LEARNED)
"""The states of runs. Only the first is drawn filled; the last, where a family has it, counts in no mean."""
MAX_DOTS = 2_000
"""Figures of more runs show means and intervals only: more dots would be a smear."""
WIDTHS = {1: 640, 2: 300, 3: 230, 4: 176}
"""The width of a panel by the number of panels side by side: a page is 1 100 pixels wide."""
READABLE = 600
"""The width that the panels of a line should fill together, in pixels, names of rows and numbers beside them excluded."""
WIDEST = 480
"""The width beyond which a panel of a paper's figure gets no easier to read."""


# -- panels -----------------------------------------------------------------------------------------------------------


def facet_panels(
    layers: Sequence[Any],
    rows: pd.DataFrame,
    layout: ChartLayout,
    height: Any,
    row_gap: int = 70,
    column_gap: int = 28,
    headroom: int = 0,
    independent: Sequence[str] = (),
) -> Any:
    """Layers over the columns of `rows`, with a panel for each value of its column `panel`.

    The gaps leave room for axes, headers and text between panels, `headroom` for text above each panel, in pixels.
    Scales in `independent` differ between panels.
    """
    alt = load_altair()
    width = panel_width(layout)
    columns = panels_across(layout)
    if columns == 1:
        return alt.layer(*layers, data=rows).properties(width=width, height=height)
    # An invisible text above every panel: headers are placed above everything that a panel contains, so without it the
    # headers of neighbouring panels would not line up.
    spacer = (
        alt.Chart()
        .transform_aggregate(rows="count()")
        .mark_text(baseline="bottom", dy=-headroom - 4, fontSize=11 if headroom else 3, opacity=0, text="|")
        .encode(x=alt.value(0), y=alt.value(0))
    )
    layered = alt.layer(*layers, spacer, data=rows).properties(width=width, height=height)
    header_options: dict[str, Any] = {}
    if max(map(len, layout.panels)) * 7.5 > width + column_gap:  # long headers are broken into lines
        header_options = {"labelExpr": f"split(datum.label, '{SEPARATOR}')", "labelBaseline": "bottom"}
        row_gap += 18 * (layout.header_lines - 1)
    header = alt.Header(labelAnchor="start", labelPadding=10, labelLimit=width + column_gap - 8, **header_options)
    faceted = layered.facet(
        facet=alt.Facet("panel:N", title=None, sort=list(layout.panels), header=header),
        columns=columns,
        spacing={"row": row_gap, "column": column_gap},
        bounds="flush",
        align="each",
    )
    # Every panel has its own axis: a shared one would hang below the gap of an incomplete last row.
    faceted = faceted.resolve_axis(x="independent")
    return faceted.resolve_scale(**dict.fromkeys(independent, "independent")) if independent else faceted


def panel_width(layout: ChartLayout) -> int:
    """The width of each panel in pixels."""
    return WIDTHS[panels_across(layout)]


def panels_across(layout: ChartLayout) -> int:
    """The number of panels side by side, chosen so that the last row is not nearly empty."""
    panels = len(layout.panels)
    if panels <= 4:
        return panels
    return 3 if panels in (5, 6, 9) else 4


def stack_charts(charts: Sequence[Any]) -> Any:
    """Charts one below the other, each with its own colours and legend, because their series may differ."""
    alt = load_altair()
    if len(charts) == 1 and charts[0].title is alt.Undefined:
        return charts[0]
    scales = alt.ScaleResolveMap(color="independent", fill="independent", shape="independent")
    return alt.vconcat(*charts, spacing=40, resolve=alt.Resolve(scale=scales))


def concat_charts(charts: Sequence[Any], columns: int, spacing: Any) -> Any:
    """Charts in a grid with common colours and one legend."""
    chart = load_altair().concat(*charts, columns=columns, spacing=spacing)
    return chart.resolve_scale(color="shared", fill="shared", shape="shared")


def widen(width: int, columns: int, panels: int) -> int:
    """The width of a panel: wider than designed if there are too few panels to fill a line of the page.

    >>> widen(160, 4, 4), widen(160, 4, 2), widen(160, 4, 1)
    (160, 300, 480)
    """
    across = min(columns, panels)
    return max(width, min(WIDEST, READABLE // max(across, 1)))


def add_heading(chart: Any, heading: str) -> Any:
    """Give a chart a heading, which `stack_charts` preserves when the whole figure gets a title.

    The chart is changed in place: `properties` would copy all its data.
    """
    if heading:
        chart.title = load_altair().Title(heading, fontSize=14, offset=10)
    return chart


# -- marks and channels -----------------------------------------------------------------------------------------------


def filter_rows(**equal: object) -> Any:
    """A chart of the rows whose columns have these values."""
    alt = load_altair()
    chart = alt.Chart()
    for field, value in equal.items():
        chart = chart.transform_filter(alt.FieldEqualPredicate(equal=value, field=field))
    return chart


def colour_channel(labels: Iterable[str], symbol: str = "", *, field: str = "series", **legend: Any) -> Any:
    """The colours of models; with a legend above the chart if the `symbol` of its entries is given."""
    alt = load_altair()
    entries = None
    if symbol:
        entries = alt.Legend(title=None, orient="top", symbolType=symbol, symbolOpacity=1, **legend)
    return alt.Color(f"{field}:N", scale=colour_scale(labels), legend=entries)


def fill_channel(labels: Sequence[str], field: str = "series") -> Any:
    """The same colours as filling, without a legend."""
    return load_altair().Fill(f"{field}:N", scale=colour_scale(labels), legend=None)


def fill_by_state() -> Any:
    """The opacity of the filling of a dot by the column `state`: hollow if the run had not converged."""
    alt = load_altair()
    return alt.FillOpacity("state:N", legend=None, scale=alt.Scale(domain=[ENDED, NOT_CONVERGED], range=[0.75, 0.0]))


def contrasting_ink(condition: str) -> dict[str, Any]:
    """Dark text on bright cells (where the Vega expression holds), bright text on dark ones, on any page."""
    return {"condition": {"test": condition, "value": GROUND["dark"]}, "value": GROUND["light"]}


def heat_scale(**options: Any) -> Any:
    """The colour scale of values from 0 to 1 in heat maps."""
    return load_altair().Scale(domain=[0, 1], scheme="viridis", **options)


# -- tooltips ---------------------------------------------------------------------------------------------------------


def number_tooltips(format: str, *fields: str) -> list[Any]:
    """One line of a tooltip for each numeric field."""
    alt = load_altair()
    return [alt.Tooltip(f"{field}:Q", format=format) for field in fields]


def metric_tooltip(field: str, metric: ChartMetric, title: str | None = None) -> Any:
    """A line of a tooltip with a value of a metric."""
    format = ".1%" if metric.format == "%" else ".3~f"
    return load_altair().Tooltip(f"{field}:Q", title=title or field, format=format)


def mean_tooltips(format: str, field: str = "mean") -> list[Any]:
    """A mean with the bounds of its interval and the number of runs behind it."""
    alt = load_altair()
    return [
        alt.Tooltip(f"{field}:Q", title="mean", format=format),
        *number_tooltips(format, "low", "high"),
        *count_tooltips(),
    ]


def count_tooltips() -> list[Any]:
    """The number of runs behind a mean, and how many of them had not converged."""
    alt = load_altair()
    return [alt.Tooltip("runs:Q"), alt.Tooltip("not_converged:Q", title=NOT_CONVERGED)]
