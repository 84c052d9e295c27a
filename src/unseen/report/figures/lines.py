"""Panels of lines: learning curves against samples seen, and accuracy against a number that was varied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from unseen.report import theme
from unseen.report.figures.rows import ACCURACY, DOTS, UNLEARNED, Measure, panel_title, reference_layers, run_dots
from unseen.report.means import means

HEIGHT = 190
FAINT, CLEAR = 0.3, 0.6


@dataclass(frozen=True)
class Course:
    """A panel of values against a number: `runs` has a line per run and `number`, with `series`, `seed`, `value` and
    `state`; `after` is where what is new begins."""

    title: str
    runs: pd.DataFrame
    lines: Mapping[str, float] = field(default_factory=dict)
    after: float | None = None

    @cached_property
    def averages(self) -> pd.DataFrame:
        """Means of the runs that count at each number, with their intervals."""
        return means(self.runs[self.runs["state"] != UNLEARNED], ["series", "number"])


def course_panel(
    course: Course, series: Sequence[str], number: str, measure: Measure = ACCURACY, *, width: int = 240
) -> Any:
    """Every run a dot, means joined by lines, with their intervals."""
    alt = theme.load_altair()
    averages, numbers = course.averages, sorted(set(course.runs["number"]))
    colour = legend(alt, series)
    across = alt.Scale(domain=_ends(numbers), nice=False)
    x = alt.X(
        "number:Q",
        title=number,
        scale=across,
        axis=alt.Axis(values=numbers, grid=False, format="~r", labelOverlap=False),
    )
    axis = alt.Axis(title=measure.title, format=measure.ticks, tickCount=5, domain=False)

    def y(column: str) -> Any:
        return alt.Y(f"{column}:Q", scale=alt.Scale(domain=list(measure.domain), nice=False), axis=axis)

    tip = [
        alt.Tooltip("series:N", title=" "),
        alt.Tooltip("number:Q", title=number),
        *(alt.Tooltip(f"{name}:Q", format=measure.shown) for name in ("mean", "low", "high")),
        alt.Tooltip("runs:Q"),
        alt.Tooltip("still_learning:Q", title="still learning"),
    ]
    layers = reference_layers(alt, course.lines, measure.domain, width, measure.shown, vertical=False)
    if course.after is not None:
        layers.append(alt.Chart(pd.DataFrame({"number": [course.after]})).mark_rule(strokeWidth=1).encode(x=x))
        layers.append(
            alt.Chart(pd.DataFrame({"number": [course.after], "text": ["new →"]}))
            .mark_text(fontSize=10, align="left", baseline="bottom", dx=3)
            .encode(x=x, y=alt.YValue(HEIGHT - 3), text=alt.Text("text:N"))
        )
    layers += [
        alt.Chart(averages).mark_line(strokeWidth=2).encode(x=x, y=y("mean"), color=colour),
        alt.Chart(averages[averages["low"].notna()])
        .mark_rule(strokeWidth=3, opacity=0.45)
        .encode(x=x, y=y("low"), y2=alt.Y2("high:Q"), color=colour, tooltip=tip),
        alt.Chart(averages)
        .mark_tick(thickness=2.5, size=11, orient="horizontal")
        .encode(x=x, y=y("mean"), color=colour, tooltip=tip),
    ]
    if len(course.runs) <= DOTS:
        apart = _beside(course.runs, series, numbers)
        layers.append(
            run_dots(alt, apart, series, measure.shown).encode(
                x=alt.X("beside:Q", scale=across, title=number), y=y("value"), color=colour
            )
        )
    return alt.layer(*layers, panel_title(alt, course.title, 1), width=width, height=HEIGHT)


def course_table(course: Course, series: str, number: str) -> pd.DataFrame:
    """The data behind: a line per run, and one per mean with the number of `runs` behind it."""
    own = course.runs[["series", "number", "seed", "value", "state"]].assign(what="run")
    both = pd.concat([own, course.averages.rename(columns={"mean": "value"}).assign(what="mean")], ignore_index=True)
    return both.rename(columns={"series": series, "number": number}).assign(panel=course.title)


def curve_panel(
    title: str,
    points: pd.DataFrame,
    series: Sequence[str],
    measure: Measure,
    *,
    log: bool = False,
    lines: Mapping[str, float] | None = None,
    width: int = 240,
) -> Any:
    """Learning curves, a faint line for each run (`cell`), and the mean of all runs of a series where all have a point;
    `points` has `series`, `cell`, `seed`, `samples`, `value`."""
    alt = theme.load_altair()
    colour = legend(alt, series)
    scale = alt.Scale(type="log", nice=False) if log else alt.Scale(domain=list(measure.domain), nice=False)
    axis = alt.Axis(title=measure.title, format="~g" if log else measure.ticks, tickCount=5, domain=False)
    x = alt.X("samples:Q", title="samples seen", axis=alt.Axis(format="~s", tickCount=5, grid=False))

    def y(column: str) -> Any:
        return alt.Y(f"{column}:Q", scale=scale, axis=axis)

    averages = mean_curves(points)
    tip = [alt.Tooltip("series:N", title=" "), alt.Tooltip("samples:Q", format=",")]
    layers = (
        []
        if log
        else reference_layers(alt, lines or {}, measure.domain, width, measure.shown, vertical=False, side="right")
    )
    layers.append(
        alt.Chart(points)
        .mark_line(strokeWidth=1, opacity=CLEAR if log else FAINT)
        .encode(
            x=x,
            y=y("value"),
            color=colour,
            detail=alt.Detail("cell:N"),
            tooltip=[*tip, alt.Tooltip("seed:N"), alt.Tooltip("value:Q")],
        )
    )
    if not log:  # a mean on a logarithmic axis is that of its worst run
        layers.append(
            alt.Chart(averages)
            .mark_line(strokeWidth=2)
            .encode(x=x, y=y("mean"), color=colour, tooltip=[*tip, alt.Tooltip("mean:Q"), alt.Tooltip("runs:Q")])
        )
    return alt.layer(*layers, panel_title(alt, title, 1), width=width, height=HEIGHT)


def mean_curves(points: pd.DataFrame) -> pd.DataFrame:
    """The mean of a series at each number of samples at which all its runs have a point, and how many runs these are.

    >>> points = pd.DataFrame({"series": "a", "cell": list("xyx"), "samples": [1, 1, 2], "value": [0.0, 1.0, 3.0]})
    >>> mean_curves(points).to_dict("records")
    [{'series': 'a', 'samples': 1, 'mean': 0.5, 'runs': 2}]
    """
    known = points[points["value"].notna()]
    found = known.groupby(["series", "samples"], sort=False)["value"].agg(mean="mean", runs="size").reset_index()
    return found[found["runs"] == found["series"].map(known.groupby("series")["cell"].nunique())]


def legend(alt: Any, series: Sequence[str]) -> Any:
    """The colours of models with a legend above."""
    return alt.Color(
        "series:N",
        scale=theme.colour_scale(series),
        legend=alt.Legend(
            title=None,
            orient="top",
            direction="horizontal",
            columns=min(6, len(series)),
            symbolType="stroke",
            symbolStrokeWidth=3,
            symbolOpacity=1,
        ),
    )


def _ends(numbers: Sequence[float]) -> list[float]:
    """The ends of an axis, a little beyond the numbers."""
    margin = 0.06 * (max(numbers) - min(numbers)) or 1.0
    return [min(numbers) - margin, max(numbers) + margin]


def _beside(runs: pd.DataFrame, series: Sequence[str], numbers: Sequence[float]) -> pd.DataFrame:
    """Runs a little beside their number, each series at its own place, so that dots do not hide each other."""
    room = 0.02 * (max(numbers) - min(numbers))
    places = {label: place - (len(series) - 1) / 2 for place, label in enumerate(series)}
    return runs.assign(beside=runs["number"] + runs["series"].map(places).astype(float) * room / max(1, len(series)))
