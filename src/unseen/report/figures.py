"""Figures as recipes from tables. Needs the extra `report`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from unseen.errors import UsageError

if TYPE_CHECKING:
    from altair import LayerChart

# Okabe and Ito's colours: told apart by colour-blind readers, on light and dark paper.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999")
INK, QUIET, PAPER = "#22262E", "#7A808C", "#FFFFFF"


def every_seed(runs: pd.DataFrame, means: pd.DataFrame, references: Mapping[str, float], *,
               title: str, subtitle: list[str]) -> LayerChart:
    """Every seed as a dot, the mean with its interval beside, and reference lines (chance, ceilings) drawn in.

    `runs` has columns model, seed, value, still_learning; `means` has model, mean, low, high; `references` maps a
    label to a value.
    """
    alt = load_altair()
    order = list(means["model"])
    colour = alt.Color("model:N", scale=alt.Scale(domain=order, range=list(COLOURS[: len(order)])), legend=None)
    low = min(float(runs["value"].min()), *references.values()) - 0.03
    scale = alt.Scale(domain=[low, 1.0], nice=False, zero=False)
    axis = alt.Axis(format="%", grid=False, tickCount=6, domain=False, tickColor=QUIET)
    y = alt.Y("model:N", title=None, sort=order, axis=alt.Axis(labelFontSize=14, labelFontWeight=600, ticks=False,
                                                               domain=False, labelPadding=12))

    def x(column: str) -> Any:
        return alt.X(f"{column}:Q", title="accuracy", scale=scale, axis=axis)

    dots = alt.Chart(runs.assign(jitter=_jitter(runs))).mark_circle(size=120, opacity=0.8, stroke=PAPER).encode(
        x=x("value"), y=y, yOffset=alt.YOffset("jitter:Q", scale=alt.Scale(domain=[-0.9, 1.9])), color=colour,
        tooltip=["model", "seed", alt.Tooltip("value:Q", format=".3f"), "still_learning"])
    base = alt.Chart(means)
    bars = base.mark_rule(strokeWidth=4, strokeCap="round", yOffset=16).encode(
        x=x("low"), x2="high:Q", y=y, color=colour)
    ticks = base.mark_tick(thickness=4, size=16, yOffset=16).encode(x=x("mean"), y=y, color=colour)
    labels = base.transform_calculate(text="format(datum.mean, '.1%')").mark_text(
        align="left", dx=10, yOffset=16, fontSize=13, fontWeight=600).encode(
        x=x("high"), y=y, text="text:N", color=colour)
    layers = [*_references(references, x, alt), dots, bars, ticks, labels]
    chart: LayerChart = alt.layer(*layers).properties(
        width=640, height=alt.Step(78), background=PAPER, padding=24,
        title=alt.Title(title, subtitle=subtitle, anchor="start", fontSize=20, subtitleFontSize=13, color=INK,
                        subtitleColor=QUIET, offset=36, subtitlePadding=6),
    ).configure_view(stroke=None).configure_axis(labelColor=INK, titleColor=QUIET, labelFontSize=12, titleFontSize=12)
    return chart


def save(chart: LayerChart, path: Path) -> list[Path]:
    """Write a chart as PNG, SVG and JSON (with its data) beside each other."""
    files = [path.with_suffix(suffix) for suffix in (".png", ".svg", ".json")]
    for file in files:
        chart.save(str(file), scale_factor=2.0)
    return files


def _references(references: Mapping[str, float], x: Callable[[str], Any], alt: Any) -> list[Any]:
    """Dashed lines with their names above the plot, in two rows so that close ones do not touch."""
    table = pd.DataFrame({"label": list(references), "reference": list(references.values())}).sort_values("reference")
    rules = alt.Chart(table).mark_rule(strokeDash=[5, 4], color=QUIET, strokeWidth=1.2).encode(x=x("reference"))
    texts = [alt.Chart(table.iloc[i : i + 1])
             .mark_text(baseline="bottom", color=QUIET, fontSize=12, dy=-4 - 16 * (i % 2))
             .encode(x=x("reference"), y=alt.value(0), text="label:N") for i in range(len(table))]
    return [rules, *texts]


def _jitter(runs: pd.DataFrame) -> pd.Series:
    """A fixed small offset per seed, so that equal scores stay visible."""
    rank = runs.groupby("model").cumcount()
    count = runs.groupby("model")["seed"].transform("count")
    return (rank - (count - 1) / 2) / count


def load_altair() -> Any:
    """Altair, or an error that says how to get it."""
    try:
        import altair
    except ImportError:
        raise UsageError("figures need the extra 'report': pip install 'unseen[report]'") from None
    return altair
