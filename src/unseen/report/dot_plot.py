"""Dot plots: panels with a row per model or question type, every run as a dot, and the mean with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import pandas as pd

from unseen.report.charts import (
    ENDED,
    MAX_DOTS,
    NOT_LEARNED,
    STATES,
    colour_channel,
    fill_channel,
    mean_tooltips,
    widen,
)
from unseen.report.data import means
from unseen.report.theme import load_altair

SINGLE_HEIGHT, GROUPED_HEIGHT = 34, 11
"""The height of a row with one series, and of each series in a row with several, in pixels."""
PRINTED, AT_LEAST, GUESSED = "|", ">", "¦"
"""Marks of a number printed in a paper, of a printed lower bound, and of chance."""
RUN_COLUMNS = ["row", "series", "seed", "value", "state", "not_converged"]
_LETTER_WIDTH = 5.6
"""The width of a letter of the names above a panel, in pixels."""
_TOP_SHARE = 0.97
"""A reference line above this share of a panel's height is at its upper edge."""
_CLOSE_SHARE = 0.08
"""Reference lines that are less than this share of the axis apart leave no room for a name in between."""


@dataclass(frozen=True)
class DotPanel:
    """One panel of a dot plot.

    `runs` has a line per run and row with `RUN_COLUMNS`. `references` are the values of dashed lines by name. `marks`
    are numbers for single rows: `row`, `value`, the `mark` that is drawn, `what` it is ("printed", "chance"), the text
    to `say`, and optionally `low` and `high`. Means are of the runs that have learned, or of all if `count_all`.
    """

    title: str
    runs: pd.DataFrame
    references: Mapping[str, float] = field(default_factory=dict)
    marks: pd.DataFrame | None = None
    count_all: bool = False

    @cached_property
    def averages(self) -> pd.DataFrame:
        """Means of the runs that count, with intervals, by `row` and `series`."""
        counted = self.runs if self.count_all else self.runs[self.runs["state"] != NOT_LEARNED]
        return means(counted, ["row", "series"])


@dataclass(frozen=True)
class ValueAxis:
    """The axis of values: its title, its domain, and the format of numbers."""

    title: str = "accuracy"
    domain: tuple[float, float] = (0.0, 1.0)
    format: str = ".1%"

    @property
    def ticks(self) -> dict[str, Any]:
        """The positions of ticks, as options of an axis."""
        return {"values": [0, 0.5, 1]} if self.domain == (0.0, 1.0) else {"tickCount": 4}

    @property
    def tick_format(self) -> str:
        """The format of tick labels."""
        return ".0%" if self.format.endswith("%") else "~r"

    def scale(self) -> Any:
        """The scale of the axis for Altair."""
        return load_altair().Scale(domain=list(self.domain), nice=False)


ACCURACY = ValueAxis()


def dot_panels(
    panels: Sequence[DotPanel],
    rows: Sequence[str],
    series: Sequence[str],
    axis: ValueAxis = ACCURACY,
    *,
    columns: int = 4,
    width: int = 150,
) -> Any:
    """Panels side by side, with the names of the rows at the left of each line.

    Series that differ from the rows have a legend. With one series per row, the mean is below the dots and its number
    beside the panel.
    """
    alt = load_altair()
    if columns > 1:
        width = widen(width, columns, len(panels))
    dots = sum(len(panel.runs) for panel in panels) <= MAX_DOTS
    single = list(rows) == list(series) or len(series) == 1
    row_height = SINGLE_HEIGHT if single else max(SINGLE_HEIGHT, GROUPED_HEIGHT * len(series) + 8)
    name_rows = max((count_name_rows(panel.references, axis.domain, width) for panel in panels), default=0)
    charts = []
    for number, panel in enumerate(panels):
        show_names = number % columns == 0
        layers = _panel_layers(panel, rows, series, axis, width, single=single, show_names=show_names, dots=dots)
        layers.append(panel_title(panel.title, name_rows))
        charts.append(alt.layer(*layers, width=width, height=len(rows) * row_height))
    # Each panel has its own offsets: Vega-Lite would otherwise apply the row height of the first panel to all.
    scales = alt.ScaleResolveMap(color="shared", fill="shared", shape="shared", yOffset="independent")
    return alt.concat(*charts, columns=columns, spacing={"column": 12, "row": 26}, resolve=alt.Resolve(scale=scales))


def panel_table(panels: Sequence[DotPanel], row: str = "model", series: str = "") -> pd.DataFrame:
    """The data of panels: a line per run, one per mean with its number of `runs`, and one per mark.

    `row` and `series` are the names of these columns; without `series`, rows and series are the same.
    """
    tables = []
    for panel in panels:
        averages = panel.averages.rename(columns={"mean": "value"}).assign(what="mean")
        table = pd.concat([panel.runs[RUN_COLUMNS].assign(what="run"), averages], ignore_index=True)
        if panel.marks is not None and len(panel.marks):
            marks = panel.marks.drop(columns="mark")
            if not series:
                marks = marks.assign(series=marks["row"])
            table = pd.concat([table, marks], ignore_index=True)
        tables.append(table.assign(panel=panel.title))
    whole = pd.concat(tables, ignore_index=True)
    columns = ["panel", "what", "row", "series", "seed", "value", "low", "high", "runs", "not_converged", "state"]
    if "say" in whole:
        columns.append("say")
    whole = whole.reindex(columns=columns)
    if not series:
        whole = whole.drop(columns="series")
    return whole.rename(columns={"row": row, "series": series})


def spread_dots(runs: pd.DataFrame, lines: Sequence[str], column: str = "series") -> pd.DataFrame:
    """Runs with their vertical `offset` within a row, from −0.5 to 0.5, so that equal values stay visible.

    Each of the `lines` of a row holds the runs with that value of `column`, ordered by seed.

    >>> runs = spread_dots(pd.DataFrame({"row": "a", "series": "a", "seed": [1, 0]}), ["a"])
    >>> runs["offset"].round(2).tolist()
    [-0.02, -0.22]
    """
    seeds = runs.groupby(["row", column])["seed"]
    count = seeds.transform("size")
    relative_position = (seeds.rank(method="first") - (count + 1) / 2) / count
    height = 0.4 if len(lines) == 1 else 0.5 / len(lines)
    return runs.assign(offset=_line_offsets(runs[column], lines) + relative_position * height)


def _line_offsets(labels: pd.Series, lines: Sequence[str], below: bool = False) -> pd.Series:
    """The middle of the line of each label; a single line leaves the lower part of the row to its mean."""
    if len(lines) == 1:
        return pd.Series(0.25 if below else -0.12, labels.index)
    offsets = {label: (position + 0.5) / len(lines) - 0.5 for position, label in enumerate(lines)}
    # A margin of 7 % at the top and at the bottom separates the rows.
    return labels.map(offsets).astype(float) * 0.86


def _panel_layers(
    panel: DotPanel,
    rows: Sequence[str],
    series: Sequence[str],
    axis: ValueAxis,
    width: int,
    *,
    single: bool,
    show_names: bool,
    dots: bool,
) -> list[Any]:
    alt = load_altair()
    symbol = "" if single else "circle"
    colour = colour_channel(series, symbol, direction="horizontal", columns=len(series))
    y = alt.Y(
        "row:N",
        sort=list(rows),
        title=None,
        scale=alt.Scale(domain=list(rows)),
        axis=alt.Axis(
            labels=show_names,
            ticks=False,
            domain=False,
            grid=True,
            labelPadding=8,
            bandPosition=0.5 if single else 0,
        ),
    )
    offset = alt.YOffset("offset:Q", scale=alt.Scale(domain=[-0.5, 0.5]))

    def x(column: str) -> Any:
        ticks = alt.Axis(format=axis.tick_format, title=axis.title, domain=False, **axis.ticks)
        return alt.X(f"{column}:Q", scale=axis.scale(), axis=ticks)

    # With one series per row, all dots of a row share one line.
    lines = ["all"] if single else list(series)

    def line_of(frame: pd.DataFrame) -> pd.Series:
        return pd.Series("all", frame.index) if single else frame["series"]

    layers = reference_layers(panel.references, axis, width)
    if dots and len(panel.runs):
        runs = spread_dots(panel.runs.assign(line_=line_of(panel.runs)), lines, "line_").drop(columns="line_")
        layers.append(run_dots(runs, series, axis.format).encode(x=x("value"), y=y, yOffset=offset, color=colour))
    tooltip = [alt.Tooltip("row:N", title=" "), *mean_tooltips(axis.format)]
    if not single:
        tooltip.insert(0, alt.Tooltip("series:N", title=" "))
    averages = panel.averages.assign(offset=_line_offsets(line_of(panel.averages), lines, below=True))
    layers += [
        alt.Chart(averages[averages["low"].notna()])
        # Few runs make long intervals: clipped, one does not run over the neighbouring panel.
        .mark_rule(strokeWidth=3 if single else 2, strokeCap="round", opacity=0.55, clip=True)
        .encode(x=x("low"), x2=alt.X2("high:Q"), y=y, yOffset=offset, color=colour, tooltip=tooltip),
        alt.Chart(averages)
        .mark_tick(thickness=3, size=12 if single else 9, orient="vertical")
        .encode(x=x("mean"), y=y, yOffset=offset, color=colour, tooltip=tooltip),
    ]
    if single:
        numbers = alt.Chart(averages).mark_text(align="left", fontSize=11)
        layers.append(numbers.encode(x=alt.XValue(width + 6), y=y, text=alt.Text("mean:Q", format=axis.format)))
    marks = panel.marks
    if marks is not None and len(marks):
        tooltip = [alt.Tooltip("say:N", title=" "), alt.Tooltip("value:Q", format=axis.format)]
        if "low" in marks:
            spreads = alt.Chart(marks[marks["low"].notna()]).mark_rule(strokeWidth=1, dy=-4)
            layers.append(spreads.encode(x=x("low"), x2=alt.X2("high:Q"), y=y, tooltip=tooltip))
        symbols = alt.Chart(marks).mark_text(fontSize=17, fontWeight="bold", dy=-4)
        layers.append(symbols.encode(x=x("value"), y=y, text=alt.Text("mark:N"), tooltip=tooltip))
    return layers


def run_dots(runs: pd.DataFrame, series: Sequence[str], format: str) -> Any:
    """Dots of runs, hollow unless a run has converged and learned; the caller encodes positions and colour."""
    alt = load_altair()
    shapes = alt.Scale(domain=list(STATES), range=["circle", "circle", "diamond"])
    return (
        alt.Chart(runs.assign(filled=(runs["state"] == ENDED) * 0.75))
        .mark_point(size=34, strokeWidth=1.2, opacity=0.9)
        .encode(
            fill=fill_channel(series),
            fillOpacity=alt.FillOpacity("filled:Q", scale=None),
            shape=alt.Shape("state:N", legend=None, scale=shapes),
            tooltip=[
                alt.Tooltip("series:N", title=" "),
                alt.Tooltip("seed:N"),
                alt.Tooltip("value:Q", format=format),
                alt.Tooltip("state:N"),
            ],
        )
    )


def panel_title(text: str, name_rows: int = 0) -> Any:
    """The title of one panel, above that many rows of names.

    It is a layer rather than a title, so that the titles of neighbouring panels line up.
    """
    alt = load_altair()
    return (
        alt.Chart(pd.DataFrame({"text": [text]}))
        .mark_text(align="left", baseline="bottom", fontSize=12, fontWeight=600)
        .encode(x=alt.XValue(0), y=alt.YValue(-8 - 12 * min(name_rows, 2)), text=alt.Text("text:N"))
    )


# -- reference lines --------------------------------------------------------------------------------------------------


def reference_layers(
    references: Mapping[str, float],
    axis: ValueAxis,
    width: int,
    vertical: bool = True,
    side: Literal["left", "right"] = "left",
) -> list[Any]:
    """Dashed lines with names: above the panel for vertical lines, at one side of the panel for horizontal ones."""
    alt = load_altair()
    frame = _visible_references(references, axis.domain)
    if frame.empty:
        return []
    if vertical:
        position = {"x": alt.X("reference:Q", scale=axis.scale())}
    else:
        position = {"y": alt.Y("reference:Q", scale=axis.scale(), axis=alt.Axis())}
    tooltip = [alt.Tooltip("name:N", title=" "), alt.Tooltip("reference:Q", format=axis.format)]
    layers = [
        alt.Chart(frame).mark_rule(strokeDash=[4, 4], strokeWidth=1.2).encode(**position, tooltip=tooltip),
    ]
    low, high = axis.domain
    for number, name_row in enumerate(_name_rows(frame, axis.domain, width)):
        line = frame.iloc[number : number + 1]
        value = float(line["reference"].iloc[0])
        share = (value - low) / (high - low)
        text: dict[str, Any]
        if vertical:
            text = {"baseline": "bottom", "align": _name_alignment(share)}
            anchor = {"y": alt.YValue(-3 - 12 * name_row)}
        else:
            # The name goes below its line if the next line above leaves no room. At the upper edge it goes to the
            # right, because the title of the panel is at the left.
            below = frame["reference"].iloc[number + 1 :].min() - value < _CLOSE_SHARE * (high - low)
            align = "right" if share > _TOP_SHARE else side
            text = {"align": align, "baseline": "top" if below else "bottom", "dy": 2 if below else -1}
            anchor = {"x": alt.XValue(3 if align == "left" else width)}
        layers.append(
            alt.Chart(line).mark_text(fontSize=10, **text).encode(**position, **anchor, text=alt.Text("name:N"))
        )
    return layers


def count_name_rows(references: Mapping[str, float], domain: tuple[float, float], width: int) -> int:
    """The number of rows that the names of vertical reference lines take above a panel."""
    return max(_name_rows(_visible_references(references, domain), domain, width), default=-1) + 1


def _visible_references(references: Mapping[str, float], domain: tuple[float, float]) -> pd.DataFrame:
    """The references within the domain as `name` and `reference`, from the lowest to the highest."""
    visible = {name: value for name, value in references.items() if domain[0] <= value <= domain[1]}
    frame = pd.DataFrame({"name": list(visible), "reference": list(visible.values())})
    return frame.sort_values("reference")


def _name_rows(frame: pd.DataFrame, domain: tuple[float, float], width: int) -> list[int]:
    """The row of each name, references in order: the lower row unless the name would overlap the one before."""
    rows: list[int] = []
    row_ends = [-math.inf, -math.inf]  # where the last name of each row ends, in pixels
    for name, reference in zip(frame["name"], frame["reference"], strict=True):
        share = (reference - domain[0]) / (domain[1] - domain[0])
        length = _LETTER_WIDTH * len(str(name))
        start = share * width - {"left": 0.0, "center": 0.5, "right": 1.0}[_name_alignment(share)] * length
        row = 0 if start > row_ends[0] else 1
        row_ends[row] = start + length + _LETTER_WIDTH
        rows.append(row)
    return rows


def _name_alignment(share: float) -> str:
    """The alignment of a name at this share of the width, so that it stays above the panel."""
    if share > 0.7:
        return "right"
    return "left" if share < 0.3 else "center"
