"""How far modules specialize: figures 5, 6, 11 to 15 and their like of the modularity paper, and its example (2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from unseen.analysis.routing import uniform_activation
from unseen.analysis.specialization_metrics import MATRIX_METRICS
from unseen.analysis.votes import GATINGS
from unseen.names import family_of
from unseen.report.data import Source
from unseen.report.figure import Drawing
from unseen.report.figures.activations import activation_cells, activation_chart
from unseen.report.figures.rules_runs import (
    HOLLOW_FILL,
    INTERVAL,
    RANDOM,
    RUN,
    RulesRuns,
    facet_rows_and_columns,
    family_channels,
    interval_tooltips,
    means_and_runs,
    present_families,
    read_runs,
    run_tooltips,
    with_integers,
)
from unseen.report.sections.specialization import METRICS
from unseen.report.theme import BLUE, colour_scale, load_altair

SIZES = {32: "Small", 128: "Medium", 512: "Large"}
"""The widths that the paper draws."""
MODULAR = tuple(gating for gating in GATINGS if gating != "none")
EXAMPLE = np.array([[0.95, 0, 0, 0.05], [0, 0, 0, 1], [0.35, 0.10, 0, 0.55], [0, 1, 0, 0]])
"""The activation matrix of figure 2: rows are rules, columns modules."""
_NOT_RUN = "datum.kind !== 'run'"


def draw_by_size(source: Source, architecture: str, setting: str, metric: str) -> Drawing | None:
    """Bars by size of the model: a panel for each number of rules, a row for each search, Random beside them."""
    study = read_runs(source, architecture, setting)
    if study is None:
        return None
    study = study.where("gating", MODULAR)
    # A store without the paper's three widths is drawn with the widths that it has.
    if study.runs["width"].isin(SIZES).any():
        study = study.where("width", SIZES)
    rows = _metric_rows(study, metric).sort_values(["search", "rules", "width"])
    if rows.empty:
        return None
    rows = rows.assign(
        row=rows["search"],
        column=rows["rules"].map(lambda number: f"{number} rules"),
        size=rows["width"].map(lambda width: SIZES.get(width, str(width))),
    )
    table, notes = _with_random(rows, ["row", "column", "metric", "search", "rules", "width", "size"])
    sizes = list(dict.fromkeys(rows.sort_values("width")["size"]))
    layers = _bar_layers(table, None, METRICS[metric], sizes)
    chart = facet_rows_and_columns(load_altair().layer(*layers), table)
    return Drawing(chart, with_integers(table), (*notes, *study.notes(rows)))


def draw_by_rules(source: Source) -> Drawing | None:
    """Figure 5: a panel for each metric, bars by number of rules, over all runs."""
    study = read_runs(source)
    if study is None:
        return None
    study = study.where("gating", MODULAR)
    rows = _all_metrics(study).sort_values("rules", kind="stable")
    if rows.empty:
        return None
    table, notes = _with_random(rows.assign(size=rows["rules"].astype(str)), ["column", "metric", "rules", "size"])
    table = _sort_panels(table)
    alt = load_altair()
    layers = _bar_layers(table, "rules", "mean", list(map(str, sorted(set(rows["rules"])))))
    panels = alt.Facet("column:N", sort=list(dict.fromkeys(table["column"])), title=None)
    chart = alt.layer(*layers, data=table).properties(width=260, height=150).facet(facet=panels, columns=3)
    return Drawing(chart.resolve_axis(x="independent"), with_integers(table), (*notes, *study.notes(rows)))


def draw_overall(source: Source) -> Drawing | None:
    """Figure 6: a panel for each metric, one bar per family, averaged over the rules as well."""
    study = read_runs(source)
    if study is None:
        return None
    study = study.where("gating", MODULAR)
    rows = _all_metrics(study)
    if rows.empty:
        return None
    table, notes = _with_random(rows, ["column", "metric"])
    table = _sort_panels(table)
    return Drawing(_overall_chart(table), with_integers(table), (*notes, *study.notes(rows)))


def _metric_rows(study: RulesRuns, metric: str) -> pd.DataFrame:
    rows = study.scores[study.scores["metric"] == f"specialization/{metric}"]
    return rows.assign(metric=metric)


def _all_metrics(study: RulesRuns) -> pd.DataFrame:
    """The five metrics of all runs, each under the title of its panel."""
    tables = [_metric_rows(study, name).assign(column=title) for name, title in METRICS.items()]
    return pd.concat(tables, ignore_index=True)


def random_score(metric: str, rules: int) -> float:
    """The score of a router that sends every rule to all modules equally, by definition of the metric.

    >>> [random_score(metric, 2) for metric in ("collapse_avg", "alignment", "inverse_mutual_information")]
    [0.0, 0.5, 1.0]
    """
    return float(MATRIX_METRICS[metric](uniform_activation(rules), np.full(rules, 1 / rules)))


def _with_random(rows: pd.DataFrame, by: list[str]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Means and runs, and Random for each group: its score for as many rules, averaged as the runs are.

    There is no Random if the rules were not equally likely.
    """
    table, notes = means_and_runs(rows, [*by, "family"])
    if not rows["equal_rules"].all():
        return table, (*notes, "Rules were not equally likely, so there is no Random beside.")
    pairs = list(zip(rows["metric"], rows["rules"], strict=True))
    scores = {pair: random_score(*pair) for pair in set(pairs)}
    random = rows.assign(value=[scores[pair] for pair in pairs]).groupby(by, sort=False)["value"].mean().reset_index()
    random = random.assign(family=RANDOM, kind="definition", runs=0, not_converged=0)
    return pd.concat([table, random], ignore_index=True), notes


def _sort_panels(table: pd.DataFrame) -> pd.DataFrame:
    """Panels in the order of the metrics."""
    rank = {title: number for number, title in enumerate(METRICS.values())}
    return table.sort_values("column", key=lambda titles: titles.map(rank), kind="stable", ignore_index=True)


def _bar_layers(table: pd.DataFrame, title: str | None, value_title: str, levels: list[str]) -> list[Any]:
    """One bar per family at each level of the column `size`, with every run and intervals."""
    alt = load_altair()
    families = present_families(table)
    x_axis = alt.Axis(labelAngle=0, labelFontSize=11, grid=False, ticks=False)
    x = alt.X("size:N", title=title, sort=levels, axis=x_axis)
    beside = alt.XOffset("family:N", sort=families, scale=alt.Scale(domain=families))
    y_scale = alt.Scale(domain=[0, max(1.06 * float(table["value"].max()), 0.1)], nice=False)
    y = alt.Y("value:Q", title=value_title, scale=y_scale, axis=alt.Axis(tickCount=5))
    colour, _ = family_channels(table, symbolType="square", symbolOpacity=0.75, columns=5)
    fill = alt.Fill("family:N", scale=colour_scale(families), legend=None)
    tooltip = [alt.Tooltip("family:N", title="model"), alt.Tooltip("value:Q", title=value_title, format=".4f")]
    base = alt.Chart().encode(x=x, xOffset=beside)
    return [
        base.transform_filter(_NOT_RUN)
        .mark_bar(opacity=0.55, cornerRadiusEnd=1)
        .encode(y=y, color=colour, tooltip=[*tooltip, *interval_tooltips()]),
        base.transform_filter(RUN)
        .mark_point(size=12, strokeWidth=1, opacity=0.7)
        .encode(y=y, fill=fill, color=colour, fillOpacity=HOLLOW_FILL, tooltip=[*tooltip, *run_tooltips()]),
        base.transform_filter(INTERVAL)
        .mark_rule(strokeWidth=1.6)
        .encode(y=alt.Y("low:Q", title=value_title), y2="high:Q"),
    ]


def _overall_chart(table: pd.DataFrame) -> Any:
    """Horizontal bars: a panel for each metric side by side, with the families named once."""
    alt = load_altair()
    families = present_families(table)
    scale = colour_scale(families)
    y = alt.Y("family:N", sort=families, title=None, axis=alt.Axis(ticks=False, domain=False, labelPadding=8))
    x_axis = alt.Axis(values=[0, 0.5, 1], format=".1f")
    x = alt.X("value:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=x_axis)
    tooltip = [alt.Tooltip("family:N", title="model"), alt.Tooltip("value:Q", title="mean", format=".4f")]
    base = alt.Chart().encode(y=y)
    bars = base.transform_filter(_NOT_RUN)
    layers = [
        bars.mark_bar(opacity=0.55, height=16).encode(
            x=x, color=alt.Color("family:N", scale=scale, legend=None), tooltip=[*tooltip, *interval_tooltips()]
        ),
        base.transform_filter(RUN)
        .mark_point(size=10, strokeWidth=1, opacity=0.35)
        .encode(
            x=x,
            fill=alt.Fill("family:N", scale=scale, legend=None),
            stroke=alt.Stroke("family:N", scale=scale, legend=None),
            fillOpacity=HOLLOW_FILL,
            tooltip=[*tooltip, *run_tooltips()],
        ),
        base.transform_filter(INTERVAL).mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=None), x2="high:Q"),
        bars.mark_text(align="left", dx=4, dy=-13, fontSize=10.5).encode(
            x=alt.value(0), text=alt.Text("value:Q", format=".3f")
        ),
    ]
    panels = alt.Column("column:N", sort=list(METRICS.values()), title=None)
    return alt.layer(*layers, data=table).properties(width=148, height=alt.Step(38)).facet(column=panels, spacing=16)


def draw_example(source: Source) -> Drawing | None:
    """Figure 2: an activation matrix with the best assignment framed, and its metrics as bars beside it."""
    if not source.runs["task"].map(family_of).eq("rules").any():
        return None
    alt = load_altair()
    uniform = np.full(len(EXAMPLE), 1 / len(EXAMPLE))
    cells = activation_cells(EXAMPLE, uniform)
    cells = cells.assign(rule=cells["rule"] + 1, module=cells["module"] + 1)  # the paper counts from 1
    values = [float(MATRIX_METRICS[name](EXAMPLE, uniform)) for name in METRICS]
    scores = pd.DataFrame({"metric": list(METRICS.values()), "value": values})
    y = alt.Y("metric:N", sort=list(METRICS.values()), title=None, axis=alt.Axis(ticks=False, domain=False))
    x_scale = alt.Scale(domain=[0, 1.15], nice=False)
    x = alt.X("value:Q", title="value", scale=x_scale, axis=alt.Axis(values=[0, 0.5, 1]))
    base = alt.Chart(scores).encode(x=x, y=y)
    bars = alt.layer(
        base.mark_bar(color=BLUE, opacity=0.6, height=14),
        base.mark_text(align="left", dx=5).encode(text=alt.Text("value:Q", format=".4f")),
    )
    chart = alt.hconcat(activation_chart(cells), bars.properties(width=220, height=152), spacing=50)
    activations = cells.rename(columns={"weight": "value"}).assign(kind="activation")
    data = pd.concat([activations, scores.assign(kind="metric")], ignore_index=True).assign(runs=0)
    return Drawing(chart, data, ("Illustrative: the matrix is made up, and no run is behind it.",))
