"""Panels of rows, a row for a model or for what it is asked: every run a dot, the mean with its interval below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import pandas as pd

from unseen.report import theme
from unseen.report.means import means
from unseen.report.panels import ENDED, STILL

LEARNING, UNLEARNED = STILL, "not learned"
STATES = (ENDED, LEARNING, UNLEARNED)
"""What became of a run. Only the first is drawn filled; the last, where a family has it, is in no mean."""
DOTS = 2_000
"""More dots than that in one figure are no longer drawn, only means."""
NAMED, GROUPED = 34, 11
"""The height of a row of one series, and of each series in a row of several."""
PRINTED, AT_LEAST, GUESSED = "|", ">", "¦"
"""How a number that a paper prints is marked, as a value or as a bound; and what a guess gives."""
COLUMNS = ["row", "series", "seed", "value", "state", "still_learning"]
_PERCENT = ".1%"
_LETTER = 5.6
"""The width of a letter of the names above a panel, in pixels."""
_UPPERMOST, _CLOSE = 0.97, 0.08
"""From this share of a panel's height on a line is at its upper edge; lines less than this share apart are close."""


@dataclass(frozen=True)
class Panel:
    """`runs` has a line per run and row with `COLUMNS`; `lines` are references by name; `marks` are numbers for
    single rows: `row`, `value`, the `mark` that is drawn, `what` they are ("printed" in the paper, "chance"), the words
    to `say`, and where a value has a spread `low` and `high`. Means are of the runs that have learned, or of `every`
    run."""

    title: str
    runs: pd.DataFrame
    lines: Mapping[str, float] = field(default_factory=dict)
    marks: pd.DataFrame | None = None
    every: bool = False

    @cached_property
    def averages(self) -> pd.DataFrame:
        """Means of the runs that count, with their intervals: `row`, `series` and what `means` gives."""
        return means(self.runs if self.every else self.runs[self.runs["state"] != UNLEARNED], ["row", "series"])


@dataclass(frozen=True)
class Measure:
    """What is on the axis of the panels: its title, its ends, and how a number on it is written."""

    title: str = "accuracy"
    domain: tuple[float, float] = (0.0, 1.0)
    shown: str = _PERCENT

    @property
    def places(self) -> dict[str, Any]:
        """Where its ticks are."""
        return {"values": [0, 0.5, 1]} if self.domain == (0.0, 1.0) else {"tickCount": 4}

    @property
    def ticks(self) -> str:
        """How numbers are written on the axis itself."""
        return ".0%" if self.shown.endswith("%") else "~r"


ACCURACY = Measure()


def row_panels(
    panels: Sequence[Panel],
    rows: Sequence[str],
    series: Sequence[str],
    measure: Measure = ACCURACY,
    *,
    columns: int = 4,
    width: int = 150,
) -> Any:
    """The panels side by side, the names of the rows at the left of each line. Where rows are not the series, these
    have a legend."""
    alt = theme.load_altair()
    dots = sum(len(panel.runs) for panel in panels) <= DOTS
    above = max((name_lines(panel.lines, measure.domain, width) for panel in panels), default=0)
    charts = [
        alt.layer(
            *_layers(alt, panel, rows, series, measure, width, names=place % columns == 0, dots=dots),
            panel_title(alt, panel.title, above),
            width=width,
            height=_height(rows, series),
        )
        for place, panel in enumerate(panels)
    ]
    # The height of a row must be that of its own panel: Vega-Lite would share the first one's with all of a figure.
    scales = alt.ScaleResolveMap(color="shared", fill="shared", shape="shared", yOffset="independent")
    return alt.concat(*charts, columns=columns, spacing={"column": 12, "row": 26}, resolve=alt.Resolve(scale=scales))


def headed(block: Any, heading: str) -> Any:
    """A block, which nobody else has, with a heading; `stacked` keeps it when the whole is given a title."""
    if heading:
        block.title = theme.load_altair().Title(heading, fontSize=14, offset=10)  # `properties` would copy all its data
    return block


def table(panels: Sequence[Panel], row: str = "model", series: str = "") -> pd.DataFrame:
    """The data behind: a line per run, and one per mean with the number of `runs` behind it. `row` and `series` are
    what these two are called there; without the second they are the same."""
    found = []
    for panel in panels:
        averages = panel.averages.rename(columns={"mean": "value"})
        both = pd.concat([panel.runs[COLUMNS].assign(what="run"), averages.assign(what="mean")], ignore_index=True)
        if panel.marks is not None and len(panel.marks):
            marks = panel.marks.drop(columns="mark").assign(**({} if series else {"series": panel.marks["row"]}))
            both = pd.concat([both, marks], ignore_index=True)
        found.append(both.assign(panel=panel.title))
    whole = pd.concat(found, ignore_index=True)
    first = ["panel", "what", "row", "series", "seed", "value", "low", "high", "runs", "still_learning", "state"]
    whole = whole.reindex(columns=[*first, *(["say"] if "say" in whole else [])])
    return whole.drop(columns=[] if series else ["series"]).rename(columns={"row": row, "series": series})


def spread(runs: pd.DataFrame, series: Sequence[str]) -> pd.DataFrame:
    """Runs with their `offset` in the height of a row, −0.5 to 0.5, so that equal values stay visible.

    >>> found = spread(pd.DataFrame({"row": "a", "series": "a", "seed": [1, 0]}), ["a"])
    >>> found["offset"].round(2).tolist()
    [-0.02, -0.22]
    """
    by = runs.groupby(["row", "series"])["seed"]
    apart = (by.rank(method="first") - (by.transform("size") + 1) / 2) / by.transform("size")
    return runs.assign(
        offset=_middle(runs["series"], series) + apart * (0.4 if len(series) == 1 else 0.5 / len(series))
    )


def _middle(labels: pd.Series, series: Sequence[str], below: bool = False) -> pd.Series:
    """Where a series stands in a row: alone it leaves the lower part to its mean."""
    if len(series) == 1:
        return pd.Series(0.25 if below else -0.12, labels.index)
    places = {label: (place + 0.5) / len(series) - 0.5 for place, label in enumerate(series)}
    return labels.map(places).astype(float) * 0.86


def _layers(
    alt: Any,
    panel: Panel,
    rows: Sequence[str],
    series: Sequence[str],
    measure: Measure,
    width: int,
    *,
    names: bool,
    dots: bool,
) -> list[Any]:
    own = _alone(rows, series)
    within = ["all"] if own else list(series)
    colour = alt.Color(
        "series:N",
        scale=theme.colour_scale(series),
        legend=None
        if own
        else alt.Legend(
            title=None, orient="top", direction="horizontal", columns=len(series), symbolType="circle", symbolOpacity=1
        ),
    )
    axis = alt.Axis(format=measure.ticks, title=measure.title, domain=False, **measure.places)
    y = alt.Y(
        "row:N",
        sort=list(rows),
        title=None,
        scale=alt.Scale(domain=list(rows)),
        axis=alt.Axis(
            labels=names, ticks=False, domain=False, grid=True, labelPadding=8, bandPosition=0.5 if own else 0
        ),
    )
    offset = alt.YOffset("offset:Q", scale=alt.Scale(domain=[-0.5, 0.5]))

    def x(column: str) -> Any:
        return alt.X(f"{column}:Q", scale=alt.Scale(domain=list(measure.domain), nice=False), axis=axis)

    def place(frame: pd.DataFrame, below: bool = False) -> pd.DataFrame:
        key = pd.Series("all", frame.index) if own else frame["series"]
        return frame.assign(offset=_middle(key, within, below))

    averages = place(panel.averages, below=True)
    layers = reference_layers(alt, panel.lines, measure.domain, width, measure.shown)
    if dots and len(panel.runs):
        runs = panel.runs.assign(_series=panel.runs["series"])
        placed = spread(runs.assign(series="all") if own else runs, within)
        layers.append(
            run_dots(
                alt, placed.assign(series=placed["_series"]).drop(columns="_series"), series, measure.shown
            ).encode(x=x("value"), y=y, yOffset=offset, color=colour)
        )
    tip = [
        alt.Tooltip("row:N", title=" "),
        alt.Tooltip("mean:Q", format=measure.shown),
        alt.Tooltip("low:Q", format=measure.shown),
        alt.Tooltip("high:Q", format=measure.shown),
        alt.Tooltip("runs:Q"),
        alt.Tooltip("still_learning:Q", title="still learning"),
    ]
    tip = tip if own else [alt.Tooltip("series:N", title=" "), *tip]
    known = averages[averages["low"].notna()]
    layers += [
        alt.Chart(known)
        .mark_rule(strokeWidth=3 if own else 2, strokeCap="round", opacity=0.55)
        .encode(x=x("low"), x2=alt.X2("high:Q"), y=y, yOffset=offset, color=colour, tooltip=tip),
        alt.Chart(averages)
        .mark_tick(thickness=3, size=12 if own else 9, orient="vertical")
        .encode(x=x("mean"), y=y, yOffset=offset, color=colour, tooltip=tip),
    ]
    if own:
        layers.append(
            alt.Chart(averages)
            .mark_text(align="left", fontSize=11)
            .encode(x=alt.XValue(width + 6), y=y, text=alt.Text("mean:Q", format=measure.shown))
        )
    layers += _mark_layers(alt, panel.marks, x, y, measure)
    return layers


def _height(rows: Sequence[str], series: Sequence[str]) -> int:
    return len(rows) * (NAMED if _alone(rows, series) else max(NAMED, GROUPED * len(series) + 8))


def _alone(rows: Sequence[str], series: Sequence[str]) -> bool:
    """Whether there is one series in each row: then the mean stands below the dots, and its number beside."""
    return list(rows) == list(series) or len(series) == 1


def run_dots(alt: Any, runs: pd.DataFrame, series: Sequence[str], shown: str) -> Any:
    """Dots of runs, hollow where a run was still learning or has not learned; places are encoded by the caller."""
    filled = runs.assign(filled=(runs["state"] == ENDED) * 0.75)
    return (
        alt.Chart(filled)
        .mark_point(size=34, strokeWidth=1.2, opacity=0.9)
        .encode(
            fill=alt.Fill("series:N", scale=theme.colour_scale(series), legend=None),
            fillOpacity=alt.FillOpacity("filled:Q", scale=None),
            shape=alt.Shape(
                "state:N", legend=None, scale=alt.Scale(domain=list(STATES), range=["circle", "circle", "diamond"])
            ),
            tooltip=[
                alt.Tooltip("series:N", title=" "),
                alt.Tooltip("seed:N"),
                alt.Tooltip("value:Q", format=shown),
                alt.Tooltip("state:N"),
            ],
        )
    )


def panel_title(alt: Any, text: str, above: int = 0) -> Any:
    """The title of one panel, above so many lines of names. A layer, so that titles of neighbours stand in line, what-
    ever is above their panels."""
    return (
        alt.Chart(pd.DataFrame({"text": [text]}))
        .mark_text(align="left", baseline="bottom", fontSize=12, fontWeight=600)
        .encode(x=alt.XValue(0), y=alt.YValue(-8 - 12 * min(above, 2)), text=alt.Text("text:N"))
    )


def reference_layers(
    alt: Any,
    lines: Mapping[str, float],
    domain: tuple[float, float],
    width: int,
    shown: str,
    vertical: bool = True,
    side: Literal["left", "right"] = "left",
) -> list[Any]:
    """Dashed lines with their names: above the panel in two heights, or, where they lie flat, at one of its sides."""
    inside = {name: value for name, value in lines.items() if domain[0] <= value <= domain[1]}
    if not inside:
        return []
    frame = pd.DataFrame({"name": list(inside), "reference": list(inside.values())}).sort_values("reference")
    channel, scale = (alt.X if vertical else alt.Y), alt.Scale(domain=list(domain), nice=False)
    where = channel("reference:Q", scale=scale, axis=alt.Axis() if not vertical else alt.Undefined)
    along = {"x" if vertical else "y": where}
    tip = [alt.Tooltip("name:N", title=" "), alt.Tooltip("reference:Q", format=shown)]
    found = [alt.Chart(frame).mark_rule(strokeDash=[4, 4], strokeWidth=1.2).encode(**along, tooltip=tip)]
    for place, height in enumerate(_heights(frame, domain, width)):
        one = frame.iloc[place : place + 1]
        share = (float(one["reference"].iloc[0]) - domain[0]) / (domain[1] - domain[0])
        if vertical:
            found.append(
                alt.Chart(one)
                .mark_text(fontSize=10, baseline="bottom", align=_side(share))
                .encode(**along, y=alt.YValue(-3 - 12 * height), text=alt.Text("name:N"))
            )
        else:
            rest = frame["reference"].iloc[place + 1 :].min() - one["reference"].iloc[0]
            under = rest < _CLOSE * (domain[1] - domain[0])  # a line so near above leaves no room for the name
            at = "right" if share > _UPPERMOST else side  # the panel's title stands at the left above
            found.append(
                alt.Chart(one)
                .mark_text(fontSize=10, align=at, baseline="top" if under else "bottom", dy=2 if under else -1)
                .encode(**along, x=alt.XValue(3 if at == "left" else width), text=alt.Text("name:N"))
            )
    return found


def name_lines(lines: Mapping[str, float], domain: tuple[float, float], width: int) -> int:
    """In how many lines the names of references stand above a panel."""
    inside = sorted((value, name) for name, value in lines.items() if domain[0] <= value <= domain[1])
    frame = pd.DataFrame({"reference": [value for value, _ in inside], "name": [name for _, name in inside]})
    return max(_heights(frame, domain, width), default=-1) + 1


def _heights(frame: pd.DataFrame, domain: tuple[float, float], width: int) -> list[int]:
    """The line in which each name stands, references in order: the lower, unless it would touch the one before."""
    found: list[int] = []
    ends = [-math.inf, -math.inf]
    for name, reference in zip(frame["name"], frame["reference"], strict=True):
        share = (reference - domain[0]) / (domain[1] - domain[0])
        long = _LETTER * len(str(name))
        begin = share * width - {"left": 0.0, "center": 0.5, "right": 1.0}[_side(share)] * long
        found.append(0 if begin > ends[0] else 1)
        ends[found[-1]] = begin + long + _LETTER
    return found


def _side(share: float) -> str:
    """A name stands to the side of its line on which there is room."""
    return "right" if share > 0.7 else "left" if share < 0.3 else "center"


def _mark_layers(alt: Any, marks: pd.DataFrame | None, x: Any, y: Any, measure: Measure) -> list[Any]:
    if marks is None or marks.empty:
        return []
    tip = [alt.Tooltip("say:N", title=" "), alt.Tooltip("value:Q", format=measure.shown)]
    found = [
        alt.Chart(marks)
        .mark_text(fontSize=17, fontWeight="bold", dy=-4)
        .encode(x=x("value"), y=y, text=alt.Text("mark:N"), tooltip=tip)
    ]
    if "low" in marks:
        found.insert(
            0,
            alt.Chart(marks[marks["low"].notna()])
            .mark_rule(strokeWidth=1, dy=-4)
            .encode(x=x("low"), x2=alt.X2("high:Q"), y=y, tooltip=tip),
        )
    return found
