"""How the figures of the modularity paper are laid out: lines against a doubling quantity, bars, and their panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from unseen.report import theme
from unseen.report.figures.rules_runs import FAMILIES, RANDOM

_DODGE = {family: 0.13 * (place - 1.5) for place, family in enumerate(FAMILIES)}
"""How far a family stands beside its place, in doublings: marks of equal value would hide each other."""
_PAGE = 940
_RUN, _MEAN, _REFERENCE = ("datum.kind === 'run'", "datum.kind === 'mean'", "datum.kind === 'reference'")
_SPREAD = f"{_MEAN} && isValid(datum.low)"
_HOLLOW = {"condition": {"test": "datum.still_learning > 0", "value": 0}, "value": 1}


def dodged(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Rows with the `place` on a logarithmic axis at which they are drawn."""
    return rows.assign(place=rows[column].astype(float) * 2.0 ** rows["family"].map(_DODGE).fillna(0.0))


def lines(
    frame: pd.DataFrame, column: str, title: str, value: str | None, tooltip: Sequence[tuple[str, str, str]]
) -> Any:
    """Panels of lines over the doublings of a column: every run, means with intervals, and a named reference.

    `frame` has `kind` (run | mean | reference), `row`, `column` (of the panel), `family`, `place`, `value`, `low`,
    `high`, `still_learning`, and `label` of references. `tooltip` has (field with type, title, format).
    """
    alt = theme.load_altair()
    levels = sorted(int(level) for level in frame[column].dropna().unique())
    x = alt.X(
        "place:Q",
        title=title,
        axis=alt.Axis(values=levels, format="d", grid=False, labelOverlap=True),
        scale=alt.Scale(type="log", base=2, nice=False, domain=[levels[0] / 1.45, levels[-1] * 1.45]),
    )
    y = alt.Y("value:Q", title=value, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5))
    families = [family for family in FAMILIES if (frame["family"] == family).any()]
    scale = theme.colour_scale(families)
    colour = alt.Color(
        "family:N",
        scale=scale,
        sort=families,
        title=None,
        legend=alt.Legend(orient="top", symbolType="stroke", symbolStrokeWidth=3, symbolOpacity=1, columns=5),
    )
    both = {"color": colour, "fill": alt.Fill("family:N", scale=scale, sort=families, legend=None)}
    hints = [
        alt.Tooltip(field, title=name, format=form) if form else alt.Tooltip(field, title=name)
        for field, name, form in tooltip
    ]
    base = alt.Chart()
    layers = [
        base.transform_filter(_REFERENCE).mark_rule(strokeDash=[5, 4], strokeWidth=1.2).encode(y=y),
        base.transform_filter(_REFERENCE)
        .mark_text(align="left", baseline="bottom", dx=3, dy=-2, fontSize=10.5)
        .encode(x=alt.value(0), y=y, text="label:N"),
        base.transform_filter(_RUN)
        .mark_point(size=16, opacity=0.5, strokeWidth=1)
        .encode(x=x, y=y, **both, fillOpacity=_HOLLOW, tooltip=[*hints, *run_hints(alt)]),
        base.transform_filter(_MEAN).mark_line(strokeWidth=1.8).encode(x=x, y=y, color=colour),
        base.transform_filter(_SPREAD)
        .mark_rule(strokeWidth=1.6)
        .encode(x=x, y=alt.Y("low:Q", title=value), y2="high:Q", color=colour),
        base.transform_filter(_MEAN)
        .mark_point(size=52, strokeWidth=1.8, opacity=1)
        .encode(x=x, y=y, **both, fillOpacity=_HOLLOW, tooltip=[*hints, *mean_hints(alt)]),
    ]
    return panels(alt, alt.layer(*layers), frame, height=150).resolve_scale(y="independent")


def bars(
    frame: pd.DataFrame, column: str, title: str | None, value: str, levels: Sequence[str], across: int = 0
) -> Any:
    """Panels of bars, one per family at each level of a column (of texts), with every run and intervals.

    `frame` as for `lines`, with kind `definition` for what is no mean of runs; `across` wraps the panels.
    """
    alt = theme.load_altair()
    families = [family for family in (*FAMILIES, RANDOM) if (frame["family"] == family).any()]
    scale = theme.colour_scale(families)
    x = alt.X(
        f"{column}:N",
        title=title,
        sort=list(levels),
        axis=alt.Axis(labelAngle=0, labelFontSize=11, grid=False, ticks=False),
    )
    beside = alt.XOffset("family:N", sort=families, scale=alt.Scale(domain=families))
    top = max(1.06 * float(frame["value"].max()), 0.1)
    y = alt.Y("value:Q", title=value, scale=alt.Scale(domain=[0, top], nice=False), axis=alt.Axis(tickCount=5))
    colour = alt.Color(
        "family:N",
        scale=scale,
        sort=families,
        title=None,
        legend=alt.Legend(orient="top", symbolType="square", symbolOpacity=0.75, columns=5),
    )
    hints = [alt.Tooltip("family:N", title="model"), alt.Tooltip("value:Q", title=value, format=".4f")]
    base = alt.Chart()
    layers = [
        base.transform_filter("datum.kind !== 'run'")
        .mark_bar(opacity=0.55, cornerRadiusEnd=1)
        .encode(x=x, xOffset=beside, y=y, color=colour, tooltip=[*hints, *mean_hints(alt)]),
        base.transform_filter(_RUN)
        .mark_point(size=12, strokeWidth=1, opacity=0.7)
        .encode(
            x=x,
            xOffset=beside,
            y=y,
            fill=alt.Fill("family:N", scale=scale, legend=None),
            color=colour,
            fillOpacity=_HOLLOW,
            tooltip=[*hints, *run_hints(alt)],
        ),
        base.transform_filter(_SPREAD)
        .mark_rule(strokeWidth=1.6)
        .encode(x=x, xOffset=beside, y=alt.Y("low:Q", title=value), y2="high:Q"),
    ]
    if across:
        here = list(dict.fromkeys(frame["column"]))
        return (
            alt.layer(*layers, data=frame)
            .properties(width=260, height=150)
            .facet(facet=alt.Facet("column:N", sort=here, title=None), columns=across)
            .resolve_axis(x="independent")
        )
    return panels(alt, alt.layer(*layers), frame, height=150)


def panels(alt: Any, layered: Any, frame: pd.DataFrame, height: int) -> Any:
    """A layered chart in a panel for each `row` and `column` of its frame; no header for rows if there is only one."""
    rows, columns = (list(dict.fromkeys(frame[name])) for name in ("row", "column"))
    width = max(110, min(240, _PAGE // len(columns) - 42))
    layered.data = frame
    sides = {"column": alt.Column("column:N", sort=columns, title=None)}
    if len(rows) > 1:
        sides["row"] = alt.Row("row:N", sort=rows, title=None)
    return layered.properties(width=width, height=height).facet(**sides, spacing=16)


def mean_hints(alt: Any) -> list[Any]:
    """What the tooltip of a mean says of its runs."""
    return [
        alt.Tooltip("low:Q", title="95 % from", format=".4g"),
        alt.Tooltip("high:Q", title="to", format=".4g"),
        alt.Tooltip("runs:Q", title="runs"),
        alt.Tooltip("still_learning:Q", title="still learning"),
    ]


def run_hints(alt: Any) -> list[Any]:
    """What the tooltip of a run says."""
    return [
        alt.Tooltip("task_seed:N", title="task"),
        alt.Tooltip("seed:N", title="seed"),
        alt.Tooltip("still_learning:Q", title="still learning"),
    ]
