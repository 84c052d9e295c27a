"""How far modules specialize: the bars of the modularity paper's figures 5 and 6, and of 11 to 15 and their like."""

from __future__ import annotations

from typing import Any

import pandas as pd

from unseen.metrics.votes import GATINGS
from unseen.report import theme
from unseen.report.figure import Drawing
from unseen.report.figures.rules_panels import bars, mean_hints, run_hints
from unseen.report.figures.rules_runs import (
    FAMILIES,
    METRICS,
    RANDOM,
    SPECIALIZATION,
    Runs,
    random,
    read,
    whole,
    with_dots,
)
from unseen.report.source import Source

SIZES = {32: "Small", 128: "Medium", 512: "Large"}
"""The widths that the paper draws."""
MODULAR = tuple(gating for gating in GATINGS if gating != "none")


def by_size(source: Source, architecture: str, setting: str, metric: str) -> Drawing | None:
    """A panel for each number of rules (and row for each search), bars by size of the model; Random beside them."""
    found = read(source)
    study = found.parts.get((architecture, setting)) if found is not None else None
    if study is None:
        return None
    study = study.of(gating=MODULAR)
    # A store of other widths than the paper's three is drawn as it is.
    if study.runs["width"].isin(SIZES).any():
        study = study.of(width=tuple(SIZES))
    rows = _measured(study, metric).sort_values(["search", "rules", "width"])
    if rows.empty:
        return None
    size = rows["width"].map(lambda width: SIZES.get(width, str(width)))
    rows = rows.assign(row=rows["search"], column=rows["rules"].map(lambda number: f"{number} rules"), size=size)
    frame, said = _with_random(rows, ["row", "column", "metric", "search", "rules", "width", "size"])
    sizes = list(dict.fromkeys(rows.sort_values("width")["size"]))
    chart = bars(frame, "size", None, METRICS[metric], sizes)
    return Drawing(chart, whole(frame), (*said, *study.notes(rows)))


def by_rules(source: Source) -> Drawing | None:
    """Figure 5: a panel for each metric, bars by number of rules, over all that was run."""
    study = read(source)
    if study is None:
        return None
    study = study.of(gating=MODULAR)
    rows = _all(study).sort_values("rules", kind="stable")
    if rows.empty:
        return None
    frame, said = _with_random(rows.assign(size=rows["rules"].astype(str)), ["column", "metric", "rules", "size"])
    frame = _in_order(frame)
    levels = [str(number) for number in sorted(set(rows["rules"]))]
    return Drawing(bars(frame, "size", "rules", "mean", levels, across=3), whole(frame), (*said, *study.notes(rows)))


def overall(source: Source) -> Drawing | None:
    """Figure 6: a panel for each metric, one bar per family, averaged over the rules, too."""
    study = read(source)
    if study is None:
        return None
    study = study.of(gating=MODULAR)
    rows = _all(study)
    if rows.empty:
        return None
    frame, said = _with_random(rows, ["column", "metric"])
    frame = _in_order(frame)
    return Drawing(_sideways(frame), whole(frame), (*said, *study.notes(rows)))


def _measured(study: Runs, metric: str) -> pd.DataFrame:
    rows = study.scores[study.scores["metric"] == SPECIALIZATION + metric]
    return rows.assign(metric=metric)


def _all(study: Runs) -> pd.DataFrame:
    """The five metrics of all runs, each under the title of its panel."""
    return pd.concat(
        [_measured(study, name).assign(column=title) for name, title in METRICS.items()], ignore_index=True
    )


def _with_random(rows: pd.DataFrame, by: list[str]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Means and runs, and Random at each place: what it scores with as many rules, averaged as the runs are. There is
    none where the rules were not equally likely."""
    frame, said = with_dots(rows, [*by, "family"])
    if rows["options"].str.contains("prior=", regex=False).any():
        return frame, (*said, "Rules were not equally likely, so there is no Random beside.")
    known = {place: random(*place) for place in set(zip(rows["metric"], rows["rules"], strict=True))}
    score = [known[place] for place in zip(rows["metric"], rows["rules"], strict=True)]
    at_random = rows.assign(value=score).groupby(by, sort=False)["value"].mean().reset_index()
    at_random = at_random.assign(family=RANDOM, kind="definition", runs=0, still_learning=0)
    return pd.concat([frame, at_random], ignore_index=True), said


def _in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Panels in the order of the metrics."""
    order = {title: number for number, title in enumerate(METRICS.values())}
    return frame.sort_values("column", key=lambda titles: titles.map(order), kind="stable", ignore_index=True)


def _sideways(frame: pd.DataFrame) -> Any:
    """A panel for each metric, side by side, with the families named once."""
    alt = theme.load_altair()
    families = [family for family in (*FAMILIES, RANDOM) if (frame["family"] == family).any()]
    scale = theme.colour_scale(families)
    y = alt.Y("family:N", sort=families, title=None, axis=alt.Axis(ticks=False, domain=False, labelPadding=8))
    x = alt.X("value:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(values=[0, 0.5, 1], format=".1f"))
    colour, fill, stroke = (
        channel("family:N", scale=scale, legend=None) for channel in (alt.Color, alt.Fill, alt.Stroke)
    )
    hints = [alt.Tooltip("family:N", title="model"), alt.Tooltip("value:Q", title="mean", format=".4f")]
    base = alt.Chart()
    layers = [
        base.transform_filter("datum.kind !== 'run'")
        .mark_bar(opacity=0.55, height=16)
        .encode(x=x, y=y, color=colour, tooltip=[*hints, *mean_hints(alt)]),
        base.transform_filter("datum.kind === 'run'")
        .mark_point(size=10, strokeWidth=1, opacity=0.35)
        .encode(
            x=x,
            y=y,
            fill=fill,
            stroke=stroke,
            tooltip=[*hints, *run_hints(alt)],
            fillOpacity={"condition": {"test": "datum.still_learning > 0", "value": 0}, "value": 1},
        ),
        base.transform_filter("datum.kind === 'mean' && isValid(datum.low)")
        .mark_rule(strokeWidth=2)
        .encode(x=alt.X("low:Q", title=None), x2="high:Q", y=y),
        base.transform_filter("datum.kind !== 'run'")
        .mark_text(align="left", dx=4, dy=-13, fontSize=10.5)
        .encode(x=alt.value(0), y=y, text=alt.Text("value:Q", format=".3f")),
    ]
    return (
        alt.layer(*layers, data=frame)
        .properties(width=148, height=alt.Step(38))
        .facet(column=alt.Column("column:N", sort=list(METRICS.values()), title=None), spacing=16)
    )
