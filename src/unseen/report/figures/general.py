"""Figures for any study and for the runs of `unseen train`: every seed, all splits, and the list of such figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from unseen.report.baselines import (
    ORACLE,
    REFERENCE,
    baseline_layers,
    baseline_rows,
    best_and_oracle,
    text_sides,
)
from unseen.report.charts import (
    ENDED,
    MAX_DOTS,
    NOT_CONVERGED,
    colour_channel,
    count_tooltips,
    facet_panels,
    fill_by_state,
    fill_channel,
    filter_rows,
    metric_tooltip,
    panel_width,
    stack_charts,
)
from unseen.report.data import Source
from unseen.report.figure import HOLLOW, Drawing, Figure, layout_notes
from unseen.report.figures.activations import draw_activation, draw_attention
from unseen.report.figures.general_comparison import SOLVED, draw_improvement, draw_profiles, draw_solved
from unseen.report.figures.general_curves import draw_curves
from unseen.report.layout import SPLIT, ChartLayout, layouts
from unseen.report.theme import GREY, load_altair

MAX_REFERENCE_PANELS = 6
"""Up to this many panels, baselines are measured at every split."""


# -- every seed -------------------------------------------------------------------------------------------------------


def draw_seeds(source: Source) -> Drawing | None:
    """Every seed as a dot with the mean and its interval below, by series, with a panel per configuration."""
    arranged = layouts(source)
    if not arranged:
        return None
    tables = [seeds_table(source, layout) for layout in arranged]
    charts = [_seeds_chart(layout, table) for layout, table in zip(arranged, tables, strict=True)]
    notes = []
    mark = HOLLOW
    if any(len(layout.rows) > MAX_DOTS for layout in arranged):
        notes.append(f"More than {MAX_DOTS} runs: means and intervals, without single runs.")
        mark = ""
    data = pd.concat(tables, ignore_index=True)
    return Drawing(stack_charts(charts), data, (*notes, *layout_notes(source, arranged, mark)))


def seeds_table(source: Source, layout: ChartLayout) -> pd.DataFrame:
    """One row per mark: `kind` run (a dot), mean (with its interval) or reference (a dashed line)."""
    rows = layout.rows
    tables = []
    if len(rows) <= MAX_DOTS:
        groups = rows.groupby(["panel", "series"], sort=False)
        count = groups["seed"].transform("count")
        runs = rows[["panel", "series", "split", "seed", "value", "trial"]].assign(
            kind="run",
            state=np.where(rows["not_converged"], NOT_CONVERGED, ENDED),
            # Each run has its own height, so that equal scores stay visible.
            jitter=(groups.cumcount() - (count - 1) / 2) / count,
        )
        tables.append(runs)
    mean = layout.means("panel", "series").rename(columns={"mean": "value"}).assign(kind="mean")
    tables.append(mean.assign(name=mean["value"].map(layout.metric.text)))
    references = baseline_rows(source, layout, shortcuts=1)  # names of more than one would overlap
    if len(references):
        tables.append(references)
    table = pd.concat(tables, ignore_index=True)
    return table.assign(metric=layout.metric.name, side=text_sides(table["value"], _score_domain(table, layout)))


def _score_domain(table: pd.DataFrame, layout: ChartLayout) -> tuple[float, float]:
    """From a little below the lowest value to a perfect score; for a loss from 0 to a little above the highest."""
    lowest = float(table["value"].min())
    highest = float(table["value"].max())
    if layout.metric.rising:
        return max(0.0, lowest - 0.05 * (1 - lowest) - 0.01), max(1.0, highest)
    return 0.0, 1.05 * highest or 1.0


def _seeds_chart(layout: ChartLayout, table: pd.DataFrame) -> Any:
    alt = load_altair()
    single = len(layout.panels) == 1
    dotted = (table["kind"] == "run").any()
    if dotted:
        step, mean_offset = (78, 16) if single else (46, 11)
        tick_size = mean_offset
    else:
        step, mean_offset, tick_size = 30, 0, 12
    thickness = 4 if single else 3
    series = list(layout.series)
    metric = layout.metric
    x_scale = alt.Scale(domain=list(_score_domain(table, layout)), nice=False, zero=False)
    x_axis = alt.Axis(format=metric.format, grid=False, tickCount=6 if single else 3, domain=False)
    y_axis = alt.Axis(
        labelFontSize=14 if single else 12,
        labelFontWeight=600,
        ticks=False,
        domain=False,
        grid=False,
        labelPadding=12 if single else 8,
    )
    y = alt.Y("series:N", title=None, sort=series, scale=alt.Scale(domain=series), axis=y_axis)
    colour = colour_channel(series)
    series_tooltip = alt.Tooltip("series:N", title=layout.axis)

    def x(column: str) -> Any:
        return alt.X(f"{column}:Q", title=metric.title, scale=x_scale, axis=x_axis)

    layers = []
    has_references = (table["kind"] == REFERENCE).any()
    if has_references:
        layers += baseline_layers(layout, x("value"))
    if dotted:
        dots = filter_rows(kind="run").mark_point(size=110 if single else 60, strokeWidth=1.6, opacity=0.85)
        layers.append(
            dots.encode(
                x=x("value"),
                y=y,
                yOffset=alt.YOffset("jitter:Q", scale=alt.Scale(domain=[-0.9, 1.9])),
                color=colour,
                fill=fill_channel(series),
                fillOpacity=fill_by_state(),
                tooltip=[series_tooltip, "split:N", "seed:Q", metric_tooltip("value", metric), "state:N", "trial:N"],
            )
        )
    means = filter_rows(kind="mean")
    tooltip = [
        series_tooltip,
        metric_tooltip("value", metric, "mean"),
        metric_tooltip("low", metric),
        metric_tooltip("high", metric),
        *count_tooltips(),
    ]
    # Numbers are beside the interval or, in narrow panels, in a column of their own, so that no line crosses them.
    number_position = x("end") if single else alt.value(panel_width(layout))
    layers += [
        means.mark_rule(strokeWidth=thickness, strokeCap="round", yOffset=mean_offset).encode(
            x=x("low"), x2="high:Q", y=y, color=colour
        ),
        means.mark_tick(opacity=1, thickness=thickness, size=tick_size, yOffset=mean_offset).encode(
            x=x("value"), y=y, color=colour, tooltip=tooltip
        ),
        means.mark_text(align="left", dx=9, yOffset=mean_offset, fontSize=13 if single else 11, fontWeight=600).encode(
            x=number_position, y=y, text="name:N", color=colour
        ),
    ]
    table = table.assign(end=table["high"].fillna(table["value"]))
    row_gap, headroom = (104, 14) if has_references else (74, 0)
    return facet_panels(layers, table, layout, alt.Step(step), row_gap, 62, headroom)


# -- all splits -------------------------------------------------------------------------------------------------------


def draw_splits(source: Source) -> Drawing | None:
    """Means of each series on every split, with a panel per configuration; None if all runs have one split."""
    arranged = [layout for layout in layouts(source, every_split=True) if len(layout.splits) > 1]
    if not arranged:
        return None
    tables = []
    charts = []
    for layout in arranged:
        table = _splits_table(source, layout)
        tables.append(table)
        charts.append(_splits_chart(layout, table))
    return Drawing(stack_charts(charts), pd.concat(tables, ignore_index=True), layout_notes(source, arranged))


def _splits_table(source: Source, layout: ChartLayout) -> pd.DataFrame:
    """A row per series and split of a panel, and two per split for the best shortcut baseline and the oracle."""
    tables = [layout.means("panel", "series", SPLIT).rename(columns={"mean": "value"}).assign(kind="mean")]
    if len(layout.panels) <= MAX_REFERENCE_PANELS:
        by = ["panel", SPLIT]
        references = best_and_oracle(baseline_rows(source, layout, by), by)
        if len(references):
            tables.append(references.assign(line=references["name"].eq(ORACLE).astype(int)))
    return pd.concat(tables, ignore_index=True).assign(metric=layout.metric.name)


def _splits_chart(layout: ChartLayout, table: pd.DataFrame) -> Any:
    alt = load_altair()
    metric = layout.metric
    x = alt.X(
        f"{SPLIT}:N",
        sort=list(layout.splits),
        title=None,
        axis=alt.Axis(labelAngle=-40, grid=False, domain=False, ticks=False, labelPadding=6, labelLimit=200),
        scale=alt.Scale(type="point", padding=0.4),
    )
    colour = colour_channel(list(layout.series), "circle")

    def y(column: str) -> Any:
        axis = alt.Axis(format=metric.format, tickCount=5, domain=False, ticks=False)
        scale = alt.Scale(zero=not metric.rising, nice=True)
        return alt.Y(f"{column}:Q", title=metric.title, scale=scale, axis=axis)

    layers = []
    if (table["kind"] == REFERENCE).any():
        lines = filter_rows(kind=REFERENCE)
        tooltip = ["name:N", metric_tooltip("value", metric)]
        layers += [
            lines.mark_line(strokeDash=[5, 4], strokeWidth=1.2, color=GREY).encode(x=x, y=y("value"), detail="line:N"),
            # Invisible points, which are easier to hit than the line.
            lines.mark_point(size=60, opacity=0).encode(x=x, y=y("value"), tooltip=tooltip),
        ]
    means = filter_rows(kind="mean")
    tooltip = [
        alt.Tooltip("series:N", title=layout.axis),
        f"{SPLIT}:N",
        metric_tooltip("value", metric, "mean"),
        metric_tooltip("low", metric),
        metric_tooltip("high", metric),
        *count_tooltips(),
    ]
    layers += [
        means.mark_line(strokeWidth=1.5, opacity=0.45).encode(x=x, y=y("value"), color=colour),
        means.mark_rule(strokeWidth=2).encode(x=x, y=y("low"), y2="high:Q", color=colour),
        means.mark_point(size=50, filled=True, opacity=1).encode(x=x, y=y("value"), color=colour, tooltip=tooltip),
    ]
    label_height = min(130, int(4.5 * max(map(len, layout.splits))))
    return facet_panels(layers, table, layout, 190, 50 + label_height, 34, independent=["x"])


_LOOK_INSIDE = "The best and the worst run of each series, at the first configuration whose weights are stored"
_STORED_WEIGHTS = "Weights best on validation, where they are stored."

FIGURES = (
    Figure(
        "seeds",
        "Every seed",
        "ours",
        "Every dot is a run, hollow if it had not converged when training ended. Below: the mean with its 95 % "
        "interval over runs (Student's t). Dashed: chance, the best shortcut baseline, and the oracle.",
        draw_seeds,
    ),
    Figure(
        "splits",
        "What changes outside the training distribution",
        "ours",
        "Means on every split with their 95 % intervals over runs, from the most familiar on the left to "
        "the least familiar on the right. Dashed: chance, the best shortcut baseline, and the oracle.",
        draw_splits,
    ),
    Figure(
        "curves",
        "Learning curves",
        "ours",
        "Means over runs on the validation data during training. Bands contain all runs (of more than 20 the middle "
        "95 %). Dots are the last points of runs, hollow if these had not converged. Dashed: chance, the best "
        "shortcut baseline, and the oracle.",
        draw_curves,
    ),
    Figure(
        "solved",
        "How many runs solve it",
        "ours",
        f"The share of runs with an accuracy of at least {SOLVED:.2f}, with Wilson's 95 % interval.",
        draw_solved,
    ),
    Figure(
        "profiles",
        "How many runs reach each score",
        "ours",
        "The share of runs at least as good as each score, with pointwise 95 % bootstrap bands.",
        draw_profiles,
    ),
    Figure(
        "improvement",
        "Which one is better",
        "ours",
        "The probability that a run of the row is better than a run of the column in the same configuration, where a "
        "tie counts one half: the mean over configurations, from the configurations and seeds that both have.",
        draw_improvement,
    ),
    Figure(
        "activation",
        "How modules share out the rules",
        "ours",
        f"Activation matrices. {_LOOK_INSIDE}: how much of each rule goes to each module. Framed: the best assignment "
        f"of rules to modules. {_STORED_WEIGHTS}",
        draw_activation,
        reads_activations=True,
    ),
    Figure(
        "attention",
        "Where models attend",
        "ours",
        f"{_LOOK_INSIDE}. Left: the attention of the query, example by example; letters mark tokens with the queried "
        "features. Right, with self-attention: the attention between tokens, averaged over these examples. "
        f"{_STORED_WEIGHTS}",
        draw_attention,
        reads_activations=True,
    ),
)
